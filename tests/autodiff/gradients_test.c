/* gradients_test: the graph of gradients: which nodes, which types, and what is refused. */
#include "ops/graph/ir.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/ops.h"

static const weft_dim batch = {"batch", 8}, in = {"in", 5}, out = {"out", 3};

static bool like(weft_value gradient, weft_value value)
{
    return gradient.id != 0 &&
           weft_shape_same_order(weft_shape_of(gradient), weft_shape_of(value)) &&
           weft_dtype_of(gradient) == weft_dtype_of(value);
}

static void test_a_gradient_has_its_values_dims_in_order(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in));
    weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(out, in), weft_normal(0.0, 1.0));
    weft_value b = weft_variable(g, "b", WEFT_F64, WEFT_DIMS(out), weft_constant_of(0.0));
    weft_value y = weft_tanh(weft_add(weft_einsum(WEFT_DIMS(batch, out), x, w), b));
    weft_value loss = weft_mean(weft_square(weft_layer_norm(y, b, b, out)));
    weft_value d[4];
    weft_gradients(loss, WEFT_VALUES(w, b, x, y), d, 0);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    CHECK(like(d[0], w) && like(d[1], b) && like(d[2], x) && like(d[3], y));
    CHECK_EQ_INT(weft_node_of(g, d[0].id)->phase, WEFT_BACKWARD);
    CHECK_EQ_INT(g->phase, WEFT_FORWARD);
    CHECK_EQ_INT(weft_node_of(g, d[0].id)->origin.line, weft_node_of(g, y.id)->origin.line);
    weft_graph_destroy(&g);
}

static void test_nodes_off_the_way_are_not_visited(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in));
    weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
    weft_value loss = weft_sum(WEFT_SCALAR, weft_mul(weft_exp(x), w));
    const uint32_t before = g->n_nodes;
    weft_value d[1];
    weft_gradients(loss, WEFT_VALUES(w), d, 0);
    for (uint32_t id = before; id < g->n_nodes;
         id++) /* d exp needs a product of exp(x), which is %3 */
        CHECK(g->nodes[id].op != &weft_op_exp);
    CHECK(weft_node_of(g, d[0].id)->op == &weft_op_einsum);
    weft_graph_destroy(&g);
}

static void test_no_dependence_names_both(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch));
    weft_value lonely = weft_variable(g, "lonely", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
    weft_value loss = weft_name(weft_mean(x), "loss"), d[1];
    weft_gradients(loss, WEFT_VALUES(lonely), d, WEFT_ZEROS_ALLOWED);
    CHECK(like(d[0], lonely));
    CHECK(weft_node_of(g, d[0].id)->op == &weft_op_constant);
    weft_gradients(loss, WEFT_VALUES(lonely), d, 0);
    CHECK_EQ_INT(d[0].id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "loss does not depend");
    CHECK_TEXT(weft_graph_error(g)->message, "on lonely");
    weft_graph_destroy(&g);
}

static void test_integers_and_stop_gradient_carry_none(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(1.0));
    weft_value stopped = weft_mean(weft_stop_gradient(weft_square(x)));
    weft_value truncated = weft_mean(weft_cast(weft_cast(x, WEFT_I32), WEFT_F64)), variables[2];
    CHECK_EQ_INT(weft_trainable(stopped, variables, 2), 0);
    CHECK_EQ_INT(weft_trainable(truncated, variables, 2), 0);
    CHECK_EQ_INT(weft_trainable(weft_mean(x), variables, 2), 1);
    CHECK_EQ_INT(variables[0].id, x.id);
    weft_value d[1];
    weft_gradients(weft_cast(x, WEFT_I32), WEFT_VALUES(x), d, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "is i32");
    weft_graph_destroy(&g);
}

static void test_a_value_used_twice_adds_up(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(batch), weft_constant_of(1.0)), d[2];
    weft_gradients(weft_sum(WEFT_SCALAR, weft_mul(x, x)), WEFT_VALUES(x, x), d, 0);
    CHECK(weft_node_of(g, d[0].id)->op == &weft_op_add);
    CHECK_EQ_INT(d[0].id, d[1].id);
    weft_graph_destroy(&g);
}

/* Through gelu_slope and attention_grad, which have an expansion and no gradient of their own. */
/* Operand i of the op that made `value`. */
static weft_value before(weft_value value, int i)
{
    return (weft_value){value.graph, weft_node_of(value.graph, value.id)->in[i]};
}

static const weft_op *maker_of(weft_value value)
{
    return weft_node_of(value.graph, value.id)->op;
}

