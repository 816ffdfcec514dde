/* op_cases.c: the table of ops. Sizes 5, 7, 3 and 2: not divisible by the axes, and smaller than
 * some of them.
 *
 * A new op adds its builder and its line here.
 */
#include "op_cases.h"

#include <math.h>

typedef weft_oracle_build build_t;

static const weft_dim A = {"a", 5}, B = {"b", 7}, C = {"c", 3}, D = {"d", 2}, ONE = {"one", 1};
static const weft_dim BATCH = {"batch", 3}, HEADS = {"heads", 2}, SEQ = {"seq", 5},
                      MEMORY = {"memory", 7}, FEATURE = {"feature", 4}, ROWS = {"rows", 9};

static weft_value in(build_t *b, weft_dtype dtype, weft_shape shape)
{
    return dtype == WEFT_I32 ? weft_oracle_input(b, dtype, shape, -9, 10)
                             : weft_oracle_input(b, dtype, shape, -1.5, 1.5);
}

static weft_value positive(build_t *b, weft_dtype dtype, weft_shape shape)
{
    return dtype == WEFT_I32 ? weft_oracle_input(b, dtype, shape, 1, 10)
                             : weft_oracle_input(b, dtype, shape, 0.5, 2.5);
}

static weft_value ids_of(build_t *b, weft_shape shape, int64_t n)
{
    return weft_oracle_input(b, WEFT_I32, shape, -1,
                             (double)n + 1); /* with one below and one past the end */
}

/* ---- einsum ---------------------------------------------------------------------------------- */

static weft_value einsum_matrix(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(B, C));
    return weft_einsum(WEFT_DIMS(A, C), x, y);
}
static weft_value einsum_batched(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(D, A, B)), y = in(b, t, WEFT_DIMS(B, D, C));
    return weft_einsum(WEFT_DIMS(A, D, C), x, y);
}
static weft_value einsum_outer(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A)), y = in(b, t, WEFT_DIMS(C));
    return weft_einsum(WEFT_DIMS(C, A), x, y);
}
static weft_value einsum_dot(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(B, A));
    return weft_einsum(WEFT_SCALAR, x, y);
}
static weft_value einsum_alone_dim(build_t *b,
                                   weft_dtype t) /* c is in one operand only, and summed */
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(C, B));
    return weft_einsum(WEFT_DIMS(A), x, y);
}
static weft_value einsum_two_contracted(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C, D)), y = in(b, t, WEFT_DIMS(C, D, B));
    return weft_einsum(WEFT_DIMS(A, B), x, y);
}
static weft_value einsum_elementwise(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(A, B));
    return weft_einsum(WEFT_DIMS(B, A), x, y);
}
static weft_value einsum_three(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(B, C)),
               z = in(b, t, WEFT_DIMS(C, D));
    return weft_einsum_n(WEFT_DIMS(A, D), WEFT_VALUES(x, y, z));
}
static weft_value einsum_one(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_einsum_n(WEFT_DIMS(C, A), WEFT_VALUES(x));
}

/* ---- element by element ---------------------------------------------------------------------- */

/* Two operands of the same dims, in another order, or fewer. */
#define TWO(op, make_x, make_y)                                                                    \
    static weft_value op##_same(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = make_x(b, t, WEFT_DIMS(A, C)), y = make_y(b, t, WEFT_DIMS(C, A));           \
        return weft_##op(x, y);                                                                    \
    }                                                                                              \
    static weft_value op##_broadcast(build_t *b, weft_dtype t)                                     \
    {                                                                                              \
        weft_value x = make_x(b, t, WEFT_DIMS(A)), y = make_y(b, t, WEFT_DIMS(B, A));              \
        return weft_##op(x, y);                                                                    \
    }
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

#define ONE_OPERAND(op, make)                                                                      \
    static weft_value op##_x(build_t *b, weft_dtype t)                                             \
    {                                                                                              \
        weft_value x = make(b, t, WEFT_DIMS(A, C));                                                \
        return weft_##op(x);                                                                       \
    }
