/* elide_casts_test: a product of bf16 that only a cast to bf16 reads stores bf16 itself, with the bits of that cast. A partial
 * result stays f32, and is rounded after the exchange.
 */
#include "ops/compile/passes.h"
#include "ops/run/program.h"
#include "weft/ops.h"

#include "test.h"

enum { M = 7, N = 10, K = 523 };
static const weft_dim row = {"row", M}, column = {"column", N}, summed = {"summed", K};

typedef struct counts {
    int products, narrow;
} counts;

static counts count_steps(const weft_plan *plan)
{
    counts n = {0};
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (step->kind != WEFT_STEP_KERNEL) continue;
        n.products++;
        n.narrow += plan->placed[step->out[0]].type.dtype == WEFT_BF16;
    }
    return n;
}

static void feed(weft_program *program, weft_value value, int64_t count, int period)
{
    weft_error error = {0};
    float numbers[N * K];
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)(i * i % period - period / 2) / 64;
    CHECK_OK(
        weft_write(program, value, WEFT_F32, numbers, count * (int64_t)sizeof *numbers, &error),
        error);
}

/* relu(a b) in bf16, or, where the sums are an output as well, of these rounded behind. */
static counts multiply(const char *mesh_text, const char *rules, bool keeps_sums, float *result)
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    weft_value a = weft_input(g, "a", WEFT_F32, WEFT_DIMS(row, summed)),
               b = weft_input(g, "b", WEFT_F32, WEFT_DIMS(summed, column));
    weft_value product =
        weft_einsum(WEFT_DIMS(row, column), weft_cast(a, WEFT_BF16), weft_cast(b, WEFT_BF16));
    weft_value y = weft_cast(weft_relu(product), WEFT_F32);
    /* of the cast that einsum ends with: its operand */
    const weft_value sums = {g, g->nodes[g->tensors[product.id].node].in[0]};
    const weft_values outputs = {(weft_value[]){y, sums}, keeps_sums ? 2 : 1};
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, outputs, NULL, &program, &error), error);
    feed(program, a, M * K, 101);
    feed(program, b, K * N, 89);
    CHECK_OK(weft_run(program, &error), error);
    CHECK_OK(weft_read(program, y, WEFT_F32, result, sizeof(float) * M * N, &error), error);
    const counts n = count_steps(program->plan);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return n;
}

static float behind[M * N], found[M * N];

static void test_a_result_that_is_only_rounded_comes_out_so(void)
{
    static const char *const places[][2] = {
        {"data:1", ""}, {"data:2", "row:data"}, {"data:2,model:2", "row:data,column:model"}};
    const counts apart = multiply("data:1", "", true, behind);
    CHECK_EQ_INT(apart.products, 1);
    CHECK_EQ_INT(apart.narrow, 0);
    for (int i = 0; i < 3; i++) {
        const counts n = multiply(places[i][0], places[i][1], false, found);
        CHECK_EQ_INT(n.products, 1);
        CHECK_EQ_INT(n.narrow, 1);
        CHECK(memcmp(found, behind, sizeof found) == 0);
    }
}

static void test_parts_of_sums_stay_f32(void)
{
    const counts n = multiply("model:2", "summed:model", false, found);
    CHECK_EQ_INT(n.products, 1);
    CHECK_EQ_INT(n.narrow, 0);
    for (int i = 0; i < M * N; i++)
        CHECK_CLOSE(found[i], behind[i], 0x1p-7);
}

int main(void)
{
    RUN(test_a_result_that_is_only_rounded_comes_out_so);
    RUN(test_parts_of_sums_stay_f32);
    return weft_test_report();
}
