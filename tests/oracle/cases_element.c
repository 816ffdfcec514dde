/* cases_element.c: ops with results made element by element. */
#include "cases_element.h"

/* ---- element by element ---------------------------------------------------------------------- */

TWO(add, in, in)
TWO(sub, in, in)
TWO(mul, in, in)
TWO(div, in, positive)
TWO(maximum, in, in)
TWO(minimum, in, in)
TWO(less, in, in)
TWO(less_equal, in, in)
TWO(greater, in, in)
TWO(greater_equal, in, in)
TWO(equal, in, in)
TWO(not_equal, in, in)

static weft_value add_disjoint(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, ONE)), y = in(b, t, WEFT_DIMS(C));
    return weft_add(x, y);
}
static weft_value mul_scalar(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C)), y = in(b, t, WEFT_SCALAR);
    return weft_mul(y, x);
}

ONE_OPERAND(neg, in)
ONE_OPERAND(exp, in)
ONE_OPERAND(log, positive)
ONE_OPERAND(sqrt, positive)
ONE_OPERAND(rsqrt, positive)
ONE_OPERAND(square, in)
ONE_OPERAND(tanh, in)
ONE_OPERAND(relu, in)
ONE_OPERAND(sin, in)
ONE_OPERAND(cos, in)
ONE_OPERAND(gelu, in)
ONE_OPERAND(stop_gradient, in)
ONE_OPERAND(settle, in)
ONE_OPERAND(same, in)

static weft_value scale_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_scale(x, -3.0);
}
static weft_value shift_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_shift(x, 4.0);
}
static weft_value where_x(build_t *b, weft_dtype t)
{
    weft_value condition = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(C), 0, 2);
    weft_value x = in(b, t, WEFT_DIMS(A, C)), y = in(b, t, WEFT_DIMS(A));
    return weft_where(condition, x, y);
}
static weft_value cast_to_i32(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_cast(weft_oracle_made(b, weft_scale(x, 7.0)), WEFT_I32);
}
static weft_value cast_to_f32(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_cast(x, WEFT_F32);
}
static weft_value cast_to_f64(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_cast(x, WEFT_F64);
}

WIDE(exp, -80.0, 80.0)
WIDE(log, 1e-6, 4000.0)
WIDE(sqrt, 1e-6, 4000.0)
WIDE(rsqrt, 1e-3, 4000.0)
WIDE(tanh, -12.0, 12.0)
WIDE(sin, -30.0, 30.0)
WIDE(cos, -30.0, 30.0)
WIDE(gelu, -14.0, 14.0)

WITH(exp, 0.0, (double)-INFINITY)
WITH(log, 0.3, 0.0)
WITH(tanh, 0.0, (double)-INFINITY)
WITH(gelu, 0.0, (double)NAN)
WITH(relu, -0.5, (double)NAN)

TIES(less)
TIES(less_equal)
TIES(greater)
TIES(greater_equal)
TIES(equal)
TIES(not_equal)

static weft_value maximum_nan(build_t *b, weft_dtype t)
{
    weft_value x = case_with(b, t, WEFT_DIMS(A, C), 0.0, (double)NAN);
    weft_value y = case_with(b, t, WEFT_DIMS(C, A), -0.7, (double)NAN);
    return weft_maximum(x, y);
}
static weft_value minimum_nan(build_t *b, weft_dtype t)
{
    weft_value x = case_with(b, t, WEFT_DIMS(A, C), 0.0, (double)NAN);
    weft_value y = case_with(b, t, WEFT_DIMS(C, A), -0.7, (double)NAN);
    return weft_minimum(x, y);
}
static weft_value log_denormal(build_t *b, weft_dtype t)
{
    weft_value x = weft_scale(positive(b, t, WEFT_DIMS(A, C)), t == WEFT_F64 ? 1e-310 : 1e-39);
    return weft_log(weft_oracle_made(b, x));
}
static weft_value where_nan(build_t *b, weft_dtype t) /* a branch not taken does not leak */
{
    weft_value condition = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(C), 0, 2);
    weft_value x = case_with(b, t, WEFT_DIMS(A, C), 0.0, (double)NAN), y = in(b, t, WEFT_DIMS(A));
    return weft_where(condition, x, y);
}

