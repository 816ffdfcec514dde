/* RANKS: 2 4 */
/* program_test: what a compiled program promises its host: old values until the end of a run,
 * shared variables, parts and whole tensors, sentences for wrong calls, and a plan that names every
 * collective.
 */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <jansson.h>
#include <stdlib.h>

#include "ops/planned.h"
#include "test.h"

static weft_world world;
static const weft_dim row = {"row", 5}, column = {"column", 3};

/* A mesh of 2 axes that fits however this test was started. */
static weft_mesh *open_mesh(void)
{
    static const char *const texts[] = {"data:2,model:2", "data:2,model:1", "", "data:2,model:2"};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    const int n = world.n_processes;
    weft_lanes_choose(world.n_processes > 1 ? 0 : 3);
    CHECK_OK(weft_mesh_create(&world, texts[n > 4 ? 2 : n - 1], &mesh, &error), error);
    return mesh;
}

static weft_layout *open_layout(const char *text)
{
    weft_layout *layout = NULL;
    weft_error error = {0};
    CHECK_OK(weft_layout_create(text, &layout, &error), error);
    return layout;
}

static void test_variables_swap_by_their_old_values(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data,column:model");
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row, column), weft_constant_of(1.0));
    weft_value y = weft_variable(g, "y", WEFT_F64, WEFT_DIMS(row, column), weft_constant_of(2.0));
    weft_value z = weft_variable(g, "z", WEFT_F64, WEFT_DIMS(row, column), weft_constant_of(0.0));
    weft_value sum = weft_assign(z, weft_add(weft_add(z, x), weft_scale(y, 10.0)));
    weft_value both = weft_group(g, WEFT_VALUES(weft_assign(x, y), weft_assign(y, x), sum));
    double out[15];
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(both), NULL, &program, &error), error);
    for (int run = 0; run < 3 && program; run++)
        CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, x, WEFT_F64, out, sizeof out, &error), error);
    for (int i = 0; i < 15; i++)
        CHECK_CLOSE(out[i], 2.0, 0); /* swapped three times */
    CHECK_OK(weft_read(program, z, WEFT_F64, out, sizeof out, &error), error);
    for (int i = 0; i < 15; i++)
        CHECK_CLOSE(out[i], 21.0 + 12.0 + 21.0, 0);
    CHECK_EQ_INT(weft_runs(program), 3);
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_shared_variables_are_one(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data");
    weft_graph *g = weft_graph_create(1), *h = weft_graph_create(1);
    weft_program *trains = NULL, *reads = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row), weft_uniform(0.0, 1.0));
    weft_value seen = weft_variable(h, "x", WEFT_F64, WEFT_DIMS(row), weft_constant_of(7.0));
    weft_value doubled = weft_scale(seen, 2.0);
    weft_value update = weft_assign(x, weft_shift(x, 1.0));
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(update), NULL, &trains, &error), error);
    const weft_compile_options options = {.share = trains};
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(doubled), &options, &reads, &error), error);
    double before[5], after[5];
    CHECK_OK(weft_run(reads, &error), error);
    CHECK_OK(weft_read(reads, doubled, WEFT_F64, before, sizeof before, &error), error);
    CHECK_OK(weft_run(trains, &error), error);
    CHECK_OK(weft_run(reads, &error), error);
    CHECK_OK(weft_read(reads, doubled, WEFT_F64, after, sizeof after, &error), error);
    for (int i = 0; i < 5; i++) {
        CHECK(before[i] >= 0 && before[i] < 2.0);
        CHECK_CLOSE(after[i], before[i] + 2.0, 1e-15);
    }
    weft_program_destroy(&reads);
    weft_program_destroy(&trains);
    weft_graph_destroy(&g);
    weft_graph_destroy(&h);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* Sharing takes the same part of the same tensor on every rank, however the layouts are written: on one rank every
 * layout gives that. */
static void test_shared_variables_have_one_place(void)
{
    const weft_dim other = {"other", 5};
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data"), *whole = open_layout("");
    weft_graph *g = weft_graph_create(1), *h = weft_graph_create(1);
    weft_program *first = NULL, *second = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row), weft_constant_of(1.0));
    weft_value y = weft_variable(h, "x", WEFT_F64, WEFT_DIMS(other), weft_constant_of(1.0));
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(weft_neg(x)), NULL, &first, &error), error);
    const weft_compile_options options = {.share = first};
    const bool is_one = weft_mesh_n_ranks(mesh) == 1;
    CHECK_EQ_INT(weft_compile(mesh, whole, WEFT_VALUES(weft_exp(x)), &options, &second, &error),
                 is_one ? WEFT_OK : WEFT_USAGE);
    if (!is_one) CHECK_TEXT(error.message, "variable x cannot be shared: here it is f64 [row:5]");
    weft_program_destroy(&second);
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_compile(mesh, whole, WEFT_VALUES(weft_neg(y)), &options, &second, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "here it is f64 [other:5]");
    weft_program_destroy(&first);
    weft_graph_destroy(&g);
    weft_graph_destroy(&h);
    weft_layout_destroy(&layout);
    weft_layout_destroy(&whole);
    weft_mesh_destroy(&mesh);
}

