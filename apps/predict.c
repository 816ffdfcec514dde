/* predict: --machine: how long a step will take. */
#include "predict.h"

#include "predict_notes.h"
#include "stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/collectives.h"
#include "weft/number.h"

/* "12.3 ms" */
static const char *time_text(double seconds, char text[24])
{
    if (seconds >= 1)
        snprintf(text, 24, "%.3g s", seconds);
    else if (seconds >= 1e-3)
        snprintf(text, 24, "%.3g ms", 1e3 * seconds);
    else
        snprintf(text, 24, "%.3g us", 1e6 * seconds);
    return text;
}

static void print_whole(const weft_machine_model *model, const weft_prediction *p)
{
    char step[24], work[24], exchange[24], exposed[24], late[24];
    printf("\ntime on %s (%s): %s a step\n", weft_machine_model_name(model),
           weft_machine_model_processor(model), time_text(p->seconds, step));
    printf("  computing %s, exchanges %s, which make the step %s longer; waiting for late ranks is "
           "%s of that\n",
           time_text(p->work_seconds, work), time_text(p->exchange_seconds, exchange),
           time_text(p->exposed_seconds, exposed), time_text(p->late_seconds, late));
}

static void print_phases(const weft_prediction *p)
{
    char text[24];
    for (int phase = 0; phase < WEFT_PHASES; phase++)
        printf("%s%s %s", phase == 0 ? "  " : ", ", weft_phase_name((weft_phase)phase),
               time_text(p->phase_seconds[phase], text));
    printf("\n");
}

static void print_sources(const weft_prediction *p)
{
    const double all = p->work_seconds + p->exchange_seconds;
    printf("  of this %.0f %% is from kernels that were measured, %.0f %% from similar ones, %.0f "
           "%% from rates alone\n",
           100 * p->source_seconds[WEFT_TIME_MEASURED] / all,
           100 * p->source_seconds[WEFT_TIME_SIMILAR] / all,
           100 * p->source_seconds[WEFT_TIME_RATES] / all);
}

/* A nominal machine has no kernels of its own: nothing is missing there. */
static weft_status print_notes(const settings *s, const weft_program *program,
                               const weft_machine_model *model, weft_error *error)
{
    const bool is_whole = settings_is(s, "dry-run", "all");
    if (!strpbrk(settings_text(s, "machine"), "./")) return WEFT_OK;
    app_note_machine(model, false, stdout);
    return app_note_kernels(program, model, is_whole, stdout, error);
}

/* "3:1.3" */
static bool read_slow(const char *text, weft_predict_options *options)
{
    char *colon;
    double factor;
    const long rank = strtol(text, &colon, 10);
    if (colon == text || *colon != ':' || rank < 0 || rank >= WEFT_MAX_RANKS) return false;
    const int letters = weft_number_read(colon + 1, &factor);
    if (letters == 0 || colon[1 + letters] != '\0' || !(factor > 0 && factor < 1e6)) return false;
    *options = (weft_predict_options){.slow_rank = (int)rank, .slow_by = factor};
    return true;
}

/* A file that --calibrate is to write need not be there yet. */
static weft_status check_machine(const settings *s, weft_error *error)
{
    weft_machine_model *model;
    const char *name = settings_text(s, "machine");
    if (*name == '\0' || strcmp(name, settings_text(s, "calibrate")) == 0) return WEFT_OK;
    WEFT_TRY(weft_machine_model_read(name, &model, error));
    weft_machine_model_destroy(&model);
    return WEFT_OK;
}

weft_status app_predict_check(const settings *s, weft_error *error)
{
    weft_predict_options options;
    const char *slow = settings_text(s, "slow");
    if (*slow && !read_slow(slow, &options))
        return weft_fail(error, WEFT_USAGE,
                         "--slow %.80s: it takes a rank, and by what its work takes longer: 3:1.3",
                         slow);
    if (*slow && *settings_text(s, "machine") == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "--slow is about predicted times; give --machine FILE as well");
    return check_machine(s, error);
}

weft_status app_predict(const settings *s, const weft_program *program, weft_error *error)
{
    const char *name = settings_text(s, "machine");
    weft_machine_model *model;
    weft_prediction prediction;
    weft_predict_options options = {0};
    if (*name == '\0') return WEFT_OK;
    (void)read_slow(settings_text(s, "slow"), &options);
    WEFT_TRY(weft_machine_model_read(name, &model, error));
    weft_status status = weft_plan_predict(program, model, &options, &prediction, error);
    if (status == WEFT_OK) {
        print_whole(model, &prediction);
        print_phases(&prediction);
        print_sources(&prediction);
        status = print_notes(s, program, model, error);
    }
    weft_machine_model_destroy(&model);
    return status;
}

/* ---- a run beside it ------------------------------------------------------------------------------ */

weft_status app_comparison_open(app_comparison *comparison, const settings *s,
                                const weft_program *program, weft_error *error)
{
    const char *name = settings_text(s, "machine");
    const size_t n = (size_t)weft_plan_n_steps(program) + 1;
    weft_machine_model *model;
    weft_prediction prediction;
    *comparison = (app_comparison){0};
    if (*name == '\0') return WEFT_OK;
    WEFT_TRY(weft_machine_model_read(name, &model, error));
    if (weft_world_is_root()) app_note_machine(model, true, stderr);
    comparison->steps = calloc(n, sizeof *comparison->steps);
    weft_status status =
        comparison->steps ? WEFT_OK : weft_fail_memory(error, n * sizeof *comparison->steps);
    if (status == WEFT_OK)
        status =
            weft_plan_predict_steps(program, model, NULL, &prediction, comparison->steps, error);
    if (status == WEFT_OK) comparison->predicted = prediction.seconds;
    snprintf(comparison->machine, sizeof comparison->machine, "%s", weft_machine_model_name(model));
    weft_machine_model_destroy(&model);
    return status;
}

void app_comparison_close(app_comparison *comparison)
{
    free(comparison->steps);
    comparison->steps = NULL;
}

void app_comparison_begin(app_comparison *comparison)
{
    comparison->since = app_seconds();
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The first step touches memory that nobody has touched. */
void app_comparison_end(app_comparison *comparison)
{
    enum { COUNTED = APP_COMPARED - 1 };
    char predicted[24], middle[24], fastest[24];
    if (comparison->predicted <= 0 || comparison->n == APP_COMPARED) return;
    comparison->measured[comparison->n++] = app_seconds() - comparison->since;
    if (comparison->n < APP_COMPARED) return;
    qsort(comparison->measured + 1, COUNTED, sizeof *comparison->measured, ascending);
    const double median = comparison->measured[1 + COUNTED / 2];
    snprintf(comparison->told, sizeof comparison->told,
             "on machine %s a step was predicted to take %s; of steps 2 to %d the fastest took %s, "
             "%.2f times that, and the median is %s",
             comparison->machine, time_text(comparison->predicted, predicted), APP_COMPARED,
             time_text(comparison->measured[1], fastest),
             comparison->measured[1] / comparison->predicted, time_text(median, middle));
}

bool app_comparison_tell(app_comparison *comparison, char *text, size_t room)
{
    if (comparison->told[0] == '\0') return false;
    snprintf(text, room, "%s", comparison->told);
    comparison->told[0] = '\0';
    return true;
}
