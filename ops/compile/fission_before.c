/* fission_before: what is done before a scan, for all of its trips at once. See fission.c. */
#include "fission.h"

#include <string.h>

#include "weft/ops.h"

/* More that is kept of each trip, by what the scan sees and stacks. */
enum { MOST = 4 };

/* ---- the trips' dim ------------------------------------------------------------------------------ */

weft_trips weft_trips_of_node(const weft_node *node)
{
    const weft_scan_attributes *attributes = weft_scan_of(node);
    return (weft_trips){{attributes->dim.dim, attributes->dim.size}, attributes->is_reversed};
}

static bool has_dim(const weft_shape *shape, const char *name)
{
    return weft_shape_find(shape, name) >= 0;
}

static weft_shape with_first(weft_dim dim, const weft_shape *shape)
{
    weft_shape more = {.n_dims = 1, .dims = {dim}};
    for (int d = 0; d < shape->n_dims; d++)
        more.dims[more.n_dims++] = shape->dims[d];
    return more;
}

/* The attributes of a node that has the dim more: shapes in them are the result's. false: no memory, or no room for a dim. */
static bool widen_attributes(const weft_node *node, weft_dim dim, weft_arena *arena, void **widened)
{
    const weft_attributes *described = weft_op_attributes(node->op);
    *widened = NULL;
    if (node->attribute_bytes == 0) return true;
    *widened = weft_arena_copy(arena, node->attributes, node->attribute_bytes);
    for (int i = 0; *widened != NULL && i < described->n_fields; i++) {
        weft_shape *shape = (weft_shape *)(void *)((char *)*widened + described->fields[i].offset);
        if (described->fields[i].kind != &weft_field_shape) continue;
        if (shape->n_dims == WEFT_MAX_DIMS) return false;
        *shape = with_first(dim, shape);
    }
    return *widened != NULL;
}

/* Does a direction run along the dim, first in those operands and in all results, and through no window? */
static bool runs_along(const weft_site *site, const bool *has)
{
    weft_factors factors = {0};
    site->op->factors(site, &factors);
    for (int k = 0; k < factors.n_factors; k++) {
        const weft_factor *factor = &factors.factors[k];
        bool runs = true;
        for (int i = 0; i < site->n_in; i++)
            runs = runs && factor->in[i] == (has[i] ? 0 : -1) && factors.window[k][i].lead == 0;
        for (int o = 0; o < site->n_out; o++)
            runs = runs && factor->out[o] == 0;
        if (runs) return true;
    }
    return false;
}

/* The site with the dim more, in those operands that have it; false: the op does not do each element by itself. */
bool weft_site_with_dim(const weft_fission *f, const weft_node *node, weft_dim dim, const bool *has,
                        weft_site *site)
{
    void *attributes;
    weft_error error = {0};
    weft_site_of(f->rewrite.from, node, site);
    const weft_site one = *site;
    if (!widen_attributes(node, dim, f->rewrite.plan->arena, &attributes)) return false;
    site->attributes = attributes;
    for (int i = 0; i < site->n_in; i++) {
        if (one.in[i].shape.n_dims == WEFT_MAX_DIMS || has_dim(&one.in[i].shape, dim.name))
            return false;
        if (has[i]) site->in[i].shape = with_first(dim, &one.in[i].shape);
    }
    for (int o = 0; o < one.n_out; o++)
        if (one.out[o].shape.n_dims == WEFT_MAX_DIMS || has_dim(&one.out[o].shape, dim.name))
            return false;
    if (site->op->infer(site, &error) != WEFT_OK || site->n_out != one.n_out) return false;
    for (int o = 0; o < one.n_out; o++) {
        const weft_shape wanted = with_first(dim, &one.out[o].shape);
        if (!weft_shape_same_order(&wanted, &site->out[o].shape)) return false;
    }
    return runs_along(site, has);
}

weft_value weft_whole_of(weft_graph *to, uint32_t value, weft_trips own, weft_trips all)
{
    const weft_value x = {to, value};
    return strcmp(own.dim.name, all.dim.name) == 0 ? x : weft_rename(x, own.dim, all.dim);
}

/* ---- what can be done before --------------------------------------------------------------------- */

