/* place: decide for every op how its work is cut, and convert operands to where they have to be.
 *
 * Names want a spec for every value; weft_lookahead_run says where each goes; weft_choose decides how
 * each op is cut; versions.c has the versions that every value exists in; this pass makes the steps.
 * Of ops it knows by name those that stand for memory and those of scans (place_scan.c): of others
 * factors say all.
 */
#include "place.h"

#include <string.h>

static const weft_type *type_of(const weft_plan *plan, uint32_t value)
{
    return &plan->graph->tensors[value].type;
}

/* ---- one node -------------------------------------------------------------------------------- */

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

static void describe(const weft_placing *p, const weft_node *node, weft_choice_in *in)
{
    const weft_plan *plan = p->plan;
    for (int i = 0; i < node->n_in; i++) {
        const uint32_t value = node->in[i];
        weft_holding *holding = &in->in[i];
        weft_lookahead_of(plan, &p->ahead, value, holding);
        holding->readers = p->readers[value];
        const uint32_t first = p->primary[value]; /* 0: generated, and nobody has needed it yet */
        const weft_spec *spec =
            holding->is_generated ? &p->ahead.goal[value] : &plan->placed[first].spec;
        holding->combine = spec->combine;
        memcpy(holding->now, holding->is_generated ? p->ahead.finished[value] : p->now[value],
               sizeof holding->now);
    }
    for (int o = 0; o < node->n_out; o++)
        weft_lookahead_of(plan, &p->ahead, node->out + (uint32_t)o, &in->out[o]);
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

static const char *dims_reason(weft_placing *p, const weft_choice_in *in, const weft_choice *choice)
{
    const weft_mesh *mesh = p->plan->mesh;
    const char *text = NULL;
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

/* Is the reason `one`, of so many letters, among `reasons`? */
static bool has_reason(const char *reasons, const char *one, size_t letters)
{
    for (const char *at = reasons; at != NULL; at = strstr(at, ", ")) {
        at += at != reasons ? strlen(", ") : 0;
        if (strncmp(at, one, letters) == 0 && (at[letters] == ',' || at[letters] == '\0'))
            return true;
    }
    return false;
}

/* A result may be partial over one axis because of this op, over another because of an operand; a sum of many products for a
 * few reasons, each of which is said once. */
static const char *both_reasons(weft_placing *p, const char *own, const char *inherited)
{
    if (!own || !inherited) return own ? own : inherited;
    const char *all = inherited;
    for (const char *one = own, *next; one != NULL && all != NULL; one = next) {
        const char *end = strstr(one, ", ");
        const size_t letters = end != NULL ? (size_t)(end - one) : strlen(one);
        if (!has_reason(all, one, letters))
            all = weft_arena_text(p->plan->arena, "%s, %.*s", all, (int)letters, one);
        next = end != NULL ? end + strlen(", ") : NULL;
    }
    return all;
}

/* Where operands have to be, and results come to be: of all that are decided so. */
static weft_status find_specs(weft_placing *p, const weft_choice_in *in, weft_decided *decided)
{
    const weft_choice *choice = decided->choice;
    const int n_in = in->site->n_in, n_out = in->site->n_out;
    if (decided->in) return WEFT_OK;
    weft_arena *arena = weft_sites_arena(p->sites);
    weft_spec *specs = weft_arena_take(arena, (size_t)(n_in + n_out) * sizeof *specs);
    weft_box *boxes = weft_arena_take(arena, (size_t)n_out * sizeof *boxes);
    if (!specs || !boxes) return weft_fail_memory(p->error, (size_t)(n_in + n_out) * sizeof *specs);
    for (int i = 0; i < n_in; i++)
        spec_from(in, choice, i, choice->need[i], &specs[i]);
    for (int o = 0; o < n_out; o++) {
        spec_from(in, choice, -1, choice->make[o], &specs[n_in + o]);
        weft_spec_box(&specs[n_in + o], p->plan->mesh, &in->site->out[o].shape, 0, &boxes[o]);
    }
    decided->in = specs;
    decided->out = specs + n_in;
    decided->boxes = boxes;
    return WEFT_OK;
}

weft_status weft_place_op(weft_placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id];
    const weft_scopes scopes = weft_scopes_of(plan->graph, node);
    weft_choice_in in = {.plan = plan, .node = id, .is_draft = p->candidate != NULL};
    weft_decided *decided;
    describe(p, node, &in);
    WEFT_TRY(weft_decide(p->sites, &in, &decided, p->error));
    WEFT_TRY(find_specs(p, &in, decided));
    p->flops += decided->choice->flops * weft_trips_of(plan->graph, scopes.work);

    uint32_t operands[WEFT_MAX_IN], results[WEFT_MAX_OUT];
    weft_step step = {.kind = scopes.kind,
                      .phase = node->phase,
                      .node = id,
                      .scan = scopes.work,
                      .n_in = node->n_in,
                      .n_out = node->n_out,
                      .in = operands,
                      .out = results};
    if (!p->candidate && !decided->reason) decided->reason = dims_reason(p, &in, decided->choice);
    const char *reason = p->candidate ? NULL : decided->reason;
    p->scan = scopes.in;
    for (int i = 0; i < node->n_in; i++) {
        const weft_spec *spec = &decided->in[i];
        operands[i] = weft_want(p, node->in[i], spec, id);
        if (!operands[i]) return p->error->status;
        if (spec->partial) reason = both_reasons(p, reason, plan->placed[operands[i]].reason);
    }
    for (int o = 0; o < node->n_out; o++) {
        const weft_spec *spec = &decided->out[o];
        results[o] = weft_add_version_in(p, node->out + (uint32_t)o, spec, &decided->boxes[o],
                                         scopes.out, node->phase);
        if (!results[o]) return p->error->status;
        plan->placed[results[o]].reason = reason;
        weft_lookahead_made(&p->ahead, node->out + (uint32_t)o, spec);
    }
    return weft_plan_step(plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

/* ---- memory that outlives a run -------------------------------------------------------------- */

static weft_status place_home(weft_placing *p, uint32_t id, weft_home home)
{
    uint32_t value = p->plan->graph->nodes[id].out;
    weft_spec spec;
    weft_status status = home == WEFT_VARIABLE_HOME
                             ? weft_home_spec(p->plan, value, &spec, p->error)
                             : weft_wanted_spec(p->plan, value, &spec, p->error);
    WEFT_TRY(status);
    uint32_t placed = weft_add_version(p, value, &spec, 0, p->plan->graph->nodes[id].phase);
    if (!placed) return p->error->status;
    p->plan->placed[placed].home = home;
    p->plan->kept[value] = placed;
    return WEFT_OK;
}

weft_status weft_copy_into(weft_placing *p, uint32_t id, uint32_t from, uint32_t to,
                           weft_step_reason why)
{
    const weft_node *node = &p->plan->graph->nodes[id];
    weft_step step = {.kind = WEFT_STEP_COPY,
                      .phase = node->op == &weft_op_assign ? (uint8_t)WEFT_UPDATE : node->phase,
                      .node = id,
                      .scan = node->scan,
                      .n_in = 1,
                      .n_out = 1,
                      .in = &from,
                      .out = &to,
                      .why = (uint8_t)why};
    return weft_plan_step(p->plan, &step) ? WEFT_OK : weft_fail_memory(p->error, sizeof step);
}

/* A run leaves one value in a variable: with two, which one would be chance. */
static weft_status check_writes_once(weft_placing *p, uint32_t id)
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

static weft_status place_store(weft_placing *p, uint32_t id)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[id];
    WEFT_TRY(check_writes_once(p, id));
    p->scan = 0;
    uint32_t variable = plan->kept[node->in[0]];
    weft_spec spec = plan->placed[variable].spec;
    uint32_t from = weft_want(p, node->in[1], &spec, id);
    if (!from) return p->error->status;
    if (plan->placed[from].home ==
        WEFT_VARIABLE_HOME) { /* its old value, whatever is stored there */
        uint32_t old = weft_add_version(p, node->in[1], &spec, 0, WEFT_UPDATE);
        if (!old) return p->error->status;
        WEFT_TRY(weft_copy_into(p, id, from, old, WEFT_BECAUSE_OLD));
        from = old;
    }
    return weft_copy_into(p, id, from, variable, WEFT_BECAUSE_STORE);
}

static weft_status place_node(weft_placing *p, uint32_t id)
{
    const weft_op *op = p->plan->graph->nodes[id].op;
    if (op == &weft_op_input) return place_home(p, id, WEFT_INPUT_HOME);
    if (op == &weft_op_variable) return place_home(p, id, WEFT_VARIABLE_HOME);
    if (op == &weft_op_assign) return place_store(p, id);
    if (op == &weft_op_group) return WEFT_OK;
    if (op == &weft_op_scan_carry) return weft_place_carry(p, id);
    if (op == &weft_op_scan_last) return weft_place_last(p, id);
    if (op == &weft_op_scan_guard) return weft_place_guard(p, id);
    if (op == &weft_op_scan_trip || op == &weft_op_scan_next || op == &weft_op_scan_stack)
        return WEFT_OK; /* where the body begins, and where it ends */
    if (weft_is_generated(p->plan, p->plan->graph->nodes[id].out))
        return WEFT_OK; /* where needed */
    return weft_place_op(p, id);
}

/* What is read after a run: in the spec its names want. */
static weft_status place_outputs(weft_placing *p)
{
    weft_plan *plan = p->plan;
    p->is_end = true;
    p->scan = 0;
    for (uint32_t value = 1; value < plan->graph->n_tensors; value++) {
        const weft_node *node = weft_node_of(plan->graph, value);
        if (!p->ahead.is_output[value] || node->op->makes_token || plan->kept[value]) continue;
        weft_spec wanted;
        WEFT_TRY(weft_wanted_spec(plan, value, &wanted, p->error));
        uint32_t placed = weft_want(p, value, &wanted, plan->graph->tensors[value].node);
        if (!placed) return p->error->status;
        plan->placed[placed].is_output = true;
        plan->kept[value] = placed;
    }
    return WEFT_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static weft_status place_once(weft_placing *p)
{
    weft_plan *plan = p->plan;
    const weft_graph *graph = plan->graph;
    memset(p->primary, 0, graph->n_tensors * sizeof *p->primary);
    memset(p->writer, 0, graph->n_tensors * sizeof *p->writer);
    memset(plan->kept, 0, graph->n_tensors * sizeof *plan->kept);
    plan->n_placed = plan->n_steps = plan->n_decisions = 0;
    p->is_end = p->is_again = false;
    p->flops = 0;
    weft_ahead_anew(plan, &p->ahead);
    p->stretch = 0;
    for (uint32_t id = 1, last = 1; id < graph->n_nodes; last = id++) {
        p->stretch += graph->nodes[id].phase != graph->nodes[last].phase;
        WEFT_TRY(weft_place_fences(p, id));
        WEFT_TRY(place_node(p, id));
    }
    WEFT_TRY(weft_place_fences(p, graph->n_nodes));
    return place_outputs(p);
}

/* Once more, where a sum over all trips of a scan has turned out to be one that does not stay partial. */
static weft_status place_all(weft_placing *p)
{
    const weft_planned_candidate empty =
        p->candidate != NULL ? *p->candidate : (weft_planned_candidate){0};
    weft_place_scans_anew(p);
    WEFT_TRY(place_once(p));
    if (!p->is_again) return WEFT_OK;
    if (p->candidate != NULL) *p->candidate = empty;
    return place_once(p);
}

/* Unless that was done last: placing changes nothing of it that weft_ahead_anew does not put right. */
static weft_status look(weft_placing *p, weft_outlook outlook)
{
    const weft_outlook *last = &p->looked;
    if (p->has_looked && last->readers == outlook.readers && last->held == outlook.held &&
        last->sums == outlook.sums)
        return WEFT_OK;
    p->looked = outlook;
    p->has_looked = true;
    return weft_lookahead_run(p->plan, outlook, &p->ahead, p->error);
}

static weft_status look_ahead(void *placing_, weft_outlook outlook, uint64_t *beliefs)
{
    weft_placing *p = placing_;
    WEFT_TRY(look(p, outlook));
    *beliefs = weft_ahead_fingerprint(p->plan, &p->ahead);
    return WEFT_OK;
}

/* What a candidate costs is added up in it. */
static weft_status place_draft(void *placing_, weft_planned_candidate *candidate)
{
    weft_placing *p = placing_;
    p->candidate = candidate;
    const weft_status status = place_all(p);
    p->candidate = NULL;
    candidate->work = weft_work_price(&p->plan->build.cost, p->flops);
    return status;
}

static weft_status place(weft_placing *p)
{
    weft_plan *plan = p->plan;
    const weft_graph *graph = plan->graph;
    weft_outlook outlook = {0};
    p->primary = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p->primary);
    p->now = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p->now);
    p->readers = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p->readers);
    p->writer = weft_arena_take(plan->arena, graph->n_tensors * sizeof *p->writer);
    bool *is_output = weft_arena_take(plan->arena, graph->n_tensors * sizeof *is_output);
    if (!p->primary || !p->now || !p->readers || !p->writer || !is_output)
        return weft_fail_memory(p->error, graph->n_tensors * sizeof *p->primary);
    for (uint32_t value = 1; value < graph->n_tensors; value++)
        is_output[value] =
            plan->kept[value] != 0; /* until now a mark; from now on a placed tensor */
    for (uint32_t id = 1; id < graph->n_nodes; id++)
        for (int i = 0; i < graph->nodes[id].n_in; i++)
            p->readers[graph->nodes[id].in[i]] += !weft_names_carry(&graph->nodes[id], i);
    WEFT_TRY(weft_ask_policy(plan, p->error));
    WEFT_TRY(weft_find_skipped(plan, p->error));
    WEFT_TRY(weft_lookahead_begin(plan, p->sites, is_output, p->readers, &p->ahead, p->error));
    WEFT_TRY(weft_place_scans_begin(p));
    if (weft_mesh_n_ranks(plan->mesh) > 1)
        WEFT_TRY(weft_compare_candidates(plan, look_ahead, place_draft, p, &outlook, p->error));
    WEFT_TRY(look(p, outlook));
    return place_all(p);
}

weft_status weft_pass_place(weft_plan *plan, weft_error *error)
{
    weft_error own = {0};
    weft_placing p = {.plan = plan, .error = error ? error : &own};
    WEFT_TRY(weft_sites_create(plan, &p.sites, p.error));
    const weft_status status = place(&p);
    weft_sites_destroy(&p.sites);
    return status;
}
