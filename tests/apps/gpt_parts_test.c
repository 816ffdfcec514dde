/* RANKS: 2 4 */
/* gpt_parts_test: a batch gone through in micro-batches trains as the batch at once, dropout included, on any layout and with
 * blocks computed again; its gradients go over ranks once, and what lives at one time is that of a part. With ZeRO 2 the sums of
 * gradients are sharded too.
 */
#include "gpt_training.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 6 };

typedef struct parts_case {
    const char *mesh, *layout;
    int zero, parts;
    bool recomputes;
} parts_case;

static weft_oracle oracle;

static bool run_case(weft_mesh *mesh, const parts_case *c, double losses[STEPS],
                     double norms[STEPS])
{
    gpt_shape shape = trained_shape();
    const training_way way = {c->layout, c->zero, c->parts, NULL, 0};
    weft_error error = {0};
    training t;
    shape.layers = 2, shape.dropout = 0.2, shape.recomputes = c->recomputes;
    const bool is_run = CHECK_OK(open_training(mesh, &shape, &way, &t, &error), error) &&
                        CHECK_OK(train(&t, STEPS, losses, norms, &error), error);
    close_training(&t);
    return is_run;
}

#define TWO "batch:data,hidden:model,heads:model,vocab:model"

static void test_micro_batches_train_as_the_batch(void)
{
    static const parts_case cases[] = {
        {"data:1", "", 0, 4, false},       {"data:1", "", 0, 12, true},
        {"data:2", "batch:data", 1, 2, 0}, {"data:2", "batch:data", 2, 6, true},
        {"data:2", "batch:data", 3, 3, 0}, {"data:3", "batch:data", 2, 3, false},
        {"model:2", "seq:model", 0, 4, 1}, {"data:4", "batch:data", 1, 3, false},
        {"data:2,model:2", TWO, 0, 3, 0},  {"data:2,model:2", TWO, 2, 2, true},
    };
    double expected[2][STEPS], found[2][STEPS];
    if (!run_case(oracle.alone, &(parts_case){"data:1", "", 0, 1, false}, expected[0], expected[1]))
        return;
    CHECK(expected[0][0] > 1.0 && expected[0][1] != expected[0][0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_mesh *mesh = trained_mesh(&oracle, cases[i].mesh);
        if (mesh == NULL || !run_case(mesh, &cases[i], found[0], found[1])) continue;
        for (int k = 0; k < 2; k++)
            for (int step = 0; step < STEPS; step++)
                CHECK_CLOSE(found[k][step], expected[k][step],
                            (k == 0 ? 1e-10 : 1e-8) * fabs(expected[k][step]));
    }
}

/* ---- what it takes ------------------------------------------------------------------------------- */

typedef struct need {
    int64_t arena, gradients; /* bytes: of rank 0; that go over ranks in reductions */
} need;

/* Activations are larger than weights, weights than tokens. */
static gpt_shape wide_shape(int batch)
{
    return (gpt_shape){.batch = batch,
                       .seq = 32,
                       .layers = 2,
                       .width = 64,
                       .heads = 4,
                       .hidden = 256,
                       .vocab = 64,
                       .dtype = WEFT_F64};
}

static need need_of(int batch, int zero, int parts)
{
    enum { MOST = 32 };
    const training_way way = {"batch:data", zero, parts, NULL, 0};
    const gpt_shape shape = wide_shape(batch);
    weft_traffic traffic[MOST];
    weft_usage usage = {0};
    weft_error error = {0};
    weft_mesh *mesh = NULL;
    need n = {0};
    training t = {0};
    if (CHECK_OK(weft_mesh_plan("data:4", &mesh, &error), error) &&
        CHECK_OK(open_training(mesh, &shape, &way, &t, &error), error) &&
        CHECK_OK(weft_plan_usage(t.program, 0, &usage, &error), error)) {
        const int n_kinds = weft_plan_traffic(t.program, 0, traffic, MOST);
        for (int i = 0; i < n_kinds; i++)
            if (traffic[i].kind == WEFT_ALL_REDUCE || traffic[i].kind == WEFT_REDUCE_SCATTER)
                n.gradients += traffic[i].bytes;
    }
    n.arena = usage.arena_bytes;
    close_training(&t);
    weft_mesh_destroy(&mesh);
    return n;
}

static void test_gradients_go_once_and_memory_is_that_of_a_part(void)
{
    const gpt_shape shape = wide_shape(64);
    const int64_t weights = 8 * (int64_t)gpt_parameters(&shape);
    for (int zero = 0; zero < 2; zero++) {
        const need whole = need_of(64, zero, 1), parts = need_of(64, zero, 8);
        const need part = need_of(8, zero, 1);
        CHECK_EQ_INT(parts.gradients, whole.gradients);
        CHECK(parts.arena <= part.arena + weights + weights / 4);
        CHECK(parts.arena * 2 < whole.arena);
    }
}

/* Each rank adds up a quarter, which spares three quarters of 4 bytes a weight; for that each part's gradients go. */
static void test_zero_2_shards_the_sums(void)
{
    const gpt_shape shape = wide_shape(64);
    const int64_t weights = 8 * (int64_t)gpt_parameters(&shape);
    const need one = need_of(64, 1, 8), two = need_of(64, 2, 8);
    CHECK(one.arena - two.arena > weights / 8 * 3);
    CHECK(two.gradients > 7 * one.gradients && two.gradients < 9 * one.gradients);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:3", "model:2", "data:4", "data:2,model:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_micro_batches_train_as_the_batch);
        RUN(test_gradients_go_once_and_memory_is_that_of_a_part);
        RUN(test_zero_2_shards_the_sums);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
