/* groups: the groups of a mesh for the local ranks: an end for each, on the engine that carries the mesh and on those that it
 * stands on.
 */
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"
#include "watch.h"
#include "world.h"

/* Whether all ranks of a mesh are in this process. */
static bool is_here(const weft_mesh *mesh)
{
    return weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh);
}

/* All ends of a group on one engine, and those on the engine that it stands on. */
typedef struct level {
    const weft_engine *engine;
    weft_comm *ends;  /* [n_local] */
    weft_comm **list; /* [n_local]: they, as engines are given them */
    struct level *below;
    bool is_started; /* the engine has been given the ends, and may have put something there */
} level;

struct weft_comms {
    weft_mesh *mesh;
    const weft_engine *engine;
    weft_desk *desks; /* [n_local] */
    weft_areas areas;
    level *groups[1 << WEFT_MAX_AXES]; /* by set of axes; NULL while not prepared */
};

/* ---- create and destroy ---------------------------------------------------------------------- */

/* A rank sleeps if whoever brings something on for it, at the bottom of what carries it, wakes it. */
static void prepare_desks(const weft_comms *comms)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    const int n_near = is_here(comms->mesh) ? n_local : weft_world_n_near();
    for (int i = 0; i < n_local; i++)
        weft_desk_open(&comms->desks[i], comms->engine->wakes, n_near);
}

weft_status weft_comms_create(weft_mesh *mesh, weft_comms **comms, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    *comms = NULL;
    WEFT_GIVEN(mesh, error);
    const weft_engine *engine = weft_engine_for(mesh, error);
    if (engine == NULL) return WEFT_USAGE;
    const size_t desks_bytes = (size_t)weft_mesh_n_local(mesh) * sizeof(weft_desk);
    weft_comms *c = calloc(1, sizeof *c);
    if (c != NULL) c->desks = aligned_alloc(_Alignof(weft_desk), desks_bytes);
    if (c == NULL || c->desks == NULL) {
        free(c);
        return weft_fail_memory(error, desks_bytes);
    }
    memset(c->desks, 0, desks_bytes);
    if (is_here(mesh)) weft_watch_begin(0, 1, NULL); /* else the world has */
    c->mesh = mesh;
    c->areas.device = weft_devices[weft_mesh_device(mesh)];
    weft_mesh_keep(mesh);
    c->engine = engine;
    prepare_desks(c);
    *comms = c;
    return WEFT_OK;
}

/* What stands above goes first: it gives back what it has of the one below. */
static void level_destroy(level *l, int n_local)
{
    if (l == NULL) return;
    for (int i = 0; l->ends != NULL && i < n_local; i++) {
        weft_slots_destroy(&l->ends[i]);
        free(l->ends[i].numbers);
    }
    if (l->is_started && l->engine->group_destroy != NULL)
        l->engine->group_destroy(l->list, n_local);
    level_destroy(l->below, n_local);
    free(l->list);
    free(l->ends);
    free(l);
}

void weft_comms_destroy(weft_comms **comms)
{
    weft_comms *c = comms != NULL ? *comms : NULL;
    if (c == NULL) return;
    for (int axes = 0; axes < 1 << WEFT_MAX_AXES; axes++)
        level_destroy(c->groups[axes], weft_mesh_n_local(c->mesh));
    weft_areas_free(&c->areas);
    weft_mesh_release(c->mesh);
    free(c->desks);
    free(c);
    *comms = NULL;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* "data+model" */
static void name_axes(const weft_mesh *mesh, uint32_t axes, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int a = 0; a < weft_mesh_n_axes(mesh) && used < bytes; a++)
        if (axes >> a & 1)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? "+" : "",
                                     weft_mesh_axis_name(mesh, a));
}

/* The lowest of the ranks that differ from this one along some axes only. */
static int lowest_rank(const weft_mesh *mesh, uint32_t axes, int rank)
{
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(mesh, rank, coordinates);
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++)
        if (axes >> a & 1) coordinates[a] = 0;
    return weft_mesh_rank(mesh, coordinates);
}

/* Where the end's calls are recorded. Past the most that are kept, not to be recorded is no failure;
 * out of memory it is one: the watch would take a rank that is recorded later for one that made
 * other calls. */
