/* scratch_test: what is kept of steps that move alike is what each of them needs, on every rank. */

#include "gpt_plan.h"

static int64_t needed_by(const weft_plan *plan, const weft_step *step, int rank)
{
    weft_error error = {0};
    weft_move *move = NULL;
    CHECK_OK(weft_step_move(plan, step, rank, &move, &error), error);
    const int64_t bytes = weft_move_scratch(move);
    weft_move_destroy(&move);
    return bytes;
}

/* How many steps need some. */
static int check_rank(const weft_plan *plan, int rank)
{
    int n = 0;
    weft_error error = {0};
    weft_known_moves *moves = NULL;
    weft_arena *arena = weft_arena_create();
    CHECK_OK(weft_known_moves_open(arena, rank, &moves, &error), error);
    for (uint32_t s = 0; s < plan->n_steps && moves; s++) {
        const weft_step *step = &plan->steps[s];
        int64_t kept = -1, asked = -1;
        if (step->kind != WEFT_STEP_CONVERT) continue;
        const int64_t needed = needed_by(plan, step, rank);
        CHECK_OK(weft_keep_scratch(moves, plan, step, &kept, &error), error);
        CHECK_OK(weft_step_scratch(plan, step, rank, &asked, &error), error);
        CHECK_EQ_INT(kept, needed);
        CHECK_EQ_INT(asked, needed);
        n += needed > 0;
    }
    weft_arena_destroy(&arena);
    return n;
}

/* Sizes that nothing divides: the ranks' boxes differ. */
static int check_plan(const char *mesh_text, const char *layout_text, int zero)
{
    const gpt_shape shape = {.batch = 7,
                             .seq = 13,
                             .layers = 3,
                             .width = 22,
                             .heads = 2,
                             .hidden = 41,
                             .vocab = 29,
                             .dtype = WEFT_F32};
    int n = 0;
    gpt_plan p;
    gpt_plan_open(&shape, mesh_text, layout_text, zero, &p);
    for (int rank = 0; p.plan && rank < weft_mesh_n_ranks(p.mesh); rank++)
        n += check_rank(p.plan, rank);
    gpt_plan_close(&p);
    return n;
}

static void test_what_is_kept_is_what_each_needs(void)
{
    CHECK_EQ_INT(check_plan("data:1", "", 0), 0);
    CHECK(check_plan("data:3", "batch:data", 3) > 0);
    CHECK(check_plan("data:2,model:2", "batch:data,hidden:model,heads:model,vocab:model", 1) > 0);
    CHECK(check_plan("seq:3,model:2", "seq:seq,hidden:model,vocab:model", 0) > 0);
}

int main(void)
{
    RUN(test_what_is_kept_is_what_each_needs);
    return weft_test_report();
}
