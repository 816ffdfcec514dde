/* check_test: the oracle for ops from outside finds what is wrong: a value, a gradient, a claim about partial sums, a
 * direction that must not be cut; and passes what is right. */
#include "weft/extend/check.h"
#include "weft/extend/element.h"
#include "weft/ops.h"

#include "test.h"

/* ---- softsign, right and with a wrong gradient, claim, or direction -------------------------- */

WEFT_ELEMENT_1(x / (1 + (x < 0 ? -x : x)))

static void right_gradient(weft_vjp *vjp) /* (1 - |y|)^2 */
{
    weft_value y = vjp->out[0], size = weft_maximum(y, weft_neg(y));
    vjp->din[0] = weft_mul(vjp->dout[0], weft_square(weft_shift(weft_neg(size), 1.0)));
}
static void wrong_gradient(weft_vjp *vjp)
{
    vjp->din[0] = vjp->dout[0];
}
static const weft_op softsign = {.size = sizeof(weft_op),
                                 .name = "softsign",
                                 .infer = weft_infer_same,
                                 .factors = weft_factors_pass,
                                 .gradient = right_gradient,
                                 .element = &element},
                     steep = {.size = sizeof(weft_op),
                              .name = "steep",
                              .infer = weft_infer_same,
                              .factors = weft_factors_pass,
                              .gradient = wrong_gradient,
                              .element = &element},
                     boastful = {.size = sizeof(weft_op),
                                 .name = "boastful",
                                 .infer = weft_infer_same,
                                 .factors = weft_factors_pass,
                                 .linear = 1, /* which it is not */
                                 .element = &element};

static weft_value build(weft_graph *graph, const weft_value *in, void *argument)
{
    (void)graph;
    return weft_emit_element(argument, in, 1, 0, 0);
}
static void reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = in[0].data[i] / (1 + fabs(in[0].data[i]));
}
static void wrong_reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    reference(in, out, argument);
    out->data[out->count - 1] += 1e-4;
}

static const weft_dim dims[] = {{"row", 5}, {"column", 3}};

static weft_check check_of(const weft_op *op, bool has_gradient)
{
    return (weft_check){.size = sizeof(weft_check),
                        .name = op->name,
                        .build = build,
                        .reference = reference,
                        .argument = (void *)(uintptr_t)op,
                        .n_in = 1,
                        .in = {{.dims = dims, .n_dims = 2}},
                        .has_gradient = has_gradient};
}

static void test_what_is_right_passes(void)
{
    weft_error error = {0};
    int64_t n_runs = 0;
    const weft_check check = check_of(&softsign, true);
    CHECK_OK(weft_check_op(&check, &n_runs, &error), error);
    CHECK(n_runs > 200);
}

static void check_found(const weft_check *check, const char *sentence)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_check_op(check, NULL, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, sentence);
}

static void test_what_is_wrong_is_found(void)
{
    weft_check check = check_of(&softsign, false);
    check.reference = wrong_reference;
    check_found(&check, "softsign in f32: element 14 of 15");
    check = check_of(&steep, true);
    check_found(&check, "steep: the gradient of operand 0");
    check = check_of(&boastful, false);
    check_found(&check, "boastful on data:2, operands placed \"");
}

/* ---- a running sum along a dim that it says may be cut --------------------------------------- */

static void cut_all(const weft_site *site, weft_factors *factors)
{
    weft_factors_pass(site, factors);
}
static void cut_rows(const weft_site *site, weft_factors *factors)
{
    weft_factors_pass(site, factors);
    weft_factors_whole(site, "column", factors);
}
static const weft_op careless = {.size = sizeof(weft_op),
                                 .name = "careless",
                                 .infer = weft_infer_same,
                                 .factors = cut_all,
                                 .linear = 1},
                     careful = {.size = sizeof(weft_op),
                                .name = "careful",
                                .infer = weft_infer_same,
                                .factors = cut_rows,
                                .linear = 1};

static void launch(const weft_call *call) /* of f64 [row, column] */
{
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    const int64_t columns = weft_view_size(&call->in[0], 1);
    for (int64_t i = 0; i < weft_view_count(&call->in[0]); i++)
        y[i] = x[i] + (i % columns ? y[i - 1] : 0);
}
static const weft_kernel kernel = {.size = sizeof(weft_kernel),
                                   .name = "plain",
                                   .dtypes = WEFT_DTYPE_BIT(WEFT_F64),
                                   .launch = launch};

static weft_value build_sum(weft_graph *graph, const weft_value *in, void *argument)
{
    return weft_emit(graph, argument, in, 1, NULL, 0);
}
static void sum_reference(const weft_check_tensor *in, weft_check_tensor *out, void *argument)
{
    (void)argument;
    const int64_t columns = in[0].shape->dims[1].size;
    for (int64_t i = 0; i < out->count; i++)
        for (int64_t k = i - i % columns; k <= i; k++)
            out->data[i] += in[0].data[k];
}

static void test_a_direction_that_must_not_be_cut_is_found(void)
{
    weft_error error = {0};
    weft_check check = check_of(&careful, false);
    check.build = build_sum, check.reference = sum_reference;
    check.dtypes = WEFT_DTYPE_BIT(WEFT_F64);
    CHECK_OK(weft_check_op(&check, NULL, &error), error);
    check.argument = (void *)(uintptr_t)&careless;
    check.name = "careless";
    check_found(&check, "careless on data:2, operands placed \"");
}

static void test_what_says_too_little_is_refused(void)
{
    weft_error error = {0};
    weft_check check = check_of(&softsign, false);
    CHECK_EQ_INT(weft_check_op(NULL, NULL, &error), WEFT_USAGE);
    weft_error_clear(&error);
    check.n_in = 9;
    CHECK_EQ_INT(weft_check_op(&check, NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "softsign has 9 operands");
    weft_error_clear(&error);
    check = check_of(&softsign, false), check.dtypes = WEFT_DTYPE_BIT(WEFT_I32);
    CHECK_EQ_INT(weft_check_op(&check, NULL, &error), WEFT_USAGE);
    weft_error_clear(&error);
    check = check_of(&softsign, false), check.reference = NULL;
    CHECK_EQ_INT(weft_check_op(&check, NULL, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "reference is NULL");
}

int main(void)
{
    static const weft_op *const ops[] = {&softsign, &steep, &boastful, &careless, &careful};
    weft_error error = {0};
    for (int i = 0; i < 5; i++)
        CHECK_OK(weft_extend_op(ops[i], &error), error);
    CHECK_OK(weft_extend_kernel("careful", &kernel, &error), error);
    CHECK_OK(weft_extend_kernel("careless", &kernel, &error), error);
    RUN(test_what_is_right_passes);
    RUN(test_what_is_wrong_is_found);
    RUN(test_a_direction_that_must_not_be_cut_is_found);
    RUN(test_what_says_too_little_is_refused);
    return weft_test_report();
}
