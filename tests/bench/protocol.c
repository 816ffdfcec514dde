/* protocol: the worker's end of bench.py's lines, and the numbers that all workers begin with. */
#include "protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The finalizer of MurmurHash3 over a counter: every bit of the index moves every bit of the number. */
static uint32_t mix(uint32_t stream, uint64_t i)
{
    uint32_t x = (uint32_t)i * 0x9E3779B1u + (stream + 1) * 0x7FEB352Du;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

double bench_number(uint32_t stream, uint64_t i)
{
    return (double)(mix(stream, i) >> 8) / 8388608.0 - 1.0;
}

int32_t bench_index(uint32_t stream, uint64_t i, int64_t n)
{
    return (int32_t)(mix(stream, i) % (uint32_t)n);
}

void bench_sums(const float *data, int64_t count, double numbers[2])
{
    double squares = 0.0, weighted = 0.0;
    for (int64_t i = 0; i < count; i++) {
        squares += (double)data[i] * (double)data[i];
        weighted += (double)data[i] * bench_number(0, (uint64_t)i);
    }
    numbers[0] = sqrt(squares / (double)count);
    numbers[1] = weighted / (double)count;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void tell_text(const char *key, const char *text)
{
    printf("{\"%s\": \"", key);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar((unsigned char)*text < ' ' ? ' ' : *text);
    printf("\"}\n");
}

static void tell_numbers(const char *key, const double *numbers, int n)
{
    printf("{\"%s\": [", key);
    for (int i = 0; i < n; i++)
        printf("%s%.17g", i ? ", " : "", numbers[i]);
    printf("]}\n");
}

/* Every process does what is asked; the one that was asked answers. Returns whether a row is open. */
static bool open_row(const bench_worker *w, const char *row)
{
    const double begin = bench_now();
    const char *why = w->open(w->state, row);
    const double took = bench_now() - begin;
    if (w->is_asked && why != NULL) tell_text("skipped", why);
    if (w->is_asked && why == NULL) printf("{\"seconds\": %.9g}\n", took);
    return why == NULL;
}

static void look(const bench_worker *w, int64_t steps)
{
    double numbers[BENCH_NUMBERS];
    int n = 0;
    const char *wrong = w->look(w->state, steps, numbers, &n);
    if (!w->is_asked) return;
    if (wrong != NULL)
        tell_text("error", wrong);
    else
        tell_numbers("numbers", numbers, n);
}

static void time_blocks(const bench_worker *w, int n_blocks, int64_t calls)
{
    static double wall[BENCH_BLOCKS];
    const char *wrong = n_blocks > BENCH_BLOCKS ? "too many blocks" : NULL;
    for (int i = 0; i < n_blocks && wrong == NULL; i++) {
        const double begin = bench_now();
        wrong = w->run(w->state, calls);
        wall[i] = bench_now() - begin;
    }
    if (!w->is_asked) return;
    if (wrong != NULL)
        tell_text("error", wrong);
    else
        tell_numbers("wall", wall, n_blocks);
}

/* What is done with an open row alone; false: the line is none of these. */
static bool use_row(const bench_worker *w, const char *line, bool is_open)
{
    int n_blocks = 0;
    long long calls = 0;
    const bool looks = sscanf(line, "look %lld", &calls) == 1;
    if (!looks && sscanf(line, "time %d %lld", &n_blocks, &calls) != 2) return false;
    if (is_open && looks)
        look(w, calls);
    else if (is_open)
        time_blocks(w, n_blocks, calls);
    else if (w->is_asked)
        tell_text("error", "no row is open: open ROW comes first, and its answer has seconds");
    return true;
}

static void obey(const bench_worker *w, char *line, bool *is_open)
{
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "open ", 5) == 0)
        *is_open = open_row(w, line + 5);
    else if (strcmp(line, "close") == 0) {
        w->close(w->state);
        *is_open = false;
        if (w->is_asked) printf("{}\n");
    } else if (strcmp(line, "about") == 0) {
        const char *about = w->about(w->state);
        if (w->is_asked) printf("%s\n", about);
    } else if (!use_row(w, line, *is_open) && w->is_asked)
        tell_text("error",
                  "about, open ROW, look STEPS, time BLOCKS CALLS and close are all there is");
    fflush(stdout);
}

int bench_serve(const bench_worker *worker)
{
    char line[BENCH_LINE] = "";
    bool is_open = false;
    for (;;) {
        if (worker->is_asked && fgets(line, sizeof line, stdin) == NULL) line[0] = 0;
        if (worker->share != NULL) worker->share(worker->state, line, sizeof line);
        if (line[0] == 0) return EXIT_SUCCESS;
        obey(worker, line, &is_open);
    }
}
