/* train: the steps: next batch, run, read three numbers, report, and whatever a run that can be
 * continued does between steps. */
#include "../advise.h"
#include "report.h"
#include "search.h"

#include <math.h>
#include <stdio.h>

static weft_status one_step(gpt_setup *setup, gpt_step *step, weft_error *error)
{
    const double begun = app_seconds();
    WEFT_TRY(weft_dataset_next(setup->data, setup->program, error));
    app_spent_lap(&setup->run.spent, APP_ON_INPUT);
    WEFT_TRY(app_run_before(&setup->run, step->step, error));
    WEFT_TRY(weft_run(setup->program, error));
    WEFT_TRY(weft_read_scalar(setup->program, setup->loss, &step->loss, error));
    WEFT_TRY(weft_read_scalar(setup->program, setup->norm, &step->norm, error));
    WEFT_TRY(weft_read_scalar(setup->program, setup->rate, &step->rate, error));
    if (setup->shape.mixture.experts > 1) {
        WEFT_TRY(
            weft_read_scalar(setup->program, setup->model.facts.balance, &step->balance, error));
        WEFT_TRY(
            weft_read_scalar(setup->program, setup->model.facts.dropped, &step->dropped, error));
    }
    step->seconds = app_seconds() - begun;
    app_spent_lap(&setup->run.spent, APP_ON_STEPS);
    return WEFT_OK;
}

/* Only the root writes; all must know whether it could. */
static weft_status report_step(gpt_report *report, const gpt_step *step, weft_error *error)
{
    weft_error own = {.rank = -1};
    gpt_report_step(report, step, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

/* With a loss scale: what the optimizer did not do. */
static void say_skipped(const gpt_setup *setup, gpt_report *report, int64_t step)
{
    char text[120];
    if (setup->shape.computes != WEFT_F16) return;
    snprintf(text, sizeof text,
             "step %lld: gradients overflowed f16; nothing was updated, the loss scale is halved",
             (long long)step);
    gpt_report_say(report, text);
}

/* Of a look that the run before was stopped in. */
static weft_status look_again(gpt_setup *setup, gpt_report *report, weft_error *error)
{
    weft_error own = {.rank = -1};
    app_held_numbers held;
    WEFT_TRY(app_run_begin(&setup->run, &held, error));
    app_spent_lap(&setup->run.spent, APP_ON_LOOKS);
    gpt_report_look(report, setup->run.first, &held, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static weft_status all_steps(gpt_setup *setup, gpt_report *report, weft_error *error)
{
    char text[300];
    WEFT_TRY(look_again(setup, report, error));
    for (int64_t i = setup->run.first + 1; i <= setup->until && !setup->run.is_stopped; i++) {
        gpt_step step = {.step = i};
        WEFT_TRY(one_step(setup, &step, error));
        WEFT_TRY(app_run_look(&setup->run, i, &step.held, error));
        app_spent_lap(&setup->run.spent, APP_ON_LOOKS);
        WEFT_TRY(report_step(report, &step, error));
        if (!isfinite(step.norm) && isfinite(step.loss)) say_skipped(setup, report, i);
        if (stop_watch_news(&setup->run.watch, text, sizeof text)) gpt_report_say(report, text);
        if (!isfinite(step.loss))
            return weft_fail(error, WEFT_NONFINITE,
                             "the loss is %g at step %lld; try a smaller --rate, a longer "
                             "--warmup or --clip 1",
                             step.loss, (long long)i);
        WEFT_TRY(app_run_step(&setup->run, i, error));
        if (app_comparison_tell(&setup->run.comparison, text, sizeof text))
            gpt_report_say(report, text);
    }
    return app_run_finish(&setup->run, error);
}

/* What was lost beside the steps, and what another plan would spare. A run of a few seconds is not worth it. */
static void say_advice(const gpt_setup *setup, gpt_report *report)
{
    char text[APP_ADVICE_BYTES];
    weft_error ignored = {.rank = -1};
    app_search search;
    if (!weft_mesh_is_root(setup->mesh)) return;
    if (app_spent_tell(&setup->run.spent, text, sizeof text)) gpt_report_say(report, text);
    gpt_search_open(setup->settings, &search);
    (void)!app_advise_end(&search, setup->program, &setup->run.spent, setup->run.step, text,
                          &ignored);
    if (*text) gpt_report_say(report, text);
    if (ignored.status != WEFT_OK) gpt_report_say(report, ignored.message);
}

static weft_status run(gpt_setup *setup, gpt_report *report, weft_error *error)
{
    char text[1024];
    setup->run.is_running = true;
    if (all_steps(setup, report, error) != WEFT_OK)
        app_run_settle(&setup->run, error);
    else if (app_run_ending(&setup->run, text, sizeof text))
        gpt_report_say(report, text);
    if (error->status == WEFT_OK && app_run_best(&setup->run, text, sizeof text))
        gpt_report_say(report, text);
    if (error->status == WEFT_OK) say_advice(setup, report);
    return error->status;
}

weft_status gpt_train(gpt_setup *setup, weft_error *error)
{
    const app_run_setup run_setup = {
        .settings = setup->settings,
        .program = setup->program,
        .data = setup->data,
        .last = setup->until,
        .of = {.loss = setup->loss,
               .variables = setup->variables,
               .gradients = setup->gradients,
               .n = setup->gradients ? gpt_n_variables(&setup->shape) : 0,
               .options = &setup->compiled},
        .items = (double)setup->shape.batch * (double)setup->shape.seq,
        .unit = "tokens",
        .looks = {setup->held.program, "held-out", setup->held.n_batches},
        .is_quiet = settings_flag(setup->settings, "quiet"),
        .pipe = gpt_setup_pipe(setup),
        .held = &setup->held};
    gpt_report report = {0};
    weft_error own = {.rank = -1};
    if (app_run_open(&setup->run, &run_setup, &own) == WEFT_OK)
        gpt_report_open(&report, setup, &own);
    report.metrics.board = &setup->run.board;
    if (weft_world_agree(&own) == WEFT_OK) run(setup, &report, &own);
    gpt_report_close(&report, &own);
    stop_watch_close(); /* nothing is left to save: a signal ends the process again */
    if (weft_world_agree(&own) == WEFT_OK) return WEFT_OK;
    if (error->status == WEFT_OK) *error = own;
    return own.status;
}
