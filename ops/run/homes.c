/* homes.c: a rank's memory: its arena, and the homes of what lives between runs.
 *
 * A variable that another program keeps is found there. One that ranks hold in common (shared_variables.c) lies where the
 * first of them has it. Where ranks are processes, all of it is memory that those of one host see of each other.
 * Exchanged data are read and written in place, on large pages where the system makes them (segment.c).
 */
#include "program.h"

#include <stdio.h>
#include <string.h>
#ifdef WEFT_SANITIZE
#include <sanitizer/asan_interface.h>
#endif

static const char *variable_name(const weft_plan *plan, uint32_t placed)
{
    const weft_variable_attributes *variable =
        weft_node_of(plan->graph, plan->placed[placed].value)->attributes;
    return variable->name;
}

static bool same_part(const weft_view *a, const weft_view *b)
{
    if (a->dtype != b->dtype || a->shape.n_dims != b->shape.n_dims) return false;
    for (int d = 0; d < a->shape.n_dims; d++)
        if (strcmp(a->shape.dims[d].name, b->shape.dims[d].name) != 0 ||
            a->shape.dims[d].size != b->shape.dims[d].size)
            return false;
    return memcmp(&a->box, &b->box, sizeof a->box) == 0;
}

/* "f32 [a:8, b:6], of which rank 1 keeps [a:4, b:6]" */
static void print_part(const weft_view *view, int rank, char *text, size_t bytes)
{
    char whole[200], part[200];
    weft_shape local = view->shape;
    for (int d = 0; d < local.n_dims; d++)
        local.dims[d].size = weft_view_size(view, d);
    weft_shape_print(&view->shape, whole, sizeof whole);
    weft_shape_print(&local, part, sizeof part);
    snprintf(text, bytes, "%s %.80s, of which rank %d keeps %.80s", weft_dtype_name(view->dtype),
             whole, rank, part);
}

static weft_status refuse_shared(const weft_rank *rank, const char *name, const weft_view *own,
                                 const weft_view *its, weft_error *error)
{
    char mine[240], other[240];
    print_part(own, rank->rank, mine, sizeof mine);
    print_part(its, rank->rank, other, sizeof other);
    return weft_fail(
        error, WEFT_USAGE,
        "variable %s cannot be shared: here it is %s, and in the program to share with "
        "%s; give both the same dtype, dims and layout",
        name, mine, other);
}

/* The shared program's variable of the same name. */
static uint32_t find_given(const weft_program *program, uint32_t placed)
{
    const weft_plan *other = program->share->plan;
    const char *name = variable_name(program->plan, placed);
    for (uint32_t id = 1; id < other->n_placed; id++)
        if (other->placed[id].home == WEFT_VARIABLE_HOME && !strcmp(variable_name(other, id), name))
            return id;
    return 0;
}

weft_status weft_find_given(weft_program *program, weft_error *error)
{
    const weft_plan *plan = program->plan;
    program->given = weft_arena_take(program->arena, plan->n_placed * sizeof *program->given);
    if (!program->given) return weft_fail_memory(error, plan->n_placed * sizeof *program->given);
    for (uint32_t id = 1; id < plan->n_placed && program->share; id++)
        if (plan->placed[id].home == WEFT_VARIABLE_HOME)
            program->given[id] = find_given(program, id);
    return WEFT_OK;
}

/* Its part must be the same. */
static weft_status take_given(weft_rank *rank, uint32_t placed, weft_error *error)
{
    const weft_program *program = rank->program;
    const uint32_t given = program->given[placed];
    weft_view own, its;
    weft_placed_view(program->plan, placed, rank->rank, &own);
    weft_placed_view(program->share->plan, given, rank->rank, &its);
    if (!same_part(&own, &its))
        return refuse_shared(rank, variable_name(program->plan, placed), &own, &its, error);
    rank->memory[placed] = weft_rank_of(program->share, rank->rank)->memory[given];
    return WEFT_OK;
}

/* Homes lie side by side in one piece of memory: few pages, and those large. Under the sanitizers with something between
 * them that nobody may touch. */
#ifdef WEFT_SANITIZE
enum { HOME_GAP = 64 };
#define FORBID(from, bytes) ASAN_POISON_MEMORY_REGION(from, (size_t)(bytes))
#define ALLOW(from, bytes)  ASAN_UNPOISON_MEMORY_REGION(from, (size_t)(bytes))
#else
enum { HOME_GAP = 0 };
#define FORBID(from, bytes) (void)0
#define ALLOW(from, bytes)  (void)0
#endif