static weft_status end_record(const weft_comms *comms, uint32_t axes, weft_comm *end,
                              weft_error *error)
{
    char name[WEFT_AXES_BYTES];
    const char *mesh = weft_mesh_text(comms->mesh);
    end->channel = -1;
    end->recorder = weft_recorder_of(end->rank);
    if (end->recorder == NULL && weft_n_recorders() < WEFT_MOST_RECORDERS)
        return weft_fail_memory(error, sizeof *end->recorder);
    if (end->recorder == NULL) return WEFT_OK;
    name_axes(comms->mesh, axes, name, sizeof name);
    const uint64_t key = weft_digest(weft_digest(0, mesh, strlen(mesh)), &axes, sizeof axes);
    const int lowest = lowest_rank(comms->mesh, axes, end->rank);
    end->channel = weft_recorder_channel(end->recorder, key, lowest, end->n_ranks, name);
    return WEFT_OK;
}

static weft_status end_fill(const weft_comms *comms, uint32_t axes, int rank, weft_comm *end,
                            weft_error *error)
{
    end->rank = rank;
    end->areas = &comms->areas;
    end->n_ranks = weft_mesh_group(comms->mesh, axes, rank, NULL, &end->self);
    end->desk = &comms->desks[rank - weft_mesh_first_local(comms->mesh)];
    const size_t bytes = WEFT_REDUCE_NUMBERS * (size_t)end->n_ranks * sizeof *end->numbers;
    end->numbers = malloc(bytes);
    if (end->numbers == NULL) return weft_fail_memory(error, bytes);
    return end_record(comms, axes, end, error);
}

static weft_status level_fill(const weft_comms *comms, uint32_t axes, level *l, level *above,
                              weft_error *error)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    const size_t bytes = (size_t)n_local * sizeof(weft_comm);
    l->ends = aligned_alloc(_Alignof(weft_comm), bytes);
    if (l->ends == NULL) return weft_fail_memory(error, bytes);
    memset(l->ends, 0, bytes);
    l->list = calloc((size_t)n_local, sizeof *l->list);
    if (l->list == NULL) return weft_fail_memory(error, (size_t)n_local * sizeof *l->list);
    for (int i = 0; i < n_local; i++) {
        l->list[i] = &l->ends[i];
        l->ends[i].engine = l->engine;
        l->ends[i].above = above != NULL ? &above->ends[i] : NULL;
        if (above != NULL) above->ends[i].below = &l->ends[i];
        WEFT_TRY(end_fill(comms, axes, weft_mesh_first_local(comms->mesh) + i, &l->ends[i], error));
    }
    return WEFT_OK;
}

/* The ends of a group on an engine and on all that it stands on, without what is the engines'. */
static weft_status level_create(const weft_comms *comms, const weft_engine *engine, uint32_t axes,
                                level *above, level **made, weft_error *error)
{
    weft_error why = WEFT_NO_ERROR;
    level *l = *made = calloc(1, sizeof *l);
    if (l == NULL) return weft_fail_memory(error, sizeof *l);
    l->engine = engine;
    WEFT_TRY(level_fill(comms, axes, l, above, error));
    const weft_engine *below = weft_engine_below(engine, comms->mesh, &why);
    if (below != NULL) return level_create(comms, below, axes, l, &l->below, error);
    return weft_fail(error, why.status, "%s", why.message);
}

/* What is the engines': from the one at the bottom up. As soon as all ranks can exchange anything, they look at what they
 * compute on: those above may use it. */
static weft_status level_start(const weft_comms *comms, uint32_t axes, level *l, weft_error *error)
{
    const int n_local = weft_mesh_n_local(comms->mesh);
    const bool is_first = l->below == NULL && axes + 1 == 1u << weft_mesh_n_axes(comms->mesh);
    if (l->below != NULL) WEFT_TRY(level_start(comms, axes, l->below, error));
    l->is_started = true;
    if (l->engine->group_create != NULL)
        WEFT_TRY(l->engine->group_create(comms->mesh, axes, l->list, n_local, error));
    if (!is_first) return WEFT_OK;
    return weft_units_check(comms->mesh, is_here(comms->mesh) ? NULL : &l->ends[0], error);
}

/* What one process cannot do, all return: nobody goes on to a call in which that one would be waited for. */
static weft_status settle(const weft_comms *comms, weft_error *own, weft_error *error)
{
    if (!is_here(comms->mesh)) (void)weft_world_agree(own);
    if (own->status == WEFT_OK) return WEFT_OK;
    return weft_fail(error, own->status, "%s", own->message);
}

