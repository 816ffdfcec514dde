/* cumulate.c: sums, products and largest elements along a dim, by blocks.
 *
 * A node says in how many blocks its dim is. A kernel does all of them in one pass where the dim is whole. Where it is split the
 * node becomes what it stands for: sums within blocks, which any axis may cut, and sums of blocks. Both have the same bits.
 *
 * Long is what has at least two elements for each of 48 blocks, a number that many meshes divide. A dim that blocks do not
 * divide is padded, where the walk ends. Blocks have the dim's name, so that it is laid out as the dim itself.
 */
#include "cumulate.h"

#include <string.h>

#include "weft/ops.h"

enum { BLOCKS = 48, LEAST = 2 * BLOCKS };

static const weft_field fields[] = {
    WEFT_FIELD(weft_cumulate_attributes, dim), WEFT_FIELD(weft_cumulate_attributes, size),
    WEFT_FIELD(weft_cumulate_attributes, exclusive), WEFT_FIELD(weft_cumulate_attributes, reverse),
    WEFT_FIELD(weft_cumulate_attributes, blocks)};
const weft_attributes weft_attributes_cumulate = WEFT_ATTRIBUTES(weft_cumulate_attributes, fields);

weft_status weft_infer_cumulate(weft_site *site, weft_error *error)
{
    const weft_cumulate_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

void weft_factors_cumulate(const weft_site *site, weft_factors *factors)
{
    const weft_cumulate_attributes *attributes = site->attributes;
    weft_factors_by_name(site, WEFT_NOT_PARTIAL, factors);
    weft_factors_whole(site, attributes->dim, factors);
}

bool weft_cumulate_is_apart(const weft_site *site, const weft_spec *in, const weft_mesh *mesh)
{
    const weft_cumulate_attributes *attributes = site->attributes;
    const int dim = weft_shape_find(&site->in[0].shape, attributes->dim);
    return attributes->blocks > 0 && weft_shares_blocks(&in[0], dim, attributes->blocks, mesh);
}

static weft_value emit(const weft_op *op, weft_value x, weft_dim dim, bool exclusive, bool reverse,
                       int64_t blocks)
{
    weft_cumulate_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.dim = weft_graph_intern(x.graph, dim.name);
    attributes.size = dim.size;
    attributes.exclusive = exclusive;
    attributes.reverse = reverse;
    attributes.blocks = blocks;
    return weft_emit(x.graph, op, &x, 1, &attributes, sizeof attributes);
}

weft_value weft_emit_cumulate(const weft_op *op, weft_value x, weft_dim dim, bool exclusive,
                              bool reverse)
{
    return emit(op, x, dim, exclusive, reverse, 0);
}

/* Of the block that the walk begins with what it has itself, else both. */
static weft_value unless_first(weft_value inner, weft_value both, weft_dim blocks, bool reverse)
{
    const double first = reverse ? BLOCKS - 1 : 0;
    const weft_value number = weft_constant(inner.graph, WEFT_I32, WEFT_SCALAR, first);
    const weft_value at = weft_iota(inner.graph, WEFT_I32, blocks);
    return weft_where(weft_equal(at, number), inner, both);
}

/* x [.., dim, ..], which blocks divide. */
static weft_value by_blocks(const weft_cumulating *way, weft_value x, weft_dim dim, bool exclusive,
                            bool reverse)
{
    const weft_shape whole = *weft_shape_of(x); /* a copy: building moves the array */
    const weft_dim blocks = {dim.name, BLOCKS};
    weft_dim within = weft_dim_beside(x.graph, dim);
    within.size = dim.size / BLOCKS;
    weft_shape cut = {0};
    for (int d = 0; d < whole.n_dims; d++) {
        const bool is_it = strcmp(whole.dims[d].name, dim.name) == 0;
        cut.dims[cut.n_dims++] = is_it ? blocks : whole.dims[d];
        if (is_it) cut.dims[cut.n_dims++] = within;
    }
    const weft_value parts = weft_reshape(x, cut);
    const weft_value sums = weft_emit_cumulate(way->op, parts, within, false, reverse);
    const weft_value of_blocks = weft_unstack(sums, within, reverse ? 0 : within.size - 1);
    const weft_value before = weft_emit_cumulate(way->op, of_blocks, blocks, true, reverse);
    const weft_value inner =
        exclusive ? weft_emit_cumulate(way->op, parts, within, true, reverse) : sums;
    const weft_value both = way->both(before, inner);
    return weft_reshape(way->ties ? unless_first(inner, both, blocks, reverse) : both, whole);
}

weft_value weft_cumulate_by_blocks(const weft_cumulating *way, weft_value x,
                                   const weft_cumulate_attributes *attributes)
{
    const weft_dim dim = {attributes->dim, attributes->size};
    const bool reverse = attributes->reverse;
    const int64_t padded = (dim.size + BLOCKS - 1) / BLOCKS * BLOCKS;
    const weft_dim longer = {dim.name, padded};
    const int64_t ahead = reverse ? padded - dim.size : 0;
    if (padded == dim.size) return by_blocks(way, x, dim, attributes->exclusive, reverse);
    const weft_value whole = weft_pad(x, dim, ahead, longer, way->neutral[weft_dtype_of(x)]);
    const weft_value sums = by_blocks(way, whole, longer, attributes->exclusive, reverse);
    return weft_slice(sums, longer, ahead, dim);
}

weft_value weft_cumulate(weft_value x, weft_dim dim, bool exclusive, bool reverse,
                         const weft_cumulating *way)
{
    weft_dim_attributes taken;
    if (!weft_graph_dim(x.graph, way->op->name, dim, &taken)) return weft_no_value(x.graph);
    if (x.id == 0) return weft_no_value(x.graph);
    dim = (weft_dim){taken.dim, taken.size};
    const bool is_short = dim.size < LEAST || dim.size > INT32_MAX - BLOCKS ||
                          weft_shape_of(x)->n_dims == WEFT_MAX_DIMS;
    const weft_value sums =
        emit(way->op, weft_wide(x), dim, exclusive, reverse, is_short ? 0 : BLOCKS);
    return weft_cast(sums, weft_dtype_of(x));
}
