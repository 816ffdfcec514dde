/* all_reduce: microseconds of a sum over ranks at several sizes, beside a memcpy of the same bytes.
 *
 * Alone over 2 in-process ranks; under mpirun over the whole world.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "weft/collectives.h"

enum { REPEATS = 30 };

/* One measurement, shared by the ranks of this process. */
typedef struct bench_job {
    weft_comms *comms;
    int64_t count;
    double seconds; /* the first local rank's best */
    int first;
    weft_error error; /* of the first local rank */
} bench_job;

static void reduce_on_rank(void *argument, int rank)
{
    bench_job *job = argument;
    weft_comm *comm = weft_comm_of(job->comms, rank, 1);
    weft_error error = {0};
    const size_t scratch_bytes =
        (size_t)weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F32, job->count);
    float *data = calloc((size_t)job->count, sizeof *data);
    void *scratch = aligned_alloc(64, (scratch_bytes + 127) / 64 * 64);
    double best = 1e30;
    for (int i = 0; i < REPEATS && data != NULL && scratch != NULL && error.status == WEFT_OK;
         i++) {
        const double begin = bench_now();
        const weft_status status =
            weft_all_reduce(comm, WEFT_SUM, WEFT_F32, data, data, job->count, scratch, &error);
        const double took = bench_now() - begin;
        if (status == WEFT_OK && took < best) best = took;
    }
    if (rank == job->first) job->seconds = best, job->error = error;
    free(data);
    free(scratch);
}

static double time_memcpy(size_t bytes)
{
    char *from = calloc(bytes, 1), *to = calloc(bytes, 1);
    double best = 1e30;
    for (int i = 0; i < REPEATS && from != NULL && to != NULL; i++) {
        from[(size_t)i % bytes] = (char)i;
        const double begin = bench_now();
        memcpy(to, from, bytes);
        const double took = bench_now() - begin;
        if (took < best) best = took;
    }
    free(from);
    free(to);
    return best;
}

static weft_status measure(weft_mesh *mesh, weft_comms *comms, weft_error *error)
{
    const bool prints = weft_mesh_is_root(mesh);
    if (prints)
        printf("%d ranks, %s\n%12s %12s %12s %12s\n", weft_mesh_n_ranks(mesh),
               weft_comms_engine(comms), "bytes", "us", "GB/s", "memcpy us");
    for (int64_t count = 16; count <= (int64_t)1 << 22; count *= 8) {
        bench_job job = {.comms = comms, .count = count, .first = weft_mesh_first_local(mesh)};
        weft_mesh_each(mesh, reduce_on_rank, &job);
        if (job.error.status != WEFT_OK)
            return weft_fail(error, job.error.status, "%s", job.error.message);
        const double bytes = 4.0 * (double)count;
        if (prints)
            printf("%12.0f %12.1f %12.2f %12.1f\n", bytes, 1e6 * job.seconds,
                   1e-9 * bytes / job.seconds, 1e6 * time_memcpy((size_t)bytes));
    }
    return WEFT_OK;
}

int main(void)
{
    weft_error error = {0};
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK)
        status = weft_mesh_create(&world, world.n_processes > 1 ? NULL : "data:2", &mesh, &error);
    if (status == WEFT_OK) status = weft_comms_create(mesh, &comms, &error);
    if (status == WEFT_OK) status = weft_comms_prepare(comms, 1, &error);
    if (status == WEFT_OK) status = measure(mesh, comms, &error);
    weft_comms_destroy(&comms);
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return bench_end("all_reduce", status, &error);
}
