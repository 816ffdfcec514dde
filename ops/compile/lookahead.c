/* lookahead: before anything is decided, the graph is read from its end: where does each value go?
 *
 * Every op is asked which way it would take if its operands lay where their names want them. The spec it would need
 * then is its request to its operands. Readers are asked before makers, so a chain of element ops hands on the
 * request at its end. Where all readers of a value ask the same, it goes there; where they disagree, or it has a
 * placement, or is read after the run, it goes where its names want it.
 *
 * A partial result that only a linear or additive op reads can stay partial: it becomes a part of another value, which
 * is finished for all its addends at once. So it pays its share: what finishing that value costs, divided by the addends
 * that can be partial, if that is less than finishing it here. Once one addend is partial, the others add nothing.
 */
#include "lookahead.h"
#include "regions.h"
#include "sites.h"

#include <string.h>

#include "weft/extend/combine.h"

enum { NOT_ASKED = -8, DISAGREE = -9 };

typedef struct looking {
    weft_plan *plan;
    weft_lookahead *ahead;
    weft_outlook outlook;
    const bool *is_output;
    int n_axes;
    uint8_t *can_be_partial; /* [n_tensors] bit a: a sum over axis a may leave it so        */
    uint16_t (
        *addends)[WEFT_MAX_AXES]; /* [n_tensors] that can be partial, itself counted as one      */
    int8_t (*ask)[WEFT_MAX_AXES]; /* [n_tensors] the state its readers need; DISAGREE            */
    weft_error *error;
} looking;

static const weft_type *type_of(const weft_plan *plan, uint32_t value)
{
    return &plan->graph->tensors[value].type;
}

bool weft_is_generated(const weft_plan *plan, uint32_t value)
{
    const weft_node *node = weft_node_of(plan->graph, value);
    return node->n_in == 0 && node->op->element != NULL;
}

/* Ops that stand for memory lie where they lie, and what reads nothing is made anywhere. */
static bool is_decided(const weft_node *node)
{
    return node->op->makes_token || node->n_in == 0;
}

/* An input, a variable, or one in another dtype. */
static bool is_held(const weft_plan *plan, uint32_t value)
{
    const weft_node *node = weft_node_of(plan->graph, value);
    while (node->op->recodes)
        node = weft_node_of(plan->graph, node->in[0]);
    return is_decided(node);
}

static bool can_take_partial(const weft_plan *plan, const weft_node *node, int i)
{
    return node->n_out == 1 &&
           (weft_is_linear_in(plan, node, i) || (node->op->additive >> i & 1)) &&
           weft_may_be_partial(node->op, type_of(plan, node->out)->dtype);
}

static void states_of(const looking *l, const weft_spec *spec, uint32_t value, int8_t *states)
{
    for (int a = 0; a < l->n_axes; a++)
        states[a] = (int8_t)weft_spec_state(spec, type_of(l->plan, value)->shape.n_dims, a);
}

void weft_spec_of_states(const weft_plan *plan, const weft_shape *shape, const int8_t *states,
                         weft_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    for (int d = 0; d < shape->n_dims; d++) {
        uint32_t axes = 0;
        for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
            if (states[a] == d) axes |= 1u << a;
        if (axes != 0)
            spec->n_split[d] = (int8_t)weft_layout_order(plan->layout, plan->mesh,
                                                         shape->dims[d].name, axes, spec->split[d]);
    }
}

/* ---- from the first node: what can be partial ------------------------------------------------ */

/* The axes over which a sum would leave the results of `node` partial, if its operands lay where names want them. */
static uint8_t contracted_axes(const looking *l, const weft_node *node, const weft_factors *factors)
{
    uint8_t axes = 0;
    for (int f = 0; f < factors->n_factors; f++) {
        const weft_factor *factor = &factors->factors[f];
        if (factor->out[0] >= 0 || !weft_combine_adds((weft_combine)factor->combine)) continue;
        for (int i = 0; i < node->n_in; i++) {
            const weft_spec *spec = &l->ahead->wanted[node->in[i]];
            for (int k = 0; factor->in[i] >= 0 && k < spec->n_split[factor->in[i]]; k++)
                axes |= (uint8_t)(1u << spec->split[factor->in[i]][k]);
        }
    }
    return axes;
}

/* A value with one reader joins what that makes of it; with others it will be whole anyway. */
static void find_joins(looking *l, const int *readers)
{
    const weft_graph *graph = l->plan->graph;
    for (uint32_t id = 1; id < graph->n_nodes; id++) {
        const weft_node *node = &graph->nodes[id];
        for (int i = 0; i < node->n_in; i++) {
            const uint32_t value = node->in[i];
            const weft_tensor *tensor = &graph->tensors[value];
            if (readers[value] == 1 && can_take_partial(l->plan, node, i) &&
                !weft_names_carry(node, i) && !l->ahead->is_output[value] && !tensor->placement &&
                !tensor->place_as)
                l->ahead->joins[value] = node->out;
        }
    }
}

