/* bind.c: one rank's steps with pointers in place of names: after this, a run allocates nothing. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

static int64_t top_of(const weft_rank *rank, uint32_t placed)
{
    if (rank->layout.offset[placed] < 0) return 0;
    if (weft_is_view(rank->program->plan, placed))
        placed = weft_placed_owner(rank->program->plan, placed);
    return rank->layout.offset[placed] + weft_rank_bytes(rank, placed);
}

static weft_status bind_convert(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    const size_t bytes = (size_t)step->n_in * sizeof *bound->exchange.moved;
    bound->exchange.moved = weft_arena_take(rank->program->arena, bytes);
    if (!bound->exchange.moved) return weft_fail_memory(error, bytes);
    for (int i = 0; i < step->n_in; i++)
        bound->exchange.moved[i] =
            (weft_move_memory){rank->memory[step->in[i]], rank->memory[step->out[i]]};
    const bool gathers = bound->shared && bound->shared->gathers; /* without an exchange */
    if (step->convert.axes && !gathers)
        bound->exchange.comm = weft_comm_of(rank->program->comms, rank->rank, step->convert.axes);
    WEFT_TRY(weft_step_move(rank->program->plan, step, rank->rank, &bound->exchange.move, error));
    bound->scratch_bytes = weft_move_scratch(bound->exchange.move); /* planned, whoever uses it */
    return gathers ? WEFT_OK
                   : weft_flight_create(bound->exchange.move, bound->exchange.comm,
                                        &bound->exchange.flight, error);
}

/* What a trip sees of a tensor, or puts into a stack, is the trip's element of the first dim. */
static void bind_trip(weft_rank *rank, weft_bound_step *bound, int64_t bytes)
{
    const weft_graph *graph = rank->program->plan->graph;
    const weft_node *node = &graph->nodes[bound->step->node];
    const bool is_each = node->op == &weft_op_scan_each;
    if (!is_each && node->op != &weft_op_scan_stack) return;
    const weft_scan_attributes *attributes = weft_scan_of(node);
    const int64_t moves = attributes->is_reversed ? -bytes : bytes;
    const int64_t first =
        attributes->is_reversed ? (graph->scans[attributes->scan].trips - 1) * bytes : 0;
    const bool is_before = bound->step->scan == graph->scans[attributes->scan].parent;
    bound->copy.trip = is_before ? rank->trips : &rank->trips[attributes->scan];
    if (is_each) {
        bound->copy.from =
            (const char *)bound->copy.from + first + (bound->step->is_ahead ? moves : 0);
        bound->copy.from_moves = moves;
    } else {
        bound->copy.to = (char *)bound->copy.to + first;
        bound->copy.to_moves = moves;
    }
}

static weft_status bind_copy(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    (void)error;
    const weft_step *step = bound->step;
    const weft_plan *plan = rank->program->plan;
    const bool is_each = plan->graph->nodes[step->node].op == &weft_op_scan_each;
    const int64_t bytes = weft_rank_bytes(rank, is_each ? step->out[0] : step->in[0]);
    const int64_t lines = (bytes + LINE - 1) / LINE;
    const int64_t begin = lines * bound->part.index / bound->part.count * LINE;
    const int64_t end = lines * (bound->part.index + 1) / bound->part.count * LINE;
    bound->copy.trip = rank->trips;
    if (bytes == 0) return WEFT_OK;
    bound->copy.from = (const char *)rank->memory[step->in[0]] + begin;
    bound->copy.to = (char *)rank->memory[step->out[0]] + begin;
    bound->copy.bytes = (end < bytes ? end : bytes) - begin;
    bind_trip(rank, bound, bytes);
    return WEFT_OK;
}

/* ---- what moves ---------------------------------------------------------------------------------- */

static void bind_view(const weft_rank *rank, uint32_t placed, int number, weft_bound_view *view)
{
    weft_lie lie;
    weft_placed_lie(rank->program->plan, placed, rank->rank, &lie);
    *view = (weft_bound_view){.number = number, .first = rank->memory[placed]};
    view->n_moves = lie.n_moves;
    for (int m = 0; m < lie.n_moves; m++) {
        view->move[m].trip = &rank->trips[lie.move[m].scan];
        view->move[m].bytes = lie.move[m].bytes;
    }
}

