/* cast: the same number in another dtype. Float to i32 truncates, keeps to i32's range, and makes
 * NaN 0.
 *
 * Not linear: the cast of a sum is rounded once, the sum of casts several times.
 * Gradient: dy cast back; none through i32.
 */
#include "element.h"
#include "weft/ops.h"

#define TO_I32(x, limit)                                                                           \
    ((x) != (x) ? 0 : (x) >= (limit) ? INT32_MAX : (x) <= -(limit) ? INT32_MIN : (int32_t)(x))

WEFT_BLOCK_1(f32_to_f64, float, double, x)
WEFT_BLOCK_1(f32_to_i32, float, int32_t, TO_I32(x, 2147483648.0f))
WEFT_BLOCK_1(f64_to_f32, double, float, x)
WEFT_BLOCK_1(f64_to_i32, double, int32_t, TO_I32(x, 2147483648.0))
WEFT_BLOCK_1(i32_to_f32, int32_t, float, x)
WEFT_BLOCK_1(i32_to_f64, int32_t, double, x)
static const weft_element element = {
    .size = sizeof(weft_element),
    .block[WEFT_F32] = {[WEFT_F64] = f32_to_f64, [WEFT_I32] = f32_to_i32},
    .block[WEFT_F64] = {[WEFT_F32] = f64_to_f32, [WEFT_I32] = f64_to_i32},
    .block[WEFT_I32] = {[WEFT_F32] = i32_to_f32, [WEFT_F64] = i32_to_f64},
};

typedef struct cast_attributes {
    weft_element_attributes element;
    weft_dtype to;
} cast_attributes;
static const weft_field fields[] = {WEFT_FIELD(cast_attributes, to)};
static const weft_attributes described = WEFT_ATTRIBUTES(cast_attributes, fields);

static weft_status infer(weft_site *site, weft_error *error)
{
    (void)error;
    const cast_attributes *attributes = site->attributes;
    site->n_out = 1;
    site->out[0] = (weft_type){attributes->to, site->in[0].shape};
    return WEFT_OK;
}

static void gradient(weft_vjp *vjp)
{
    vjp->din[0] = weft_cast(vjp->dout[0], weft_dtype_of(vjp->in[0]));
}

const weft_op weft_op_cast = {
    .name = "cast",
    .attributes = &described,
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
};

weft_value weft_cast(weft_value x, weft_dtype dtype)
{
    if ((unsigned)dtype >= WEFT_DTYPES)
        return weft_graph_fail(x.graph, "cast: %d is no dtype; use WEFT_F32, WEFT_F64 or WEFT_I32",
                               (int)dtype);
    if (x.id != 0 && weft_dtype_of(x) == dtype) return x;
    cast_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.to = dtype;
    return weft_emit(x.graph, &weft_op_cast, &x, 1, &attributes, sizeof attributes);
}