/* Three products of 16 bits read x: their gradients are added in f32, and the sum is rounded, once. */
static void test_gradients_of_16_bits_are_added_before_they_are_rounded(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_BF16, WEFT_DIMS(batch, in)), y[3], d[1];
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        weft_value w = weft_variable(g, name, WEFT_BF16, WEFT_DIMS(in, out), weft_normal(0.0, 1.0));
        y[i] = weft_einsum(WEFT_DIMS(batch, out), x, w);
    }
    weft_gradients(weft_mean(weft_mul(y[0], weft_mul(y[1], y[2]))), WEFT_VALUES(x), d, 0);
    CHECK(like(d[0], x));
    CHECK(maker_of(d[0]) == &weft_op_cast);
    weft_value sum = before(d[0], 0);
    for (int left = 2; left > 0; left--) {
        CHECK(maker_of(sum) == &weft_op_add && weft_dtype_of(sum) == WEFT_F32);
        CHECK(maker_of(before(sum, 1)) == &weft_op_einsum);
        sum = before(sum, 0);
    }
    CHECK(maker_of(sum) == &weft_op_einsum);
    weft_graph_destroy(&g);
}

/* What a value's reader hands on is another's gradient, and that has been rounded. */
static void test_a_gradient_handed_on_is_added_as_it_was_rounded(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_BF16, WEFT_DIMS(batch, in));
    weft_value w = weft_variable(g, "w", WEFT_BF16, WEFT_DIMS(in), weft_constant_of(1.0)), d[2];
    weft_value y = weft_add(x, weft_tanh(weft_mul(x, w)));
    weft_gradients(weft_mean(weft_softmax(y, in)), WEFT_VALUES(x, y), d, 0);
    CHECK(maker_of(d[0]) == &weft_op_cast && maker_of(before(d[0], 0)) == &weft_op_add);
    weft_value handed_on = before(before(d[0], 0), 0);
    CHECK(maker_of(handed_on) == &weft_op_cast && before(handed_on, 0).id == d[1].id);
    weft_graph_destroy(&g);
}

static void test_gradients_of_gradients(void)
{
    const weft_dim seq = {"seq", 4};
    weft_graph *g = weft_graph_create(1);
    weft_value w =
        weft_variable(g, "w", WEFT_F64, WEFT_DIMS(batch, seq, in), weft_normal(0.0, 1.0));
    weft_value q = weft_gelu(w), k = weft_scale(w, 0.5), d[1], dd[1], ddd[1];
    weft_value y = weft_attention(q, k, q, seq, seq, in, true);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), WEFT_VALUES(w), d, 0);
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(d[0])), WEFT_VALUES(w), dd, 0);
    weft_gradients(weft_sum(WEFT_SCALAR, dd[0]), WEFT_VALUES(w), ddd, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "");
    CHECK(like(d[0], w) && like(dd[0], w) && like(ddd[0], w));
    weft_graph_destroy(&g);
}

static void test_every_differentiable_shape_op(void)
{
    const weft_dim part = {"part", 2}, both = {"both", 10}, flat = {"flat", 40},
                   other = {"other", 5};
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(batch, in), weft_normal(0.0, 1.0));
    weft_value ids = weft_input(g, "ids", WEFT_I32, WEFT_DIMS(in));
    const weft_value results[] = {
        weft_slice(x, in, 1, part),
        weft_concat(x, weft_transpose(x, WEFT_DIMS(in, batch)), in, in, both),
        weft_reshape(x, WEFT_DIMS(flat)),
        weft_rename(x, in, other),
        weft_gather(x, ids, in), /* a permutation: ids have the very dim they index */
        weft_pick(x, weft_input(g, "one", WEFT_I32, WEFT_DIMS(batch)), in),
        weft_max(WEFT_DIMS(batch), x),
        weft_broadcast_to(x, WEFT_DIMS(out, in, batch)),
        weft_minimum(x, weft_sum(WEFT_DIMS(in), x)),
        weft_where(weft_greater(ids, ids), x, weft_div(x, x)),
        weft_dropout(x, 0.5),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        weft_value d[1], dd[1];
        weft_gradients(results[i], WEFT_VALUES(x), d, 0);
        weft_gradients(weft_mul(d[0], x), WEFT_VALUES(x), dd, 0);
        CHECK(like(d[0], x) && like(dd[0], x));
    }
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    if (weft_graph_error(g)->status) printf("%s\n", weft_graph_error(g)->message);
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_a_gradient_has_its_values_dims_in_order);
    RUN(test_nodes_off_the_way_are_not_visited);
    RUN(test_no_dependence_names_both);
    RUN(test_integers_and_stop_gradient_carry_none);
    RUN(test_a_value_used_twice_adds_up);
    RUN(test_gradients_of_16_bits_are_added_before_they_are_rounded);
    RUN(test_a_gradient_handed_on_is_added_as_it_was_rounded);
    RUN(test_gradients_of_gradients);
    RUN(test_every_differentiable_shape_op);
    return weft_test_report();
}
