/* mesh: named axes, ranks and their coordinates, groups; and the local ranks, each a thread with a
 * stream. */
#include "mesh_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More ranks than this in one process is a mesh meant for many machines: refuse before the system
 * does. */
enum { MAX_LOCAL = 4096 };

static _Atomic int
    cores_limit; /* 0: what the machine has; a setting of the process, as the machine is */

void weft_mesh_limit_cores(int cores_per_rank)
{
    atomic_store(&cores_limit, cores_per_rank > 0 ? cores_per_rank : 0);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

weft_status weft_mesh_plan(const char *text, weft_mesh **mesh, weft_error *error)
{
    weft_mesh *m = *mesh = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    weft_status status = WEFT_OK;
    m->cores_per_rank = 1;
    m->arena = weft_arena_create();
    if (m->arena == NULL) status = weft_fail_memory(error, sizeof *m);
    if (status == WEFT_OK) status = weft_mesh_parse(m, is_given(text) ? text : "data:1", error);
    if (status != WEFT_OK) weft_mesh_destroy(mesh);
    return status;
}

static weft_status place_in_world(const weft_world *world, weft_mesh *mesh, weft_error *error)
{
    bool is_alone = world->n_processes == 1;
    if (!is_alone && mesh->n_ranks != world->n_processes)
        return weft_fail(
            error, WEFT_USAGE,
            "mesh %.200s has %d rank%s but %s started %d processes; start %d, or change "
            "the mesh",
            mesh->text, mesh->n_ranks, mesh->n_ranks == 1 ? "" : "s", world->launcher,
            world->n_processes, mesh->n_ranks);
    if (is_alone && mesh->n_ranks > MAX_LOCAL)
        return weft_fail(
            error, WEFT_USAGE,
            "mesh %.200s has %d ranks, and one process runs at most %d; start one process a "
            "rank with mpirun or srun, or only plan (weft_mesh_plan)",
            mesh->text, mesh->n_ranks, MAX_LOCAL);
    mesh->n_local = is_alone ? mesh->n_ranks : 1;
    mesh->first_local = is_alone ? 0 : world->process;
    return WEFT_OK;
}

/* The threads of a mesh that has its axes. On failure the mesh is left for weft_mesh_destroy. */
static weft_status start_ranks(const weft_world *world, weft_mesh *mesh, weft_error *error)
{
    int cores = weft_topology_cores(world->n_host_processes), limit = atomic_load(&cores_limit);
    mesh->cores_per_rank = cores > mesh->n_local ? cores / mesh->n_local : 1;
    if (limit > 0) mesh->cores_per_rank = limit;
    weft_patience patience = weft_patience_for(mesh->n_local * mesh->cores_per_rank <= cores);
    WEFT_TRY(weft_team_create(mesh->n_local, patience, &mesh->team, error));
    mesh->streams = calloc((size_t)mesh->n_local, sizeof *mesh->streams);
    if (mesh->streams == NULL) return weft_fail_memory(error, (size_t)mesh->n_local);
    for (int i = 0; i < mesh->n_local; i++)
        WEFT_TRY(
            weft_devices[WEFT_CPU]->stream_create(mesh->cores_per_rank, &mesh->streams[i], error));
    return WEFT_OK;
}

weft_status weft_mesh_create(const weft_world *world, const char *text, weft_mesh **mesh,
                             weft_error *error)
{
    char standard[32];
    snprintf(standard, sizeof standard, "data:%d", world->n_processes);
    WEFT_TRY(weft_mesh_plan(is_given(text) ? text : standard, mesh, error));
    weft_status status = place_in_world(world, *mesh, error);
    if (status == WEFT_OK) status = start_ranks(world, *mesh, error);
    if (status != WEFT_OK) weft_mesh_destroy(mesh);
    return status;
}

void weft_mesh_destroy(weft_mesh **mesh)
{
    weft_mesh *m = *mesh;
    if (m == NULL) return;
    for (int i = 0; m->streams != NULL && i < m->n_local; i++)
        weft_devices[WEFT_CPU]->stream_destroy(&m->streams[i]);
    free(m->streams);
    weft_team_destroy(&m->team);
    weft_arena_destroy(&m->arena);
    free(m);
    *mesh = NULL;
}

/* ---- what it is ------------------------------------------------------------------------------ */

const char *weft_mesh_text(const weft_mesh *mesh)
{
    return mesh->text;
}

int weft_mesh_n_axes(const weft_mesh *mesh)
{
    return mesh->n_axes;
}

const char *weft_mesh_axis_name(const weft_mesh *mesh, int axis)
{
    return mesh->axes[axis].name;
}

int weft_mesh_axis_size(const weft_mesh *mesh, int axis)
{
    return mesh->axes[axis].size;
}

int weft_mesh_find_axis(const weft_mesh *mesh, const char *name)
{
    for (int a = 0; a < mesh->n_axes; a++)
        if (strcmp(mesh->axes[a].name, name) == 0) return a;
    return -1;
}

int weft_mesh_n_ranks(const weft_mesh *mesh)
{
    return mesh->n_ranks;
}

int weft_mesh_n_local(const weft_mesh *mesh)
{
    return mesh->n_local;
}

int weft_mesh_first_local(const weft_mesh *mesh)
{
    return mesh->first_local;
}

bool weft_mesh_is_root(const weft_mesh *mesh)
{
    return mesh->first_local == 0;
}

weft_stream *weft_mesh_stream(weft_mesh *mesh, int rank)
{
    return mesh->streams[rank - mesh->first_local];
}

int weft_mesh_cores_per_rank(const weft_mesh *mesh)
{
    return mesh->cores_per_rank;
}

/* ---- ranks, coordinates, groups -------------------------------------------------------------- */

static int coordinate(const weft_mesh *mesh, int rank, int axis)
{
    return rank / mesh->axes[axis].stride % mesh->axes[axis].size;
}

void weft_mesh_coordinates(const weft_mesh *mesh, int rank, int *coordinates)
{
    for (int a = 0; a < mesh->n_axes; a++)
        coordinates[a] = coordinate(mesh, rank, a);
}

int weft_mesh_rank(const weft_mesh *mesh, const int *coordinates)
{
    int rank = 0;
    for (int a = 0; a < mesh->n_axes; a++)
        rank += coordinates[a] * mesh->axes[a].stride;
    return rank;
}

int weft_mesh_group(const weft_mesh *mesh, uint32_t axes, int rank, int *ranks, int *self)
{
    int first = rank, place = 0, n = 1;
    for (int a = 0; a < mesh->n_axes; a++) {
        if (!(axes >> a & 1)) continue;
        int at = coordinate(mesh, rank, a);
        first -= at * mesh->axes[a].stride;
        place = place * mesh->axes[a].size + at;
        n *= mesh->axes[a].size;
    }
    if (self != NULL) *self = place;
    for (int i = 0; ranks != NULL && i < n; i++) {
        int left = i;
        ranks[i] = first;
        for (int a = mesh->n_axes - 1; a >= 0; a--) {
            if (!(axes >> a & 1)) continue;
            ranks[i] += left % mesh->axes[a].size * mesh->axes[a].stride;
            left /= mesh->axes[a].size;
        }
    }
    return n;
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct each_job {
    weft_rank_body body;
    void *argument;
    int first;
} each_job;

static void run_rank(void *argument, int member)
{
    const each_job *job = argument;
    job->body(job->argument, job->first + member);
}

void weft_mesh_each(weft_mesh *mesh, weft_rank_body body, void *argument)
{
    if (mesh->n_local == 0) return; /* a plan */
    each_job job = {.body = body, .argument = argument, .first = mesh->first_local};
    weft_team_run(mesh->team, mesh->n_local, run_rank, &job);
}
