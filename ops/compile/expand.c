/* expand: ops that say so become the simpler ops that they consist of, whatever kernels a device has. Some do so
 * where their operands are split in a way that the kernel could not use (`is_apart`), or in the variant that costs least
 * (`variants`, variants.c).
 *
 * normalizer turns into a partial state and its finish, so that a split dim needs nothing special:
 * the state is partial over the axis, and finishing it is a collective like any other.
 *
 * An op that is only a rename (same) goes, and leaves a copy where the two can be told apart. That is where one is
 * read after the run and the other is memory that may be written before, or where they are to live in two places.
 */
#include "variants.h"
#include "rewrite.h"

#include <string.h>

/* As what it is written; NULL: as its expand says. */
static const weft_variant *variant_of(const weft_plan *plan, const weft_node *node)
{
    return plan->build.written ? plan->build.written[node - plan->graph->nodes] : NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* May `value` be another name of `as`, of the new graph, which was there before? */
static bool may_be(const weft_rewrite *rewrite, uint32_t value, uint32_t as)
{
    const weft_tensor *tensor = &rewrite->from->tensors[value], *other = &rewrite->to->tensors[as];
    const bool is_read_later = rewrite->plan->kept[value] != 0;
    if (is_read_later && weft_node_of(rewrite->to, as)->op->is_outside) return false;
    if (tensor->placement != NULL && !same_text(tensor->placement, other->placement)) return false;
    return tensor->place_as == 0 || rewrite->value[tensor->place_as] == other->place_as;
}

/* Results that were there before the op are values of their own all the same. A variable goes on to be read as itself alone. */
static void part_from_operands(weft_rewrite *rewrite, const weft_node *node, uint32_t first)
{
    weft_graph *to = rewrite->to;
    for (uint32_t out = node->out; out < node->out + node->n_out; out++) {
        const weft_value as = {to, rewrite->value[out]};
        if (as.id == 0 || to->tensors[as.id].node >= first) continue;
        if (!may_be(rewrite, out, as.id))
            rewrite->value[out] = weft_emit(to, &weft_op_copy, &as, 1, NULL, 0).id;
        else
            rewrite->is_gone[out] = weft_node_of(to, as.id)->op->is_outside;
    }
}

static void expand_node(weft_rewrite *rewrite, const weft_node *node)
{
    weft_graph *to = rewrite->to;
    weft_site site;
    weft_site_of(rewrite->from, node, &site);
    weft_vjp vjp = {.site = &site, .graph = to};
    for (int i = 0; i < node->n_in; i++)
        vjp.in[i] = (weft_value){to, rewrite->value[node->in[i]]};
    uint32_t first = to->n_nodes;
    const weft_variant *variant = variant_of(rewrite->plan, node);
    if (variant)
        variant->write(&vjp, variant);
    else
        node->op->expand(&vjp);
    weft_graph_error_at(to, &node->origin);
    for (int i = 0; i < node->n_out; i++)
        rewrite->value[node->out + (uint32_t)i] = vjp.out[i].id;
    part_from_operands(rewrite, node, first);
    for (uint32_t id = first; id < to->n_nodes; id++) {
        to->nodes[id].origin = node->origin;
        to->nodes[id].phase = node->phase;
        to->nodes[id].again = node->again;
        to->nodes[id].repeats = node->repeats;
    }
}

/* What was there before keeps its own name and place. */
static void tag(weft_rewrite *rewrite, const weft_node *node, uint32_t first)
{
    for (uint32_t out = node->out; out < node->out + node->n_out; out++) {
        weft_tensor *is = &rewrite->to->tensors[rewrite->value[out]];
        if (is->node >= first)
            weft_rewrite_tags(rewrite, out, rewrite->value[out]);
        else if (is->name == NULL)
            is->name = rewrite->from->tensors[out].name;
    }
}

static bool is_made_of_others(const weft_plan *plan, const weft_node *node)
{
    (void)plan;
    return node->op->expands;
}

/* Does it become simpler ops here? Names alone say where operands are, so all ranks and devices agree. A placement that cannot
 * be is refused by place. */
static bool is_apart(const weft_plan *plan, const weft_node *node)
{
    weft_spec in[WEFT_MAX_IN];
    weft_site site;
    if (node->op->is_apart == NULL) return false;
    weft_site_of(plan->graph, node, &site);
    for (int i = 0; i < node->n_in; i++)
        if (weft_wanted_spec(plan, node->in[i], &in[i], NULL) != WEFT_OK) return false;
    return node->op->is_apart(&site, in, plan->mesh);
}

static bool has_variant(const weft_plan *plan, const weft_node *node)
{
    return variant_of(plan, node) != NULL;
}

typedef bool (*which)(const weft_plan *plan, const weft_node *node);

static bool has_any(const weft_plan *plan, which expands)
{
    for (uint32_t id = 1; id < plan->graph->n_nodes; id++)
        if (expands(plan, &plan->graph->nodes[id])) return true;
    return false;
}

static weft_status expand_all(weft_plan *plan, which expands, weft_error *error)
{
    weft_rewrite rewrite;
    WEFT_TRY(weft_rewrite_begin(plan, &rewrite, error));
    for (uint32_t id = 1; id < rewrite.from->n_nodes; id++) {
        const weft_node *node = &rewrite.from->nodes[id];
        if (!rewrite.is_live[id] || rewrite.to->error.status != WEFT_OK) continue;
        const uint32_t first = rewrite.to->n_nodes;
        rewrite.to->scan = node->scan;
        if (expands(plan, node))
            expand_node(&rewrite, node);
        else
            weft_rewrite_copy(&rewrite, node);
        if (rewrite.to->error.status == WEFT_OK) tag(&rewrite, node, first);
    }
    rewrite.to->scan = 0;
    return weft_rewrite_end(&rewrite, error);
}

/* What is apart becomes ops that are made of others in turn. */
weft_status weft_pass_expand(weft_plan *plan, weft_error *error)
{
    bool any = false;
    if (has_any(plan, is_apart)) WEFT_TRY(expand_all(plan, is_apart, error));
    WEFT_TRY(weft_find_variants(plan, &any, error));
    if (any) WEFT_TRY(expand_all(plan, has_variant, error));
    plan->build.written = NULL;
    return expand_all(plan, is_made_of_others, error);
}
