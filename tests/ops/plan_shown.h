/* plan_shown.h: a plan's candidates and exchanges, to see why a test of them failed. */
#ifndef TEST_PLAN_SHOWN_H
#define TEST_PLAN_SHOWN_H

#include "test.h"
#include "weft/research/plan.h"

static inline void show_plan(const weft_program *program)
{
    for (int i = 0; i < weft_plan_n_candidates(program); i++) {
        weft_planned_candidate candidate;
        weft_error error = {0};
        if (!CHECK_OK(weft_plan_candidate_at(program, i, &candidate, &error), error)) return;
        printf("  by %s: %.0f + %.0f, %d exchanges%s%s\n", candidate.name, candidate.exchange,
               candidate.work, candidate.n_exchanges, candidate.is_allowed ? "" : ", not allowed",
               candidate.is_taken ? ", taken" : "");
    }
    for (int s = 0; s < weft_plan_n_steps(program); s++) {
        weft_planned_step step;
        weft_error error = {0};
        if (!CHECK_OK(weft_plan_step_at(program, s, 0, &step, &error), error)) return;
        if (step.kind != WEFT_STEP_CONVERT || !step.axes) continue;
        printf("  %-8s %-14s %8lld bytes over %u  %s at %d: %s\n", weft_phase_name(step.phase),
               weft_convert_name(step.collective), (long long)step.wire_bytes, step.axes, step.op,
               step.line, step.reason);
    }
}

#endif
