/* Variables that processes of one host hold in common: there once, written once, by all together; the same bits as where
 * each process has its own.
 * RANKS: 2 3 4
 */
#include "weft/collectives.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/program.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/stacked.h"

enum { RUNS = 30, ROWS = 12, WIDTH = 701, OUT = 5 };

static weft_world world;
static bool is_apart; /* each process has its own */

typedef struct net {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_value x, w, loss;
    weft_program *program, *second;
} net;

static void net_close(net *n)
{
    weft_program_destroy(&n->second);
    weft_program_destroy(&n->program);
    weft_graph_destroy(&n->graph);
    weft_layout_destroy(&n->layout);
    weft_mesh_destroy(&n->mesh);
}

/* Least squares by Adam; and a second program that looks at w. */
static bool net_open(net *n, const char *mesh, const char *layout, int zero)
{
    const weft_dim row = {"row", ROWS}, in = {"in", WIDTH}, out = {"out", OUT};
    weft_optimizer_options options = {.rate = 0.01};
    weft_error error = {0};
    *n = (net){0};
    n->graph = weft_graph_create(3);
    n->x = weft_input(n->graph, "x", WEFT_F32, WEFT_DIMS(row, in));
    n->w = weft_variable(n->graph, "w", WEFT_F32, WEFT_DIMS(in, out), weft_constant_of(0.5));
    weft_value y = weft_einsum(WEFT_DIMS(row, out), n->x, n->w);
    n->loss = weft_mean(weft_mul(y, y));
    const weft_value update = weft_adam(n->loss, &options);
    const weft_value total = weft_sum(WEFT_DIMS(out), n->w);
    if (!CHECK_OK(weft_mesh_create(&world, mesh, &n->mesh, &error), error) ||
        !CHECK_OK(weft_layout_create(layout, &n->layout, &error), error) ||
        !CHECK_OK(weft_layout_store(n->layout, zero, "row", &error), error) ||
        !CHECK_OK(weft_compile(n->mesh, n->layout, WEFT_VALUES(n->loss, update), NULL, &n->program,
                               &error),
                  error))
        return false;
    const weft_compile_options share = {.share = n->program};
    return CHECK_OK(
        weft_compile(n->mesh, n->layout, WEFT_VALUES(total), &share, &n->second, &error), error);
}

static void fill(net *n)
{
    static float x[ROWS * WIDTH], w[WIDTH * OUT];
    weft_error error = {0};
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)((i * 37) % 101) / 101 - 0.4f;
    CHECK_OK(weft_write(n->program, n->x, WEFT_F32, x, sizeof x, &error), error);
    for (int round = 0; round < 3; round++) { /* one after the other: nobody finds what is older */
        for (int i = 0; i < WIDTH * OUT; i++)
            w[i] = (float)(round + 1) * (float)(i % 13);
        CHECK_OK(weft_write(n->program, n->w, WEFT_F32, w, sizeof w, &error), error);
    }
}

/* w after some runs, between which the other program runs too. */
static void train(const char *mesh, const char *layout, int zero, float *w)
{
    weft_error error = {0};
    net n;
    if (net_open(&n, mesh, layout, zero)) {
        fill(&n);
        for (int i = 0; i < RUNS; i++) {
            CHECK_OK(weft_run(n.program, &error), error);
            CHECK_OK(weft_run(n.second, &error), error);
        }
        CHECK_OK(weft_read(n.program, n.w, WEFT_F32, w, WIDTH * OUT * sizeof *w, &error), error);
    }
    net_close(&n);
}

/* What the first process writes the others have; they have come out of what they did before, and see it before they go on. */
static void check_once(int zero)
{
    weft_error error = {0};
    weft_box box;
    net n;
    char mesh[32];
    snprintf(mesh, sizeof mesh, "data:%d", world.n_processes);
    if (world.n_processes > 1 && net_open(&n, mesh, "row:data", zero)) {
        fill(&n);
        CHECK_OK(weft_run(n.program, &error), error);
        float *w = weft_local(n.program, n.w, world.process, &box);
        if (world.process == 0) w[WIDTH * OUT - 1] = 123.5f;
        CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK);
        CHECK((w[WIDTH * OUT - 1] == 123.5f) == (!is_apart || world.process == 0));
        CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK);
        net_close(&n);
    }
}

static void test_it_is_there_once(void)
{
    check_once(0);
    check_once(1); /* its parts are gathered there */
}

enum { LAYOUTS = 6 };
static float first[LAYOUTS][WIDTH * OUT]; /* by layout: in common */

static void test_bits_do_not_depend_on_it(void)
{
    static float w[WIDTH * OUT];
    static const struct {
        const char *text;
        int zero;
    } layouts[LAYOUTS] = {{"row:data", 0},           {"row:data", 1},
                          {"row:data,out:model", 0}, {"row:data,in:model", 0},
                          {"row:data+model", 0},     {"row:data,in:model", 1}};
    char mesh[32];
    const int n = world.n_processes;
    for (int l = 0; l < LAYOUTS; l++) {
        if (l > 1 && n % 2 != 0) continue;
        if (l < 2)
            snprintf(mesh, sizeof mesh, "data:%d", n);
        else
            snprintf(mesh, sizeof mesh, "data:%d,model:2", n / 2);
        if (n == 1) snprintf(mesh, sizeof mesh, "data:1,model:1");
        train(mesh, layouts[l].text, layouts[l].zero, w);
        if (is_apart)
            CHECK(memcmp(w, first[l], sizeof w) == 0);
        else
            memcpy(first[l], w, sizeof w);
    }
}

static void run_all(void)
{
    RUN(test_it_is_there_once);
    RUN(test_bits_do_not_depend_on_it);
    is_apart = true;
}

int main(void)
{
    weft_error error = {0};
    weft_lanes_choose(1);
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    run_all();
    test_again_by_stacked(run_all);
    weft_world_close();
    return weft_test_report();
}
