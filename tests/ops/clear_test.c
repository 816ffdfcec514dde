/* RANKS: 2 4 */
/* clear_test: a graph that failed in any of many ways is cleared, built on, compiled and run: its numbers, random ones
 * included, are those of a graph that never failed, and nothing of the failed builder is left in it.
 */
#include <stdlib.h>

#include "ops/graph/ir.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/optim.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 6}, in = {"in", 5}, hidden = {"hidden", 4},
                      other = {"hidden", 3};

/* What a user may do wrong, each with a beginning that works. */
typedef struct blunder {
    const char *what, *says;
    void (*make)(weft_graph *g, weft_value x, weft_value w);
} blunder;

static void mix_sizes(weft_graph *g, weft_value x, weft_value w)
{
    (void)x;
    weft_add(w, weft_exp(weft_constant(g, WEFT_F64, WEFT_DIMS(other), 1.0)));
}

static void mix_graphs(weft_graph *g, weft_value x, weft_value w)
{
    (void)g, (void)w;
    weft_graph *stranger = weft_graph_create(5);
    weft_mul(x, weft_constant(stranger, WEFT_F64, WEFT_SCALAR, 2.0));
    weft_graph_destroy(&stranger);
}

static void pass_nothing(weft_graph *g, weft_value x, weft_value w)
{
    (void)w, (void)g;
    weft_dropout(weft_sub(x, (weft_value){0}), 0.5);
}

static void name_twice(weft_graph *g, weft_value x, weft_value w)
{
    (void)x, (void)w;
    weft_variable(g, "late", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
    weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
}

static void drop_too_much(weft_graph *g, weft_value x, weft_value w)
{
    (void)g, (void)w;
    weft_dropout(weft_exp(x), 1.5);
}

/* Both took a random stream before they failed. */
static void draw_what_cannot_be(weft_graph *g, weft_value x, weft_value w)
{
    (void)w;
    weft_random_uniform(g, WEFT_F64, WEFT_DIMS(in, in), 0.0, 1.0);
    weft_dropout(x, 0.5);
}

/* Half of a composition: the reduction works, the last sum does not. */
static void break_a_composition(weft_graph *g, weft_value x, weft_value w)
{
    (void)w;
    weft_value gain = weft_constant(g, WEFT_F64, WEFT_DIMS(in), 1.0);
    weft_layer_norm(x, gain, weft_constant(g, WEFT_F32, WEFT_DIMS(in), 1.0), in);
}

static void differentiate_an_integer(weft_graph *g, weft_value x, weft_value w)
{
    (void)g;
    weft_value d[1];
    weft_gradients(weft_cast(x, WEFT_I32), WEFT_VALUES(w), d, 0);
    CHECK_EQ_INT(d[0].id, 0);
}

static void differentiate_by_a_stranger(weft_graph *g, weft_value x, weft_value w)
{
    weft_value d[2];
    weft_value lonely = weft_variable(g, "lonely", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
    weft_gradients(weft_mean(weft_einsum(WEFT_DIMS(batch, hidden), x, w)), WEFT_VALUES(w, lonely),
                   d, 0);
}

static void give_a_bad_rate(weft_graph *g, weft_value x, weft_value w)
{
    (void)g;
    weft_value loss = weft_mean(weft_einsum(WEFT_DIMS(batch, hidden), x, w));
    weft_adam(loss, &(weft_optimizer_options){.beta1 = 7.0});
}

/* The second variable has the slot already: those of the first were made before that was seen. */
static void clash_in_a_slot(weft_graph *g, weft_value x, weft_value w)
{
    weft_value b = weft_variable(g, "b", WEFT_F64, WEFT_DIMS(hidden), weft_constant_of(0.0));
    weft_slot(b, "v", weft_constant_of(0.0));
    weft_value y = weft_add(weft_einsum(WEFT_DIMS(batch, hidden), x, w), b);
    weft_adam(weft_mean(y), NULL);
}

static void place_nothing(weft_graph *g, weft_value x, weft_value w)
{
    (void)x, (void)w;
    weft_place((weft_value){g, 9999}, "batch:data");
}

static const blunder blunders[] = {
    {"sizes", "hidden", mix_sizes},
    {"graphs", "another graph", mix_graphs},
    {"no value", "is not a value", pass_nothing},
    {"names", "has this name already", name_twice},
    {"rate", "the rate is 1.5", drop_too_much},
    {"shape", "dim in stands twice", draw_what_cannot_be},
    {"composition", "f32", break_a_composition},
    {"integer", "is i32", differentiate_an_integer},
    {"stranger", "does not depend", differentiate_by_a_stranger},
    {"betas", "beta1 is 7", give_a_bad_rate},
    {"slot", "b/v", clash_in_a_slot},
    {"place", "not a value", place_nothing},
};
enum { n_blunders = sizeof blunders / sizeof blunders[0] };

/* Make the mistake, look at the sentence, clear. */
static void blunder_and_clear(weft_graph *g, const blunder *b, weft_value x, weft_value w)
{
    b->make(g, x, w);
    CHECK_TEXT(weft_graph_error(g)->message, b->says);
    CHECK_EQ_INT(weft_exp(x).id, 0);
    weft_graph_clear_error(g);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    CHECK_TEXT(weft_graph_error(g)->message, "");
    for (uint32_t id = 1; id < g->n_nodes; id++)
        CHECK(g->nodes[id].origin.file != NULL);
}

/* A network with dropout and an update; mistakes are made in the midst of it: one, or all (NULL: none). */
static void build(weft_oracle_build *b)
{
    const blunder *one = b->argument;
    weft_graph *g = b->graph;
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in, hidden), weft_normal(0.0, 1.0));
    weft_value h = weft_dropout(weft_einsum(WEFT_DIMS(batch, hidden), x, w), 0.5);
    const int n_made = one == blunders ? n_blunders : one != NULL;
    for (int i = 0; i < n_made; i++)
        blunder_and_clear(g, &one[i], x, w);
    weft_value y = weft_tanh(weft_dropout(h, 0.25));
    weft_value loss = weft_mean(weft_square(y)), norm = {0};
    weft_value update = weft_adam(loss, &(weft_optimizer_options){.gradient_norm = &norm});
    weft_oracle_output(b, loss);
    weft_oracle_output(b, y);
    weft_oracle_output(b, norm);
    b->outputs[b->n_outputs++] = update; /* a token: it reads as 0 */
}

