/* copy_casts_test: a loss in f32 of logits in bf16 keeps no logits in f32: its loops, forward and backward, widen for themselves,
 * and pick chooses of bf16. The losses of a training are near those of f32.
 */
#include "ops/compile/passes.h"
#include "ops/run/program.h"
#include "weft/ops.h"
#include "weft/optim.h"

#include "test.h"

enum { ROWS = 12, EMBED = 16, VOCAB = 48, STEPS = 6 };
static const weft_dim row = {"row", ROWS}, embed = {"embed", EMBED}, vocab = {"vocab", VOCAB};

/* Of steps that make all scores in a dtype. */
static int count_scores(const weft_plan *plan, weft_dtype dtype)
{
    int n = 0;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        for (int o = 0; o < plan->steps[s].n_out; o++) {
            const weft_type *type = &plan->placed[plan->steps[s].out[o]].type;
            n += type->dtype == dtype && weft_shape_find(&type->shape, "row") >= 0 &&
                 weft_shape_find(&type->shape, "vocab") >= 0;
        }
    return n;
}

static void feed(weft_program *program, weft_value x, weft_value targets)
{
    weft_error error = {0};
    float numbers[ROWS * EMBED];
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS * EMBED; i++)
        numbers[i] = (float)(i * i % 31 - 15) / 8;
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * 7 % VOCAB;
    CHECK_OK(weft_write(program, x, WEFT_F32, numbers, sizeof numbers, &error), error);
    CHECK_OK(weft_write(program, targets, WEFT_I32, ids, sizeof ids, &error), error);
}

static void train(const char *mesh_text, const char *rules, weft_dtype computes,
                  int of[WEFT_DTYPES], double losses[STEPS])
{
    weft_error error = {0};
    weft_world world = {.n_processes = 1};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(7);
    weft_value x = weft_input(g, "x", WEFT_F32, WEFT_DIMS(row, embed)),
               targets = weft_input(g, "targets", WEFT_I32, WEFT_DIMS(row)),
               w = weft_variable(g, "w", WEFT_F32, WEFT_DIMS(embed, vocab), weft_normal(0, 0.3));
    weft_value logits =
        weft_einsum(WEFT_DIMS(row, vocab), weft_cast(x, computes), weft_cast(w, computes));
    weft_value loss = weft_mean(weft_cross_entropy(weft_cast(logits, WEFT_F32), targets, vocab));
    const weft_value update = weft_sgd(loss, &(weft_optimizer_options){.rate = 0.5});
    CHECK_OK(weft_mesh_create(&world, mesh_text, &mesh, &error), error);
    CHECK_OK(weft_layout_create(rules, &layout, &error), error);
    CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, &error), error);
    feed(program, x, targets);
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(weft_run(program, &error), error);
        CHECK_OK(weft_read_scalar(program, loss, &losses[i], &error), error);
    }
    of[WEFT_F32] = count_scores(program->plan, WEFT_F32);
    of[WEFT_BF16] = count_scores(program->plan, WEFT_BF16);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_mesh_destroy(&mesh);
    weft_graph_destroy(&g);
}

static void test_no_scores_are_kept_in_f32(void)
{
    static const char *const places[][2] = {
        {"data:1", ""}, {"data:2", "row:data"}, {"model:2", "vocab:model"}};
    double wide[STEPS], narrow[STEPS];
    int of[WEFT_DTYPES];
    train("data:1", "", WEFT_F32, of, wide);
    CHECK_EQ_INT(of[WEFT_BF16], 0);
    for (int p = 0; p < 3; p++) {
        train(places[p][0], places[p][1], WEFT_BF16, of, narrow);
        CHECK_EQ_INT(of[WEFT_F32], 0);
        CHECK(of[WEFT_BF16] >= 2); /* and their gradient */
        for (int i = 0; i < STEPS; i++)
            CHECK_CLOSE(narrow[i], wide[i], 1e-2);
    }
    CHECK(narrow[STEPS - 1] < 0.8 * narrow[0]);
}

int main(void)
{
    RUN(test_no_scores_are_kept_in_f32);
    return weft_test_report();
}
