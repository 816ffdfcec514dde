/* bench_probe: the machine's speed at this moment, with nothing of Weft in it: a product of matrices that stay in
 * cache, and a stream through memory (a triad over three arrays as large as the rows that memory bounds). One thread
 * on every core that the process may use. bench.py asks before and after a row.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

enum { SIDE = 96, STREAM = 1024 * 3072, MOST_THREADS = 256 };

typedef float matrix[SIDE][SIDE];

typedef struct probe {
    int n_threads;
    bool is_product;
    float *a, *b, *c; /* [STREAM] */
} probe;

typedef struct part {
    const probe *probe;
    int thread;
    int64_t calls;
} part;

#ifdef __x86_64__
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
static void
multiply(const float (*a)[SIDE], const float (*b)[SIDE], float (*c)[SIDE])
{
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++)
            for (int j = 0; j < SIDE; j++)
                c[i][j] += a[i][k] * b[k][j];
}

static void *product(void *argument)
{
    const part *p = argument;
    static _Thread_local matrix a, b, c;
    memset(c, 0, sizeof c);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = (float)bench_number(1, (uint64_t)(SIDE * i + j));
            b[i][j] = (float)bench_number(2, (uint64_t)(SIDE * i + j));
        }
    for (int64_t call = 0; call < p->calls; call++)
        multiply((const float(*)[SIDE])a, (const float(*)[SIDE])b, c);
    p->probe->a[p->thread] = c[1][1];
    return NULL;
}

static void *stream(void *argument)
{
    const part *p = argument;
    const int64_t begin = (int64_t)STREAM * p->thread / p->probe->n_threads;
    const int64_t end = (int64_t)STREAM * (p->thread + 1) / p->probe->n_threads;
    float *restrict a = p->probe->a;
    const float *restrict b = p->probe->b, *restrict c = p->probe->c;
    for (int64_t call = 0; call < p->calls; call++) {
        for (int64_t i = begin; i < end; i++)
            a[i] = b[i] + 0.5f * c[i];
        __asm__ volatile("" ::: "memory"); /* each call is carried out */
    }
    return NULL;
}

static const char *run(void *state, int64_t calls)
{
    const probe *p = state;
    pthread_t threads[MOST_THREADS];
    part parts[MOST_THREADS];
    for (int t = 0; t < p->n_threads; t++) {
        parts[t] = (part){p, t, calls};
        if (pthread_create(&threads[t], NULL, p->is_product ? product : stream, &parts[t]) != 0)
            return "a thread could not be started";
    }
    for (int t = 0; t < p->n_threads; t++)
        pthread_join(threads[t], NULL);
    return NULL;
}

static const char *open_row(void *state, const char *row)
{
    ((probe *)state)->is_product = strcmp(row, "product") == 0;
    if (((probe *)state)->is_product || strcmp(row, "stream") == 0) return NULL;
    return "the probes are product and stream";
}

static const char *look(void *state, int64_t steps, double *numbers, int *n)
{
    numbers[(*n)++] = 1.0;
    return run(state, steps);
}

static void close_row(void *state)
{
    (void)state;
}

static const char *about(void *state)
{
    static char text[128];
    snprintf(text, sizeof text, "{\"threads\": %d, \"product\": %.0f, \"stream\": %.0f}",
             ((probe *)state)->n_threads, 2.0 * SIDE * SIDE * SIDE * ((probe *)state)->n_threads,
             3.0 * sizeof(float) * STREAM); /* operations and bytes of a call */
    return text;
}

int main(void)
{
    cpu_set_t cores;
    float *memory = calloc(3 * (size_t)STREAM, sizeof *memory);
    if (memory == NULL || sched_getaffinity(0, sizeof cores, &cores) != 0) return EXIT_FAILURE;
    memset(memory, 0, 3 * (size_t)STREAM * sizeof *memory);
    probe p = {CPU_COUNT(&cores) < MOST_THREADS ? CPU_COUNT(&cores) : MOST_THREADS, false, memory,
               memory + STREAM, memory + 2 * (size_t)STREAM};
    const int status =
        bench_serve(&(bench_worker){&p, about, open_row, run, look, close_row, NULL, true});
    free(memory);
    return status;
}
