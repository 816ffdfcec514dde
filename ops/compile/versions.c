/* versions: the specs in which a value exists: its first one, and what is made of it by conversion steps.
 *
 * A partial value is finished once, into the spec it goes to, the first time that a reader cannot use it as it is;
 * ops without operands are made in every spec that is needed. A version is found again by its possible readers: all,
 * or the body of the scan that it is of; a phase alone, where it is not kept.
 */
#include "place.h"

#include <string.h>

static const weft_type *type_of(const weft_plan *plan, uint32_t value)
{
    return &plan->graph->tensors[value].type;
}

/* ZeRO-3 gathers a parameter for the forward pass and again for the backward pass, and keeps
 * neither; of a batch that is gone through part by part, for both of each. */
static bool is_dropped_between_phases(const weft_plan *plan, uint32_t value)
{
    return weft_node_of(plan->graph, value)->op == &weft_op_variable &&
           weft_layout_stage(plan->layout) == 3;
}

/* Can what is made now read it? What is of a scan's body is there in that body alone. */
static bool is_in_sight(const weft_placing *p, const weft_placed *placed)
{
    return weft_scan_holds(p->plan->graph, placed->scan, p->scan);
}

/* What a window shows overlaps: it serves the phase that asks for it, as what ZeRO-3 gathers, and is not kept from the forward
 * pass to the backward pass beside the value itself. */
static bool has_window(const weft_spec *spec, int n_dims)
{
    for (int d = 0; d < n_dims; d++)
        if (spec->window[d].lead != 0) return true;
    return false;
}

static uint32_t find_version(const weft_placing *p, uint32_t value, const weft_spec *spec)
{
    const weft_plan *plan = p->plan;
    const bool by_stretch = is_dropped_between_phases(plan, value) ||
                            has_window(spec, type_of(plan, value)->shape.n_dims);
    for (uint32_t id = p->primary[value]; id; id = plan->placed[id].next) {
        const weft_placed *placed = &plan->placed[id];
        if (by_stretch && placed->home == WEFT_TEMPORARY && placed->stretch != p->stretch) continue;
        if (!is_in_sight(p, placed)) continue;
        if (weft_spec_equal(&placed->spec, spec, placed->type.shape.n_dims)) return id;
    }
    return 0;
}

/* The version that others are made from, and how it lies: all readers ask. */
static void set_primary(weft_placing *p, uint32_t value, uint32_t id)
{
    const weft_placed *placed = &p->plan->placed[id];
    const weft_spec *spec = &placed->spec;
    int8_t *now = p->now[value];
    p->primary[value] = id;
    for (int a = 0; a < weft_mesh_n_axes(p->plan->mesh); a++)
        now[a] = spec->partial >> a & 1 ? WEFT_PARTIAL : WEFT_REPLICATED;
    for (int d = 0; d < placed->type.shape.n_dims; d++)
        for (int i = 0; i < spec->n_split[d]; i++)
            now[spec->split[d][i]] = (int8_t)d;
}

uint32_t weft_add_version(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t scan,
                          weft_phase phase)
{
    return weft_add_version_in(p, value, spec, NULL, scan, phase);
}

uint32_t weft_add_version_in(weft_placing *p, uint32_t value, const weft_spec *spec,
                             const weft_box *box, uint32_t scan, weft_phase phase)
{
    weft_placed placed = {.value = value,
                          .type = *type_of(p->plan, value),
                          .spec = *spec,
                          .scan = scan,
                          .phase = (uint8_t)phase,
                          .stretch = p->stretch};
    uint32_t id = weft_plan_place(p->plan, &placed, box);
    if (!id) {
        weft_fail_memory(p->error, sizeof placed);
        return 0;
    }
    uint32_t first = p->primary[value];
    if (!first) {
        set_primary(p, value, id);
    } else {
        p->plan->placed[id].next = p->plan->placed[first].next;
        p->plan->placed[first].next = id;
    }
    return id;
}

static weft_step_reason why(const weft_placing *p, const weft_placed *source,
                            const weft_node *asking)
{
    if (source->spec.partial && source->reason) return WEFT_BECAUSE_PARTIAL;
    if (p->is_end) return WEFT_BECAUSE_OUTPUT;
    return asking->op == &weft_op_assign ? WEFT_BECAUSE_STORE : WEFT_BECAUSE_OPERAND;
}

/* Why a conversion is there: how its source came to be partial, or what the asking op needs. */
static const char *reason_for(weft_placing *p, uint32_t from, const weft_spec *to,
                              const weft_node *asking)
{
    if (p->candidate) return "a candidate";
    weft_plan *plan = p->plan;
    const weft_placed *source = &plan->placed[from];
    if (source->spec.partial && source->reason) return source->reason;
    char place[160], where[240];
    weft_origin_print(asking, place, sizeof place);
    weft_spec_print(to, plan->mesh, &source->type.shape, where, sizeof where);
    if (p->is_end) return weft_arena_text(plan->arena, "it is read after the run as %s", where);
    return weft_arena_text(plan->arena, "%s needs it as %s", place, where);
}