static weft_value mask_of(build_t *b, weft_dtype t, weft_shape shape)
{
    const weft_value x = weft_oracle_input(b, WEFT_I32, shape, 0, 2);
    return weft_oracle_made(b, weft_cast(x, t));
}
static weft_value masked_x(build_t *b, weft_dtype t)
{
    const weft_value mask = mask_of(b, t, WEFT_DIMS(C, A));
    const weft_value of[] = {mask, in(b, t, WEFT_DIMS(A))};
    return weft_emit_element(&weft_op_masked, of, 2, 0.0, 0.0);
}
static weft_value masked_infinite(build_t *b, weft_dtype t) /* it does not multiply */
{
    const weft_value mask = mask_of(b, t, WEFT_DIMS(C));
    const weft_value of[] = {mask, case_with(b, t, WEFT_DIMS(A, C), 0.0, (double)INFINITY)};
    return weft_emit_element(&weft_op_masked, of, 2, 0.0, 0.0);
}

/* Integers: those that wrap around, a divisor of 0 or -1. */
static weft_value whole(build_t *b, weft_shape shape)
{
    return weft_oracle_input(b, WEFT_I32, shape, -2147483648.0, 2147483648.0);
}
#define WRAPS(op)                                                                                  \
    static weft_value op##_wraps(build_t *b, weft_dtype t)                                         \
    {                                                                                              \
        (void)t;                                                                                   \
        weft_value x = whole(b, WEFT_DIMS(A, C)), y = whole(b, WEFT_DIMS(B, A));                   \
        return weft_##op(x, y);                                                                    \
    }
WRAPS(add)
WRAPS(sub)
WRAPS(mul)
static weft_value div_small(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C)),
               y = weft_oracle_input(b, t, WEFT_DIMS(B, A), -2.0, 3.0);
    return weft_div(x, y);
}
static weft_value cast_far(build_t *b, weft_dtype t) /* past what an i32 holds, on both sides */
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(A, C), -6e9, 6e9); /* of f16: infinite */
    return weft_cast(x, WEFT_I32);
}
static weft_value cast_to_i64(build_t *b, weft_dtype t)
{
    return weft_cast(weft_oracle_input(b, t, WEFT_DIMS(A, C), -6e4, 6e4), WEFT_I64);
}
static weft_value cast_to_u8(build_t *b, weft_dtype t) /* below and past its range too */
{
    return weft_cast(weft_oracle_input(b, t, WEFT_DIMS(A, C), -300.0, 600.0), WEFT_U8);
}
static weft_value cast_to_bf16(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_cast(x, WEFT_BF16);
}
static weft_value cast_to_f16(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_cast(x, WEFT_F16);
}
static weft_value cast_nan(build_t *b, weft_dtype t)
{
    return weft_cast(case_with(b, t, WEFT_DIMS(A, C), 0.5, (double)NAN), WEFT_I32);
}

static weft_value gelu_slope_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_emit_element(&weft_op_gelu_slope, &x, 1, 0.0, 0.0);
}
static weft_value gelu_slope_wide(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), -40.0, 40.0);
    return weft_emit_element(&weft_op_gelu_slope, &x, 1, 0.0, 0.0);
}
static weft_value copy_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_emit(b->graph, &weft_op_copy, &x, 1, NULL, 0);
}

/* ---- constants and indices ------------------------------------------------------------------- */

static weft_value constant_x(build_t *b, weft_dtype t)
{
    return weft_constant(b->graph, t, WEFT_DIMS(A, C), 6.0);
}
static weft_value iota_x(build_t *b, weft_dtype t)
{
    return weft_iota(b->graph, t, B);
}
static weft_value run_number_x(build_t *b, weft_dtype t)
{
    return weft_run_number(b->graph, t);
}
static weft_value one_hot_x(build_t *b, weft_dtype t)
{
    weft_value ids = ids_of(b, WEFT_DIMS(A, C), B.size);
    return weft_one_hot(ids, B, t);
}
static weft_value broadcast_to_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_broadcast_to(x, WEFT_DIMS(C, B, A));
}

