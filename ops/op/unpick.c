/* unpick: the adjoint of pick: y[..., c] = the sum of the x[...] with id c, over the dims that y lacks. As
 * scatter_add, but that ids may have dims that y has: each of their elements has a row of its own.
 *
 * Split along a dim that y lacks it is a partial sum; split along the dim of the ids a rank takes what it owns. Linear in x.
 * Gradient: dx = pick(dy, ids).
 */
#include <string.h>

#include "op.h"
#include "weft/ops.h"

typedef struct unpick_attributes {
    weft_dim_attributes along; /* what the kernel reads */
    weft_shape out;
} unpick_attributes;
static const weft_field fields[] = {WEFT_FIELD(unpick_attributes, along.dim),
                                    WEFT_FIELD(unpick_attributes, along.size),
                                    WEFT_FIELD(unpick_attributes, out)};
static const weft_attributes described = WEFT_ATTRIBUTES(unpick_attributes, fields);

/* Every dim of the result but the ids' is one of x, and every dim of x is in the result or the ids. */
static weft_status check_dims(const weft_site *site, weft_error *error)
{
    const unpick_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *ids = &site->in[1].shape;
    char text[160];
    for (int d = 0; d < a->out.n_dims; d++)
        if (strcmp(a->out.dims[d].name, a->along.dim) != 0)
            WEFT_TRY(weft_check_dim(site, 0, a->out.dims[d].name, a->out.dims[d].size, error));
    for (int d = 0; d < ids->n_dims; d++)
        WEFT_TRY(weft_check_dim(site, 0, ids->dims[d].name, ids->dims[d].size, error));
    for (int d = 0; d < x->n_dims; d++) {
        const char *name = x->dims[d].name;
        const bool is_there =
            weft_shape_find(ids, name) >= 0 || weft_shape_find(&a->out, name) >= 0;
        if (is_there && strcmp(name, a->along.dim) != 0) continue;
        weft_shape_print(&a->out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s has %s, which %s; the result is to be %s. Sum over it, or rename it",
                         weft_site_name(site, 0), name,
                         is_there ? "the result gets from the ids"
                                  : "neither the ids nor the result have",
                         text);
    }
    return WEFT_OK;
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const unpick_attributes *a = site->attributes;
    const int along = weft_shape_find(&a->out, a->along.dim);
    WEFT_TRY(weft_check_ids(site, 1, error));
    if (along < 0 || a->out.dims[along].size != a->along.size) {
        char text[160];
        weft_shape_print(&a->out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "ids go along %s:%lld, and the result is to be %s; give it that dim",
                         a->along.dim, (long long)a->along.size, text);
    }
    WEFT_TRY(check_dims(site, error));
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, a->out};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_SUM, factors);
}

static void gradient(weft_vjp *vjp)
{
    const unpick_attributes *a = vjp->site->attributes;
    const weft_dim dim = {a->along.dim, a->along.size};
    const weft_shape shape = vjp->site->in[0].shape; /* that of the graph moves as it grows */
    if (vjp->wanted[0])
        vjp->din[0] = weft_transpose(weft_pick(vjp->dout[0], vjp->in[1], dim), shape);
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op weft_op_unpick = {
    .name = "unpick",
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .gradient = gradient,
    .flops = flops,
    .accumulates = &weft_op_add,
};

weft_value weft_unpick(weft_shape out, weft_value x, weft_value ids, weft_dim dim)
{
    unpick_attributes attributes;
    const weft_dtype dtype = weft_dtype_of(x);
    const weft_value in[] = {weft_wide(x), ids};
    memset(&attributes, 0, sizeof attributes);
    if (!weft_graph_dim(x.graph, "unpick", dim, &attributes.along) ||
        !weft_graph_shape(x.graph, "unpick", &out, &attributes.out))
        return weft_no_value(x.graph);
    return weft_cast(weft_emit(x.graph, &weft_op_unpick, in, 2, &attributes, sizeof attributes),
                     dtype);
}
