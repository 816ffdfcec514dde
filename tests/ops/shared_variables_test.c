/* Variables that ranks of one process hold in common: there once, written once, whoever writes them and however; and those
 * that each rank must keep for itself. Ranks are threads. */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/program.h"

#include "cpu/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { RUNS = 40, MOST = 60000 };

static weft_world world;

typedef struct rig {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph, *second;
} rig;

static bool rig_open(rig *r, const char *mesh, const char *layout, int zero)
{
    weft_error error = {0};
    *r = (rig){0};
    weft_lanes_choose(1);
    r->graph = weft_graph_create(1);
    r->second = weft_graph_create(1);
    weft_lanes_choose(world.n_processes > 1 ? 0 : 3);
    return CHECK_OK(weft_mesh_create(&world, mesh, &r->mesh, &error), error) &&
           CHECK_OK(weft_layout_create(layout, &r->layout, &error), error) &&
           (!zero || CHECK_OK(weft_layout_store(r->layout, zero, "batch", &error), error));
}

static void rig_close(rig *r)
{
    weft_graph_destroy(&r->graph);
    weft_graph_destroy(&r->second);
    weft_layout_destroy(&r->layout);
    weft_mesh_destroy(&r->mesh);
}

/* Whether two ranks have the variable in the same memory. */
static bool is_common(weft_program *program, weft_value variable, int one, int other)
{
    weft_box box;
    return weft_local(program, variable, one, &box) == weft_local(program, variable, other, &box);
}

static void run_often(weft_program *program, int n)
{
    weft_error error = {0};
    for (int i = 0; i < n && program; i++)
        CHECK_OK(weft_run(program, &error), error);
}

/* All elements are one number. */
static void check_all(weft_program *program, weft_value value, int64_t count, double expected)
{
    static double out[MOST];
    weft_error error = {0};
    CHECK_OK(weft_read(program, value, WEFT_F64, out, count * (int64_t)sizeof *out, &error), error);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++)
        wrong += out[i] != expected;
    CHECK_EQ_INT(wrong, 0);
}

/* x counts by ones; the sum of x over all ranks' rows, which are read before and after it is written. */
static void test_a_replicated_variable_is_there_once(void)
{
    static const int64_t sizes[] = {1, 7, 512, 513, MOST};
    static const char *const meshes[] = {"data:2", "data:3", "data:4"};
    for (size_t m = 0; m < 3; m++)
        for (size_t s = 0; s < 5; s++) {
            const weft_dim column = {"column", sizes[s]}, batch = {"batch", 4};
            weft_program *program = NULL;
            weft_error error = {0};
            rig r;
            if (!rig_open(&r, meshes[m], "batch:data", 0)) return;
            weft_value x =
                weft_variable(r.graph, "x", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
            weft_value in = weft_input(r.graph, "in", WEFT_F64, WEFT_DIMS(batch));
            weft_value sum =
                weft_sum(WEFT_DIMS(column), weft_einsum(WEFT_DIMS(batch, column), in, x));
            weft_value update = weft_assign(x, weft_shift(x, 1.0));
            if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(sum, update), NULL, &program,
                                      &error),
                         error)) {
                const double ones[] = {1, 1, 1, 1};
                CHECK_OK(weft_write(program, in, WEFT_F64, ones, sizeof ones, &error), error);
                CHECK(is_common(program, x, 0, weft_mesh_n_ranks(r.mesh) - 1));
                run_often(program, RUNS);
                check_all(program, x, sizes[s], 1.0 + RUNS);
                check_all(program, sum, sizes[s], 4.0 * RUNS);
            }
            weft_program_destroy(&program);
            rig_close(&r);
        }
}

/* Those that differ along the other axis hold another part. */
static void test_parts_are_held_by_those_that_have_them(void)
{
    const weft_dim row = {"row", 301}, column = {"column", 5};
    weft_program *program = NULL;
    weft_error error = {0};
    rig r;
    if (!rig_open(&r, "data:2,model:2", "row:model", 0)) return;
    weft_value x =
        weft_variable(r.graph, "x", WEFT_F64, WEFT_DIMS(row, column), weft_constant_of(2.0));
    weft_value y = weft_variable(r.graph, "y", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
    weft_value both = weft_group(
        r.graph, WEFT_VALUES(weft_assign(x, weft_add(x, y)), weft_assign(y, weft_scale(y, -1.0))));
    if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(both), NULL, &program, &error),
                 error)) {
        CHECK(is_common(program, x, 0, 2) && is_common(program, x, 1, 3));
        CHECK(!is_common(program, x, 0, 1) && is_common(program, y, 0, 3));
        run_often(program, RUNS + 1);
        check_all(program, x, 301 * 5, 3.0);
        check_all(program, y, 5, -1.0);
    }
    weft_program_destroy(&program);
    rig_close(&r);
}

