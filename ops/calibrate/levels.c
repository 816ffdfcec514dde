/* levels: where ranks meet, from the innermost: the threads of a process, or the processes of a host and those between hosts. */
#include "calibrating.h"

#include "weft/collectives.h"

/* How many ranks are to each core of this process; hosts, and bindings, may differ. */
static double ranks_of_core(const weft_mesh *mesh, const weft_world *world)
{
    const double cores = world->cores > 0
                             ? world->cores
                             : (double)weft_machine_info()->n_cores / world->n_host_processes;
    return weft_mesh_n_local(mesh) / cores;
}

/* What a group does at its level; then work beside it. */
static weft_status exchange_on(calibrating *c, const weft_world *world, weft_mesh *mesh,
                               weft_comms *comms, uint32_t axes, int level, bool beside)
{
    bool is_late = false, is_crowded = false;
    const double share = ranks_of_core(mesh, world);
    WEFT_TRY(weft_world_any(weft_calibrating_part(c) >= 1, &is_late, c->error));
    WEFT_TRY(weft_calibrate_exchanges(mesh, comms, axes, level, is_late, c->model, c->error));
    WEFT_TRY(weft_world_any(weft_calibrating_part(c) >= 1, &is_late, c->error));
    WEFT_TRY(weft_world_any(share > 1.01, &is_crowded, c->error)); /* collective: all or none */
    if (is_crowded)
        WEFT_TRY(weft_calibrate_crowded(mesh, comms, axes, level, share, c->model, c->error));
    if (!beside) return WEFT_OK;
    weft_calibrating_tell(c, "work beside exchanges");
    if (is_late) weft_calibrating_leave(c, "work beside exchanges");
    return weft_calibrate_beside(mesh, comms, axes, level, is_late, c->model, c->error);
}

static weft_status exchange_over(calibrating *c, const weft_world *world, const char *text,
                                 uint32_t axes, int level, bool beside)
{
    weft_mesh *mesh = NULL;
    weft_comms *comms = NULL;
    const uint32_t everybody[] = {axes, 3};
    weft_calibrating_tell(c, "exchanges");
    weft_status status = weft_mesh_create(world, text, &mesh, c->error);
    if (status == WEFT_OK) status = weft_comms_create(mesh, &comms, c->error);
    for (int i = 0; i < 2 && status == WEFT_OK; i++)
        status = weft_comms_prepare(comms, everybody[i], c->error);
    if (status == WEFT_OK) status = exchange_on(c, world, mesh, comms, axes, level, beside);
    weft_comms_destroy(&comms);
    (void)!weft_mesh_destroy(&mesh);
    return status;
}

/* Groups of n of `ranks`, all at once. */
static weft_status exchange_groups(calibrating *c, const weft_world *world, int ranks, int n,
                                   bool is_far, int level, bool beside)
{
    char text[48];
    snprintf(text, sizeof text, is_far ? "group:%d,other:%d" : "other:%d,group:%d",
             is_far ? n : ranks / n, is_far ? ranks / n : n);
    return exchange_over(c, world, text, is_far ? 1 : 2, level, beside);
}

/* Whether these are as many as have a core each, as far as numbers are measured; two in any case. */
static bool fills(int ranks, int cores)
{
    const bool is_last = 2 * ranks > cores || 2 * ranks > WEFT_CALIBRATE_RANKS;
    return is_last && (ranks <= cores || ranks == 2);
}

/* In one process: ranks as threads. Up to twice as many as there are cores, since programs may be run so. */
weft_status weft_calibrate_threads(calibrating *c, int cores)
{
    const weft_level level = {.name = "threads", .cpu = 1, .bytes_per_second = 1e9};
    WEFT_TRY(weft_machine_add_level(c->model, &level, c->error));
    for (int ranks = 2; ranks <= 2 * cores && ranks <= WEFT_CALIBRATE_RANKS; ranks *= 2)
        WEFT_TRY(exchange_groups(c, &c->alone, ranks, ranks, false, 0, fills(ranks, cores)));
    return WEFT_OK;
}

/* Processes as they were started: those of a host, and across hosts those that stand at the same place. */
weft_status weft_calibrate_processes(calibrating *c, const weft_world *world)
{
    const int n = world->n_processes, near = world->n_host_processes, hosts = n / near;
    const weft_level host = {.name = "host",
                             .ranks = hosts > 1 ? near : 0,
                             .cpu = 1,
                             .bytes_per_second = 1e9},
                     net = {.name = "net", .cpu = 0, .bytes_per_second = 1e8};
    if (hosts * near != n)
        return weft_fail(c->error, WEFT_USAGE,
                         "%d processes, of which %d are on this host: the same number on each host "
                         "is needed to measure links",
                         n, near);
    WEFT_TRY(weft_machine_add_level(c->model, &host, c->error));
    if (near > 1) WEFT_TRY(exchange_groups(c, world, n, near, false, 0, true));
    if (hosts == 1) return WEFT_OK;
    WEFT_TRY(weft_machine_add_level(c->model, &net, c->error));
    return exchange_groups(c, world, n, hosts, true, 1, true);
}
