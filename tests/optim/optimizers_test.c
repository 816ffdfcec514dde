/* optimizers_test: what an optimizer builds: slots, updates, their places, and its sentences. */
#include "ops/graph/ir.h"
#include "test.h"
#include "weft/ops.h"
#include "weft/optim.h"

static const weft_dim batch = {"batch", 8}, in = {"in", 5}, out = {"out", 3};

static weft_value build_loss(weft_graph *g)
{
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, in));
    weft_value w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0.0, 1.0));
    weft_value b = weft_variable(g, "b", WEFT_F32, WEFT_DIMS(out), weft_constant_of(0.0));
    return weft_mean(weft_square(weft_add(weft_einsum(WEFT_DIMS(batch, out), x, w), b)));
}

static int count(const weft_graph *g, const weft_op *op)
{
    int n = 0;
    for (uint32_t id = 1; id < g->n_nodes; id++)
        n += g->nodes[id].op == op;
    return n;
}

static void test_each_rule_has_its_slots(void)
{
    /* of a matrix and a bias; adafactor: rows and columns, and the bias whole; muon: AdamW's of the bias;
     * shampoo: AdamW's of both, and of each side of the matrix a mean and a root */
    static const struct {
        const char *name;
        int n_slots;
    } rules[] = {{"sgd", 0},     {"momentum", 2}, {"nesterov", 2}, {"adagrad", 2}, {"adadelta", 4},
                 {"rmsprop", 2}, {"adam", 4},     {"adamw", 4},    {"adamax", 4},  {"adafactor", 3},
                 {"lamb", 4},    {"lion", 2},     {"shampoo", 8},  {"muon", 3}};
    CHECK_EQ_INT(weft_n_optimizers, sizeof rules / sizeof rules[0]);
    for (int i = 0; i < weft_n_optimizers; i++) {
        weft_graph *g = weft_graph_create(1);
        weft_value token = weft_optimizers[i].build(build_loss(g), NULL);
        CHECK(token.id != 0);
        CHECK_TEXT(weft_graph_error(g)->message, "");
        CHECK(strcmp(weft_optimizers[i].name, rules[i].name) == 0);
        CHECK_EQ_INT(count(g, &weft_op_variable), 2 + rules[i].n_slots);
        CHECK_EQ_INT(count(g, &weft_op_assign), 2 + rules[i].n_slots);
        CHECK_EQ_INT(g->phase, WEFT_FORWARD);
        CHECK_EQ_INT(g->place_as, 0);
        weft_graph_destroy(&g);
    }
}

/* What an assign stores was computed where the variable is stored, in the update phase. */
static void test_updates_are_placed_as_their_variable(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value norm = {0};
    weft_adamw(build_loss(g), &(weft_optimizer_options){.clip = 1.0, .gradient_norm = &norm});
    CHECK(norm.id != 0 && weft_shape_of(norm)->n_dims == 0);
    int seen = 0;
    for (uint32_t id = 1; id < g->n_nodes; id++) {
        const weft_node *node = &g->nodes[id];
        if (node->op != &weft_op_assign) continue;
        const weft_variable_attributes *home = weft_node_of(g, node->in[0])->attributes;
        const uint32_t parameter = home->owner != 0 ? home->owner : node->in[0];
        CHECK_EQ_INT(g->tensors[node->in[1]].place_as, parameter);
        CHECK_EQ_INT(weft_node_of(g, node->in[1])->phase, WEFT_UPDATE);
        CHECK(node->origin.file != NULL);
        seen++;
    }
    CHECK_EQ_INT(seen, 6);
    weft_graph_destroy(&g);
}

/* A bias (one dim) is assigned from itself; a matrix from itself made smaller first. */
static void test_only_matrices_decay(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_adamw(build_loss(g), NULL);
    for (uint32_t id = 1; id < g->n_nodes; id++) {
        const weft_node *node = &g->nodes[id];
        if (node->op != &weft_op_assign || weft_node_of(g, node->in[1])->op != &weft_op_sub)
            continue;
        const uint32_t base = weft_node_of(g, node->in[1])->in[0];
        const bool decays = weft_node_of(g, base)->op == &weft_op_mul;
        CHECK_EQ_INT(decays, g->tensors[node->in[0]].type.shape.n_dims >= 2);
    }
    weft_graph_destroy(&g);
}

