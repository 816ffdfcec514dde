/* attention: milliseconds of attention and of attention with its gradients: causal, windows, a padding mask, a bias. */
#include "bench.h"
#include "oracle.h"
#include "weft/autodiff.h"

enum { WARM = 2, REPEATS = 12 };

typedef struct form {
    const char *name;
    int64_t seq, window;
    bool causal, bias, mask;
} form;

static const form forms[] = {
    {"full", 1024, 0, false, false, false},
    {"causal", 1024, 0, true, false, false},
    {"causal, bias", 1024, 0, true, true, false},
    {"causal, padding", 1024, 0, true, false, true},
    {"causal", 4096, 0, true, false, false},
    {"causal, window 1024", 4096, 1024, true, false, false},
    {"causal, window 128", 4096, 128, true, false, false},
    {"window 128", 4096, 128, false, false, false},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

/* The result, or the sum of its gradients by q, k and v (and bias). */
static weft_value build(weft_graph *graph, const form *f, bool gradient)
{
    const weft_dim heads = {"heads", 8}, seq = {"seq", f->seq}, key = {"key", f->seq},
                   kv = {"kv", 64};
    const weft_shape shape = WEFT_DIMS(heads, seq, kv);
    weft_attention_options options = {.query = seq,
                                      .memory = seq,
                                      .feature = kv,
                                      .column = key,
                                      .causal = f->causal,
                                      .window = f->window};
    weft_value operands[4] = {weft_variable(graph, "q", WEFT_F32, shape, weft_normal(0.0, 1.0)),
                              weft_variable(graph, "k", WEFT_F32, shape, weft_normal(0.0, 1.0)),
                              weft_variable(graph, "v", WEFT_F32, shape, weft_normal(0.0, 1.0))};
    int n = 3;
    if (f->bias)
        operands[n++] = options.bias = weft_variable(
            graph, "bias", WEFT_F32, WEFT_DIMS(heads, seq, key), weft_normal(0.0, 1.0));
    if (f->mask) /* the last quarter is padding */
        options.mask =
            weft_less(weft_iota(graph, WEFT_I32, key),
                      weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0.75 * (double)f->seq));
    weft_value y = weft_attention_with(operands[0], operands[1], operands[2], &options);
    if (!gradient) return y;
    weft_value gradients[4];
    weft_gradients(weft_sum(WEFT_SCALAR, weft_square(y)), (weft_values){operands, n}, gradients, 0);
    return weft_group(graph, (weft_values){gradients, n});
}

static weft_status time_form(weft_mesh *mesh, const form *f, bool gradient, double *best,
                             weft_error *error)
{
    weft_graph *graph = weft_graph_create(1);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    const weft_value y = build(graph, f, gradient);
    *best = 1e30;
    weft_status status = weft_layout_create("", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, error);
    for (int i = 0; i < WARM + REPEATS && status == WEFT_OK; i++) {
        const double begin = bench_now();
        status = weft_run(program, error);
        const double took = bench_now() - begin;
        if (i >= WARM && took < *best) *best = took;
    }
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
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK) status = weft_mesh_create(&world, "data:1", &mesh, &error);
    printf("%24s %6s %12s %20s   8 heads x seq x 64, float32, %d cores\n", "", "seq", "forward ms",
           "and gradients ms", status == WEFT_OK ? weft_mesh_cores_per_rank(mesh) : 0);
    for (int i = 0; i < N_FORMS && status == WEFT_OK; i++) {
        double forward = 0, both = 0;
        status = time_form(mesh, &forms[i], false, &forward, &error);
        if (status == WEFT_OK) status = time_form(mesh, &forms[i], true, &both, &error);
        if (status == WEFT_OK)
            printf("%24s %6lld %12.2f %20.2f\n", forms[i].name, (long long)forms[i].seq,
                   1e3 * forward, 1e3 * both);
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return bench_end("attention", status, &error);
}
