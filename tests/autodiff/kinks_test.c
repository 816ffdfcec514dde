/* kinks_test: the slopes that are chosen where a function has none: those of docs/ops.md ("Where derivatives are chosen"). Which of
 * equal elements a gradient goes to is in ties_test. */
#include <math.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;

static weft_value number(weft_value like, double x)
{
    return weft_constant(like.graph, WEFT_F64, WEFT_SCALAR, x);
}
static weft_value first_of_maximum(weft_value x)
{
    return weft_maximum(x, number(x, 2));
}
static weft_value second_of_maximum(weft_value x)
{
    return weft_maximum(number(x, 2), x);
}
static weft_value first_of_minimum(weft_value x)
{
    return weft_minimum(x, number(x, 2));
}
static weft_value second_of_minimum(weft_value x)
{
    return weft_minimum(number(x, 2), x);
}
static weft_value leaky_relu(weft_value x)
{
    return weft_leaky_relu(x, 0.25);
}
static weft_value elu(weft_value x)
{
    return weft_elu(x, 0.75);
}
static weft_value clamp(weft_value x)
{
    return weft_clamp(x, -1, 3);
}
static weft_value huber(weft_value x)
{
    return weft_huber(x, number(x, 0), 1.5);
}
static weft_value mod(weft_value x)
{
    return weft_mod(x, number(x, 2));
}

static const struct {
    const char *what;
    weft_value (*f)(weft_value x);
    double at, slope;
} kinks[] = {
    {"maximum gives a all", first_of_maximum, 2, 1},
    {"maximum gives b nothing", second_of_maximum, 2, 0},
    {"minimum gives a all", first_of_minimum, 2, 1},
    {"minimum gives b nothing", second_of_minimum, 2, 0},
    {"relu is as on the left", weft_relu, 0, 0},
    {"leaky_relu is as on the left", leaky_relu, 0, 0.25},
    {"elu is as on the left", elu, 0, 0.75},
    {"selu is as on the left", weft_selu, 0, 1.0507009873554805 * 1.6732632423543772},
    {"abs is flat", weft_abs, 0, 0},
    {"clamp at its low bound is as inside", clamp, -1, 1},
    {"clamp at its high bound is as inside", clamp, 3, 1},
    {"huber has a slope", huber, 1.5, 1.5},
    {"mod is as beside the step", mod, 4, 1},
};
enum { N_KINKS = sizeof kinks / sizeof *kinks };

static void build(weft_oracle_build *b)
{
    const weft_value nothing = weft_scale(weft_oracle_input(b, WEFT_F64, WEFT_SCALAR, 0, 1), 0.0);
    for (int k = 0; k < N_KINKS; k++) {
        const weft_value x = weft_shift(nothing, kinks[k].at);
        weft_value slope;
        weft_gradients(kinks[k].f(x), WEFT_VALUES(x), &slope, 0);
        weft_oracle_output(b, slope);
    }
}

static void test_slopes_at_kinks_are_those_that_are_written_down(void)
{
    const weft_oracle_case what = {.name = "kinks", .build = build};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 0; k < N_KINKS; k++) {
        char text[160];
        snprintf(text, sizeof text, "%s: its slope at %g is %.17g, not %.17g", kinks[k].what,
                 kinks[k].at, r.data[k][0], kinks[k].slope);
        weft_test_check(fabs(r.data[k][0] - kinks[k].slope) < 1e-15, __FILE__, __LINE__, text);
    }
    weft_oracle_free(&r);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error))
        RUN(test_slopes_at_kinks_are_those_that_are_written_down);
    weft_oracle_close(&oracle);
    return weft_test_report();
}
