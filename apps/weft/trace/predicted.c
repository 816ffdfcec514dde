/* predicted: what was predicted of traced steps, beside what they did. */
#include "predicted.h"

#include <stdlib.h>
#include <string.h>

#include "whole_runs.h"

enum { SHOWN = 5, QUEUES = 1 << WEFT_MAX_AXES };

static bool is_predicted(const weft_traced_program *program)
{
    for (int s = 0; s < program->n_steps; s++)
        if (program->steps[s].predicted_end > 0) return true;
    return false;
}

/* ---- tracks ------------------------------------------------------------------------------------- */

/* One run that began at `at`. Tracks are made as they are needed: by axes. */
static void add_run(perfetto *out, uint32_t process, uint32_t tracks[QUEUES],
                    const weft_traced_program *program, int64_t at)
{
    for (int s = 0; s < program->n_steps; s++) {
        const weft_traced_step *step = &program->steps[s];
        const perfetto_note notes[] = {{"step", NULL, s},
                                       {"place", step->place, 0},
                                       {"all its times ns", NULL, step->predicted_total}};
        uint32_t *track = &tracks[step->axes];
        if (step->predicted_end <= step->predicted_begin) continue;
        if (*track == 0)
            *track = perfetto_thread(out, process, step->axes ? "exchanges" : "compute");
        perfetto_begin(out, *track, at + step->predicted_begin,
                       &(perfetto_slice){step->name, "predicted", notes, 3, 0, {0}});
        perfetto_end(out, *track, at + step->predicted_end);
    }
}

/* A run that ended sooner than was predicted is shown as it was predicted, up to the begin of the next. */
void predicted_add(perfetto *out, const weft_traced *traced)
{
    uint32_t process = 0, tracks[QUEUES] = {0};
    int64_t shown = INT64_MIN;
    char name[80];
    for (int64_t i = 0; i < traced->n_events; i++) {
        const weft_traced_event *e = &traced->events[i];
        const weft_traced_program *program = &traced->programs[e->program];
        const int64_t at = weft_traced_time(traced, e->begin);
        if (e->kind != WEFT_TRACED_RUN || at < shown || !is_predicted(program)) continue;
        snprintf(name, sizeof name, "predicted for rank %d", traced->rank);
        if (process == 0) process = perfetto_process(out, name);
        add_run(out, process, tracks, program, at);
        for (int s = 0; s < program->n_steps; s++)
            if (at + program->steps[s].predicted_end > shown)
                shown = at + program->steps[s].predicted_end;
    }
}

/* ---- the steps that differ most ------------------------------------------------------------------- */

typedef struct difference {
    const weft_traced_step *step;
    double predicted, measured; /* ns of all its times in a run */
} difference;

static int larger(const void *a, const void *b)
{
    const difference *x = a, *y = b;
    const double of_x = x->measured - x->predicted, of_y = y->measured - y->predicted;
    const double left = of_x < 0 ? -of_x : of_x, right = of_y < 0 ? -of_y : of_y;
    return left < right ? 1 : left > right ? -1 : 0;
}

static void measure(const weft_traced *traced, whole_runs *runs, difference *all)
{
    for (int64_t i = 0; i < traced->n_events; i++) {
        const weft_traced_event *e = &traced->events[i];
        if (whole_runs_has(runs, e)) all[e->step].measured += (double)(e->end - e->begin);
    }
}

static void print(const weft_traced_program *program, difference *all, const whole_runs *runs,
                  FILE *file)
{
    double predicted = 0;
    for (int s = 0; s < program->n_steps; s++) {
        all[s].predicted = (double)program->steps[s].predicted_total;
        all[s].measured /= (double)runs->n;
        predicted += all[s].predicted;
    }
    fprintf(
        file,
        "%s: %.4g ms a run, and %.4g ms were predicted; the steps that differ most, on rank 0:\n",
        program->name, 1e-6 * runs->ns / (double)runs->n, 1e-6 * predicted);
    qsort(all, (size_t)program->n_steps, sizeof *all, larger);
    for (int s = 0; s < SHOWN && s < program->n_steps; s++)
        fprintf(file, "  %10.4g us, predicted %10.4g us: %s, %s\n", 1e-3 * all[s].measured,
                1e-3 * all[s].predicted, all[s].step->name, all[s].step->place);
}

weft_status predicted_print(const weft_traced *traced, FILE *file, weft_error *error)
{
    for (int i = 0; i < traced->n_programs; i++) {
        const weft_traced_program *program = &traced->programs[i];
        const size_t bytes = ((size_t)program->n_steps + 1) * sizeof(difference);
        whole_runs runs = {.program = i};
        if (!is_predicted(program)) continue;
        difference *all = calloc(1, bytes);
        if (!all) return weft_fail_memory(error, bytes);
        for (int s = 0; s < program->n_steps; s++)
            all[s].step = &program->steps[s];
        measure(traced, &runs, all);
        if (runs.n > 0) print(program, all, &runs, file);
        free(all);
    }
    return WEFT_OK;
}
