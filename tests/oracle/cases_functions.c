/* cases_functions.c: functions of one number or two, rounding and logic, element by element. */
#include "cases_element.h"

ONE_OPERAND(sigmoid, in)
ONE_OPERAND(silu, in)
ONE_OPERAND(hardswish, in)
ONE_OPERAND(selu, in)
ONE_OPERAND(softplus, in)
ONE_OPERAND(erf, in)
ONE_OPERAND(expm1, in)
ONE_OPERAND(log1p, positive)
ONE_OPERAND(reciprocal, positive)
ONE_OPERAND(abs, in)
ONE_OPERAND(sign, in)
ONE_OPERAND(logical_not, in)
ONE_OPERAND(is_finite, in)
ONE_OPERAND(is_nan, in)

static weft_value elu_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_elu(x, 0.75);
}
static weft_value leaky_relu_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_leaky_relu(x, 0.25);
}
static weft_value clamp_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_clamp(x, 0.0, 1.0);
}

/* Many fall on a whole number, or half way between two. */
#define HALVES(op)                                                                                 \
    static weft_value op##_halves(build_t *b, weft_dtype t)                                        \
    {                                                                                              \
        weft_value twice = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, MERGED), -9, 10);        \
        return weft_##op(weft_oracle_made(b, weft_scale(weft_cast(twice, t), 0.5)));               \
    }
ONE_OPERAND(floor, in)
ONE_OPERAND(ceil, in)
ONE_OPERAND(round, in)
HALVES(floor)
HALVES(ceil)
HALVES(round)

TWO(pow, positive, in)
TWO(mod, in, positive)
TWO(floor_div, in, positive)
TWO(logical_and, in, in)
TWO(logical_or, in, in)
TWO(logical_xor, in, in)
TIES(logical_and)
TIES(logical_or)
TIES(logical_xor)

/* Whole powers of numbers below 0, and of 0. */
static weft_value pow_whole(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, C), -3, 4);
    weft_value y = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(B, A), 0, 4);
    x = weft_oracle_made(b, weft_cast(x, t)), y = weft_oracle_made(b, weft_cast(y, t));
    return weft_pow(x, y);
}

static weft_value pow_log_x(build_t *b, weft_dtype t)
{
    const weft_value of[] = {positive(b, t, WEFT_DIMS(A, C)), in(b, t, WEFT_DIMS(B, A))};
    return weft_emit_element(&weft_op_pow_log, of, 2, 2.0, 0.0);
}
static weft_value pow_log_whole(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, C), 0, 4);
    weft_value y = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(B, A), -2, 4);
    const weft_value of[] = {weft_oracle_made(b, weft_cast(x, t)),
                             weft_oracle_made(b, weft_cast(y, t))};
    return weft_emit_element(&weft_op_pow_log, of, 2, 1.0, 0.0);
}

/* All signs, and integers by 0. */
#define SIGNS(op)                                                                                  \
    static weft_value op##_signs(build_t *b, weft_dtype t)                                         \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(ROWS, MERGED)), y = in(b, t, WEFT_DIMS(MERGED));         \
        return weft_##op(x, y);                                                                    \
    }
SIGNS(mod)
SIGNS(floor_div)

WIDE(sigmoid, -40.0, 40.0)
WIDE(silu, -40.0, 40.0)
WIDE(hardswish, -4.0, 4.0)
WIDE(softplus, -40.0, 40.0)
WIDE(erf, -6.0, 6.0)
WIDE(expm1, -30.0, 30.0)
WIDE(log1p, -0.99, 4000.0)

/* So near to 0 that 1 + x has lost most of it. */
#define NEAR_ZERO(op)                                                                              \
    static weft_value op##_small(build_t *b, weft_dtype t)                                         \
    {                                                                                              \
        weft_value x = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), -1e-4, 1e-4);              \
        return weft_##op(x);                                                                       \
    }
NEAR_ZERO(expm1)
NEAR_ZERO(log1p)
NEAR_ZERO(erf)

WITH(sigmoid, 0.0, (double)-INFINITY)
WITH(softplus, 0.0, (double)-INFINITY)
WITH(erf, 0.0, (double)-INFINITY)
WITH(expm1, 0.0, (double)-INFINITY)
WITH(log1p, 0.0, -1.0)
WITH(abs, 0.0, (double)-INFINITY)
WITH(sign, 0.0, (double)NAN)
WITH(is_finite, 0.0, (double)-INFINITY)
WITH(is_nan, 0.0, (double)NAN)

static weft_value clamp_special(build_t *b, weft_dtype t)
{
    return weft_clamp(case_with(b, t, WEFT_DIMS(A, C), 0.0, (double)NAN), 0.5, 1.0);
}

/* ---- the table ------------------------------------------------------------------------------------- */

/* f16 has no number as small, or as large, as some of them are far out. */
#define WIDE_AND_SPECIAL(op)                                                                       \
    CASE(op##_x, OP_FLOAT, 2), CASE(op##_wide, OP_WIDE | OP_BF16, 0, .alone = true, .each = true), \
        CASE(op##_special, OP_FLOAT, 0, .alone = true)
static weft_value outer_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A)), y = in(b, t, WEFT_DIMS(C, B));
    return weft_outer(x, y);
}
static weft_value triangle_x(build_t *b, weft_dtype t)
{
    (void)t;
    return weft_triangle(b->graph, A, B, 1);
}
static weft_value lower_triangle_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(C, B, A));
    return weft_lower_triangle(x, A, B, 1);
}
static weft_value upper_triangle_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_upper_triangle(x, A, B, -2);
}