static weft_status count_addends(looking *l, uint32_t id)
{
    const weft_node *node = &l->plan->graph->nodes[id];
    const weft_alike *alike = weft_alike_of(l->ahead->sites, id);
    if (!alike) return weft_fail_memory(l->error, sizeof(weft_site));
    uint8_t axes = contracted_axes(l, node, alike->factors);
    uint16_t sum[WEFT_MAX_AXES] = {0};
    for (int i = 0; i < node->n_in; i++) {
        const uint32_t value = node->in[i];
        if (l->ahead->joins[value] != node->out) continue;
        axes |= l->ahead->can_be_partial[value];
        for (int a = 0; a < l->n_axes; a++)
            if (sum[a] + l->ahead->addends[value][a] <= UINT16_MAX)
                sum[a] = (uint16_t)(sum[a] + l->ahead->addends[value][a]);
    }
    for (uint32_t o = 0; o < node->n_out; o++) {
        l->ahead->can_be_partial[node->out + o] = axes;
        for (int a = 0; a < l->n_axes; a++)
            if (axes >> a & 1) l->ahead->addends[node->out + o][a] = sum[a] ? sum[a] : 1;
    }
    return WEFT_OK;
}

/* ---- from the last node: what is asked ------------------------------------------------------- */

static void ask(looking *l, uint32_t value, const int8_t *states)
{
    for (int a = 0; a < l->n_axes; a++) {
        int8_t *asked = &l->ahead->asked[value][a];
        if (states[a] == WEFT_PARTIAL) continue; /* whatever it is, that costs nothing */
        if (*asked == NOT_ASKED)
            *asked = states[a];
        else if (*asked != states[a])
            *asked = DISAGREE;
    }
}

static void set_goal(looking *l, uint32_t value)
{
    const weft_tensor *tensor = &l->plan->graph->tensors[value];
    weft_spec *goal = &l->ahead->goal[value];
    int8_t *states = l->ahead->finished[value];
    bool is_other = false;
    *goal = l->ahead->wanted[value];
    memcpy(states, l->ahead->wanted_states[value], sizeof(weft_axis_states));
    if (!l->outlook.readers || tensor->placement || tensor->place_as || l->ahead->is_output[value])
        return;
    for (int a = 0; a < l->n_axes; a++) {
        const int8_t asked = l->ahead->asked[value][a];
        if (asked == NOT_ASKED || asked == DISAGREE || asked == states[a]) continue;
        states[a] = asked;
        is_other = true;
    }
    if (is_other) weft_spec_of_states(l->plan, &tensor->type.shape, states, goal);
}

/* What finishing a value over `axis` costs, when it is partial there and at its goal elsewhere. */
static double finishing(const looking *l, uint32_t value, int axis)
{
    const weft_mesh *mesh = l->plan->mesh;
    const int8_t *states = l->ahead->finished[value];
    double bytes = l->ahead->bytes[value];
    for (int a = 0; a < l->n_axes; a++)
        if (a != axis && states[a] >= 0) bytes /= weft_mesh_axis_size(mesh, a);
    return weft_state_cost(WEFT_PARTIAL, states[axis], weft_mesh_axis_size(mesh, axis), bytes);
}

static void set_share(looking *l, uint32_t value)
{
    const uint32_t sum = l->ahead->joins[value];
    for (int a = 0; a < l->n_axes; a++) {
        l->ahead->share[value][a] = 1;
        if (!l->outlook.sums || !sum || !l->ahead->addends[sum][a] || !l->ahead->addends[value][a])
            continue;
        const double here = finishing(l, value, a), there = finishing(l, sum, a);
        const double part = (double)l->ahead->addends[value][a] / l->ahead->addends[sum][a];
        if (here > 0 && there * l->ahead->share[sum][a] * part < here)
            l->ahead->share[value][a] = there * l->ahead->share[sum][a] * part / here;
    }
}

static weft_status ask_operands(looking *l, uint32_t id)
{
    weft_plan *plan = l->plan;
    const weft_node *node = &plan->graph->nodes[id];
    weft_choice_in in = {.plan = plan, .node = id, .is_draft = true};
    weft_decided *decided;
    for (int i = 0; i < node->n_in; i++) {
        const uint32_t value = node->in[i];
        memcpy(l->ahead->finished[value], l->ahead->wanted_states[value],
               sizeof(weft_axis_states)); /* until it is its turn */
        weft_lookahead_of(plan, l->ahead, value, &in.in[i]);
        memcpy(in.in[i].now, in.in[i].finished, sizeof in.in[i].now);
        if (node->op->element && !is_decided(weft_node_of(plan->graph, value)))
            in.in[i].is_free = true; /* hands on what is asked of it */
        if (l->outlook.held && !is_held(plan, value)) in.in[i].is_free = true;
    }
    for (int o = 0; o < node->n_out; o++)
        weft_lookahead_of(plan, l->ahead, node->out + (uint32_t)o, &in.out[o]);
    WEFT_TRY(weft_decide(l->ahead->sites, &in, &decided, l->error));
    for (int i = 0; i < node->n_in; i++)
        ask(l, node->in[i], decided->choice->need[i]);
    return WEFT_OK;
}