/* Operands and results of the step that are elsewhere in each trip; what is empty is nowhere. */
static weft_status bind_views(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    const weft_plan *plan = rank->program->plan;
    const size_t n = (size_t)step->n_in + (size_t)step->n_out;
    weft_bound_view *views = NULL;
    for (int i = 0; step->scan != 0 && i < step->n_in + step->n_out; i++) {
        const bool is_in = i < step->n_in;
        const uint32_t placed = is_in ? step->in[i] : step->out[i - step->n_in];
        if (weft_count_moves(plan, placed) == 0 || rank->memory[placed] == NULL) continue;
        if (views == NULL) views = weft_arena_take(rank->program->arena, n * sizeof *views);
        if (views == NULL) return weft_fail_memory(error, n * sizeof *views);
        bind_view(rank, placed, is_in ? i : step->n_in - 1 - i, &views[bound->n_views++]);
    }
    bound->views = views;
    return WEFT_OK;
}

/* Memory of the arena: what rounds a tensor up to four bytes is nobody else's. */
static weft_status bind_begin(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *step = bound->step;
    const size_t bytes = (size_t)step->n_out * sizeof(weft_zeros);
    weft_zeros *zeros = weft_arena_take(rank->program->arena, bytes);
    if (zeros == NULL) return weft_fail_memory(error, bytes);
    for (int o = 0; o < step->n_out; o++) {
        const int64_t its = weft_rank_bytes(rank, step->out[o]);
        zeros[o] = (weft_zeros){rank->memory[step->out[o]], (its + 3) / 4};
    }
    bound->fence.zeros = zeros;
    return WEFT_OK;
}

/* From its end a scan goes back to what stands behind its begin. */
static weft_status bind_end(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_step *steps = rank->program->plan->steps;
    uint32_t begin = (uint32_t)(bound - rank->steps);
    (void)error;
    while (steps[begin].kind != WEFT_STEP_BEGIN || steps[begin].scan != bound->step->scan)
        begin--;
    bound->fence.back = begin + 1;
    return WEFT_OK;
}

/* And its guard leads to its end. */
static weft_status bind_guard(weft_rank *rank, weft_bound_step *bound, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    uint32_t end = (uint32_t)(bound - rank->steps);
    (void)error;
    while (plan->steps[end].kind != WEFT_STEP_END || plan->steps[end].scan != bound->step->scan)
        end++;
    bound->fence.back = end;
    bound->fence.is_last = weft_scan_of(&plan->graph->nodes[bound->step->node])->ends;
    bound->fence.number = rank->memory[bound->step->in[0]];
    return WEFT_OK;
}

static const weft_step_run binders[WEFT_STEPS] = {[WEFT_STEP_KERNEL] = weft_bind_kernel,
                                                  [WEFT_STEP_LOOP] = weft_bind_loop,
                                                  [WEFT_STEP_CONVERT] = bind_convert,
                                                  [WEFT_STEP_COPY] = bind_copy,
                                                  [WEFT_STEP_BEGIN] = bind_begin,
                                                  [WEFT_STEP_GUARD] = bind_guard,
                                                  [WEFT_STEP_END] = bind_end};

/* ---- what reports call the steps ------------------------------------------------------------- */

/* What the text is made of. */
typedef struct spot_facts {
    const weft_placed *placed;
    const weft_op *maker;
    const char *variable; /* NULL: it is none */
    const weft_origin *origin;
    int n_more; /* tensors that move with it */
} spot_facts;

typedef struct spot_text {
    char what[WEFT_SPOT_BYTES], where[WEFT_SPOT_BYTES];
} spot_text;

/* Layers and unrolled steps say the same again and again: only the first is printed. Which spot has been found for which facts,
 * and of exchanges which text: open addressing; key 0 is free. */
