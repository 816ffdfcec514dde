/* RANKS: 2 4 */
/* jacobian_test: Jacobians and products with Hessians are what is derived by hand and by differences, under placements too;
 * gradients of each example are those of the example alone; wrong calls have their sentence and leave nothing.
 */
#include <math.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/scan.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 3}, in = {"in", 4}, out = {"out", 5}, row = {"row", 5},
                      example = {"example", 3};

static weft_value tanh_of(weft_value x, weft_value w)
{
    return weft_tanh(weft_einsum(WEFT_DIMS(batch, out), x, w));
}

/* ---- Jacobians -------------------------------------------------------------------------------------- */

/* y = tanh(x w); its derivatives by w and by x; the same by hand. */
static void build_jacobian(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, out), -1.0, 1.0);
    const weft_value y = tanh_of(x, w);
    weft_value j[2];
    weft_jacobian(y, WEFT_VALUES(w, x), WEFT_DIMS(example, row), j, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, j[0]);
    weft_oracle_output(b, j[1]);
}

/* d y[b, o] / d w[i, p] = (1 - y^2) x[b, i] where o is p; d y[b, o] / d x[c, i] = (1 - y^2) w[i, o] where b is c. */
static void test_a_jacobian_is_what_is_derived_by_hand(void)
{
    const weft_oracle_case what = {.name = "jacobian", .build = build_jacobian};
    weft_oracle_build b = {.graph = weft_graph_create(1)};
    weft_oracle_result r;
    weft_error error = {0};
    build_jacobian(&b);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int e = 0; e < 3; e++)
        for (int o = 0; o < 5; o++) {
            const double y = r.data[0][e * 5 + o], slope = 1 - y * y;
            for (int i = 0; i < 4; i++)
                for (int p = 0; p < 5; p++) {
                    const double expected =
                        o == p ? slope * weft_oracle_element(&b, 0, e * 4 + i) : 0;
                    CHECK(fabs(r.data[1][((e * 5 + o) * 4 + i) * 5 + p] - expected) < 1e-14);
                }
            for (int c = 0; c < 3; c++)
                for (int i = 0; i < 4; i++) {
                    const double expected =
                        e == c ? slope * weft_oracle_element(&b, 1, i * 5 + o) : 0;
                    CHECK(fabs(r.data[2][((e * 5 + o) * 3 + c) * 4 + i] - expected) < 1e-14);
                }
        }
    weft_oracle_free(&r);
    weft_graph_destroy(&b.graph);
}

static void test_jacobians_under_placements(void)
{
    weft_oracle_sweep(&oracle, &(weft_oracle_case){.name = "jacobian", .build = build_jacobian},
                      oracle.world.n_processes > 1 ? 6 : 40);
}

/* A scalar's is its gradient. */
static void build_scalar(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_exp(x));
    weft_value d, j;
    weft_gradients(loss, WEFT_VALUES(x), &d, 0);
    weft_oracle_output(b, weft_jacobian(loss, WEFT_VALUES(x), WEFT_SCALAR, &j, 0));
    weft_oracle_output(b, d);
}

static void test_a_scalar_has_its_gradient(void)
{
    const weft_oracle_case what = {.name = "scalar", .build = build_scalar};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    CHECK_EQ_INT(r.count[0], 12);
    for (int64_t i = 0; i < r.count[0]; i++)
        CHECK(r.data[0][i] == r.data[1][i]);
    weft_oracle_free(&r);
}

/* ---- Hessians ---------------------------------------------------------------------------------------- */

/* A loss of two values; products of its second derivatives with two vectors; the same by the Jacobians of its gradients. */
static void build_hessian(weft_oracle_build *b)
{
    const weft_dim column = {"column", 4};
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in), -1.0, 1.0);
    const weft_value vx = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value vw = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in), -1.0, 1.0);
    const weft_value y = weft_mul(weft_exp(x), w);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_mul(y, weft_tanh(y)));
    weft_value products[2], d[2], hx[2], hw[2];
    weft_hessian_vector(loss, WEFT_VALUES(x, w), WEFT_VALUES(vx, vw), products, 0);
    weft_gradients(loss, WEFT_VALUES(x, w), d, 0);
    weft_jacobian(d[0], WEFT_VALUES(x, w), WEFT_DIMS(example, column), hx, 0);
    weft_jacobian(d[1], WEFT_VALUES(x, w), WEFT_DIMS(column), hw, 0);
    weft_oracle_output(b, products[0]);
    weft_oracle_output(b, products[1]);
    weft_oracle_output(b, weft_add(weft_einsum(WEFT_DIMS(example, column), hx[0], vx),
                                   weft_einsum(WEFT_DIMS(example, column), hx[1], vw)));
    weft_oracle_output(b, weft_add(weft_einsum(WEFT_DIMS(column), hw[0], vx),
                                   weft_einsum(WEFT_DIMS(column), hw[1], vw)));
}

static void test_products_with_a_hessian_are_those_of_all_second_derivatives(void)
{
    const weft_oracle_case what = {.name = "hessian", .build = build_hessian};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < r.count[k]; i++)
            CHECK(fabs(r.data[k][i] - r.data[k + 2][i]) < 1e-13);
    CHECK(fabs(r.data[0][0]) > 1e-3);
    weft_oracle_free(&r);
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 4 : 20);
}

