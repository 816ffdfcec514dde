/* ops.h: the ops: values in, values out. Dims are matched by name; sizes of one name must be equal.
 *
 *     weft_value h = weft_gelu(weft_add(weft_einsum(WEFT_DIMS(batch, hidden), x, w), bias));
 *
 * Element-by-element ops of two or three operands broadcast by name: the result has the dims of the operand
 * with the most dims, then those only the others have. Scalars on the host side are doubles.
 * All functions are Local; errors stay in the graph (graph.h).
 */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include "weft/graph.h"

WEFT_BEGIN

/* einsum: the product of the operands, summed over every dim that `out` lacks. Two operands, float dtypes.
 * weft_einsum_n takes 1 to WEFT_MAX_EINSUM, multiplied two at a time in the order of the fewest multiplications, of equal ones
 * from the left. */
enum { WEFT_MAX_EINSUM = 12 };
WEFT_API weft_value weft_einsum(weft_shape out, weft_value a, weft_value b);
WEFT_API weft_value weft_einsum_n(weft_shape out, weft_values operands);

/* conv: as einsum, but that x is read through windows: along each dim of space, with element o of the result and tap
 * t goes element stride o + dilation t - before of x, or 0 where x has none. Taps are not turned round. Channels,
 * groups and the batch follow from names: `channel` in x and w alone is summed, `group` in all three is kept apart.
 * At most 3 dims of space; their names in x, w and the result may be the same. Any dtype that einsum has.
 *
 *     weft_spatial rows = weft_spatial_same(row, tap_row, "row", 1, 1), columns = weft_spatial_same(column, tap_column, "column", 1, 1);
 *     weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, features), x, w, WEFT_SPATIAL(rows, columns));
 *
 * conv_transpose: what conv gives back to x as its gradient, as an op of its own: x has each dim's `out`, the result its `in`. */
typedef struct weft_spatial {
    /* of x, of w, of the result; any size with which some window reads an element of x: what is not there is 0 */
    weft_dim in, tap, out;
    int64_t stride, dilation; /* 0: 1; at most WEFT_MAX_STRIDE */
    /* zeros before x's first element; below 0: so many elements are skipped; within 2^50 */
    int64_t before;
} weft_spatial;
typedef struct weft_spatials {
    const weft_spatial *dims;
    int n_dims;
} weft_spatials;
/* WEFT_SPATIAL(rows, columns): it lives as WEFT_VALUES does. */
#ifdef __cplusplus
#define WEFT_SPATIAL(...) weft_spatials_of({__VA_ARGS__})
static inline weft_spatials weft_spatials_of(std::initializer_list<weft_spatial> dims)
{
    return weft_spatials{dims.begin(), (int)dims.size()};
}
#else
#define WEFT_SPATIAL(...)                                                                          \
    ((weft_spatials){(const weft_spatial[]){__VA_ARGS__},                                          \
                     (int)(sizeof((const weft_spatial[]){__VA_ARGS__}) / sizeof(weft_spatial))})
#endif
WEFT_API weft_value weft_conv(weft_shape out, weft_value x, weft_value w, weft_spatials spatial);
WEFT_API weft_value weft_conv_transpose(weft_shape out, weft_value x, weft_value w,
                                        weft_spatials spatial);
/* weft_spatial_valid - with no zeros: (in - dilation (tap - 1) - 1) / stride + 1 results, rounded down. weft_spatial_same - with
 * as many zeros as make in / stride of them, rounded up, one less before than behind where they are odd. */
WEFT_API weft_spatial weft_spatial_valid(weft_dim in, weft_dim tap, const char *out, int64_t stride,
                                         int64_t dilation);
WEFT_API weft_spatial weft_spatial_same(weft_dim in, weft_dim tap, const char *out, int64_t stride,
                                        int64_t dilation);

/* max_pool: the largest of the elements of x in each window; dims of space as in weft_conv, but that there is no
 * filter: of `tap` the size alone counts. Elements outside of x are left out. Its gradient goes to the first of the
 * largest. average_pool: their mean, of float dtypes; counts_outside: divided by all taps, else by those within x
 * (NaN where there are none). */
WEFT_API weft_value weft_max_pool(weft_value x, weft_spatials spatial);
WEFT_API weft_value weft_average_pool(weft_value x, weft_spatials spatial, bool counts_outside);

