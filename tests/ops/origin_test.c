/* origin_test: every node and every sentence names the builder that the program called, and where: not the op that it
 * is made of, and not the pass that found out.
 */
#include "ops/graph/ir.h"

#include <stdlib.h>

#include "test.h"
#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/program.h"

static const weft_dim batch = {"batch", 6}, column = {"column", 4}, absent = {"absent", 4};

/* What a wrong call is given: g, x f32 [batch, column], ids i32 [batch]. */
typedef struct given {
    weft_graph *g;
    weft_value x, ids;
} given;

/* Each builder's name and a wrong call of it; the sentence begins with the name and this file. */
#define WRONG(builder, ...)                                                                        \
    static int wrong_##builder(const given *p)                                                     \
    {                                                                                              \
        weft_graph *g = p->g;                                                                      \
        weft_value x = p->x, ids = p->ids;                                                         \
        (void)g, (void)x, (void)ids;                                                               \
        weft_##builder(__VA_ARGS__);                                                               \
        return __LINE__;                                                                           \
    }
WRONG(minimum, x, ids)
WRONG(softmax, x, absent)
WRONG(log_softmax, x, absent)
WRONG(logsumexp, ids, batch)
WRONG(layer_norm, x, x, x, absent)
WRONG(cross_entropy, x, x, column)
WRONG(mean_over, WEFT_DIMS(absent), x)
WRONG(einsum_n, WEFT_DIMS(batch), WEFT_VALUES(x, ids, x))
WRONG(one_hot, x, absent, WEFT_F32)
WRONG(max, WEFT_DIMS(absent), x)
WRONG(broadcast_to, x, WEFT_DIMS(absent))
WRONG(slot, x, "m", weft_constant_of(0.0))
WRONG(variable, g, "x", WEFT_F32, WEFT_DIMS(batch), weft_constant_of(0.0))
WRONG(input, g, "x", WEFT_F32, WEFT_DIMS(batch))
WRONG(assign, x, x)
WRONG(group, g, WEFT_VALUES((weft_value){g, 0}))
WRONG(place, ((weft_value){g, 0}), "")
WRONG(place_as, x, ((weft_value){g, 0}))
WRONG(name, ((weft_value){g, 0}), "a")
WRONG(warmup, g, WEFT_F32, 1.0, -1)
WRONG(warmup_cosine, g, WEFT_F32, 1.0, 7, 6, 0.0)
WRONG(constant_rate, g, WEFT_I32, 1e30)
WRONG(global_norm, WEFT_VALUES(ids))
WRONG(adam, x, NULL)
#undef WRONG
static int wrong_gradients(const given *p)
{
    weft_value gradient;
    weft_gradients(p->x, WEFT_VALUES(p->ids), &gradient, 0);
    return __LINE__ - 1;
}

static void test_a_sentence_names_what_was_called(void)
{
#define ROW(builder)                                                                               \
    {                                                                                              \
#builder, wrong_##builder                                                                  \
    }
    static const struct row {
        const char *builder;
        int (*call)(const given *p);
    } rows[] = {
        ROW(minimum),       ROW(softmax),       ROW(log_softmax), ROW(logsumexp), ROW(layer_norm),
        ROW(cross_entropy), ROW(mean_over),     ROW(einsum_n),    ROW(one_hot),   ROW(max),
        ROW(broadcast_to),  ROW(slot),          ROW(variable),    ROW(input),     ROW(assign),
        ROW(group),         ROW(place),         ROW(place_as),    ROW(name),      ROW(warmup),
        ROW(warmup_cosine), ROW(constant_rate), ROW(global_norm), ROW(adam),      ROW(gradients),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char head[80];
        given p = {.g = weft_graph_create(1)};
        p.x = weft_input(p.g, "x", WEFT_F32, WEFT_DIMS(batch, column));
        p.ids = weft_input(p.g, "ids", WEFT_I32, WEFT_DIMS(batch));
        const int line = rows[i].call(&p);
        snprintf(head, sizeof head, "%s at origin_test.c:%d: ", rows[i].builder, line);
        const char *message = weft_graph_error(p.g)->message;
        CHECK_EQ_INT(weft_graph_error(p.g)->status, WEFT_USAGE);
        if (!weft_test_check(strncmp(message, head, strlen(head)) == 0, __FILE__, __LINE__, head))
            fprintf(stderr, "    %s\n", message);
        weft_graph_destroy(&p.g);
    }
}

static void test_no_operand_is_another_than_itself(void)
{
    weft_graph *g = weft_graph_create(1), *h = weft_graph_create(1);
    weft_value stranger = weft_input(h, "stranger", WEFT_F32, WEFT_DIMS(batch));
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch));
    weft_add(x, stranger);
    CHECK_TEXT(weft_graph_error(g)->message, "stranger belongs to another graph");
    weft_graph_clear_error(g);
    weft_mul(x, (weft_value){g, 0});
    CHECK_TEXT(weft_graph_error(g)->message, "the second operand is not a value");
    weft_graph_destroy(&g);
    weft_graph_destroy(&h);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Whether all nodes from `first` on come from this call. */
