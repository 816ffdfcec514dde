/* on_ranks.h: run a test on every rank of several meshes, on whatever this process was started
 * with.
 *
 * Alone: in-process ranks, 1 to 8 of them. Under mpirun: the world, as one axis and factored. The
 * same program.
 */
#ifndef WEFT_ON_RANKS_H
#define WEFT_ON_RANKS_H

#include <stdlib.h>

#include "test.h"
#include "weft/collectives.h"

typedef struct ranks {
    weft_mesh *mesh;
    weft_comms *comms;
} ranks;

/* Runs once for each local rank, on its thread. */
typedef void (*rank_test)(const ranks *all, int rank);

typedef struct rank_job {
    const ranks *all;
    rank_test test;
} rank_job;

static weft_world world_now;

static inline void run_rank_test(void *argument, int rank)
{
    const rank_job *job = argument;
    job->test(job->all, rank);
}

/* A mesh with the groups of every set of its axes. */
static inline bool open_ranks(const char *text, ranks *all)
{
    weft_error error = {0};
    *all = (ranks){0};
    weft_lanes_choose(world_now.n_processes > 1 ? 0 : 3);
    if (!CHECK_OK(weft_mesh_create(&world_now, text, &all->mesh, &error), error)) return false;
    if (!CHECK_OK(weft_comms_create(all->mesh, &all->comms, &error), error)) return false;
    for (uint32_t axes = 0; axes < 1u << weft_mesh_n_axes(all->mesh); axes++)
        if (!CHECK_OK(weft_comms_prepare(all->comms, axes, &error), error)) return false;
    return true;
}

static inline void close_ranks(ranks *all)
{
    weft_comms_destroy(&all->comms);
    weft_mesh_destroy(&all->mesh);
}

static inline void on_mesh(const char *text, rank_test test)
{
    ranks all;
    if (open_ranks(text, &all)) weft_mesh_each(all.mesh, run_rank_test, &(rank_job){&all, test});
    close_ranks(&all);
}

/* The meshes for this world; returns how many. */
enum { MAX_MESHES = 8 };
static inline int meshes_here(char texts[MAX_MESHES][48])
{
    static const char *const alone[] = {"data:1", "data:2",         "data:3",     "data:4",
                                        "data:8", "data:2,model:3", "a:2,b:2,c:2"};
    const int n = world_now.n_processes;
    int count = 0;
    if (n == 1) {
        for (; count < (int)(sizeof alone / sizeof *alone); count++)
            snprintf(texts[count], 48, "%s", alone[count]);
        return count;
    }
    snprintf(texts[count++], 48, "data:%d", n);
    for (int a = 2; a < n; a++)
        if (n % a == 0 && count < MAX_MESHES)
            snprintf(texts[count++], 48, "data:%d,model:%d", a, n / a);
    if (n == 8) snprintf(texts[count++], 48, "a:2,b:2,c:2");
    return count;
}

static inline void on_meshes(rank_test test)
{
    char texts[MAX_MESHES][48];
    const int n = meshes_here(texts);
    for (int i = 0; i < n; i++)
        on_mesh(texts[i], test);
}

/* All axes of the mesh. */
static inline uint32_t everybody(const ranks *all)
{
    return (1u << weft_mesh_n_axes(all->mesh)) - 1;
}

static inline bool open_world(void)
{
    weft_error error = {0};
    return CHECK_OK(weft_world_open(&world_now, &error), error);
}

/* Memory for a buffer that may be empty, filled with a value that no test expects. */
static inline void *dirty(int64_t bytes)
{
    const size_t room = ((size_t)bytes + 127) / 64 * 64;
    void *memory = aligned_alloc(64, room);
    if (memory == NULL) abort();
    memset(memory, 0xA5, room);
    return memory;
}

#endif
