/* room: a program that needs more memory than there is gets a sentence with both figures, on all ranks the same, before any
 * of it is taken; then one that fits is compiled and runs.
 * RANKS: 2 3
 */
#include "test.h"
#include "weft.h"

static weft_world world;

static int64_t free_bytes(void)
{
    return weft_devices[WEFT_CPU]->room(NULL);
}

/* One variable of that many bytes, all of which every rank would have; and a sum over it. */
static weft_status compile(weft_mesh *mesh, weft_graph *graph, int64_t bytes,
                           weft_program **program, weft_error *error)
{
    const weft_dim row = {"row", 1 << 17}, column = {"column", (bytes >> 19) + 1};
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(row, column), weft_constant_of(1));
    weft_value sum = weft_sum(WEFT_SCALAR, w);
    return weft_compile(mesh, NULL, (weft_values){&sum, 1}, NULL, program, error);
}

static weft_mesh *make_mesh(void)
{
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    char text[16];
    snprintf(text, sizeof text, "data:%d", world.n_processes > 1 ? world.n_processes : 2);
    CHECK_OK(weft_mesh_create(&world, text, &mesh, &error), error);
    return mesh;
}

static void test_what_is_free_is_less_than_all(void)
{
    const int64_t room = free_bytes();
    CHECK(room == -1 || room > 0);
    CHECK(free_bytes() < INT64_C(1) << 50);
}

static void test_more_than_there_is_is_refused(void)
{
    weft_mesh *mesh = make_mesh();
    weft_program *program = NULL;
    weft_error error = {0};
    const int64_t tib = INT64_C(1) << 40, bytes[] = {16 * tib, 256 * tib, 2000 * tib};
    if (free_bytes() < 0) return;
    for (int i = 0; i < 3; i++) {
        weft_graph *graph = weft_graph_create(1);
        error = (weft_error){0};
        CHECK_EQ_INT(compile(mesh, graph, bytes[i], &program, &error), WEFT_MEMORY);
        CHECK_EQ_INT(weft_graph_destroy(&graph), WEFT_OK);
        CHECK(program == NULL);
        CHECK_TEXT(error.message, "rank 0 of this program needs ");
        CHECK_TEXT(error.message, "parameters ");
        CHECK_TEXT(error.message, "GiB are free; use");
        CHECK_TEXT(error.message, " ranks ");
    }
    weft_graph *graph = weft_graph_create(1);
    error = (weft_error){0};
    CHECK_OK(compile(mesh, graph, 1, &program, &error), error);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_EQ_INT(weft_program_destroy(&program), WEFT_OK);
    CHECK_EQ_INT(weft_graph_destroy(&graph), WEFT_OK);
    CHECK_EQ_INT(weft_mesh_destroy(&mesh), WEFT_OK);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_what_is_free_is_less_than_all);
        RUN(test_more_than_there_is_is_refused);
    }
    weft_world_close();
    return weft_test_report();
}