/* element by element */
WEFT_API weft_value weft_add(weft_value a, weft_value b);
WEFT_API weft_value weft_sub(weft_value a, weft_value b);
WEFT_API weft_value weft_mul(weft_value a, weft_value b);
WEFT_API weft_value weft_div(weft_value a, weft_value b);
WEFT_API weft_value weft_maximum(weft_value a, weft_value b); /* ties: the gradient goes to a */
WEFT_API weft_value weft_minimum(weft_value a, weft_value b);
WEFT_API weft_value weft_neg(weft_value x);
WEFT_API weft_value weft_exp(weft_value x);
WEFT_API weft_value weft_log(weft_value x);
WEFT_API weft_value weft_sqrt(weft_value x);
WEFT_API weft_value weft_rsqrt(weft_value x);
WEFT_API weft_value weft_square(weft_value x);
WEFT_API weft_value weft_tanh(weft_value x);
WEFT_API weft_value weft_sin(weft_value x);
WEFT_API weft_value weft_cos(weft_value x);
WEFT_API weft_value weft_relu(weft_value x);
WEFT_API weft_value weft_gelu(weft_value x);      /* tanh form */
WEFT_API weft_value weft_sigmoid(weft_value x);   /* 1 / (1 + exp(-x)) */
WEFT_API weft_value weft_silu(weft_value x);      /* x sigmoid(x), swish */
WEFT_API weft_value weft_hardswish(weft_value x); /* x min(max(x + 3, 0), 6) / 6, silu in pieces */
WEFT_API weft_value weft_softplus(weft_value x);  /* log(1 + exp x) */
/* elu: x where it is above 0, else by (exp x - 1). leaky_relu: x where it is above 0, else by x. */
WEFT_API weft_value weft_elu(weft_value x, double by);
WEFT_API weft_value weft_leaky_relu(weft_value x, double by);
/* selu: 1.0507.. elu(x, 1.6732..), which keeps mean 0 and variance 1 from layer to layer. source  Klambauer et al. 2017 */
WEFT_API weft_value weft_selu(weft_value x);
WEFT_API weft_value weft_erf(weft_value x);
WEFT_API weft_value weft_erfinv(weft_value x); /* erf's inverse, of x from -1 to 1 */
/* exp x - 1, and log(1 + x), as exact for x near 0 as elsewhere */
WEFT_API weft_value weft_expm1(weft_value x);
WEFT_API weft_value weft_log1p(weft_value x);
WEFT_API weft_value weft_reciprocal(weft_value x); /* 1 / x */
WEFT_API weft_value weft_pow(weft_value a,
                             weft_value b);  /* NaN where a < 0 and b is not whole; 0^0: 1 */
WEFT_API weft_value weft_abs(weft_value x);  /* integers too, as the next two */
WEFT_API weft_value weft_sign(weft_value x); /* -1, 0 or 1; no gradient */
/* clamp: from low to high, of integers whole or infinite; the gradient is 0 outside. */
WEFT_API weft_value weft_clamp(weft_value x, double low, double high);
/* whole numbers, without gradient; round: of two that are as near, the even one */
WEFT_API weft_value weft_floor(weft_value x);
WEFT_API weft_value weft_ceil(weft_value x);
WEFT_API weft_value weft_round(weft_value x);
/* floor_div: a / b rounded down. mod: a - b floor_div(a, b), of b's sign; it has a gradient. Integers by 0 give 0. */
WEFT_API weft_value weft_floor_div(weft_value a, weft_value b);
WEFT_API weft_value weft_mod(weft_value a, weft_value b);
WEFT_API weft_value weft_scale(weft_value x, double by); /* x * by: linear */
WEFT_API weft_value weft_shift(weft_value x, double by); /* x + by */
/* comparisons: i32, 1 or 0. Operands of one dtype. */
WEFT_API weft_value weft_less(weft_value a, weft_value b);
WEFT_API weft_value weft_less_equal(weft_value a, weft_value b);
WEFT_API weft_value weft_greater(weft_value a, weft_value b);
WEFT_API weft_value weft_greater_equal(weft_value a, weft_value b);
WEFT_API weft_value weft_equal(weft_value a, weft_value b);
WEFT_API weft_value weft_not_equal(weft_value a, weft_value b);
/* logic: i32, 1 or 0, of operands that are true where they are not 0. */
WEFT_API weft_value weft_logical_and(weft_value a, weft_value b);
WEFT_API weft_value weft_logical_or(weft_value a, weft_value b);
WEFT_API weft_value weft_logical_xor(weft_value a, weft_value b);
WEFT_API weft_value weft_logical_not(weft_value x);
WEFT_API weft_value weft_is_finite(weft_value x); /* i32: 1 except for infinities and NaN */
WEFT_API weft_value weft_is_nan(weft_value x);
/* where: a where condition (i32) is not 0, else b; a NaN in the other branch does not leak. */
WEFT_API weft_value weft_where(weft_value condition, weft_value a, weft_value b);
/* cast: float to i32 truncates; its gradient is 0. */
WEFT_API weft_value weft_cast(weft_value x, weft_dtype dtype);

