/* A benchmark over a serial line: the commands of MLPerf Tiny's runner, and two more that time every layer.
 *
 * A command ends with '%', an answer with the line "m-ready". Of MLPerf Tiny: name, profile, timestamp, help,
 * db load N | db HEX | db print, infer N [W], results. Ours: trace N [W [START]], rates.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "network.h"
#include "nn.h"

#define COMMAND_SIZE 80
#define LAYERS ((int)(sizeof network / sizeof *network))
#ifdef NDEBUG
#define BUILD "release"
#else
#define BUILD "debug"
#endif

static int8_t input[INPUT_SIZE], buffers[2][LARGEST];
static const int8_t *output = buffers[0];
static uint32_t marks[sizeof network / sizeof *network + 1];
static size_t expected, loaded;

static void infer(void) {
    const int8_t *from = input;
    marks[0] = board_ticks();
    for (int place = 0; place < LAYERS; place++) {
        int8_t *to = buffers[place & 1];
        nn_run(&network[place], from, to);
        marks[place + 1] = board_ticks();
        from = to;
    }
    output = from;
}

/* Real numbers with six digits after the point, without the floating-point printing of the library. */
static void print_real(int64_t billionths) {
    const int64_t millionths = (billionths + (billionths < 0 ? -500 : 500)) / 1000;
    const int64_t size = millionths < 0 ? -millionths : millionths;
    printf("%s%ld.%06ld", millionths < 0 ? "-" : "", (long)(size / 1000000), (long)(size % 1000000));
}

static void results(void) {
    printf("m-results-[");
    for (int place = 0; place < OUTPUT_SIZE; place++) {
        if (place) {
            printf(",");
        }
        print_real((int64_t)(output[place] - OUTPUT_ZERO) * OUTPUT_SCALE_BILLIONTHS);
    }
    printf("]\r\nm-raw-[");
    for (int place = 0; place < OUTPUT_SIZE; place++) {
        printf(place ? ",%d" : "%d", output[place]);
    }
    printf("]\r\n");
}

static void timestamp(void) {
    printf("m-lap-us-%lu\r\n", (unsigned long)((uint64_t)board_ticks() * 1000000u / board_clock_hz));
}

/* One row: which inference, which layer, the raw counter before and after, and the milliseconds between. */
static void row(int iteration, const char *name, uint32_t start, uint32_t stop) {
    const uint64_t micro = (uint64_t)(uint32_t)(stop - start) * 1000000u / board_clock_hz;
    printf("%d,%s,%lu,%lu,,,%lu.%03lu,\r\n", iteration, name, (unsigned long)start, (unsigned long)stop,
           (unsigned long)(micro / 1000), (unsigned long)(micro % 1000));
}

static void trace(int count, int warmup, const char *start) {
    if (start) {
        board_set_ticks(strtoul(start, NULL, 10)); /* to see a counter turn without waiting for it */
    }
    for (int place = 0; place < warmup; place++) {
        infer();
    }
    printf("i,layer,start,end,misses,accesses,ms,mJ\r\n");
    for (int place = 0; place < count; place++) {
        infer();
        row(place, "total", marks[0], marks[LAYERS]);
        for (int layer = 0; layer < LAYERS; layer++) {
            row(place, network[layer].name, marks[layer], marks[layer + 1]);
        }
    }
    printf("m-trace-done-%d\r\n", count * (LAYERS + 1));
}

static void many(int count, int warmup) {
    printf("m-warmup-start-%d\r\n", warmup);
    while (warmup-- > 0) {
        infer();
    }
    printf("m-warmup-done\r\nm-infer-start-%d\r\n", count);
    timestamp();
    while (count-- > 0) {
        infer();
    }
    timestamp();
    printf("m-infer-done\r\n");
    results();
}

/* What the core attains: products of bytes that lie in memory, bytes copied, and an empty call. */
static void rates(void) {
    enum { SIZE = 4096, ROUNDS = 16 };
    static int8_t left[SIZE], right[SIZE];
    volatile int32_t sink = 0;
    uint32_t start = board_ticks();
    for (int round = 0; round < ROUNDS; round++) {
        int32_t sum = 0;
        __asm__ volatile("" ::"r"(left), "r"(right) : "memory"); /* the bytes may have changed */
        for (int place = 0; place < SIZE; place++) {
            sum += left[place] * right[place];
        }
        sink += sum;
    }
    printf("m-rate-macs-%d-%lu\r\n", SIZE * ROUNDS, (unsigned long)(board_ticks() - start));
    start = board_ticks();
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(right, left, SIZE);
        __asm__ volatile("" ::"r"(right) : "memory");
    }
    printf("m-rate-bytes-%d-%lu\r\n", 2 * SIZE * ROUNDS, (unsigned long)(board_ticks() - start));
    static const layer_t nothing = {.name = "nothing", .kind = POOL, .in_h = 1, .in_w = 1};
    start = board_ticks();
    for (int round = 0; round < 256; round++) {
        nn_run(&nothing, input, buffers[0]);
        marks[0] = board_ticks();
    }
    printf("m-rate-launches-256-%lu\r\n", (unsigned long)(board_ticks() - start));
}