/* ---- random ---------------------------------------------------------------------------------- */

static weft_value random_uniform_x(build_t *b, weft_dtype t)
{
    return weft_random_uniform(b->graph, t, WEFT_DIMS(A, B), -1.0, 3.0);
}
static weft_value random_normal_x(build_t *b, weft_dtype t)
{
    return weft_random_normal(b->graph, t, WEFT_DIMS(A, B), 1.0, 2.0);
}
static weft_value dropout_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_dropout(x, 0.3);
}
static weft_value dropout_over_x(build_t *b, weft_dtype t) /* rows of b at once */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_dropout_over(x, 0.3, WEFT_DIMS(C, A));
}
static weft_value random_uniform_second(build_t *b, weft_dtype t) /* has a stream of its own */
{
    (void)weft_random_uniform(b->graph, t, WEFT_DIMS(A, B), -1.0, 3.0);
    return weft_random_uniform(b->graph, t, WEFT_DIMS(A, B), -1.0, 3.0);
}
static weft_value random_normal_many(build_t *b, weft_dtype t) /* past one block of a kernel */
{
    return weft_random_normal(b->graph, t, WEFT_DIMS(MERGED, TEN, ROWS), 0.0, 1.0);
}
static weft_value random_int_x(build_t *b, weft_dtype t)
{
    return weft_random_int(b->graph, t, WEFT_DIMS(A, B), 3, 200);
}
static weft_value random_int_below(build_t *b, weft_dtype t)
{
    return weft_random_int(b->graph, t, WEFT_DIMS(LONG, B), -2000000000, 2000000000);
}
static weft_value random_bernoulli_x(build_t *b, weft_dtype t)
{
    return weft_random_bernoulli(b->graph, t, WEFT_DIMS(A, B), 0.3);
}
static weft_value random_bernoulli_of_x(build_t *b, weft_dtype t)
{
    return weft_random_bernoulli_of(weft_oracle_input(b, t, WEFT_DIMS(A, B), 0.0, 1.0));
}
static weft_value random_truncated_normal_x(build_t *b, weft_dtype t)
{
    return weft_random_truncated_normal(b->graph, t, WEFT_DIMS(LONG, B), 1.0, 2.0);
}
static weft_value random_gumbel_x(build_t *b, weft_dtype t)
{
    return weft_random_gumbel(b->graph, t, WEFT_DIMS(LONG, B));
}
static weft_value random_categorical_x(build_t *b, weft_dtype t)
{
    return weft_random_categorical(in(b, t, WEFT_DIMS(A, B, C)), B);
}
static weft_value dropout_many(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(MERGED, TEN, ROWS));
    return weft_dropout(x, 0.9);
}

CASES(add, CASE(add_same, ALL_DTYPES, 1), CASE(add_broadcast, ALL_DTYPES, 1),
      CASE(add_disjoint, ALL_DTYPES, 1), CASE(add_wraps, OP_I32, 0, .alone = true))
CASES(sub, CASE(sub_same, ALL_DTYPES, 1), CASE(sub_broadcast, ALL_DTYPES, 1),
      CASE(sub_wraps, OP_I32, 0, .alone = true))
CASES(mul, CASE(mul_same, ALL_DTYPES, 2), CASE(mul_broadcast, ALL_DTYPES, 1),
      CASE(mul_scalar, ALL_DTYPES, 2), CASE(mul_wraps, OP_I32, 0, .alone = true))
CASES(div, CASE(div_same, ALL_DTYPES, 2, .each = true), CASE(div_broadcast, ALL_DTYPES, 1),
      CASE(div_small, OP_INT, 0, .alone = true))
CASES(maximum, CASE(maximum_same, ALL_DTYPES, 1), CASE(maximum_broadcast, ALL_DTYPES, 1),
      CASE(maximum_nan, OP_FLOAT, 0, .alone = true))
