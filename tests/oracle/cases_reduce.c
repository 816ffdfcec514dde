/* cases_reduce.c: einsum, reductions and their states, compositions over one dim. */
#include "cases.h"

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
static weft_value einsum_large(build_t *b, weft_dtype t) /* past one block of BLAS */
{
    weft_value x = in(b, t, WEFT_DIMS(LATER, LONG)), y = in(b, t, WEFT_DIMS(LATER, MERGED));
    return weft_einsum(WEFT_DIMS(MERGED, LONG), x, y);
}
static weft_value einsum_three(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(B, C)),
               z = in(b, t, WEFT_DIMS(C, D));
    return weft_einsum_n(WEFT_DIMS(A, D), WEFT_VALUES(x, y, z));
}
static weft_value einsum_chain(build_t *b, weft_dtype t) /* from the right it is the least work */
{
    weft_value x = in(b, t, WEFT_DIMS(B, A)), y = in(b, t, WEFT_DIMS(C, A, BATCH)),
               z = in(b, t, WEFT_DIMS(BATCH, ROWS)), w = in(b, t, WEFT_DIMS(ROWS));
    return weft_einsum_n(WEFT_DIMS(C, B), WEFT_VALUES(x, y, z, w));
}
static weft_value einsum_one(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_einsum_n(WEFT_DIMS(C, A), WEFT_VALUES(x));
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
    return weft_argmax(weft_oracle_made(b, weft_cast(x, t)), B);
}
static weft_value cross_entropy_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, D, B)),
               labels = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, D), 0, 7);
    return weft_cross_entropy(x, labels, B);
}
static weft_value cross_entropy_smooth(build_t *b, weft_dtype t) /* with labels that are ignored */
{
    weft_value x = in(b, t, WEFT_DIMS(A, D, B)), labels = ids_of(b, WEFT_DIMS(D, A), B.size);
    const weft_cross_entropy_options options = {.label_smoothing = 0.2, .z_loss = 0.1};
    return weft_cross_entropy_with(x, labels, B, &options);
}
static weft_value cross_entropy_weighted(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, D)), labels = ids_of(b, WEFT_DIMS(A, D), B.size);
    weft_cross_entropy_options options = {.label_smoothing = 0.2};
    options.class_weights = positive(b, t, WEFT_DIMS(B));
    options.row_weights = in(b, t, WEFT_DIMS(A));
    return weft_cross_entropy_with(x, labels, B, &options);
}
static weft_value layer_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(D, C, B)), gain = in(b, t, WEFT_DIMS(B)),
               bias = in(b, t, WEFT_DIMS(B));
    return weft_layer_norm(x, gain, bias, B);
}
static weft_value mean_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_mean(x);
}
static weft_value sum_many(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(MERGED, TEN, ROWS, B));
    return weft_sum(WEFT_DIMS(B), x);
}
static weft_value sum_wraps(build_t *b, weft_dtype t)
{
    (void)t;
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, C), -2147483648.0, 2147483648.0);
    return weft_sum(WEFT_DIMS(C), x);
}

/* ---- reductions of extreme numbers: over 7 elements, so that some ranks have one and some none ---- */