enum { KNOWN = 2 * WEFT_SPOTS };
typedef struct known_spots {
    weft_arena *arena; /* of texts */
    int n;
    uint64_t key[KNOWN];
    uint32_t spot[KNOWN];
    const spot_text *text[KNOWN];
} known_spots;

/* The place of `key`, or the free one where it belongs. */
static int find_known(const known_spots *known, uint64_t key)
{
    int at = (int)(key % KNOWN);
    while (known->key[at] != 0 && known->key[at] != key)
        at = (at + 1) % KNOWN;
    return at;
}

static void print_spot(const spot_facts *facts, spot_text *text)
{
    char *what = text->what, *where = text->where;
    char shape[96], more[24] = "";
    weft_shape_print(&facts->placed->type.shape, shape, sizeof shape);
    if (facts->n_more) snprintf(more, sizeof more, " and %d more", facts->n_more);
    snprintf(what, WEFT_SPOT_BYTES, "of %.48s%s %.64s %s%s",
             facts->variable ? facts->variable : facts->maker->name,
             facts->variable ? "" : "'s result", shape, weft_dtype_name(facts->placed->type.dtype),
             more);
    *where = '\0';
    if (facts->origin->file)
        snprintf(where, WEFT_SPOT_BYTES, ", called at %.40s:%d", facts->origin->file,
                 facts->origin->line);
}

static uint32_t make_spot(const weft_rank *rank, const spot_facts *facts)
{
    spot_text text;
    char both[WEFT_SPOT_BYTES];
    print_spot(facts, &text);
    snprintf(both, sizeof both, "%s%s", text.what, text.where);
    return weft_recorder_spot(rank->recorder, weft_digest(0, both, strlen(both)), both);
}

