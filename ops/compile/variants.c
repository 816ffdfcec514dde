/* variants: ops that can be written in several ways where their operands are split (`variants` of the op's table): the ways are weighed by
 * prices, and the cheapest is what expand writes. An op and those that read its results, as attention and its gradient, are
 * weighed together and take the same variant: what the one has gathered serves the other.
 */
#include "variants.h"

#include <math.h>
#include <string.h>

/* Names and placements alone say where operands are, so all ranks agree. */
static int forms_of(const weft_plan *plan, const weft_node *node, weft_variant *variants)
{
    weft_spec in[WEFT_MAX_IN];
    weft_site site;
    uint32_t placed = 0;
    if (node->op->variants == NULL) return 0;
    memset(in, 0, sizeof in);
    weft_site_of(plan->graph, node, &site);
    for (int i = 0; i < node->n_in; i++) {
        const weft_tensor *tensor = &plan->graph->tensors[node->in[i]];
        placed |= (uint32_t)(tensor->placement || tensor->place_as) << i;
        if (weft_wanted_spec(plan, node->in[i], &in[i], NULL) != WEFT_OK) return 0;
    }
    return node->op->variants(&site, in, placed, plan->mesh, variants);
}

static double exchange_price(const weft_plan *plan, const weft_variant *variant, double bytes)
{
    const weft_exchange exchange = {.mesh = plan->mesh,
                                    .axes = variant->axes,
                                    .n_ranks = variant->n_ranks,
                                    .kind = variant->kind,
                                    .bytes = bytes,
                                    .link_bytes = bytes};
    return weft_exchange_price(plan, &plan->build.cost, &exchange);
}

/* What goes on beside work costs what it takes longer than that. */
static double price_of(const weft_plan *plan, const weft_variant *variant)
{
    const double meanwhile = weft_work_price(&plan->build.cost, variant->flops - variant->last);
    return exchange_price(plan, variant, variant->before) +
           fmax(exchange_price(plan, variant, variant->beside), meanwhile) +
           weft_work_price(&plan->build.cost, variant->last) +
           variant->n_exchanges * weft_latency_price(plan, variant->axes) +
           variant->copied / (2 * WEFT_COPIES_PER_BYTE);
}

static bool reads(const weft_node *node, const weft_node *of)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] >= of->out && node->in[i] < of->out + of->n_out) return true;
    return false;
}

/* The variants of one op, and of all that go with it. */
typedef struct weighing {
    int n;
    weft_planned_variant variants[WEFT_MAX_VARIANTS];
} weighing;

static void add(const weft_plan *plan, const weft_variant *variants, weighing *w)
{
    for (int i = 0; i < w->n; i++) {
        weft_planned_variant *to = &w->variants[i];
        to->name = variants[i].name;
        to->price += price_of(plan, &variants[i]);
        to->before_bytes += variants[i].before;
        to->beside_bytes += variants[i].beside;
        to->held_bytes = fmax(to->held_bytes, variants[i].held);
        to->n_exchanges += variants[i].n_exchanges;
    }
}

/* Does what reads its results go with an op? So it does where it has the same variants; others are weighed by themselves. */
static bool goes_with(const weft_plan *plan, const weft_node *other, const weft_node *node,
                      const weighing *w, weft_variant *variants)
{
    if (other->op->variants == NULL || !reads(other, node)) return false;
    bool alike = forms_of(plan, other, variants) == w->n;
    for (int i = 0; i < w->n && alike; i++)
        alike = strcmp(variants[i].name, w->variants[i].name) == 0;
    return alike;
}

static const char *axes_text(const weft_plan *plan, uint32_t axes)
{
    const char *text = NULL;
    for (int a = 0; a < weft_mesh_n_axes(plan->mesh); a++)
        if (axes >> a & 1)
            text = weft_arena_text(plan->arena, "%s%s%s", text ? text : "", text ? "+" : "",
                                   weft_mesh_axis_name(plan->mesh, a));
    return text;
}

static weft_status keep(weft_plan *plan, const weft_node *node, const weft_variant *variants,
                        weighing *w, int best, weft_error *error)
{
    const size_t bytes = (size_t)(plan->n_variants + w->n) * sizeof *plan->variants;
    weft_planned_variant *all = weft_arena_take(plan->arena, bytes);
    if (!all) return weft_fail_memory(error, bytes);
    if (plan->n_variants > 0) memcpy(all, plan->variants, (size_t)plan->n_variants * sizeof *all);
    for (int i = 0; i < w->n; i++) {
        weft_planned_variant *variant = &w->variants[i];
        variant->op = node->op->name;
        variant->builder = node->origin.builder, variant->file = node->origin.file;
        variant->line = node->origin.line;
        variant->phase = (weft_phase)node->phase;
        variant->axes = axes_text(plan, variants[0].axes);
        variant->n_compared = w->n - i;
        variant->is_taken = i == best;
        all[plan->n_variants++] = *variant;
    }
    plan->variants = all;
    return WEFT_OK;
}

static weft_status take(weft_plan *plan, uint32_t id, int variant, const weft_variant *variants,
                        weft_error *error)
{
    if (variants[variant].write == NULL) return WEFT_OK;
    weft_variant *own = weft_arena_copy(plan->arena, &variants[variant], sizeof *own);
    plan->build.written[id] = own;
    return own ? WEFT_OK : weft_fail_memory(error, sizeof *own);
}

static weft_status weigh(weft_plan *plan, uint32_t id, bool *is_weighed, weft_error *error)
{
    const weft_graph *graph = plan->graph;
    const weft_node *node = &graph->nodes[id];
    weft_variant variants[WEFT_MAX_VARIANTS], others[WEFT_MAX_VARIANTS];
    weighing w = {.n = forms_of(plan, node, variants)};
    int best = 0;
    if (w.n == 0) return WEFT_OK;
    add(plan, variants, &w);
    for (uint32_t other = id + 1; other < graph->n_nodes; other++)
        if (goes_with(plan, &graph->nodes[other], node, &w, others)) add(plan, others, &w);
    for (int i = 1; i < w.n; i++)
        if (w.variants[i].price < w.variants[best].price) best = i;
    WEFT_TRY(take(plan, id, best, variants, error));
    for (uint32_t other = id + 1; other < graph->n_nodes; other++) {
        if (!goes_with(plan, &graph->nodes[other], node, &w, others)) continue;
        is_weighed[other] = true;
        WEFT_TRY(take(plan, other, best, others, error));
    }
    return keep(plan, node, variants, &w, best, error);
}

weft_status weft_find_variants(weft_plan *plan, bool *any, weft_error *error)
{
    const size_t n = plan->graph->n_nodes;
    bool *is_weighed = weft_arena_take(plan->arena, n * sizeof *is_weighed);
    plan->build.written = weft_arena_take(plan->arena, n * sizeof *plan->build.written);
    if (!plan->build.written || !is_weighed)
        return weft_fail_memory(error, n * sizeof *plan->build.written);
    for (uint32_t id = 1; id < n; id++)
        if (plan->graph->nodes[id].op->variants && !is_weighed[id])
            WEFT_TRY(weigh(plan, id, is_weighed, error));
    *any = false;
    for (uint32_t id = 1; id < n; id++)
        *any = *any || plan->build.written[id];
    return WEFT_OK;
}