weft_status weft_comms_prepare(weft_comms *comms, uint32_t axes, weft_error *error)
{
    WEFT_GIVEN(comms, error);
    const int n_axes = weft_mesh_n_axes(comms->mesh);
    level *made = NULL;
    if (axes >> n_axes != 0)
        return weft_fail(error, WEFT_USAGE,
                         "a group over axes 0x%x of mesh %.200s, which has %d; name axes it has",
                         axes, weft_mesh_text(comms->mesh), n_axes);
    if (comms->groups[axes] != NULL) return WEFT_OK;
    const uint32_t everybody = (1u << n_axes) - 1;
    if (comms->engine->put != NULL && axes != everybody)
        WEFT_TRY(weft_comms_prepare(comms, everybody, error));
    weft_error own = WEFT_NO_ERROR;
    (void)level_create(comms, comms->engine, axes, NULL, &made, &own);
    weft_status status = settle(comms, &own, error);
    char name[64];
    weft_engine_print(comms->engine, comms->mesh, name, sizeof name);
    if (status == WEFT_OK && !is_here(comms->mesh))
        status = weft_world_same_group(name, made->ends[0].n_ranks, error);
    if (status == WEFT_OK) status = level_start(comms, axes, made, error);
    if (status == WEFT_OK)
        comms->groups[axes] = made;
    else
        level_destroy(made, weft_mesh_n_local(comms->mesh));
    return status;
}

weft_comm *weft_comm_of(weft_comms *comms, int rank, uint32_t axes)
{
    if (comms == NULL || rank < 0) return NULL;
    const int local = rank - weft_mesh_first_local(comms->mesh);
    if (axes >> WEFT_MAX_AXES != 0 || comms->groups[axes] == NULL) return NULL;
    if (local < 0 || local >= weft_mesh_n_local(comms->mesh)) return NULL;
    return &comms->groups[axes]->ends[local];
}

void weft_comms_poll(weft_comms *comms, int rank)
{
    if (comms == NULL) return;
    const int local = rank - weft_mesh_first_local(comms->mesh);
    if (rank >= 0 && local >= 0 && local < weft_mesh_n_local(comms->mesh))
        weft_desk_poll(&comms->desks[local]);
}

weft_mesh *weft_comms_mesh(const weft_comms *comms)
{
    return comms->mesh;
}

bool weft_comms_are_queued(const weft_comms *comms)
{
    return comms != NULL && comms->engine->put != NULL && !comms->areas.device->is_open;
}

const char *weft_comms_engine(const weft_comms *comms)
{
    return comms != NULL ? comms->engine->name : "";
}

/* ---- memory ------------------------------------------------------------------------------------ */

static weft_status gather(void *context, const void *own, int64_t bytes, void *all,
                          weft_error *error)
{
    return weft_comm_gather(context, own, bytes, all, error);
}

static weft_status agree(void *context, weft_error *error)
{
    (void)context;
    return weft_world_agree(error);
}

/* Of an engine that stands on another one nobody knows what it stands for: it moves all bytes itself. */
weft_status weft_comms_take(weft_comms *comms, int64_t bytes, void **memory, weft_error *error)
{
    WEFT_GIVEN(memory, error);
    *memory = NULL;
    WEFT_GIVEN(comms, error);
    WEFT_GIVEN_RANGE(bytes, 0, (int64_t)1 << 60, error);
    const uint32_t everybody = (1u << weft_mesh_n_axes(comms->mesh)) - 1;
    if (is_here(comms->mesh) || comms->engine->below != NULL)
        return weft_areas_take(&comms->areas, NULL, bytes, memory, error);
    WEFT_TRY(weft_comms_prepare(comms, everybody, error));
    weft_comm *comm = weft_comm_of(comms, weft_mesh_first_local(comms->mesh), everybody);
    const weft_host_shm_peers peers = {comm->n_ranks, comm->self, gather, agree, comm};
    return weft_areas_take(&comms->areas, &peers, bytes, memory, error);
}

const char *weft_comms_apart(const weft_comms *comms)
{
    return comms != NULL ? comms->areas.why : "";
}

void *weft_comms_see(const weft_comms *comms, const void *memory, int rank)
{
    if (comms == NULL || memory == NULL) return NULL;
    return weft_areas_at(&comms->areas, weft_areas_find(&comms->areas, memory, 0), rank);
}