/* A variable gets its new value where it is kept. */
static weft_status ask_of_store(looking *l, const weft_node *node)
{
    weft_spec home;
    int8_t states[WEFT_MAX_AXES];
    WEFT_TRY(weft_home_spec(l->plan, node->in[0], &home, l->error));
    states_of(l, &home, node->in[1], states);
    ask(l, node->in[1], states);
    return WEFT_OK;
}

/* What is carried gets its next value where it is. */
static void ask_of_next(looking *l, const weft_node *node)
{
    int8_t states[WEFT_MAX_AXES];
    states_of(l, &l->ahead->wanted[node->in[0]], node->in[1], states);
    ask(l, node->in[1], states);
}

static weft_status look_at(looking *l, uint32_t id)
{
    const weft_node *node = &l->plan->graph->nodes[id];
    for (uint32_t o = 0; o < node->n_out; o++) {
        set_goal(l, node->out + o);
        set_share(l, node->out + o);
    }
    if (!l->outlook.readers) return WEFT_OK;
    if (node->op == &weft_op_assign) return ask_of_store(l, node);
    if (node->op == &weft_op_scan_next) ask_of_next(l, node);
    return is_decided(node) ? WEFT_OK : ask_operands(l, id);
}

/* ---- public ---------------------------------------------------------------------------------- */

void weft_lookahead_of(const weft_plan *plan, const weft_lookahead *ahead, uint32_t value,
                       weft_holding *holding)
{
    const int n_axes = weft_mesh_n_axes(plan->mesh);
    const uint32_t sum = ahead->joins[value];
    holding->value = value;
    holding->is_free = holding->is_generated = ahead->is_generated[value];
    holding->bytes = ahead->bytes[value];
    memcpy(holding->finished, ahead->finished[value], sizeof holding->finished);
    for (int a = 0; a < n_axes; a++) {
        const bool costs_nothing = sum && ahead->share[value][a] < 1 && ahead->lasts[sum] >> a & 1;
        holding->share[a] = costs_nothing ? 0 : ahead->share[value][a];
    }
}

/* Up to a sum of which that is known already: so it is of all that this one goes into. */
void weft_lookahead_made(weft_lookahead *ahead, uint32_t value, const weft_spec *spec)
{
    uint8_t axes = weft_combine_adds((weft_combine)spec->combine) ? spec->partial : 0;
    while (axes && ahead->joins[value]) {
        for (int a = 0; a < WEFT_MAX_AXES; a++)
            if (axes >> a & 1 && !(ahead->share[value][a] < 1)) axes &= (uint8_t) ~(1u << a);
        value = ahead->joins[value];
        if ((ahead->lasts[value] & axes) == axes) return;
        ahead->lasts[value] |= axes;
    }
}

static weft_status take_room(weft_arena *arena, size_t n, weft_lookahead *ahead, weft_error *error)
{
    ahead->wanted = weft_arena_take(arena, n * sizeof *ahead->wanted);
    ahead->wanted_states = weft_arena_take(arena, n * sizeof *ahead->wanted_states);
    ahead->finished = weft_arena_take(arena, n * sizeof *ahead->finished);
    ahead->bytes = weft_arena_take(arena, n * sizeof *ahead->bytes);
    ahead->is_generated = weft_arena_take(arena, n * sizeof *ahead->is_generated);
    ahead->joins = weft_arena_take(arena, n * sizeof *ahead->joins);
    ahead->can_be_partial = weft_arena_take(arena, n * sizeof *ahead->can_be_partial);
    ahead->addends = weft_arena_take(arena, n * sizeof *ahead->addends);
    ahead->asked = weft_arena_take(arena, n * sizeof *ahead->asked);
    ahead->goal = weft_arena_take(arena, n * sizeof *ahead->goal);
    ahead->share = weft_arena_take(arena, n * sizeof *ahead->share);
    ahead->lasts = weft_arena_take(arena, n * sizeof *ahead->lasts);
    if (ahead->wanted && ahead->wanted_states && ahead->finished && ahead->bytes &&
        ahead->is_generated && ahead->joins && ahead->can_be_partial && ahead->addends &&
        ahead->asked && ahead->goal && ahead->share && ahead->lasts)
        return WEFT_OK;
    return weft_fail_memory(error, n * sizeof *ahead->wanted);
}