ONE_OPERAND(neg, in)
ONE_OPERAND(exp, in)
ONE_OPERAND(log, positive)
ONE_OPERAND(sqrt, positive)
ONE_OPERAND(rsqrt, positive)
ONE_OPERAND(square, in)
ONE_OPERAND(tanh, in)
ONE_OPERAND(relu, in)
ONE_OPERAND(gelu, in)
ONE_OPERAND(mean, in)
ONE_OPERAND(stop_gradient, in)

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
    return weft_cast(weft_scale(x, 7.0), WEFT_I32);
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

/* ---- constants and indices ------------------------------------------------------------------- */

static weft_value constant_x(build_t *b, weft_dtype t)
{
    return weft_constant(b->graph, t, WEFT_DIMS(A, C), 6.0);
}
static weft_value iota_x(build_t *b, weft_dtype t)
{
    return weft_iota(b->graph, t, B);
}
static weft_value step_x(build_t *b, weft_dtype t)
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

/* ---- reductions ------------------------------------------------------------------------------ */

#define REDUCE(op)                                                                                 \
    static weft_value op##_middle(build_t *b, weft_dtype t)                                        \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, B, C));                                               \
        return weft_##op(WEFT_DIMS(C, A), x);                                                      \
    }                                                                                              \
    static weft_value op##_all(build_t *b, weft_dtype t)                                           \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, C));                                                  \
        return weft_##op(WEFT_SCALAR, x);                                                          \
    }
REDUCE(sum)
REDUCE(max)
REDUCE(mean_over)

#define OVER_DIM(op)                                                                               \
    static weft_value op##_last(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, C));                                                  \
        return weft_##op(x, C);                                                                    \
    }                                                                                              \
    static weft_value op##_first(build_t *b, weft_dtype t)                                         \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, C));                                                  \
        return weft_##op(x, A);                                                                    \
    }
OVER_DIM(logsumexp)
OVER_DIM(argmax)
OVER_DIM(softmax)
OVER_DIM(log_softmax)

static weft_value argmax_ties(build_t *b, weft_dtype t) /* few different numbers: many ties */
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(C, B), 0, 3);
    return weft_argmax(weft_cast(x, t), B);
}
static weft_value cross_entropy_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, D, B)),
               labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, D), 0, 7);
    return weft_cross_entropy(x, labels, B);
}
static weft_value layer_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(D, C, B)), gain = in(b, t, WEFT_DIMS(B)),
               bias = in(b, t, WEFT_DIMS(B));
    return weft_layer_norm(x, gain, bias, B);
}

/* ---- reductions of extreme numbers: over 7 elements, so that some ranks have one and some none ---- */

