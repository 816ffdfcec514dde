/* cases_norms.c: reductions, norms and losses that are compositions. */
#include "cases_element.h"

#define REDUCE(op, ...)                                                                            \
    static weft_value op##_middle(build_t *b, weft_dtype t)                                        \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, B, C));                                               \
        return weft_##op(WEFT_DIMS(C, A), x, ##__VA_ARGS__);                                       \
    }                                                                                              \
    static weft_value op##_all(build_t *b, weft_dtype t)                                           \
    {                                                                                              \
        weft_value x = in(b, t, WEFT_DIMS(A, C));                                                  \
        return weft_##op(WEFT_SCALAR, x, ##__VA_ARGS__);                                           \
    }
REDUCE(min)
REDUCE(variance, 1.0)

/* Two elements a row, each 0 or 1: of some rows all are true, of some one is, of some none. */
#define TRUTH(op)                                                                                  \
    static weft_value op##_rows(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(ROWS, D), 0, 2);                   \
        return weft_##op(WEFT_DIMS(ROWS), weft_oracle_made(b, weft_cast(x, t)));                   \
    }
TRUTH(any)
TRUTH(all)

static weft_value min_nan(build_t *b, weft_dtype t)
{
    return weft_min(WEFT_DIMS(A), case_with(b, t, WEFT_DIMS(A, C), -0.7, (double)NAN));
}
static weft_value argmin_ties(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(C, B), 0, 3);
    return weft_argmin(weft_oracle_made(b, weft_cast(x, t)), B);
}
static weft_value argmin_last(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    return weft_argmin(x, C);
}

static weft_value normalize_two(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_normalize(x, WEFT_DIMS(B, C), 0.25);
}
static weft_value normalize_one(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_normalize(x, WEFT_DIMS(A), 0.25);
}
static weft_value rms_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), gain = in(b, t, WEFT_DIMS(B));
    return weft_rms_norm(x, gain, B);
}

static weft_value huber_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C)), y = in(b, t, WEFT_DIMS(C, A));
    return weft_huber(x, y, 0.5);
}
static weft_value sigmoid_cross_entropy_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, C));
    weft_value y = weft_oracle_input(b, t, WEFT_DIMS(C, A), 0.0, 1.0);
    return weft_sigmoid_cross_entropy(x, y);
}
static weft_value sigmoid_cross_entropy_wide(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), -200.0, 200.0);
    weft_value y = weft_oracle_input(b, t, WEFT_DIMS(ROWS, MERGED), 0.0, 1.0);
    return weft_sigmoid_cross_entropy(x, y);
}
static weft_value kl_divergence_x(build_t *b, weft_dtype t)
{
    weft_value p = weft_oracle_input(b, t, WEFT_DIMS(A, B), -3.0, 0.0);
    weft_value q = weft_oracle_input(b, t, WEFT_DIMS(B, A), -3.0, 0.0);
    return weft_kl_divergence(p, q, B);
}
static weft_value kl_divergence_none(build_t *b, weft_dtype t)
{
    weft_value p = case_with(b, t, WEFT_DIMS(A, B), 0.0, (double)-INFINITY);
    weft_value q = case_with(b, t, WEFT_DIMS(A, B), -9.0, 0.0);
    return weft_kl_divergence(p, q, B);
}
static weft_value cosine_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), y = in(b, t, WEFT_DIMS(B, A));
    return weft_cosine(x, y, B);
}

static weft_value group_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, MERGED, C)), gain = in(b, t, WEFT_DIMS(MERGED)),
               bias = in(b, t, WEFT_DIMS(MERGED));
    return weft_group_norm(x, gain, bias, MERGED, 4, WEFT_DIMS(C), 0.25);
}
static weft_value instance_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C)), gain = in(b, t, WEFT_DIMS(A)),
               bias = in(b, t, WEFT_DIMS(A));
    return weft_instance_norm(x, gain, bias, WEFT_DIMS(B, C), 0.25);
}
static weft_value weight_norm_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C)), gain = in(b, t, WEFT_DIMS(B));
    return weft_weight_norm(x, gain);
}
static weft_value soft_cross_entropy_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B)), labels = positive(b, t, WEFT_DIMS(B, A));
    return weft_soft_cross_entropy(x, labels, B);
}
static weft_value smooth_labels_x(build_t *b, weft_dtype t)
{
    weft_value labels = in(b, t, WEFT_DIMS(A, B));
    return weft_smooth_labels(labels, B, 0.25);
}
static weft_value z_loss_x(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B));
    return weft_z_loss(x, B);
}

CASES(group_norm, CASE(group_norm_x, OP_FLOAT, 2,
                       .with = {.dim = "merged", .other = "c", .a = 0.25, .begin = 4}))
CASES(instance_norm,
      CASE(instance_norm_x, OP_FLOAT, 1, .with = {.dim = "b", .other = "c", .a = 0.25}))
CASES(weight_norm, CASE(weight_norm_x, OP_FLOAT, 2))
CASES(soft_cross_entropy, CASE(soft_cross_entropy_x, OP_FLOAT, 2, .with = {.dim = "b"}))
CASES(smooth_labels, CASE(smooth_labels_x, OP_FLOAT, 1, .with = {.dim = "b", .a = 0.25}))
CASES(z_loss, CASE(z_loss_x, OP_FLOAT, 2, .with = {.dim = "b"}))
CASES(min, CASE(min_middle, OP_FLOAT | OP_INT, 1), CASE(min_all, OP_FLOAT | OP_INT, 1),
      CASE(min_nan, OP_FLOAT, 0))
CASES(argmin, CASE(argmin_last, OP_FLOAT, 0, .with = {.dim = "c"}),
      CASE(argmin_ties, OP_FLOAT, 0, .with = {.dim = "b"}))
CASES(any, CASE(any_rows, ALL_DTYPES, 0))
CASES(all, CASE(all_rows, ALL_DTYPES, 0))
CASES(variance, CASE(variance_middle, OP_FLOAT, 2, .with = {.a = 1.0}),
      CASE(variance_all, OP_FLOAT, 1, .with = {.a = 1.0}))
CASES(normalize, CASE(normalize_two, OP_FLOAT, 2, .with = {.dim = "b", .other = "c", .a = 0.25}),
      CASE(normalize_one, OP_FLOAT, 1, .with = {.dim = "a", .a = 0.25}))
CASES(rms_norm, CASE(rms_norm_x, OP_FLOAT, 2, .with = {.dim = "b"}))
CASES(huber, CASE(huber_x, OP_FLOAT, 1, .with = {.a = 0.5}))
CASES(sigmoid_cross_entropy, CASE(sigmoid_cross_entropy_x, OP_FLOAT, 2),
      CASE(sigmoid_cross_entropy_wide, OP_WIDE, 0, .alone = true))
CASES(kl_divergence, CASE(kl_divergence_x, OP_FLOAT, 1, .with = {.dim = "b"}),
      CASE(kl_divergence_none, OP_WIDE, 0, .with = {.dim = "b"}, .alone = true))
CASES(cosine, CASE(cosine_x, OP_FLOAT, 2, .with = {.dim = "b"}))
