/* cast: the same number in another dtype.
 *
 * To a float: rounded to the nearest, ties to even; past the largest infinite. Float to integer: towards 0, kept to the
 * integer's range, NaN is 0. Integer to integer: wraps around.
 *
 * Not linear: the cast of a sum is rounded once, the sum of casts several times.
 * Gradient: dy cast back; none through integers.
 *
 * Between a dtype and the one that it is computed with there is no block: loops widen what they read, and narrow what they
 * store (ops/graph/storage.c).
 */
#include "element.h"
#include "ir.h"
#include "weft/extend/half.h"
#include "weft/ops.h"

/* Kept from `low` on, and below `end`: the first number past the range. */
#define KEPT(T, x, low, end, most)                                                                 \
    ((x) != (x) ? 0 : (x) >= (end) ? (most) : (x) <= (low) ? (T)(low) : (T)(x))
#define TO_I32(x)  KEPT(int32_t, x, -0x1p31f, 0x1p31f, INT32_MAX)
#define TO_I64(x)  KEPT(int64_t, x, -0x1p63f, 0x1p63f, INT64_MAX)
#define TO_U8(x)   KEPT(uint8_t, x, 0.0f, 256.0f, 255)
#define TO_BF16(x) weft_bf16_of_f64((double)(x))
#define TO_F16(x)  weft_f16_of_f64((double)(x))

#define CASTS(CAST)                                                                                \
    CAST(f32_to_f64, F32, float, F64, double, x)                                                   \
    CAST(f32_to_i32, F32, float, I32, int32_t, TO_I32(x))                                          \
    CAST(f32_to_i64, F32, float, I64, int64_t, TO_I64(x))                                          \
    CAST(f32_to_u8, F32, float, U8, uint8_t, TO_U8(x))                                             \
    CAST(f64_to_f32, F64, double, F32, float, x)                                                   \
    CAST(f64_to_i32, F64, double, I32, int32_t, TO_I32(x))                                         \
    CAST(f64_to_i64, F64, double, I64, int64_t, TO_I64(x))                                         \
    CAST(f64_to_u8, F64, double, U8, uint8_t, TO_U8(x))                                            \
    CAST(f64_to_bf16, F64, double, BF16, uint16_t, TO_BF16(x))                                     \
    CAST(f64_to_f16, F64, double, F16, uint16_t, TO_F16(x))                                        \
    CAST(i32_to_f32, I32, int32_t, F32, float, x)                                                  \
    CAST(i32_to_f64, I32, int32_t, F64, double, x)                                                 \
    CAST(i32_to_i64, I32, int32_t, I64, int64_t, x)                                                \
    CAST(i32_to_bf16, I32, int32_t, BF16, uint16_t, TO_BF16(x))                                    \
    CAST(i32_to_f16, I32, int32_t, F16, uint16_t, TO_F16(x))                                       \
    CAST(i64_to_f32, I64, int64_t, F32, float, x)                                                  \
    CAST(i64_to_f64, I64, int64_t, F64, double, x)                                                 \
    CAST(i64_to_i32, I64, int64_t, I32, int32_t, (uint32_t)(uint64_t)x)                            \
    CAST(i64_to_bf16, I64, int64_t, BF16, uint16_t, TO_BF16(x))                                    \
    CAST(i64_to_f16, I64, int64_t, F16, uint16_t, TO_F16(x))

#define BLOCK(name, in, T, out, R, expression) WEFT_BLOCK_1(name, T, R, expression)
CASTS(BLOCK)
/* What is kept of an expression has its macros replaced: they are this file's. */
#define TEXT(expression) #expression
#define ENTRY(name, in, T, out, R, expression)                                                     \
    .block[WEFT_##in][WEFT_##out] = name, .text[WEFT_##in][WEFT_##out] = TEXT(expression),
static const weft_element element = {.size = sizeof(weft_element), CASTS(ENTRY)};

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

/* What y is the cast of; no value: it is none. */
static weft_value cast_of(weft_value y)
{
    if (!weft_is_value(y)) return weft_no_value(y.graph);
    const weft_node *node = weft_node_of(y.graph, y.id);
    return node->op == &weft_op_cast ? (weft_value){y.graph, node->in[0]} : weft_no_value(y.graph);
}

/* A gradient that was rounded on its way to bf16 goes to an f32 parameter as it was before. */
static void gradient(weft_vjp *vjp)
{
    const weft_dtype dtype = weft_dtype_of(vjp->in[0]);
    const weft_value before = cast_of(vjp->dout[0]);
    const bool is_finer = before.id != 0 && weft_dtype_of(before) == dtype;
    vjp->din[0] = is_finer ? before : weft_cast(vjp->dout[0], dtype);
}

const weft_op weft_op_cast = {
    .name = "cast",
    .attributes = &described,
    .infer = infer,
    .factors = weft_factors_pass,
    .gradient = gradient,
    .element = &element,
    .recodes = true,
};

weft_value weft_cast(weft_value x, weft_dtype dtype)
{
    if ((unsigned)dtype >= WEFT_DTYPES)
        return weft_graph_fail(x.graph, "cast: %d is no dtype; there are %s", (int)dtype,
                               weft_dtype_names());
    if (x.id != 0 && weft_dtype_of(x) == dtype) return x;
    /* Widened and narrowed again it is what it was. */
    const weft_value before = cast_of(x);
    if (before.id != 0 && weft_dtype_of(before) == dtype &&
        weft_dtype_computes(dtype) == weft_dtype_of(x))
        return before;
    cast_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.to = dtype;
    return weft_emit(x.graph, &weft_op_cast, &x, 1, &attributes, sizeof attributes);
}

weft_value weft_wide(weft_value x)
{
    return weft_cast(x, weft_dtype_computes(weft_dtype_of(x)));
}