/* Nothing is curved: zeros, and no error. */
static void build_plane(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in), -1.0, 1.0);
    weft_value product;
    weft_oracle_output(b, weft_hessian_vector(weft_sum(WEFT_SCALAR, x), WEFT_VALUES(x),
                                              WEFT_VALUES(x), &product, 0));
}

static void test_a_plane_has_no_second_derivative(void)
{
    const weft_oracle_case what = {.name = "plane", .build = build_plane};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int64_t i = 0; i < r.count[0]; i++)
        CHECK(r.data[0][i] == 0);
    weft_oracle_free(&r);
}

/* ---- each example ------------------------------------------------------------------------------------- */

/* By a weight of its own for each; and of each example's loss alone. */
static void build_examples(weft_oracle_build *b)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    const weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, out), -1.0, 1.0);
    const weft_value each = weft_broadcast_to(w, WEFT_DIMS(batch, in, out));
    weft_value of_each, d;
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(tanh_of(x, each))), WEFT_VALUES(each),
                   &of_each, 0);
    weft_oracle_output(b, of_each);
    const weft_value losses = weft_sum(WEFT_DIMS(batch), weft_square(tanh_of(x, w)));
    for (int i = 0; i < 3; i++) {
        const weft_value is_it = weft_equal(weft_iota(b->graph, WEFT_I32, batch),
                                            weft_constant(b->graph, WEFT_I32, WEFT_SCALAR, i));
        weft_gradients_seeded(WEFT_VALUES(losses), WEFT_VALUES(weft_cast(is_it, WEFT_F64)),
                              WEFT_VALUES(w), &d, 0);
        weft_oracle_output(b, d);
    }
}

static void test_each_example_has_its_gradient(void)
{
    const weft_oracle_case what = {.name = "examples", .build = build_examples};
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < 20; i++)
            CHECK(fabs(r.data[0][e * 20 + i] - r.data[1 + e][i]) < 1e-14);
    weft_oracle_free(&r);
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 4 : 20);
}

/* ---- wrong calls --------------------------------------------------------------------------------------- */

static void check_refused(weft_graph *g, const char *part)
{
    const weft_error *error = weft_graph_error(g);
    CHECK(error->status == WEFT_USAGE);
    if (!CHECK(strstr(error->message, part) != NULL)) printf("  %s\n", error->message);
    weft_graph_clear_error(g);
}

static void test_wrong_calls_have_their_sentence(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in));
    const weft_value other = weft_input(g, "other", WEFT_F64, WEFT_DIMS(in));
    const weft_value y = weft_exp(x);
    weft_value j;
    weft_jacobian(y, WEFT_VALUES(x), WEFT_DIMS(example), &j, 0);
    check_refused(g, "rows is [example:3] and the value is [batch:3, in:4]; pass its");
    weft_jacobian(y, WEFT_VALUES(x), WEFT_DIMS(example, row), &j, 0);
    check_refused(g, "rows is [example:3, row:5]");
    weft_jacobian(y, WEFT_VALUES(x), WEFT_DIMS(batch, in), &j, 0);
    check_refused(g, "Pass another name");
    weft_jacobian(y, WEFT_VALUES(x), WEFT_DIMS(example, row), NULL, 0);
    check_refused(g, "the results are NULL");
    weft_jacobian(y, (weft_values){0}, WEFT_DIMS(example, row), &j, 0);
    check_refused(g, "with_respect_to is empty");
    weft_jacobian(y, WEFT_VALUES(other), WEFT_DIMS(example, ((weft_dim){"row", 4})), &j, 0);
    check_refused(g, "other");
    const weft_value trip = weft_scan_begin(g, 12), h = weft_scan_carry(other);
    weft_scan_next(h, weft_sin(h));
    weft_scan_end(trip);
    weft_jacobian(weft_scan_last(h), WEFT_VALUES(other), WEFT_DIMS(((weft_dim){"row", 4})), &j, 0);
    check_refused(g, "the value is made through the scan of scan_begin at jacobian_test.c:");
    const weft_dim time = {"time", 5}, letter = {"letter", 3}, label = {"label", 2};
    const weft_value logits = weft_input(g, "logits", WEFT_F64, WEFT_DIMS(row, time, letter));
    const weft_value labels = weft_input(g, "labels", WEFT_I32, WEFT_DIMS(row, label));
    const weft_ctc_options ctc = {.time = time, .classes = letter, .label = label};
    const weft_value losses = weft_ctc_loss(logits, labels, &ctc);
    weft_jacobian(losses, WEFT_VALUES(logits), WEFT_DIMS(((weft_dim){"each", row.size})), &j, 0);
    check_refused(g, "the value is made through the scan of ctc_loss at jacobian_test.c:");
    weft_hessian_vector(weft_sum(WEFT_SCALAR, y), WEFT_VALUES(x), (weft_values){0}, &j, 0);
    check_refused(g, "there are 0 vectors for 1 values");
    CHECK(j.id == 0);
    weft_jacobian(y, WEFT_VALUES(x), WEFT_DIMS(example, ((weft_dim){"row", 4})), &j, 0);
    CHECK_EQ_INT(weft_shape_of(j)->n_dims, 4); /* nothing of what failed was left */
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:4", "model:2", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_a_jacobian_is_what_is_derived_by_hand);
        RUN(test_jacobians_under_placements);
        RUN(test_a_scalar_has_its_gradient);
        RUN(test_products_with_a_hessian_are_those_of_all_second_derivatives);
        RUN(test_a_plane_has_no_second_derivative);
        RUN(test_each_example_has_its_gradient);
        RUN(test_wrong_calls_have_their_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
