/* place: decide for every op how its work is cut, and convert operands to where they have to be.
 *
 * Names want a spec for every value; weft_look_ahead says where each goes; weft_choose decides how
 * each op is cut; this pass keeps, for every value, the versions it exists in, and makes new ones by
 * conversion steps. A partial value is finished once, into the spec it goes to, the first time that
 * somebody cannot use it as it is. What ops without operands make is made in every spec that is
 * needed. It never learns an op's name: factors say all.
 */
#include "drafts.h"

#include <string.h>

typedef struct placing {
    weft_plan *plan;
    weft_ahead ahead;
    weft_planned_draft *draft; /* what it costs is added up here; NULL: this is no draft */
    double flops;
    uint32_t *primary; /* [n_tensors] the version others are made from; 0: none yet */
    int *readers;      /* [n_tensors] ops that read the value                       */
    uint32_t *writer;  /* [n_tensors] the assign that writes the variable; 0: none yet */
    uint32_t stretch;  /* of ops of one phase: how many came before                     */
    bool is_end;       /* all ops are placed: what is wanted now is wanted by readers of the run */
    weft_error *error;
} placing;

static const weft_type *type_of(const weft_plan *plan, uint32_t value)
{
    return &plan->graph->tensors[value].type;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* ZeRO-3 gathers a parameter for the forward pass and again for the backward pass, and keeps
 * neither; of a batch that is gone through part by part, for both of each. */
static bool is_dropped_between_phases(const weft_plan *plan, uint32_t value)
{
    return weft_node_of(plan->graph, value)->op == &weft_op_variable &&
           weft_layout_stage(plan->layout) == 3;
}

/* What a window shows overlaps: it serves the phase that asks for it, as what ZeRO-3 gathers, and is not kept from the forward
 * pass to the backward pass beside the value itself. */
static bool has_window(const weft_spec *spec, int n_dims)
{
    for (int d = 0; d < n_dims; d++)
        if (spec->window[d].lead != 0) return true;
    return false;
}

static uint32_t find_version(const placing *p, uint32_t value, const weft_spec *spec)
{
    const weft_plan *plan = p->plan;
    const bool by_stretch = is_dropped_between_phases(plan, value) ||
                            has_window(spec, type_of(plan, value)->shape.n_dims);
    for (uint32_t id = p->primary[value]; id; id = plan->placed[id].next) {
        const weft_placed *placed = &plan->placed[id];
        if (by_stretch && placed->home == WEFT_TEMPORARY && placed->stretch != p->stretch) continue;
        if (weft_spec_equal(&placed->spec, spec, placed->type.shape.n_dims)) return id;
    }
    return 0;
}

static uint32_t add_version(placing *p, uint32_t value, const weft_spec *spec, weft_phase phase)
{
    weft_placed placed = {.value = value,
                          .type = *type_of(p->plan, value),
                          .spec = *spec,
                          .phase = (uint8_t)phase,
                          .stretch = p->stretch};
    uint32_t id = weft_plan_place(p->plan, &placed);
    if (!id) {
        weft_fail_memory(p->error, sizeof placed);
        return 0;
    }
    uint32_t first = p->primary[value];
    if (!first) {
        p->primary[value] = id;
    } else {
        p->plan->placed[id].next = p->plan->placed[first].next;
        p->plan->placed[first].next = id;
    }
    return id;
}

static weft_step_reason why(const placing *p, const weft_placed *source, const weft_node *asking)
{
    if (source->spec.partial && source->reason) return WEFT_BECAUSE_PARTIAL;
    if (p->is_end) return WEFT_BECAUSE_OUTPUT;
    return asking->op == &weft_op_assign ? WEFT_BECAUSE_STORE : WEFT_BECAUSE_OPERAND;
}

/* Why a conversion is there: how its source came to be partial, or what the asking op needs. */
static const char *reason_for(placing *p, uint32_t from, const weft_spec *to,
                              const weft_node *asking)
{
    if (p->draft) return "a draft";
    weft_plan *plan = p->plan;
    const weft_placed *source = &plan->placed[from];
    if (source->spec.partial && source->reason) return source->reason;
    char place[160], where[240];
    weft_origin_print(asking, place, sizeof place);
    weft_spec_print(to, plan->mesh, &source->type.shape, where, sizeof where);
    if (p->is_end) return weft_arena_text(plan->arena, "it is read after the run as %s", where);
    return weft_arena_text(plan->arena, "%s needs it as %s", place, where);
}

static void add_exchanges(placing *p, const weft_type *type, const weft_spec *from,
                          const weft_spec *to)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    weft_exchange exchange;
    const weft_plan *plan = p->plan;
    const int n = weft_convert_plan(plan->mesh, &type->shape, from, to, steps);
    for (int s = 0; s < n; s++) {
        if (!weft_convert_exchange(plan->mesh, type, &steps[s], 0, &exchange)) continue;
        p->draft->exchange += weft_exchange_price(plan, &plan->cost, &exchange);
        p->draft->link_bytes += exchange.link_bytes;
        p->draft->wire_bytes +=
            weft_convert_bytes(plan->mesh, &type->shape, type->dtype, &steps[s], 0);
        p->draft->n_exchanges++;
    }
}