static uint64_t mix(uint64_t key, uint64_t word)
{
    key = (key ^ word) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

/* `kind`: of the tensor, which stands for its shape and dtype. */
static uint64_t key_of(const spot_facts *facts, uint32_t kind)
{
    const uint64_t counts = (uint64_t)kind << 32 | (uint64_t)facts->n_more;
    uint64_t key = mix((uintptr_t)facts->maker, (uintptr_t)facts->variable);
    key = mix(mix(key, (uintptr_t)facts->origin->file), (uint64_t)facts->origin->line);
    return mix(key, counts) | 1;
}

static bool has_room(const known_spots *known)
{
    return known && known->n < KNOWN / 2;
}

static uint32_t know_spot(const weft_rank *rank, known_spots *known, const spot_facts *facts,
                          uint64_t key)
{
    const int at = known ? find_known(known, key) : 0;
    if (known && known->key[at] == key) return known->spot[at];
    const uint32_t spot = make_spot(rank, facts);
    if (has_room(known)) {
        known->n++;
        known->key[at] = key;
        known->spot[at] = spot;
    }
    return spot;
}

/* `own` holds it where it cannot be kept. */
static const spot_text *know_text(known_spots *known, const spot_facts *facts, uint64_t key,
                                  spot_text *own)
{
    const int at = known ? find_known(known, key) : 0;
    if (known && known->key[at] == key) return known->text[at];
    spot_text *text = has_room(known) ? weft_arena_take(known->arena, sizeof *text) : NULL;
    print_spot(facts, text ? text : own);
    if (!text) return own;
    known->n++;
    known->key[at] = key;
    known->text[at] = text;
    return text;
}

static spot_facts facts_of(const weft_plan *plan, uint32_t placed, const weft_step *step)
{
    const weft_placed *p = &plan->placed[placed];
    const weft_node *maker = weft_node_of(plan->graph, p->value);
    spot_facts facts = {
        .placed = p, .maker = maker->op, .origin = &plan->graph->nodes[step->node].origin};
    if (p->home == WEFT_VARIABLE_HOME)
        facts.variable = ((const weft_variable_attributes *)maker->attributes)->name;
    if (step->kind == WEFT_STEP_CONVERT) facts.n_more = step->n_in - 1;
    return facts;
}

/* The tensor, and the place in the user's program. A move's calls are told by it on all ranks. */
static void bind_spot(weft_rank *rank, known_spots *known, weft_bound_step *bound)
{
    const weft_plan *plan = rank->program->plan;
    const weft_step *step = bound->step;
    const uint32_t placed = step->n_out > 0 ? step->out[0] : step->n_in > 0 ? step->in[0] : 0;
    if (rank->recorder == NULL || placed == 0) return;
    const spot_facts facts = facts_of(plan, placed, step);
    const uint64_t key = key_of(&facts, plan->likes.of_placed[placed]);
    if (bound->exchange.move != NULL && bound->exchange.comm != NULL) {
        spot_text own;
        const spot_text *text = know_text(known, &facts, mix(key, 1) | 1, &own);
        weft_flight_name(bound->exchange.flight, rank->program->mark, text->what, text->where);
    } else {
        bound->spot = know_spot(rank, known, &facts, key);
    }
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void bind_scratch(const weft_rank *rank, uint32_t s, weft_bound_step *bound)
{
    int64_t at = rank->layout.scratch[s];
    const bool is_exchange = bound->step->kind == WEFT_STEP_CONVERT;
    if (at >= 0) bound->scratch = (is_exchange && rank->staging ? rank->staging : rank->arena) + at;
    int64_t top = at >= 0 ? at + bound->scratch_bytes : 0;
    for (int i = 0; i < bound->step->n_in + bound->step->n_out; i++) {
        bool is_in = i < bound->step->n_in;
        uint32_t placed = is_in ? bound->step->in[i] : bound->step->out[i - bound->step->n_in];
        int64_t its = top_of(rank, placed);
        if (its > top) top = its;
    }
    bound->top_bytes = top;
}

/* Where exchanges that go on are finished, in the order in which they start. */
static void bind_ends(weft_rank *rank)
{
    const weft_plan *plan = rank->program->plan;
    for (uint32_t s = plan->n_steps; s-- > 0;) {
        weft_bound_step *bound = &rank->steps[s];
        const uint32_t end = weft_step_end(bound->step, s) + 1;
        /* of what is written together, nobody goes on before all of it is */
        bound->exchange.goes_on = end > s + 1 && bound->shared == NULL;
        if (!bound->exchange.goes_on) continue;
        uint32_t *ends = end < plan->n_steps ? &rank->steps[end].ends : &rank->last_ends;
        bound->next_end = *ends;
        *ends = s + 1;
    }
}

static weft_status bind_step(weft_rank *rank, known_spots *known, uint32_t s, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    weft_bound_step *bound = &rank->steps[s];
    bound->step = &plan->steps[s];
    bound->run = weft_runners[bound->step->kind];
    bound->part = (weft_loop_part){0, 1};
    bound->traffic = weft_step_traffic(plan, bound->step);
    weft_status status = weft_shared_variables_begin(rank, bound, error);
    if (status == WEFT_OK) status = binders[bound->step->kind](rank, bound, error);
    weft_shared_variables_end(rank, bound);
    if (status != WEFT_OK) return status;
    bind_scratch(rank, s, bound);
    bind_spot(rank, known, bound);
    return bind_views(rank, bound, error);
}

weft_status weft_bind_step(weft_rank *rank, uint32_t s, weft_error *error)
{
    return bind_step(rank, NULL, s, error);
}

weft_status weft_bind(weft_rank *rank, weft_error *error)
{
    known_spots *known = rank->recorder ? calloc(1, sizeof *known) : NULL; /* saves time only */
    if (known) known->arena = weft_arena_create();
    weft_status status = WEFT_OK;
    for (uint32_t s = 0; s < rank->program->plan->n_steps && status == WEFT_OK; s++)
        status = bind_step(rank, known, s, error);
    if (known) weft_arena_destroy(&known->arena);
    free(known);
    if (status == WEFT_OK) bind_ends(rank);
    return status;
}

void weft_unbind(weft_rank *rank)
{
    if (!rank->steps) return;
    weft_end_capturing(rank);
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++) {
        weft_flight_destroy(&rank->steps[s].exchange.flight);
        weft_move_destroy(&rank->steps[s].exchange.move);
        weft_unbind_kernel(&rank->steps[s]);
    }
}