static weft_status run(weft_mesh *mesh, const blunder *made, double *results, weft_error *error)
{
    weft_oracle_build b = {.graph = weft_graph_create(77), .argument = made};
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    build(&b);
    weft_status status = weft_layout_create("batch:data?,hidden:model?", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, (weft_values){b.outputs, b.n_outputs}, NULL, &program,
                              error);
    if (status == WEFT_OK) status = weft_oracle_fill(&b, program, error);
    for (int step = 0; step < 2 && status == WEFT_OK; step++)
        status = weft_run(program, error);
    for (int k = 0; k < 3 && status == WEFT_OK; k++) {
        double *data = NULL;
        status = weft_oracle_read(program, b.outputs[k], &data, error);
        results[k] = 0.0;
        for (int64_t i = 0; data != NULL && i < weft_shape_count(weft_shape_of(b.outputs[k])); i++)
            results[k] += data[i] * (double)(i + 1);
        free(data);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&b.graph);
    return status;
}

/* On every mesh: the same bits as the graph that never failed gives there, and near what one rank gives. */
static void test_a_cleared_graph_goes_on_as_if_nothing_had_failed(void)
{
    weft_error error = {0};
    double alone[3] = {0};
    CHECK_OK(run(oracle.alone, NULL, alone, &error), error);
    for (int m = -1; m < oracle.n_meshes; m++) {
        weft_mesh *mesh = m < 0 ? oracle.alone : oracle.meshes[m];
        double never[3] = {0}, cleared[3] = {1};
        CHECK_OK(run(mesh, NULL, never, &error), error);
        for (int k = 0; k < 3; k++)
            CHECK_CLOSE(never[k], alone[k], 1e-11);
        for (int i = 0; i < n_blunders; i++) { /* entry 0 makes all of them, one after the other */
            CHECK_OK(run(mesh, &blunders[i], cleared, &error), error);
            CHECK(memcmp(never, cleared, sizeof never) == 0);
        }
    }
}

