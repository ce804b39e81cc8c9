/* A chain of INT8 layers, as network.h describes it. */
#ifndef NN_H
#define NN_H

#include <stdint.h>

enum kind { CONV, DEPTHWISE, POOL, DENSE };

typedef struct {
    const char *name;
    enum kind kind;
    int in_h, in_w, in_c, out_h, out_w, out_c;
    int kernel_h, kernel_w, stride_h, stride_w, top, left;
    int in_zero, out_zero, low;         /* low: least output, the zero of the output where negatives become zero */
    const int8_t *weight;
    const int32_t *bias, *multiplier;   /* of each output channel */
    const int8_t *shift;                /* bits that (sum * multiplier) goes down, of each output channel */
} layer_t;

void nn_run(const layer_t *layer, const int8_t *in, int8_t *out);

#endif
