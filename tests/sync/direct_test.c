/* direct_test: in all orders within a bound, ranks that see each other's buffers add them up where they lie. They are threads
 * of a process, or processes of a host. No rank reads before all have come, and none goes on before all have done.
 */
#include "reduce.h"

#include "explored.h"
#include "weft/mesh.h"

/* Slices and chunks of 2 and of 3 ranks begin where these do. */
enum { MOST_RANKS = 3, MARK_BYTES = 4096, MOST_FLOATS = 12288, ROUNDS = 2 };
enum { AT_ONCE = WEFT_SHM_REDUCE_SHOWN + 2 }; /* more than a rank can show */

typedef struct end {
    weft_comm comm;
    weft_desk desk;
    weft_areas areas; /* as a process has them, the window too */
    weft_area area;
    weft_shm_reduce window;
    weft_reduce reduce;
    int64_t numbers[WEFT_REDUCE_NUMBERS * MOST_RANKS];
    char *memory[MOST_RANKS]; /* of the window */
    char *buffers[MOST_RANKS];
    _Alignas(64) char scratch[1 << 16];
} end;

/* What a rank adds up, and where the sum comes to be. */
typedef struct buffers {
    _Alignas(64) float send[MOST_FLOATS], recv[MOST_FLOATS];
} buffers;

typedef struct host {
    int n_ranks, n_floats;
    bool is_in_place; /* a sum comes to be where the rank's summands were */
    weft_mesh *mesh;
    end *ends; /* [n_ranks], as the following */
    buffers *all;
    weft_shm_reduce_line *lines;
    weft_comm *comms[MOST_RANKS];
    int peers[MOST_RANKS];
} host;

/* ---- numbers ---------------------------------------------------------------------------------------- */

static float summand(int rank, int round, int i)
{
    return (float)(100 * round + 10 * rank + i % 7);
}

static void fill(const host *h, int rank, int round)
{
    float *send = h->is_in_place ? h->all[rank].recv : h->all[rank].send;
    for (int i = 0; i < h->n_floats; i += MARK_BYTES / (int)sizeof *send) {
        weft_sync_writes(&send[i]);
        for (int k = i; k < h->n_floats && k < i + 3; k++)
            send[k] = summand(rank, round, k);
    }
}

static void check_sums(const host *h, int rank, int round)
{
    const float *recv = h->all[rank].recv;
    for (int i = 0; i < h->n_floats; i += MARK_BYTES / (int)sizeof *recv) {
        float sum = 0;
        for (int r = 0; r < h->n_ranks; r++)
            sum += summand(r, round, i + 2);
        weft_sync_reads(&recv[i]);
        if (recv[i + 2] != sum)
            schedule_fail("rank %d has %g for element %d of sum %d, not %g", rank,
                          (double)recv[i + 2], i + 2, round, (double)sum);
    }
}

static const char *send_of(const host *h, int rank)
{
    const buffers *its = &h->all[rank];
    return (const char *)(h->is_in_place ? its->recv : its->send);
}

/* ---- threads ---------------------------------------------------------------------------------------- */

static void reduce_as_thread(void *state, int rank)
{
    host *h = state;
    for (int round = 0; round < ROUNDS; round++) {
        weft_error error = {0};
        fill(h, rank, round);
        if (weft_all_reduce(h->comms[rank], WEFT_SUM, WEFT_F32, send_of(h, rank), h->all[rank].recv,
                            h->n_floats, h->ends[rank].scratch, &error) != WEFT_OK)
            schedule_fail("rank %d: %s", rank, error.message);
        check_sums(h, rank, round);
    }
}

