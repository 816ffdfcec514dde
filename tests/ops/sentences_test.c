/* sentences_test: what builders that are compositions are told wrongly is one sentence, which says what was written and the way out. */
#include "weft/extend/op.h"
#include "weft/ops.h"
#include "weft/scan.h"

#include <string.h>

#include "test.h"

static const weft_dim row = {"row", 4}, column = {"column", 7}, none = {"nothing", 3},
                      to = {"to", 9}, entry = {"entry", 5};
static const weft_dim of_groups = {"column", 1};
static weft_graph *graph;
static weft_value x, y, ids, whole;

static void begin(void)
{
    graph = weft_graph_create(1);
    x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(row, column));
    y = weft_input(graph, "y", WEFT_F32, WEFT_DIMS(column));
    ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(row));
    whole = weft_input(graph, "whole", WEFT_I32, WEFT_DIMS(row, column));
}

#define REFUSED(call, sentence)                                                                    \
    do {                                                                                           \
        begin();                                                                                   \
        CHECK_EQ_INT((call).id, 0);                                                                \
        CHECK_TEXT(weft_graph_error(graph)->message, sentence);                                    \
        weft_graph_destroy(&graph);                                                                \
    } while (0)

static void test_products_and_norms(void)
{
    REFUSED(weft_prod(WEFT_DIMS(none), x), "x is [row:4, column:7] and has no dim nothing");
    REFUSED(weft_cummax(x, none, false, false), "has no dim nothing");
    REFUSED(weft_outer(x, y), "both operands have column");
    REFUSED(weft_triangle(graph, row, column, (int64_t)1 << 40), "offset is 1099511627776");
    REFUSED(weft_group_norm(x, y, y, column, 3, WEFT_SCALAR, 1e-5),
            "column:7 is not to be cut into 3 groups; take a number that divides it");
    REFUSED(weft_group_norm(x, weft_input(graph, "gain", WEFT_F32, WEFT_DIMS(of_groups)), y, column,
                            1, WEFT_SCALAR, 1e-5),
            "the first operand is [row:4, column:7] and gain is [column:1]");
    REFUSED(weft_group_norm(x, y, y, none, 3, WEFT_SCALAR, 1e-5),
            "channels are nothing:3, but x is [row:4, column:7]");
    REFUSED(weft_instance_norm(x, y, y, WEFT_DIMS(none), 1e-5), "over nothing:3, but x is");
    REFUSED(weft_weight_norm(y, x), "the gain has row:4, but x is [column:7]");
    REFUSED(weft_smooth_labels(x, column, 1.5), "by is 1.5; it is from 0 to 1");
    REFUSED(weft_soft_cross_entropy(x, y, row), "classes are row:4, but x is [column:7]");
}

static void test_order(void)
{
    REFUSED(weft_top_k(x, column, to, NULL),
            "9 elements are asked of column:7; take from 1 to all");
    REFUSED(weft_sort(x, none, false, NULL), "has no dim nothing");
    REFUSED(weft_quantile(x, column, 1.5), "q is 1.5; it is from 0 to 1");
    REFUSED(weft_quantile(x, none, 0.5), "along nothing:3, but x is [row:4, column:7]");
    REFUSED(weft_median(whole, column),
            "the operand is i32, and only floats are possible here: f32");
}

