/* homes_test: what is gone through in step lies so that caches hold it: large homes begin at different places of a page. */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdint.h>

#include "test.h"

enum { SIDE = 256, PAGE = 4096, LINE = 64 }; /* SIDE x SIDE f32: whole pages */

static void check_apart(weft_program *program, const weft_value *all, int n)
{
    weft_box box;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            const uintptr_t a = (uintptr_t)weft_local(program, all[i], 0, &box);
            const uintptr_t b = (uintptr_t)weft_local(program, all[k], 0, &box);
            CHECK(a != 0 && b != 0 && a % LINE == 0 && b % LINE == 0);
            CHECK(a % PAGE != b % PAGE);
        }
}

static void test_large_homes_begin_at_different_places_of_a_page(void)
{
    enum { N = 3 };
    const weft_dim a = {"a", SIDE}, b = {"b", SIDE};
    weft_error error = {0};
    weft_program *program = NULL;
    weft_layout *layout = NULL;
    weft_mesh *mesh = NULL;
    weft_world world;
    weft_graph *graph = weft_graph_create(5);
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(a, b));
    weft_value w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(a, b), weft_constant_of(1.0));
    weft_value u = weft_variable(graph, "u", WEFT_F32, WEFT_DIMS(a, b), weft_constant_of(2.0));
    const weft_value all[N] = {x, w, u};
    weft_value out[] = {weft_assign(w, weft_add(w, x)), weft_assign(u, weft_mul(u, x))};
    CHECK_OK(weft_world_open(&world, &error), error);
    CHECK_OK(weft_mesh_create(&world, "x:1", &mesh, &error), error);
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, (weft_values){out, 2}, NULL, &program, &error), error);
    if (program) check_apart(program, all, N);
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_world_close();
}

int main(void)
{
    RUN(test_large_homes_begin_at_different_places_of_a_page);
    return weft_test_report();
}
