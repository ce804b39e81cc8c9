/* Vectors, the way from reset to main, and the few calls that newlib makes. */
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "board.h"

extern uint32_t data_source[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
extern char end[];
int main(void);

void reset(void) {
    for (uint32_t *to = data_start, *from = data_source; to < data_end;) {
        *to++ = *from++;
    }
    for (uint32_t *to = bss_start; to < bss_end;) {
        *to++ = 0;
    }
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* let the program use the floating-point unit */
#endif
    main();
    for (;;) {
    }
}

static void fault(void) {
    const char *text = "e-[fault]\r\n";
    while (*text) {
        board_putc(*text++);
    }
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault,
};

int _write(int file, const char *text, int count) {
    (void)file;
    for (int place = 0; place < count; place++) {
        board_putc(text[place]);
    }
    return count;
}

void *_sbrk(ptrdiff_t more) {
    static char *top = end;
    char *before = top;
    top += more;
    return before;
}

int _read(int file, char *to, int count) { (void)file, (void)to, (void)count; return 0; }
int _close(int file) { (void)file; return -1; }
int _lseek(int file, int to, int from) { (void)file, (void)to, (void)from; return 0; }
int _isatty(int file) { (void)file; return 1; }
int _fstat(int file, struct stat *told) { (void)file; told->st_mode = S_IFCHR; return 0; }
int _kill(int process, int signal) { (void)process, (void)signal; return -1; }
int _getpid(void) { return 1; }
void _exit(int code) { (void)code; for (;;) { } }
