/* run_all: a whole training, for programs that want no more than a line of the loss every 100 steps. */
#include <math.h>
#include <stdio.h>

#include "run.h"

/* What to know before the first step, from the root. */
static void say_start(const app_run *run)
{
    const weft_mesh *mesh = weft_program_mesh(run->setup.program);
    char text[1024];
    if (!weft_mesh_is_root(mesh)) return;
    weft_mesh_crowding(mesh, text, sizeof text);
    if (*text) puts(text);
    if (*run->lock.note) puts(run->lock.note);
    if (*run->note) puts(run->note);
    if (run->first > 0) printf("continues from step %lld\n", (long long)run->first);
    app_run_saves(run, text, sizeof text);
    puts(text);
}

weft_status app_run_all(app_run *run, const app_run_setup *setup, weft_value loss,
                        weft_error *error)
{
    const bool is_root = weft_mesh_is_root(weft_program_mesh(setup->program));
    char text[1024];
    WEFT_TRY(app_run_open(run, setup, error));
    run->is_running = true;
    say_start(run);
    for (int64_t step = run->first + 1; step <= setup->last && !run->is_stopped; step++) {
        double number;
        WEFT_TRY(weft_dataset_next(setup->data, setup->program, error));
        app_spent_lap(&run->spent, APP_ON_INPUT);
        WEFT_TRY(weft_run(setup->program, error));
        WEFT_TRY(weft_read_scalar(setup->program, loss, &number, error));
        app_spent_lap(&run->spent, APP_ON_STEPS);
        if (is_root && (step % 100 == 0 || step == setup->last))
            printf("step %5lld   loss %.6f\n", (long long)step, number);
        if (stop_watch_news(&run->watch, text, sizeof text)) puts(text);
        if (!isfinite(number))
            return weft_fail(error, WEFT_NONFINITE,
                             "the loss is %g at step %lld; try a smaller --rate, a longer --warmup "
                             "or --clip 1",
                             number, (long long)step);
        WEFT_TRY(app_run_step(run, step, error));
        if (is_root && app_comparison_tell(&run->comparison, text, sizeof text)) puts(text);
    }
    WEFT_TRY(app_run_finish(run, error));
    if (is_root && app_run_ending(run, text, sizeof text)) puts(text);
    if (is_root && app_spent_tell(&run->spent, text, sizeof text)) puts(text);
    return WEFT_OK;
}