/* All that is seen together goes the same way; it takes the name that comes first. */
static bool agrees(weft_trips *all, weft_trips one)
{
    if (all->dim.name == NULL) *all = one;
    return one.dim.name == NULL || all->is_reversed == one.is_reversed;
}

/* An operand from outside can as it is, if it is there by then. */
static weft_lift lift_of(const weft_fission *f, uint32_t value, uint32_t scan)
{
    const weft_graph *from = f->rewrite.from;
    if (weft_is_in(f, value, scan))
        return weft_maker_of(f, value)->scan == scan ? f->lift[value] : (weft_lift){.can = false};
    return (weft_lift){.can =
                           from->tensors[value].node < from->tensors[from->scans[scan].trip].node};
}

bool weft_is_random(const weft_node *node)
{
    const weft_element_attributes *attributes = node->op->element ? node->attributes : NULL;
    return node->n_draws > 0 || (attributes != NULL && attributes->random != 0);
}

static bool may_lift(const weft_node *node)
{
    return node->n_out == 1 && !node->op->makes_token && !weft_is_random(node) &&
           !weft_is_of_scan(node->op);
}

bool weft_is_fixed(const weft_fission *f, uint32_t value, uint32_t scan)
{
    const weft_lift its = lift_of(f, value, scan);
    return its.can && its.trips.dim.name == NULL;
}

void weft_look_whether_it_lifts(weft_fission *f, const weft_node *node)
{
    weft_lift *its = &f->lift[node->out];
    bool has[WEFT_MAX_IN] = {false};
    weft_site site;
    if (node->op == &weft_op_scan_each) {
        *its = lift_of(f, node->in[0], node->scan);
        its->trips = weft_trips_of_node(node);
        return;
    }
    if (!may_lift(node)) return;
    weft_lift all = {.can = true, .bytes = weft_fission_bytes(f, node->out)};
    for (int i = 0; i < node->n_in && all.can; i++) {
        const weft_lift one = lift_of(f, node->in[i], node->scan);
        all.can = one.can && agrees(&all.trips, one.trips);
        all.bytes += one.bytes;
        has[i] = one.trips.dim.name != NULL;
    }
    if (all.can && all.trips.dim.name != NULL)
        all.can = all.bytes <= MOST * f->seen[node->scan] &&
                  weft_site_with_dim(f, node, all.trips.dim, has, &site);
    *its = all;
}

void weft_look_before(weft_fission *f, const weft_node *node)
{
    const weft_lift *its = &f->lift[node->out];
    const int fixed = its->can ? weft_fixed_operand(f, node) : -1;
    if (fixed < 0) return;
    f->is_before[node - f->rewrite.from->nodes] =
        weft_has_room(f, node, its->bytes, weft_fission_bytes(f, node->in[fixed]), MOST, f->before);
}

/* ---- in the new graph ---------------------------------------------------------------------------- */

/* The node's op on what is lifted: as it is, or with the trips' dim more. */
static weft_value lift_op(weft_fission *f, const weft_node *node, weft_trips all)
{
    weft_graph *to = f->rewrite.to;
    weft_value in[WEFT_MAX_IN];
    bool has[WEFT_MAX_IN] = {false};
    weft_site site = {.attributes = node->attributes};
    for (int i = 0; i < node->n_in; i++) {
        has[i] = !weft_is_fixed(f, node->in[i], node->scan);
        in[i] = weft_lift_value(f, node->in[i], node->scan, all);
    }
    const uint32_t first = to->n_nodes;
    if (all.dim.name != NULL && !weft_site_with_dim(f, node, all.dim, has, &site))
        return weft_no_value(to);
    const weft_value made =
        weft_emit(to, node->op, in, node->n_in, site.attributes, node->attribute_bytes);
    weft_rewrite_origin(&f->rewrite, node, first);
    return made;
}

weft_value weft_lift_value(weft_fission *f, uint32_t value, uint32_t scan, weft_trips all)
{
    weft_graph *to = f->rewrite.to;
    const weft_node *node = weft_maker_of(f, value);
    weft_lift *its = &f->lift[value];
    if (!weft_is_in(f, value, scan)) return (weft_value){to, f->rewrite.value[value]};
    if (its->lifted == 0 && node->op == &weft_op_scan_each)
        its->lifted = f->rewrite.value[node->in[0]];
    else if (its->lifted == 0)
        its->lifted = lift_op(f, node, its->trips).id;
    const uint32_t first = to->n_nodes;
    const weft_value seen = its->trips.dim.name == NULL
                                ? (weft_value){to, its->lifted}
                                : weft_whole_of(to, its->lifted, its->trips, all);
    weft_rewrite_origin(&f->rewrite, node, first);
    return seen;
}