static uint32_t convert(placing *p, uint32_t from, const weft_spec *spec, uint32_t asking)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[asking];
    uint32_t value = plan->placed[from].value;
    uint32_t to = add_version(p, value, spec, node->phase);
    if (!to) return 0;
    if (p->draft) add_exchanges(p, type_of(plan, value), &plan->placed[from].spec, spec);
    weft_step step = {.kind = WEFT_STEP_CONVERT,
                      .phase = node->phase,
                      .node = asking,
                      .n_in = 1,
                      .n_out = 1,
                      .in = &from,
                      .out = &to,
                      .why = (uint8_t)why(p, &plan->placed[from], node),
                      .reason = reason_for(p, from, spec, node)};
    if (!step.reason) {
        weft_fail_memory(p->error, sizeof step);
        return 0;
    }
    if (plan->placed[from].spec.partial) step.node = plan->graph->tensors[value].node;
    if (!weft_plan_step(plan, &step)) {
        weft_fail_memory(p->error, sizeof step);
        return 0;
    }
    plan->placed[to].reason = plan->placed[from].reason;
    return to;
}

/* Make the first version one that is not partial: everybody after this starts from it. */
static uint32_t finish(placing *p, uint32_t value, uint32_t asking)
{
    const weft_spec *goal = &p->ahead.goal[value];
    uint32_t partial = p->primary[value];
    uint32_t id = find_version(p, value, goal);
    if (!id) id = convert(p, partial, goal, asking);
    if (!id) return 0;
    for (uint32_t at = partial; at; at = p->plan->placed[at].next) /* unlink, then put in front */
        if (p->plan->placed[at].next == id) p->plan->placed[at].next = p->plan->placed[id].next;
    p->plan->placed[id].next = partial;
    p->primary[value] = id;
    return id;
}

/* The first version of those that are partial as `wanted` is over most axes, and otherwise over fewest. */
static uint32_t find_partial(const placing *p, uint32_t value, const weft_spec *wanted)
{
    uint32_t found = 0;
    int best = -2 * WEFT_MAX_AXES;
    for (uint32_t id = p->primary[value]; id; id = p->plan->placed[id].next) {
        const weft_spec *spec = &p->plan->placed[id].spec;
        if (has_window(spec, type_of(p->plan, value)->shape.n_dims)) continue; /* overlaps */
        const uint8_t serves =
            spec->combine == wanted->combine ? spec->partial & wanted->partial : 0;
        const int fits =
            __builtin_popcount(serves) - __builtin_popcount(spec->partial & (uint8_t)~serves);
        if (fits > best) best = fits, found = id;
    }
    return found;
}

static uint32_t generate(placing *p, uint32_t value, const weft_spec *spec, uint32_t asking);

/* The version of a value in `spec`, made if need be. 0 on failure. Who needs some axes partial gets a version of his
 * own; who needs all finished has it done for everybody. */
static uint32_t want(placing *p, uint32_t value, const weft_spec *spec, uint32_t asking)
{
    uint32_t id = find_version(p, value, spec);
    if (id) return id;
    if (weft_is_generated(p->plan, value)) return generate(p, value, spec, asking);
    uint32_t from = spec->partial ? find_partial(p, value, spec) : p->primary[value];
    if (!spec->partial && p->plan->placed[from].spec.partial) {
        from = finish(p, value, asking);
        if (!from) return 0;
        id = find_version(p, value, spec);
        if (id) return id;
    }
    return convert(p, from, spec, asking);
}

/* What has no operands is made where it is needed. Zeros are a partial sum of zero as they are; anything else is made
 * whole, and counted once. */