/* Of integers nothing is cut: 2.5 would be 2. */
static void test_no_number_is_cut(void)
{
    const weft_shape shape = WEFT_DIMS(row);
    REFUSED(weft_constant(graph, WEFT_I32, shape, 2.5), "2.5 is no i32: it has a fraction");
    REFUSED(weft_constant(graph, WEFT_I64, shape, -1e-9), "-1e-09 is no i64: it has a fraction");
    REFUSED(weft_constant(graph, WEFT_U8, shape, 256), "256 is no u8: it is past the range");
    REFUSED(weft_constant(graph, WEFT_I32, shape, (double)NAN), "no i32: it is past the range");
    REFUSED(weft_variable(graph, "n", WEFT_I32, shape, weft_constant_of(0.5)),
            "n: 0.5 is no i32: it has a fraction");
    REFUSED(weft_variable(graph, "n", WEFT_U8, shape, weft_constant_of(-1)), "past the range");
    REFUSED(weft_clamp(ids, 0.5, 2), "0.5 is no i32: it has a fraction");
    REFUSED(weft_clamp(ids, 0, 2.5), "2.5 is no i32: it has a fraction");
    REFUSED(weft_pad(whole, column, 1, to, 0.25), "0.25 is no i32: it has a fraction");
    begin();
    weft_clamp(ids, -1e300, (double)INFINITY);
    weft_clamp(x, 0.5, 2.5);
    weft_pad(x, column, 1, to, 0.25);
    CHECK_EQ_INT(weft_graph_error(graph)->status, WEFT_OK);
    weft_graph_destroy(&graph);
}

static void test_indices(void)
{
    REFUSED(weft_unpick(WEFT_DIMS(row, column), x, ids, entry),
            "ids go along entry:5, and the result is to be [row:4, column:7]; give it that dim");
    REFUSED(weft_unpick(WEFT_DIMS(entry), x, ids, entry),
            "x has column, which neither the ids nor the result have");
    REFUSED(weft_unpick(WEFT_DIMS(row, entry), y, ids, entry), "has no dim row");
    REFUSED(weft_scatter_max(y, ids, entry), "y is [column:7] and has no dim row");
    REFUSED(weft_scatter_max(x, ids, column), "x has column already, which the result gets");
    REFUSED(weft_scatter_max(x, x, entry), "indices and conditions are i32");
    REFUSED(weft_segment_mean(whole, ids, entry),
            "the operand is i32, and only floats are possible here: f32");
    REFUSED(weft_count_outside(x, entry), "ids are f32; they are i32");
    REFUSED(weft_shift_by(x, column, y, false),
            "is shifted along column:7 by f32[column:7]; by is");
    REFUSED(weft_shift_by(x, row, ids, true),
            "is shifted along row:4 by i32[row:4]; by is i32, with");
    REFUSED(weft_shift_by(y, column, ids, true),
            "x is [column:7] and is shifted along column:7 by");
    REFUSED(weft_shift_by(x, none, ids, true), "has no dim nothing");
    REFUSED(weft_pick_product(x, y, ids, entry), "y is [column:7] and has no dim entry");
    REFUSED(weft_pick_product(x, weft_outer(y, weft_iota(graph, WEFT_F32, entry)), ids, entry),
            "it has three dims: entry, one of x that the ids have not, and one of its own");
    REFUSED(weft_checked_ids(x, entry), "ids are f32; they are i32");
    REFUSED(weft_require(x, ids, (weft_value){0}, "no"),
            "ids is [row:4], and here one number is possible; reduce it, as by weft_all");
    REFUSED(weft_require(x, y, (weft_value){0}, "no"), "indices and conditions are i32");
    REFUSED(weft_require(x, ids, (weft_value){0}, NULL), "the sentence has 0 letters");
    REFUSED(weft_histogram(WEFT_SCALAR, x, 1.0, 1.0, entry), "from 1 to 1; they are numbers");
    REFUSED(weft_histogram(WEFT_SCALAR, whole, 0.0, 1.0, entry),
            "the operand is i32, and only floats are possible here: f32");
    REFUSED(weft_embedding_bag(x, ids, row, none, (weft_value){0}, false),
            "a bag is nothing:3, but ids are [row:4]");
}

