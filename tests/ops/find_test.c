/* RANKS: 2 4 */
/* find_test: values by their names, of a graph and of a program, written and read through what was found; the nearest
 * name on a miss.
 */
#include "weft/autodiff.h"
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/program.h"

#include "test.h"

static weft_world world;
static const weft_dim batch = {"batch", 6}, in = {"in", 5};

static weft_graph *build(weft_value *loss, weft_value *update)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_input(g, "pixels", WEFT_F64, WEFT_DIMS(batch, in));
    weft_input(g, "unused", WEFT_F64, WEFT_DIMS(in));
    weft_value w = weft_variable(g, "weight", WEFT_F64, WEFT_DIMS(in), weft_constant_of(1.0));
    weft_value y = weft_name(weft_einsum(WEFT_DIMS(batch), x, w), "score");
    *loss = weft_name(weft_sum(WEFT_SCALAR, y), "loss");
    *update = weft_name(weft_momentum(*loss, NULL), "update");
    return g;
}

static void test_a_graph_finds_whatever_has_a_name(void)
{
    static const char *const names[] = {"pixels", "unused", "weight",         "score",
                                        "loss",   "update", "weight/momentum"};
    weft_value loss, update;
    weft_graph *g = build(&loss, &update);
    weft_error error = {0};
    for (int i = 0; i < 7; i++) {
        const weft_value found = weft_graph_find(g, names[i], &error);
        CHECK_OK(error.status, error);
        CHECK(found.id != 0 && found.graph == g);
    }
    CHECK_EQ_INT(weft_graph_find(g, "loss", &error).id, loss.id);
    CHECK_EQ_INT(weft_graph_find(g, "update", &error).id, update.id);
    CHECK_EQ_INT(weft_graph_find(g, "wieght", &error).id, 0);
    CHECK_EQ_INT(error.status, WEFT_USAGE);
    CHECK_TEXT(error.message,
               "weft_graph_find: the graph has no value called wieght; did you mean weight?");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_graph_find(g, "zzzzzzzzzzz", &error).id, 0);
    CHECK_TEXT(error.message, "; it has pixels, unused, weight, score, loss");
    CHECK_EQ_INT(weft_graph_error(g)->status, WEFT_OK); /* looking breaks nothing */
    weft_graph_destroy(&g);
}

static void test_a_name_of_two_values_is_refused_with_both(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_error error = {0};
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(in));
    weft_name(weft_exp(x), "layer");
    weft_name(weft_tanh(x), "layer");
    CHECK_EQ_INT(weft_graph_find(g, "layer", &error).id, 0);
    CHECK_TEXT(error.message, "two values are called layer, of exp at find_test.c:");
    CHECK_TEXT(error.message, "and of tanh at find_test.c:");
    weft_graph_destroy(&g);
}

static void test_missing_arguments_have_their_sentence(void)
{
    weft_value loss, update;
    weft_graph *g = build(&loss, &update), *empty = weft_graph_create(1);
    weft_error error = {0};
    CHECK_EQ_INT(weft_graph_find(NULL, "x", &error).id, 0);
    CHECK_TEXT(error.message, "weft_graph_find: graph is NULL");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_graph_find(g, NULL, &error).id, 0);
    CHECK_TEXT(error.message, "weft_graph_find: name is NULL");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_find(NULL, "x", &error).id, 0);
    CHECK_TEXT(error.message, "weft_find: program is NULL");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_graph_find(empty, "x", &error).id, 0);
    CHECK_TEXT(error.message, "no value called x; it has none");
    CHECK_EQ_INT(weft_graph_find(g, "", NULL).id, 0);
    CHECK_EQ_INT(weft_find_input(NULL, "x").id, 0);
    weft_graph_destroy(&empty);
    weft_graph_destroy(&g);
}

static weft_mesh *open_mesh(void)
{
    static const char *const texts[] = {"data:2,model:2", "data:2", "", "data:2,model:2"};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    const int n = world.n_processes;
    CHECK_OK(weft_mesh_create(&world, texts[n > 4 ? 2 : n - 1], &mesh, &error), error);
    return mesh;
}

/* A program fed, run and read by names alone. */
static void use_by_name(weft_program *program)
{
    double pixels[30], weight[5], momentum[5], loss = 0.0;
    weft_error error = {0};
    for (int i = 0; i < 30; i++)
        pixels[i] = i;
    CHECK_OK(weft_write(program, weft_find(program, "pixels", &error), WEFT_F64, pixels,
                        sizeof pixels, &error),
             error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read_scalar(program, weft_find(program, "loss", &error), &loss, &error), error);
    CHECK_CLOSE(loss, 435.0, 0);
    CHECK_OK(weft_read(program, weft_find(program, "weight", &error), WEFT_F64, weight,
                       sizeof weight, &error),
             error);
    CHECK_OK(weft_read(program, weft_find(program, "weight/momentum", &error), WEFT_F64, momentum,
                       sizeof momentum, &error),
             error);
    for (int i = 0; i < 5; i++) { /* the gradient of weight[i] is the sum of its column */
        CHECK_CLOSE(momentum[i], 75.0 + 6 * i, 0);
        CHECK_CLOSE(weight[i], 1.0 - 0.1 * momentum[i], 1e-15);
    }
}

static void test_a_program_finds_what_it_keeps(void)
{
    static const char *const layouts[] = {"", "batch:data", "in:data", "batch:data,in:model?"};
    for (int i = 0; i < 4; i++) {
        weft_value loss, update;
        weft_graph *g = build(&loss, &update);
        weft_mesh *mesh = open_mesh();
        weft_layout *layout = NULL;
        weft_program *program = NULL;
        weft_error error = {0};
        CHECK_OK(weft_layout_create(layouts[i], &layout, &error), error);
        CHECK_OK(weft_layout_store(layout, i, "batch", &error), error);
        if (CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, &error),
                     error)) {
            use_by_name(program);
            CHECK_EQ_INT(weft_find_input(program, "pixels").id,
                         weft_find(program, "pixels", &error).id);
            CHECK_EQ_INT(weft_find_input(program, "weight").id, 0);
            CHECK_EQ_INT(weft_find_input(program, "unused").id, 0);
            CHECK_EQ_INT(weft_find(program, "score", &error).id, 0); /* computed, and not kept */
            CHECK_TEXT(error.message,
                       "weft_find: this program keeps no value called score; the graph has one");
            weft_error_clear(&error);
            CHECK_EQ_INT(weft_find(program, "zzzzzzzzz", &error).id, 0);
            CHECK_TEXT(error.message, "; it keeps pixels, weight, loss");
            weft_error_clear(&error);
            CHECK_EQ_INT(weft_find(program, "pixel", &error).id, 0);
            CHECK_TEXT(error.message, "no value called pixel; did you mean pixels?");
        }
        weft_program_destroy(&program);
        weft_layout_destroy(&layout);
        weft_mesh_destroy(&mesh);
        weft_graph_destroy(&g);
    }
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_a_graph_finds_whatever_has_a_name);
        RUN(test_a_name_of_two_values_is_refused_with_both);
        RUN(test_missing_arguments_have_their_sentence);
        RUN(test_a_program_finds_what_it_keeps);
    }
    weft_world_close();
    return weft_test_report();
}
