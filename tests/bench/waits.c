/* waits: what it costs that threads wait for each other, on 1 to 32 lanes or ranks: a loop, a pass of items that
 * lanes share, a meeting, an all_reduce.
 *
 *     waits [TIMES]     default 2000
 *
 * Where threads outnumber cores a clock on the wall says how the system shares these out. So what counts is context
 * switches (a thread slept; or it yielded, or was put aside), of all threads together, and time on a processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "barrier.h"
#include "mesh_internal.h"
#include "weft/collectives.h"

enum { MOST = 32, PASSES = 4, COUNT = 1024 };

static int times;

typedef struct cost {
    double slept, yielded,
        us; /* switches, those who were put aside among the latter; microseconds on processors */
} cost;

static cost cost_now(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (cost){(double)used.ru_nvcsw, (double)used.ru_nivcsw,
                  1e6 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec)};
}

static void say(const char *what, int n, cost before, int n_done)
{
    const cost now = cost_now();
    printf("%-22s %3d   %8.2f %8.2f %10.1f\n", what, n, (now.slept - before.slept) / n_done,
           (now.yielded - before.yielded) / n_done, (now.us - before.us) / n_done);
}

/* ---- lanes -------------------------------------------------------------------------------------- */

static void no_work(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)argument, (void)begin, (void)end, (void)lane;
}

static void share_out(void *stream, int64_t begin, int64_t end, int lane)
{
    (void)begin, (void)end;
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t first, last;
        if (pass > 0) weft_stream_again(stream, lane);
        while (weft_stream_take(stream, lane, 2, &first, &last))
            continue;
    }
}

static void measure_lanes(int n)
{
    weft_error error = {0};
    weft_stream *stream = NULL;
    if (weft_stream_create_cpu(n, &stream, &error) != WEFT_OK) exit(2);
    cost before = cost_now();
    for (int i = 0; i < times; i++)
        weft_parallel(stream, n, 1, no_work, NULL);
    say("loop, lanes", n, before, times);
    before = cost_now();
    for (int i = 0; i < times; i++)
        weft_parallel_whole(stream, 4 * n, 1, share_out, stream);
    say("pass, lanes", n, before, times * PASSES);
    weft_stream_destroy_cpu(&stream);
}

/* ---- ranks -------------------------------------------------------------------------------------- */

typedef struct ranks {
    weft_barrier meeting;
    weft_comms *comms;
    int n;
} ranks;

static void meet(void *argument, int rank)
{
    ranks *all = argument;
    (void)rank;
    weft_barrier_open(&all->meeting, all->n, all->n <= weft_machine_info()->host_cores);
    for (int i = 0; i < times; i++)
        (void)weft_barrier_wait(&all->meeting);
}

static void reduce(void *argument, int rank)
{
    ranks *all = argument;
    static float data[MOST][COUNT];
    weft_error error = {0};
    weft_comm *comm = weft_comm_of(all->comms, rank, 1);
    void *scratch =
        calloc(1, (size_t)weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F32, COUNT) + 64);
    for (int i = 0; i < times; i++)
        (void)!weft_all_reduce(comm, WEFT_SUM, WEFT_F32, data[rank], data[rank], COUNT,
                               (char *)scratch + (64 - (uintptr_t)scratch % 64) % 64, &error);
    free(scratch);
}

static void measure_ranks(int n)
{
    static const weft_world alone = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    static ranks all;
    char text[16];
    all = (ranks){.n = n};
    snprintf(text, sizeof text, "d:%d", n);
    weft_lanes_choose(1);
    if (weft_mesh_create(&alone, text, &mesh, &error) != WEFT_OK ||
        weft_comms_create(mesh, &all.comms, &error) != WEFT_OK ||
        weft_comms_prepare(all.comms, 1, &error) != WEFT_OK)
        exit(2);
    cost before = cost_now();
    weft_mesh_each(mesh, meet, &all);
    say("meeting, ranks", n, before, times);
    before = cost_now();
    weft_mesh_each(mesh, reduce, &all);
    say("all_reduce 4 KiB, ranks", n, before, times);
    (void)weft_comms_destroy(&all.comms);
    (void)weft_mesh_destroy(&mesh);
}

int main(int argc, char **argv)
{
    times = argc > 1 ? atoi(argv[1]) : 2000;
    printf("%d cores; of one:              slept  yielded   us of processors\n",
           weft_machine_info()->n_cores);
    for (int n = 1; n <= MOST; n *= 2)
        measure_lanes(n);
    for (int n = 2; n <= MOST; n *= 2)
        measure_ranks(n);
    return 0;
}
