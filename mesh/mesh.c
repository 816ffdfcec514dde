/* mesh: named axes, ranks and their coordinates, groups; and the local ranks, each a thread with a
 * stream. */
#include "devices.h"
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
    const int most = 1024; /* a thread each, with a stack each */
    weft_sync_store(&cores_limit, cores_per_rank < 0      ? 0
                                  : cores_per_rank < most ? cores_per_rank
                                                          : most);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

weft_status weft_mesh_plan(const char *text, weft_mesh **mesh, weft_error *error)
{
    WEFT_GIVEN(mesh, error);
    weft_mesh *m = *mesh = calloc(1, sizeof *m);
    if (m == NULL) return weft_fail_memory(error, sizeof *m);
    weft_status status = WEFT_OK;
    m->cores_per_rank = 1;
    m->device = weft_device_in_use();
    m->arena = weft_arena_create();
    if (m->arena == NULL) status = weft_fail_memory(error, sizeof *m);
    if (status == WEFT_OK) status = weft_mesh_parse(m, is_given(text) ? text : "data:1", error);
    if (status != WEFT_OK) (void)weft_mesh_destroy(mesh);
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
            mesh->text, mesh->n_ranks, mesh->n_ranks == 1 ? "" : "s",
            world->launcher != NULL ? world->launcher : "the launcher", world->n_processes,
            mesh->n_ranks);
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
    const int n_near = world->n_host_processes > 0 ? world->n_host_processes : 1;
    int cores = weft_topology_cores(n_near), limit = weft_sync_load(&cores_limit);
    mesh->cores_per_rank = cores > mesh->n_local ? cores / mesh->n_local : 1;
    if (limit > 0) mesh->cores_per_rank = limit;
    WEFT_TRY(weft_blas_reserve(mesh->n_local * mesh->cores_per_rank, error));
    weft_patience patience = weft_patience_for(mesh->n_local * mesh->cores_per_rank <= cores);
    WEFT_TRY(weft_team_create(mesh->n_local, patience, &mesh->team, error));
    mesh->streams = calloc((size_t)mesh->n_local, sizeof *mesh->streams);
    if (mesh->streams == NULL) return weft_fail_memory(error, (size_t)mesh->n_local);
    const weft_device *device = weft_devices[mesh->device];
    for (int i = 0; i < mesh->n_local; i++) {
        WEFT_TRY(device->stream_create(mesh->cores_per_rank, &mesh->streams[i], error));
        if (device->seat != NULL)
            WEFT_TRY(device->seat(mesh->streams[i], world->host_process + i, error));
    }
    return WEFT_OK;
}

weft_status weft_mesh_create(const weft_world *world, const char *text, weft_mesh **mesh,
                             weft_error *error)
{
    WEFT_GIVEN(mesh, error);
    *mesh = NULL;
    WEFT_GIVEN(world, error);
    WEFT_GIVEN_RANGE(world->n_processes, 1, WEFT_MAX_RANKS, error);
    WEFT_GIVEN_RANGE(world->process, 0, world->n_processes - 1, error);
    char standard[32];
    snprintf(standard, sizeof standard, "data:%d", world->n_processes);
    WEFT_TRY(weft_mesh_plan(is_given(text) ? text : standard, mesh, error));
    weft_status status = place_in_world(world, *mesh, error);
    if (status == WEFT_OK) status = start_ranks(world, *mesh, error);
    if (status != WEFT_OK) (void)weft_mesh_destroy(mesh);
    return status;
}

weft_status weft_mesh_destroy(weft_mesh **mesh)
{
    weft_mesh *m = mesh != NULL ? *mesh : NULL;
    if (m == NULL) return WEFT_OK;
    if (weft_sync_load(&m->n_users) > 0) return WEFT_USAGE;
    for (int i = 0; m->streams != NULL && i < m->n_local; i++)
        weft_devices[m->device]->stream_destroy(&m->streams[i]);
    free(m->streams);
    weft_team_destroy(&m->team);
    weft_arena_destroy(&m->arena);
    free(m);
    *mesh = NULL;
    return WEFT_OK;
}