/* Every rank's part, put together, is what was written. */
static void test_parts_make_the_whole(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data,column:model");
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_input(g, "x", WEFT_I32, WEFT_DIMS(row, column));
    int32_t whole[15], back[15];
    for (int i = 0; i < 15; i++)
        whole[i] = 100 + i;
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(weft_neg(x)), NULL, &program, &error), error);
    CHECK_OK(weft_write(program, x, WEFT_I32, whole, sizeof whole, &error), error);
    const int first = weft_mesh_first_local(mesh), n = weft_mesh_n_local(mesh);
    for (int rank = first; rank < first + n; rank++) {
        weft_box box;
        const int32_t *part = weft_local(program, x, rank, &box);
        for (int64_t r = box.begin[0], i = 0; part && r < box.end[0]; r++)
            for (int64_t c = box.begin[1]; c < box.end[1]; c++)
                CHECK_EQ_INT(part[i++], whole[r * 3 + c]);
    }
    CHECK_OK(weft_read(program, x, WEFT_I32, back, sizeof back, &error), error);
    for (int i = 0; i < 15; i++)
        CHECK_EQ_INT(back[i], whole[i]);
    CHECK(weft_find_input(program, "x").id == x.id && weft_find_input(program, "y").id == 0);
    CHECK_EQ_INT(weft_write(program, x, WEFT_I32, whole, 8, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "60 bytes, but the buffer has 8");
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* Compile `values` on the layout "row:data", and hand back the sentence it is refused with. */
static void check_refused(weft_values values, const char *sentence)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data");
    weft_program *program = NULL;
    weft_error error = {0};
    CHECK_EQ_INT(weft_compile(mesh, layout, values, NULL, &program, &error), WEFT_USAGE);
    CHECK(program == NULL);
    CHECK_TEXT(error.message, sentence);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_a_variable_is_assigned_once(void)
{
    weft_graph *g = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row), weft_constant_of(1.0));
    weft_value a = weft_assign(x, weft_scale(x, 2.0)), b = weft_assign(x, weft_neg(x));
    char sentence[160];
    snprintf(sentence, sizeof sentence, "assign at program_test.c:%d and assign at program_test.c",
             __LINE__ - 3);
    check_refused(WEFT_VALUES(a, b), sentence);
    check_refused(WEFT_VALUES(weft_group(g, WEFT_VALUES(a, b))),
                  "variable x is assigned twice in one program");
    weft_graph_destroy(&g);
}

static void test_an_update_is_no_operand(void)
{
    weft_graph *g = weft_graph_create(1), *h = weft_graph_create(1);
    weft_value x = weft_variable(g, "x", WEFT_I32, WEFT_SCALAR, weft_constant_of(1.0));
    weft_value update = weft_assign(x, weft_add(x, x));
    check_refused(WEFT_VALUES(weft_add(update, update)),
                  "operand 0 is an update (of weft_assign), which has no elements");
    weft_value y = weft_variable(h, "x", WEFT_I32, WEFT_SCALAR, weft_constant_of(1.0));
    weft_value both = weft_group(h, WEFT_VALUES(weft_assign(y, y), y));
    check_refused(WEFT_VALUES(weft_assign(y, both)), "operand 1 is an update (of weft_group)");
    weft_graph_destroy(&g);
    weft_graph_destroy(&h);
}

