/* fission_behind: what is done behind a scan, of what all of its trips have left. See fission.c. */
#include "fission.h"

#include <string.h>

#include "weft/ops.h"

/* More that is stacked of each trip, by what the scan sees and stacks anyway. */
enum { MOST = 1 };

static bool agrees(weft_trips *all, weft_trips one)
{
    if (all->dim.name == NULL) *all = one;
    return all->is_reversed == one.is_reversed;
}

static const weft_shape *shape_of(const weft_fission *f, uint32_t value)
{
    return &f->rewrite.from->tensors[value].type.shape;
}

/* ---- a value of all trips ------------------------------------------------------------------------ */

/* Can the body's value be had of all trips behind the scan? `more`: bytes of a trip that are not kept yet. */
static bool can_collect(const weft_fission *f, uint32_t value, uint32_t scan, weft_trips *all,
                        double *more)
{
    const weft_node *node = weft_maker_of(f, value);
    if (weft_is_fixed(f, value, scan)) return true;
    if (node->scan != scan || node->op->makes_token) return false;
    if (node->op == &weft_op_scan_each) return agrees(all, weft_trips_of_node(node));
    if (shape_of(f, value)->n_dims == WEFT_MAX_DIMS) return false;
    if (f->stack[value] != 0)
        return agrees(all, weft_trips_of_node(&f->rewrite.from->nodes[f->stack[value]]));
    *more += weft_fission_bytes(f, value);
    return true;
}

/* Of all trips: as it was seen, as it is stacked anyway, or stacked for this. */
static weft_value collect(weft_fission *f, uint32_t value, uint32_t scan, weft_trips all)
{
    weft_graph *to = f->rewrite.to;
    const weft_node *node = weft_maker_of(f, value);
    if (weft_is_fixed(f, value, scan)) return weft_lift_value(f, value, scan, all);
    if (node->op == &weft_op_scan_each)
        return weft_whole_of(to, f->rewrite.value[node->in[0]], weft_trips_of_node(node), all);
    const weft_trips own =
        f->stack[value] != 0 ? weft_trips_of_node(&f->rewrite.from->nodes[f->stack[value]]) : all;
    const weft_value made = {to, f->rewrite.value[value]};
    const weft_value stack = weft_scan_stack_of(made, scan, own.dim, own.is_reversed);
    return stack.id == 0 ? stack : weft_whole_of(to, stack.id, own, all);
}

/* ---- sums over the trips ------------------------------------------------------------------------- */

static bool is_reducing(const weft_node *node)
{
    return node->op == &weft_op_einsum || node->op == &weft_op_sum;
}

/* A product, or a sum, whose operands all have the trips' dim, to be summed over it. */
static bool can_reduce(const weft_fission *f, const weft_node *node, weft_trips *all, double *more)
{
    for (int i = 0; i < node->n_in; i++)
        if (weft_is_fixed(f, node->in[i], node->scan) ||
            !can_collect(f, node->in[i], node->scan, all, more))
            return false;
    if (all->dim.name == NULL) /* nothing says how: as the trips are made */
        *all = (weft_trips){{"~trips", f->rewrite.from->scans[node->scan].trips}, false};
    for (int i = 0; i < node->n_in; i++)
        if (weft_shape_find(shape_of(f, node->in[i]), all->dim.name) >= 0) return false;
    return true;
}

static bool passes_sums(const weft_node *node)
{
    return node->n_in == 1 && node->n_out == 1 && !weft_is_of_scan(node->op) &&
           !weft_is_random(node) && (node->op->linear == 1 || node->op->recodes);
}

/* Is the value a sum of such, or made of one by an op through which sums pass? */
static bool can_sum_up(const weft_fission *f, uint32_t value, uint32_t scan, weft_trips *all,
                       double *more)
{
    const weft_node *node = weft_maker_of(f, value);
    if (node->scan != scan || f->n_readers[value] != 1) return false;
    if (is_reducing(node)) return can_reduce(f, node, all, more);
    if (node->op != &weft_op_add && !passes_sums(node)) return false;
    for (int i = 0; i < node->n_in; i++)
        if (!can_sum_up(f, node->in[i], scan, all, more)) return false;
    return true;
}

static weft_value sum_up(weft_fission *f, uint32_t value, uint32_t scan, weft_trips all)
{
    weft_graph *to = f->rewrite.to;
    const weft_node *node = weft_maker_of(f, value);
    weft_value in[WEFT_MAX_IN];
    for (int i = 0; i < node->n_in; i++)
        in[i] = is_reducing(node) ? collect(f, node->in[i], scan, all)
                                  : sum_up(f, node->in[i], scan, all);
    const uint32_t first = to->n_nodes;
    const weft_value sum =
        weft_emit(to, node->op, in, node->n_in, node->attributes, node->attribute_bytes);
    weft_rewrite_origin(&f->rewrite, node, first);
    return sum;
}