enum { PAGE = 4096 };

/* A variable and its slots are gone through in step, mostly in pages. Did they lie whole pages apart, the same elements of all
 * would fall on the same few cache sets: so each large home begins elsewhere in its page. */
enum { STAGGERED = 16 * PAGE, STAGGER = 17 * 64 };

static int64_t home_room(const weft_program *program, uint32_t placed, int rank)
{
    const int64_t bytes = weft_placed_room(program->plan, placed, rank);
    const int64_t room = bytes > 0 ? bytes + HOME_GAP : 0;
    return bytes < STAGGERED ? room : (room - STAGGER + PAGE - 1) / PAGE * PAGE + STAGGER;
}

/* Whether it lies in memory of that rank's, and of this program's. */
static bool is_own(const weft_program *program, uint32_t placed, int rank)
{
    return program->plan->placed[placed].home != WEFT_TEMPORARY && !program->given[placed] &&
           weft_holder_of(program, placed, rank) == rank;
}

weft_status weft_count_homes(weft_rank *rank, weft_error *error)
{
    const weft_program *program = rank->program;
    rank->homes_bytes = 0;
    for (uint32_t id = 1; id < program->plan->n_placed; id++)
        if (is_own(program, id, rank->rank) &&
            __builtin_add_overflow(rank->homes_bytes, home_room(program, id, rank->rank),
                                   &rank->homes_bytes))
            return weft_fail_memory(error, SIZE_MAX);
    return WEFT_OK;
}

/* What another program keeps is found there. */
static weft_status find_homes(weft_rank *rank, weft_error *error)
{
    const weft_program *program = rank->program;
    for (uint32_t id = 1; id < program->plan->n_placed; id++)
        if (program->given[id]) WEFT_TRY(take_given(rank, id, error));
    return weft_count_homes(rank, error);
}

/* ---- where other processes see it -------------------------------------------------------------- */

static weft_status take_all(weft_rank *rank, weft_error *error)
{
    weft_program *program = rank->program;
    weft_error own = WEFT_NO_ERROR;
    (void)weft_count_homes(rank, &own);
    (void)weft_world_agree(&own);
    if (own.status != WEFT_OK) return weft_fail(error, own.status, "%s", own.message);
    const int64_t homes = (rank->homes_bytes + PAGE - 1) / PAGE * PAGE;
    WEFT_TRY(
        weft_comms_take(program->comms, homes + rank->layout.arena_bytes, &rank->homes, error));
    rank->arena = (char *)rank->homes + homes;
    rank->is_seen = true;
    return WEFT_OK;
}

/* Whether a process sees no homes of one whose barriers it sees. */
static bool is_refused(const weft_program *program)
{
    const weft_rank *rank = program->ranks;
    const int first = weft_first_along(program->mesh, program->seen, rank->rank);
    for (int r = 0; r < weft_mesh_n_ranks(program->mesh); r++)
        if (r != rank->rank && weft_first_along(program->mesh, program->seen, r) == first &&
            !weft_comms_see(program->comms, rank->homes, r))
            return true;
    return false;
}

/* Nothing is held in common where the system refuses so much of it. */
weft_status weft_take_seen(weft_program *program, weft_error *error)
{
    bool is_hidden = false;
    if (!weft_has_others(program) || !program->ranks->device->is_open) return WEFT_OK;
    WEFT_TRY(take_all(program->ranks, error));
    WEFT_TRY(weft_world_any(is_refused(program), &is_hidden, error));
    if (!is_hidden) return WEFT_OK;
    for (uint32_t id = 1; id < program->plan->n_placed; id++)
        if (!program->given[id]) program->common[id] = 0;
    return take_all(program->ranks, error);
}

/* What of other processes' homes this rank uses too: they lie there in the order in which the plan has them. */
static void find_others(weft_rank *rank)
{
    const weft_program *program = rank->program;
    for (int r = 0; r < weft_mesh_n_ranks(program->mesh); r++) {
        char *at = r == rank->rank ? NULL : weft_comms_see(program->comms, rank->homes, r);
        for (uint32_t id = 1; at && id < program->plan->n_placed; id++) {
            if (!is_own(program, id, r)) continue;
            if (weft_holder_of(program, id, rank->rank) == r) rank->memory[id] = at;
            at += home_room(program, id, r);
        }
    }
}