static void test_matrices(void)
{
    const weft_dim side = {"side", 4}, seven = {"seven", 7};
    const weft_value none_of_it = {NULL, 0};
    REFUSED(weft_cholesky(x, row, column),
            "row:4 and column:7 are not the two sides of a square matrix; they have two "
            "names and one size");
    REFUSED(weft_cholesky(x, row, row), "row:4 and row:4 are not the two sides");
    REFUSED(weft_cholesky(x, column, seven), "x is [row:4, column:7] and has no dim seven");
    REFUSED(weft_cholesky(whole, row, side),
            "the operand is i32, and only floats are possible here: f32");
    REFUSED(weft_triangular_solve(weft_outer(y, weft_rename(y, column, seven)), x, seven, column,
                                  false),
            "x is [row:4, column:7] and has no dim seven");
    REFUSED(weft_solve(weft_outer(y, weft_rename(y, column, seven)),
                       weft_outer(y, weft_rename(y, column, seven)), seven, column),
            "has column, which the result gets in place of seven; weft_rename it");
    REFUSED(weft_solve_positive(x, none_of_it, row, column), "are not the two sides");
}

/* Of a single row, with one zero before it: every other element, and those are zeros. */
static void test_windows_that_read_nothing(void)
{
    const weft_dim tap = {"tap", 1}, out = {"out", 2}, single = {"single", 1};
    const weft_spatial over = {.in = single, .tap = tap, .out = out, .stride = 2, .before = 1};
    REFUSED(weft_conv(WEFT_DIMS(out), weft_broadcast_to(y, WEFT_DIMS(single, column)),
                      weft_broadcast_to(y, WEFT_DIMS(tap, column)), WEFT_SPATIAL(over)),
            "nothing of the first operand is read: no element of out:2 with 1 taps, 2 apart, 1 "
            "apart from each other, beginning at -1, is one of single:1. Look at the padding");
    REFUSED(weft_max_pool(weft_broadcast_to(y, WEFT_DIMS(single, column)), WEFT_SPATIAL(over)),
            "no element of out:2 with 1 taps, 2 apart, beginning at -1, is one of single:1");
    const weft_spatial far = {.in = single, .tap = tap, .out = out, .before = (int64_t)1 << 51};
    REFUSED(weft_conv(WEFT_DIMS(out), weft_broadcast_to(y, WEFT_DIMS(single, column)),
                      weft_broadcast_to(y, WEFT_DIMS(tap, column)), WEFT_SPATIAL(far)),
            "elements before the first within 2^50");
    REFUSED(weft_shift_along(x, row, row.size), "by 4 of row:4 nothing is left");
    REFUSED(weft_shift_along(x, row, -row.size), "by -4 of row:4 nothing is left");
}

static void test_random(void)
{
    REFUSED(weft_random_int(graph, WEFT_I32, WEFT_DIMS(row), 5, 5), "from 5 on, below 5");
    REFUSED(weft_random_int(graph, WEFT_U8, WEFT_DIMS(row), 0, 257),
            "u8 does not have all integers from 0 on, below 257");
    REFUSED(weft_random_int(graph, WEFT_BF16, WEFT_DIMS(row), -1000, 3),
            "bf16 does not have all integers from -1000 on");
    REFUSED(weft_random_int(graph, WEFT_F32, WEFT_DIMS(row), 0, (1 << 24) + 2),
            "f32 does not have all integers");
    REFUSED(weft_random_bernoulli(graph, WEFT_F32, WEFT_DIMS(row), -0.5),
            "the probability is -0.5; it is from 0 to 1");
    REFUSED(weft_random_categorical(whole, column),
            "the operand is i32, and only floats are possible here: f32");
}

/* What the program has passed, not what a composition has made of it. */
static void test_sentences_are_of_what_was_passed(void)
{
    const weft_dim seven = {"seven", 7};
    REFUSED(weft_argmax(weft_cast(whole, WEFT_U8), row),
            "the operand is u8, and only floats are possible");
    REFUSED(weft_argmin(weft_cast(whole, WEFT_U8), row),
            "the operand is u8, and only floats are possible");
    REFUSED(weft_one_hot(weft_cast(whole, WEFT_I64), seven, WEFT_F32), "ids are i64; they are i32");
    REFUSED(weft_triangle(graph, row, row, 0), "row and column are both row");
}

static bool is_like(weft_value value, weft_dtype dtype, weft_shape shape)
{
    return weft_dtype_of(value) == dtype && weft_shape_same_order(weft_shape_of(value), &shape);
}

