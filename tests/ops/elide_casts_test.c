/* elide_casts_test: a product of bf16 that only a cast to bf16 reads stores bf16 itself, with the bits of that cast. A partial
 * result stays f32, and is rounded after the exchange. A variable that only products read in bf16 is not copied for them.
 */
#include "ops/compile/passes.h"
#include "ops/run/program.h"
#include "weft/ops.h"
#include "weft/optim.h"

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

/* An operand of bf16 that is widened for a product with f32 makes no product of bf16 of it. */
static void test_f32_beside_widened_numbers_is_not_rounded(void)
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(1);
    weft_value a = weft_input(g, "a", WEFT_F32, WEFT_DIMS(row, summed)),
               b = weft_input(g, "b", WEFT_F32, WEFT_DIMS(summed, column));
    weft_value half = weft_neg(weft_cast(a, WEFT_BF16));
    weft_value y =
        weft_cast(weft_einsum(WEFT_DIMS(row, column), weft_cast(half, WEFT_F32), b), WEFT_BF16);
    weft_value out = weft_cast(y, WEFT_F32);
    CHECK_OK(weft_mesh_create(&world, "data:1", &mesh, &error), error);
    CHECK_OK(weft_layout_create("", &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(out), NULL, &program, &error), error);
    for (uint32_t s = 0; s < program->plan->n_steps; s++) {
        const weft_step *step = &program->plan->steps[s];
        for (int i = 0; i < step->n_in && step->kind == WEFT_STEP_KERNEL; i++)
            CHECK(program->plan->placed[step->in[i]].type.dtype == WEFT_F32);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
}

/* ---- variables -------------------------------------------------------------------------------------- */

static const weft_dim batch = {"batch", 6}, in = {"in", 24}, out = {"out", 40};

/* Operands of products that are variables. */
static counts count_operands(const weft_plan *plan)
{
    counts n = {0};
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        if (step->kind != WEFT_STEP_KERNEL) continue;
        n.products++;
        for (int i = 0; i < step->n_in; i++)
            n.narrow += plan->placed[step->in[i]].home == WEFT_VARIABLE_HOME;
    }
    return n;
}

/* A training of two layers with one weight, whose rounded numbers are an output as well, or not: losses of some steps. */
static counts train(const char *mesh_text, const char *rules, bool is_read_else, double losses[4])
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(7);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, in)),
               w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0, 0.2)),
               half = weft_cast(w, WEFT_BF16);
    weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, out), weft_cast(x, WEFT_BF16), half));
    weft_value y = weft_sub(weft_einsum(WEFT_DIMS(batch, in), h, half), weft_cast(x, WEFT_BF16));
    weft_value loss = weft_mean(weft_square(weft_cast(y, WEFT_F32)));
    const weft_value update = weft_sgd(loss, &(weft_optimizer_options){.rate = 0.3});
    const weft_values outputs = {(weft_value[]){loss, update, weft_cast(half, WEFT_F32)},
                                 is_read_else ? 3 : 2};
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, outputs, NULL, &program, &error), error);
    feed(program, x, batch.size * in.size, 101);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read_scalar(program, loss, &losses[i], &error), error);
    }
    const counts n = count_operands(program->plan);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
    return n;
}

static void test_a_variable_is_rounded_by_those_who_read_it(void)
{
    double rounded[4], cast[4], split[4];
    const counts n = train("data:1", "", false, rounded), others = train("data:1", "", true, cast);
    CHECK_EQ_INT(n.narrow, 3); /* two products, and the gradient of what is between them */
    CHECK_EQ_INT(others.narrow, 0);
    CHECK(memcmp(rounded, cast, sizeof cast) == 0);
    CHECK(rounded[3] < 0.9 * rounded[0]);
    CHECK_EQ_INT(train("data:2", "batch:data", false, split).narrow, 3);
    for (int i = 0; i < 4; i++)
        CHECK_CLOSE(split[i], rounded[i], 2e-3);
}

int main(void)
{
    RUN(test_a_result_that_is_only_rounded_comes_out_so);
    RUN(test_parts_of_sums_stay_f32);
    RUN(test_f32_beside_widened_numbers_is_not_rounded);
    RUN(test_a_variable_is_rounded_by_those_who_read_it);
    return weft_test_report();
}