/* Squares of the elements overflow, squares of the deviations do not. */
static weft_value layer_norm_huge(build_t *b, weft_dtype t)
{
    const double unit = t == WEFT_F64 ? 1e154 : 1e19;
    weft_value x = weft_shift(weft_scale(in(b, t, WEFT_DIMS(B, C)), 0.5 * unit), 3.0 * unit);
    weft_value one = weft_constant(b->graph, t, WEFT_DIMS(B), 1.0);
    return weft_layer_norm(x, one, one, B);
}
/* Where x is below `limit`, `instead`: of 7 elements most, some, or all. */
static weft_value with(weft_value x, double limit, double instead)
{
    const weft_dtype dtype = weft_dtype_of(x);
    weft_value edge = weft_constant(x.graph, dtype, WEFT_SCALAR, limit);
    weft_value value = weft_constant(x.graph, dtype, WEFT_SCALAR, instead);
    return weft_where(weft_less(x, edge), value, x);
}
static weft_value logsumexp_masked(build_t *b, weft_dtype t) /* one row in three is all -inf */
{
    weft_value x = with(in(b, t, WEFT_DIMS(B, C)), 0.5, (double)-INFINITY);
    weft_value row = weft_iota(b->graph, t, C), one = weft_constant(b->graph, t, WEFT_SCALAR, 1.0);
    weft_value none = weft_constant(b->graph, t, WEFT_SCALAR, (double)-INFINITY);
    return weft_logsumexp(weft_where(weft_equal(row, one), none, x), B);
}
static weft_value logsumexp_infinite(build_t *b, weft_dtype t)
{
    return weft_logsumexp(with(in(b, t, WEFT_DIMS(B, C)), -1.2, (double)INFINITY), B);
}
static weft_value argmax_masked(build_t *b, weft_dtype t)
{
    weft_value x = with(in(b, t, WEFT_DIMS(B, C)), 1.4, (double)-INFINITY);
    return weft_argmax(x, B);
}
static weft_value argmax_nan(build_t *b, weft_dtype t)
{
    return weft_argmax(with(in(b, t, WEFT_DIMS(B, C)), -0.5, (double)NAN), B);
}
static weft_value max_nan(build_t *b, weft_dtype t)
{
    return weft_max(WEFT_DIMS(C), with(in(b, t, WEFT_DIMS(B, C)), -1.1, (double)NAN));
}

/* ---- indexing -------------------------------------------------------------------------------- */

static weft_value gather_x(build_t *b, weft_dtype t)
{
    weft_value table = in(b, t, WEFT_DIMS(ROWS, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_gather(table, ids, ROWS);
}
static weft_value scatter_add_x(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(A, D, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_scatter_add(rows, ids, ROWS);
}
static weft_value pick_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), ids = ids_of(b, WEFT_DIMS(A, D), B.size);
    return weft_pick(x, ids, B);
}

/* ---- attention ------------------------------------------------------------------------------- */

static weft_value attention(build_t *b, weft_dtype t, weft_dim memory, bool causal)
{
    weft_value q = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(BATCH, memory, HEADS, FEATURE));
    weft_value v = in(b, t, WEFT_DIMS(BATCH, HEADS, memory, FEATURE));
    return weft_attention(q, k, v, SEQ, memory, FEATURE, causal);
}
static weft_value attention_causal(build_t *b, weft_dtype t)
{
    return attention(b, t, SEQ, true);
}
static weft_value attention_full(build_t *b, weft_dtype t)
{
    return attention(b, t, SEQ, false);
}
static weft_value attention_cross(build_t *b, weft_dtype t)
{
    return attention(b, t, MEMORY, false);
}

static const weft_dim KEY = {"key", 5}; /* the memory rows of SEQ in bias and mask */

static weft_value attention_with(build_t *b, weft_dtype t, weft_attention_options options,
                                 weft_shape bias, weft_shape mask)
{
    options.query = SEQ, options.feature = FEATURE;
    weft_value q = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(BATCH, options.memory, HEADS, FEATURE));
    weft_value v = in(b, t, WEFT_DIMS(BATCH, HEADS, options.memory, FEATURE));
    if (bias.n_dims > 0) options.bias = in(b, t, bias);
    if (mask.n_dims > 0) options.mask = weft_oracle_input(b, WEFT_I32, mask, 0, 2);
    return weft_attention_with(q, k, v, &options);
}
static weft_value attention_bias(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = SEQ, .column = KEY};
    return attention_with(b, t, options, WEFT_DIMS(HEADS, KEY, SEQ), WEFT_SCALAR);
}
static weft_value attention_mask(build_t *b, weft_dtype t) /* padding; some rows see nothing */
{
    const weft_attention_options options = {.memory = SEQ, .column = KEY, .causal = true};
    return attention_with(b, t, options, WEFT_SCALAR, WEFT_DIMS(BATCH, KEY));
}
static weft_value attention_window(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = SEQ, .causal = true, .window = 2};
    return attention_with(b, t, options, WEFT_SCALAR, WEFT_SCALAR);
}
static weft_value attention_everything(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = MEMORY, .window = 3, .scale = 0.8};
    return attention_with(b, t, options, WEFT_DIMS(MEMORY, BATCH), WEFT_DIMS(SEQ, MEMORY, HEADS));
}