/* outer: all elements of a times all of b: [a's dims, b's]; they have none in common. */
WEFT_API weft_value weft_outer(weft_value a, weft_value b);
/* triangle: i32 [row, column], two dims, 1 where column <= row + offset. lower_triangle: x there, else 0; upper_triangle: x where
 * column >= row + offset; both with x's dims in x's order. */
WEFT_API weft_value weft_triangle(weft_graph *graph, weft_dim row, weft_dim column, int64_t offset);
WEFT_API weft_value weft_lower_triangle(weft_value x, weft_dim row, weft_dim column,
                                        int64_t offset);
WEFT_API weft_value weft_upper_triangle(weft_value x, weft_dim row, weft_dim column,
                                        int64_t offset);

/* constants and indices
 * constant: value is a number that the dtype has: of integers none with a fraction, and none past the range. */
WEFT_API weft_value weft_constant(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                  double value);
WEFT_API weft_value weft_iota(weft_graph *graph, weft_dtype dtype,
                              weft_dim dim); /* 0, 1, ... [dim] */
/* one_hot: [..., dim]: 1 where the coordinate along dim equals the id, so zeros for an id outside. ids: i32. */
WEFT_API weft_value weft_one_hot(weft_value ids, weft_dim dim, weft_dtype dtype);
/* run_number: of this run, from 1, a scalar. */
WEFT_API weft_value weft_run_number(weft_graph *graph, weft_dtype dtype);
/* broadcast: x with the dims of `shape`, which has all of x's. */
WEFT_API weft_value weft_broadcast_to(weft_value x, weft_shape shape);

/* reductions over the dims that `out` lacks (weft_sum(WEFT_SCALAR, x): over all) */
WEFT_API weft_value weft_sum(weft_shape out, weft_value x);
WEFT_API weft_value weft_max(weft_shape out, weft_value x); /* gradient shared equally by ties */
WEFT_API weft_value weft_min(weft_shape out, weft_value x);
/* prod: the product; integers wrap around. Its gradient is right where elements are 0, too. */
WEFT_API weft_value weft_prod(weft_shape out, weft_value x);
WEFT_API weft_value weft_mean_over(weft_shape out, weft_value x);
/* variance: the sum of the squared distances from the mean, by their number less `correction` (0, or 1: unbiased). */
WEFT_API weft_value weft_variance(weft_shape out, weft_value x, double correction);
/* i32: 1 where any element, or every one, is not 0. */
WEFT_API weft_value weft_any(weft_shape out, weft_value x);
WEFT_API weft_value weft_all(weft_shape out, weft_value x);
WEFT_API weft_value weft_mean(weft_value x); /* of all elements: a scalar */
/* logsumexp: of x without dim, in the dtype that x is computed with: f32 of bf16 and f16. */
WEFT_API weft_value weft_logsumexp(weft_value x, weft_dim dim);
/* i32, of float dtypes; ties: the lowest index */
WEFT_API weft_value weft_argmax(weft_value x, weft_dim dim);
WEFT_API weft_value weft_argmin(weft_value x, weft_dim dim);

/* over one dim */
/* cumsum, cumprod: each element the sum, the product, of x up to it and with it. exclusive: without it; reverse: from it to the
 * end. A dim of 96 elements or more is in 48 blocks, which 2, 3, 4, 6, .. ranks share if it is split; the same bits in every layout. */
WEFT_API weft_value weft_cumsum(weft_value x, weft_dim dim, bool exclusive, bool reverse);
WEFT_API weft_value weft_cumprod(weft_value x, weft_dim dim, bool exclusive, bool reverse);
/* cummax, cummin: the same of the largest, the least so far; exclusive: the first is -inf, inf, or the integer at that end. A NaN
 * stays. The gradient goes to the element that it is, the first of equal ones. */