static void test_wrong_options_have_their_sentence(void)
{
    static const struct {
        weft_optimizer_options options;
        const char *says;
    } wrongs[] = {
        {{.rate = -1.0}, "the rate is -1"},
        {{.beta1 = 1.5}, "beta1 is 1.5"},
        {{.clip = -2.0}, "gradient norm is -2"},
        {{.epsilon = -1e-8}, "epsilon is -1e-08"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        weft_graph *g = weft_graph_create(1);
        CHECK_EQ_INT(weft_adam(build_loss(g), &wrongs[i].options).id, 0);
        CHECK_TEXT(weft_graph_error(g)->message, wrongs[i].says);
        CHECK_TEXT(weft_graph_error(g)->message, "adam at optimizers_test.c:");
        weft_graph_destroy(&g);
    }
    weft_graph *g = weft_graph_create(1);
    weft_value rate = weft_constant_rate(g, WEFT_F64, 0.1);
    weft_sgd(build_loss(g), &(weft_optimizer_options){.rate_value = rate});
    CHECK_TEXT(weft_graph_error(g)->message, "rate_value is f64[] and the loss is f32");
    weft_graph_destroy(&g);
    g = weft_graph_create(1);
    weft_sgd(weft_mean(weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch))), NULL);
    CHECK_TEXT(weft_graph_error(g)->message, "the loss depends on no variable");
    weft_graph_destroy(&g);
}

static void test_an_unknown_optimizer_gets_the_nearest(void)
{
    weft_error error = {WEFT_OK, -1, ""};
    CHECK(weft_optimizer_find("adamm", &error) == NULL);
    CHECK_EQ_INT(error.status, WEFT_USAGE);
    CHECK_TEXT(error.message, "there is no optimizer adamm; did you mean adam");
    weft_error other = {WEFT_OK, -1, ""};
    CHECK(weft_optimizer_find("momentum", &other) != NULL);
    CHECK_EQ_INT(other.status, WEFT_OK);
}

static void test_schedules_are_scalars(void)
{
    weft_graph *g = weft_graph_create(1);
    const weft_value rates[] = {weft_constant_rate(g, WEFT_F32, 0.1),
                                weft_warmup(g, WEFT_F32, 0.1, 10),
                                weft_warmup_cosine(g, WEFT_F32, 0.1, 10, 100, 0.01)};
    for (int i = 0; i < 3; i++) {
        CHECK(rates[i].id != 0 && weft_shape_of(rates[i])->n_dims == 0);
        CHECK_EQ_INT(weft_dtype_of(rates[i]), WEFT_F32);
    }
    CHECK_EQ_INT(weft_warmup_cosine(g, WEFT_F32, 0.1, 100, 100, 0.0).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "warm-up lasts 100 runs of 100");
    CHECK_TEXT(weft_graph_error(g)->message, "warmup_cosine at optimizers_test.c:");
    weft_graph_clear_error(g);
    CHECK_EQ_INT(weft_warmup_cosine(g, WEFT_F32, 0.1, 1, 100, NAN).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "warmup_cosine at optimizers_test.c:");
    CHECK_TEXT(weft_graph_error(g)->message, "nan; it is a finite number");
    weft_graph_clear_error(g);
    CHECK_EQ_INT(weft_warmup(g, WEFT_F32, INFINITY, 10).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, "a rate is inf");
    weft_graph_clear_error(g);
    CHECK_EQ_INT(weft_constant_rate(NULL, WEFT_F32, NAN).id, 0);
    CHECK(weft_constant_rate(g, WEFT_F32, 0.1).id != 0);
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_each_rule_has_its_slots);
    RUN(test_updates_are_placed_as_their_variable);
    RUN(test_only_matrices_decay);
    RUN(test_wrong_options_have_their_sentence);
    RUN(test_an_unknown_optimizer_gets_the_nearest);
    RUN(test_schedules_are_scalars);
    return weft_test_report();
}
