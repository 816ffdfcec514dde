/* bench_mpi: MPI_Allreduce as the MPI library has it, in place: what weft_all_reduce is compared with. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

typedef struct group {
    int rank;
    float *data;
    int count;
} group;

static void close_row(void *state)
{
    group *g = state;
    free(g->data);
    g->data = NULL;
}

static const char *open_row(void *state, const char *row)
{
    static const struct {
        const char *name;
        size_t bytes;
    } rows[] = {{"all_reduce_4KiB", 4096},
                {"all_reduce_1MiB", 1 << 20},
                {"all_reduce_4MiB", 4 << 20},
                {"all_reduce_16MiB", 16 << 20},
                {"all_reduce_64MiB", 64 << 20}};
    group *g = state;
    close_row(g);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(row, rows[i].name) == 0) {
            g->count = (int)(rows[i].bytes / sizeof *g->data);
            g->data = aligned_alloc(64, rows[i].bytes);
            if (g->data == NULL) return "out of memory";
            memset(g->data, 0, rows[i].bytes);
            return NULL;
        }
    return "MPI has all_reduce only";
}

static const char *run(void *state, int64_t calls)
{
    group *g = state;
    for (int64_t i = 0; i < calls; i++)
        if (MPI_Allreduce(MPI_IN_PLACE, g->data, g->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) !=
            MPI_SUCCESS)
            return "MPI_Allreduce failed";
    return NULL;
}

static void set(group *g, float value)
{
    for (int i = 0; i < g->count; i++)
        g->data[i] = value;
}

static const char *look(void *state, int64_t steps, double *numbers, int *n)
{
    group *g = state;
    set(g, (float)(g->rank + 1));
    const char *wrong = run(g, steps);
    bench_sums(g->data, g->count, numbers);
    *n = 2;
    set(g, 0.0f); /* a sum in place of anything else soon is infinite */
    return wrong;
}

static void share(void *state, void *data, size_t bytes)
{
    (void)state;
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const char *about(void *state)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 16], version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    (void)state;
    MPI_Get_library_version(version, &length);
    snprintf(text, sizeof text, "{\"MPI\": \"%.*s\"}", (int)strcspn(version, ","), version);
    return text;
}

int main(int n, char **arguments)
{
    group g = {0};
    MPI_Init(&n, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    const int status =
        bench_serve(&(bench_worker){&g, about, open_row, run, look, close_row, share, g.rank == 0});
    MPI_Finalize();
    return status;
}