CASES(minimum, CASE(minimum_same, ALL_DTYPES, 1), CASE(minimum_broadcast, ALL_DTYPES, 1),
      CASE(minimum_nan, OP_FLOAT, 0, .alone = true))
CASES(less, CASE(less_same, ALL_DTYPES, 0), CASE(less_broadcast, ALL_DTYPES, 0),
      CASE(less_ties, OP_FLOAT, 0, .alone = true))
CASES(less_equal, CASE(less_equal_same, ALL_DTYPES, 0), CASE(less_equal_broadcast, ALL_DTYPES, 0),
      CASE(less_equal_ties, OP_FLOAT, 0, .alone = true))
CASES(greater, CASE(greater_same, ALL_DTYPES, 0), CASE(greater_broadcast, ALL_DTYPES, 0),
      CASE(greater_ties, OP_FLOAT, 0, .alone = true))
CASES(greater_equal, CASE(greater_equal_same, ALL_DTYPES, 0),
      CASE(greater_equal_broadcast, ALL_DTYPES, 0),
      CASE(greater_equal_ties, OP_FLOAT, 0, .alone = true))
CASES(equal, CASE(equal_same, ALL_DTYPES, 0), CASE(equal_broadcast, ALL_DTYPES, 0),
      CASE(equal_ties, OP_FLOAT, 0, .alone = true))
CASES(not_equal, CASE(not_equal_same, ALL_DTYPES, 0), CASE(not_equal_broadcast, ALL_DTYPES, 0),
      CASE(not_equal_ties, OP_FLOAT, 0, .alone = true))

CASES(neg, CASE(neg_x, ALL_DTYPES, 1, .each = true))
CASES(exp, CASE(exp_x, OP_FLOAT, 2),
      CASE(exp_wide, OP_WIDE | OP_BF16, 0, .alone = true, .each = true),
      CASE(exp_special, OP_FLOAT, 0, .alone = true))
CASES(log, CASE(log_x, OP_FLOAT, 2), CASE(log_wide, OP_FLOAT, 0, .alone = true, .each = true),
      CASE(log_special, OP_FLOAT, 0, .alone = true), CASE(log_denormal, OP_FLOAT, 0, .alone = true))
CASES(sqrt, CASE(sqrt_x, OP_FLOAT, 2), CASE(sqrt_wide, OP_FLOAT, 0, .alone = true, .each = true))
CASES(rsqrt, CASE(rsqrt_x, OP_FLOAT, 2), CASE(rsqrt_wide, OP_FLOAT, 0, .alone = true, .each = true))
CASES(square, CASE(square_x, OP_FLOAT, 2, .each = true))
CASES(tanh, CASE(tanh_x, OP_FLOAT, 2), CASE(tanh_wide, OP_FLOAT, 0, .alone = true, .each = true),
      CASE(tanh_special, OP_FLOAT, 0, .alone = true))
CASES(sin, CASE(sin_x, OP_FLOAT, 2), CASE(sin_wide, OP_FLOAT, 0, .alone = true, .each = true))
CASES(cos, CASE(cos_x, OP_FLOAT, 2), CASE(cos_wide, OP_FLOAT, 0, .alone = true, .each = true))
CASES(relu, CASE(relu_x, OP_FLOAT, 1, .each = true), CASE(relu_special, OP_FLOAT, 0, .alone = true))
CASES(gelu, CASE(gelu_x, OP_FLOAT, 2), CASE(gelu_wide, OP_FLOAT, 0, .alone = true),
      CASE(gelu_special, OP_FLOAT, 0, .alone = true))
CASES(gelu_slope, CASE(gelu_slope_x, OP_FLOAT, 1),
      CASE(gelu_slope_wide, OP_FLOAT, 0, .alone = true))