WEFT_API weft_value weft_cummax(weft_value x, weft_dim dim, bool exclusive, bool reverse);
WEFT_API weft_value weft_cummin(weft_value x, weft_dim dim, bool exclusive, bool reverse);
WEFT_API weft_value weft_softmax(weft_value x, weft_dim dim);
WEFT_API weft_value weft_log_softmax(weft_value x, weft_dim dim);
/* cross_entropy: -log_softmax(logits over dim) at labels (i32, logits' dims without dim); [logits' dims without dim],
 * in the dtype that logits are computed with: f32 of bf16 and f16, so that a mean of it loses nothing. A row with a
 * label outside dim (-1, -100, but a class too many as well) is ignored: 0, without gradient. Labels are compared
 * with the classes by weft_dataset_bound where they are data, by weft_checked_ids in the graph. */
WEFT_API weft_value weft_cross_entropy(weft_value logits, weft_value labels, weft_dim dim);
/* weft_cross_entropy_with: of a row with logits x, label y and p = softmax(x) over the C classes of dim,
 *
 *     row_weight ((1-s) w_y (-log p_y) + s/C sum_c w_c (-log p_c) + z logsumexp(x)^2)      s: label_smoothing, z: z_loss
 *
 * The means are the user's: over all rows weft_mean(loss); over those that count, ignored ones left out, as
 *
 *     counts = weft_gather(class_weights, labels, dim);        an ignored label gives 0; ones [dim] if there are no weights
 *     mean = weft_div(weft_sum(WEFT_SCALAR, loss), weft_sum(WEFT_SCALAR, counts)); */
typedef struct weft_cross_entropy_options {
    /* w [dim], of the logits' dtype; {0}: 1 */
    weft_value class_weights;
    /* some or all dims of the result, of the logits' dtype; {0}: 1 */
    weft_value row_weights;
    /* from 0, none, to 1: this much of the label is spread evenly */
    double label_smoothing;
    double z_loss; /* 0 or above: keeps logsumexp near 0 (1e-4 is usual); 0: none         */
} weft_cross_entropy_options;
/* options: NULL for none of them. */
WEFT_API weft_value weft_cross_entropy_with(weft_value logits, weft_value labels, weft_dim dim,
                                            const weft_cross_entropy_options *options);
/* layer_norm: (x - mean) / sqrt(variance + 1e-5) * gain + bias; gain and bias [dim]. */
WEFT_API weft_value weft_layer_norm(weft_value x, weft_value gain, weft_value bias, weft_dim dim);
/* rms_norm: x / sqrt(mean of x^2 + 1e-5) * gain; gain [dim]. */
WEFT_API weft_value weft_rms_norm(weft_value x, weft_value gain, weft_dim dim);
/* group_norm: (x - mean) / sqrt(variance + epsilon) * gain + bias; mean and variance over the dims `over` (rows,
 * columns) and the channels of a group. channel has n_groups groups, one after the other. instance_norm: over `over`
 * alone. gain and bias [channel], or other dims of x. */
WEFT_API weft_value weft_group_norm(weft_value x, weft_value gain, weft_value bias,
                                    weft_dim channel, int64_t n_groups, weft_shape over,
                                    double epsilon);
WEFT_API weft_value weft_instance_norm(weft_value x, weft_value gain, weft_value bias,
                                       weft_shape over, double epsilon);
/* weight_norm: direction / |direction| * gain, lengths over the dims that the gain lacks. */
WEFT_API weft_value weft_weight_norm(weft_value direction, weft_value gain);
/* normalize: (x - mean) / sqrt(variance + epsilon) over any dims: over all but the channels that is what batch norm trains
 * with. */
WEFT_API weft_value weft_normalize(weft_value x, weft_shape over, double epsilon);

/* losses, without a mean: that is the user's */
/* huber: d^2 / 2 where d = |prediction - target| is at most delta, else delta (d - delta / 2). */
WEFT_API weft_value weft_huber(weft_value prediction, weft_value target, double delta);
/* sigmoid_cross_entropy: -t log s - (1 - t) log(1 - s) with s = sigmoid(logits), of targets t from 0 to 1; for any logits. */
WEFT_API weft_value weft_sigmoid_cross_entropy(weft_value logits, weft_value targets);
/* kl_divergence: the sum over dim of p (log p - log q). */
WEFT_API weft_value weft_kl_divergence(weft_value log_p, weft_value log_q, weft_dim dim);
/* soft_cross_entropy: the sum over dim of labels (-log softmax(logits)): labels are shares of the classes [.., dim].
 * smooth_labels: such labels, with a share `by` (0 to 1) of them spread evenly. z_loss: logsumexp(logits)^2, a term
 * that keeps it near 0. soft_cross_entropy, z_loss and ctc_loss are f32 of bf16 and f16, as cross_entropy is. */
