/* einsum: GFLOP/s of matrix products through a program, beside the same product by cblas on plain
 * buffers. */
#include <cblas.h>
#include <stdlib.h>

#include "bench.h"
#include "oracle.h"

enum { REPEATS = 8 };

typedef struct product {
    int64_t m, k, n;
} product;

static const product products[] = {{64, 64, 64},     {256, 256, 256},    {1024, 128, 512},
                                   {1024, 512, 128}, {1024, 1024, 1024}, {4096, 64, 256}};
enum { N_PRODUCTS = sizeof products / sizeof products[0] };

static double time_cblas(const product *p)
{
    float *a = calloc((size_t)(p->m * p->k), sizeof *a),
          *b = calloc((size_t)(p->k * p->n), sizeof *b);
    float *c = calloc((size_t)(p->m * p->n), sizeof *c);
    double best = 1e30;
    for (int i = 0; i < REPEATS && a != NULL && b != NULL && c != NULL; i++) {
        const double begin = bench_now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)p->m, (int)p->n, (int)p->k,
                    1.0f, a, (int)p->k, b, (int)p->n, 0.0f, c, (int)p->n);
        const double took = bench_now() - begin;
        if (took < best) best = took;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

static weft_status time_weft(weft_mesh *mesh, const product *p, double *best, weft_error *error)
{
    const weft_dim m = {"m", p->m}, k = {"k", p->k}, n = {"n", p->n};
    weft_graph *graph = weft_graph_create(1);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_value a = weft_input(graph, "a", WEFT_F32, WEFT_DIMS(m, k));
    weft_value b = weft_input(graph, "b", WEFT_F32, WEFT_DIMS(k, n));
    weft_value c = weft_einsum(WEFT_DIMS(m, n), a, b);
    *best = 1e30;
    weft_status status = weft_layout_create("", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(c), NULL, &program, error);
    for (int i = 0; i < REPEATS && status == WEFT_OK; i++) {
        const double begin = bench_now();
        status = weft_run(program, error);
        const double took = bench_now() - begin;
        if (took < *best) *best = took;
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
    printf("%24s %12s %12s   float32, %d cores\n", "m x k x n", "weft GF/s", "cblas GF/s",
           status == WEFT_OK ? weft_mesh_cores_per_rank(mesh) : 0);
    for (int i = 0; i < N_PRODUCTS && status == WEFT_OK; i++) {
        const product *p = &products[i];
        double seconds = 0.0;
        const double flops = 2.0 * (double)p->m * (double)p->k * (double)p->n;
        status = time_weft(mesh, p, &seconds, &error);
        if (status == WEFT_OK)
            printf("%8lld x %5lld x %5lld %12.1f %12.1f\n", (long long)p->m, (long long)p->k,
                   (long long)p->n, 1e-9 * flops / seconds, 1e-9 * flops / time_cblas(p));
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return bench_end("einsum", status, &error);
}
