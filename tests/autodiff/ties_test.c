/* RANKS: 2 3 */
/* ties_test: to which of equal elements a gradient goes: by one rule, however long a dim is and whatever is infinite, and in every
 * layout. docs/ops.md has the rules. */
#include <math.h>
#include <stdlib.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;
static const weft_dim row = {"row", 4};

/* One call, of a dim of some length. */
typedef struct call {
    weft_dim along;
    double q;
    bool exclusive, reverse, is_least;
} call;

/* x [row, along] of few whole numbers. */
static weft_value with_ties(weft_oracle_build *b, weft_dim along)
{
    return weft_cast(weft_oracle_input(b, WEFT_I32, WEFT_DIMS(row, along), 0, 3), WEFT_F64);
}

/* Of the sum of y by weights that are its places along dim, and 1. */
static weft_value slope_of(weft_value y, weft_value x, weft_dim dim)
{
    const weft_value at = weft_shift(weft_iota(x.graph, WEFT_F64, dim), 1.0);
    weft_value slope;
    weft_gradients(weft_sum(WEFT_SCALAR, weft_mul(y, at)), WEFT_VALUES(x), &slope, 0);
    return slope;
}

static void sweep(const char *name, void (*build)(weft_oracle_build *), const call *c)
{
    const weft_oracle_case what = {.name = name, .build = build, .argument = c};
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 2 : 8);
}

/* ---- quantiles -------------------------------------------------------------------------------------- */

/* The slope of a quantile, and of the same by all of the dim in order. */
static void build_quantile(weft_oracle_build *b)
{
    const call *c = b->argument;
    const weft_dim along = c->along;
    const weft_value x = with_ties(b, along), sorted = weft_sort(x, along, false, NULL);
    const double place = c->q * (double)(along.size - 1), whole = floor(place);
    const int64_t at = (int64_t)whole, next = at + 1 < along.size ? at + 1 : at;
    const weft_value low = weft_unstack(sorted, along, at),
                     high = weft_unstack(sorted, along, next);
    const weft_value y = weft_add(low, weft_scale(weft_sub(high, low), place - whole));
    weft_oracle_output(b, slope_of(weft_quantile(x, along, c->q), x, row));
    weft_oracle_output(b, slope_of(y, x, row));
}

static void test_a_quantile_has_the_slopes_of_the_sorted_dim(void)
{
    static const double of[] = {0.0, 0.3, 0.5, 0.77, 0.95, 0.994, 1.0};
    static const int64_t sizes[] = {3, 7, 500};
    for (size_t s = 0; s < 3; s++)
        for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
            const call c = {.along = {"along", sizes[s]}, .q = of[k]};
            const weft_oracle_case what = {"quantile", build_quantile, &c};
            weft_oracle_result r;
            weft_error error = {0};
            if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
            for (int64_t i = 0; i < r.count[0]; i++)
                CHECK(fabs(r.data[0][i] - r.data[1][i]) < 1e-12);
            weft_oracle_free(&r);
            sweep("quantile", build_quantile, &c);
        }
}

/* ---- the most so far --------------------------------------------------------------------------------- */

/* x, of which a third is the least that there is, and the slope. */
static void build_most(weft_oracle_build *b)
{
    const call *c = b->argument;
    const double least = c->is_least ? (double)INFINITY : (double)-INFINITY;
    const weft_value few = with_ties(b, c->along);
    const weft_value zero = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    const weft_value x = weft_where(weft_equal(few, zero),
                                    weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, least), few);
    const weft_value y =
        (c->is_least ? weft_cummin : weft_cummax)(x, c->along, c->exclusive, c->reverse);
    weft_oracle_output(b, x);
    weft_oracle_output(b, slope_of(y, x, c->along));
}

/* By going along one row: which element is the most so far, the first of equal ones. */
static void expect_most(const call *c, const double *x, double *slope)
{
    const int64_t n = c->along.size;
    int64_t most = -1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = c->reverse ? n - 1 - k : k, before = most;
        const bool is_more = most < 0 || (c->is_least ? x[i] < x[most] : x[i] > x[most]);
        if (is_more) most = i;
        const int64_t to = c->exclusive ? before : most;
        if (to >= 0) slope[to] += (double)(i + 1);
    }
}

