/* train: the steps: next batch, run, read three numbers, report. */
#include "report.h"

#include <math.h>

static weft_status one_step(gpt_job *job, gpt_step *step, weft_error *error)
{
    const double begun = gpt_now();
    WEFT_TRY(weft_dataset_next(job->data, job->program, error));
    WEFT_TRY(weft_run(job->program, error));
    WEFT_TRY(weft_read_scalar(job->program, job->loss, &step->loss, error));
    WEFT_TRY(weft_read_scalar(job->program, job->norm, &step->norm, error));
    WEFT_TRY(weft_read_scalar(job->program, job->rate, &step->rate, error));
    step->seconds = gpt_now() - begun;
    return WEFT_OK;
}

static weft_status all_steps(gpt_job *job, gpt_report *report, weft_error *error)
{
    for (int64_t i = 1; i <= job->until; i++) {
        gpt_step step = {.step = i};
        weft_error own = {.rank = -1};
        WEFT_TRY(one_step(job, &step, error));
        gpt_report_step(report, &step, &own);
        if (weft_world_agree(&own) != WEFT_OK) {
            *error = own;
            return own.status;
        }
        if (!isfinite(step.loss))
            return weft_fail(error, WEFT_INTERNAL,
                             "the loss is %g at step %lld; try a smaller --rate, a longer "
                             "--warmup or --clip 1",
                             step.loss, (long long)i);
    }
    return WEFT_OK;
}

weft_status gpt_train(gpt_job *job, weft_error *error)
{
    gpt_report report;
    weft_error own = {.rank = -1};
    gpt_report_open(&report, job, &own);
    if (weft_world_agree(&own) == WEFT_OK) all_steps(job, &report, &own);
    gpt_report_close(&report, &own);
    if (weft_world_agree(&own) == WEFT_OK) return WEFT_OK;
    if (error->status == WEFT_OK) *error = own;
    return own.status;
}