/* Copies: two variables change places. */
static void test_common_variables_swap(void)
{
    const weft_dim column = {"column", 1000};
    weft_program *program = NULL;
    weft_error error = {0};
    rig r;
    if (!rig_open(&r, "data:3", "", 0)) return;
    weft_value x = weft_variable(r.graph, "x", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
    weft_value y = weft_variable(r.graph, "y", WEFT_F64, WEFT_DIMS(column), weft_constant_of(2.0));
    weft_value both = weft_group(r.graph, WEFT_VALUES(weft_assign(x, y), weft_assign(y, x)));
    if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(both), NULL, &program, &error),
                 error)) {
        CHECK(is_common(program, x, 0, 2) && is_common(program, y, 0, 2));
        run_often(program, RUNS + 1);
        check_all(program, x, 1000, 2.0);
        check_all(program, y, 1000, 1.0);
    }
    weft_program_destroy(&program);
    rig_close(&r);
}

/* x = 2 v, where v = x + 1 is wanted as well: the loop that writes x makes v, which every rank has for itself. */
static weft_values mixed(weft_graph *g, weft_dim column, weft_value made[3])
{
    made[2] = weft_variable(g, "x", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
    weft_value v = weft_shift(made[2], 1.0);
    made[0] = weft_assign(made[2], weft_scale(v, 2.0));
    made[1] = v;
    return (weft_values){made, 2};
}

static void test_what_else_a_loop_makes_is_made_on_all(void)
{
    const weft_dim column = {"column", 3000};
    weft_program *program = NULL;
    weft_error error = {0};
    weft_value made[3];
    rig r;
    if (!rig_open(&r, "data:2", "", 0)) return;
    const weft_values values = mixed(r.graph, column, made);
    if (CHECK_OK(weft_compile(r.mesh, r.layout, values, NULL, &program, &error), error)) {
        CHECK(!is_common(program, made[2], 0, 1));
        double x = 1.0;
        for (int i = 0; i < 10; i++, x = 2 * (x + 1))
            run_often(program, 1);
        check_all(program, made[2], 3000, x);
        check_all(program, made[1], 3000, x / 2);
    }
    weft_program_destroy(&program);
    rig_close(&r);
}

/* The first program holds x in common; the second writes it in a loop that cannot be shared out. */
static void test_another_program_may_write_it_otherwise(void)
{
    const weft_dim column = {"column", 3000};
    weft_program *first = NULL, *second = NULL;
    weft_error error = {0};
    weft_value made[3];
    rig r;
    if (!rig_open(&r, "data:4", "", 0)) return;
    weft_value own =
        weft_variable(r.graph, "x", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
    weft_value update = weft_assign(own, weft_shift(own, 1.0));
    const weft_values values = mixed(r.second, column, made);
    if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(update), NULL, &first, &error),
                 error)) {
        const weft_compile_options options = {.share = first};
        CHECK_OK(weft_compile(r.mesh, r.layout, values, &options, &second, &error), error);
        CHECK(is_common(first, own, 0, 3) && is_common(second, made[2], 0, 3));
        double x = 1.0, v = 0.0;
        for (int i = 0; i < 10; i++) {
            run_often(first, 1);
            run_often(second, 1);
            v = x + 1 + 1, x = 2 * v;
        }
        check_all(first, own, 3000, x);
        check_all(second, made[1], 3000, v);
    }
    weft_program_destroy(&second);
    weft_program_destroy(&first);
    rig_close(&r);
}

