/* forecast: a prediction put together: one walk through the plan, its sums, and the walks that are drawn. */
#include "timeline.h"
#include "walk.h"

static weft_status predict(timeline *t, weft_arena *arena, const weft_predict_options *options,
                           weft_prediction *prediction, weft_predicted_step *steps)
{
    runs r;
    notes noted;
    WEFT_TRY(weft_notes_open(t, arena, &noted));
    WEFT_TRY(weft_runs_open(&r, t, 1, &noted, arena));
    weft_walk(&r);
    weft_walk_sum_up(&r, options, prediction, steps);
    return options->draws > 0 ? weft_walk_draw(t, options->draws, arena, prediction) : WEFT_OK;
}

weft_status weft_timeline(const weft_plan *plan, const weft_machine_model *model,
                          const weft_predict_options *options, weft_prediction *prediction,
                          weft_predicted_step *steps, weft_error *error)
{
    timeline t = {.plan = plan, .error = error};
    weft_arena *arena = weft_arena_create();
    *prediction = (weft_prediction){0};
    if (!arena) return weft_fail_memory(error, sizeof t);
    weft_status status = weft_walk_open(&t, model, options, arena);
    if (status == WEFT_OK) status = predict(&t, arena, options, prediction, steps);
    weft_arena_destroy(&arena);
    return status;
}
