/* run_all: a whole training that wants no more than a line of the loss every 100 steps, and metrics. */
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/collectives.h"

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

/* A step's numbers, as they are read, and its time. */
typedef struct done {
    int64_t step;
    double numbers[APP_MOST_READ], seconds;
    app_held_numbers held;
} done;

static weft_status one_step(app_run *run, const app_run_reads *reads, done *d, weft_error *error)
{
    weft_program *program = run->setup.program;
    const double begun = app_seconds();
    WEFT_TRY(weft_dataset_next(run->setup.data, program, error));
    app_spent_lap(&run->spent, APP_ON_INPUT);
    WEFT_TRY(app_run_before(run, d->step, error));
    WEFT_TRY(weft_run(program, error));
    for (int i = 0; i < reads->n; i++)
        WEFT_TRY(weft_read_scalar(program, reads->values[i], &d->numbers[i], error));
    d->seconds = app_seconds() - begun;
    app_spent_lap(&run->spent, APP_ON_STEPS);
    WEFT_TRY(app_run_look(run, d->step, &d->held, error));
    app_spent_lap(&run->spent, APP_ON_LOOKS);
    return WEFT_OK;
}

static void put_held(json_t *line, const app_held_numbers *held)
{
    if (!held->is_there) return;
    json_object_set_new(line, "held_out", app_json_number(held->loss));
    if (!isnan(held->accuracy))
        json_object_set_new(line, "held_out_accuracy", app_json_number(held->accuracy));
}

static void say_held(int64_t step, const app_held_numbers *held)
{
    char right[48] = "";
    if (!held->is_there) return;
    if (!isnan(held->accuracy))
        snprintf(right, sizeof right, ", accuracy %.2f %%", 100 * held->accuracy);
    printf("step %5lld   held out %.6f%s\n", (long long)step, held->loss, right);
}

static json_t *line_of(const app_run *run, const app_run_reads *reads, const done *d)
{
    char rate[64];
    json_t *line = app_metrics_line(d->step);
    snprintf(rate, sizeof rate, "%s_per_s", run->setup.unit);
    for (int i = 0; i < reads->n; i++)
        json_object_set_new(line, reads->names[i], app_json_number(d->numbers[i]));
    json_object_set_new(line, rate, app_json_number(run->setup.items / d->seconds));
    json_object_set_new(line, "ms", app_json_number(1e3 * d->seconds));
    put_held(line, &d->held);
    return line;
}

/* A disk that is full ends the metrics, with a sentence, and not the training. */
static void write_line(app_run *run, int64_t step, json_t *line)
{
    weft_error own = {.rank = -1};
    if (app_metrics_write(&run->metrics, step, line, &own) == WEFT_OK) return;
    fprintf(stderr, "%s; the training goes on without them\n", own.message);
    (void)!app_metrics_close(&run->metrics, NULL);
}

static void put_line(app_run *run, int64_t step, json_t *line)
{
    if (run->metrics.file) {
        write_line(run, step, line);
        return;
    }
    app_board_line(&run->board, step, line); /* on another disk, maybe */
    json_decref(line);
}

/* Only the root does anything. */
static void report(app_run *run, const app_run_reads *reads, const done *d)
{
    char text[400];
    if (stop_watch_news(&run->watch, text, sizeof text)) puts(text);
    if (!weft_mesh_is_root(weft_program_mesh(run->setup.program))) return;
    if (d->step % 100 == 0 || d->step == run->setup.last)
        printf("step %5lld   loss %.6f\n", (long long)d->step, d->numbers[0]);
    say_held(d->step, &d->held);
    put_line(run, d->step, line_of(run, reads, d));
}

/* A look that the run before was stopped in has a line of its own. */
static weft_status look_again(app_run *run, weft_error *error)
{
    app_held_numbers held;
    WEFT_TRY(app_run_begin(run, &held, error));
    app_spent_lap(&run->spent, APP_ON_LOOKS);
    if (!held.is_there || !weft_mesh_is_root(weft_program_mesh(run->setup.program))) return WEFT_OK;
    json_t *line = app_metrics_line(run->first);
    put_held(line, &held);
    say_held(run->first, &held);
    put_line(run, run->first, line);
    return WEFT_OK;
}

static weft_status check(const done *d, weft_error *error)
{
    if (isfinite(d->numbers[0])) return WEFT_OK;
    return weft_fail(error, WEFT_NONFINITE,
                     "the loss is %g at step %lld; try a smaller --rate, a longer --warmup "
                     "or --clip 1",
                     d->numbers[0], (long long)d->step);
}

static weft_status open_metrics(app_run *run, weft_error *error)
{
    if (weft_mesh_is_root(weft_program_mesh(run->setup.program)))
        (void)!app_metrics_open(&run->metrics, run->setup.settings, error);
    run->metrics.board = &run->board;
    return weft_world_agree(error);
}

weft_status app_run_all(app_run *run, const app_run_setup *setup, const app_run_reads *reads,
                        weft_error *error)
{
    const bool is_root = weft_mesh_is_root(weft_program_mesh(setup->program));
    char text[1024];
    WEFT_TRY(app_run_open(run, setup, error));
    WEFT_TRY(open_metrics(run, error));
    run->is_running = true;
    say_start(run);
    WEFT_TRY(look_again(run, error));
    for (int64_t step = run->first + 1; step <= setup->last && !run->is_stopped; step++) {
        done d = {.step = step};
        WEFT_TRY(one_step(run, reads, &d, error));
        report(run, reads, &d);
        WEFT_TRY(check(&d, error));
        WEFT_TRY(app_run_step(run, step, error));
        if (is_root && app_comparison_tell(&run->comparison, text, sizeof text)) puts(text);
    }
    WEFT_TRY(app_run_finish(run, error));
    if (is_root && app_run_ending(run, text, sizeof text)) puts(text);
    if (is_root && app_run_best(run, text, sizeof text)) puts(text);
    if (is_root && app_spent_tell(&run->spent, text, sizeof text)) puts(text);
    return WEFT_OK;
}

void app_run_result(app_run *run, const char *name, double number)
{
    if (!run->metrics.file) return;
    json_t *line = app_metrics_line(run->step);
    json_object_set_new(line, name, app_json_number(number));
    write_line(run, run->step, line);
}
