/* Arm MPS2: UART 0 and timer 0 of the CMSDK at 25 MHz; on silicon with a cycle counter, that one (COUNTER_DWT). */
#include "board.h"

#define REG(address) (*(volatile uint32_t *)(address))

#define UART0 0x40004000u
#define UART_DATA REG(UART0 + 0x0)
#define UART_STATE REG(UART0 + 0x4)
#define UART_CTRL REG(UART0 + 0x8)
#define UART_BAUDDIV REG(UART0 + 0x10)
#define TX_FULL 1u
#define RX_FULL 2u

#define CLOCK_HZ 25000000u

const char board_name[] = BOARD;
const uint32_t board_clock_hz = CLOCK_HZ;

#ifdef COUNTER_DWT
#define DEMCR REG(0xE000EDFCu)
#define DWT_CTRL REG(0xE0001000u)
#define DWT_CYCCNT REG(0xE0001004u)
#define DWT_LAR REG(0xE0001FB0u)

const char board_counter[] = "DWT cycle counter";

static void counter_start(void) {
    DEMCR |= 1u << 24;      /* trace on */
    DWT_LAR = 0xC5ACCE55u;  /* a Cortex-M7 keeps the unit locked until it reads this word */
    DWT_CYCCNT = 0;
    DWT_CTRL |= 1u;
}
uint32_t board_ticks(void) { return DWT_CYCCNT; }
void board_set_ticks(uint32_t value) { DWT_CYCCNT = value; }
#else
#define TIMER0 0x40000000u
#define TIMER_CTRL REG(TIMER0 + 0x0)
#define TIMER_VALUE REG(TIMER0 + 0x4)
#define TIMER_RELOAD REG(TIMER0 + 0x8)

const char board_counter[] = "CMSDK timer";

static void counter_start(void) {
    TIMER_RELOAD = 0xFFFFFFFFu;
    TIMER_VALUE = 0xFFFFFFFFu;
    TIMER_CTRL = 1u;
}
uint32_t board_ticks(void) { return ~TIMER_VALUE; } /* it counts down */
void board_set_ticks(uint32_t value) { TIMER_VALUE = ~value; }
#endif

void board_start(void) {
    UART_BAUDDIV = CLOCK_HZ / 115200u;
    UART_CTRL = 3u;
    counter_start();
}

int board_getc(void) {
    while (!(UART_STATE & RX_FULL)) {
    }
    return (int)(UART_DATA & 0xFFu);
}

void board_putc(char c) {
    while (UART_STATE & TX_FULL) {
    }
    UART_DATA = (uint32_t)(unsigned char)c;
}