CASES(scale, CASE(scale_x, OP_FLOAT, 1, .with = {.a = -3.0}, .each = true))
CASES(shift, CASE(shift_x, OP_FLOAT, 1, .with = {.a = 4.0}))
CASES(where, CASE(where_x, ALL_DTYPES, 1), CASE(where_nan, OP_FLOAT, 0, .alone = true))
CASES(masked, CASE(masked_x, ALL_DTYPES, 1), CASE(masked_infinite, OP_FLOAT, 0, .alone = true))
CASES(cast, CASE(cast_to_i32, OP_FLOAT, 0), CASE(cast_to_f32, ALL_DTYPES, 0),
      CASE(cast_to_f64, ALL_DTYPES, 1), CASE(cast_far, OP_FLOAT, 0, .alone = true),
      CASE(cast_nan, OP_FLOAT, 0, .alone = true), CASE(cast_to_i64, ALL_DTYPES, 0),
      CASE(cast_to_u8, ALL_DTYPES, 0),
      /* to 8 bits of precision, and to 11 */
      CASE(cast_to_bf16, ALL_DTYPES, 0, .each = true, .f32 = 0x1p-8, .f64 = 0x1p-8),
      CASE(cast_to_f16, ALL_DTYPES, 0, .each = true, .f32 = 0x1p-11, .f64 = 0x1p-11))
CASES(stop_gradient, CASE(stop_gradient_x, OP_FLOAT, 0, .each = true))
CASES(settle, CASE(settle_x, OP_FLOAT, 1, .each = true))
CASES(same, CASE(same_x, ALL_DTYPES, 1, .each = true))
CASES(copy, CASE(copy_x, ALL_DTYPES, 1, .each = true))

CASES(constant, CASE(constant_x, ALL_DTYPES, 0, .with = {.a = 6.0}))
CASES(iota, CASE(iota_x, ALL_DTYPES, 0, .with = {.dim = "b"}))
CASES(run_number, CASE(run_number_x, ALL_DTYPES, 0))
CASES(one_hot, CASE(one_hot_x, ALL_DTYPES, 0, .with = {.dim = "b"}))
CASES(broadcast, CASE(broadcast_to_x, ALL_DTYPES, 1, .each = true))

CASES(random_uniform,
      CASE(random_uniform_x, OP_FLOAT, 0, .with = {.a = -1.0, .b = 3.0, .stream = 1}),
      CASE(random_uniform_second, OP_FLOAT, 0, .with = {.a = -1.0, .b = 3.0, .stream = 2}))
CASES(random_normal, CASE(random_normal_x, OP_FLOAT, 0, .with = {.a = 1.0, .b = 2.0, .stream = 1}),
      CASE(random_normal_many, OP_FLOAT, 0, .with = {.b = 1.0, .stream = 1}, .alone = true))
CASES(dropout, CASE(dropout_x, OP_FLOAT, 1, .with = {.a = 0.3, .stream = 1}, .each = true),
      CASE(dropout_many, OP_FLOAT, 0, .with = {.a = 0.9, .stream = 1}, .alone = true, .each = true))
CASES(dropout_over, CASE(dropout_over_x, OP_FLOAT, 1, .with = {.dim = "b", .a = 0.3, .stream = 1}))
CASES(random_int, CASE(random_int_x, ALL_DTYPES, 0, .with = {.a = 3, .b = 200, .stream = 1}),
      CASE(random_int_below, OP_I32, 0, .with = {.a = -2e9, .b = 2e9, .stream = 1}, .alone = true))
CASES(random_bernoulli, CASE(random_bernoulli_x, ALL_DTYPES, 0, .with = {.a = 0.3, .stream = 1}))
CASES(random_bernoulli_of, CASE(random_bernoulli_of_x, OP_FLOAT, 0, .with = {.stream = 1}))
CASES(random_truncated_normal,
      CASE(random_truncated_normal_x, OP_FLOAT, 0, .with = {.a = 1.0, .b = 2.0, .stream = 1}))
CASES(random_gumbel, CASE(random_gumbel_x, OP_FLOAT, 0, .with = {.stream = 1}))
CASES(random_categorical,
      CASE(random_categorical_x, OP_FLOAT, 0, .with = {.dim = "b", .stream = 1}))