static void run_threads(void *state)
{
    host *h = state;
    weft_error error = {0};
    memset(h->ends, 0, (size_t)h->n_ranks * sizeof *h->ends);
    for (int r = 0; r < h->n_ranks; r++) {
        end *e = &h->ends[r];
        e->comm = (weft_comm){.rank = r,
                              .self = r,
                              .n_ranks = h->n_ranks,
                              .desk = &e->desk,
                              .numbers = e->numbers,
                              .channel = -1,
                              .engine = &weft_engine_threads};
        e->desk.n_spins = r % 2;
        e->desk.can_sleep = true;
        h->comms[r] = &e->comm;
    }
    if (weft_engine_threads.group_create(h->mesh, 1, h->comms, h->n_ranks, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    explored_each(h->n_ranks, reduce_as_thread, h);
    for (int r = 0; r < h->n_ranks; r++)
        weft_slots_destroy(h->comms[r]);
    weft_engine_threads.group_destroy(h->comms, h->n_ranks);
}

/* ---- processes -------------------------------------------------------------------------------------- */

static void reduce_as_process(void *state, int rank)
{
    host *h = state;
    end *e = &h->ends[rank];
    for (int round = 0; round < ROUNDS; round++) {
        weft_error error = {0};
        weft_waiter waiter = {"the others' buffers", WEFT_ANY, {0, 0}, NULL, 0, false};
        weft_reduction it = {.reduce = &e->reduce,
                             .comm = &e->comm,
                             .fingerprint = 5u + (uint64_t)round,
                             .send = send_of(h, rank),
                             .recv = (char *)h->all[rank].recv,
                             .scratch = e->scratch};
        fill(h, rank, round);
        (void)weft_shm_reduce_start(&it, &error);
        while (!weft_shm_reduce_poll(&it, &error))
            weft_waiter_nap(&waiter, 1);
        check_sums(h, rank, round);
    }
}

/* All of the same buffers, so that all have the same sums. */
static void reduce_many_as_process(void *state, int rank)
{
    host *h = state;
    end *e = &h->ends[rank];
    weft_error error = {0};
    weft_waiter waiter = {"the others' buffers", WEFT_ANY, {0, 0}, NULL, 0, false};
    weft_reduction all[AT_ONCE];
    fill(h, rank, 0);
    for (int k = 0; k < AT_ONCE; k++) {
        all[k] = (weft_reduction){.reduce = &e->reduce,
                                  .comm = &e->comm,
                                  .fingerprint = 5u + (uint64_t)k,
                                  .send = send_of(h, rank),
                                  .recv = (char *)h->all[rank].recv,
                                  .scratch = e->scratch};
        (void)weft_shm_reduce_start(&all[k], &error);
    }
    for (int k = 0; k < AT_ONCE; k++)
        while (!weft_shm_reduce_poll(&all[k], &error))
            weft_waiter_nap(&waiter, 1);
    check_sums(h, rank, 0);
}

/* A window and an area of its own onto the same memory. */
static void open_process(host *h, int rank)
{
    end *e = &h->ends[rank];
    for (int r = 0; r < h->n_ranks; r++) {
        e->memory[r] = (char *)&h->lines[r];
        e->buffers[r] = (char *)&h->all[r];
    }
    e->window = (weft_shm_reduce){.near = {.n = h->n_ranks, .self = rank, .memory = e->memory},
                                  .n_ranks = h->n_ranks,
                                  .self = rank};
    e->area.near = (weft_host_shm){.n = h->n_ranks,
                                   .self = rank,
                                   .peers = h->peers,
                                   .memory = e->buffers,
                                   .bytes = sizeof *h->all};
    e->areas = (weft_areas){.n = 1, .room = 1, .all = &e->area};
    e->comm = (weft_comm){.rank = rank,
                          .self = rank,
                          .n_ranks = h->n_ranks,
                          .areas = &e->areas,
                          .window = &e->window};
    weft_reduce_make(&e->reduce, h->n_ranks, rank, WEFT_SUM, WEFT_F32, h->n_floats, e->numbers);
}

static void run_ends(host *h, void (*reduce)(void *state, int rank))
{
    memset(h->lines, 0, (size_t)h->n_ranks * sizeof *h->lines);
    for (int r = 0; r < h->n_ranks; r++)
        open_process(h, r);
    explored_each(h->n_ranks, reduce, h);
}

static void run_processes(void *state)
{
    run_ends(state, reduce_as_process);
}

static void run_many(void *state)
{
    run_ends(state, reduce_many_as_process);
}

/* ---- cases ------------------------------------------------------------------------------------------ */

static void check_host(const char *what, void (*body)(void *), host h, schedule_options options)
{
    char name[80], text[8];
    weft_error error = {0};
    const size_t n = (size_t)h.n_ranks;
    snprintf(text, sizeof text, "d:%d", h.n_ranks);
    if (!CHECK_OK(weft_mesh_plan(text, &h.mesh, &error), error)) return;
    h.ends = aligned_alloc(64, n * sizeof *h.ends);
    h.all = aligned_alloc(64, n * sizeof *h.all);
    h.lines = aligned_alloc(64, n * sizeof *h.lines);
    memset(h.all, 0, n * sizeof *h.all);
    for (int r = 0; r < h.n_ranks; r++)
        h.peers[r] = r;
    snprintf(name, sizeof name, "%d %s, %d floats%s%s", h.n_ranks, what, h.n_floats,
             h.is_in_place ? " in place" : "", options.seed != 0 ? ", at random" : "");
    explore(name, body, &h, options);
    free(h.ends);
    free(h.all);
    free(h.lines);
    CHECK(weft_mesh_destroy(&h.mesh) == WEFT_OK);
}

static schedule_options all(int n_preemptions)
{
    return (schedule_options){.n_preemptions = n_preemptions, .most_runs = weft_test_cases(20000)};
}

static schedule_options random_ones(uint64_t seed)
{
    return (schedule_options){.seed = seed, .most_runs = weft_test_cases(3000)};
}

static void test_threads_add_up_where_it_lies(void)
{
    check_host("threads", run_threads, (host){2, 10240, false}, all(2));
    check_host("threads", run_threads, (host){3, 12288, true}, all(1));
    check_host("threads", run_threads, (host){3, 12288, false}, random_ones(11));
}

/* So many floats are shown where they lie, and not copied (shm_reduce.c). */
static void test_processes_add_up_where_it_lies(void)
{
    check_host("processes", run_processes, (host){2, 10240, false}, all(3));
    check_host("processes", run_processes, (host){3, 12288, true}, all(2));
    check_host("processes", run_processes, (host){3, 12288, false}, random_ones(12));
}

static void test_processes_show_many_at_once(void)
{
    check_host("processes, many at once", run_many, (host){2, 10240, false},
               (schedule_options){.n_preemptions = 1, .most_runs = weft_test_cases(500)});
    check_host("processes, many at once", run_many, (host){3, 12288, false},
               (schedule_options){.seed = 14, .most_runs = weft_test_cases(500)});
}

int main(void)
{
    RUN(test_threads_add_up_where_it_lies);
    RUN(test_processes_add_up_where_it_lies);
    RUN(test_processes_show_many_at_once);
    return weft_test_report();
}
