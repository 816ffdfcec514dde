/* cancelling_test: in f32, values and slopes are as exact where they are small as elsewhere: no small number is what large
 * ones leave of each other. Nor are infinities what is left of each other. */
#include <math.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;

static weft_value elu(weft_value x)
{
    return weft_elu(x, 0.75);
}
static weft_value entropy_of_1(weft_value x)
{
    return weft_sigmoid_cross_entropy(x, weft_constant(x.graph, WEFT_F32, WEFT_SCALAR, 1.0));
}
static weft_value entropy_of_0(weft_value x)
{
    return weft_sigmoid_cross_entropy(x, weft_constant(x.graph, WEFT_F32, WEFT_SCALAR, 0.0));
}
static double elu_slope(double x)
{
    return x > 0 ? 1 : 0.75 * exp(x);
}
static double selu_slope(double x)
{
    return 1.0507009873554805 * (x > 0 ? 1 : 1.6732632423543772 * exp(x));
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double minus_sigmoid(double x)
{
    return -1 / (1 + exp(x));
}
static double softplus(double x)
{
    return log1p(exp(x));
}
static double softplus_turned(double x)
{
    return log1p(exp(-x));
}

/* Functions of f32 that are near a number of theirs, 0 or -1, where a slope is small: value and slope, NULL where the value has
 * tests of its own. */
static const struct {
    const char *name;
    weft_value (*f)(weft_value x);
    double (*value)(double x), (*slope)(double x);
} cancelling[] = {
    {"elu", elu, NULL, elu_slope},
    {"selu", weft_selu, NULL, selu_slope},
    {"expm1", weft_expm1, expm1, exp},
    {"softplus", weft_softplus, softplus, sigmoid},
    {"entropy of 1", entropy_of_1, softplus_turned, minus_sigmoid},
    {"entropy of 0", entropy_of_0, softplus, sigmoid},
};
enum { N_CANCELLING = sizeof cancelling / sizeof *cancelling, FAR = 25 };

static void build_cancelling(weft_oracle_build *b)
{
    const weft_dim many = {"many", 4000};
    const weft_value x = weft_oracle_input(b, WEFT_F32, WEFT_DIMS(many), -FAR, FAR);
    weft_oracle_output(b, x);
    for (int k = 0; k < N_CANCELLING; k++) {
        const weft_value y = cancelling[k].f(x);
        weft_value slope;
        weft_gradients(weft_sum(WEFT_SCALAR, y), WEFT_VALUES(x), &slope, 0);
        weft_oracle_output(b, y);
        weft_oracle_output(b, slope);
    }
}

/* Within 3 steps of f32. */
static void check_exact(const char *name, const char *what, double (*f)(double), const double *x,
                        const double *y, int64_t n)
{
    double worst = 0, at = 0;
    char text[200];
    for (int64_t i = 0; i < n && f != NULL; i++) {
        const double right = f(x[i]), off = fabs(y[i] - right) / fabs(right);
        if (!(off <= worst)) worst = off, at = x[i];
    }
    snprintf(text, sizeof text, "the %s of %s is off by %g of itself at %.9g", what, name, worst,
             at);
    weft_test_check(worst <= 3 * 0x1p-23, __FILE__, __LINE__, text);
}

static void test_nothing_cancels_in_f32(void)
{
    const weft_oracle_case what = {.name = "cancelling", .build = build_cancelling};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 0; k < N_CANCELLING; k++) {
        check_exact(cancelling[k].name, "value", cancelling[k].value, r.data[0], r.data[1 + 2 * k],
                    r.count[0]);
        check_exact(cancelling[k].name, "slope", cancelling[k].slope, r.data[0], r.data[2 + 2 * k],
                    r.count[0]);
    }
    weft_oracle_free(&r);
}

/* ---- known values and slopes where operands are infinite --------------------------------------------- */

enum { N_ENTROPIES = 6, N_FACTS = 3 };

/* softplus(x) - t x, its slope by x, and that by t. */
static const struct {
    double x, t, facts[N_FACTS];
} entropies[N_ENTROPIES] = {
    {2, (double)INFINITY, {(double)-INFINITY, (double)-INFINITY, -2}},
    {-3, (double)INFINITY, {(double)INFINITY, (double)-INFINITY, 3}},
    {2, (double)-INFINITY, {(double)INFINITY, (double)INFINITY, -2}},
    {(double)INFINITY, 0, {(double)INFINITY, 1, (double)-INFINITY}},
    {(double)-INFINITY, 1, {(double)INFINITY, -1, (double)INFINITY}},
    {0, 0.25, {0.69314718055994531, 0.25, 0}},
};

static void check_entropies(weft_program *program, const weft_value *facts)
{
    weft_error error = {0};
    for (int k = 0; k < N_FACTS; k++) {
        double *found = NULL;
        if (CHECK_OK(weft_oracle_read(program, facts[k], &found, &error), error))
            for (int i = 0; i < N_ENTROPIES; i++)
                CHECK(found[i] == entropies[i].facts[k] ||
                      fabs(found[i] - entropies[i].facts[k]) < 1e-15);
        free(found);
    }
}

static void test_entropies_of_infinities(void)
{
    const weft_dim dim = {"six", N_ENTROPIES};
    weft_oracle_build b = {.graph = weft_graph_create(1)};
    const weft_value x = weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(dim), 0, 1);
    const weft_value t = weft_oracle_input(&b, WEFT_F64, WEFT_DIMS(dim), 0, 1);
    weft_value facts[N_FACTS] = {weft_sigmoid_cross_entropy(x, t)};
    double xs[N_ENTROPIES], ts[N_ENTROPIES];
    weft_program *program = NULL;
    weft_error error = {0};
    for (int i = 0; i < N_ENTROPIES; i++)
        xs[i] = entropies[i].x, ts[i] = entropies[i].t;
    weft_gradients(weft_sum(WEFT_SCALAR, facts[0]), WEFT_VALUES(x, t), facts + 1, 0);
    if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(facts[0], facts[1], facts[2]), NULL,
                              &program, &error),
                 error) &&
        CHECK_OK(weft_oracle_write(program, x, xs, &error), error) &&
        CHECK_OK(weft_oracle_write(program, t, ts, &error), error) &&
        CHECK_OK(weft_run(program, &error), error))
        check_entropies(program, facts);
    weft_program_destroy(&program);
    weft_graph_destroy(&b.graph);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        RUN(test_nothing_cancels_in_f32);
        RUN(test_entropies_of_infinities);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