/* Dims in the order, and dtypes, that ops.h says. */
static void test_results_are_what_the_header_says(void)
{
    const weft_dim heads = {"heads", 2}, label = {"label", 1};
    begin();
    const weft_value half = weft_cast(x, WEFT_BF16),
                     other = weft_transpose(x, WEFT_DIMS(column, row));
    const weft_value labels = weft_constant(graph, WEFT_I32, WEFT_DIMS(label), 1.0);
    const weft_ctc_options ctc = {.time = row, .classes = column, .label = label};
    CHECK(is_like(weft_logsumexp(half, column), WEFT_F32, WEFT_DIMS(row)));
    CHECK(is_like(weft_z_loss(half, column), WEFT_F32, WEFT_DIMS(row)));
    CHECK(is_like(weft_cross_entropy(half, ids, column), WEFT_F32, WEFT_DIMS(row)));
    CHECK(is_like(weft_soft_cross_entropy(half, half, column), WEFT_F32, WEFT_DIMS(row)));
    CHECK(is_like(weft_ctc_loss(half, labels, &ctc), WEFT_F32, WEFT_SCALAR));
    CHECK(is_like(weft_softmax(half, column), WEFT_BF16, WEFT_DIMS(row, column)));
    CHECK(is_like(weft_triangle(graph, row, column, 1), WEFT_I32, WEFT_DIMS(row, column)));
    CHECK(is_like(weft_lower_triangle(x, row, column, 0), WEFT_F32, WEFT_DIMS(row, column)));
    CHECK(is_like(weft_lower_triangle(other, row, column, 0), WEFT_F32, WEFT_DIMS(column, row)));
    CHECK(is_like(weft_upper_triangle(other, row, column, 0), WEFT_F32, WEFT_DIMS(column, row)));
    CHECK(is_like(weft_alibi(graph, WEFT_F32, heads, row, column), WEFT_F32,
                  WEFT_DIMS(heads, row, column)));
    for (int64_t by = 1 - row.size; by < row.size; by++)
        CHECK(weft_shift_along(x, row, by).id != 0);
    CHECK(weft_random_int(graph, WEFT_U8, WEFT_DIMS(row), 0, 256).id != 0);
    CHECK(weft_random_int(graph, WEFT_F32, WEFT_DIMS(row), -(1 << 24), (1 << 24) + 1).id != 0);
    CHECK_EQ_INT(weft_graph_status(graph), WEFT_OK);
    weft_graph_destroy(&graph);
}

/* Of a body's value of as many dims as a tensor may have, and one from around. */
static weft_value chosen(bool is_first)
{
    static const char *const names[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};
    weft_shape shape = {.n_dims = WEFT_MAX_DIMS};
    for (int d = 0; d < WEFT_MAX_DIMS; d++)
        shape.dims[d] = (weft_dim){names[d], 1};
    const weft_value most = weft_constant(graph, WEFT_F32, shape, 1.0);
    const weft_value yes = weft_cond_begin(weft_constant(graph, WEFT_I32, WEFT_SCALAR, 1.0));
    const weft_value inner = weft_neg(most);
    weft_cond_end(yes);
    return is_first ? weft_cond(inner, most) : weft_cond(most, inner);
}

static void test_values_of_bodies_leave_room_for_one_dim_more(void)
{
    REFUSED(chosen(true), "the values have 8 dims; of a body that is done or not they have 7");
    REFUSED(chosen(false), "the values have 8 dims; of a body that is done or not they have 7");
}

int main(void)
{
    RUN(test_products_and_norms);
    RUN(test_order);
    RUN(test_no_number_is_cut);
    RUN(test_indices);
    RUN(test_matrices);
    RUN(test_windows_that_read_nothing);
    RUN(test_random);
    RUN(test_sentences_are_of_what_was_passed);
    RUN(test_results_are_what_the_header_says);
    RUN(test_values_of_bodies_leave_room_for_one_dim_more);
    return weft_test_report();
}