WEFT_API weft_value weft_soft_cross_entropy(weft_value logits, weft_value labels, weft_dim dim);
WEFT_API weft_value weft_smooth_labels(weft_value labels, weft_dim dim, double by);
WEFT_API weft_value weft_z_loss(weft_value logits, weft_dim dim);
/* ctc_loss: -log of the likelihood of each row's labels, over all ways to spread them over the frames of `time` with
 * blanks between. logits [.., time, classes] go through log_softmax; labels are i32 [.., label]. [logits' dims
 * without time and classes] A row with impossible labels has an infinite loss and no gradient. These are fewer frames
 * than labels and the blanks between equal ones; a label that is no class, or the blank; a number of labels below 0
 * or above label's size. Of frames a number below 0 counts none, and one above time's size all. A scan along time,
 * which is whole for it; the cost goes with time x label. */
typedef struct weft_ctc_options {
    weft_dim time, classes, label;
    /* i32, of some of the result's dims: how many of a row's frames, and of its labels, count; the others are not looked at. {0}:
     * all */
    weft_value n_times, n_labels;
    int64_t blank;      /* the class that stands for no label */
    bool zero_infinity; /* 0 in place of an infinite loss */
} weft_ctc_options;
WEFT_API weft_value weft_ctc_loss(weft_value logits, weft_value labels,
                                  const weft_ctc_options *options);
/* cosine: of the angle between a and b along dim: a.b / (|a| |b|), each length no less than 1e-8. */
WEFT_API weft_value weft_cosine(weft_value a, weft_value b, weft_dim dim);

/* indexing: ids are i32; an id outside the dim gives zeros (and no gradient), unless ids went through weft_checked_ids */
WEFT_API weft_value weft_gather(weft_value table, weft_value ids,
                                weft_dim dim); /* [ids..., rest...] */
WEFT_API weft_value weft_scatter_add(weft_value rows, weft_value ids,
                                     weft_dim dim); /* [dim, rest...] */
/* pick: y[.., own] = x[.., ids[.., own]]: of each row one element, or as many as dims of the ids' own say; x without
 * dim, then those. ids may be along dim itself. Ids with dims of their own may lack some of x's. These are then taken
 * together, as one row: the ids' dims, then those. */
WEFT_API weft_value weft_pick(weft_value x, weft_value ids, weft_dim dim);
/* unpick: the other way: y [out], which has dim, is 0 except for y[.., ids[.., own]], to which x[.., own] is
 * added. */
WEFT_API weft_value weft_unpick(weft_shape out, weft_value x, weft_value ids, weft_dim dim);

/* pick_product: y[.., own, out] = the sum over in of x[.., in] w[ids[.., own], in, out]: each row of x times the matrix, or the matrices,
 * that its ids say, and no other. w has three dims, dim and in and out in any order; in is the one of x that the ids have not; an id
 * outside dim gives zeros. [ids' dims, x's first, out]. The cost is that of one product a row; float dtypes. On the CPU alone yet. */
WEFT_API weft_value weft_pick_product(weft_value x, weft_value w, weft_value ids, weft_dim dim);
/* scatter_max, scatter_min: the largest, the least of the rows of each id; where there is none -inf or inf, or the integer at that
 * end. The gradient is shared equally by ties. segment_mean: their mean, 0 where there is none. [dim, rest...] */
WEFT_API weft_value weft_scatter_max(weft_value rows, weft_value ids, weft_dim dim);
WEFT_API weft_value weft_scatter_min(weft_value rows, weft_value ids, weft_dim dim);
WEFT_API weft_value weft_segment_mean(weft_value rows, weft_value ids, weft_dim dim);
/* histogram: i32 [out, bins]: how many elements of x, over the dims that `out` lacks, lie in each of bins.size equal
 * parts of [low, high], the last with `high` too; elements outside, and NaN, are not counted. */
WEFT_API weft_value weft_histogram(weft_shape out, weft_value x, double low, double high,
                                   weft_dim bins);
/* embedding_bag: the sum over bag, a dim of the ids, of rows of the table, by weights with dims of the ids ({0}: 1); is_mean: by
 * how many ids of the bag are in dim. An id outside of it adds nothing. [ids' dims without bag, rest...] */
WEFT_API weft_value weft_embedding_bag(weft_value table, weft_value ids, weft_dim dim, weft_dim bag,
                                       weft_value weights, bool is_mean);
/* count_outside: i32, a scalar: how many ids are none of dim's. weft_checked_ids: the run fails where there are any. */
WEFT_API weft_value weft_count_outside(weft_value ids, weft_dim dim);

