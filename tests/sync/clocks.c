/* clocks: what each thread of a run knows of what the others have done. */
#include "clocks.h"

#include <string.h>

#include "schedule.h"

enum { PLACES = 1 << 12 };

/* What is known of an address in this run. */
typedef struct place {
    const volatile void *address;
    int64_t run;
    uint32_t release[SCHEDULE_THREADS]; /* what who acquires it comes to know */
    uint32_t reads[SCHEDULE_THREADS];
    int writer, releaser;
    uint32_t written;
} place;

static struct {
    place places[PLACES];
    uint32_t known[SCHEDULE_THREADS][SCHEDULE_THREADS]; /* by each, of each */
    int n_threads;
    int64_t run; /* of all that there were: places of an earlier one are free */
} c;

void clocks_begin(void)
{
    c.run++;
    c.n_threads = 1;
    memset(c.known, 0, sizeof c.known);
    c.known[0][0] = 1;
}

static place *place_of(const volatile void *address)
{
    uint64_t at = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 40;
    for (;; at++) {
        place *p = &c.places[at % PLACES];
        if (p->run == c.run && p->address == address) return p;
        if (p->run == c.run) continue;
        memset(p, 0, sizeof *p);
        p->address = address;
        p->run = c.run;
        p->releaser = -1;
        return p;
    }
}

static void learn(uint32_t *known, const uint32_t *other)
{
    for (int i = 0; i < c.n_threads; i++)
        if (other[i] > known[i]) known[i] = other[i];
}

void clocks_fork(int parent, int thread)
{
    c.n_threads = thread + 1;
    learn(c.known[thread], c.known[parent]);
    c.known[thread][thread] = 1;
    c.known[parent][parent]++;
}

/* ---- accesses ----------------------------------------------------------------------------------- */

static void load(int thread, place *p)
{
    learn(c.known[thread], p->release);
}

static void release(int thread, place *p)
{
    learn(p->release, c.known[thread]);
    p->releaser = thread;
    c.known[thread][thread]++;
}

static void store(int thread, place *p)
{
    memset(p->release, 0, sizeof p->release);
    release(thread, p);
}

static void change(int thread, place *p)
{
    load(thread, p);
    release(thread, p);
}

/* What others left there is gone, and nothing comes in its place. */
static void store_relaxed(int thread, place *p)
{
    if (p->releaser != thread) memset(p->release, 0, sizeof p->release);
}

static void check_written(int thread, const place *p, const char *what)
{
    if (p->written > c.known[thread][p->writer])
        schedule_fail("thread %d %s what thread %d has written and not handed over", thread, what,
                      p->writer);
}

static void read_data(int thread, place *p)
{
    check_written(thread, p, "reads");
    p->reads[thread] = c.known[thread][thread];
}

static void write_data(int thread, place *p)
{
    check_written(thread, p, "writes over");
    for (int i = 0; i < c.n_threads; i++)
        if (i != thread && p->reads[i] > c.known[thread][i])
            schedule_fail("thread %d writes what thread %d may still read", thread, i);
    p->writer = thread;
    p->written = c.known[thread][thread];
}

/* NULL: nothing is learned by it, and nothing left. */
static void (*const acts[])(int thread, place *p) = {
    [WEFT_ACCESS_LOAD] = load,      [WEFT_ACCESS_LOAD_RELAXED] = NULL,
    [WEFT_ACCESS_STORE] = store,    [WEFT_ACCESS_STORE_RELAXED] = store_relaxed,
    [WEFT_ACCESS_CHANGE] = change,  [WEFT_ACCESS_CHANGE_RELAXED] = NULL,
    [WEFT_ACCESS_READ] = read_data, [WEFT_ACCESS_WRITE] = write_data,
};

void clocks_access(int thread, const volatile void *where, weft_access kind)
{
    if (acts[kind] != NULL) acts[kind](thread, place_of(where));
}
