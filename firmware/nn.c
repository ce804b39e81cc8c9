/* Kernels in plain C: the order of additions and the rounding are those of mlsys/measure/networks/int8.py, bit for bit. */
#include "nn.h"

static int8_t scaled(const layer_t *l, int32_t sum, int channel) {
    const int down = l->shift[channel];
    const int64_t wide = (int64_t)sum * l->multiplier[channel];
    int32_t value = (int32_t)((wide + ((int64_t)1 << (down - 1))) >> down) + l->out_zero;
    if (value < l->low) {
        value = l->low;
    }
    return (int8_t)(value > 127 ? 127 : value);
}

static void conv(const layer_t *l, const int8_t *in, int8_t *out) {
    const int area = l->kernel_h * l->kernel_w * l->in_c;
    for (int y = 0; y < l->out_h; y++) {
        for (int x = 0; x < l->out_w; x++) {
            const int from_y = y * l->stride_h - l->top, from_x = x * l->stride_w - l->left;
            for (int o = 0; o < l->out_c; o++) {
                const int8_t *weight = l->weight + o * area;
                int32_t sum = l->bias[o];
                for (int i = 0; i < l->kernel_h; i++) {
                    const int row = from_y + i;
                    if (row < 0 || row >= l->in_h) {
                        continue; /* outside, the input is its zero and adds nothing */
                    }
                    for (int j = 0; j < l->kernel_w; j++) {
                        const int column = from_x + j;
                        if (column < 0 || column >= l->in_w) {
                            continue;
                        }
                        const int8_t *source = in + (row * l->in_w + column) * l->in_c;
                        const int8_t *factor = weight + (i * l->kernel_w + j) * l->in_c;
                        for (int c = 0; c < l->in_c; c++) {
                            sum += (source[c] - l->in_zero) * factor[c];
                        }
                    }
                }
                *out++ = scaled(l, sum, o);
            }
        }
    }
}

static void depthwise(const layer_t *l, const int8_t *in, int8_t *out) {
    for (int y = 0; y < l->out_h; y++) {
        for (int x = 0; x < l->out_w; x++) {
            const int from_y = y * l->stride_h - l->top, from_x = x * l->stride_w - l->left;
            for (int c = 0; c < l->out_c; c++) {
                int32_t sum = l->bias[c];
                for (int i = 0; i < l->kernel_h; i++) {
                    const int row = from_y + i;
                    if (row < 0 || row >= l->in_h) {
                        continue;
                    }
                    for (int j = 0; j < l->kernel_w; j++) {
                        const int column = from_x + j;
                        if (column >= 0 && column < l->in_w) {
                            sum += (in[(row * l->in_w + column) * l->in_c + c] - l->in_zero) *
                                   l->weight[(i * l->kernel_w + j) * l->in_c + c];
                        }
                    }
                }
                *out++ = scaled(l, sum, c);
            }
        }
    }
}

static void pool(const layer_t *l, const int8_t *in, int8_t *out) {
    const int count = l->in_h * l->in_w;
    for (int c = 0; c < l->out_c; c++) {
        int32_t sum = 0;
        for (int place = 0; place < count; place++) {
            sum += in[place * l->in_c + c];
        }
        out[c] = (int8_t)(sum >= 0 ? (sum + count / 2) / count : -((-sum + count / 2) / count));
    }
}

static void dense(const layer_t *l, const int8_t *in, int8_t *out) {
    const int size = l->in_h * l->in_w * l->in_c;
    for (int o = 0; o < l->out_c; o++) {
        int32_t sum = l->bias[o];
        for (int c = 0; c < size; c++) {
            sum += (in[c] - l->in_zero) * l->weight[o * size + c];
        }
        out[o] = scaled(l, sum, o);
    }
}

void nn_run(const layer_t *layer, const int8_t *in, int8_t *out) {
    static void (*const kernels[])(const layer_t *, const int8_t *, int8_t *) = {
        [CONV] = conv, [DEPTHWISE] = depthwise, [POOL] = pool, [DENSE] = dense,
    };
    kernels[layer->kind](layer, in, out);
}
