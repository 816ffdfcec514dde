/* RANKS: 2 4 */
/* place_optional_test: one program whose placements and layout mark their axes "?" runs on any mesh, and gives what one
 * rank gives; an axis without the mark is still refused by a mesh that lacks it.
 */
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 7}, in = {"in", 5}, hidden = {"hidden", 6};

static const char rules[] = "batch:data?,hidden:model?";

/* A layer, its loss and its gradients; the activation lives where its own text says. */
static void build(weft_oracle_build *b)
{
    weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0);
    weft_value w = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0);
    weft_value h = weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w)), d[2];
    h = weft_place(h, b->argument);
    weft_value loss = weft_mean(weft_square(h));
    weft_gradients(loss, WEFT_VALUES(x, w), d, 0);
    weft_oracle_output(b, loss);
    weft_oracle_output(b, h);
    weft_oracle_output(b, d[0]);
    weft_oracle_output(b, d[1]);
}

static void test_one_program_runs_on_every_mesh(void)
{
    static const char *const placements[] = {"batch:data?,hidden:model?", "hidden:data?+model?",
                                             "batch:model?+stage?", "hidden:expert?", ""};
    for (int i = 0; i < 5; i++)
        for (int m = 0; m < oracle.n_meshes; m++)
            weft_oracle_check(&oracle, oracle.meshes[m],
                              &(weft_oracle_case){.name = placements[i],
                                                  .build = build,
                                                  .argument = placements[i],
                                                  .layout = rules},
                              NULL);
}

/* The mark changes nothing where the axis is there: the very plan of the text without it. */
static void test_a_mark_changes_nothing_on_a_mesh_with_the_axis(void)
{
    enum { room = 64 };
    weft_mesh *mesh = NULL;
    weft_usage usage[2] = {0};
    weft_traffic traffic[2][room];
    int n_traffic[2] = {0};
    weft_error error = {0};
    memset(traffic, 0, sizeof traffic);
    CHECK_OK(weft_mesh_plan("data:2,model:3", &mesh, &error), error);
    for (int marked = 0; marked < 2; marked++) {
        const char *text = marked ? rules : "batch:data,hidden:model";
        weft_oracle_build b = {.graph = weft_graph_create(77), .argument = text};
        weft_layout *layout = NULL;
        weft_program *program = NULL;
        build(&b);
        CHECK_OK(weft_layout_create(text, &layout, &error), error);
        const weft_values values = {b.outputs, b.n_outputs};
        if (CHECK_OK(weft_compile(mesh, layout, values, NULL, &program, &error), error))
            CHECK_OK(weft_plan_usage(program, 0, &usage[marked], &error), error);
        n_traffic[marked] = weft_plan_traffic(program, 0, traffic[marked], room);
        weft_program_destroy(&program);
        weft_layout_destroy(&layout);
        weft_graph_destroy(&b.graph);
    }
    CHECK(n_traffic[0] > 0 && n_traffic[0] <= room);
    CHECK_EQ_INT(n_traffic[0], n_traffic[1]);
    CHECK(memcmp(&usage[0], &usage[1], sizeof usage[0]) == 0);
    CHECK(memcmp(traffic[0], traffic[1], sizeof traffic[0]) == 0);
    weft_mesh_destroy(&mesh);
}

static void test_an_axis_without_the_mark_is_refused(void)
{
    weft_oracle_build b = {.graph = weft_graph_create(77), .argument = "batch:expert?+stag"};
    weft_program *program = NULL;
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    build(&b);
    CHECK_OK(weft_mesh_plan("stage:2", &mesh, &error), error);
    const weft_values values = {b.outputs, b.n_outputs};
    CHECK_EQ_INT(weft_compile(mesh, NULL, values, NULL, &program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "the placement of tanh at place_optional_test.c:");
    CHECK_TEXT(error.message,
               "layout batch:expert?+stag: mesh stage:2 has no axis stag; did you mean stage?");
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&b.graph);
}

int main(void)
{
    static const char *const meshes[] = {"data:2",         "model:2",        "data:4",
                                         "data:2,model:2", "model:2,data:2", "other:2",
                                         "other:4",        "data:3",         "stage:2,expert:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 9, &error), error)) {
        RUN(test_one_program_runs_on_every_mesh);
        RUN(test_a_mark_changes_nothing_on_a_mesh_with_the_axis);
        RUN(test_an_axis_without_the_mark_is_refused);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
