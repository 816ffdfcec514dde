/* random_bits_test: random numbers, initial values, masks and the order of samples are the same bits on every
 * processor.
 *
 * The digests were taken on x86-64, where forms without and with fused multiplication (AVX2, AVX-512) give the same.
 */
#include "ops/run/program.h"

#include "weft/collectives.h"
#include "weft/io.h"
#include "weft/ops.h"
#include "weft/program.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { N = 30011 }; /* more than a block, and no multiple of a vector */

/* FNV-1a, 64 bits. */
static uint64_t digest_of(const void *memory, size_t bytes)
{
    uint64_t digest = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ ((const unsigned char *)memory)[i]) * 1099511628211u;
    return digest;
}

static void check_digest(const char *what, const void *memory, size_t bytes, uint64_t kept)
{
    char text[200];
    const uint64_t found = digest_of(memory, bytes);
    snprintf(text, sizeof text, "%s: digest 0x%016llx, kept 0x%016llx", what,
             (unsigned long long)found, (unsigned long long)kept);
    weft_test_check(found == kept, __FILE__, __LINE__, text);
}

/* ---- initial values -------------------------------------------------------------------------- */

static void test_initial_values(void)
{
    static const struct {
        weft_initial initial;
        weft_dtype dtype;
        uint64_t kept;
    } cases[] = {
        {{WEFT_INITIAL_NORMAL, 0.25, 0.02}, WEFT_F32, 0xd4317bc653739a2cu},
        {{WEFT_INITIAL_NORMAL, 0.25, 0.02}, WEFT_F64, 0xcf745664f86c7f86u},
        {{WEFT_INITIAL_NORMAL, 0.25, 0.02}, WEFT_BF16, 0x89d0adc162114a09u},
        {{WEFT_INITIAL_NORMAL, 0.25, 0.02}, WEFT_F16, 0xebd0ca9e6ac1bbe9u},
        {{WEFT_INITIAL_UNIFORM, -0.3, 0.7}, WEFT_F32, 0xbd98478063ae7d75u},
        {{WEFT_INITIAL_UNIFORM, -0.3, 0.7}, WEFT_F64, 0xb3cbf2536d07b4c3u},
        {{WEFT_INITIAL_UNIFORM, -300, 500}, WEFT_I32, 0xd8ea3a10bc158bf3u},
    };
    static double memory[N];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char what[80];
        weft_error error = {0};
        const weft_view view = {
            .data = memory, .dtype = cases[c].dtype, .shape = {1, {{"a", N}}}, .box = {{0}, {N}}};
        const weft_variable_attributes variable = {.name = "block0.query",
                                                   .initial = cases[c].initial};
        CHECK_OK(weft_initialize(&variable, 7, &view, weft_devices[WEFT_CPU], NULL, &error), error);
        snprintf(what, sizeof what, "initial value %zu", c);
        check_digest(what, memory, N * weft_dtype_bytes(cases[c].dtype), cases[c].kept);
    }
}

/* ---- ops that draw --------------------------------------------------------------------------- */

static weft_value draw_normal(weft_graph *graph, weft_dtype dtype, weft_shape shape)
{
    return weft_random_normal(graph, dtype, shape, -1.5, 0.3);
}
static weft_value draw_uniform(weft_graph *graph, weft_dtype dtype, weft_shape shape)
{
    return weft_random_uniform(graph, dtype, shape, -0.1, 0.9);
}
static weft_value draw_mask(weft_graph *graph, weft_dtype dtype, weft_shape shape)
{
    return weft_dropout(weft_constant(graph, dtype, shape, 1.0), 0.1);
}

static const struct drawn {
    const char *name;
    weft_value (*draw)(weft_graph *graph, weft_dtype dtype, weft_shape shape);
    weft_dtype dtype;
    uint64_t kept;
} all_drawn[] = {
    {"normal f32", draw_normal, WEFT_F32, 0x9168be77bc48a6a6u},
    {"normal f64", draw_normal, WEFT_F64, 0xc2bc010020724ca6u},
    {"uniform f32", draw_uniform, WEFT_F32, 0xa13068ad459eae5cu},
    {"uniform f64", draw_uniform, WEFT_F64, 0x75eeda02543478aau},
    {"dropout f32", draw_mask, WEFT_F32, 0xf7ec95a5b5c0c261u},
    {"dropout f64", draw_mask, WEFT_F64, 0xd7d67c5499895dd5u},
};
enum { N_DRAWN = sizeof all_drawn / sizeof *all_drawn };

static void test_ops_that_draw(void)
{
    static double memory[N];
    weft_world world;
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    weft_program *program = NULL;
    weft_graph *graph = weft_graph_create(11);
    weft_value variables[N_DRAWN], wanted[N_DRAWN];
    const weft_shape shape = {1, {{"a", N}}};
    for (int k = 0; k < N_DRAWN; k++) {
        char name[8];
        snprintf(name, sizeof name, "v%d", k);
        variables[k] = weft_variable(graph, name, all_drawn[k].dtype, shape, weft_normal(0.0, 1.0));
        wanted[k] = weft_assign(variables[k], all_drawn[k].draw(graph, all_drawn[k].dtype, shape));
    }
    CHECK_OK(weft_world_open(&world, &error), error);
    CHECK_OK(weft_mesh_create(&world, "x:2", &mesh, &error), error);
    CHECK_OK(weft_compile(mesh, NULL, (weft_values){wanted, N_DRAWN}, NULL, &program, &error),
             error);
    for (int run = 0; run < 3 && program; run++) /* each draws anew */
        CHECK_OK(weft_run(program, &error), error);
    for (int k = 0; k < N_DRAWN && program; k++) {
        const size_t bytes = N * weft_dtype_bytes(all_drawn[k].dtype);
        CHECK_OK(
            weft_read(program, variables[k], all_drawn[k].dtype, memory, (int64_t)bytes, &error),
            error);
        check_digest(all_drawn[k].name, memory, bytes, all_drawn[k].kept);
    }
    weft_program_destroy(&program);
    weft_graph_destroy(&graph);
    weft_mesh_destroy(&mesh);
    weft_world_close();
}

static void test_the_order_of_samples(void)
{
    static int64_t order[N];
    for (int64_t i = 0; i < N; i++)
        order[i] = weft_permute(42, N, i);
    check_digest("order", order, sizeof order, 0x837bd32990672209u);
}

int main(void)
{
    RUN(test_initial_values);
    RUN(test_ops_that_draw);
    RUN(test_the_order_of_samples);
    return weft_test_report();
}
