/* forms: ops that can be written in several ways where their operands are split (`forms` of the op's table): the ways are weighed by
 * prices, and the cheapest is what expand writes. An op and those that read its results, as attention and its gradient, are
 * weighed together and take the same form: what the one has gathered serves the other.
 */
#include "forms.h"

#include <math.h>
#include <string.h>

/* Names and placements alone say where operands are, so all ranks agree. */
static int forms_of(const weft_plan *plan, const weft_node *node, weft_form *forms)
{
    weft_spec in[WEFT_MAX_IN];
    weft_site site;
    uint32_t placed = 0;
    if (node->op->forms == NULL) return 0;
    memset(in, 0, sizeof in);
    weft_site_of(plan->graph, node, &site);
    for (int i = 0; i < node->n_in; i++) {
        const weft_tensor *tensor = &plan->graph->tensors[node->in[i]];
        placed |= (uint32_t)(tensor->placement || tensor->place_as) << i;
        if (weft_wanted_spec(plan, node->in[i], &in[i], NULL) != WEFT_OK) return 0;
    }
    return node->op->forms(&site, in, placed, plan->mesh, forms);
}

static double exchange_price(const weft_plan *plan, const weft_form *form, double bytes)
{
    const weft_exchange exchange = {.mesh = plan->mesh,
                                    .axes = form->axes,
                                    .n_ranks = form->n_ranks,
                                    .kind = form->kind,
                                    .bytes = bytes,
                                    .link_bytes = bytes};
    return weft_exchange_price(plan, &plan->cost, &exchange);
}

/* What goes on beside work costs what it takes longer than that. */
static double price_of(const weft_plan *plan, const weft_form *form)
{
    const double meanwhile = weft_work_price(&plan->cost, form->flops - form->last);
    return exchange_price(plan, form, form->before) +
           fmax(exchange_price(plan, form, form->beside), meanwhile) +
           weft_work_price(&plan->cost, form->last) +
           form->n_exchanges * weft_latency_price(plan, form->axes) +
           form->copied / (2 * WEFT_COPIES_PER_BYTE);
}

static bool reads(const weft_node *node, const weft_node *of)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] >= of->out && node->in[i] < of->out + of->n_out) return true;
    return false;
}

/* The forms of one op, and of all that go with it. */
typedef struct weighing {
    int n;
    weft_planned_form forms[WEFT_MAX_FORMS];
} weighing;

static void add(const weft_plan *plan, const weft_form *forms, weighing *w)
{
    for (int i = 0; i < w->n; i++) {
        weft_planned_form *to = &w->forms[i];
        to->name = forms[i].name;
        to->price += price_of(plan, &forms[i]);
        to->before_bytes += forms[i].before;
        to->beside_bytes += forms[i].beside;
        to->held_bytes = fmax(to->held_bytes, forms[i].held);
        to->n_exchanges += forms[i].n_exchanges;
    }
}

/* Does what reads its results go with an op? So it does where it has the same forms; others are weighed by themselves. */
static bool goes_with(const weft_plan *plan, const weft_node *other, const weft_node *node,
                      const weighing *w, weft_form *forms)
{
    if (other->op->forms == NULL || !reads(other, node)) return false;
    bool alike = forms_of(plan, other, forms) == w->n;
    for (int i = 0; i < w->n && alike; i++)
        alike = strcmp(forms[i].name, w->forms[i].name) == 0;
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

static weft_status keep(weft_plan *plan, const weft_node *node, const weft_form *forms, weighing *w,
                        int best, weft_error *error)
{
    const size_t bytes = (size_t)(plan->n_forms + w->n) * sizeof *plan->forms;
    weft_planned_form *all = weft_arena_take(plan->arena, bytes);
    if (!all) return weft_fail_memory(error, bytes);
    if (plan->n_forms > 0) memcpy(all, plan->forms, (size_t)plan->n_forms * sizeof *all);
    for (int i = 0; i < w->n; i++) {
        weft_planned_form *form = &w->forms[i];
        form->op = node->op->name;
        form->builder = node->origin.builder, form->file = node->origin.file;
        form->line = node->origin.line;
        form->phase = (weft_phase)node->phase;
        form->axes = axes_text(plan, forms[0].axes);
        form->n_compared = w->n - i;
        form->is_taken = i == best;
        all[plan->n_forms++] = *form;
    }
    plan->forms = all;
    return WEFT_OK;
}

static weft_status take(weft_plan *plan, uint32_t id, int form, const weft_form *forms,
                        weft_error *error)
{
    if (forms[form].write == NULL) return WEFT_OK;
    weft_form *own = weft_arena_copy(plan->arena, &forms[form], sizeof *own);
    plan->written[id] = own;
    return own ? WEFT_OK : weft_fail_memory(error, sizeof *own);
}

static weft_status weigh(weft_plan *plan, uint32_t id, bool *is_weighed, weft_error *error)
{
    const weft_graph *graph = plan->graph;
    const weft_node *node = &graph->nodes[id];
    weft_form forms[WEFT_MAX_FORMS], others[WEFT_MAX_FORMS];
    weighing w = {.n = forms_of(plan, node, forms)};
    int best = 0;
    if (w.n == 0) return WEFT_OK;
    add(plan, forms, &w);
    for (uint32_t other = id + 1; other < graph->n_nodes; other++)
        if (goes_with(plan, &graph->nodes[other], node, &w, others)) add(plan, others, &w);
    for (int i = 1; i < w.n; i++)
        if (w.forms[i].price < w.forms[best].price) best = i;
    WEFT_TRY(take(plan, id, best, forms, error));
    for (uint32_t other = id + 1; other < graph->n_nodes; other++) {
        if (!goes_with(plan, &graph->nodes[other], node, &w, others)) continue;
        is_weighed[other] = true;
        WEFT_TRY(take(plan, other, best, others, error));
    }
    return keep(plan, node, forms, &w, best, error);
}

weft_status weft_find_forms(weft_plan *plan, bool *any, weft_error *error)
{
    const size_t n = plan->graph->n_nodes;
    bool *is_weighed = weft_arena_take(plan->arena, n * sizeof *is_weighed);
    plan->written = weft_arena_take(plan->arena, n * sizeof *plan->written);
    if (!plan->written || !is_weighed) return weft_fail_memory(error, n * sizeof *plan->written);
    for (uint32_t id = 1; id < n; id++)
        if (plan->graph->nodes[id].op->forms && !is_weighed[id])
            WEFT_TRY(weigh(plan, id, is_weighed, error));
    *any = false;
    for (uint32_t id = 1; id < n; id++)
        *any = *any || plan->written[id];
    return WEFT_OK;
}