/* Squares of the elements overflow, squares of the deviations do not. */
static weft_value huge(build_t *b, weft_dtype t, weft_dim over)
{
    const double unit = t == WEFT_F64 ? 1e154 : 1e19;
    weft_value x = weft_shift(weft_scale(in(b, t, WEFT_DIMS(over, A)), 0.5 * unit), 3.0 * unit);
    x = weft_oracle_made(b, x);
    weft_value gain = in(b, t, WEFT_DIMS(over)), bias = in(b, t, WEFT_DIMS(over));
    return weft_layer_norm(x, gain, bias, over);
}
static weft_value layer_norm_huge(build_t *b, weft_dtype t)
{
    return huge(b, t, B);
}
static weft_value layer_norm_few(build_t *b, weft_dtype t) /* and most ranks have none of them */
{
    return huge(b, t, C);
}
static weft_value logsumexp_masked(build_t *b, weft_dtype t) /* one row in three is all -inf */
{
    weft_value x = case_with(b, t, WEFT_DIMS(B, C), 0.5, (double)-INFINITY);
    weft_value row = weft_iota(b->graph, t, C), one = weft_constant(b->graph, t, WEFT_SCALAR, 1.0);
    weft_value none = weft_constant(b->graph, t, WEFT_SCALAR, (double)-INFINITY);
    return weft_logsumexp(weft_oracle_made(b, weft_where(weft_equal(row, one), none, x)), B);
}
static weft_value logsumexp_infinite(build_t *b, weft_dtype t)
{
    return weft_logsumexp(case_with(b, t, WEFT_DIMS(B, C), -1.2, (double)INFINITY), B);
}
static weft_value logsumexp_nan(build_t *b, weft_dtype t)
{
    return weft_logsumexp(case_with(b, t, WEFT_DIMS(B, C), -1.2, (double)NAN), B);
}
static weft_value softmax_masked(build_t *b, weft_dtype t)
{
    return weft_softmax(case_with(b, t, WEFT_DIMS(B, C), 0.0, (double)-INFINITY), B);
}
static weft_value argmax_masked(build_t *b, weft_dtype t)
{
    return weft_argmax(case_with(b, t, WEFT_DIMS(B, C), 1.4, (double)-INFINITY), B);
}
static weft_value argmax_nan(build_t *b, weft_dtype t)
{
    return weft_argmax(case_with(b, t, WEFT_DIMS(B, C), -0.5, (double)NAN), B);
}
static weft_value max_nan(build_t *b, weft_dtype t)
{
    return weft_max(WEFT_DIMS(C), case_with(b, t, WEFT_DIMS(B, C), -1.1, (double)NAN));
}

/* ---- states, which only expansions make --------------------------------------------------------- */

static weft_value lse_state_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_emit_state(&weft_op_lse_state, WEFT_LSE, B.name, x);
}
static weft_value argmax_state_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_emit_state(&weft_op_argmax_state, WEFT_ARGMAX, B.name, x);
}
static weft_value moments_state_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_emit_state(&weft_op_moments_state, WEFT_MOMENTS, B.name, x);
}
static weft_value lse_finish_x(build_t *b, weft_dtype t)
{
    weft_value state = weft_oracle_made(b, lse_state_x(b, t));
    const weft_value top = weft_emit(b->graph, &weft_op_lse_finish, &state, 1, NULL, 0);
    weft_oracle_other(b, weft_result(top, 1));
    return top;
}
static weft_value normalizer_x(build_t *b, weft_dtype t)
{
    const weft_normalizer of = weft_normalizer_of(weft_wide(in(b, t, WEFT_DIMS(A, B, C))), B);
    weft_oracle_other(b, of.log_sum);
    return of.maximum;
}
static weft_value argmax_finish_x(build_t *b, weft_dtype t)
{
    weft_value state = weft_oracle_made(b, argmax_state_x(b, t));
    return weft_emit(b->graph, &weft_op_argmax_finish, &state, 1, NULL, 0);
}
static weft_value moments_finish_x(build_t *b, weft_dtype t)
{
    const weft_number_attributes epsilon = {0.25};
    weft_value state = weft_oracle_made(b, moments_state_x(b, t));
    weft_value mean =
        weft_emit(b->graph, &weft_op_moments_finish, &state, 1, &epsilon, sizeof epsilon);
    weft_oracle_other(b, weft_result(mean, 1));
    return mean;
}
static weft_value norm_stats_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C)), mean = weft_norm_stats(x, B, 0.5);
    weft_oracle_other(b, weft_result(mean, 1));
    return mean;
}

static weft_value normalized_x(build_t *b, weft_dtype t)
{
    return weft_normalize(in(b, t, WEFT_DIMS(A, B, C)), WEFT_DIMS(B), 0.5);
}

CASES(einsum, CASE(einsum_matrix, OP_FLOAT, 2), CASE(einsum_batched, OP_FLOAT, 2),
      CASE(einsum_outer, OP_FLOAT, 1), CASE(einsum_dot, OP_FLOAT, 2),
      CASE(einsum_alone_dim, OP_FLOAT, 1), CASE(einsum_two_contracted, OP_FLOAT, 1),
      CASE(einsum_elementwise, OP_FLOAT, 1), CASE(einsum_large, OP_FLOAT, 0, .alone = true))
