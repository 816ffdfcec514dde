/* RANKS: 3 */
/* functions_test: products, norms, order, segments, matrices, CTC, and their gradients, against PyTorch in float64, on one rank and
 * with rows, and what they are reduced or ordered along, over several.
 *
 * The table functions.txt comes from torch_functions.py, which tells what its lines mean and has the same cases and formulas.
 */
#include "oracle.h"
#include "weft/autodiff.h"

#include "test.h"
#include "torch_table.h"

static const weft_dim four = {"row", 4}, three = {"row", 3}, two = {"row", 2}, five = {"column", 5},
                      six = {"channel", 6}, hundred = {"column", 100}, many = {"column", 400},
                      fifty = {"column", 50}, points = {"row", 20}, segment = {"segment", 6},
                      feature = {"feature", 3}, few = {"few", 4};

static weft_value formula(weft_oracle_build *b, const char *name, weft_shape shape,
                          double frequency)
{
    return weft_variable(b->graph, name, WEFT_F64, shape, weft_formula(1.0, frequency));
}
static weft_value x_of(weft_oracle_build *b, weft_shape shape)
{
    return formula(b, "x", shape, 0.7);
}
/* What comes later counts more. */
static weft_value weighted(weft_value y, weft_dim dim, double from)
{
    return weft_mul(y, weft_shift(weft_iota(y.graph, WEFT_F64, dim), from));
}
static weft_value w_of(weft_oracle_build *b, weft_shape shape)
{
    return formula(b, "w", shape, 1.3);
}

/* y, and half the sum of its squares taken back. */
static void give(weft_oracle_build *b, weft_value y, weft_value x, weft_value w)
{
    const weft_values of = {(const weft_value[]){x, w}, w.id != 0 ? 2 : 1};
    weft_value gradients[2];
    weft_gradients(weft_scale(weft_sum(WEFT_SCALAR, weft_square(y)), 0.5), of, gradients, 0);
    weft_oracle_output(b, y);
    for (int i = 0; i < of.n_values; i++)
        weft_oracle_output(b, gradients[i]);
}
static void give_one(weft_oracle_build *b, weft_value y, weft_value x)
{
    give(b, y, x, (weft_value){b->graph, 0});
}

/* ---- products, and what is the most so far ------------------------------------------------------- */

static void build_prod(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five));
    give_one(b, weft_prod(WEFT_DIMS(four), x), x);
}
static void build_prod_zeros(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five)),
                     w = weft_variable(b->graph, "w", WEFT_F64, WEFT_DIMS(four, five),
                                       weft_constant_of(0));
    const weft_value row = weft_iota(b->graph, WEFT_I32, four),
                     column = weft_iota(b->graph, WEFT_I32, five);
    const weft_value back =
        weft_sub(weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 6.0), weft_add(row, row));
    const weft_value is_zero = weft_logical_or(weft_equal(column, row), weft_equal(column, back));
    give(b, weft_shift(weft_prod(WEFT_DIMS(four), weft_where(is_zero, w, x)), 1.0), x, w);
}
static void build_cummax(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, hundred));
    give_one(b, weft_cummax(x, hundred, false, false), x);
}
static void build_cummin(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, hundred));
    give_one(b, weft_cummin(x, hundred, false, false), x);
}

/* ---- norms, labels ------------------------------------------------------------------------------- */

static void build_group_norm(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(two, six, five)), w = w_of(b, WEFT_DIMS(six));
    give(b, weft_group_norm(x, w, weft_scale(w, 0.5), six, 3, WEFT_DIMS(five), 1e-3), x, w);
}
static void build_instance_norm(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(two, six, five)), w = w_of(b, WEFT_DIMS(six));
    give(b, weft_instance_norm(x, w, weft_scale(w, 0.5), WEFT_DIMS(five), 1e-3), x, w);
}
static void build_weight_norm(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five)), w = w_of(b, WEFT_DIMS(four));
    give(b, weighted(weft_weight_norm(x, w), five, 1.0), x, w);
}
static void build_soft_labels(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five)), w = w_of(b, WEFT_DIMS(four, five));
    give(b, weft_soft_cross_entropy(x, weft_shift(w, 1.5), five), x, w);
}
static void build_smooth_labels(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five)), w = w_of(b, WEFT_DIMS(four, five));
    const weft_value labels = weft_smooth_labels(weft_softmax(w, five), five, 0.2);
    give(b, weft_soft_cross_entropy(x, labels, five), x, w);
}
static void build_erfinv(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, five));
    give_one(b, weft_erfinv(weft_scale(x, 0.99)), x);
}

/* ---- order --------------------------------------------------------------------------------------- */