/* Values made before keep their ids, and a name that a failed builder had taken is free again. */
static void test_names_of_a_failed_builder_are_free_again(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value w = weft_variable(g, "w", WEFT_F64, WEFT_DIMS(in), weft_normal(0.0, 1.0));
    weft_value b = weft_variable(g, "b", WEFT_F64, WEFT_DIMS(in), weft_normal(0.0, 1.0));
    weft_value loss = weft_mean(weft_mul(w, b));
    weft_value taken = weft_slot(b, "v", weft_constant_of(0.0));
    const uint32_t n_nodes = g->n_nodes, n_tensors = g->n_tensors;
    weft_adam(loss, NULL);
    CHECK_TEXT(weft_graph_error(g)->message, "b/v");
    CHECK_TEXT(weft_graph_error(g)->message, "clear_test.c:");
    weft_graph_clear_error(g);
    CHECK_EQ_INT(g->n_nodes, n_nodes);
    CHECK_EQ_INT(g->n_tensors, n_tensors);
    CHECK(weft_graph_find(g, "w/m", NULL).id == 0);
    CHECK_EQ_INT(weft_graph_find(g, "b/v", NULL).id, taken.id);
    CHECK(weft_momentum(loss, NULL).id != 0);
    CHECK(weft_slot(w, "m", weft_constant_of(0.0)).id != 0);
    CHECK_TEXT(weft_graph_error(g)->message, "");
    weft_graph_destroy(&g);
}

/* A second error is as good as the first, and clearing what is not broken changes nothing. */
static void test_errors_come_and_go(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(in));
    const uint32_t n_nodes = g->n_nodes;
    weft_graph_clear_error(g);
    weft_graph_clear_error(NULL);
    for (int i = 0; i < 3; i++) {
        weft_dropout(x, 2.0 + i);
        char says[40];
        snprintf(says, sizeof says, "the rate is %d;", 2 + i);
        CHECK_TEXT(weft_graph_error(g)->message, says);
        CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_USAGE);
        weft_graph_clear_error(g);
        weft_graph_clear_error(g);
    }
    CHECK_EQ_INT(g->n_nodes, n_nodes);
    CHECK_EQ_INT(weft_dtype_of(x), WEFT_F64);
    CHECK(weft_exp(x).id != 0);
    weft_graph_destroy(&g);
}

/* Without places (macros turned off by the parentheses) every value made before stays. */
static void test_a_graph_without_places_loses_no_value(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = (weft_input)(g, "x", WEFT_F64, WEFT_DIMS(in));
    weft_value y = (weft_exp)(x);
    (weft_dropout)(y, 3.0);
    weft_graph_clear_error(g);
    CHECK_EQ_INT(weft_shape_of(y)->n_dims, 1);
    CHECK((weft_exp)(y).id > y.id);
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK);
    weft_graph_destroy(&g);
}

/* What a program was compiled from stays, places or not: its ids are not given to other values. */
static void test_what_was_compiled_stays(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    double found = 0.0;
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_SCALAR, weft_constant_of(2.0));
    weft_value y = (weft_square)(x);
    CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(y), NULL, &program, &error), error);
    weft_dropout((weft_exp)(x), 3.0);
    weft_graph_clear_error(g);
    weft_value z = weft_tanh(x);
    CHECK(z.id > y.id && weft_graph_find(g, "x", NULL).id == x.id);
    if (program != NULL && CHECK_OK(weft_run(program, &error), error)) {
        CHECK_OK(weft_read_scalar(program, y, &found, &error), error);
        CHECK_CLOSE(found, 4.0, 0);
        CHECK_EQ_INT(weft_read_scalar(program, z, &found, &error), WEFT_USAGE);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "model:2", "data:4", "data:2,model:2", "data:3"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_a_cleared_graph_goes_on_as_if_nothing_had_failed);
        RUN(test_names_of_a_failed_builder_are_free_again);
        RUN(test_errors_come_and_go);
        RUN(test_a_graph_without_places_loses_no_value);
        RUN(test_what_was_compiled_stays);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