/* order: a NaN is above all numbers, -0 equals 0, and of equal elements the lower index comes first, ascending and
 * descending. argsort: i32, the indices in that order. sort: the elements; *ids, NULL for none: their indices. order:
 * of the first `to` alone. dim is whole for these. Where it is split, another dim takes the axis, or it is gathered.
 * If it is long and the ranks are many, it is ordered by columns, with static exchanges of twice a rank's part
 * (docs/layouts.md). top_k, bottom_k: the to.size largest, the largest first, or least, the least first. A dim of 96
 * elements or more that is split, with to.size at most a 96th of it, is done in 48 blocks, which 2, 3, 4, 6, .. ranks share. 48
 * to.size elements a row go over ranks, and the result is the same in every layout. */
WEFT_API weft_value weft_order(weft_value x, weft_dim dim, weft_dim to, bool descending);
WEFT_API weft_value weft_argsort(weft_value x, weft_dim dim, bool descending);
WEFT_API weft_value weft_sort(weft_value x, weft_dim dim, bool descending, weft_value *ids);
WEFT_API weft_value weft_top_k(weft_value x, weft_dim dim, weft_dim to, weft_value *ids);
WEFT_API weft_value weft_bottom_k(weft_value x, weft_dim dim, weft_dim to, weft_value *ids);
/* quantile: x without dim: the element at place q (size - 1) of the sorted dim, q from 0 to 1, or between its two neighbours in
 * proportion. A NaN makes it NaN. Float dtypes. Gradients go to the elements that sort, ascending, has there. median: q = 0.5. */
WEFT_API weft_value weft_quantile(weft_value x, weft_dim dim, double q);
WEFT_API weft_value weft_median(weft_value x, weft_dim dim);

/* square matrices, of two dims of one size; all other dims number matrices, and may be split; the two sides are whole
 * on every rank. In the equations a, l have [row, column], b has row and, instead of it, x column: so with the two
 * sides exchanged it is the transposed matrix. Dims that b alone has number its columns. Float dtypes; of 16 bits in
 * f32. cholesky: l, lower triangular, with l l' = x; x is not read above the diagonal. Its gradient is that of a
 * symmetric matrix. One that is not positive definite has an l of NaN alone. triangular_solve: a x = b of a lower, or
 * upper, triangle; the rest of a is not read. solve: a x = b by elimination with pivots; NaN for a matrix that is
 * singular to the bit. solve_positive: of a symmetric, positive definite a, by cholesky. */
WEFT_API weft_value weft_cholesky(weft_value x, weft_dim row, weft_dim column);
WEFT_API weft_value weft_triangular_solve(weft_value a, weft_value b, weft_dim row, weft_dim column,
                                          bool is_upper);
WEFT_API weft_value weft_solve(weft_value a, weft_value b, weft_dim row, weft_dim column);
WEFT_API weft_value weft_solve_positive(weft_value a, weft_value b, weft_dim row, weft_dim column);

/* attention: softmax(q.k / sqrt(feature)) v, one op, tiled: never a query x memory matrix.
 * q [.., query, .., feature]; k, v [.., memory, .., feature]; all other dims of k and v are q's, by name. query and memory may
 * be the same dim (self-attention); feature is another. causal: query row i sees memory rows 0..i.
 * Dims that only q has number heads which share rows of k and v: grouped heads are q [batch, seq, heads, group, feature] with
 * k, v [batch, seq, heads, feature]; one head for all (multi-query) is k, v without heads. */
WEFT_API weft_value weft_attention(weft_value q, weft_value k, weft_value v, weft_dim query,
                                   weft_dim memory, weft_dim feature, bool causal);
/* weft_attention_with: softmax(scale q.k + bias) v over the memory rows that a query row sees. A row that sees none
 * gives zeros, and zero gradients; k and v must be finite where they are not seen, too.
 *
 *     weft_dim key = {"key", seq.size};           a padding mask [batch, key], ALiBi or T5 bias [heads, seq, key]
 *     y = weft_attention_with(q, k, v, &(weft_attention_options){.query = seq, .memory = seq, .feature = kv,
 *                                                                .column = key, .bias = bias, .mask = mask});
 *
 * bias and mask have any of the dims of the scores: q's dims but feature, and the memory rows, which they call
 * `column`. A tensor cannot have one dim twice: so where query and memory are the same dim, column must be given when
 * bias or mask has the memory rows (weft_rename them). Else it is memory, unless it is given. window w: query row i
 * sees the memory rows i-w+1..i when causal, else those with |i - j| < w. Scores that no row of a block sees, for
 * causal, window or mask, are not computed: the cost goes with query x window. */