static void check_origins(const weft_graph *g, uint32_t first, const char *builder, int line)
{
    CHECK(first < g->n_nodes);
    for (uint32_t n = first; n < g->n_nodes; n++) {
        const weft_origin *origin = &g->nodes[n].origin;
        if (!CHECK(origin->builder != NULL && origin->file != NULL)) continue;
        CHECK(strcmp(origin->builder, builder) == 0);
        CHECK(strcmp(origin->file, "origin_test.c") == 0);
        CHECK_EQ_INT(origin->line, line);
    }
}

static void test_nodes_know_the_builder(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(batch, column), weft_normal(0, 1));
    weft_value gain = weft_constant(g, WEFT_F64, WEFT_DIMS(column), 1.0);
    uint32_t first = g->n_nodes;
    int line = __LINE__ + 1;
    weft_value y = weft_layer_norm(x, gain, gain, column);
    check_origins(g, first, "layer_norm", line);

    first = g->n_nodes;
    line = __LINE__ + 1;
    weft_value rate = weft_warmup_cosine(g, WEFT_F64, 0.1, 3, 9, 0.0);
    check_origins(g, first, "warmup_cosine", line);

    first = g->n_nodes;
    line = __LINE__ + 1;
    weft_global_norm(WEFT_VALUES(x, y));
    check_origins(g, first, "global_norm", line);

    weft_value loss = weft_mean(weft_square(y)), gradient;
    first = g->n_nodes;
    line = __LINE__ + 1;
    weft_gradients(loss, WEFT_VALUES(x), &gradient, 0);
    bool has_layer_norm =
        false; /* backward nodes stand where the forward ones do, the seed at the call */
    for (uint32_t n = first; n < g->n_nodes; n++) {
        const weft_origin *origin = &g->nodes[n].origin;
        if (!CHECK(origin->builder != NULL)) continue;
        has_layer_norm = has_layer_norm || strcmp(origin->builder, "layer_norm") == 0;
        if (strcmp(origin->builder, "gradients") == 0) CHECK_EQ_INT(origin->line, line);
    }
    CHECK(has_layer_norm && strcmp(g->nodes[first].origin.builder, "gradients") == 0);

    first = g->n_nodes;
    weft_momentum(loss, &(weft_optimizer_options){.rate_value = rate});
    CHECK_TEXT(g->nodes[g->n_nodes - 1].origin.builder, "momentum");
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

/* ---- found out later ------------------------------------------------------------------------- */

/* The sentence of a program that does not compile. */
static void compile(weft_value value, weft_error *error)
{
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    *error = (weft_error){0};
    CHECK_OK(weft_mesh_plan("data:2", &mesh, error), *error);
    (void)!weft_compile(mesh, NULL, WEFT_VALUES(value), NULL, &program, error);
    weft_program_destroy(&program);
    weft_mesh_destroy(&mesh);
}

static void test_a_text_that_is_no_placement_is_told_with_its_call(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_error error;
    char head[80];
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, column));
    const int line = __LINE__ + 1;
    weft_value y = weft_relu(weft_place(weft_exp(x), "batch:nowhere"));
    compile(y, &error);
    snprintf(head, sizeof head, "place at origin_test.c:%d: ", line);
    CHECK(strncmp(error.message, head, strlen(head)) == 0);
    CHECK_TEXT(error.message, "nowhere");
    weft_graph_destroy(&g);
}

/* The state of a logsumexp over a dim of 1 is twice as large as its operand. */
static void test_a_pass_names_the_builder(void)
{
    const weft_dim a = {"a", 1 << 25}, b = {"b", 1 << 25}, one = {"one", 1};
    weft_graph *g = weft_graph_create(1);
    weft_error error;
    char head[80];
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(a, b, one));
    const int line = __LINE__ + 1;
    weft_value y = weft_softmax(x, one);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    compile(y, &error);
    snprintf(head, sizeof head, "softmax at origin_test.c:%d: ", line);
    CHECK(strncmp(error.message, head, strlen(head)) == 0);
    CHECK_TEXT(error.message, "the most is 2^50");
    weft_graph_destroy(&g);
}

static void give_a_scalar(void *argument, weft_values in, weft_value out, weft_value dout,
                          weft_value *din)
{
    (void)argument, (void)in, (void)out;
    din[0] = weft_sum(WEFT_SCALAR, dout);
}

static void test_gradients_name_the_forward_call_too(void)
{
    weft_graph *g = weft_graph_create(1);
    char head[120];
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, column)), gradient;
    const int line = __LINE__ + 1;
    weft_value y = weft_custom_gradient(WEFT_VALUES(x), weft_exp(x), give_a_scalar, NULL);
    weft_gradients(y, WEFT_VALUES(x), &gradient, 0);
    snprintf(head, sizeof head,
             "gradients at origin_test.c:%d: of custom_gradient at origin_test.c:%d: the rule gave",
             line + 1, line);
    CHECK_TEXT(weft_graph_error(g)->message, head);
    weft_graph_destroy(&g);
}

int main(void)
{
    RUN(test_a_sentence_names_what_was_called);
    RUN(test_no_operand_is_another_than_itself);
    RUN(test_nodes_know_the_builder);
    RUN(test_a_text_that_is_no_placement_is_told_with_its_call);
    RUN(test_a_pass_names_the_builder);
    RUN(test_gradients_name_the_forward_call_too);
    return weft_test_report();
}
