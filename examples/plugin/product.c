/* product: the product of x over one dim, with a kernel, and a combine for where that dim is split.
 *
 * Cut along the dim, each rank multiplies what it has; the parts combine by "product", so a collective finishes them.
 * Gradient: dx = dy y / x, of operands without zeros.
 */
#include "tables.h"

#include <weft/extend/combine.h>
#include <weft/ops.h>

/* ---- the combine ----------------------------------------------------------------------------- */

#define PRODUCTS(T, name)                                                                          \
    static void multiply_##name(void *out_, const void *a_, const void *b_, int64_t n)             \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *a = a_, *b = b_;                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = a[i] * b[i];                                                                  \
    }                                                                                              \
    static void ones_##name(void *into, int64_t n)                                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)into)[i] = 1;                                                                    \
    }
PRODUCTS(float, f32)
PRODUCTS(double, f64)

const weft_combine_rule plugin_combine_product = {
    .size = sizeof(weft_combine_rule),
    .name = "product",
    .width = 1,
    .combine = {[WEFT_F32] = multiply_f32, [WEFT_F64] = multiply_f64},
    .identity = {[WEFT_F32] = ones_f32, [WEFT_F64] = ones_f64},
};
weft_combine plugin_product_kind; /* what weft_extend_combine made of it */

/* ---- the op ---------------------------------------------------------------------------------- */

typedef struct product_attributes {
    const char *dim;
} product_attributes;
static const weft_field fields[] = {WEFT_FIELD(product_attributes, dim)};
static const weft_attributes described = WEFT_ATTRIBUTES(product_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    const product_attributes *attributes = site->attributes;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->dim, -1, error));
    site->n_out = 1;
    site->out[0].dtype = site->in[0].dtype;
    site->out[0].shape = weft_shape_without(&site->in[0].shape, attributes->dim);
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    weft_factors_by_name(site, plugin_product_kind, factors);
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_mul(vjp->dout[0], weft_div(vjp->out[0], vjp->in[0]));
}

static double flops(const weft_site *site)
{
    return weft_count_of(&site->in[0].shape);
}

const weft_op plugin_op_product = {
    .size = sizeof(weft_op),
    .name = "product",
    .version = 1,
    .attributes = &described,
    .infer = infer,
    .factors = factors,
    .gradient = gradient,
    .flops = flops,
};

weft_value plugin_product(weft_value x, const char *dim)
{
    const product_attributes attributes = {dim};
    return weft_emit(x.graph, &plugin_op_product, &x, 1, &attributes, sizeof attributes);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Element [i, k, j] of x is i (n_dim inner) + k inner + j: worked out once, when a step gets its memory. */
typedef struct prepared {
    int64_t n_dim, inner;
    const void *x;
    void *y;
} prepared;

static weft_status prepare(const weft_call *call, weft_arena *arena, void **made, weft_error *error)
{
    const product_attributes *attributes = call->attributes;
    const weft_view *x = &call->in[0];
    const int along = weft_shape_find(&x->shape, attributes->dim);
    prepared *p = weft_arena_take(arena, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    *p = (prepared){weft_view_size(x, along), 1, x->data, call->out[0].data};
    for (int d = along + 1; d < x->shape.n_dims; d++)
        p->inner *= weft_view_size(x, d);
    *made = p;
    return WEFT_OK;
}

/* Elements [begin, end) of the result, by one lane. */
#define ROWS(T, name)                                                                              \
    static void rows_##name(void *argument, int64_t begin, int64_t end, int lane)                  \
    {                                                                                              \
        const prepared *p = argument;                                                              \
        const T *x = p->x;                                                                         \
        T *y = p->y;                                                                               \
        (void)lane;                                                                                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *row = x + i / p->inner * p->n_dim * p->inner + i % p->inner;                  \
            T product = 1;                                                                         \
            for (int64_t k = 0; k < p->n_dim; k++)                                                 \
                product *= row[k * p->inner];                                                      \
            y[i] = product;                                                                        \
        }                                                                                          \
    }
ROWS(float, f32)
ROWS(double, f64)

static void launch(const weft_call *call)
{
    const weft_piece rows = call->in[0].dtype == WEFT_F32 ? rows_f32 : rows_f64;
    weft_parallel(call->stream, weft_view_count(&call->out[0]), 256, rows, call->prepared);
}

const weft_kernel plugin_kernel_product = {
    .size = sizeof(weft_kernel),
    .name = "plain",
    .device = WEFT_CPU,
    .dtypes = WEFT_FLOAT_DTYPES,
    .prepare = prepare,
    .launch = launch,
};