typedef struct weft_attention_options {
    weft_dim query, memory,
        feature;     /* as in weft_attention                                              */
    weft_dim column; /* memory's size; {0}: see above                                     */
    bool causal;     /* query row i sees memory rows 0..i                                 */
    int64_t window;  /* and only the `window` nearest of them (above); 0: no window       */
    double scale;    /* of q.k; 0: 1 / sqrt(feature)                                      */
    weft_value bias; /* q's dtype; gets a gradient; -inf hides; {0}: none                 */
    weft_value mask; /* i32: 0 is not seen, anything else is; {0}: none                   */
} weft_attention_options;
WEFT_API weft_value weft_attention_with(weft_value q, weft_value k, weft_value v,
                                        const weft_attention_options *options);
/* rope: rotary positions: of each row of x, a row of q or k, the numbers f and f + feature/2 are a pair, f < feature/2, and are
 * turned by position / base^(2 f / feature). So q.k depends on how far apart rows are. base: 0 is 10000.
 * positions  i32, any of x's dims but feature: weft_iota(graph, WEFT_I32, seq); of one token its place, a scalar. No gradient. */
WEFT_API weft_value weft_rope(weft_value x, weft_value positions, weft_dim feature, double base);
/* weft_rope_options - of rotary positions that reach farther than a model was first trained for: pairs turn `factor` times slower.
 * With `rows` it is those alone that turn less than `low` times in so many rows: pairs that turn `high` times or more stay, and
 * between the two are pairs of both (LLaMA 3.1). Without `rows` all of them. */
typedef struct weft_rope_options {
    double base;   /* 0: 10000 */
    double factor; /* 0 or 1: none turn slower */
    double low, high, rows;
} weft_rope_options;
WEFT_API weft_value weft_rope_with(weft_value x, weft_value positions, weft_dim feature,
                                   const weft_rope_options *options);
/* alibi: [heads, query, memory]: -slope |query - memory|, a bias of attention; slopes are 2^(-8/n), 2^(-16/n), ... of n heads,
 * where n is a power of two. memory has another name than query: attention's column. */
WEFT_API weft_value weft_alibi(weft_graph *graph, weft_dtype dtype, weft_dim heads, weft_dim query,
                               weft_dim memory);

/* shape */
WEFT_API weft_value weft_transpose(weft_value x,
                                   weft_shape out); /* the same dims in another order */
WEFT_API weft_value weft_rename(weft_value x, weft_dim from, weft_dim to); /* sizes equal */
/* reshape: merges neighbours or splits a dim; the row-major order of elements stays. */
WEFT_API weft_value weft_reshape(weft_value x, weft_shape out);
/* slice: [begin, end) along dim; the result's dim is called `to`, of size end - begin. */
WEFT_API weft_value weft_slice(weft_value x, weft_dim dim, int64_t begin, weft_dim to);
/* slice_step: from `begin` on, each `step` further (below 0: backwards): to.size elements, all of them in dim. */
WEFT_API weft_value weft_slice_step(weft_value x, weft_dim dim, int64_t begin, int64_t step,
                                    weft_dim to);
/* split: part `index`, from 0, of dim cut into parts of to.size, which divides it. unstack: element `index`, without dim. */
WEFT_API weft_value weft_split(weft_value x, weft_dim dim, int64_t index, weft_dim to);
WEFT_API weft_value weft_unstack(weft_value x, weft_dim dim, int64_t index);
WEFT_API weft_value weft_concat(weft_value a, weft_value b, weft_dim a_dim, weft_dim b_dim,
                                weft_dim out);

/* stack: values of the same dims along a new one, dim, the result's first; dim.size of them. */
WEFT_API weft_value weft_stack(weft_values values, weft_dim dim);
/* pad: `before` elements of `value` before x, and after it as many as `to` has room for. pad_reflect: x continued as
 * a mirror at its first and last elements would, which stand once. dilate: zeros between, step - 1 of them. */
WEFT_API weft_value weft_pad(weft_value x, weft_dim dim, int64_t before, weft_dim to, double value);
WEFT_API weft_value weft_pad_reflect(weft_value x, weft_dim dim, int64_t before, weft_dim to);
WEFT_API weft_value weft_dilate(weft_value x, weft_dim dim, int64_t step, weft_dim to);
/* along dim of n elements, y[i] is: flip: x[n - 1 - i]; roll: x[(i - by) mod n]; shift_along: x[i - by], or 0 where
 * there is none (by above -n and below n). shift_by: as shift_along, or if it wraps as roll, by computed numbers:
 * i32, one for all or of dims of x, each row by its own. It is made of pick, and goes through x as pick does. */