static void build_sort(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, hundred));
    give_one(b, weighted(weft_sort(x, hundred, false, NULL), hundred, 0.0), x);
}
static void build_sort_down(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, hundred));
    give_one(b, weighted(weft_sort(x, hundred, true, NULL), hundred, 0.0), x);
}
static void build_top_k(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, many));
    give_one(b, weighted(weft_top_k(x, many, few, NULL), few, 1.0), x);
}
static void build_bottom_k(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, many));
    give_one(b, weighted(weft_bottom_k(x, many, few, NULL), few, 1.0), x);
}
static void build_quantile(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, fifty));
    give_one(b, weft_quantile(x, fifty, 0.3), x);
}
static void build_median(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(three, fifty));
    give_one(b, weft_median(x, fifty), x);
}

/* ---- segments ------------------------------------------------------------------------------------ */

/* 7 i mod 6, of element number i. */
static weft_value ids_of(weft_value number)
{
    const weft_value seven = weft_constant(number.graph, WEFT_I32, WEFT_SCALAR, 7.0),
                     n = weft_constant(number.graph, WEFT_I32, WEFT_SCALAR, 6.0);
    return weft_mod(weft_mul(number, seven), n);
}
typedef weft_value reduce_rows(weft_value rows, weft_value ids, weft_dim dim);
static void build_segments(weft_oracle_build *b, reduce_rows *reduce)
{
    const weft_value x = x_of(b, WEFT_DIMS(points, feature));
    give_one(b, reduce(x, ids_of(weft_iota(b->graph, WEFT_I32, points)), segment), x);
}
static void build_scatter_max(weft_oracle_build *b)
{
    build_segments(b, (weft_scatter_max));
}
static void build_scatter_min(weft_oracle_build *b)
{
    build_segments(b, (weft_scatter_min));
}
static void build_segment_mean(weft_oracle_build *b)
{
    build_segments(b, (weft_segment_mean));
}

static weft_value bags(weft_oracle_build *b)
{
    const weft_value row = weft_iota(b->graph, WEFT_I32, four),
                     column = weft_iota(b->graph, WEFT_I32, five),
                     size = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 5.0);
    return ids_of(weft_add(weft_mul(row, size), column));
}
static void build_bag_sum(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(segment, feature)), w = w_of(b, WEFT_DIMS(four, five));
    give(b, weft_embedding_bag(x, bags(b), segment, five, w, false), x, w);
}
static void build_bag_mean(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(segment, feature)), none = {NULL, 0};
    give_one(b, weft_embedding_bag(x, bags(b), segment, five, none, true), x);
}
static void build_histogram(weft_oracle_build *b)
{
    const weft_dim all = {"row", 500}, bins = {"bins", 7};
    const weft_value n = weft_histogram(WEFT_SCALAR, x_of(b, WEFT_DIMS(all)), -0.9, 1.0, bins);
    weft_oracle_output(b, weft_cast(n, WEFT_F64));
}

/* ---- matrices ------------------------------------------------------------------------------------ */

static const weft_dim batches = {"row", 3}, side = {"side", 5}, other = {"other", 5},
                      right = {"right", 4};

static weft_value with_two(weft_value x, weft_dim i, weft_dim j)
{
    const weft_value same =
        weft_equal(weft_iota(x.graph, WEFT_I32, i), weft_iota(x.graph, WEFT_I32, j));
    return weft_add(x, weft_scale(weft_cast(same, WEFT_F64), 2.0));
}
static weft_value square_of(weft_oracle_build *b)
{
    return x_of(b, WEFT_DIMS(batches, side, other));
}
static weft_value right_of(weft_oracle_build *b)
{
    return w_of(b, WEFT_DIMS(batches, side, right));
}
/* x [row, side, column]: the products of its rows, summed over column. */
static weft_value positive_of(weft_value x)
{
    const weft_value gram =
        weft_einsum(WEFT_DIMS(batches, side, other), x, weft_rename(x, side, other));
    return with_two(gram, side, other);
}
static void build_cholesky(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(batches, side, five));
    give_one(b, weft_cholesky(positive_of(x), side, other), x);
}
static void build_triangular(weft_oracle_build *b)
{
    const weft_value x = square_of(b), w = right_of(b);
    give(b, weft_triangular_solve(with_two(x, side, other), w, side, other, false), x, w);
}
static void build_triangular_up(weft_oracle_build *b)
{
    const weft_value x = square_of(b), w = right_of(b), w2 = weft_rename(w, side, other);
    give(b, weft_triangular_solve(with_two(x, side, other), w2, other, side, true), x, w);
}
static void build_solve(weft_oracle_build *b)
{
    const weft_value x = square_of(b), w = right_of(b);
    give(b, weft_solve(weft_roll(with_two(x, side, other), side, 2), w, side, other), x, w);
}
static void build_solve_positive(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(batches, side, five)), w = right_of(b);
    give(b, weft_solve_positive(positive_of(x), w, side, other), x, w);
}

/* ---- CTC ----------------------------------------------------------------------------------------- */

static const weft_dim frames = {"column", 30}, classes = {"classes", 7}, label = {"label", 6};

