/* homes.c: a rank's memory: its arena, and the homes of what lives between runs.
 *
 * A variable that another program keeps is found there. One that ranks of this process hold in common (together.c) lies
 * where the first of them has it.
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
#define FORBID(from, bytes) ASAN_POISON_MEMORY_REGION(from, bytes)
#define ALLOW(from, bytes)  ASAN_UNPOISON_MEMORY_REGION(from, bytes)
#else
enum { HOME_GAP = 0 };
#define FORBID(from, bytes) (void)0
#define ALLOW(from, bytes)  (void)0
#endif

static int64_t home_room(const weft_rank *rank, uint32_t placed)
{
    const int64_t bytes = weft_placed_bytes(rank->program->plan, placed, rank->rank);
    return bytes > 0 ? (bytes + 63) / 64 * 64 + HOME_GAP : 0;
}

/* Whether it lies in memory of this rank's, and of this program's. */
static bool is_own(const weft_rank *rank, uint32_t placed)
{
    const weft_program *program = rank->program;
    return program->plan->placed[placed].home != WEFT_TEMPORARY && !program->given[placed] &&
           weft_holder_of(program, placed, rank->rank) == rank->rank;
}

/* What another program keeps is found there. */
static weft_status find_homes(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        if (rank->program->given[id]) WEFT_TRY(take_given(rank, id, error));
        if (is_own(rank, id) &&
            __builtin_add_overflow(rank->homes_bytes, home_room(rank, id), &rank->homes_bytes))
            return weft_fail_memory(error, SIZE_MAX);
    }
    return WEFT_OK;
}

static void initialize(const weft_rank *rank, uint32_t placed)
{
    const weft_plan *plan = rank->program->plan;
    const weft_placed *p = &plan->placed[placed];
    weft_view view;
    if (p->home != WEFT_VARIABLE_HOME) return;
    weft_placed_view(plan, placed, rank->rank, &view);
    view.data = rank->memory[placed];
    weft_initialize(weft_node_of(plan->graph, p->value)->attributes, plan->graph->seed, &view,
                    rank->stream);
}

static weft_status take_homes(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    WEFT_TRY(find_homes(rank, error));
    if (rank->homes_bytes == 0) return WEFT_OK;
    WEFT_TRY(weft_devices[WEFT_CPU]->take((size_t)rank->homes_bytes, &rank->homes, error));
    weft_devices[WEFT_CPU]->touch(rank->stream, rank->homes, (size_t)rank->homes_bytes);
    char *at = rank->homes;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        if (!is_own(rank, id)) continue;
        const int64_t room = home_room(rank, id);
        if (room == 0) continue;
        rank->memory[id] = at;
        at += room;
        FORBID(at - HOME_GAP, HOME_GAP);
        initialize(rank, id);
    }
    return WEFT_OK;
}

weft_status weft_take_memory(weft_rank *rank, weft_error *error)
{
    WEFT_TRY(take_homes(rank, error));
    void *arena = NULL;
    if (rank->layout.arena_bytes)
        WEFT_TRY(weft_devices[WEFT_CPU]->take((size_t)rank->layout.arena_bytes, &arena, error));
    if (arena != NULL)
        weft_devices[WEFT_CPU]->touch(rank->stream, arena, (size_t)rank->layout.arena_bytes);
    rank->arena = arena;
    return WEFT_OK;
}

void weft_find_memory(weft_rank *rank)
{
    const weft_program *program = rank->program;
    const weft_plan *plan = program->plan;
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        const int holder = weft_holder_of(program, id, rank->rank);
        if (holder != rank->rank && !program->given[id])
            rank->memory[id] = weft_rank_of(program, holder)->memory[id];
    }
    for (uint32_t id = 1; id < plan->n_placed; id++) {
        uint32_t owner = weft_placed_owner(plan, id);
        if (plan->placed[owner].home != WEFT_TEMPORARY)
            rank->memory[id] = rank->memory[owner];
        else if (rank->layout.offset[id] >= 0)
            rank->memory[id] = rank->arena + rank->layout.offset[id];
    }
}

void weft_give_memory(weft_rank *rank)
{
    if (rank->homes) {
        ALLOW(rank->homes, (size_t)rank->homes_bytes);
        weft_devices[WEFT_CPU]->give(rank->homes, (size_t)rank->homes_bytes);
    }
    if (rank->arena) weft_devices[WEFT_CPU]->give(rank->arena, (size_t)rank->layout.arena_bytes);
}
