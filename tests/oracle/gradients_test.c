/* RANKS: 2 4 */
/* gradients_test: the gradient of every op, and the gradient of some gradients: in f64 against finite differences on
 * one rank, in f32 against f64, then under placements against one rank.
 *
 *     gradients_test [--all] [--say] [NAME]
 */
#include "op_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "weft/autodiff.h"

typedef struct derivative {
    const op_case *op;
    int order;
    weft_dtype dtype;
} derivative;

static weft_oracle oracle;
static const char *only = "";

/* sum(result * weights), of all results: a loss to which every element matters differently. */
static weft_value loss_of(weft_oracle_build *build, weft_value result)
{
    const weft_dtype dtype = weft_dtype_of(result);
    weft_value weights = weft_oracle_input(build, dtype, *weft_shape_of(result), -1.0, 1.0);
    weft_value loss = weft_sum(WEFT_SCALAR, weft_mul(result, weights));
    for (int k = 0; k < build->n_others; k++) {
        weights = weft_oracle_input(build, dtype, *weft_shape_of(build->others[k]), -1.0, 1.0);
        loss = weft_add(loss, weft_sum(WEFT_SCALAR, weft_mul(build->others[k], weights)));
    }
    return loss;
}

/* The float operands among the first n. */
static int float_operands(const weft_oracle_build *build, int n, weft_value *values, int *which)
{
    int n_values = 0;
    for (int k = 0; k < n; k++) {
        if (!weft_dtype_is_float(weft_dtype_of(build->operands[k]))) continue;
        which[n_values] = k;
        values[n_values++] = build->operands[k];
    }
    return n_values;
}

/* Outputs: the loss, to which order 2 adds the sum of squares of its gradients; then the
 * derivatives of that by the op's float operands. */
static void build_gradients(weft_oracle_build *build)
{
    const derivative *d = build->argument;
    weft_value result = d->op->build(build, d->dtype), operands[WEFT_ORACLE_VALUES],
               gradients[WEFT_ORACLE_VALUES];
    if (weft_graph_error(build->graph)->status != WEFT_OK) return;
    int which[WEFT_ORACLE_VALUES];
    const int n = float_operands(build, build->n_inputs, operands, which);
    weft_value loss = loss_of(build, result);
    weft_gradients(loss, (weft_values){operands, n}, gradients, WEFT_ZEROS_ALLOWED);
    if (d->order == 2) {
        for (int k = 0; k < n; k++)
            loss = weft_add(loss, weft_sum(WEFT_SCALAR, weft_square(gradients[k])));
        weft_gradients(loss, (weft_values){operands, n}, gradients, WEFT_ZEROS_ALLOWED);
    }
    if (weft_graph_error(build->graph)->status != WEFT_OK) return;
    weft_oracle_output(build, loss);
    for (int k = 0; k < n; k++)
        weft_oracle_output(build, gradients[k]);
}

/* The loss with element i of `input` set to x; the same run number, so the same random numbers. */
static weft_status loss_at(weft_program *program, const weft_oracle_build *build, int input,
                           double *data, int64_t i, double x, double *loss, weft_error *error)
{
    const double kept = data[i];
    data[i] = x;
    const weft_status status = weft_oracle_write(program, build->inputs[input], data, error);
    data[i] = kept;
    WEFT_TRY(status);
    weft_set_runs(program, 0);
    WEFT_TRY(weft_run(program, error));
    return weft_read_scalar(program, build->outputs[0], loss, error);
}

/* Fourth-order central difference: 1e-3 steps leave an error near 1e-11. */
static weft_status slope(weft_program *program, const weft_oracle_build *build, int input,
                         double *data, int64_t i, double *found, weft_error *error)
{
    static const double at[4] = {-2.0, -1.0, 1.0, 2.0}, weight[4] = {1.0, -8.0, 8.0, -1.0};
    const double h = 1e-3;
    *found = 0.0;
    for (int p = 0; p < 4; p++) {
        double loss = 0.0;
        WEFT_TRY(loss_at(program, build, input, data, i, data[i] + at[p] * h, &loss, error));
        *found += weight[p] * loss / (12.0 * h);
    }
    return WEFT_OK;
}

/* One operand: every element's slope against the gradient that is output number `output`. */
static weft_status check_operand(weft_program *program, const weft_oracle_build *build, int input,
                                 int output, const char *name, weft_error *error)
{
    double *data = NULL, *gradient = NULL, largest = 1e-3, worst = 0.0;
    const int64_t count = weft_shape_count(weft_shape_of(build->inputs[input]));
    weft_status status = weft_oracle_read(program, build->inputs[input], &data, error);
    weft_set_runs(program, 0);
    if (status == WEFT_OK) status = weft_run(program, error);
    if (status == WEFT_OK)
        status = weft_oracle_read(program, build->outputs[output], &gradient, error);
    for (int64_t i = 0; i < count && status == WEFT_OK; i += weft_test_stride(5)) {
        double found = 0.0;
        status = slope(program, build, input, data, i, &found, error);
        largest = fmax(largest, fabs(gradient[i]));
        const double off = fabs(found - gradient[i]);
        if (!(off <= worst)) worst = off; /* keeps a NaN */
    }
    if (status == WEFT_OK) status = weft_oracle_write(program, build->inputs[input], data, error);
    char text[200];
    snprintf(text, sizeof text, "%s: operand %d: gradient off by %g of %g", name, input, worst,
             largest);
    weft_test_check(status == WEFT_OK && worst <= 1e-7 * largest, __FILE__, __LINE__,
                    status == WEFT_OK ? text : error->message);
    free(data);
    free(gradient);
    return status;
}