static int hex(char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static void load(const char *digits) {
    for (; digits[0]; digits += 2) {
        const int high = hex(digits[0]), low = digits[1] ? hex(digits[1]) : -1;
        if (high < 0 || low < 0) {
            printf("e-[db: not pairs of hexadecimal digits]\r\n");
            return;
        }
        if (loaded >= expected) {
            printf("e-[db: more bytes than announced]\r\n");
            return;
        }
        input[loaded++] = (int8_t)(high * 16 + low);
    }
    if (loaded == expected) {
        printf("m-load-done\r\n");
    }
}

static void buffer(char *word) {
    if (word == NULL) {
        printf("e-[db needs a subcommand]\r\n");
    } else if (strcmp(word, "load") == 0) {
        const char *size = strtok(NULL, " ");
        expected = size ? strtoul(size, NULL, 10) : 0;
        loaded = 0;
        if (expected != INPUT_SIZE) {
            expected = 0;
            printf("e-[db load: the input has %d bytes]\r\n", INPUT_SIZE);
        } else {
            printf("m-[Expecting %d bytes]\r\n", INPUT_SIZE);
        }
    } else if (strcmp(word, "print") == 0) {
        printf("m-buffer-");
        for (size_t place = 0; place < loaded; place++) {
            printf("%02x", (unsigned)(uint8_t)input[place]);
        }
        printf("\r\n");
    } else {
        load(word);
    }
}

static void profile(void) {
    extern char data_start[], data_end[], bss_start[], bss_end[], data_source[];
    printf("m-profile-[mlsys firmware 1]\r\nm-model-[%s]\r\n", NETWORK_NAME);
    printf("m-board-[%s]\r\nm-clock-[%lu]\r\n", board_name, (unsigned long)board_clock_hz);
    printf("m-counter-[%s, 32 bits]\r\nm-build-[%s]\r\n", board_counter, BUILD);
    const unsigned long data = (unsigned long)(data_end - data_start);
    printf("m-memory-[%lu,%lu]\r\n", (unsigned long)data_source + data, data + (unsigned long)(bss_end - bss_start));
    for (int place = 0; place < LAYERS; place++) {
        printf("m-layer-[%s]\r\n", network[place].name);
    }
}

/* Reads up to two numbers after a command: how many, and how many before; says whether they can be meant. */
static bool counts(int *count, int *warmup) {
    const char *first = strtok(NULL, " "), *second = first ? strtok(NULL, " ") : NULL;
    *count = first ? atoi(first) : 1;
    *warmup = second ? atoi(second) : 10;
    if (*count <= 0 || *warmup < 0) {
        printf("e-[inferences must be above 0 and warm-up not below]\r\n");
        return false;
    }
    return true;
}

static void obey(char *command) {
    const char *word = strtok(command, " ");
    int count, warmup;
    if (word == NULL) {
    } else if (strcmp(word, "name") == 0) {
        printf("m-name-dut-[%s]\r\n", board_name);
    } else if (strcmp(word, "profile") == 0) {
        profile();
    } else if (strcmp(word, "timestamp") == 0) {
        timestamp();
    } else if (strcmp(word, "db") == 0) {
        buffer(strtok(NULL, " "));
    } else if (strcmp(word, "infer") == 0) {
        if (counts(&count, &warmup)) {
            many(count, warmup);
        }
    } else if (strcmp(word, "trace") == 0) {
        if (counts(&count, &warmup)) {
            trace(count, warmup, strtok(NULL, " "));
        }
    } else if (strcmp(word, "results") == 0) {
        results();
    } else if (strcmp(word, "rates") == 0) {
        rates();
    } else if (strcmp(word, "help") == 0) {
        printf("name profile timestamp help db infer results trace rates\r\n");
    } else {
        printf("e-[Unknown command: %s]\r\n", word);
    }
    printf("m-ready\r\n");
}

int main(void) {
    static char command[COMMAND_SIZE + 1];
    size_t size = 0;
    board_start();
    setvbuf(stdout, NULL, _IOLBF, 128);
    printf("m-init-done\r\nm-ready\r\n");
    for (;;) {
        const int c = board_getc();
        if (c == '%') {
            command[size] = 0;
            size = 0;
            obey(command);
        } else if (c != '\r' && c != '\n' && size < COMMAND_SIZE) {
            command[size++] = (char)c;
        }
    }
}
