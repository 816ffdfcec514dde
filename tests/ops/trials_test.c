/* trials_test: arenas are compared as if they were packed in all orders, and are packed in no more than that takes. */
#include "ops/plan/trials.h"

#include <stdlib.h>
#include <string.h>

#include "gpt_plan.h"

static const gpt_shape shape = {7, 12, 3, 24, 4, 40, 29, .dropout = 0.1, .dtype = WEFT_F32};

/* Linked with --wrap: in how many orders buffers were packed. */
static int n_packs;
weft_status __real_weft_pack_on(weft_timeline *timeline, weft_buffer *const *order, uint32_t n,
                                uint32_t n_kept, int64_t below, int64_t *end, weft_error *error);
weft_status __wrap_weft_pack_on(weft_timeline *timeline, weft_buffer *const *order, uint32_t n,
                                uint32_t n_kept, int64_t below, int64_t *end, weft_error *error);

weft_status __wrap_weft_pack_on(weft_timeline *timeline, weft_buffer *const *order, uint32_t n,
                                uint32_t n_kept, int64_t below, int64_t *end, weft_error *error)
{
    n_packs++;
    return __real_weft_pack_on(timeline, order, n, n_kept, below, end, error);
}

/* The plan's steps, whose exchanges go on for at most so many. The caller's to free. */
static weft_step *shorter(const weft_plan *plan, uint32_t most)
{
    weft_step *steps = calloc(plan->n_steps + 1, sizeof *steps);
    for (uint32_t s = 0; steps && s < plan->n_steps; s++) {
        steps[s] = plan->steps[s];
        if (steps[s].until > s + most) steps[s].until = s + most;
    }
    return steps;
}

static int64_t packed(weft_plan *plan, weft_step *steps)
{
    weft_error error = {0};
    weft_memory memory;
    int64_t bytes = -1;
    weft_arena *arena = weft_arena_create();
    CHECK_OK(weft_plan_buffers(plan, steps, plan->n_steps, arena, &memory, &error), error);
    CHECK_OK(weft_pack_in_best_order(memory.buffers, memory.n_packed, plan->n_steps + 1, arena,
                                     &bytes, &error),
             error);
    weft_arena_destroy(&arena);
    return bytes;
}

static int64_t most_of(int64_t before, weft_allowance a)
{
    const int64_t most = before + (a.divisor ? before / a.divisor : 0);
    return most > a.least ? most : a.least;
}

static void check_pair(weft_plan *plan, weft_step *one, weft_step *other)
{
    const int64_t a = packed(plan, one), b = packed(plan, other);
    const weft_allowance allowances[] = {
        {0}, {.divisor = 4}, {.divisor = 64}, {.least = a}, {.least = a - 1}};
    for (size_t k = 0; k < sizeof allowances / sizeof *allowances; k++) {
        weft_error error = {0};
        weft_trial *after, *before;
        bool fits = false;
        int64_t bytes = 0;
        CHECK_OK(weft_trial_open(plan, one, plan->n_steps, &after, &error), error);
        CHECK_OK(weft_trial_open(plan, other, plan->n_steps, &before, &error), error);
        CHECK_OK(weft_trial_fits(after, before, allowances[k], &fits, &error), error);
        CHECK_EQ_INT(fits, a <= most_of(b, allowances[k]));
        CHECK_OK(weft_trial_bytes(after, &bytes, &error), error);
        CHECK_EQ_INT(bytes, a);
        weft_trial_close(&after);
        weft_trial_close(&before);
        weft_trials_end(plan);
    }
}

static void test_comparing_is_as_exact_as_packing(void)
{
    for (int e = 0; e < GPT_EXCHANGES; e++) {
        gpt_plan p;
        gpt_plan_open(&shape, gpt_exchanges[e].mesh, gpt_exchanges[e].rules, gpt_exchanges[e].zero,
                      &p);
        weft_step *lists[] = {p.plan ? shorter(p.plan, UINT32_MAX / 2) : NULL,
                              p.plan ? shorter(p.plan, 4) : NULL,
                              p.plan ? shorter(p.plan, 0) : NULL};
        for (int i = 0; p.plan && i < 9; i++)
            check_pair(p.plan, lists[i / 3], lists[i % 3]);
        for (int i = 0; i < 3; i++)
            free(lists[i]);
        gpt_plan_close(&p);
    }
}

static void test_no_more_is_packed_than_decides(void)
{
    gpt_plan p;
    weft_error error = {0};
    weft_trial *after = NULL, *before = NULL, *again = NULL;
    bool fits = false;
    int64_t bytes;
    gpt_plan_open(&shape, "data:2", "batch:data", 0, &p);
    weft_step *steps = p.plan ? shorter(p.plan, 0) : NULL;
    if (!steps) return;
    CHECK_OK(weft_trial_open(p.plan, steps, p.plan->n_steps, &after, &error), error);
    CHECK_OK(weft_trial_open(p.plan, p.plan->steps, p.plan->n_steps, &before, &error), error);
    n_packs = 0;
    CHECK_OK(weft_trial_fits(after, before, (weft_allowance){.least = INT64_MAX}, &fits, &error),
             error);
    CHECK(fits && n_packs == 0); /* all is allowed */
    CHECK_OK(weft_trial_fits(after, before, (weft_allowance){.divisor = 1}, &fits, &error), error);
    CHECK(fits && n_packs <= 1); /* one order says so */
    CHECK_OK(weft_trial_bytes(before, &bytes, &error), error);
    CHECK_OK(weft_trial_open(p.plan, p.plan->steps, p.plan->n_steps, &again, &error), error);
    n_packs = 0;
    CHECK_OK(weft_trial_bytes(again, &bytes, &error), error);
    CHECK(again == before && n_packs == 0); /* the same buffers are the same trial */
    weft_trial_close(&again);
    weft_trial_close(&after);
    weft_trial_close(&before);
    weft_trials_end(p.plan);
    CHECK(p.plan->build.trials == NULL);
    free(steps);
    gpt_plan_close(&p);
}

/* Nothing is left of them in a plan that is done, whose arena is that of its steps. */
static void test_a_plan_keeps_what_it_was_laid_out_in(void)
{
    gpt_plan p;
    gpt_plan_open(&shape, "data:2", "batch:data", 0, &p);
    if (!p.plan) return;
    CHECK(p.plan->build.trials == NULL && p.plan->packed.offset != NULL);
    CHECK_EQ_INT(p.plan->packed.arena_bytes, packed(p.plan, p.plan->steps));
    gpt_plan_close(&p);
}

int main(void)
{
    RUN(test_comparing_is_as_exact_as_packing);
    RUN(test_no_more_is_packed_than_decides);
    RUN(test_a_plan_keeps_what_it_was_laid_out_in);
    return weft_test_report();
}
