/* RANKS: 2 4 */
/* custom_gradient_test: gradients that a user builds himself: the forward pass stays what it is, the rule is asked
 * where gradients pass, and its values are ordinary ones: under placements, with gradients of their own.
 */
#include "ops/run/program.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 6}, in = {"in", 5}, hidden = {"hidden", 4};

/* y = tanh(x): dx = dy (1 - y^2), what autodiff says too. argument counts the calls. */
static void tanh_rule(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    if (argument != NULL) ++*(int *)argument;
    (void)x;
    dx[0] = weft_mul(dy, weft_shift(weft_neg(weft_square(y)), 1.0));
}

/* y = x w: both gradients, the first with its dims in another order. */
static void product_rule(void *argument, weft_values xw, weft_value y, weft_value dy, weft_value *d)
{
    (void)argument, (void)y;
    d[0] = weft_einsum(WEFT_DIMS(in, batch), dy, xw.values[1]);
    d[1] = weft_einsum(WEFT_DIMS(in, hidden), xw.values[0], dy);
}

/* The identity, whose gradient is clipped to +-limit, element by element. */
static void clip_rule(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    const double limit = *(const double *)argument;
    weft_value low = weft_constant(dy.graph, WEFT_F64, WEFT_SCALAR, -limit);
    weft_value high = weft_constant(dy.graph, WEFT_F64, WEFT_SCALAR, limit);
    (void)x, (void)y;
    dx[0] = weft_minimum(weft_maximum(dy, low), high);
}

/* A step, through which the gradient goes straight. */
static void straight_rule(void *argument, weft_values x, weft_value y, weft_value dy,
                          weft_value *dx)
{
    (void)argument, (void)x, (void)y;
    dx[0] = dy;
}

static void no_rule(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument, (void)x, (void)y, (void)dy, (void)dx;
}

static weft_value custom_tanh(weft_value x, int *n_calls)
{
    return weft_custom_gradient(WEFT_VALUES(x), weft_tanh(x), tanh_rule, n_calls);
}

/* First and second derivatives of a layer, with rules (argument not NULL) or without. */
static void build_layer(weft_oracle_build *b)
{
    const bool has_rules = b->argument != NULL;
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0), d[2], dd[2];
    weft_value h = weft_einsum(WEFT_DIMS(batch, hidden), x, w);
    if (has_rules) h = weft_custom_gradient(WEFT_VALUES(x, w), h, product_rule, NULL);
    weft_value y = has_rules ? custom_tanh(h, NULL) : weft_tanh(h);
    weft_gradients(weft_logsumexp(y, hidden), WEFT_VALUES(x, w), d, 0);
    weft_value again = weft_add(weft_sum(WEFT_SCALAR, weft_square(d[0])),
                                weft_sum(WEFT_SCALAR, weft_square(d[1])));
    weft_gradients(again, WEFT_VALUES(x, w), dd, 0);
    weft_oracle_output(b, y);
    for (int i = 0; i < 2; i++) {
        weft_oracle_output(b, d[i]);
        weft_oracle_output(b, dd[i]);
    }
}

static void test_rules_that_say_what_autodiff_says(void)
{
    weft_oracle_case what = {.name = "layer", .build = build_layer, .argument = "rules"};
    weft_oracle_result with, without;
    weft_error error = {0};
    char text[600] = "";
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 6 : 60);
    CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &with, &error), error);
    what.argument = NULL;
    CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &without, &error), error);
    weft_test_check(weft_oracle_same(&with, &without, false, text, sizeof text), __FILE__, __LINE__,
                    text);
    weft_oracle_free(&with);
    weft_oracle_free(&without);
}