static void check_most(const call *c)
{
    const weft_oracle_case what = {"the most so far", build_most, c};
    weft_oracle_result r;
    weft_error error = {0};
    char text[200];
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    const int64_t n = c->along.size;
    double *slope = calloc((size_t)r.count[0], sizeof *slope);
    int n_off = 0;
    for (int64_t first = 0; first < r.count[0]; first += n)
        expect_most(c, r.data[0] + first, slope + first);
    for (int64_t i = 0; i < r.count[0]; i++)
        n_off += r.data[1][i] != slope[i];
    snprintf(text, sizeof text, "%s of %lld,%s%s: %d of %lld slopes are others",
             c->is_least ? "cummin" : "cummax", (long long)n, c->exclusive ? " exclusive" : "",
             c->reverse ? " reverse" : "", n_off, (long long)r.count[0]);
    weft_test_check(n_off == 0, __FILE__, __LINE__, text);
    free(slope);
    weft_oracle_free(&r);
}

static void test_the_first_of_equal_ones_is_the_most_so_far(void)
{
    static const int64_t sizes[] = {7, 130};
    for (int k = 0; k < 16; k++) {
        const call c = {.along = {"along", sizes[k & 1]},
                        .exclusive = k >> 1 & 1,
                        .reverse = k >> 2 & 1,
                        .is_least = k >> 3 & 1};
        check_most(&c);
        sweep("the most so far", build_most, &c);
    }
}

/* ---- a slope that is infinite ------------------------------------------------------------------------ */

/* Roots of what is 0, the most of -1, 0, -1, 0, ..: of a row, and of each half that an index brings together. */
static void build_roots(weft_oracle_build *b)
{
    const weft_dim along = {"along", 6}, two = {"two", 2};
    const weft_value three = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3.0);
    const weft_value at = weft_iota(b->graph, WEFT_I32, along);
    const weft_value number = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 2.0);
    const weft_value is_odd = weft_mod(at, number);
    const weft_value none = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(along, row), 0.0, 0.0);
    const weft_value x = weft_add(none, weft_shift(weft_cast(is_odd, WEFT_F64), -1.0));
    const weft_value y[] = {weft_max(WEFT_DIMS(row), x),
                            weft_scatter_max(x, weft_floor_div(at, three), two)};
    for (int k = 0; k < 2; k++) {
        weft_value slope;
        weft_gradients(weft_sum(WEFT_SCALAR, weft_sqrt(y[k])), WEFT_VALUES(x), &slope, 0);
        weft_oracle_output(b, slope);
    }
}

static void test_an_infinite_slope_goes_to_the_most_alone(void)
{
    const weft_oracle_case what = {.name = "roots", .build = build_roots};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < r.count[k]; i++)
            CHECK(r.data[k][i] == (i / row.size % 2 == 1 ? (double)INFINITY : 0.0));
    weft_oracle_free(&r);
    sweep("roots", build_roots, NULL);
}

/* Roots of what is 0, which is picked of 0, 1, 1, 0: an element a row, and two. */
static void build_picked(weft_oracle_build *b)
{
    const weft_dim along = {"along", 5}, two = {"two", 2};
    const weft_value none = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(along, row), 0.0, 0.0);
    const weft_value zero = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 0.0);
    const weft_value three = weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, 3.0);
    const weft_value at = weft_iota(b->graph, WEFT_I32, row);
    const weft_value first = weft_broadcast_to(zero, WEFT_DIMS(along)),
                     both = weft_mul(weft_iota(b->graph, WEFT_I32, two), three);
    const weft_value is_inner =
        weft_cast(weft_mul(weft_greater(at, zero), weft_less(at, three)), WEFT_F64);
    const weft_value x = weft_add(none, is_inner);
    const weft_value y[] = {weft_pick(x, first, row),
                            weft_pick(x, weft_broadcast_to(both, WEFT_DIMS(along, two)), row)};
    for (int k = 0; k < 2; k++) {
        weft_value slope;
        weft_gradients(weft_sum(WEFT_SCALAR, weft_sqrt(y[k])), WEFT_VALUES(x), &slope, 0);
        weft_oracle_output(b, slope);
    }
}

static void test_an_infinite_slope_goes_to_what_was_picked_alone(void)
{
    const weft_oracle_case what = {.name = "picked", .build = build_picked};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < r.count[k]; i++) {
            const bool is_picked = i % row.size == 0 || (k == 1 && i % row.size == 3);
            CHECK(r.data[k][i] == (is_picked ? (double)INFINITY : 0.0));
        }
    weft_oracle_free(&r);
    sweep("picked", build_picked, NULL);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_a_quantile_has_the_slopes_of_the_sorted_dim);
        RUN(test_the_first_of_equal_ones_is_the_most_so_far);
        RUN(test_an_infinite_slope_goes_to_the_most_alone);
        RUN(test_an_infinite_slope_goes_to_what_was_picked_alone);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
