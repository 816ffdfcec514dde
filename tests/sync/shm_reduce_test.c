/* shm_reduce_test: in all orders within a bound, all_reduces in memory that processes share add up what all have
 * given, one after the other or several at once, and no slot is written while somebody may still read it.
 */
#include "reduce.h"

#include "explored.h"

enum { MOST_RANKS = 3, MOST_FLOATS = 180000, MOST_REDUCTIONS = 6, EVERY = 97 };

/* Each rank as a process would be: a window of its own onto the same memory. */
typedef struct process {
    weft_shm_reduce window;
    weft_comm comm;
    weft_areas areas;
    weft_reduce reduces[MOST_REDUCTIONS];
    int64_t numbers[MOST_REDUCTIONS][WEFT_REDUCE_NUMBERS * MOST_RANKS];
    char *memory[MOST_RANKS];
    float send[MOST_FLOATS], recv[MOST_FLOATS]; /* of all reductions, one after the other */
} process;

typedef struct host {
    int n_ranks, n_reductions;
    int n_floats[MOST_REDUCTIONS];
    bool is_at_once;
    process *processes; /* [n_ranks] */
    char *memory[MOST_RANKS];
} host;

static const int64_t memory_bytes = (int64_t)sizeof(weft_shm_reduce_line) +
                                    (int64_t)WEFT_SHM_REDUCE_SLOTS * WEFT_SHM_REDUCE_SLOT_BYTES;

static float summand(int rank, int reduction, int i)
{
    return (float)(100 * reduction + 10 * rank + i % 7);
}

static void wait_for(weft_reduction *it)
{
    weft_error error = {0};
    weft_waiter waiter = {"the others' pieces", WEFT_ANY, {0, 0}, NULL, 0};
    while (!weft_shm_reduce_poll(it, &error))
        weft_waiter_nap(&waiter, 1);
}

static int begin_of(const host *h, int reduction)
{
    int begin = 0;
    for (int k = 0; k < reduction; k++)
        begin += h->n_floats[k];
    return begin;
}

static void start(const host *h, int rank, int k, weft_reduction *it)
{
    process *p = &h->processes[rank];
    const int begin = begin_of(h, k);
    weft_error error = {0};
    *it = (weft_reduction){.reduce = &p->reduces[k],
                           .comm = &p->comm,
                           .fingerprint = 5u + (uint64_t)k,
                           .send = (const char *)&p->send[begin],
                           .recv = (char *)&p->recv[begin]};
    for (int i = 0; i < h->n_floats[k]; i += EVERY)
        p->send[begin + i] = summand(rank, k, i);
    (void)weft_shm_reduce_start(it, &error);
}

static void finish(const host *h, int rank, int k, weft_reduction *it)
{
    const float *recv = &h->processes[rank].recv[begin_of(h, k)];
    wait_for(it);
    for (int i = 0; i < h->n_floats[k]; i += EVERY) {
        float sum = 0;
        for (int r = 0; r < h->n_ranks; r++)
            sum += summand(r, k, i);
        if (recv[i] != sum)
            schedule_fail("rank %d has %g for element %d of sum %d, not %g", rank, (double)recv[i],
                          i, k, (double)sum);
    }
}

static void reduce_all(void *state, int rank)
{
    const host *h = state;
    weft_reduction all[MOST_REDUCTIONS];
    for (int k = 0; k < h->n_reductions; k++) {
        start(h, rank, k, &all[k]);
        if (!h->is_at_once) finish(h, rank, k, &all[k]);
    }
    for (int k = 0; k < h->n_reductions && h->is_at_once; k++)
        finish(h, rank, k, &all[k]);
}

static void open_process(host *h, int rank)
{
    process *p = &h->processes[rank];
    for (int r = 0; r < h->n_ranks; r++)
        p->memory[r] = h->memory[r];
    p->window = (weft_shm_reduce){.near = {.n = h->n_ranks, .self = rank, .memory = p->memory},
                                  .n_ranks = h->n_ranks,
                                  .self = rank};
    p->areas = (weft_areas){0};
    p->comm = (weft_comm){.rank = rank,
                          .self = rank,
                          .n_ranks = h->n_ranks,
                          .areas = &p->areas,
                          .window = &p->window};
    for (int k = 0; k < h->n_reductions; k++)
        weft_reduce_make(&p->reduces[k], h->n_ranks, rank, WEFT_SUM, WEFT_F32, h->n_floats[k],
                         p->numbers[k]);
}

static void run_processes(void *state)
{
    host *h = state;
    for (int r = 0; r < h->n_ranks; r++)
        memset(h->memory[r], 0, sizeof(weft_shm_reduce_line));
    for (int r = 0; r < h->n_ranks; r++)
        open_process(h, r);
    explored_each(h->n_ranks, reduce_all, h);
}

static void check_window(const char *what, host h, schedule_options options)
{
    char name[80];
    h.processes = calloc((size_t)h.n_ranks, sizeof *h.processes);
    for (int r = 0; r < h.n_ranks; r++)
        h.memory[r] = aligned_alloc(64, (size_t)memory_bytes);
    snprintf(name, sizeof name, "%d ranks, %s%s", h.n_ranks, what,
             options.seed != 0 ? ", at random" : "");
    explore(name, run_processes, &h, options);
    for (int r = 0; r < h.n_ranks; r++)
        free(h.memory[r]);
    free(h.processes);
}

static void test_small_buffers_are_combined_whole_by_all(void)
{
    const host two = {.n_ranks = 2, .n_reductions = 2, .n_floats = {50, 50}};
    const host three = {.n_ranks = 3, .n_reductions = 2, .n_floats = {50, 50}};
    check_window("50 floats twice", two, (schedule_options){.n_preemptions = 2});
    check_window("50 floats twice", three, (schedule_options){.n_preemptions = 1});
    check_window("50 floats twice", three,
                 (schedule_options){.seed = 2, .most_runs = weft_test_cases(5000)});
}

/* 90,000 floats are six pieces, and a rank has four slots; where nothing lies in memory that all see they go through
 * the slots. */
static void test_large_buffers_go_through_in_pieces(void)
{
    const host two = {.n_ranks = 2, .n_reductions = 2, .n_floats = {90000, 90000}};
    const host three = {.n_ranks = 3, .n_reductions = 2, .n_floats = {90000, 90000}};
    check_window("90,000 floats twice", two,
                 (schedule_options){.n_preemptions = 1, .most_runs = weft_test_cases(1500)});
    check_window("90,000 floats twice", three,
                 (schedule_options){.seed = 3, .most_runs = weft_test_cases(500)});
}

/* More pieces than slots, of which the first ones are of a buffer whose way ranks learn only when all have shown it. */
static void test_several_at_once_go_on_side_by_side(void)
{
    const host two = {.n_ranks = 2,
                      .n_reductions = 6,
                      .n_floats = {9000, 50, 50, 20000, 50, 50},
                      .is_at_once = true};
    host three = two;
    three.n_ranks = 3;
    check_window("six at once", two,
                 (schedule_options){.n_preemptions = 1, .most_runs = weft_test_cases(3000)});
    check_window("six at once", two,
                 (schedule_options){.seed = 4, .most_runs = weft_test_cases(2000)});
    check_window("six at once", three,
                 (schedule_options){.seed = 5, .most_runs = weft_test_cases(2000)});
}

int main(void)
{
    RUN(test_small_buffers_are_combined_whole_by_all);
    RUN(test_large_buffers_go_through_in_pieces);
    RUN(test_several_at_once_go_on_side_by_side);
    return weft_test_report();
}