static weft_value erfinv_x(build_t *b, weft_dtype t)
{
    return weft_erfinv(weft_oracle_input(b, t, WEFT_DIMS(A, C), -0.9, 0.9));
}
static weft_value erfinv_edges(build_t *b, weft_dtype t) /* -1, 1, and past them */
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, MERGED), -2, 3);
    return weft_erfinv(weft_oracle_made(b, weft_cast(x, t)));
}
static weft_value erfinv_far(build_t *b, weft_dtype t) /* down to 2^-50 before 1 */
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), -50.0, -3.0);
    weft_value two = weft_constant(b->graph, t, WEFT_SCALAR, 2.0);
    x = weft_shift(weft_neg(weft_pow(two, x)), 1.0);
    return weft_erfinv(weft_oracle_made(b, x));
}

CASES(erfinv, CASE(erfinv_x, OP_FLOAT, 2, .each = true),
      CASE(erfinv_edges, OP_FLOAT, 0, .alone = true),
      CASE(erfinv_far, OP_F64, 0, .each = true, .alone = true))
CASES(outer, CASE(outer_x, OP_FLOAT | OP_INT, 2, .each = true))
CASES(triangle, CASE(triangle_x, OP_I32, 0, .with = {.dim = "a", .other = "b", .a = 1}))
CASES(lower_triangle, CASE(lower_triangle_x, OP_FLOAT | OP_INT, 1, .each = true,
                           .with = {.dim = "a", .other = "b", .a = 1}))
CASES(upper_triangle, CASE(upper_triangle_x, OP_FLOAT | OP_INT, 1, .each = true,
                           .with = {.dim = "a", .other = "b", .a = -2}))
CASES(sigmoid, WIDE_AND_SPECIAL(sigmoid))
CASES(softplus, WIDE_AND_SPECIAL(softplus))
CASES(erf, WIDE_AND_SPECIAL(erf), CASE(erf_small, OP_WIDE, 0, .alone = true, .each = true))
CASES(expm1, WIDE_AND_SPECIAL(expm1), CASE(expm1_small, OP_WIDE, 0, .alone = true, .each = true))
CASES(log1p, WIDE_AND_SPECIAL(log1p), CASE(log1p_small, OP_WIDE, 0, .alone = true, .each = true))
CASES(silu, CASE(silu_x, OP_FLOAT, 2), CASE(silu_wide, OP_WIDE, 0, .alone = true, .each = true))
CASES(hardswish, CASE(hardswish_x, OP_FLOAT, 1),
      CASE(hardswish_wide, OP_WIDE, 0, .alone = true, .each = true))
CASES(elu, CASE(elu_x, OP_FLOAT, 1, .with = {.a = 0.75}))
CASES(selu, CASE(selu_x, OP_FLOAT, 1))
CASES(leaky_relu, CASE(leaky_relu_x, OP_FLOAT, 1, .with = {.a = 0.25}))
CASES(reciprocal, CASE(reciprocal_x, OP_FLOAT, 2))
CASES(pow, CASE(pow_same, OP_FLOAT, 2), CASE(pow_broadcast, OP_FLOAT, 1),
      CASE(pow_whole, OP_WIDE, 0, .alone = true, .each = true))

CASES(pow_log, CASE(pow_log_x, OP_FLOAT, 2, .with = {.a = 2.0}),
      CASE(pow_log_whole, OP_WIDE, 0, .with = {.a = 1.0}, .alone = true))

CASES(abs, CASE(abs_x, ALL_DTYPES, 1, .each = true), CASE(abs_special, OP_FLOAT, 0, .alone = true))
CASES(sign, CASE(sign_x, ALL_DTYPES, 0, .each = true),
      CASE(sign_special, OP_FLOAT, 0, .alone = true))
CASES(clamp, CASE(clamp_x, ALL_DTYPES, 1, .with = {.a = 0.0, .b = 1.0}, .each = true),
      CASE(clamp_special, OP_FLOAT, 0, .with = {.a = 0.5, .b = 1.0}, .alone = true))
CASES(floor, CASE(floor_x, OP_FLOAT, 0, .each = true),
      CASE(floor_halves, OP_FLOAT, 0, .alone = true, .each = true))
CASES(ceil, CASE(ceil_x, OP_FLOAT, 0, .each = true),
      CASE(ceil_halves, OP_FLOAT, 0, .alone = true, .each = true))
CASES(round, CASE(round_x, OP_FLOAT, 0, .each = true),
      CASE(round_halves, OP_FLOAT, 0, .alone = true, .each = true))
CASES(mod, CASE(mod_same, ALL_DTYPES, 1), CASE(mod_broadcast, ALL_DTYPES, 0),
      CASE(mod_signs, ALL_DTYPES, 0, .alone = true))
CASES(floor_div, CASE(floor_div_same, ALL_DTYPES, 0), CASE(floor_div_broadcast, ALL_DTYPES, 0),
      CASE(floor_div_signs, OP_WIDE | OP_INT, 0, .alone = true))

#define LOGIC(op)                                                                                  \
    CASE(op##_same, ALL_DTYPES, 0), CASE(op##_broadcast, ALL_DTYPES, 0),                           \
        CASE(op##_ties, OP_FLOAT, 0, .alone = true)
CASES(logical_and, LOGIC(logical_and))
CASES(logical_or, LOGIC(logical_or))
CASES(logical_xor, LOGIC(logical_xor))
CASES(logical_not, CASE(logical_not_x, ALL_DTYPES, 0))
CASES(is_finite, CASE(is_finite_x, ALL_DTYPES, 0),
      CASE(is_finite_special, OP_FLOAT, 0, .alone = true))
CASES(is_nan, CASE(is_nan_x, ALL_DTYPES, 0), CASE(is_nan_special, OP_FLOAT, 0, .alone = true))
