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
    lanes_chosen; /* 0: a share of the cores; a setting of the process, as the machine is */

void weft_lanes_choose(int lanes)
{
    const int most = lanes < WEFT_MAX_LANES ? lanes : WEFT_MAX_LANES;
    weft_sync_store(&lanes_chosen, most > 0 ? most : 0);
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
    m->n_lanes = 1;
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

/* What this process has of its host, as all there have told (collectives/mpi_world.c), or as it looks from here. */
static weft_share find_share(const weft_world *world)
{
    const weft_told *own = weft_topology_told();
    if (world->cores > 0)
        return (weft_share){.cores = world->cores,
                            .n_sharing = world->n_sharing,
                            .n_used = world->n_used,
                            .host_cores = own->host_cores};
    const weft_share alone = weft_share_told(own, 1, 0);
    return world->n_host_processes > 1 || !(alone.cores > 0)
               ? weft_share_guessed(own, world->n_host_processes)
               : alone;
}

/* Lanes of the local ranks. */
static void set_lanes(const weft_world *world, weft_mesh *mesh)
{
    const int chosen = weft_sync_load(&lanes_chosen);
    const weft_share share = find_share(world);
    mesh->n_lanes = chosen > 0 ? chosen : weft_share_lanes(share.cores, mesh->n_local);
    mesh->crowd = (weft_crowd){
        .n_processes = world->n_host_processes > 0 ? world->n_host_processes : 1,
        .n_ranks = mesh->n_local,
        .n_lanes = mesh->n_lanes,
        .is_launched = world->launcher != NULL && strcmp(world->launcher, "alone") != 0,
        .share = share};
}

static weft_status check_threads(const weft_mesh *mesh, weft_error *error)
{
    const weft_machine *machine = weft_machine_info();
    const int n = mesh->crowd.n_processes;
    const int64_t threads = (int64_t)n * mesh->n_local * mesh->n_lanes;
    char here[64] = "";
    if (machine->threads_limit == 0 || threads <= machine->threads_limit) return WEFT_OK;
    if (n > 1) snprintf(here, sizeof here, ", of %d processes on this host,", n);
    return weft_fail(
        error, WEFT_USAGE,
        "mesh %.160s with %d lane%s a rank%s is %lld threads, and the system allows %lld (%s); "
        "take fewer lanes a rank (weft_lanes_choose), or raise that limit",
        mesh->text, mesh->n_lanes, mesh->n_lanes == 1 ? "" : "s", here, (long long)threads,
        (long long)machine->threads_limit, machine->threads_limit_name);
}

/* The lanes of a local rank. */
static weft_status start_lanes(weft_mesh *mesh, int i, weft_error *error)
{
    weft_error why = {.rank = -1};
    const weft_device *device = weft_devices[mesh->device];
    const weft_status status = device->stream_create(mesh->n_lanes, &mesh->streams[i], &why);
    if (status == WEFT_OK) return WEFT_OK;
    if (status != WEFT_MEMORY || mesh->n_lanes == 1)
        return weft_fail(error, status, "%s", why.message);
    return weft_fail(
        error, status,
        "the %d lanes of rank %d: %s; fewer lanes a rank (weft_lanes_choose) need less",
        mesh->n_lanes, mesh->first_local + i, why.message);
}

/* The threads of a mesh that has its axes. On failure the mesh is left for weft_mesh_destroy. */
static weft_status start_ranks(const weft_world *world, weft_mesh *mesh, weft_error *error)
{
    set_lanes(world, mesh);
    WEFT_TRY(check_threads(mesh, error));
    const int n_threads = mesh->n_local * mesh->n_lanes;
    WEFT_TRY(weft_blas_reserve(n_threads, error));
    const bool is_crowded = n_threads > mesh->crowd.share.cores + 1e-6;
    weft_lanes_crowd(is_crowded);
    WEFT_TRY(weft_team_create(mesh->n_local, weft_patience_for(!is_crowded), &mesh->team, error));
    mesh->streams = calloc((size_t)mesh->n_local, sizeof *mesh->streams);
    if (mesh->streams == NULL) return weft_fail_memory(error, (size_t)mesh->n_local);
    const weft_device *device = weft_devices[mesh->device];
    for (int i = 0; i < mesh->n_local; i++) {
        WEFT_TRY(start_lanes(mesh, i, error));
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

int weft_mesh_lanes(const weft_mesh *mesh)
{
    return mesh != NULL ? mesh->n_lanes : 0;
}

void weft_mesh_crowding(const weft_mesh *mesh, char *text, size_t room)
{
    if (text == NULL || room == 0) return;
    text[0] = '\0';
    if (weft_mesh_n_local(mesh) > 0) weft_crowd_text(&mesh->crowd, text, room);
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
