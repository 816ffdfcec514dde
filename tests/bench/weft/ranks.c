/* ranks: weft_all_reduce in place, on what the mesh's ranks are: threads of this process, or processes. */
#include <stdlib.h>
#include <string.h>

#include "rows.h"

/* One rank's memory, and what its calls came to. */
typedef struct rank_end {
    float *data; /* [count] */
    void *scratch;
    weft_error error;
} rank_end;

typedef struct bench_group {
    weft_mesh *mesh;
    weft_comms *comms;
    char *memory;   /* of all local ranks: of the kind that the others see */
    rank_end *ends; /* [n_ranks] */
    int64_t count, calls;
    double start; /* rank r begins with start * (r + 1) everywhere */
} bench_group;

static int64_t room_of(const bench_group *g)
{
    return (g->count * 4 + 63) / 64 * 64;
}

static void take(void *argument, int rank)
{
    bench_group *g = argument;
    rank_end *end = &g->ends[rank];
    const int64_t bytes =
        weft_all_reduce_scratch(weft_comm_of(g->comms, rank, 1), WEFT_SUM, WEFT_F32, g->count);
    end->data = (float *)(void *)(g->memory + (rank - weft_mesh_first_local(g->mesh)) * room_of(g));
    end->scratch = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
    if (end->scratch == NULL) end->error.status = WEFT_MEMORY;
    memset(end->data, 0, (size_t)g->count * 4);
}

static void set(void *argument, int rank)
{
    bench_group *g = argument;
    for (int64_t i = 0; i < g->count; i++)
        g->ends[rank].data[i] = (float)(g->start * (rank + 1));
}

static void reduce(void *argument, int rank)
{
    bench_group *g = argument;
    rank_end *end = &g->ends[rank];
    weft_comm *comm = weft_comm_of(g->comms, rank, 1);
    for (int64_t i = 0; i < g->calls && end->error.status == WEFT_OK; i++)
        (void)!weft_all_reduce(comm, WEFT_SUM, WEFT_F32, end->data, end->data, g->count,
                               end->scratch, &end->error);
}

static weft_status open_group(bench *b, weft_error *error)
{
    bench_group *g = b->group = calloc(1, sizeof *b->group);
    if (g == NULL) return WEFT_MEMORY;
    WEFT_TRY(weft_mesh_create(&b->world, b->mesh_text, &b->mesh, error));
    g->count = b->row->sizes[0] / 4;
    g->ends = calloc((size_t)weft_mesh_n_ranks(b->mesh), sizeof *g->ends);
    if (g->ends == NULL) return WEFT_MEMORY;
    WEFT_TRY(weft_comms_create(b->mesh, &g->comms, error));
    WEFT_TRY(weft_comms_prepare(g->comms, 1, error));
    g->mesh = b->mesh;
    void *memory;
    WEFT_TRY(weft_comms_take(g->comms, weft_mesh_n_local(b->mesh) * room_of(g), &memory, error));
    g->memory = memory;
    weft_mesh_each(b->mesh, take, g);
    return g->ends[weft_mesh_first_local(b->mesh)].error.status;
}

static weft_status run_group(bench *b, int64_t calls, weft_error *error)
{
    bench_group *g = b->group;
    g->calls = calls;
    weft_mesh_each(b->mesh, reduce, g);
    const weft_error *first = &g->ends[weft_mesh_first_local(b->mesh)].error;
    if (first->status != WEFT_OK) *error = *first;
    return first->status;
}

/* Afterwards there are zeros: a sum in place of anything else soon is infinite. */
static weft_status look_at_group(bench *b, int64_t steps, double *numbers, int *n,
                                 weft_error *error)
{
    bench_group *g = b->group;
    g->start = 1.0;
    weft_mesh_each(b->mesh, set, g);
    WEFT_TRY(run_group(b, steps, error));
    bench_sums(g->ends[weft_mesh_first_local(b->mesh)].data, g->count, numbers);
    *n = 2;
    g->start = 0.0;
    weft_mesh_each(b->mesh, set, g);
    return WEFT_OK;
}

static void close_group(bench *b)
{
    bench_group *g = b->group;
    if (g == NULL) return;
    for (int r = 0; g->ends != NULL && r < weft_mesh_n_ranks(b->mesh); r++)
        free(g->ends[r].scratch);
    weft_comms_destroy(&g->comms);
    weft_mesh_destroy(&b->mesh);
    free(g->ends);
    free(g);
    b->group = NULL;
}

const bench_kind bench_all_reduce = {open_group, run_group, look_at_group, close_group};

const bench_row bench_rank_rows[] = {
    {"all_reduce_4KiB", &bench_all_reduce, NULL, {4096}},
    {"all_reduce_1MiB", &bench_all_reduce, NULL, {1 << 20}},
    {"all_reduce_4MiB", &bench_all_reduce, NULL, {4 << 20}},
    {"all_reduce_16MiB", &bench_all_reduce, NULL, {16 << 20}},
    {"all_reduce_64MiB", &bench_all_reduce, NULL, {64 << 20}},
    {0},
};