WEFT_API weft_value weft_flip(weft_value x, weft_dim dim);
WEFT_API weft_value weft_roll(weft_value x, weft_dim dim, int64_t by);
WEFT_API weft_value weft_shift_along(weft_value x, weft_dim dim, int64_t by);
WEFT_API weft_value weft_shift_by(weft_value x, weft_dim dim, weft_value by, bool wraps);
/* reindex: y[o] = x[(stride o + offset) / over] along dim, where that is whole and an element of x; else 0. The result's dim is
 * `to`. Slices, shifts, reversals, and zeros around or between are this. stride is not 0, over at least 1, both at most
 * WEFT_MAX_STRIDE; something of x is read. Its gradient is a reindex too. */
WEFT_API weft_value weft_reindex(weft_value x, weft_dim dim, weft_dim to, int64_t stride,
                                 int64_t offset, int64_t over);

/* random: new numbers every run, the same on every mesh and layout */
WEFT_API weft_value weft_random_uniform(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                        double low, double high);
WEFT_API weft_value weft_random_normal(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                       double mean, double deviation);
/* random_int: each integer from low on, below high, as often, of a dtype that holds them. random_bernoulli: 1 with that
 * probability, else 0; of a value: each element with its own, in its dtype. random_truncated_normal: within two deviations of the
 * mean; deviation is that of the normal distribution that is cut off. random_gumbel: -log(-log u) of uniform u. */
WEFT_API weft_value weft_random_int(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                    int64_t low, int64_t high);
WEFT_API weft_value weft_random_bernoulli(weft_graph *graph, weft_dtype dtype, weft_shape shape,
                                          double probability);
WEFT_API weft_value weft_random_bernoulli_of(weft_value probability);
WEFT_API weft_value weft_random_truncated_normal(weft_graph *graph, weft_dtype dtype,
                                                 weft_shape shape, double mean, double deviation);
WEFT_API weft_value weft_random_gumbel(weft_graph *graph, weft_dtype dtype, weft_shape shape);
/* random_categorical: i32 [logits' dims without dim]: class c with probability softmax(logits)[c]; -inf: never. */
WEFT_API weft_value weft_random_categorical(weft_value logits, weft_dim dim);
/* dropout: 0 with probability `rate`, else x / (1 - rate). */
WEFT_API weft_value weft_dropout(weft_value x, double rate);
/* dropout_over: the same, drawn once for each element of `noise`, some of x's dims: whole channels, whole rows, go at once. */
WEFT_API weft_value weft_dropout_over(weft_value x, double rate, weft_shape noise);

/* require: x as it is, where `holds`, an i32 scalar, is not 0. Where it is 0, the run ends at this step on every rank, and weft_run
 * gives the sentence, with the call's place before it and {} replaced by `number`, a scalar ({0}: none). The program's runs fail
 * from then on; variables are as the steps before left them. It happens where something reads the result.
 *
 *     weft_value l = weft_cholesky(a, row, column);
 *     l = weft_require(l, weft_all(WEFT_SCALAR, weft_is_finite(l)), none, "the covariance is not positive definite");
 *
 * checked_ids: ids unchanged, for programs that would rather stop than go on with zeros: an id outside dim ends the
 * run with a sentence, with the largest of them.
 *
 *     rows = weft_gather(table, weft_checked_ids(ids, vocab), vocab);
 *
 *     checked_ids at gpt.c:88: ids has 70000, and vocab has 50257, numbered from 0 to 50256; ... */
WEFT_API weft_value weft_require(weft_value x, weft_value holds, weft_value number,
                                 const char *sentence);
WEFT_API weft_value weft_checked_ids(weft_value ids, weft_dim dim);
/* identity forward, no gradient */
WEFT_API weft_value weft_stop_gradient(weft_value x);
/* weft_same - x as it is, as a value of its own: with its own name, placement and gradient. Read after a run, it is
 * what x was in that run, also where x is a variable that has been assigned since. Nothing is copied except for that,
 * and to live elsewhere than x. */
WEFT_API weft_value weft_same(weft_value x);
/* weft_settle - x as it is, but no partial sum: one that would be left to go on into other sums is finished here, into where this
 * value goes (weft_place, weft_place_as). */
WEFT_API weft_value weft_settle(weft_value x);

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/ops_here.h"
#endif

#endif
