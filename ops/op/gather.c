/* gather: rows of a table: y[ids..., rest...] = table[ids, rest...]; an id outside the dim gives
 * zeros.
 *
 * Where the table is split along the indexed dim, each rank gives the rows it holds: a partial sum.
 * Linear in the table. Gradient: dtable = scatter_add(dy, ids).
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *attributes = site->attributes;
    const weft_shape *table = &site->in[0].shape, *ids = &site->in[1].shape;
    WEFT_TRY(weft_check_ids(site, 1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, attributes->size, error));
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, *ids};
    weft_shape *out = &site->out[0].shape;
    for (int d = 0; d < table->n_dims; d++) {
        const char *name = table->dims[d].name;
        if (strcmp(name, attributes->dim) == 0) continue;
        if (weft_shape_find(ids, name) >= 0)
            return weft_fail(error, WEFT_USAGE,
                             "both %s and the ids %s have %s, and the result can have it once; "
                             "weft_rename one, or use weft_pick",
                             weft_site_name(site, 0), weft_site_name(site, 1), name);
        if (out->n_dims == WEFT_MAX_DIMS)
            return weft_fail(error, WEFT_USAGE, "the result would have more than %d dims",
                             WEFT_MAX_DIMS);
        out->dims[out->n_dims++] = table->dims[d];
    }
    return WEFT_OK;
}

/* By hand: the builder puts the indexed dim first, and it is reduced. */
static void factors(const weft_site *site, weft_factors *factors)
{
    factors->n_factors = 0;
    const int n_ids = site->in[1].shape.n_dims;
    for (int d = 0; d < site->out[0].shape.n_dims; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->out[0] = (int8_t)d;
        factor->in[d < n_ids ? 1 : 0] = (int8_t)(d < n_ids ? d : d - n_ids + 1);
    }
    weft_factor_new(factors, WEFT_SUM)->in[0] = 0;
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *attributes = vjp->site->attributes;
    const weft_dim dim = {attributes->dim, attributes->size};
    if (vjp->wanted[0]) vjp->din[0] = weft_scatter_add(vjp->dout[0], vjp->in[1], dim);
}

const weft_op weft_op_gather = {
    .name = "gather",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

/* x with dim first. */
static weft_value first_dim(weft_value x, weft_dim dim)
{
    if (weft_shape_find(weft_shape_of(x), dim.name) <= 0)
        return x; /* or not there: infer says so */
    weft_shape order = weft_shape_make(&dim, 1);
    const weft_shape rest = weft_shape_without(weft_shape_of(x), dim.name);
    for (int d = 0; d < rest.n_dims; d++)
        order.dims[order.n_dims++] = rest.dims[d];
    return weft_transpose(x, order);
}

weft_value weft_gather(weft_value table, weft_value ids, weft_dim dim)
{
    table = first_dim(table, dim);
    if (weft_shape_find(weft_shape_of(ids), dim.name) >=
        0) { /* a permutation: the table's dim is another one */
        const weft_dim other = weft_dim_beside(table.graph, dim);
        table = weft_rename(table, dim, other);
        dim = other;
    }
    const weft_value in[] = {table, ids};
    return weft_emit_dim(&weft_op_gather, in, 2, dim);
}
