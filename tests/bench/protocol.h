/* protocol.h: how bench.py speaks with a program that measures: a line asks, a line of JSON answers.
 *
 *     about                {"weft": "0.1.0", ...}            what is measured
 *     open ROW             {"seconds": 0.01}                 make the row ready; {"skipped": "why"} where it cannot be had
 *     look STEPS           {"numbers": [4.2, 4.1]}           do it STEPS times, and tell what it computed
 *     time BLOCKS CALLS    {"wall": [0.002, 0.0019]}         seconds of each block of CALLS
 *     close                {}
 *
 * A failure is {"error": "sentence"}. One row is open at a time. workers.py says the same for Python's workers.
 */
#ifndef BENCH_PROTOCOL_H
#define BENCH_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_NUMBERS = 256, BENCH_LINE = 256, BENCH_BLOCKS = 4096 };

/* Functions that return a text return NULL when all is well, else the sentence. `state` is the worker's own. */
typedef struct bench_worker {
    void *state;
    const char *(*about)(void *state); /* JSON */
    const char *(*open)(void *state, const char *row);
    const char *(*run)(void *state, int64_t calls);
    const char *(*look)(void *state, int64_t steps, double numbers[BENCH_NUMBERS], int *n);
    void (*close)(void *state);
    /* From the process that is asked to the others of the job; NULL where there is one process. */
    void (*share)(void *state, void *data, size_t bytes);
    bool is_asked; /* this process reads the lines and answers */
} bench_worker;

/* bench_serve - answer until the lines end. Returns the program's exit status. */
int bench_serve(const bench_worker *worker);

double bench_now(void); /* seconds */

/* bench_number - element `i` of stream `stream`: in [-1, 1), a multiple of 2^-23. The same in every worker's language, so
 * that all begin with equal bits and no file has to be handed around. */
double bench_number(uint32_t stream, uint64_t i);
/* The same as an index below `n`. */
int32_t bench_index(uint32_t stream, uint64_t i, int64_t n);
/* bench_sums - what is told of a tensor [count]: its root mean square, and its mean weighted by stream 0. */
void bench_sums(const float *data, int64_t count, double numbers[2]);

#endif