CASES(einsum_n, CASE(einsum_three, OP_FLOAT, 2), CASE(einsum_one, OP_FLOAT, 1),
      CASE(einsum_chain, OP_FLOAT, 1))
CASES(sum, CASE(sum_middle, OP_FLOAT | OP_INT, 1), CASE(sum_all, OP_FLOAT | OP_INT, 1),
      CASE(sum_many, OP_FLOAT, 0, .alone = true), CASE(sum_wraps, OP_I32, 0, .alone = true))
CASES(reduce_max, CASE(max_middle, OP_FLOAT | OP_INT, 1), CASE(max_all, OP_FLOAT | OP_INT, 1),
      CASE(max_nan, OP_FLOAT, 0))
CASES(mean_over, CASE(mean_over_middle, OP_FLOAT, 1), CASE(mean_over_all, OP_FLOAT, 1))
CASES(mean, CASE(mean_x, OP_FLOAT, 1))

CASES(logsumexp, CASE(logsumexp_last, OP_FLOAT, 2), CASE(logsumexp_first, OP_FLOAT, 1),
      CASE(logsumexp_masked, OP_FLOAT, 0), CASE(logsumexp_infinite, OP_FLOAT, 0),
      CASE(logsumexp_nan, OP_FLOAT, 0))
CASES(argmax, CASE(argmax_last, OP_FLOAT, 0, .with = {.dim = "c"}),
      CASE(argmax_first, OP_FLOAT, 0, .with = {.dim = "a"}),
      CASE(argmax_ties, OP_FLOAT, 0, .with = {.dim = "b"}),
      CASE(argmax_masked, OP_FLOAT, 0, .with = {.dim = "b"}),
      CASE(argmax_nan, OP_FLOAT, 0, .with = {.dim = "b"}))
CASES(softmax, CASE(softmax_last, OP_FLOAT, 2, .with = {.dim = "c"}),
      CASE(softmax_first, OP_FLOAT, 1, .with = {.dim = "a"}),
      CASE(softmax_masked, OP_FLOAT, 0, .with = {.dim = "b"}))
CASES(log_softmax, CASE(log_softmax_last, OP_FLOAT, 2, .with = {.dim = "c"}),
      CASE(log_softmax_first, OP_FLOAT, 1, .with = {.dim = "a"}))
CASES(cross_entropy, CASE(cross_entropy_x, OP_FLOAT, 2, .with = {.dim = "b"}),
      CASE(cross_entropy_smooth, OP_FLOAT, 2, .with = {.dim = "b", .a = 0.2, .b = 0.1}),
      CASE(cross_entropy_weighted, OP_FLOAT, 1,
           .with = {.dim = "b", .a = 0.2, .class_weights = 2, .row_weights = 3}))
CASES(layer_norm, CASE(layer_norm_x, OP_FLOAT, 2, .with = {.dim = "b"}),
      CASE(layer_norm_huge, OP_FLOAT, 0, .with = {.dim = "b"}),
      CASE(layer_norm_few, OP_FLOAT, 0, .with = {.dim = "c"}))

CASES(normalizer, CASE(normalizer_x, OP_FLOAT, 0))
CASES(lse_state, CASE(lse_state_x, OP_FLOAT, 0, .alone = true))
CASES(lse_finish, CASE(lse_finish_x, OP_FLOAT, 0, .alone = true))
CASES(argmax_state,
      CASE(argmax_state_x, OP_WIDE, 0, .with = {.dim = "b"}, .alone = true, .each = true))
CASES(argmax_finish, CASE(argmax_finish_x, OP_FLOAT, 0, .alone = true))
CASES(moments_state, CASE(moments_state_x, OP_FLOAT, 0, .alone = true))
CASES(moments_finish, CASE(moments_finish_x, OP_FLOAT, 0, .with = {.a = 0.25}, .alone = true))
CASES(norm_stats, CASE(norm_stats_x, OP_FLOAT, 2, .with = {.a = 0.5}))
CASES(normalized, CASE(normalized_x, OP_FLOAT, 2, .with = {.dim = "b", .a = 0.5}))
