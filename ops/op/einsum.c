/* einsum: the product of two operands, summed over every dim that the result lacks.
 *
 * For bf16 and f16 the op's result is f32, so partial values are summed in f32; the builder rounds it. Factors follow
 * from the names: a dim that the result lacks is reduced (sum). Linear in each operand. Gradient: da = einsum(dims of
 * a; dy, b), db = einsum(dims of b; dy, a).
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static bool has(const weft_shape *shape, const char *name)
{
    return weft_shape_find(shape, name) >= 0;
}

/* A dim of the result that no operand has, with the nearest that one has. */
static weft_status fail_unknown(const weft_site *site, const weft_dim *dim, weft_error *error)
{
    const char *names[2 * WEFT_MAX_DIMS];
    int n_names = 0;
    char text[2][160];
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < site->in[i].shape.n_dims; d++)
            names[n_names++] = site->in[i].shape.dims[d].name;
        weft_shape_print(&site->in[i].shape, text[i], sizeof text[i]);
    }
    const char *near = weft_nearest(dim->name, names, n_names);
    return weft_fail(error, WEFT_USAGE,
                     "the result is to have %s, which neither %s %s nor %s %s has%s%s%s", dim->name,
                     weft_site_name(site, 0), text[0], weft_site_name(site, 1), text[1],
                     near == NULL ? "; leave it out, or weft_broadcast_to it" : "; did you mean ",
                     near == NULL ? "" : near, near == NULL ? "" : "?");
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_shape *out = site->attributes;
    WEFT_TRY(weft_check_dims(site, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    for (int d = 0; d < out->n_dims; d++) {
        const weft_dim *dim = &out->dims[d];
        const int operand = has(&site->in[0].shape, dim->name) ? 0 : 1;
        if (!has(&site->in[operand].shape, dim->name)) return fail_unknown(site, dim, error);
        WEFT_TRY(weft_check_dim(site, operand, dim->name, dim->size, error));
    }
    site->n_out = 1;
    site->out[0] = (weft_type){weft_dtype_computes(site->in[0].dtype), *out};
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, WEFT_SUM, factors);
}

static void gradient(weft_vjp *vjp)
{
    const weft_value dy = weft_cast(vjp->dout[0], weft_dtype_of(vjp->in[0]));
    for (int i = 0; i < 2; i++)
        if (vjp->wanted[i])
            vjp->din[i] = weft_einsum(*weft_shape_of(vjp->in[i]), dy, vjp->in[1 - i]);
}

/* A multiplication and an addition for each point of all dims together. */
static double flops(const weft_site *site)
{
    double points = weft_count_of(&site->in[0].shape);
    for (int d = 0; d < site->in[1].shape.n_dims; d++)
        if (!has(&site->in[0].shape, site->in[1].shape.dims[d].name))
            points *= (double)site->in[1].shape.dims[d].size;
    return 2.0 * points;
}

const weft_op weft_op_einsum = {
    .name = "einsum",
    .attributes = &weft_attributes_shape,
    .infer = infer,
    .factors = factors,
    .linear = 1 | 2,
    .gradient = gradient,
    .flops = flops,
    .accumulates = &weft_op_add,
    .row = &(const weft_row){.combine = WEFT_SUM, .each = &weft_op_mul},
};

/* A dim that only x has is summed before the product: that is less work, and every dim of an
 * operand is then in the result or in the other operand, on which the gradient relies. */
static weft_value sum_lone_dims(weft_value x, weft_value other, const weft_shape *out)
{
    const weft_shape *shape = weft_shape_of(x);
    weft_shape kept = weft_shape_make(NULL, 0);
    for (int d = 0; d < shape->n_dims; d++)
        if (has(weft_shape_of(other), shape->dims[d].name) || has(out, shape->dims[d].name))
            kept.dims[kept.n_dims++] = shape->dims[d];
    return kept.n_dims == shape->n_dims ? x : weft_sum(kept, x);
}

weft_value weft_einsum(weft_shape out, weft_value a, weft_value b)
{
    weft_graph *graph = a.graph != NULL ? a.graph : b.graph;
    weft_shape shape;
    if (!weft_graph_shape(graph, "einsum", &out, &shape)) return weft_no_value(graph);
    bool is_known =
        a.graph == b.graph && a.id != 0 && b.id != 0; /* else infer says what is wrong */
    for (int d = 0; d < shape.n_dims && is_known; d++)
        is_known =
            has(weft_shape_of(a), shape.dims[d].name) || has(weft_shape_of(b), shape.dims[d].name);
    if (is_known) {
        const weft_value whole = a;
        a = sum_lone_dims(a, b, &shape);
        b = sum_lone_dims(b, whole, &shape);
    }
    const weft_dtype dtype = weft_dtype_of(a);
    if (!weft_dtype_is_float(dtype)) a = weft_wide(a), b = weft_wide(b);
    const weft_value in[] = {a, b};
    return weft_cast(weft_emit(graph, &weft_op_einsum, in, 2, &shape, sizeof shape), dtype);
}