/* ---- what is carried to be summed ----------------------------------------------------------------- */

static const weft_node *next_of(const weft_fission *f, uint32_t carry)
{
    return &f->rewrite.from->nodes[f->next[carry]];
}

uint32_t weft_summand_of(const weft_fission *f, uint32_t carry)
{
    const uint32_t sum = next_of(f, carry)->in[1];
    const weft_node *node = weft_maker_of(f, sum);
    if (node->op != &weft_op_add || node->scan != next_of(f, carry)->scan ||
        f->n_readers[carry] != 1 || f->n_readers[sum] != 1)
        return 0;
    if (node->in[0] == carry) return node->in[1];
    return node->in[1] == carry ? node->in[0] : 0;
}

void weft_look_at_last(weft_fission *f, uint32_t id)
{
    const uint32_t carry = f->rewrite.from->nodes[id].in[0];
    const uint32_t scan = weft_maker_of(f, carry)->scan;
    const uint32_t summand =
        f->next[carry] != 0 && !f->is_left[scan] ? weft_summand_of(f, carry) : 0;
    weft_trips all = {{NULL, 0}, false};
    double more = 0;
    f->is_behind[id] = summand != 0 && can_sum_up(f, summand, scan, &all, &more) &&
                       weft_has_room(f, weft_maker_of(f, summand), more,
                                     weft_fission_bytes(f, carry), MOST, f->behind);
}

weft_value weft_make_last(weft_fission *f, const weft_node *last)
{
    weft_graph *to = f->rewrite.to;
    const uint32_t carry = last->in[0], scan = weft_maker_of(f, carry)->scan;
    const uint32_t begin = weft_maker_of(f, carry)->in[0], summand = weft_summand_of(f, carry);
    const weft_node *initial = weft_maker_of(f, begin);
    const weft_shape *shape = shape_of(f, last->out); /* a summand may lack dims of it */
    weft_trips all = {{NULL, 0}, false};
    double more = 0;
    weft_site site;
    (void)can_sum_up(f, summand, scan, &all, &more);
    all.dim.name = weft_graph_intern(to, all.dim.name);
    const uint32_t first = to->n_nodes;
    weft_value sum = sum_up(f, summand, scan, all);
    weft_site_of(f->rewrite.from, initial, &site);
    if (initial->op->is_zero == NULL || !initial->op->is_zero(&site))
        sum = weft_add((weft_value){to, f->rewrite.value[begin]}, sum);
    if (weft_shape_of(sum)->n_dims < shape->n_dims) sum = weft_broadcast_to(sum, *shape);
    sum = weft_transpose(sum, *shape);
    weft_rewrite_origin(&f->rewrite, weft_maker_of(f, summand), first);
    return sum;
}

/* ---- what is stacked ------------------------------------------------------------------------------ */

/* A product by what is the same in all trips, which is read for its stack alone: its operands are stacked in place of it. */
void weft_look_at_stack(weft_fission *f, uint32_t id)
{
    const weft_graph *from = f->rewrite.from;
    const weft_node *stack = &from->nodes[id], *node = weft_maker_of(f, stack->in[0]);
    const uint32_t scan = (uint32_t)weft_scan_of(stack)->scan;
    const int fixed = node->scan == scan ? weft_fixed_operand(f, node) : -1;
    const bool has[2] = {fixed == 1, fixed == 0};
    weft_trips all = weft_trips_of_node(stack);
    double more = 0;
    weft_site site;
    if (fixed < 0 || f->is_before[node - from->nodes] || f->n_readers[node->out] != 1 ||
        f->is_left[scan] || !can_collect(f, node->in[1 - fixed], scan, &all, &more) ||
        !weft_site_with_dim(f, node, all.dim, has, &site))
        return;
    more -= weft_fission_bytes(f, node->out); /* which is stacked no more */
    f->is_behind[id] = weft_has_room(f, node, more > 0 ? more : 0,
                                     weft_fission_bytes(f, node->in[fixed]), MOST, f->behind);
}

weft_value weft_make_stack(weft_fission *f, const weft_node *stack)
{
    weft_graph *to = f->rewrite.to;
    const weft_node *node = weft_maker_of(f, stack->in[0]);
    const uint32_t scan = (uint32_t)weft_scan_of(stack)->scan;
    const int fixed = weft_fixed_operand(f, node);
    const bool has[2] = {fixed == 1, fixed == 0};
    const weft_trips all = weft_trips_of_node(stack);
    const uint32_t first = to->n_nodes;
    weft_site site;
    weft_value in[2];
    for (int i = 0; i < 2; i++)
        in[i] = collect(f, node->in[i], scan, all);
    if (!weft_site_with_dim(f, node, all.dim, has, &site)) return weft_no_value(to);
    const weft_value made =
        weft_emit(to, node->op, in, node->n_in, site.attributes, node->attribute_bytes);
    weft_rewrite_origin(&f->rewrite, node, first);
    return made;
}