void weft_mesh_keep(weft_mesh *mesh)
{
    if (mesh != NULL) weft_sync_add(&mesh->n_users, 1);
}

void weft_mesh_release(weft_mesh *mesh)
{
    if (mesh != NULL && weft_sync_load(&mesh->n_users) > 0) weft_sync_sub(&mesh->n_users, 1);
}

/* ---- what it is; of no mesh, or of what it has not: 0, "", -1 or NULL ------------------------------------------------------------------------------ */

static bool has_axis(const weft_mesh *mesh, int axis)
{
    return axis >= 0 && axis < weft_mesh_n_axes(mesh);
}

static bool has_rank(const weft_mesh *mesh, int rank)
{
    return rank >= 0 && rank < weft_mesh_n_ranks(mesh);
}

const char *weft_mesh_text(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->text : "";
}

int weft_mesh_n_axes(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->n_axes : 0;
}

const char *weft_mesh_axis_name(const weft_mesh *mesh, int axis)
{
    return has_axis(mesh, axis) ? mesh->axes[axis].name : "";
}

int weft_mesh_axis_size(const weft_mesh *mesh, int axis)
{
    return has_axis(mesh, axis) ? mesh->axes[axis].size : 0;
}

int weft_mesh_find_axis(const weft_mesh *mesh, const char *name)
{
    for (int a = 0; name != NULL && a < weft_mesh_n_axes(mesh); a++)
        if (strcmp(mesh->axes[a].name, name) == 0) return a;
    return -1;
}

int weft_mesh_n_ranks(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->n_ranks : 0;
}

int weft_mesh_n_local(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->n_local : 0;
}

int weft_mesh_first_local(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->first_local : 0;
}

bool weft_mesh_is_root(const weft_mesh *mesh)
{
    return mesh != NULL && mesh->first_local == 0;
}

weft_stream *weft_mesh_stream(weft_mesh *mesh, int rank)
{
    const int64_t at = (int64_t)rank - weft_mesh_first_local(mesh);
    return at >= 0 && at < weft_mesh_n_local(mesh) ? mesh->streams[at] : NULL;
}

weft_device_kind weft_mesh_device(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->device : WEFT_CPU;
}

int weft_mesh_cores_per_rank(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->cores_per_rank : 0;
}

/* ---- ranks, coordinates, groups -------------------------------------------------------------- */

static int coordinate(const weft_mesh *mesh, int rank, int axis)
{
    return rank / mesh->axes[axis].stride % mesh->axes[axis].size;
}

void weft_mesh_coordinates(const weft_mesh *mesh, int rank, int *coordinates)
{
    for (int a = 0; coordinates != NULL && a < weft_mesh_n_axes(mesh); a++)
        coordinates[a] = has_rank(mesh, rank) ? coordinate(mesh, rank, a) : 0;
}

int weft_mesh_rank(const weft_mesh *mesh, const int *coordinates)
{
    int rank = 0;
    if (coordinates == NULL) return -1;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (coordinates[a] < 0 || coordinates[a] >= mesh->axes[a].size) return -1;
        rank += coordinates[a] * mesh->axes[a].stride;
    }
    return mesh != NULL ? rank : -1;
}

int weft_mesh_group(const weft_mesh *mesh, uint32_t axes, int rank, int *ranks, int *self)
{
    int first = rank, place = 0, n = 1;
    if (self != NULL) *self = 0;
    if (!has_rank(mesh, rank)) return 0;
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
    if (body == NULL || weft_mesh_n_local(mesh) == 0) return; /* nothing to run, or a plan */
    each_job job = {.body = body, .argument = argument, .first = mesh->first_local};
    weft_team_run(mesh->team, mesh->n_local, run_rank, &job);
}