static uint32_t generate(placing *p, uint32_t value, const weft_spec *spec, uint32_t asking)
{
    weft_plan *plan = p->plan;
    const uint32_t id = plan->graph->tensors[value].node;
    const weft_node *node = &plan->graph->nodes[id];
    weft_site site;
    weft_site_of(plan->graph, node, &site);
    if (spec->partial && !(node->op->is_zero && node->op->is_zero(&site))) {
        weft_spec whole = *spec;
        whole.partial = 0;
        whole.combine = WEFT_NOT_PARTIAL;
        const uint32_t from = want(p, value, &whole, asking);
        return from ? convert(p, from, spec, asking) : 0;
    }
    uint32_t made = add_version(p, value, spec, plan->graph->nodes[asking].phase);
    const weft_step step = {.kind = WEFT_STEP_KERNEL,
                            .phase = plan->graph->nodes[asking].phase,
                            .node = id,
                            .n_out = 1,
                            .out = &made};
    if (!made) return 0;
    if (weft_plan_step(plan, &step)) return made;
    weft_fail_memory(p->error, sizeof step);
    return 0;
}

/* ---- one node -------------------------------------------------------------------------------- */

static void states_of(const weft_plan *plan, const weft_spec *spec, int n_dims, int8_t *states)
{
    for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
        states[a] = (int8_t)weft_spec_state(spec, n_dims, a);
}

/* Whether the result goes where the operand is: what has become narrower is converted when somebody needs it elsewhere; what
 * becomes wider, before. Unless somebody says of the result itself where it should be. */
static bool lies_as_operand(const weft_plan *plan, const weft_node *node)
{
    const weft_tensor *result = &plan->graph->tensors[node->out];
    return node->op->recodes && !result->placement && !result->place_as &&
           !weft_is_generated(plan, node->in[0]) &&
           weft_dtype_bytes(result->type.dtype) <
               weft_dtype_bytes(type_of(plan, node->in[0])->dtype);
}

static void follow(const weft_plan *plan, const weft_holding *operand, weft_holding *result)
{
    for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
        result->finished[a] =
            operand->now[a] == WEFT_PARTIAL ? operand->finished[a] : operand->now[a];
}

static void describe(const placing *p, const weft_node *node, weft_choice_in *in)
{
    const weft_plan *plan = p->plan;
    for (int i = 0; i < node->n_in; i++) {
        const uint32_t value = node->in[i];
        weft_holding *holding = &in->in[i];
        weft_ahead_of(plan, &p->ahead, value, holding);
        holding->readers = p->readers[value];
        const uint32_t first = p->primary[value]; /* 0: generated, and nobody has needed it yet */
        const weft_spec *spec =
            holding->is_generated ? &p->ahead.goal[value] : &plan->placed[first].spec;
        holding->combine = spec->combine;
        states_of(plan, spec, type_of(plan, value)->shape.n_dims, holding->now);
    }
    for (int o = 0; o < node->n_out; o++)
        weft_ahead_of(plan, &p->ahead, node->out + (uint32_t)o, &in->out[o]);
    if (lies_as_operand(plan, node)) follow(plan, &in->in[0], &in->out[0]);
}

/* Dim d of an operand as the window of factor f shows it, unless every rank has all of that in its own block. */
static void show(const weft_choice_in *in, int operand, int f, int d, weft_spec *spec)
{
    const weft_shape *shape = &in->site->in[operand].shape;
    spec->window[d] = in->factors->window[f][operand];
    if (weft_window_is_within(spec, in->plan->mesh, shape, d)) spec->window[d] = (weft_window){0};
}

/* From states per axis to a spec: the axes of each dim in the order of its direction. operand: -1 for a result, which is
 * made without windows. */
static void spec_from(const weft_choice_in *in, const weft_choice *choice, int operand,
                      const int8_t *states, weft_spec *spec)
{
    const weft_mesh *mesh = in->plan->mesh;
    memset(spec, 0, sizeof *spec);
    uint32_t axes_of[WEFT_MAX_DIMS] = {0};
    int factor_of[WEFT_MAX_DIMS] = {0};
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (states[a] == WEFT_PARTIAL) spec->partial |= (uint8_t)(1u << a);
        if (states[a] < 0) continue;
        axes_of[states[a]] |= 1u << a;
        factor_of[states[a]] = choice->factor[a];
    }
    if (spec->partial) spec->combine = choice->combine; /* of operands as of results */
    for (int d = 0; d < WEFT_MAX_DIMS; d++) {
        if (!axes_of[d]) continue;
        const weft_factor *factor = &in->factors->factors[factor_of[d]];
        spec->n_split[d] = (int8_t)weft_layout_order(
            in->plan->layout, mesh, weft_factor_name(in->site, factor), axes_of[d], spec->split[d]);
        if (operand >= 0 && in->factors->window[factor_of[d]][operand].lead != 0)
            show(in, operand, factor_of[d], d, spec);
    }
}

