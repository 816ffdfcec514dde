/* cut_first: in bodies of scans, a value that is read in slices alone is computed slice by slice, if its operands are cut for nothing.
 *
 * A recurrent layer adds up the parts of its gates that come of the input and of the state, and cuts the sum into gates. Cut
 * first, the sums are part of the loops that read them, and the sum of all gates is never in memory. That holds of any op on
 * elements. The slices are views then (views.c), so it is done where a device's loops can read those.
 */
#include "regions.h"
#include "rewrite.h"

#include "weft/ops.h"

typedef struct cutting {
    weft_rewrite rewrite;
    uint32_t *n_readers, *n_cuts; /* [n_tensors] */
} cutting;

/* A slice, or the shape that it has without the dim of which it is one element. */
static bool is_cutting(const cutting *c, const weft_node *node)
{
    const weft_tensor *tensors = c->rewrite.from->tensors;
    if (node->op == &weft_op_slice) return true;
    if (node->op != &weft_op_reshape) return false;
    const weft_shape *x = &tensors[node->in[0]].type.shape, *y = &tensors[node->out].type.shape;
    int i = 0, k = 0;
    for (; i < x->n_dims; i++) {
        const bool is_next = k < y->n_dims && x->dims[i].name == y->dims[k].name;
        if (!is_next && x->dims[i].size != 1) return false;
        k += is_next;
    }
    return k == y->n_dims;
}

/* Done element by element, whatever the element's place, and read in slices alone. */
static bool is_cut(const cutting *c, uint32_t value, uint32_t scan)
{
    const weft_node *node = weft_node_of(c->rewrite.from, value);
    return node->scan == scan && node->op->element != NULL && node->n_in > 0 &&
           node->op->element->index == WEFT_INDEX_NONE && node->n_draws == 0 &&
           !node->op->recodes && c->n_cuts[value] == c->n_readers[value];
}

/* Do all operands have the dims of the result, so that a slice of it has those that it had? */
static bool has_all_dims(const cutting *c, const weft_node *node)
{
    const weft_tensor *tensors = c->rewrite.from->tensors;
    for (int i = 0; i < node->n_in; i++)
        if (!weft_shape_same_order(&tensors[node->in[i]].type.shape,
                                   &tensors[node->out].type.shape))
            return false;
    return true;
}

static bool can_cut(const cutting *c, const weft_node *node)
{
    return node->scan != 0 && is_cutting(c, node) && is_cut(c, node->in[0], node->scan) &&
           has_all_dims(c, weft_node_of(c->rewrite.from, node->in[0]));
}

/* What is cut off, of an operand of what was cut. */
static weft_value cut_off(cutting *c, const weft_node *node, uint32_t operand)
{
    const weft_value x = {c->rewrite.to, c->rewrite.value[operand]};
    const weft_shape *part = &c->rewrite.from->tensors[node->out].type.shape;
    if (node->op == &weft_op_reshape) return weft_reshape(x, *part);
    const weft_slice_attributes *slice = node->attributes; /* the first of its own */
    const weft_shape *whole = weft_shape_of(x);
    const int d = weft_shape_find(whole, slice->dim);
    return weft_slice(x, whole->dims[d], slice->begin, part->dims[d]);
}

/* The op of what is cut, on its operands cut. */
static void cut(cutting *c, const weft_node *cutter)
{
    weft_graph *to = c->rewrite.to;
    const weft_node *node = weft_node_of(c->rewrite.from, cutter->in[0]);
    weft_value in[WEFT_MAX_IN];
    const uint32_t first = to->n_nodes;
    for (int i = 0; i < node->n_in; i++)
        in[i] = cut_off(c, cutter, node->in[i]);
    const weft_value made =
        weft_emit(to, node->op, in, node->n_in, node->attributes, node->attribute_bytes);
    weft_rewrite_origin(&c->rewrite, node, first);
    c->rewrite.value[cutter->out] = made.id;
}

static bool look(const cutting *c)
{
    const weft_graph *from = c->rewrite.from;
    bool is_any = false;
    for (uint32_t id = 1; id < from->n_nodes; id++)
        for (int i = 0; c->rewrite.is_live[id] && i < from->nodes[id].n_in; i++) {
            c->n_readers[from->nodes[id].in[i]]++;
            c->n_cuts[from->nodes[id].in[i]] += is_cutting(c, &from->nodes[id]);
        }
    for (uint32_t id = 1; id < from->n_nodes && !is_any; id++)
        is_any = c->rewrite.is_live[id] && can_cut(c, &from->nodes[id]);
    return is_any;
}

static void make_all(cutting *c)
{
    weft_rewrite *rewrite = &c->rewrite;
    for (uint32_t id = 1; id < rewrite->from->n_nodes && rewrite->to->error.status == WEFT_OK;
         id++) {
        const weft_node *node = &rewrite->from->nodes[id];
        if (!rewrite->is_live[id]) continue;
        rewrite->to->scan = node->scan;
        if (can_cut(c, node))
            cut(c, node);
        else
            weft_rewrite_copy(rewrite, node);
        for (uint32_t out = node->out; out < node->out + node->n_out; out++)
            if (rewrite->value[out] != 0) weft_rewrite_tags(rewrite, out, rewrite->value[out]);
    }
    rewrite->to->scan = 0;
}

/* Once through; `is_done`: nothing was cut. */
static weft_status cut_once(weft_plan *plan, bool *is_done, weft_error *error)
{
    cutting c = {.n_readers = NULL};
    WEFT_TRY(weft_rewrite_begin(plan, &c.rewrite, error));
    const size_t bytes = c.rewrite.from->n_tensors * sizeof *c.n_readers;
    c.n_readers = weft_arena_take(plan->arena, bytes);
    c.n_cuts = weft_arena_take(plan->arena, bytes);
    const bool has_room = c.n_readers != NULL && c.n_cuts != NULL;
    *is_done = !has_room || !look(&c);
    if (*is_done) {
        weft_graph_like_destroy(&c.rewrite.to);
        return has_room ? WEFT_OK : weft_fail_memory(error, bytes);
    }
    make_all(&c);
    WEFT_TRY(weft_rewrite_end(&c.rewrite, error));
    return weft_pass_simplify(plan, error); /* what was cut, which nobody reads any more */
}

/* What is cut off of an op's result was cut off of its operands, which others may have made. */
weft_status weft_pass_cut_first(weft_plan *plan, weft_error *error)
{
    enum { MOST = 8 };
    bool is_done = plan->graph->n_scans == 0 || !weft_has_views(plan);
    for (int i = 0; i < MOST && !is_done; i++)
        WEFT_TRY(cut_once(plan, &is_done, error));
    return WEFT_OK;
}