/* ---- on the rank's own thread ------------------------------------------------------------------ */

static weft_status initialize(const weft_rank *rank, uint32_t placed, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    const weft_placed *p = &plan->placed[placed];
    weft_view view;
    if (p->home != WEFT_VARIABLE_HOME) return WEFT_OK;
    weft_placed_view(plan, placed, rank->rank, &view);
    view.data = rank->memory[placed];
    return weft_initialize(weft_node_of(plan->graph, p->value)->attributes, plan->graph->seed,
                           &view, rank->device, rank->stream, error);
}

static weft_status take_homes(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    WEFT_TRY(find_homes(rank, error));
    if (rank->homes_bytes == 0) return WEFT_OK;
    if (!rank->is_seen)
        WEFT_TRY(rank->device->take_zeroed(rank->stream, (size_t)rank->homes_bytes, &rank->homes,
                                           error));
    rank->device->touch(rank->stream, rank->homes, (size_t)rank->homes_bytes);
    char *at = rank->homes;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        if (!is_own(rank->program, id, rank->rank)) continue;
        const int64_t room = home_room(rank->program, id, rank->rank);
        if (room == 0) continue;
        rank->memory[id] = at;
        FORBID(at + weft_placed_room(rank->program->plan, id, rank->rank),
               room - weft_placed_room(rank->program->plan, id, rank->rank));
        at += room;
        WEFT_TRY(initialize(rank, id, error));
    }
    return WEFT_OK;
}

/* Where in the arena the scratch of an exchange lies, there it lies in the staging memory: the plan knows when. */
static weft_status take_staging(weft_rank *rank, weft_error *error)
{
    void *staging = NULL;
    const bool is_needed = !rank->device->is_open && !weft_comms_are_queued(rank->program->comms);
    if (!is_needed || rank->layout.arena_bytes == 0) return WEFT_OK;
    WEFT_TRY(rank->device->take_staging((size_t)rank->layout.arena_bytes, &staging, error));
    rank->staging = staging;
    return WEFT_OK;
}

weft_status weft_take_memory(weft_rank *rank, weft_error *error)
{
    WEFT_TRY(take_homes(rank, error));
    void *arena = rank->arena;
    if (rank->layout.arena_bytes && !rank->is_seen)
        WEFT_TRY(rank->device->take(rank->stream, (size_t)rank->layout.arena_bytes, &arena, error));
    if (arena != NULL) rank->device->touch(rank->stream, arena, (size_t)rank->layout.arena_bytes);
    rank->arena = arena;
    return take_staging(rank, error);
}

/* Where it is in the first trip of all scans with which it moves. */
static void find_view(weft_rank *rank, uint32_t placed)
{
    const weft_plan *plan = rank->program->plan;
    char *whole = rank->memory[weft_placed_owner(plan, placed)];
    weft_lie lie;
    weft_placed_lie(plan, placed, rank->rank, &lie);
    rank->memory[placed] = whole != NULL ? whole + lie.begin : NULL;
}

void weft_find_memory(weft_rank *rank)
{
    const weft_program *program = rank->program;
    const weft_plan *plan = program->plan;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const weft_rank *holder = weft_rank_of(program, weft_holder_of(program, id, rank->rank));
        if (holder && holder != rank && !program->given[id]) rank->memory[id] = holder->memory[id];
    }
    if (rank->is_seen) find_others(rank);
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        uint32_t owner = weft_placed_owner(plan, id);
        if (plan->placed[owner].home != WEFT_TEMPORARY)
            rank->memory[id] = rank->memory[owner];
        else if (rank->layout.offset[id] >= 0)
            rank->memory[id] = rank->arena + rank->layout.offset[id];
    }
    for (uint32_t id = 1; id < plan->n_placed; id++)
        if (weft_is_view(plan, id)) find_view(rank, id);
}

void weft_give_memory(weft_rank *rank)
{
    if (rank->homes) ALLOW(rank->homes, (size_t)rank->homes_bytes);
    if (rank->staging) rank->device->give_staging(rank->staging, (size_t)rank->layout.arena_bytes);
    if (rank->is_seen) return;
    if (rank->homes) rank->device->give(rank->stream, rank->homes, (size_t)rank->homes_bytes);
    if (rank->arena)
        rank->device->give(rank->stream, rank->arena, (size_t)rank->layout.arena_bytes);
}