/* Dims of which it is known what the rules want, by their hash: most values have the dims of another. */
enum { KNOWN = 256 };
typedef struct known_dims {
    uint32_t value[KNOWN]; /* 0: none */
} known_dims;

static bool same_dims(const weft_shape *a, const weft_shape *b)
{
    bool is_same = a->n_dims == b->n_dims;
    for (int d = 0; d < a->n_dims && is_same; d++)
        is_same = a->dims[d].name == b->dims[d].name && a->dims[d].size == b->dims[d].size;
    return is_same;
}

static uint32_t *slot_of(known_dims *known, const weft_shape *shape)
{
    uint64_t hash = (uint64_t)shape->n_dims;
    for (int d = 0; d < shape->n_dims; d++) {
        const uint64_t dim = (uintptr_t)shape->dims[d].name ^ (uint64_t)shape->dims[d].size << 32;
        hash = (hash ^ dim) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return &known->value[hash % KNOWN];
}

/* Rules see dims alone; placements and storage are a value's own. */
static weft_status want(looking *l, known_dims *known, uint32_t value)
{
    const weft_tensor *tensor = &l->plan->graph->tensors[value];
    weft_spec *wanted = &l->ahead->wanted[value];
    const weft_node *node = weft_node_of(l->plan->graph, value);
    if (tensor->placement || tensor->place_as || node->op == &weft_op_variable)
        return weft_wanted_spec(l->plan, value, wanted, l->error);
    uint32_t *slot = slot_of(known, &tensor->type.shape);
    if (*slot && same_dims(&type_of(l->plan, *slot)->shape, &tensor->type.shape)) {
        *wanted = l->ahead->wanted[*slot];
        return WEFT_OK;
    }
    *slot = value;
    return weft_wanted_spec(l->plan, value, wanted, l->error);
}

static weft_status describe(looking *l, known_dims *known, uint32_t value)
{
    weft_lookahead *ahead = l->ahead;
    const weft_type *type = type_of(l->plan, value);
    ahead->bytes[value] =
        (double)weft_shape_count(&type->shape) * (double)weft_dtype_bytes(type->dtype);
    ahead->is_generated[value] = weft_is_generated(l->plan, value);
    if (!weft_node_of(l->plan->graph, value)->op->makes_token) WEFT_TRY(want(l, known, value));
    states_of(l, &ahead->wanted[value], value, ahead->wanted_states[value]);
    return WEFT_OK;
}

weft_status weft_lookahead_begin(weft_plan *plan, weft_sites *sites, const bool *is_output,
                                 const int *readers, weft_lookahead *ahead, weft_error *error)
{
    const weft_graph *graph = plan->graph;
    looking l = {
        .plan = plan, .ahead = ahead, .n_axes = weft_mesh_n_axes(plan->mesh), .error = error};
    known_dims known = {{0}};
    *ahead = (weft_lookahead){.sites = sites, .is_output = is_output};
    WEFT_TRY(take_room(plan->arena, graph->n_tensors, ahead, error));
    for (uint32_t value = 1; value < graph->n_tensors; value++)
        WEFT_TRY(describe(&l, &known, value));
    find_joins(&l, readers);
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        if (!is_decided(&graph->nodes[id])) WEFT_TRY(count_addends(&l, id));
    return WEFT_OK;
}

weft_status weft_lookahead_run(weft_plan *plan, weft_outlook outlook, weft_lookahead *ahead,
                               weft_error *error)
{
    const size_t n = plan->graph->n_tensors;
    looking l = {.plan = plan,
                 .ahead = ahead,
                 .outlook = outlook,
                 .n_axes = weft_mesh_n_axes(plan->mesh),
                 .error = error};
    memset(ahead->asked, NOT_ASKED, n * sizeof *ahead->asked);
    for (uint32_t id = plan->graph->n_nodes; id-- > 1;)
        WEFT_TRY(look_at(&l, id));
    return WEFT_OK;
}

void weft_ahead_anew(const weft_plan *plan, weft_lookahead *ahead)
{
    memset(ahead->lasts, 0, plan->graph->n_tensors * sizeof *ahead->lasts);
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const char *at = data;
    for (size_t i = 0; i + sizeof hash <= bytes; i += sizeof hash) {
        uint64_t word;
        memcpy(&word, at + i, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

uint64_t weft_ahead_fingerprint(const weft_plan *plan, const weft_lookahead *ahead)
{
    const size_t n = plan->graph->n_tensors; /* states and what names want say the goals */
    return mix(mix(0, ahead->finished, n * sizeof *ahead->finished), ahead->share,
               n * sizeof *ahead->share);
}