/* Rules that autodiff would not have found: clipped, straight through, and none. */
static void build_others(weft_oracle_build *b)
{
    static double limit = 0.25;
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value s = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0), d[1];
    weft_value clipped = weft_custom_gradient(WEFT_VALUES(x), x, clip_rule, &limit);
    weft_oracle_output(
        b, weft_gradients_seeded(WEFT_VALUES(clipped), WEFT_VALUES(s), WEFT_VALUES(x), d, 0));
    weft_value zero = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    weft_value step = weft_cast(weft_greater(x, zero), WEFT_F64);
    weft_value through = weft_custom_gradient(WEFT_VALUES(x), step, straight_rule, NULL);
    weft_oracle_output(b, through);
    weft_oracle_output(
        b, weft_gradients_seeded(WEFT_VALUES(through), WEFT_VALUES(s), WEFT_VALUES(x), d, 0));
    weft_value none = weft_custom_gradient(WEFT_VALUES(x), weft_exp(x), no_rule, NULL);
    weft_oracle_output(b, weft_gradients(none, WEFT_VALUES(x), d, WEFT_ZEROS_ALLOWED));
    weft_oracle_output(b, s);
    weft_oracle_output(b, x);
}

static void test_rules_of_ones_own(void)
{
    const weft_oracle_case what = {.name = "others", .build = build_others};
    weft_oracle_result r;
    weft_error error = {0};
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 6 : 60);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    int n_clipped = 0;
    for (int64_t i = 0; i < r.count[0]; i++) {
        const double s = r.data[4][i], x = r.data[5][i];
        CHECK_CLOSE(r.data[0][i], fmin(fmax(s, -0.25), 0.25), 0);
        CHECK_CLOSE(r.data[1][i], x > 0 ? 1.0 : 0.0, 0);
        CHECK_CLOSE(r.data[2][i], s, 0);
        CHECK_CLOSE(r.data[3][i], 0.0, 0);
        n_clipped += fabs(s) > 0.25;
    }
    CHECK(n_clipped > 10);
    weft_oracle_free(&r);
}

/* y = x, and by its rule dx = 3 y dy: so the gradient of 3 y, again by the rule, is 9 y. (Through
 * what y was made from it would be 3.) */
static void triple_rule(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument, (void)x;
    dx[0] = weft_scale(weft_mul(y, dy), 3.0);
}

static void build_twice(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0), d[1], dd[1];
    weft_value y = weft_custom_gradient(WEFT_VALUES(x), x, triple_rule, NULL);
    weft_gradients(y, WEFT_VALUES(x), d, 0);
    weft_gradients(d[0], WEFT_VALUES(x), dd, 0);
    weft_oracle_output(b, d[0]);
    weft_oracle_output(b, dd[0]);
    weft_oracle_output(b, x);
}

static void test_a_rules_own_gradient_asks_it_again(void)
{
    const weft_oracle_case what = {.name = "twice", .build = build_twice};
    weft_oracle_result r;
    weft_error error = {0};
    weft_oracle_sweep(&oracle, &what, oracle.world.n_processes > 1 ? 6 : 40);
    if (!CHECK_OK(weft_oracle_run(oracle.alone, &what, NULL, &r, &error), error)) return;
    for (int64_t i = 0; i < r.count[0]; i++) {
        CHECK_CLOSE(r.data[0][i], 3.0 * r.data[2][i], 1e-15);
        CHECK_CLOSE(r.data[1][i], 9.0 * r.data[2][i], 1e-15);
    }
    weft_oracle_free(&r);
}

/* The rule is asked once a call, and only where gradients pass; the program knows nothing of it. */
static void test_the_rule_is_asked_where_gradients_pass(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(in), weft_constant_of(0.5));
    weft_value other = weft_variable(g, "other", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0)),
               d[1];
    int n_calls = 0;
    weft_value y = custom_tanh(x, &n_calls);
    weft_value loss = weft_sum(WEFT_SCALAR, weft_add(weft_mul(y, other), y));
    CHECK_EQ_INT(n_calls, 0);
    weft_gradients(loss, WEFT_VALUES(other), d, 0);
    CHECK_EQ_INT(n_calls, 0);
    weft_gradients(loss, WEFT_VALUES(x), d, 0);
    CHECK_EQ_INT(n_calls, 1);
    CHECK_EQ_INT(weft_trainable(loss, NULL, 0), 2);
    CHECK_OK(weft_mesh_plan("data:2", &mesh, &error), error);
    if (CHECK_OK(weft_compile(mesh, NULL, WEFT_VALUES(y, loss, d[0]), NULL, &program, &error),
                 error))
        for (uint32_t id = 1; id < program->plan->graph->n_nodes; id++)
            CHECK(strcmp(program->plan->graph->nodes[id].op->name, "custom_gradient") != 0);
    weft_program_destroy(&program);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
}

