/* What the benchmark needs of a board: a serial line, and a counter that never stops. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void board_start(void);
int board_getc(void);           /* waits for a character */
void board_putc(char c);
uint32_t board_ticks(void);     /* counts up and wraps at 32 bits */
void board_set_ticks(uint32_t value);

extern const char board_name[];
extern const char board_counter[];
extern const uint32_t board_clock_hz; /* ticks a second */

#endif
