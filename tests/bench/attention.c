/* attention: milliseconds of attention, and of it and its gradients, and their rate: causal, windows, a padding mask, a bias, and
 * the shapes of gpt, whose heads lie side by side in a row. The rate counts what is seen alone, 2 products forward, 7 with gradients.
 */
#include <string.h>

#include "bench.h"
#include "oracle.h"
#include "weft/autodiff.h"

enum { WARM = 2, REPEATS = 30 };

typedef struct form {
    const char *name;
    int64_t batch, heads, seq, kv, window;
    bool causal, bias, mask, is_side_by_side;
} form;

static const form forms[] = {
    {"gpt2", 1, 12, 1024, 64, 0, true, false, false, true},
    {"gpt2, short", 4, 12, 64, 64, 0, true, false, false, true},
    {"char", 12, 4, 64, 32, 0, true, false, false, true},
    {"one head", 1, 1, 1024, 64, 0, true, false, false, true},
    {"full", 1, 8, 1024, 64, 0, false, false, false, false},
    {"causal", 1, 8, 1024, 64, 0, true, false, false, false},
    {"causal, bias", 1, 8, 1024, 64, 0, true, true, false, false},
    {"causal, padding", 1, 8, 1024, 64, 0, true, false, true, false},
    {"causal", 1, 8, 4096, 64, 0, true, false, false, false},
    {"causal, window 1024", 1, 8, 4096, 64, 1024, true, false, false, false},
    {"causal, window 128", 1, 8, 4096, 64, 128, true, false, false, false},
    {"window 128", 1, 8, 4096, 64, 128, false, false, false, false},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static weft_value variable(weft_graph *graph, const char *name, weft_shape shape)
{
    return weft_variable(graph, name, WEFT_F32, shape, weft_normal(0.0, 1.0));
}

/* Attention; with its gradients by q, k and v (and bias) for a given gradient of its result. */
static weft_value build(weft_graph *graph, const form *f, bool gradient)
{
    const weft_dim batch = {"batch", f->batch}, heads = {"heads", f->heads}, seq = {"seq", f->seq},
                   key = {"key", f->seq}, kv = {"kv", f->kv};
    const weft_shape shape =
        f->is_side_by_side ? WEFT_DIMS(batch, seq, heads, kv) : WEFT_DIMS(batch, heads, seq, kv);
    weft_attention_options options = {.query = seq,
                                      .memory = seq,
                                      .feature = kv,
                                      .column = key,
                                      .causal = f->causal,
                                      .window = f->window};
    weft_value operands[4] = {variable(graph, "q", shape), variable(graph, "k", shape),
                              variable(graph, "v", shape)};
    int n = 3;
    if (f->bias) operands[n++] = options.bias = variable(graph, "bias", WEFT_DIMS(heads, seq, key));
    if (f->mask) /* the last quarter is padding */
        options.mask =
            weft_less(weft_iota(graph, WEFT_I32, key),
                      weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0.75 * (double)f->seq));
    weft_value y = weft_attention_with(operands[0], operands[1], operands[2], &options);
    if (!gradient) return y;
    weft_value gradients[5];
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_mul(y, variable(graph, "dy", shape)));
    weft_gradients(loss, (weft_values){operands, n}, gradients, 0);
    gradients[n++] = y;
    return weft_group(graph, (weft_values){gradients, n});
}

/* Multiply-adds of one product of all scores that are seen, by two. */
static double count_work(const form *f)
{
    const double seq = (double)f->seq, window = f->window > 0 ? (double)f->window : seq;
    const double beside = window * seq - window * (window - 1) / 2; /* of one side, with itself */
    const double seen = f->causal ? beside : 2 * beside - seq;
    return 2 * (double)(f->batch * f->heads * f->kv) * seen * (f->mask ? 0.75 : 1);
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

/* attention [NAME]: the forms of that name alone */
int main(int argc, char **argv)
{
    weft_error error = {0};
    weft_world world;
    weft_mesh *mesh = NULL;
    weft_status status = weft_world_open(&world, &error);
    if (status == WEFT_OK) status = weft_mesh_create(&world, "data:1", &mesh, &error);
    printf("%24s %22s %12s %8s %12s %8s   float32, %d cores\n", "", "batch x heads x seq",
           "forward ms", "GFLOP/s", "gradients ms", "GFLOP/s",
           status == WEFT_OK ? weft_mesh_lanes(mesh) : 0);
    for (int i = 0; i < N_FORMS && status == WEFT_OK; i++) {
        double forward = 0, back = 0;
        if (argc > 1 && strcmp(forms[i].name, argv[1]) != 0) continue;
        status = time_form(mesh, &forms[i], false, &forward, &error);
        if (status == WEFT_OK) status = time_form(mesh, &forms[i], true, &back, &error);
        const form *f = &forms[i];
        const double work = 1e-9 * count_work(f);
        if (status == WEFT_OK)
            printf("%24s %4lld x %4lld x %4lld x %2lld %10.2f %8.0f %12.2f %8.0f\n", f->name,
                   (long long)f->batch, (long long)f->heads, (long long)f->seq, (long long)f->kv,
                   1e3 * forward, 2 * work / forward, 1e3 * back, 7 * work / back);
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return bench_end("attention", status, &error);
}