static weft_value whole(weft_oracle_build *b, double n)
{
    return weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, n);
}
/* from + step i, along `of` */
static weft_value count_from(weft_oracle_build *b, weft_dim of, double from, double step)
{
    const weft_value i = weft_iota(b->graph, WEFT_I32, of);
    return weft_add(whole(b, from), weft_mul(whole(b, step), i));
}
static weft_value ctc_of(weft_value x, weft_value labels, weft_value n_times, weft_value n_labels,
                         int64_t blank)
{
    return weft_ctc_loss(weft_scale(x, 2.0), labels,
                         &(weft_ctc_options){.time = frames,
                                             .classes = classes,
                                             .label = label,
                                             .n_times = n_times,
                                             .n_labels = n_labels,
                                             .blank = blank,
                                             .zero_infinity = n_labels.id == 0});
}
static void build_any_ctc(weft_oracle_build *b, double shift, int64_t blank)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, frames, classes));
    const weft_value i = weft_add(count_from(b, label, 0, 5),
                                  weft_mul(whole(b, 30), weft_iota(b->graph, WEFT_I32, four)));
    const weft_value labels = weft_add(weft_mod(i, whole(b, 6)), whole(b, shift));
    give_one(b, ctc_of(x, labels, count_from(b, four, 30, -5), count_from(b, four, 6, -1), blank),
             x);
}
static void build_ctc(weft_oracle_build *b)
{
    build_any_ctc(b, 1, 0);
}
static void build_ctc_last(weft_oracle_build *b)
{
    build_any_ctc(b, 0, 6);
}
static void build_ctc_none(weft_oracle_build *b)
{
    const weft_value x = x_of(b, WEFT_DIMS(four, frames, classes)), none = {NULL, 0};
    const weft_value at = weft_iota(b->graph, WEFT_I32, label);
    const weft_value labels = weft_where(weft_less(at, whole(b, 4)), whole(b, 1), whole(b, 2));
    give_one(b, ctc_of(x, labels, count_from(b, four, 11, -1), none, 0), x);
}

#define CASE_OF(what)                                                                              \
    {                                                                                              \
        .name = #what, .build = build_##what                                                       \
    }
static const weft_oracle_case cases[] = {
    CASE_OF(prod),          CASE_OF(prod_zeros),  CASE_OF(cummax),         CASE_OF(cummin),
    CASE_OF(group_norm),    CASE_OF(weight_norm), CASE_OF(soft_labels),    CASE_OF(smooth_labels),
    CASE_OF(instance_norm), CASE_OF(erfinv),      CASE_OF(sort),           CASE_OF(sort_down),
    CASE_OF(top_k),         CASE_OF(bottom_k),    CASE_OF(quantile),       CASE_OF(median),
    CASE_OF(scatter_max),   CASE_OF(scatter_min), CASE_OF(segment_mean),   CASE_OF(bag_sum),
    CASE_OF(bag_mean),      CASE_OF(histogram),   CASE_OF(cholesky),       CASE_OF(triangular),
    CASE_OF(triangular_up), CASE_OF(solve),       CASE_OF(solve_positive), CASE_OF(ctc),
    CASE_OF(ctc_last),      CASE_OF(ctc_none),
};
static weft_oracle oracle;

/* A rule for a dim that a case has not is no rule of its layout. */
static void check_on(weft_mesh *mesh, const char *layout, const char *dim)
{
    static const char *const outputs[] = {"y", "x", "w"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_oracle_case one = cases[i];
        weft_oracle_result result = {0};
        weft_error error = {0};
        weft_oracle_build built = {.graph = weft_graph_create(1)};
        one.build(&built);
        const weft_value x = weft_graph_find(built.graph, "x", &error);
        const bool has = dim == NULL || weft_dim_of(x, dim).size > 0;
        weft_graph_destroy(&built.graph);
        one.layout = layout;
        if (!has) continue;
        if (CHECK_OK(weft_oracle_run(mesh, &one, NULL, &result, &error), error))
            check_torch_table("functions.txt", one.name, outputs, &result);
        weft_oracle_free(&result);
    }
}

static void test_one_rank_equals_pytorch(void)
{
    check_on(oracle.alone, NULL, NULL);
}
static void test_rows_over_ranks_equal_pytorch(void)
{
    for (int m = 0; m < oracle.n_meshes; m++)
        check_on(oracle.meshes[m], "row:d", "row");
}
static void test_what_is_reduced_over_ranks_equals_pytorch(void)
{
    for (int m = 0; m < oracle.n_meshes; m++) {
        check_on(oracle.meshes[m], "column:d", "column");
        check_on(oracle.meshes[m], "segment:d", "segment");
        check_on(oracle.meshes[m], "channel:d", "channel");
    }
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_one_rank_equals_pytorch);
        RUN(test_rows_over_ranks_equal_pytorch);
        RUN(test_what_is_reduced_over_ranks_equals_pytorch);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