/* ---- the order of what is the same in all trips --------------------------------------------------- */

/* A matrix as a product reads it row by row: the dims that all three have, those that are summed, in the order of the other
 * operand, and those of the result, in its order. */
static weft_shape order_of(const weft_fission *f, const weft_node *node, int fixed)
{
    const weft_tensor *tensors = f->rewrite.from->tensors;
    const weft_shape *w = &tensors[node->in[fixed]].type.shape,
                     *x = &tensors[node->in[1 - fixed]].type.shape,
                     *y = &tensors[node->out].type.shape;
    weft_shape order = {.n_dims = 0};
    for (int d = 0; d < y->n_dims; d++)
        if (has_dim(w, y->dims[d].name) && has_dim(x, y->dims[d].name))
            order.dims[order.n_dims++] = y->dims[d];
    for (int d = 0; d < x->n_dims; d++)
        if (has_dim(w, x->dims[d].name) && !has_dim(y, x->dims[d].name))
            order.dims[order.n_dims++] = x->dims[d];
    for (int d = 0; d < y->n_dims; d++)
        if (has_dim(w, y->dims[d].name) && !has_dim(x, y->dims[d].name))
            order.dims[order.n_dims++] = y->dims[d];
    return order;
}

void weft_look_at_order(weft_fission *f, const weft_node *node)
{
    const uint32_t id = (uint32_t)(node - f->rewrite.from->nodes);
    const int fixed = f->is_before[id] ? -1 : weft_fixed_operand(f, node);
    if (fixed < 0 || !f->is_recurrent[node->scan]) return;
    const weft_shape order = order_of(f, node, fixed);
    const weft_shape *now = &f->rewrite.from->tensors[node->in[fixed]].type.shape;
    f->is_turned[id] = order.n_dims == now->n_dims && !weft_shape_same_order(&order, now);
}

static void turn(weft_fission *f, const weft_node *node)
{
    const int fixed = weft_fixed_operand(f, node);
    const weft_value w =
        weft_lift_value(f, node->in[fixed], node->scan, (weft_trips){{NULL, 0}, false});
    const uint32_t first = f->rewrite.to->n_nodes;
    f->turned[node - f->rewrite.from->nodes] = weft_transpose(w, order_of(f, node, fixed)).id;
    weft_rewrite_origin(&f->rewrite, node, first);
}

weft_value weft_multiply_turned(weft_fission *f, const weft_node *node)
{
    weft_graph *to = f->rewrite.to;
    const int fixed = weft_fixed_operand(f, node);
    const uint32_t first = to->n_nodes;
    weft_value in[2];
    in[fixed] = (weft_value){to, f->turned[node - f->rewrite.from->nodes]};
    in[1 - fixed] = (weft_value){to, f->rewrite.value[node->in[1 - fixed]]};
    const weft_value made = weft_emit(to, node->op, in, 2, node->attributes, node->attribute_bytes);
    weft_rewrite_origin(&f->rewrite, node, first);
    return made;
}

void weft_make_before(weft_fission *f, uint32_t scan)
{
    const weft_graph *from = f->rewrite.from;
    f->rewrite.to->scan = from->scans[scan].parent;
    for (uint32_t id = 1; id < from->n_nodes; id++) {
        const weft_node *node = &from->nodes[id];
        if (node->scan != scan) continue;
        if (f->is_before[id]) (void)weft_lift_value(f, node->out, scan, f->lift[node->out].trips);
        if (f->is_turned[id]) turn(f, node);
    }
    f->rewrite.to->scan = scan;
}

weft_value weft_see_before(weft_fission *f, const weft_node *node)
{
    const weft_lift *its = &f->lift[node->out];
    const uint32_t first = f->rewrite.to->n_nodes;
    const weft_value seen = weft_scan_each_of((weft_value){f->rewrite.to, its->lifted}, node->scan,
                                              its->trips.dim, its->trips.is_reversed);
    weft_rewrite_origin(&f->rewrite, node, first);
    return seen;
}