static void add_exchanges(weft_placing *p, const weft_type *type, const weft_spec *from,
                          const weft_spec *to, double trips)
{
    weft_convert_step steps[WEFT_MAX_CONVERT];
    weft_exchange exchange;
    const weft_plan *plan = p->plan;
    const int n = weft_convert_plan(plan->mesh, &type->shape, from, to, steps);
    for (int s = 0; s < n; s++) {
        if (!weft_convert_exchange(plan->mesh, type, &steps[s], 0, &exchange)) continue;
        p->candidate->exchange += trips * weft_exchange_price(plan, &plan->build.cost, &exchange);
        p->candidate->link_bytes += trips * exchange.link_bytes;
        p->candidate->wire_bytes += (int64_t)trips * weft_convert_bytes(plan->mesh, &type->shape,
                                                                        type->dtype, &steps[s], 0);
        p->candidate->n_exchanges++;
    }
}

/* It is made where its source is: outside the scan in whose body it is asked for, if that is outside. But what ZeRO-3 gathers
 * is gathered in every trip, and lives no longer. */
static uint32_t convert(weft_placing *p, uint32_t from, const weft_spec *spec, uint32_t asking)
{
    weft_plan *plan = p->plan;
    const weft_node *node = &plan->graph->nodes[asking];
    uint32_t value = plan->placed[from].value;
    const uint32_t scan =
        is_dropped_between_phases(plan, value) ? p->scan : plan->placed[from].scan;
    uint32_t to = weft_add_version(p, value, spec, scan, node->phase);
    if (!to) return 0;
    if (p->candidate)
        add_exchanges(p, type_of(plan, value), &plan->placed[from].spec, spec,
                      weft_trips_of(plan->graph, scan));
    weft_step step = {.kind = WEFT_STEP_CONVERT,
                      .phase = node->phase,
                      .node = asking,
                      .scan = scan,
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
static uint32_t finish(weft_placing *p, uint32_t value, uint32_t asking)
{
    const weft_spec *goal = &p->ahead.goal[value];
    uint32_t partial = p->primary[value];
    uint32_t id = find_version(p, value, goal);
    if (!id) id = convert(p, partial, goal, asking);
    if (!id) return 0;
    for (uint32_t at = partial; at; at = p->plan->placed[at].next) /* unlink, then put in front */
        if (p->plan->placed[at].next == id) p->plan->placed[at].next = p->plan->placed[id].next;
    p->plan->placed[id].next = partial;
    set_primary(p, value, id);
    return id;
}

/* The first version of those that are partial as `wanted` is over most axes, and otherwise over fewest. */
static uint32_t find_partial(const weft_placing *p, uint32_t value, const weft_spec *wanted)
{
    uint32_t found = 0;
    int best = -2 * WEFT_MAX_AXES;
    for (uint32_t id = p->primary[value]; id; id = p->plan->placed[id].next) {
        const weft_spec *spec = &p->plan->placed[id].spec;
        if (has_window(spec, type_of(p->plan, value)->shape.n_dims)) continue; /* overlaps */
        if (!is_in_sight(p, &p->plan->placed[id])) continue;
        const uint8_t serves =
            spec->combine == wanted->combine ? spec->partial & wanted->partial : 0;
        const int fits =
            __builtin_popcount(serves) - __builtin_popcount(spec->partial & (uint8_t)~serves);
        if (fits > best) best = fits, found = id;
    }
    return found;
}

static uint32_t generate(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t asking);

/* What is partial by another combine, as a maximum that goes into a carried sum, is none of its parts. */
static bool is_to_be_finished(const weft_spec *spec, const weft_spec *wanted)
{
    return spec->partial && (!wanted->partial || spec->combine != wanted->combine);
}

/* The version of a value in `spec`, made if need be. 0 on failure. Who needs some axes partial gets a version of his
 * own; who needs all finished has it done for everybody. */
uint32_t weft_want(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t asking)
{
    uint32_t id = find_version(p, value, spec);
    if (id) return id;
    if (weft_is_generated(p->plan, value)) return generate(p, value, spec, asking);
    uint32_t from = spec->partial ? find_partial(p, value, spec) : p->primary[value];
    if (is_to_be_finished(&p->plan->placed[from].spec, spec)) {
        from = finish(p, value, asking);
        if (!from) return 0;
        id = find_version(p, value, spec);
        if (id) return id;
    }
    return convert(p, from, spec, asking);
}

/* A number, the same for all elements: to make it again costs less than to keep it. */
static bool is_constant(const weft_node *node)
{
    const weft_element_attributes *attributes = node->attributes;
    return node->op->element->index == WEFT_INDEX_NONE && attributes->random == 0;
}

/* What has no operands is made where it is needed, but outside of scans, if it is of the outside and no constant. Zeros are a
 * partial sum of zero as they are; anything else is made whole, and counted once. */
static uint32_t generate(weft_placing *p, uint32_t value, const weft_spec *spec, uint32_t asking)
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
        const uint32_t from = weft_want(p, value, &whole, asking);
        return from ? convert(p, from, spec, asking) : 0;
    }
    const uint32_t scan = is_constant(node) ? p->scan : node->scan;
    uint32_t made = weft_add_version(p, value, spec, scan, plan->graph->nodes[asking].phase);
    const weft_step step = {.kind = WEFT_STEP_KERNEL,
                            .phase = plan->graph->nodes[asking].phase,
                            .node = id,
                            .scan = scan,
                            .n_out = 1,
                            .out = &made};
    if (!made) return 0;
    if (weft_plan_step(plan, &step)) return made;
    weft_fail_memory(p->error, sizeof step);
    return 0;
}
