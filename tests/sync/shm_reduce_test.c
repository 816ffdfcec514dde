/* shm_reduce_test: in all orders within a bound, an all_reduce in memory that processes share adds up what all have
 * given, and no slot is written while somebody may still read it.
 */
#include "reduce.h"

#include "explored.h"

enum { MOST_RANKS = 3, MOST_FLOATS = 90000, REDUCTIONS = 2 };

/* Each rank as a process would be: a window of its own onto the same memory. */
typedef struct process {
    weft_shm_reduce window;
    weft_comm comm;
    weft_areas areas;
    weft_reduce reduce;
    int64_t numbers[WEFT_REDUCE_NUMBERS * MOST_RANKS];
    char *memory[MOST_RANKS];
    float send[MOST_FLOATS], recv[MOST_FLOATS];
    _Alignas(64) char scratch[1 << 16];
} process;

typedef struct host {
    int n_ranks, n_floats;
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

static void reduce_all(void *state, int rank)
{
    host *h = state;
    process *p = &h->processes[rank];
    for (int k = 0; k < REDUCTIONS; k++) {
        weft_error error = {0};
        weft_reduction it = {.reduce = &p->reduce,
                             .comm = &p->comm,
                             .fingerprint = 5u + (uint64_t)k,
                             .send = (const char *)p->send,
                             .recv = (char *)p->recv,
                             .scratch = p->scratch};
        for (int i = 0; i < h->n_floats; i += 97)
            p->send[i] = summand(rank, k, i);
        (void)weft_shm_reduce_start(&it, &error);
        wait_for(&it);
        for (int i = 0; i < h->n_floats; i += 97) {
            float sum = 0;
            for (int r = 0; r < h->n_ranks; r++)
                sum += summand(r, k, i);
            if (p->recv[i] != sum)
                schedule_fail("rank %d has %g for element %d of sum %d, not %g", rank,
                              (double)p->recv[i], i, k, (double)sum);
        }
    }
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
    weft_reduce_make(&p->reduce, h->n_ranks, rank, WEFT_SUM, WEFT_F32, h->n_floats, p->numbers);
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

static void check_window(int n_ranks, int n_floats, schedule_options options)
{
    char name[80];
    host h = {.n_ranks = n_ranks, .n_floats = n_floats};
    h.processes = calloc((size_t)n_ranks, sizeof *h.processes);
    for (int r = 0; r < n_ranks; r++)
        h.memory[r] = aligned_alloc(64, (size_t)memory_bytes);
    snprintf(name, sizeof name, "%d ranks, %d floats%s", n_ranks, n_floats,
             options.seed != 0 ? ", at random" : "");
    explore(name, run_processes, &h, options);
    for (int r = 0; r < n_ranks; r++)
        free(h.memory[r]);
    free(h.processes);
}

static void test_small_buffers_are_combined_whole_by_all(void)
{
    check_window(2, 50, (schedule_options){.n_preemptions = 2});
    check_window(3, 50, (schedule_options){.n_preemptions = 1});
    check_window(3, 50, (schedule_options){.seed = 2, .most_runs = weft_test_cases(5000)});
}

/* 90,000 floats are six pieces, and a rank has four slots; where nothing lies in memory that all see they go through
 * the slots. */
static void test_large_buffers_go_through_in_pieces(void)
{
    check_window(2, 90000,
                 (schedule_options){.n_preemptions = 1, .most_runs = weft_test_cases(1500)});
    check_window(3, 90000, (schedule_options){.seed = 3, .most_runs = weft_test_cases(500)});
}

int main(void)
{
    RUN(test_small_buffers_are_combined_whole_by_all);
    RUN(test_large_buffers_go_through_in_pieces);
    return weft_test_report();
}
