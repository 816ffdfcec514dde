/* queues_test: steps whose queues go on beside each other, and wait for what the plan says and nothing else, do not touch
 * each other's memory; no wait is implied by others; and a wait that is left out is found.
 *
 * The check knows nothing of how waits are found: where one of two steps writes memory that the other touches, one
 * has to come after the other by queues and waits.
 */
#include "flights.h"
#include "gpt_plan.h"

#include <stdlib.h>
#include <string.h>

static const gpt_shape shape = {8, 32, 2, 64, 2, 128, 64, .dropout = 0.1, .dtype = WEFT_F32};

/* comes_after[s * n + t]: step s begins when t is over. Of one plan, with wait `left_out` of step `of` not there. */
static bool *find_order(const weft_plan *plan, uint32_t of, uint32_t left_out)
{
    const size_t n = plan->n_steps;
    bool *after = calloc(n * n, 1);
    uint32_t last[1 << WEFT_MAX_AXES] = {0}; /* of each queue, + 1 */
    for (uint32_t s = 0; s < n && after; s++) {
        const weft_timing *timing = &plan->timings[s];
        for (uint32_t w = 0; w <= timing->n_waits; w++) {
            const bool is_own = w == timing->n_waits;
            if (!is_own && s == of && w == left_out) continue;
            if (is_own && !last[timing->queue]) continue;
            const uint32_t t = is_own ? last[timing->queue] - 1 : timing->waits[w];
            after[s * n + t] = true;
            for (size_t u = 0; u < n; u++)
                after[s * n + u] |= after[t * n + u];
        }
        last[timing->queue] = s + 1;
    }
    return after;
}

static bool meets[4096][4096]; /* one writes what the other touches */

static void find_meetings(const weft_plan *plan)
{
    weft_arena *arena = weft_arena_create();
    weft_error error = {0};
    weft_memory memory;
    if (CHECK_OK(weft_plan_memory(plan, 0, arena, &memory, &error), error))
        for (uint32_t s = 0; s < plan->n_steps; s++)
            for (uint32_t t = 0; t < s; t++)
                meets[s][t] = !flight_is_left_alone(plan, &memory, s, t, 0);
    weft_arena_destroy(&arena);
}

/* Pairs that touch each other's memory and may go on at once. */
static int count_races(const weft_plan *plan, uint32_t of, uint32_t left_out)
{
    bool *after = find_order(plan, of, left_out);
    int n = 0;
    for (uint32_t s = 0; s < plan->n_steps && after; s++)
        for (uint32_t t = 0; t < s; t++)
            n += meets[s][t] && !after[s * plan->n_steps + t];
    free(after);
    return n;
}

/* Whether step s would come after that step all the same. */
static bool is_implied(const weft_plan *plan, uint32_t s, uint32_t w)
{
    bool *after = find_order(plan, s, w);
    const bool is = after && after[s * plan->n_steps + plan->timings[s].waits[w]];
    free(after);
    return is;
}

static void test_steps_that_wait_for_each_other_alone_leave_memory_alone(void)
{
    for (size_t i = 0; i < GPT_EXCHANGES; i++) {
        gpt_plan p;
        gpt_plan_open(&shape, gpt_exchanges[i].mesh, gpt_exchanges[i].rules, gpt_exchanges[i].zero,
                      &p);
        if (p.plan && CHECK(p.plan->n_steps < 4096)) {
            char text[200];
            find_meetings(p.plan);
            CHECK_EQ_INT(count_races(p.plan, UINT32_MAX, 0), 0);
            CHECK(flights_are_left_alone(p.plan, 0, text, sizeof text)); /* by the executor too */
        }
        gpt_plan_close(&p);
    }
}

/* A step that begins the exchange of what was just made, or reads what was exchanged, has to wait for it. */
static bool is_needed(const weft_plan *plan, uint32_t s, uint32_t t)
{
    for (int i = 0; i < plan->steps[s].n_in; i++)
        for (int o = 0; o < plan->steps[t].n_out; o++)
            if (plan->steps[s].in[i] == plan->steps[t].out[o]) return true;
    return false;
}

static void test_no_wait_is_implied_and_one_left_out_is_found(void)
{
    int n = 0, n_needed = 0;
    gpt_plan p;
    gpt_plan_open(&shape, "data:2,model:2", gpt_exchanges[GPT_IN_TWO_STORED].rules, 3, &p);
    if (p.plan) find_meetings(p.plan);
    for (uint32_t s = 0; p.plan && s < p.plan->n_steps; s++)
        for (uint32_t w = 0; w < p.plan->timings[s].n_waits; w++) {
            const uint32_t t = p.plan->timings[s].waits[w];
            CHECK(t < s && p.plan->timings[t].queue != p.plan->timings[s].queue);
            CHECK(!is_implied(p.plan, s, w));
            n++;
            if (!is_needed(p.plan, s, t)) continue;
            n_needed++;
            CHECK(count_races(p.plan, s, w) > 0);
        }
    CHECK(n > 50);
    CHECK(n_needed > n / 4);
    gpt_plan_close(&p);
}

/* Queues are as many as sets of axes that exchange, and one; nothing that computes is on another. */
static void test_each_set_of_axes_has_a_queue(void)
{
    gpt_plan p;
    gpt_plan_open(&shape, "data:2,model:2", gpt_exchanges[GPT_IN_TWO].rules, 0, &p);
    if (p.plan) {
        CHECK_EQ_INT(p.plan->n_queues, 4); /* data, model, both */
        for (uint32_t s = 0; s < p.plan->n_steps; s++) {
            const weft_step *step = &p.plan->steps[s];
            const uint32_t axes = p.plan->queues[p.plan->timings[s].queue];
            CHECK_EQ_INT(axes, step->kind == WEFT_STEP_CONVERT ? step->convert.axes : 0);
        }
    }
    gpt_plan_close(&p);
}

int main(void)
{
    RUN(test_steps_that_wait_for_each_other_alone_leave_memory_alone);
    RUN(test_no_wait_is_implied_and_one_left_out_is_found);
    RUN(test_each_set_of_axes_has_a_queue);
    return weft_test_report();
}