static weft_status check_slopes(const derivative *d, weft_error *error)
{
    weft_oracle_build build = {.graph = weft_graph_create(77), .argument = d};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    build_gradients(&build);
    const weft_values values = {build.outputs, build.n_outputs};
    weft_status status = weft_layout_create(NULL, &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(oracle.alone, layout, values, NULL, &program, error);
    if (status == WEFT_OK) status = weft_oracle_fill(&build, program, error);
    if (status == WEFT_OK) {
        weft_value operands[WEFT_ORACLE_VALUES];
        int which[WEFT_ORACLE_VALUES];
        const int n = float_operands(&build, build.n_inputs - 1 - build.n_others, operands,
                                     which); /* without the weights */
        CHECK_EQ_INT(n, build.n_outputs - 1);
        for (int k = 0; k < n && status == WEFT_OK; k++)
            status = check_operand(program, &build, which[k], k + 1, d->op->name, error);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&build.graph);
    return status;
}

typedef struct visit {
    int order;
    void (*visit)(const derivative *);
} visit;

static void visit_case(const op_group *group, const op_case *what, void *argument)
{
    const visit *v = argument;
    const derivative d = {what, v->order, WEFT_F64};
    (void)group;
    if (what->derivatives >= v->order) v->visit(&d);
}

static void each_case(int order, void (*function)(const derivative *))
{
    visit v = {order, function};
    op_cases_each(only, visit_case, &v);
}

static void visit_slopes(const derivative *d)
{
    weft_error error = {0};
    char text[600];
    const weft_status status = check_slopes(d, &error);
    snprintf(text, sizeof text, "%s, order %d: %s", d->op->name, d->order, error.message);
    weft_test_check(status == WEFT_OK || weft_oracle_refuses(&error), __FILE__, __LINE__, text);
}

static void visit_placements(const derivative *d)
{
    const int n_processes = oracle.world.n_processes;
    if (!weft_oracle_takes(&oracle)) return;
    int most = d->order == 2 ? 30 : 80;
    if (n_processes > 1) most = 6;
    if (n_processes > 2) most = 3;
    const weft_oracle_case what = {.name = d->op->name, .build = build_gradients, .argument = d};
    weft_oracle_sweep(&oracle, &what, most);
}

/* The gradient rules, and the ops that only they make, in f32: against the same in f64. */
static void visit_f32(const derivative *in_f64)
{
    const double bound = 2e-6;
    const derivative in_f32 = {in_f64->op, in_f64->order, WEFT_F32};
    const weft_oracle_case wide = {in_f64->op->name, build_gradients, in_f64};
    const weft_oracle_case narrow = {in_f64->op->name, build_gradients, &in_f32};
    weft_oracle_result a = {0}, b = {0};
    weft_error error = {0};
    char text[700];
    double worst = 0.0;
    const bool ran = weft_oracle_run(oracle.alone, &wide, NULL, &a, &error) == WEFT_OK &&
                     weft_oracle_run(oracle.alone, &narrow, NULL, &b, &error) == WEFT_OK;
    for (int k = 1; k < a.n_outputs && ran; k++) { /* the loss may cancel to anything */
        double largest = 1e-3;
        for (int64_t i = 0; i < a.count[k]; i++)
            largest = fmax(largest, fabs(a.data[k][i]));
        for (int64_t i = 0; i < a.count[k]; i++) {
            const double off = fabs(a.data[k][i] - b.data[k][i]) / largest;
            if (!(off <= worst)) worst = off; /* keeps a NaN */
        }
    }
    snprintf(text, sizeof text, "%s, order %d: in f32 %g of the largest off; %s", in_f64->op->name,
             in_f64->order, worst, error.message);
    weft_test_check(ran && worst <= bound, __FILE__, __LINE__, text);
    weft_oracle_free(&a);
    weft_oracle_free(&b);
}

static void test_gradients_in_f32_are_those_in_f64(void)
{
    each_case(1, visit_f32);
    each_case(2, visit_f32);
}

static void test_gradients_against_finite_differences(void)
{
    each_case(1, visit_slopes);
}

static void test_second_gradients_against_finite_differences(void)
{
    each_case(2, visit_slopes);
}

static void test_gradients_under_placements(void)
{
    each_case(1, visit_placements);
}

static void test_second_gradients_under_placements(void)
{
    each_case(2, visit_placements);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"data:2", "data:3", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        if (!op_cases_options(argc, argv, &oracle, &only)) return 2;
        if (oracle.world.n_processes == 1) {
            RUN(test_gradients_against_finite_differences);
            RUN(test_second_gradients_against_finite_differences);
            RUN(test_gradients_in_f32_are_those_in_f64);
        }
        RUN(test_gradients_under_placements);
        RUN(test_second_gradients_under_placements);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
