/* cases_order.c: products, what is the most so far, and elements taken out of rows and put back. */
#include "cases_element.h"

/* Of some rows one element is 0, of some two are, of most none. */
static weft_value with_zeros(build_t *b, weft_dtype t, weft_shape shape)
{
    return case_with(b, t, shape, -1.2, 0.0);
}

static weft_value prod_middle(build_t *b, weft_dtype t)
{
    weft_value x = in(b, t, WEFT_DIMS(A, B, C));
    return weft_prod(WEFT_DIMS(C, A), x);
}
static weft_value prod_all(build_t *b, weft_dtype t)
{
    weft_value x = positive(b, t, WEFT_DIMS(A, C));
    return weft_prod(WEFT_SCALAR, x);
}
static weft_value prod_zeros(build_t *b, weft_dtype t)
{
    return weft_prod(WEFT_DIMS(ROWS), with_zeros(b, t, WEFT_DIMS(ROWS, A)));
}
static weft_value prod_many(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(LONG, LATER), 0.99, 1.01);
    return weft_prod(WEFT_SCALAR, x);
}
static weft_value prod_wraps(build_t *b, weft_dtype t)
{
    weft_value x = weft_oracle_input(b, t, WEFT_DIMS(C, LONG), 1, 200);
    return weft_prod(WEFT_DIMS(C), x);
}

#define MOST_SO_FAR(op)                                                                            \
    static weft_value op##_x(build_t *b, weft_dtype t)                                             \
    {                                                                                              \
        return weft_##op(in(b, t, WEFT_DIMS(A, B, D)), B, false, false);                           \
    }                                                                                              \
    static weft_value op##_back(build_t *b, weft_dtype t)                                          \
    {                                                                                              \
        weft_value x = weft_##op(in(b, t, WEFT_DIMS(A, B)), B, true, true);                        \
        return weft_clamp(x, -100.0, 100.0);                                                       \
    }                                                                                              \
    static weft_value op##_blocks(build_t *b, weft_dtype t)                                        \
    {                                                                                              \
        return weft_##op(in(b, t, WEFT_DIMS(LONG, D)), LONG, false, false);                        \
    }                                                                                              \
    static weft_value op##_blocks_back(build_t *b, weft_dtype t)                                   \
    {                                                                                              \
        return weft_##op(in(b, t, WEFT_DIMS(D, LONG)), LONG, false, true);                         \
    }                                                                                              \
    static weft_value op##_nan(build_t *b, weft_dtype t)                                           \
    {                                                                                              \
        return weft_##op(case_with(b, t, WEFT_DIMS(A, B), -1.2, (double)NAN), B, false, false);    \
    }
MOST_SO_FAR(cummax)
MOST_SO_FAR(cummin)

/* ---- rows -------------------------------------------------------------------------------------- */

