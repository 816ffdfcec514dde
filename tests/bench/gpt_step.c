/* gpt_step: milliseconds of one training step of a small transformer under several meshes and
 * layouts. */
#include "apps/gpt/model.h"
#include "bench.h"
#include "oracle.h"
#include "weft/optim.h"

enum { WARM = 3, STEPS = 10 };

typedef struct bench_case {
    const char *mesh, *layout;
    int zero;
} bench_case;

static const bench_case cases[] = {
    {"data:1", "", 0},
    {"data:2", "batch:data", 0},
    {"data:2", "batch:data", 3},
    {"model:2", "hidden:model,heads:model,vocab:model", 0},
    {"model:2", "seq:model", 0},
    {"data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 0},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static weft_status time_steps(weft_program *program, double *milliseconds, weft_error *error)
{
    double best = 1e30;
    for (int i = 0; i < WARM + STEPS; i++) {
        const double begin = bench_now();
        WEFT_TRY(weft_run(program, error));
        const double took = bench_now() - begin;
        if (i >= WARM && took < best) best = took;
    }
    *milliseconds = 1e3 * best;
    return WEFT_OK;
}

static weft_status measure(const weft_world *world, const bench_case *c, weft_error *error)
{
    const gpt_shape shape = {.batch = 16,
                             .seq = 64,
                             .layers = 4,
                             .width = 128,
                             .heads = 4,
                             .hidden = 512,
                             .vocab = 256,
                             .dropout = 0.1,
                             .dtype = WEFT_F32};
    weft_graph *graph = weft_graph_create(1);
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_usage usage = {0};
    gpt_model model;
    double milliseconds = 0.0;
    weft_value loss = gpt_loss(&shape, graph, &model);
    weft_value update = weft_adamw(loss, &(weft_optimizer_options){.rate = 1e-3, .clip = 1.0});
    weft_status status = weft_mesh_create(world, c->mesh, &mesh, error);
    if (status == WEFT_OK) status = weft_layout_create(c->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, c->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, error);
    if (status == WEFT_OK) status = time_steps(program, &milliseconds, error);
    if (status == WEFT_OK) status = weft_plan_usage(program, 0, &usage, error);
    if (status == WEFT_OK)
        printf("%-16s %-50s %4d %8.2f %8.1f %8d\n", c->mesh, c->layout, c->zero, milliseconds,
               1e-6 * usage.flops * weft_mesh_n_ranks(mesh) / milliseconds, usage.n_steps);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&graph);
    return status;
}

int main(void)
{
    weft_error error = {0};
    weft_world world;
    weft_status status = weft_world_open(&world, &error);
    printf("%-16s %-50s %4s %8s %8s %8s\n", "mesh", "layout", "zero", "ms/step", "GFLOP/s",
           "steps");
    for (int i = 0; i < N_CASES && status == WEFT_OK; i++)
        status = measure(&world, &cases[i], &error);
    weft_world_close();
    return bench_end("gpt_step", status, &error);
}