/* ---- sentences ------------------------------------------------------------------------------- */

static void wrong_dims(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument, (void)x, (void)y;
    dx[0] = weft_sum(WEFT_SCALAR, dy);
}

static void wrong_dtype(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)argument, (void)x, (void)y;
    dx[0] = weft_cast(dy, WEFT_F32);
}

static void wrong_graph(void *argument, weft_values x, weft_value y, weft_value dy, weft_value *dx)
{
    (void)x, (void)y, (void)dy;
    dx[0] = weft_constant(argument, WEFT_F64, WEFT_SCALAR, 1.0);
}

static void wrong_builder(void *argument, weft_values x, weft_value y, weft_value dy,
                          weft_value *dx)
{
    (void)argument, (void)x, (void)y;
    dx[0] = weft_dropout(dy, 7.0);
}

static void test_a_rule_that_is_wrong_has_its_sentence(void)
{
    static const struct {
        weft_gradient_rule rule;
        const char *says;
    } wrongs[] = {
        {wrong_dims, "the rule gave x, which is f64[in:5], a gradient that is f64[]; both must"},
        {wrong_dtype, "the rule gave x, which is f64[in:5], a gradient that is f32[in:5]"},
        {wrong_graph, "the gradient of x is not a value of this graph"},
        {wrong_builder, "dropout at custom_gradient_test.c:"},
    };
    for (int i = 0; i < 4; i++) {
        weft_graph *g = weft_graph_create(1), *other = weft_graph_create(2);
        weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(in), weft_constant_of(0.5)), d[1];
        weft_value y = weft_custom_gradient(WEFT_VALUES(x), weft_exp(x), wrongs[i].rule, other);
        const uint32_t n_nodes = g->n_nodes;
        CHECK_EQ_INT(weft_gradients(y, WEFT_VALUES(x), d, 0).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        CHECK_EQ_INT(g->n_nodes, n_nodes);
        weft_graph_clear_error(g);
        CHECK_EQ_INT(g->n_nodes, n_nodes);
        CHECK(weft_gradients(weft_exp(x), WEFT_VALUES(x), d, 0).id != 0);
        weft_graph_destroy(&g);
        weft_graph_destroy(&other);
    }
}

static void test_wrong_arguments_have_their_sentence(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(in), weft_constant_of(0.5));
    weft_value ids = weft_cast(x, WEFT_I32), many[9] = {x, x, x, x, x, x, x, x, x};
    const struct {
        weft_values in;
        weft_value out;
        weft_gradient_rule rule;
        const char *says;
    } wrongs[] = {
        {WEFT_VALUES(x), x, NULL, "rule is NULL"},
        {{NULL, 0}, x, no_rule, "in has 0 values; it has from 1 to 7"},
        {{many, 9}, x, no_rule, "in has 9 values"},
        {{NULL, 3}, x, no_rule, "its pointer is NULL"},
        {WEFT_VALUES(x), ids, no_rule, "out is i32"},
        {WEFT_VALUES(x), {g, 0}, no_rule, "value 0 of out is not a value"},
        {WEFT_VALUES(weft_assign(x, x)), x, no_rule, "custom_gradient at custom_gradient_test.c:"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        CHECK_EQ_INT(weft_custom_gradient(wrongs[i].in, wrongs[i].out, wrongs[i].rule, NULL).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        CHECK_TEXT(weft_graph_error(g)->message, "custom_gradient at custom_gradient_test.c:");
        weft_graph_clear_error(g);
    }
    CHECK_EQ_INT(weft_custom_gradient((weft_values){0}, (weft_value){0}, no_rule, NULL).id, 0);
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_rules_that_say_what_autodiff_says);
        RUN(test_rules_of_ones_own);
        RUN(test_a_rules_own_gradient_asks_it_again);
        RUN(test_the_rule_is_asked_where_gradients_pass);
        RUN(test_a_rule_that_is_wrong_has_its_sentence);
        RUN(test_wrong_arguments_have_their_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
