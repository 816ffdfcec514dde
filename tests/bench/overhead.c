/* overhead: what the executor adds to an op: nanoseconds per op of a chain of 1000 ops on 4
 * elements.
 *
 * The chain alternates an einsum with a softmax, which no pass can fuse with its neighbours.
 */
#include "bench.h"
#include "oracle.h"

enum { OPS = 1000, REPEATS = 200 };

static weft_status measure(weft_mesh *mesh, double *nanoseconds, int *n_steps, weft_error *error)
{
    const weft_dim a = {"a", 2}, b = {"b", 2}, c = {"c", 2};
    weft_graph *graph = weft_graph_create(1);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_usage usage = {0};
    weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(a, b));
    weft_value w = weft_input(graph, "w", WEFT_F32, WEFT_DIMS(b, c));
    for (int i = 0; i < OPS / 2; i++)
        x = weft_rename(weft_softmax(weft_einsum(WEFT_DIMS(a, c), x, w), c), c, b);
    weft_status status = weft_layout_create("", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(x), NULL, &program, error);
    double best = 1e30;
    for (int i = 0; i < REPEATS && status == WEFT_OK; i++) {
        const double begin = bench_now();
        status = weft_run(program, error);
        const double took = bench_now() - begin;
        if (took < best) best = took;
    }
    if (status == WEFT_OK) status = weft_plan_usage(program, 0, &usage, error);
    *nanoseconds = 1e9 * best / OPS;
    *n_steps = usage.n_steps;
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    return status;
}

int main(void)
{
    weft_error error = {0};
    weft_world world;
    weft_mesh *mesh = NULL;
    double nanoseconds = 0.0;
    int n_steps = 0;
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK) status = weft_mesh_create(&world, "data:1", &mesh, &error);
    if (status == WEFT_OK) status = measure(mesh, &nanoseconds, &n_steps, &error);
    if (status == WEFT_OK)
        printf("%8s %8s %10s\n%8d %8d %10.0f\n", "ops", "steps", "ns per op", OPS, n_steps,
               nanoseconds);
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return bench_end("overhead", status, &error);
}
