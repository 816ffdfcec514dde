/* reshape: neighbouring dims merge, or a dim splits; the row-major order of elements stays. Linear.
 *
 * Factors: walking both shapes from the left, the shortest groups of equal product belong together. A
 * group of one dim on both sides passes. In a merged or split group only the outermost dims can be
 * cut, and only evenly: then a rank's part is the same run of elements on both sides. Dims of size
 * 1 belong to no group; one that both sides have, by name, passes. Gradient: dy in x's shape.
 */
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_shape *out = site->attributes;
    if (weft_shape_count(out) != weft_shape_count(&site->in[0].shape)) {
        char x[160], text[160];
        weft_shape_print(&site->in[0].shape, x, sizeof x);
        weft_shape_print(out, text, sizeof text);
        return weft_fail(error, WEFT_USAGE,
                         "%s is %s with %lld elements and the result is to be %s with "
                         "%lld; a reshape keeps their number",
                         weft_site_name(site, 0), x,
                         (long long)weft_shape_count(&site->in[0].shape), text,
                         (long long)weft_shape_count(out));
    }
    site->n_out = 1;
    site->out[0] = (weft_type){site->in[0].dtype, *out};
    return WEFT_OK;
}

static int skip_ones(const weft_shape *shape, int d)
{
    while (d < shape->n_dims && shape->dims[d].size == 1)
        d++;
    return d;
}

static void pass_ones(const weft_shape *x, const weft_shape *y, weft_factors *factors)
{
    for (int i = 0; i < x->n_dims; i++) {
        const int k = x->dims[i].size == 1 ? weft_shape_find(y, x->dims[i].name) : -1;
        if (k < 0 || y->dims[k].size != 1) continue;
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = (int8_t)i;
        factor->out[0] = (int8_t)k;
    }
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_shape *x = &site->in[0].shape, *y = &site->out[0].shape;
    factors->n_factors = 0;
    int i = skip_ones(x, 0), k = skip_ones(y, 0);
    while (i < x->n_dims && k < y->n_dims) {
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = (int8_t)i;
        factor->out[0] = (int8_t)k;
        int64_t x_product = x->dims[i++].size, y_product = y->dims[k++].size;
        factor->even = x_product != y_product;
        while (x_product != y_product) {
            if (x_product < y_product)
                x_product *= x->dims[i++].size;
            else
                y_product *= y->dims[k++].size;
        }
        i = skip_ones(x, i);
        k = skip_ones(y, k);
    }
    pass_ones(x, y, factors);
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_reshape(vjp->dout[0], *weft_shape_of(vjp->in[0]));
}

const weft_op weft_op_reshape = {
    .name = "reshape",
    .attributes = &weft_attributes_shape,
    .infer = infer,
    .factors = factors,
    .linear = 1,
    .selects = true,
    .gradient = gradient,
};

weft_value weft_reshape(weft_value x, weft_shape out)
{
    weft_shape shape;
    if (!weft_graph_shape(x.graph, "reshape", &out, &shape)) return weft_no_value(x.graph);
    return weft_emit(x.graph, &weft_op_reshape, &x, 1, &shape, sizeof shape);
}
