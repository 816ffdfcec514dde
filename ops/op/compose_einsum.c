/* compose_einsum.c: a product of many operands, two at a time, in the order of the fewest multiplications.
 *
 * All orders are compared: of each set of operands the best way to multiply it, from those of its parts. Of ways that cost the
 * same it is the one from the left.
 */
#include <math.h>
#include <string.h>

#include "op.h"
#include "weft/ops.h"

enum { MOST = WEFT_MAX_EINSUM, MOST_NAMES = MOST * WEFT_MAX_DIMS, SETS = 1 << MOST };

typedef struct product {
    weft_shape out;
    weft_values operands;
    int n_dims;
    weft_dim dims[MOST_NAMES];
    uint32_t having[MOST_NAMES]; /* which operands have the dim: the first one is the highest bit */
    bool is_out[MOST_NAMES];
    double cost[SETS];
    uint16_t part[SETS]; /* what of the set is multiplied first; the rest is the other factor */
} product;

/* ---- dims ---------------------------------------------------------------------------------------- */

static uint32_t bit_of(const product *p, int operand)
{
    return 1u << (p->operands.n_values - 1 - operand);
}

static void note(product *p, weft_dim dim, int operand)
{
    int d = 0;
    while (d < p->n_dims && strcmp(p->dims[d].name, dim.name) != 0)
        d++;
    if (d == p->n_dims) {
        p->dims[p->n_dims++] = dim;
        p->is_out[d] = weft_shape_find(&p->out, dim.name) >= 0;
    }
    p->having[d] |= bit_of(p, operand);
}

/* Whether the product of a set of operands still has the dim: for the result, or for operands yet to come. */
static bool is_left(const product *p, int d, uint32_t set)
{
    return (p->having[d] & set) != 0 && (p->is_out[d] || (p->having[d] & ~set) != 0);
}

static int dims_left(const product *p, uint32_t set)
{
    int n = 0;
    for (int d = 0; d < p->n_dims; d++)
        n += is_left(p, d, set);
    return n;
}

/* ---- the order ----------------------------------------------------------------------------------- */

static bool is_single(uint32_t set)
{
    return (set & (set - 1)) == 0;
}

/* Multiplications of the products of two sets, as they are left or, of one operand, as it is. */
static double cost_of(const product *p, uint32_t a, uint32_t b)
{
    double cost = 1;
    for (int d = 0; d < p->n_dims; d++) {
        const bool in_a = is_single(a) ? (p->having[d] & a) != 0 : is_left(p, d, a);
        const bool in_b = is_single(b) ? (p->having[d] & b) != 0 : is_left(p, d, b);
        if (in_a || in_b) cost *= (double)p->dims[d].size;
    }
    return cost;
}

/* Beginning with all but the last operand, so that of equal costs the order is from the left. */
static void find_best(product *p, uint32_t set)
{
    p->cost[set] = (double)INFINITY;
    if (dims_left(p, set) > WEFT_MAX_DIMS) return;
    for (uint32_t part = (set - 1) & set; part > 0; part = (part - 1) & set) {
        const uint32_t rest = set & ~part;
        const double cost = p->cost[part] + p->cost[rest] + cost_of(p, part, rest);
        if (!(cost < p->cost[set])) continue;
        p->cost[set] = cost;
        p->part[set] = (uint16_t)part;
    }
}

static void find_order(product *p)
{
    for (int i = 0; i < p->operands.n_values; i++)
        for (int d = 0; d < weft_shape_of(p->operands.values[i])->n_dims; d++)
            note(p, weft_shape_of(p->operands.values[i])->dims[d], i);
    for (uint32_t set = 1; set < 1u << p->operands.n_values; set++)
        if (!is_single(set)) find_best(p, set);
}

/* ---- the product --------------------------------------------------------------------------------- */

/* What is left of a set's dims, in the order of its operands. */
static weft_shape shape_of(const product *p, uint32_t set)
{
    weft_shape shape = {0};
    for (int d = 0; d < p->n_dims; d++)
        if (is_left(p, d, set) && shape.n_dims < WEFT_MAX_DIMS)
            shape.dims[shape.n_dims++] = p->dims[d];
    return shape;
}

static weft_value multiply(const product *p, uint32_t set, bool is_whole)
{
    for (int i = 0; i < p->operands.n_values; i++)
        if (set == bit_of(p, i)) return p->operands.values[i];
    const uint32_t part = p->part[set] != 0 ? p->part[set] : set & (set - 1); /* too many dims */
    const weft_value a = multiply(p, part, false), b = multiply(p, set & ~part, false);
    return weft_einsum(is_whole ? p->out : shape_of(p, set), a, b);
}

weft_value weft_einsum_n(weft_shape out, weft_values operands)
{
    product p = {.out = out, .operands = operands};
    if (weft_values_given(operands) < 1) return weft_no_value(NULL);
    weft_graph *graph = operands.values[0].graph;
    if (operands.n_values > MOST)
        return weft_graph_fail(graph,
                               "einsum: %d operands; the most is %d. Multiply some of them first",
                               operands.n_values, MOST);
    if (operands.n_values == 1) return weft_sum(out, operands.values[0]);
    if (out.n_dims < 0 || out.n_dims > WEFT_MAX_DIMS)
        return weft_einsum(out, operands.values[0], operands.values[1]); /* which says so */
    find_order(&p);
    return multiply(&p, (1u << operands.n_values) - 1, true);
}
