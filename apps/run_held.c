/* run_held: looks at held-out data while a run goes on, and which of them was the lowest. */
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/collectives.h"

static bool keeps_best(const app_run *run)
{
    return run->setup.held && run->setup.held->data && settings_flag(run->setup.settings, "best");
}

/* The root knows what is on disk. */
static weft_status judge(app_run *run, weft_error *error)
{
    app_run_looks *looks = &run->looks;
    const bool is_lower = weft_world_is_root() && isfinite(looks->loss) &&
                          (looks->best_step == 0 || looks->loss < looks->best);
    if (!keeps_best(run)) return WEFT_OK;
    WEFT_TRY(weft_world_any(is_lower, &looks->is_best, error));
    if (!is_lower) return WEFT_OK;
    looks->best = looks->loss;
    looks->best_step = looks->step;
    return WEFT_OK;
}

weft_status app_run_look(app_run *run, int64_t step, app_held_numbers *numbers, weft_error *error)
{
    const app_run_setup *setup = &run->setup;
    *numbers = (app_held_numbers){.loss = NAN, .accuracy = NAN};
    if (!app_held_is_due(setup->held, setup->settings, step, setup->last)) return WEFT_OK;
    WEFT_TRY(app_held_look(setup->held, numbers, error));
    if (!numbers->is_there) return WEFT_OK;
    run->looks.step = step;
    run->looks.loss = numbers->loss;
    return judge(run, error);
}

void app_run_found(app_run *run, const char *folder, const weft_stored *stored)
{
    const app_run_setup *setup = &run->setup;
    weft_checkpoint_state state, best;
    if (!setup->held || !setup->held->data) return;
    const char *facts = weft_dataset_facts(setup->held->data);
    weft_stored_state(stored, &state);
    const bool has_looked = state.has_loss && strcmp(weft_stored_held_out(stored), facts) == 0;
    run->looks.is_missing =
        !has_looked && app_held_is_due(setup->held, setup->settings, state.step, setup->last);
    if (!keeps_best(run) || !weft_stored_best(folder, facts, &best)) return;
    run->looks.best = best.loss;
    run->looks.best_step = best.step;
}
