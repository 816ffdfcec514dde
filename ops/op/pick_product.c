/* pick_product: y[.., own, out] = sum over in of x[.., in] w[ids[.., own], in, out]: each row times the matrix that its id says, which no
 * other row's work depends on; an id outside the dim gives zeros.
 *
 * The builder puts the ids' own dims behind those of x's rows, and w's dim first. Cut along rows, along out, and along in or along
 * the dim with a partial sum: where matrices are split, a rank does the rows of its own. Linear in x and in w.
 * Gradient: dx is the same with in and out in each other's place; dw is unpick_product.
 */
#include <string.h>

#include "product.h"
#include "weft/ops.h"

static bool has(const weft_shape *shape, const char *name)
{
    return weft_shape_find(shape, name) >= 0;
}

static weft_dim last_of(const weft_shape *shape)
{
    return shape->dims[shape->n_dims - 1];
}

/* The dim of w that is neither; three dims. */
static weft_dim out_of(const weft_shape *w, const char *dim, const char *in)
{
    for (int d = 0; d < w->n_dims; d++)
        if (strcmp(w->dims[d].name, dim) != 0 && strcmp(w->dims[d].name, in) != 0)
            return w->dims[d];
    return (weft_dim){NULL, 0};
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_dim_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *w = &site->in[1].shape, *ids = &site->in[2].shape;
    char text[160];
    WEFT_TRY(weft_check_float(site, 0, error));
    if (site->in[1].dtype != site->in[0].dtype)
        return weft_fail(error, WEFT_USAGE, "%s and %s have two dtypes, %s and %s; weft_cast one",
                         weft_site_name(site, 0), weft_site_name(site, 1),
                         weft_dtype_name(site->in[0].dtype), weft_dtype_name(site->in[1].dtype));
    WEFT_TRY(weft_check_ids(site, 2, error));
    WEFT_TRY(weft_check_dim(site, 1, a->dim, a->size, error));
    WEFT_TRY(weft_check_dims(site, error));
    const weft_dim in = x->n_dims > 0 ? last_of(x) : (weft_dim){"", 0};
    weft_shape_print(w, text, sizeof text);
    if (w->n_dims != 3 || !has(w, in.name) || strcmp(in.name, a->dim) == 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s; it has three dims: %s, one of x that the ids have not, and one "
                         "of its own",
                         weft_site_name(site, 1), text, a->dim);
    const weft_dim out = out_of(w, a->dim, in.name);
    if (has(ids, out.name) || has(ids, in.name) || has(ids, a->dim))
        return weft_fail(error, WEFT_USAGE,
                         "the ids number rows, and have %s of the matrices %s; weft_rename it",
                         has(ids, out.name)  ? out.name
                         : has(ids, in.name) ? in.name
                                             : a->dim,
                         text);
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, *ids};
    weft_shape *shape = &site->out[0].shape;
    if (shape->n_dims == WEFT_MAX_DIMS)
        return weft_fail(error, WEFT_USAGE, "the result would have more than %d dims",
                         WEFT_MAX_DIMS);
    shape->dims[shape->n_dims++] = out;
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_dim_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *w = &site->in[1].shape, *y = &site->out[0].shape;
    const int in = x->n_dims - 1, out = y->n_dims - 1;
    factors->n_factors = 0;
    for (int d = 0; d < out; d++) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[2] = factor->out[0] = (int8_t)d;
        if (d < in) factor->in[0] = (int8_t)d;
    }
    weft_factor *column = weft_factor_new(factors, WEFT_NOT_PARTIAL);
    column->in[1] = (int8_t)weft_shape_find(w, y->dims[out].name), column->out[0] = (int8_t)out;
    weft_factor *sum = weft_factor_new(factors, WEFT_SUM);
    sum->in[0] = (int8_t)in, sum->in[1] = (int8_t)weft_shape_find(w, x->dims[in].name);
    weft_factor_new(factors, WEFT_SUM)->in[1] = (int8_t)weft_shape_find(w, a->dim);
}

/* Of matrices that are a rank's own: as many rows as an even share. */
static double flops(const weft_site *site)
{
    const weft_dim_attributes *a = site->attributes;
    const weft_shape *x = &site->in[0].shape, *w = &site->in[1].shape;
    const double share = (double)w->dims[weft_shape_find(w, a->dim)].size / (double)a->size;
    return 2.0 * share * weft_count_of(&site->out[0].shape) * (double)last_of(x).size;
}

static void gradient(weft_vjp *vjp)
{
    const weft_dim_attributes *a = vjp->site->attributes;
    const weft_dim dim = {a->dim, a->size};
    const weft_value x = vjp->in[0], w = vjp->in[1], ids = vjp->in[2], dy = vjp->dout[0];
    if (vjp->wanted[0]) vjp->din[0] = weft_sum_to(weft_pick_product(dy, w, ids, dim), x);
    if (vjp->wanted[1]) vjp->din[1] = weft_unpick_product(x, dy, ids, dim);
}

const weft_op weft_op_pick_product = {
    .name = "pick_product",
    .attributes = &weft_attributes_dim,
    .infer = infer,
    .factors = factors,
    .linear = 1 | 2,
    .gradient = gradient,
    .flops = flops,
};

/* x with the dims that the ids have first, in some order, and what w has behind them; ids in the same order, with their own last. */
static void align(weft_value *x, weft_value *ids)
{
    const weft_shape of_x = *weft_shape_of(*x), of_ids = *weft_shape_of(*ids);
    weft_shape rows = {0}, rest = {0}, numbers;
    for (int d = 0; d < of_x.n_dims; d++)
        *(has(&of_ids, of_x.dims[d].name) ? &rows.dims[rows.n_dims++] : &rest.dims[rest.n_dims++]) =
            of_x.dims[d];
    numbers = rows;
    for (int d = 0; d < of_ids.n_dims; d++)
        if (!has(&rows, of_ids.dims[d].name)) numbers.dims[numbers.n_dims++] = of_ids.dims[d];
    if (rest.n_dims != 1) return; /* infer says so */
    rows.dims[rows.n_dims++] = rest.dims[0];
    *x = weft_transpose(*x, rows);
    *ids = weft_transpose(*ids, numbers);
}

static weft_value dim_first(weft_value w, weft_dim dim)
{
    weft_shape order = weft_shape_make(&dim, 1);
    if (!has(weft_shape_of(w), dim.name)) return w;
    const weft_shape rest = weft_shape_without(weft_shape_of(w), dim.name);
    for (int d = 0; d < rest.n_dims; d++)
        order.dims[order.n_dims++] = rest.dims[d];
    return weft_transpose(w, order);
}

weft_value weft_pick_product(weft_value x, weft_value w, weft_value ids, weft_dim dim)
{
    weft_dim_attributes taken;
    if (!weft_graph_dim(x.graph, "pick_product", dim, &taken)) return weft_no_value(x.graph);
    const weft_dtype dtype = weft_dtype_of(x);
    x = weft_wide(x), w = weft_wide(w);
    if (x.id != 0 && w.id != 0 && ids.id != 0 && x.graph == ids.graph && x.graph == w.graph) {
        align(&x, &ids);
        w = dim_first(w, (weft_dim){taken.dim, weft_dim_of(w, taken.dim).size});
    }
    const weft_value in[] = {x, w, ids};
    const weft_value y = weft_emit(x.graph, &weft_op_pick_product, in, 3, &taken, sizeof taken);
    return y.id == 0 ? y : weft_cast(y, dtype);
}