static weft_value unpick_own(build_t *b,
                             weft_dtype t) /* several of each row; one row has a dim of its own */
{
    weft_value x = in(b, t, WEFT_DIMS(A, C, D)), ids = ids_of(b, WEFT_DIMS(C, A), ROWS.size);
    return weft_unpick(WEFT_DIMS(A, ROWS, D), x, ids, ROWS);
}
static weft_value unpick_rows(build_t *b, weft_dtype t) /* as scatter_add */
{
    weft_value x = in(b, t, WEFT_DIMS(A, D, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_unpick(WEFT_DIMS(C, ROWS), x, ids, ROWS);
}

static weft_value scatter_max_x(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(A, D, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_clamp(weft_scatter_max(rows, ids, ROWS), -100.0, 100.0);
}
static weft_value scatter_max_along(build_t *b, weft_dtype t) /* the ids run along the dim itself */
{
    weft_value rows = in(b, t, WEFT_DIMS(C, ROWS)), ids = ids_of(b, WEFT_DIMS(ROWS), ROWS.size);
    return weft_clamp(weft_scatter_max(rows, ids, ROWS), -100.0, 100.0);
}
static weft_value scatter_min_x(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(C, B)), ids = ids_of(b, WEFT_DIMS(B), D.size);
    return weft_clamp(weft_scatter_min(rows, ids, D), -100.0, 100.0);
}
static weft_value segment_mean_x(build_t *b, weft_dtype t)
{
    weft_value rows = in(b, t, WEFT_DIMS(A, D, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_segment_mean(rows, ids, ROWS);
}
static weft_value count_outside_x(build_t *b, weft_dtype t)
{
    (void)t;
    return weft_count_outside(ids_of(b, WEFT_DIMS(A, B, C), D.size), D);
}
static weft_value histogram_rows(build_t *b, weft_dtype t)
{
    return weft_histogram(WEFT_DIMS(C), in(b, t, WEFT_DIMS(C, LONG)), -1.0, 1.25, ROWS);
}
static weft_value histogram_edges(build_t *b, weft_dtype t) /* on them, and no numbers */
{
    weft_value x = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, LONG), -2, 7);
    x = weft_log(weft_exp(weft_cast(x, t)));
    x = weft_where(weft_equal(weft_round(x), weft_constant(b->graph, t, WEFT_SCALAR, 3.0)),
                   weft_constant(b->graph, t, WEFT_SCALAR, (double)NAN), weft_round(x));
    return weft_histogram(WEFT_SCALAR, weft_oracle_made(b, x), 0.0, 5.0, KEY);
}
static weft_value embedding_bag_sum(build_t *b, weft_dtype t)
{
    weft_value table = in(b, t, WEFT_DIMS(ROWS, C)), ids = ids_of(b, WEFT_DIMS(A, D), ROWS.size);
    return weft_embedding_bag(table, ids, ROWS, A, (weft_value){NULL, 0}, false);
}
static weft_value embedding_bag_mean(build_t *b, weft_dtype t)
{
    weft_value table = in(b, t, WEFT_DIMS(ROWS, C)), ids = ids_of(b, WEFT_DIMS(D, A), ROWS.size),
               weights = in(b, t, WEFT_DIMS(D, A));
    return weft_embedding_bag(table, ids, ROWS, A, weights, true);
}

/* ---- order ------------------------------------------------------------------------------------- */

/* Few different numbers: many are equal. */
static weft_value equal_ones(build_t *b, weft_dtype t, weft_shape shape)
{
    weft_value x = weft_oracle_input(b, WEFT_I32, shape, 0, 4);
    return weft_oracle_made(b, weft_cast(x, t));
}
/* NaN, infinities both ways, and the NaN that a processor makes, which has its sign bit set, among numbers. */
static weft_value no_numbers(build_t *b, weft_dtype t, weft_shape shape)
{
    weft_value x = weft_oracle_input(b, WEFT_I32, shape, -4, 5), like = weft_cast(x, t);
    const double instead[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, -(double)NAN};
    for (int i = 0; i < 4; i++)
        like =
            weft_where(weft_equal(x, weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 2.0 * i - 2.0)),
                       weft_constant(b->graph, t, WEFT_SCALAR, instead[i]), like);
    return weft_oracle_made(b, like);
}

static const weft_dim five = {"five", 5};

static weft_value order_x(build_t *b, weft_dtype t)
{
    return weft_order(in(b, t, WEFT_DIMS(A, B, D)), B, C, false);
}
static weft_value order_largest(build_t *b, weft_dtype t)
{
    return weft_order(equal_ones(b, t, WEFT_DIMS(B, A)), B, OUTER, true);
}
static weft_value order_few(build_t *b, weft_dtype t) /* of more than eight times as many */
{
    return weft_order(equal_ones(b, t, WEFT_DIMS(LONG, D)), LONG, five, true);
}
static weft_value in_order_x(build_t *b, weft_dtype t)
{
    const weft_order_attributes a = {"b", "outer", B.size, OUTER.size, false};
    const weft_value y = in(b, t, WEFT_DIMS(A, OUTER, D)), x = in(b, t, WEFT_DIMS(A, B, D));
    const weft_value of[] = {y, x};
    return weft_emit(b->graph, &weft_op_in_order, of, 2, &a, sizeof a);
}
static weft_value argsort_x(build_t *b, weft_dtype t)
{
    return weft_argsort(in(b, t, WEFT_DIMS(A, LONG)), LONG, false);
}
static weft_value argsort_equal(build_t *b, weft_dtype t)
{
    return weft_argsort(equal_ones(b, t, WEFT_DIMS(LONG, A)), LONG, true);
}
static weft_value argsort_nan(build_t *b, weft_dtype t)
{
    return weft_argsort(no_numbers(b, t, WEFT_DIMS(A, LONG)), LONG, false);
}
static weft_value argsort_nan_down(build_t *b, weft_dtype t)
{
    return weft_argsort(no_numbers(b, t, WEFT_DIMS(LATER, D)), LATER, true);
}
static weft_value sort_x(build_t *b, weft_dtype t)
{
    weft_value ids, y = weft_sort(in(b, t, WEFT_DIMS(A, B, D)), B, false, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value sort_down(build_t *b, weft_dtype t)
{
    return weft_sort(in(b, t, WEFT_DIMS(B, A)), B, true, NULL);
}
static weft_value top_k_x(build_t *b, weft_dtype t)
{
    weft_value ids, y = weft_top_k(in(b, t, WEFT_DIMS(A, B, D)), B, C, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value top_k_blocks(build_t *b,
                               weft_dtype t) /* 48 blocks of 8, of which the last has 2 */
{
    const weft_dim many = {"many", 378}, three = {"three", 3};
    weft_value ids, y = weft_top_k(in(b, t, WEFT_DIMS(D, many, C)), many, three, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value top_k_equal(build_t *b,
                              weft_dtype t) /* the first ones, not those of the padding */
{
    const weft_dim many = {"many", 340}, three = {"three", 3};
    weft_value ids, y = weft_top_k(equal_ones(b, t, WEFT_DIMS(many, D)), many, three, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value bottom_k_x(build_t *b, weft_dtype t)
{
    return weft_bottom_k(in(b, t, WEFT_DIMS(A, B)), B, C, NULL);
}
static weft_value bottom_k_blocks(build_t *b, weft_dtype t)
{
    const weft_dim many = {"many", 378}, three = {"three", 3};
    weft_value ids, y = weft_bottom_k(in(b, t, WEFT_DIMS(many, D)), many, three, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value bottom_k_nan(build_t *b, weft_dtype t) /* nothing but NaN in the end */
{
    const weft_dim many = {"many", 200}, two = {"two", 2};
    weft_value nan = weft_constant(b->graph, t, WEFT_SCALAR, (double)NAN), ids;
    weft_value x = weft_where(weft_oracle_input(b, WEFT_I32, WEFT_DIMS(A, many), 0, 300), nan,
                              weft_constant(b->graph, t, WEFT_DIMS(A, many), 1.0));
    weft_value y = weft_bottom_k(weft_oracle_made(b, x), many, two, &ids);
    weft_oracle_other(b, ids);
    return y;
}
static weft_value quantile_low(build_t *b, weft_dtype t)
{
    return weft_quantile(in(b, t, WEFT_DIMS(A, B, D)), B, 0.3);
}
static weft_value quantile_high(build_t *b, weft_dtype t)
{
    return weft_quantile(in(b, t, WEFT_DIMS(LONG, C)), LONG, 0.987);
}
static weft_value quantile_last(build_t *b, weft_dtype t)
{
    return weft_quantile(in(b, t, WEFT_DIMS(B, C)), B, 1.0);
}
static weft_value quantile_nan(build_t *b, weft_dtype t)
{
    return weft_quantile(no_numbers(b, t, WEFT_DIMS(LONG, A)), A, 0.5);
}
static weft_value median_far(build_t *b, weft_dtype t) /* what is farther apart than the largest */
{
    const double most = t == WEFT_F64 ? 0x1.fp1023 : 0x1.fp127;
    const weft_value sign = weft_sign(in(b, t, WEFT_DIMS(B, SIX)));
    return weft_median(weft_oracle_made(b, weft_scale(sign, most)), SIX);
}
static weft_value median_x(build_t *b, weft_dtype t)
{
    return weft_median(in(b, t, WEFT_DIMS(A, SIX)), SIX);
}

CASES(reduce_prod, CASE(prod_middle, OP_FLOAT | OP_INT, 2), CASE(prod_all, OP_FLOAT | OP_INT, 2),
      CASE(prod_zeros, OP_FLOAT, 0), CASE(prod_many, OP_WIDE, 0, .alone = true),
      CASE(prod_wraps, OP_INT, 0, .alone = true))
#define CUMULATED(op)                                                                              \
    CASES(op, CASE(op##_x, OP_FLOAT | OP_INT, 1, .with = {.dim = "b"}),                            \
          CASE(op##_back, OP_FLOAT | OP_I32, 1, .with = {.dim = "b", .a = 1, .b = 1}),             \
          CASE(op##_blocks, OP_FLOAT | OP_INT, 1, .with = {.dim = "long"}),                        \
          CASE(op##_blocks_back, OP_FLOAT | OP_INT, 1, .with = {.dim = "long", .a = 1},            \
               .alone = true),                                                                     \
          CASE(op##_nan, OP_FLOAT, 0, .with = {.dim = "b"}, .alone = true))
CUMULATED(cummax)
CUMULATED(cummin)
CASES(unpick, CASE(unpick_own, OP_FLOAT | OP_INT, 1, .with = {.dim = "rows"}),
      CASE(unpick_rows, OP_FLOAT, 1, .with = {.dim = "rows"}))
#define PER_ID .with = {.dim = "rows"}
CASES(scatter_max, CASE(scatter_max_x, OP_FLOAT | OP_I32, 1, PER_ID),
      CASE(scatter_max_along, OP_FLOAT | OP_I32, 1, PER_ID, .alone = true))
CASES(scatter_min, CASE(scatter_min_x, OP_FLOAT | OP_I32, 1, .with = {.dim = "d"}))
CASES(segment_mean, CASE(segment_mean_x, OP_FLOAT, 1, PER_ID))
CASES(count_outside, CASE(count_outside_x, OP_I32, 0, .with = {.dim = "d", .begin = 2}))
CASES(histogram, CASE(histogram_rows, OP_WIDE, 0, .with = {.dim = "rows", .a = -1.0, .b = 1.25}),
      CASE(histogram_edges, OP_FLOAT, 0, .with = {.dim = "key", .a = 0.0, .b = 5.0}, .alone = true))
CASES(embedding_bag,
      CASE(embedding_bag_sum, OP_FLOAT, 1, .with = {.dim = "rows", .other = "a"}, .alone = true),
      CASE(embedding_bag_mean, OP_FLOAT, 2, .with = {.dim = "rows", .other = "a", .causal = true}))

/* with.dim is ordered, with.other is what of it the result has; .causal: the largest first. */
#define ALONG(of, into, ...) .with = {.dim = of, .other = into, ##__VA_ARGS__}
CASES(order, CASE(order_x, OP_FLOAT | OP_INT, 0, ALONG("b", "c")),
      CASE(order_largest, OP_FLOAT | OP_INT, 0, ALONG("b", "outer", .causal = true), .alone = true),
      CASE(order_few, OP_FLOAT | OP_INT, 0, ALONG("long", "five", .causal = true), .alone = true))
CASES(in_order, CASE(in_order_x, OP_FLOAT | OP_INT, 1, .each = true))
CASES(argsort, CASE(argsort_x, OP_FLOAT | OP_INT, 0, ALONG("long", "long")),
      CASE(argsort_equal, OP_FLOAT | OP_INT, 0, ALONG("long", "long", .causal = true),
           .alone = true),
      CASE(argsort_nan, OP_FLOAT, 0, ALONG("long", "long"), .alone = true),
      CASE(argsort_nan_down, OP_FLOAT, 0, ALONG("later", "later", .causal = true), .alone = true))
CASES(sort, CASE(sort_x, OP_FLOAT | OP_INT, 0, ALONG("b", "b"), .each = true),
      CASE(sort_down, OP_FLOAT, 1, ALONG("b", "b", .causal = true), .alone = true))
CASES(top_k, CASE(top_k_x, OP_FLOAT | OP_INT, 0, ALONG("b", "c", .causal = true), .each = true),
      CASE(top_k_blocks, OP_FLOAT | OP_INT, 0, ALONG("many", "three", .causal = true),
           .each = true),
      CASE(top_k_equal, OP_FLOAT | OP_INT, 0, ALONG("many", "three", .causal = true),
           .alone = true))
CASES(bottom_k, CASE(bottom_k_x, OP_FLOAT | OP_INT, 1, ALONG("b", "c")),
      CASE(bottom_k_blocks, OP_FLOAT | OP_INT, 0, ALONG("many", "three"), .alone = true),
      CASE(bottom_k_nan, OP_FLOAT, 0, ALONG("many", "two"), .alone = true))
CASES(quantile, CASE(quantile_low, OP_FLOAT, 1, .with = {.dim = "b", .a = 0.3}),
      CASE(quantile_high, OP_FLOAT, 1, .with = {.dim = "long", .a = 0.987}),
      CASE(quantile_last, OP_FLOAT, 1, .with = {.dim = "b", .a = 1.0}, .alone = true),
      CASE(quantile_nan, OP_FLOAT, 0, .with = {.dim = "a", .a = 0.5}, .alone = true))
CASES(median, CASE(median_x, OP_FLOAT, 1, .with = {.dim = "six", .a = 0.5}),
      CASE(median_far, OP_WIDE, 0, .with = {.dim = "six", .a = 0.5}, .alone = true))