/* ---- shape ----------------------------------------------------------------------------------- */

static weft_value transpose_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_transpose(x, WEFT_DIMS(C, A, B));
}
static weft_value rename_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_rename(x, B, (weft_dim){"other", B.size});
}
static weft_value reshape_merge(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C, D));
    return weft_reshape(x, WEFT_DIMS(A, ((weft_dim){"merged", 6})));
}
static weft_value reshape_split(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(((weft_dim){"merged", 12}), A));
    return weft_reshape(x, WEFT_DIMS(((weft_dim){"outer", 4}), C, A));
}
static weft_value reshape_both(build_t *b, weft_dtype t) /* [6, 5] to [10, 3]: no dim survives */
{
    weft_value x = in(b, t, WEFT_DIMS(((weft_dim){"six", 6}), A));
    return weft_reshape(x, WEFT_DIMS(((weft_dim){"ten", 10}), C));
}
static weft_value slice_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_slice(x, B, 2, (weft_dim){"part_of_b", 4});
}
static weft_value concat_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(A, C));
    return weft_concat(x, y, B, C, (weft_dim){"joined", 10});
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

#define CASE(op, dtypes, derivatives)                                                              \
    {                                                                                              \
#op, op, dtypes, derivatives                                                               \
    }
const op_case op_cases[] = {
    CASE(einsum_matrix, OP_FLOAT, 2),
    CASE(einsum_batched, OP_FLOAT, 2),
    CASE(einsum_outer, OP_FLOAT, 1),
    CASE(einsum_dot, OP_FLOAT, 2),
    CASE(einsum_alone_dim, OP_FLOAT, 1),
    CASE(einsum_two_contracted, OP_FLOAT, 1),
    CASE(einsum_elementwise, OP_FLOAT, 1),
    CASE(einsum_three, OP_FLOAT, 2),
    CASE(einsum_one, OP_FLOAT, 1),
    CASE(add_same, OP_FLOAT | OP_I32, 1),
    CASE(add_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(add_disjoint, OP_FLOAT | OP_I32, 1),
    CASE(sub_same, OP_FLOAT | OP_I32, 1),
    CASE(sub_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(mul_same, OP_FLOAT | OP_I32, 2),
    CASE(mul_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(mul_scalar, OP_FLOAT | OP_I32, 2),
    CASE(div_same, OP_FLOAT | OP_I32, 2),
    CASE(div_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(maximum_same, OP_FLOAT | OP_I32, 1),
    CASE(maximum_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(minimum_same, OP_FLOAT | OP_I32, 1),
    CASE(minimum_broadcast, OP_FLOAT | OP_I32, 1),
    CASE(less_same, OP_FLOAT | OP_I32, 0),
    CASE(less_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(less_equal_same, OP_FLOAT | OP_I32, 0),
    CASE(less_equal_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(greater_same, OP_FLOAT | OP_I32, 0),
    CASE(greater_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(greater_equal_same, OP_FLOAT | OP_I32, 0),
    CASE(greater_equal_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(equal_same, OP_FLOAT | OP_I32, 0),
    CASE(equal_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(not_equal_same, OP_FLOAT | OP_I32, 0),
    CASE(not_equal_broadcast, OP_FLOAT | OP_I32, 0),
    CASE(neg_x, OP_FLOAT | OP_I32, 1),
    CASE(exp_x, OP_FLOAT, 2),
    CASE(log_x, OP_FLOAT, 2),
    CASE(sqrt_x, OP_FLOAT, 2),
    CASE(rsqrt_x, OP_FLOAT, 2),
    CASE(square_x, OP_FLOAT, 2),
    CASE(tanh_x, OP_FLOAT, 2),
    CASE(relu_x, OP_FLOAT, 1),
    CASE(gelu_x, OP_FLOAT, 2),
    CASE(scale_x, OP_FLOAT, 1),
    CASE(shift_x, OP_FLOAT, 1),
    CASE(where_x, OP_FLOAT | OP_I32, 1),
    CASE(cast_to_i32, OP_FLOAT, 0),
    CASE(cast_to_f32, OP_FLOAT | OP_I32, 0),
    CASE(cast_to_f64, OP_FLOAT | OP_I32, 1),
    CASE(constant_x, OP_FLOAT | OP_I32, 0),
    CASE(iota_x, OP_FLOAT | OP_I32, 0),
    CASE(step_x, OP_FLOAT | OP_I32, 0),
    CASE(one_hot_x, OP_FLOAT | OP_I32, 0),
    CASE(broadcast_to_x, OP_FLOAT | OP_I32, 1),
    CASE(sum_middle, OP_FLOAT | OP_I32, 1),
    CASE(sum_all, OP_FLOAT | OP_I32, 1),
    CASE(max_middle, OP_FLOAT | OP_I32, 1),
    CASE(max_all, OP_FLOAT | OP_I32, 1),
    CASE(mean_over_middle, OP_FLOAT, 1),
    CASE(mean_over_all, OP_FLOAT, 1),
    CASE(mean_x, OP_FLOAT, 1),
    CASE(logsumexp_last, OP_FLOAT, 2),
    CASE(logsumexp_first, OP_FLOAT, 1),
    CASE(argmax_last, OP_FLOAT, 0),
    CASE(argmax_first, OP_FLOAT, 0),
    CASE(argmax_ties, OP_FLOAT, 0),
    CASE(softmax_last, OP_FLOAT, 2),
    CASE(softmax_first, OP_FLOAT, 1),
    CASE(log_softmax_last, OP_FLOAT, 2),
    CASE(log_softmax_first, OP_FLOAT, 1),
    CASE(cross_entropy_x, OP_FLOAT, 2),
    CASE(layer_norm_x, OP_FLOAT, 2),
    CASE(layer_norm_huge, OP_FLOAT, 0),
    CASE(logsumexp_masked, OP_FLOAT, 0),
    CASE(logsumexp_infinite, OP_FLOAT, 0),
    CASE(argmax_masked, OP_FLOAT, 0),
    CASE(argmax_nan, OP_FLOAT, 0),
    CASE(max_nan, OP_FLOAT, 0),
    CASE(gather_x, OP_FLOAT, 1),
    CASE(scatter_add_x, OP_FLOAT, 1),
    CASE(pick_x, OP_FLOAT, 1),
    CASE(attention_causal, OP_FLOAT, 2),
    CASE(attention_full, OP_FLOAT, 2),
    CASE(attention_cross, OP_FLOAT, 1),
    CASE(attention_bias, OP_FLOAT, 2),
    CASE(attention_mask, OP_FLOAT, 1),
    CASE(attention_window, OP_FLOAT, 2),
    CASE(attention_everything, OP_FLOAT, 2),
    CASE(transpose_x, OP_FLOAT | OP_I32, 1),
    CASE(rename_x, OP_FLOAT | OP_I32, 1),
    CASE(reshape_merge, OP_FLOAT | OP_I32, 1),
    CASE(reshape_split, OP_FLOAT | OP_I32, 1),
    CASE(reshape_both, OP_FLOAT, 1),
    CASE(slice_x, OP_FLOAT | OP_I32, 1),
    CASE(concat_x, OP_FLOAT | OP_I32, 1),
    CASE(random_uniform_x, OP_FLOAT, 0),
    CASE(random_normal_x, OP_FLOAT, 0),
    CASE(dropout_x, OP_FLOAT, 1),
    CASE(stop_gradient_x, OP_FLOAT, 0),
};
const int n_op_cases = sizeof op_cases / sizeof op_cases[0];