static const char *dims_reason(placing *p, const weft_choice_in *in, const weft_choice *choice)
{
    const weft_mesh *mesh = p->plan->mesh;
    const char *text = NULL;
    if (p->draft) return NULL;
    for (int a = 0; a < weft_mesh_n_axes(mesh); a++) {
        if (choice->factor[a] < 0) continue;
        const weft_factor *factor = &in->factors->factors[choice->factor[a]];
        if (factor->out[0] >= 0) continue;
        text = weft_arena_text(p->plan->arena, "%s%s%s is contracted and split over %s",
                               text ? text : "", text ? ", " : "",
                               weft_factor_name(in->site, factor), weft_mesh_axis_name(mesh, a));
    }
    return text;
}

/* A result may be partial over one axis because of this op, over another because of an operand. */
static const char *both_reasons(placing *p, const char *own, const char *inherited)
{
    if (!own || !inherited || strcmp(own, inherited) == 0) return own ? own : inherited;
    return weft_arena_text(p->plan->arena, "%s, %s", inherited, own);
}

static weft_status place_op(placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id];
    weft_site site;
    weft_site_of(plan->graph, node, &site);
    weft_factors factors;
    weft_choice_in in = {
        .plan = plan, .node = id, .site = &site, .is_draft = p->draft != NULL, .factors = &factors};
    weft_choice choice;
    describe(p, node, &in);
    node->op->factors(&site, &factors);
    WEFT_TRY(weft_choose(&in, &choice, p->error));
    p->flops += choice.flops;

    uint32_t operands[WEFT_MAX_IN], results[WEFT_MAX_OUT];
    weft_step step = {.kind = WEFT_STEP_KERNEL,
                      .phase = node->phase,
                      .node = id,
                      .n_in = node->n_in,
                      .n_out = node->n_out,
                      .in = operands,
                      .out = results};
    const char *reason = dims_reason(p, &in, &choice);
    for (int i = 0; i < node->n_in; i++) {
        weft_spec spec;
        spec_from(&in, &choice, i, choice.need[i], &spec);
        operands[i] = want(p, node->in[i], &spec, id);
        if (!operands[i]) return p->error->status;
        if (spec.partial) reason = both_reasons(p, reason, plan->placed[operands[i]].reason);
    }
    for (int o = 0; o < node->n_out; o++) {
        weft_spec spec;
        spec_from(&in, &choice, -1, choice.make[o], &spec);
        results[o] = add_version(p, node->out + (uint32_t)o, &spec, node->phase);
        if (!results[o]) return p->error->status;
        plan->placed[results[o]].reason = reason;
        weft_ahead_made(&p->ahead, node->out + (uint32_t)o, &spec);
    }
    return weft_plan_step(plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

/* ---- memory that outlives a run -------------------------------------------------------------- */

static weft_status place_home(placing *p, uint32_t id, weft_home home)
{
    uint32_t value = p->plan->graph->nodes[id].out;
    weft_spec spec;
    weft_status status = home == WEFT_VARIABLE_HOME
                             ? weft_home_spec(p->plan, value, &spec, p->error)
                             : weft_wanted_spec(p->plan, value, &spec, p->error);
    WEFT_TRY(status);
    uint32_t placed = add_version(p, value, &spec, p->plan->graph->nodes[id].phase);
    if (!placed) return p->error->status;
    p->plan->placed[placed].home = home;
    p->plan->kept[value] = placed;
    return WEFT_OK;
}

static weft_status copy_into(placing *p, uint32_t id, uint32_t from, uint32_t to,
                             weft_step_reason why)
{
    weft_step step = {.kind = WEFT_STEP_COPY,
                      .phase = WEFT_UPDATE,
                      .node = id,
                      .n_in = 1,
                      .n_out = 1,
                      .in = &from,
                      .out = &to,
                      .why = (uint8_t)why};
    return weft_plan_step(p->plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

/* A run leaves one value in a variable: with two, which one would be chance. */
static weft_status check_writes_once(placing *p, uint32_t id)
{
    const weft_graph *graph = p->plan->graph;
    const weft_node *node = &graph->nodes[id];
    uint32_t *writer = &p->writer[node->in[0]];
    if (*writer) {
        char first[160], second[160];
        weft_origin_print(&graph->nodes[*writer], first, sizeof first);
        weft_origin_print(node, second, sizeof second);
        return weft_fail(p->error, WEFT_USAGE,
                         "variable %s is assigned twice in one program: %s and %s; a run leaves "
                         "one value in it. Assign once, or compile two programs that share it",
                         graph->tensors[node->in[0]].name, first, second);
    }
    *writer = id;
    return WEFT_OK;
}

static weft_status place_store(placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id];
    WEFT_TRY(check_writes_once(p, id));
    uint32_t variable = plan->kept[node->in[0]];
    weft_spec spec = plan->placed[variable].spec;
    uint32_t from = want(p, node->in[1], &spec, id);
    if (!from) return p->error->status;
    if (plan->placed[from].home ==
        WEFT_VARIABLE_HOME) { /* its old value, whatever is stored there */
        uint32_t old = add_version(p, node->in[1], &spec, WEFT_UPDATE);
        if (!old) return p->error->status;
        WEFT_TRY(copy_into(p, id, from, old, WEFT_BECAUSE_OLD));
        from = old;
    }
    return copy_into(p, id, from, variable, WEFT_BECAUSE_STORE);
}

static weft_status place_node(placing *p, uint32_t id)
{
    const weft_op *op = p->plan->graph->nodes[id].op;
    if (op == &weft_op_input) return place_home(p, id, WEFT_INPUT_HOME);
    if (op == &weft_op_variable) return place_home(p, id, WEFT_VARIABLE_HOME);
    if (op == &weft_op_assign) return place_store(p, id);
    if (op == &weft_op_group) return WEFT_OK;
    if (weft_is_generated(p->plan, p->plan->graph->nodes[id].out))
        return WEFT_OK; /* where needed */
    return place_op(p, id);
}

/* What is read after a run: in the spec its names want. */
static weft_status place_outputs(placing *p)
{
    weft_plan *plan = p->plan;
    p->is_end = true;
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++) {
        const weft_node *node = weft_node_of(plan->graph, value);
        if (!p->ahead.is_output[value] || node->op->makes_token || plan->kept[value]) continue;
        weft_spec wanted;
        WEFT_TRY(weft_wanted_spec(plan, value, &wanted, p->error));
        uint32_t placed = want(p, value, &wanted, plan->graph->tensors[value].node);
        if (!placed) return p->error->status;
        plan->placed[placed].is_output = true;
        plan->kept[value] = placed;
    }
    return WEFT_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static weft_status place_all(placing *p, weft_outlook outlook)
{
    weft_plan *plan = p->plan;
    const weft_graph *graph = plan->graph;
    memset(p->primary, 0, graph->n_tensors * sizeof *p->primary);
    memset(p->writer, 0, graph->n_tensors * sizeof *p->writer);
    memset(plan->kept, 0, graph->n_tensors * sizeof *plan->kept);
    p->is_end = false;
    p->flops = 0;
    WEFT_TRY(weft_look_ahead(plan, outlook, &p->ahead, p->error));
    p->stretch = 0;
    for (uint32_t id = 1, last = 1; id < graph->n_nodes; last = id++) {
        p->stretch += graph->nodes[id].phase != graph->nodes[last].phase;
        WEFT_TRY(place_node(p, id));
    }
    return place_outputs(p);
}

/* What a draft costs is added up in it. */
static weft_status place_draft(void *placing_, weft_outlook outlook, weft_planned_draft *draft)
{
    placing *p = placing_;
    p->draft = draft;
    const weft_status status = place_all(p, outlook);
    p->draft = NULL;
    draft->work = weft_work_price(&p->plan->cost, p->flops);
    return status;
}

weft_status weft_pass_place(weft_plan *plan, weft_error *error)
{
    weft_error own = {0};
    const weft_graph *graph = plan->graph;
    weft_outlook outlook = {false, false};
    placing p = {.plan = plan, .error = error ? error : &own};
    p.primary = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p.primary);
    p.readers = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p.readers);
    p.writer = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p.writer);
    bool *is_output = weft_arena_take(plan->arena, graph->n_tensors * sizeof *is_output);
    if (!p.primary || !p.readers || !p.writer || !is_output)
        return weft_fail_memory(error, graph->n_tensors * sizeof *p.primary);
    for (uint32_t value = 1; value < graph->n_tensors; value++)
        is_output[value] =
            plan->kept[value] != 0; /* until now a mark; from now on a placed tensor */
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        for (int i = 0; i < graph->nodes[id].n_in; i++)
            p.readers[graph->nodes[id].in[i]]++;
    WEFT_TRY(weft_ask_policy(plan, p.error));
    WEFT_TRY(weft_find_skipped(plan, p.error));
    WEFT_TRY(weft_ahead_begin(plan, is_output, p.readers, &p.ahead, p.error));
    if (weft_mesh_n_ranks(plan->mesh) > 1)
        WEFT_TRY(weft_compare_drafts(plan, place_draft, &p, &outlook, p.error));
    return place_all(&p, outlook);
}
