/* forecast: a prediction put together: one walk through the plan, its sums, and the walks that are drawn. */
#include "timeline.h"
#include "walk.h"

static weft_status predict(timeline *t, weft_arena *arena, const weft_predict_options *options,
                           weft_prediction *prediction, weft_predicted_step *steps)
{
    WEFT_TRY(weft_walk_open(t, arena, options));
    WEFT_TRY(weft_walk(t));
    WEFT_TRY(weft_walk_sum_up(t, options, prediction, steps));
    return options->draws > 0 ? weft_walk_draw(t, options->draws, prediction) : WEFT_OK;
}

weft_status weft_timeline(const weft_plan *plan, const weft_machine_model *model,
                          const weft_predict_options *options, weft_prediction *prediction,
                          weft_predicted_step *steps, weft_error *error)
{
    timeline t = {.plan = plan, .error = error};
    weft_arena *arena = weft_arena_create();
    *prediction = (weft_prediction){0};
    if (!arena) return weft_fail_memory(error, sizeof t);
    weft_find_classes(plan, options->slow_by > 0 ? options->slow_rank : -1, &t.classes);
    weft_status status =
        weft_clock_open(plan, model, options->host_ranks, t.classes.n, arena, &t.clock, error);
    if (status == WEFT_OK) status = predict(&t, arena, options, prediction, steps);
    weft_arena_destroy(&arena);
    return status;
}
