/* pairs.h: outputs of a case that come in pairs, of a scan and of what is written down, under placements, compiled either way. */
#ifndef TEST_PAIRS_H
#define TEST_PAIRS_H

#include <math.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/extend/op.h"
#include "weft/scan.h"

static weft_oracle oracle;

/* Bodies compiled once, and scans written down trip by trip. */
static const weft_compile_options once = {.unroll = 1}, unrolled = {.unroll = INT64_MAX};

static bool are_near(const double *x, const double *y, int64_t count, double within)
{
    double largest = 1.0, apart = 0.0;
    for (int64_t k = 0; k < count; k++) {
        largest = fmax(largest, fabs(y[k]));
        apart = fmax(apart, fabs(x[k] - y[k]));
    }
    return within > 0 ? apart <= within * largest : memcmp(x, y, (size_t)count * sizeof *x) == 0;
}

/* On one rank a body that is compiled once gives the bits of one that is written down; or, where a product sums over all trips at
 * once, numbers as near as sums in another order are. */
static void check_written_down(const weft_oracle_case *what, double within)
{
    weft_oracle_case a = *what, b = *what;
    weft_oracle_result x, y;
    weft_error error = {0};
    a.options = &once, b.options = &unrolled;
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &a, NULL, &x, &error), error)) return;
    if (CHECK_OK(weft_oracle_run(oracle.alone, &b, NULL, &y, &error), error)) {
        for (int i = 0; i < x.n_outputs; i++)
            CHECK(are_near(x.data[i], y.data[i], x.count[i], within));
        weft_oracle_free(&y);
    }
    weft_oracle_free(&x);
}

/* Outputs come in pairs: of the scan, and of what is written down. */
static void check_pairs_as(const weft_oracle_case *what, int places)
{
    weft_oracle_result r;
    weft_error error = {0};
    weft_oracle_sweep(&oracle, what, oracle.world.n_processes > 1 ? places / 8 : places);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, what, NULL, &r, &error), error)) return;
    for (int i = 0; i + 1 < r.n_outputs; i += 2) {
        double largest = 0.0, apart = 0.0;
        CHECK_EQ_INT(r.count[i], r.count[i + 1]);
        for (int64_t k = 0; k < r.count[i]; k++) {
            apart = fmax(apart, fabs(r.data[i][k] - r.data[i + 1][k]));
            largest = fmax(largest, fabs(r.data[i + 1][k]));
        }
        CHECK(largest > 1e-3);
        CHECK(apart <= 1e-13 * fmax(largest, 1.0));
    }
    weft_oracle_free(&r);
}

static void check_pairs_within(const weft_oracle_case *what, int places, double within)
{
    weft_oracle_case as = *what;
    check_written_down(what, within);
    as.options = &unrolled;
    check_pairs_as(&as, places);
    as.options = &once;
    check_pairs_as(&as, places);
}

static inline void check_pairs(const weft_oracle_case *what, int places)
{
    check_pairs_within(what, places, 0);
}

static inline weft_value element_of(weft_value x, weft_dim dim, int64_t t)
{
    const weft_dim one = {"one", 1};
    const weft_value part = weft_slice(x, dim, t, one);
    return weft_reshape(part, weft_shape_without(weft_shape_of(part), "one"));
}

#endif