/* Adam of a parameter of odd sizes, split over nothing or over model. */
static void train_adam(const char *mesh, const char *layout, int zero, weft_dim a, weft_dim b,
                       double *w)
{
    const weft_dim batch = {"batch", 12};
    static double x[MOST];
    weft_program *program = NULL;
    weft_error error = {0};
    rig r;
    if (!rig_open(&r, mesh, layout, zero)) return;
    weft_value p = weft_variable(r.graph, "p", WEFT_F64, WEFT_DIMS(a, b), weft_normal(0.0, 1.0));
    weft_value in = weft_input(r.graph, "in", WEFT_F64, WEFT_DIMS(batch, a));
    weft_value loss = weft_mean(weft_square(weft_einsum(WEFT_DIMS(batch, b), in, p)));
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 0.01});
    if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(loss, update), NULL, &program, &error),
                 error)) {
        for (int64_t i = 0; i < batch.size * a.size; i++)
            x[i] = (double)((i * 37) % 101) / 101 - 0.4;
        const int64_t bytes = batch.size * a.size * (int64_t)sizeof *x;
        CHECK_OK(weft_write(program, in, WEFT_F64, x, bytes, &error), error);
        CHECK(is_common(program, p, 0, weft_mesh_n_ranks(r.mesh) - 1) || strstr(layout, "model"));
        run_often(program, 5);
        CHECK_OK(weft_read(program, p, WEFT_F64, w, a.size * b.size * (int64_t)sizeof *w, &error),
                 error);
    }
    weft_program_destroy(&program);
    rig_close(&r);
}

/* ZeRO 1: what each rank has updated it brings to where all have it; the same bits as where all update all, unless
 * the gradient is a part of a product that BLAS does: of a matrix with fewer rows it rounds the last ones otherwise. */
static void test_gathered_parameters_are_there_once(void)
{
    static const int64_t sizes[][2] = {{1, 1}, {2, 1}, {7, 5}, {64, 3}, {3, 301}, {250, 240}};
    static const char *const places[][2] = {{"data:2", "batch:data"},
                                            {"data:3", "batch:data"},
                                            {"data:2,other:2", "batch:data"},
                                            {"data:2,other:2", "batch:data+other"},
                                            {"data:2,model:2", "batch:data,b:model"},
                                            {"data:2,model:2", "batch:data,a:model"}};
    static double w[2][MOST];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            const weft_dim a = {"a", sizes[s][0]}, b = {"b", sizes[s][1]};
            for (int zero = 0; zero < 2; zero++)
                train_adam(places[p][0], places[p][1], zero, a, b, w[zero]);
            for (int64_t i = 0; i < a.size * b.size && !weft_gemm_has(WEFT_F64); i++)
                CHECK_CLOSE(w[0][i], w[1][i], 1e-13);
            if (weft_gemm_has(WEFT_F64))
                CHECK(memcmp(w[0], w[1], (size_t)(a.size * b.size) * sizeof **w) == 0);
        }
}

/* ZeRO 3: what is stored in shards has no copies. */
static void test_shards_have_no_copies(void)
{
    const weft_dim batch = {"batch", 8}, column = {"column", 64};
    weft_program *program = NULL;
    weft_error error = {0};
    rig r;
    if (!rig_open(&r, "data:2", "batch:data", 3)) return;
    weft_value x = weft_variable(r.graph, "x", WEFT_F64, WEFT_DIMS(column), weft_constant_of(1.0));
    weft_value in = weft_input(r.graph, "in", WEFT_F64, WEFT_DIMS(batch));
    weft_value sum = weft_sum(WEFT_DIMS(column), weft_einsum(WEFT_DIMS(batch, column), in, x));
    weft_value update = weft_assign(x, weft_add(x, sum));
    if (CHECK_OK(weft_compile(r.mesh, r.layout, WEFT_VALUES(sum, update), NULL, &program, &error),
                 error)) {
        const double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        CHECK_OK(weft_write(program, in, WEFT_F64, ones, sizeof ones, &error), error);
        CHECK(!is_common(program, x, 0, 1));
        run_often(program, 3);
        check_all(program, x, 64, 9.0 * 9.0 * 9.0);
    }
    weft_program_destroy(&program);
    rig_close(&r);
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error)) {
        RUN(test_a_replicated_variable_is_there_once);
        RUN(test_parts_are_held_by_those_that_have_them);
        RUN(test_common_variables_swap);
        RUN(test_what_else_a_loop_makes_is_made_on_all);
        RUN(test_another_program_may_write_it_otherwise);
        RUN(test_gathered_parameters_are_there_once);
        RUN(test_shards_have_no_copies);
    }
    weft_world_close();
    return weft_test_report();
}