static void test_storage_by_a_dim_nobody_has_is_refused(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data");
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(row), weft_constant_of(1.0));
    CHECK_OK(weft_layout_store(layout, 3, "rwo", &error), error);
    CHECK_EQ_INT(weft_compile(mesh, layout, WEFT_VALUES(x), NULL, &program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "by a dim that no tensor has, rwo; did you mean row?");
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* Zeros that nobody wrote or computed are no numbers to go on with. */
static void test_what_is_not_there_yet_is_not_read(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("row:data,column:model");
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(row, column)), y = weft_neg(x);
    double numbers[15] = {0};
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
    CHECK_EQ_INT(weft_run(program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "input x [row:5, column:3] has not been written");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_read(program, x, WEFT_F64, numbers, sizeof numbers, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "input x has not been written");
    weft_error_clear(&error);
    CHECK_OK(weft_write(program, x, WEFT_F64, numbers, sizeof numbers, &error), error);
    CHECK_EQ_INT(weft_read(program, y, WEFT_F64, numbers, sizeof numbers, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "is computed by a run, and none has been done");
    weft_error_clear(&error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, y, WEFT_F64, numbers, sizeof numbers, &error), error);
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

static void test_a_buffer_of_another_dtype_is_refused(void)
{
    weft_mesh *mesh = open_mesh();
    weft_layout *layout = open_layout("");
    weft_graph *g = weft_graph_create(1);
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value x = weft_input(g, "x", WEFT_I32, WEFT_DIMS(row));
    float numbers[5] = {1.5f};
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(weft_neg(x)), NULL, &program, &error), error);
    CHECK_EQ_INT(weft_write(program, x, WEFT_F32, numbers, sizeof numbers, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "x is [row:5] of i32, but the buffer is said to be f32");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_read(program, x, (weft_dtype)9, numbers, sizeof numbers, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "x is [row:5] of i32, but the buffer is said to be");
    weft_program_destroy(&program);
    weft_graph_destroy(&g);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
}

/* ---- plans: no ranks, so on one process only --------------------------------------------------
 */

static weft_status plan_relu(planned *p, const char *mesh, const char *layout, bool strict,
                             weft_error *error)
{
    *p = (planned){.layout = open_layout(layout), .graph = weft_graph_create(1)};
    const weft_dim wide = {"wide", 1 << 16}, tall = {"tall", 1 << 16}, few = {"few", 1 << 10};
    weft_value a = weft_input(p->graph, "a", WEFT_F32, WEFT_DIMS(tall, wide));
    weft_value b = weft_input(p->graph, "b", WEFT_F32, WEFT_DIMS(wide, few));
    weft_value c = weft_relu(weft_einsum(WEFT_DIMS(tall, few), a, b));
    weft_compile_options options = {.strict = strict};
    WEFT_TRY(weft_mesh_plan(mesh, &p->mesh, error));
    return weft_compile(p->mesh, p->layout, WEFT_VALUES(c), &options, &p->program, error);
}

static void test_plan_says_what_why_and_where(void)
{
    planned p;
    weft_error error = {0};
    char *text = NULL, *json = NULL;
    size_t bytes = 0;
    CHECK_OK(plan_relu(&p, "data:64,model:8", "tall:data,wide:model", false, &error), error);
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_plan_print(p.program, file, &error), error);
    fclose(file);
    CHECK_TEXT(text, "mesh    data:64,model:8 (512 ranks)");
    CHECK_TEXT(text, "einsum at program_test.c:");
    CHECK_TEXT(text, "wide is contracted and split over model -> all_reduce of [tall:1024, "
                     "few:1024], 4.0 MiB over model");
    file = open_memstream(&json, &bytes);
    CHECK_OK(weft_plan_json(p.program, file, &error), error);
    fclose(file);
    json_t *root = json_loads(json, 0, NULL);
    CHECK_EQ_INT(json_integer_value(json_object_get(root, "ranks")), 512);
    CHECK_EQ_INT(json_array_size(json_object_get(root, "collectives")), 1);
    json_decref(root);
    CHECK_EQ_INT(weft_run(p.program, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "plan without ranks");
    free(text);
    free(json);
    close_planned(&p);
}

static void test_skipped_rule_is_said_and_strict_refuses(void)
{
    planned p;
    weft_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    CHECK_OK(plan_relu(&p, "data:2", "tall:data,wide:data", false, &error), error);
    FILE *file = open_memstream(&text, &bytes);
    CHECK_OK(weft_plan_print(p.program, file, &error), error);
    fclose(file);
    CHECK_TEXT(text, "rules skipped\na [tall:65536, wide:65536]: wide: data is taken by tall");
    free(text);
    close_planned(&p);
    CHECK_EQ_INT(plan_relu(&p, "data:2", "tall:data,wide:data", true, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "wide: data is taken by tall, and strict of the compile options");
    close_planned(&p);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_variables_swap_by_their_old_values);
        RUN(test_shared_variables_are_one);
        RUN(test_shared_variables_have_one_place);
        RUN(test_parts_make_the_whole);
        RUN(test_a_variable_is_assigned_once);
        RUN(test_an_update_is_no_operand);
        RUN(test_storage_by_a_dim_nobody_has_is_refused);
        RUN(test_what_is_not_there_yet_is_not_read);
        RUN(test_a_buffer_of_another_dtype_is_refused);
        if (world.n_processes == 1) {
            RUN(test_plan_says_what_why_and_where);
            RUN(test_skipped_rule_is_said_and_strict_refuses);
        }
    }
    weft_world_close();
    return weft_test_report();
}
