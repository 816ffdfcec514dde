/* predict: --machine: how long a step will take. */
#include "predict.h"

#include "predict_notes.h"
#include "stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/collectives.h"
#include "weft/number.h"

enum { DRAWS = 200 };

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
static weft_status read_machine(const settings *s, weft_machine_model **model, weft_error *error)
{
    const char *name = settings_text(s, "machine");
    *model = NULL;
    if (*name == '\0' || strcmp(name, settings_text(s, "calibrate")) == 0) return WEFT_OK;
    return weft_machine_model_read(name, model, error);
}

weft_status app_machine(const settings *s, const weft_mesh *mesh, weft_machine_model **model,
                        weft_error *error)
{
    (void)!read_machine(s, model, error);
    if (weft_mesh_n_local(mesh) == 0) return error->status;
    if (weft_world_agree(error) != WEFT_OK) weft_machine_model_destroy(model);
    return error->status;
}

static weft_status check_machine(const settings *s, weft_error *error)
{
    weft_machine_model *model;
    WEFT_TRY(read_machine(s, &model, error));
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

bool app_predict_slow(const settings *s, weft_predict_options *options)
{
    return read_slow(settings_text(s, "slow"), options);
}

static weft_predict_options options_of(const settings *s, const app_pipe *pipe)
{
    weft_predict_options options = {0};
    (void)read_slow(settings_text(s, "slow"), &options);
    options.draws = DRAWS;
    options.pipe_dim = pipe->dim;
    options.pipe_size = pipe->stages;
    options.pipe_idle = pipe->idle;
    return options;
}

weft_status app_predict(const settings *s, const weft_program *program, const app_pipe *pipe,
                        bool is_whole, weft_error *error)
{
    const char *name = settings_text(s, "machine");
    const weft_predict_options options = options_of(s, pipe);
    weft_machine_model *model;
    if (*name == '\0') return WEFT_OK;
    WEFT_TRY(weft_machine_model_read(name, &model, error));
    weft_status status = weft_predict_print(program, model, &options, is_whole, stdout, error);
    if (status == WEFT_OK) status = print_notes(s, program, model, error);
    weft_machine_model_destroy(&model);
    return status;
}

weft_status app_predict_json(const settings *s, const weft_program *program, const app_pipe *pipe,
                             FILE *file, weft_error *error)
{
    const char *name = settings_text(s, "machine");
    const weft_predict_options options = options_of(s, pipe);
    weft_machine_model *model;
    if (*name == '\0') return weft_plan_json(program, file, error);
    WEFT_TRY(weft_machine_model_read(name, &model, error));
    const weft_status status = weft_predict_json(program, model, &options, file, error);
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
    char predicted[WEFT_TIME_TEXT], middle[WEFT_TIME_TEXT], fastest[WEFT_TIME_TEXT];
    if (comparison->predicted <= 0 || comparison->n == APP_COMPARED) return;
    comparison->measured[comparison->n++] = app_seconds() - comparison->since;
    if (comparison->n < APP_COMPARED) return;
    qsort(comparison->measured + 1, COUNTED, sizeof *comparison->measured, ascending);
    const double median = comparison->measured[1 + COUNTED / 2];
    snprintf(comparison->told, sizeof comparison->told,
             "on machine %s a step was predicted to take %s; of steps 2 to %d the fastest took %s, "
             "%.2f times that, and the median is %s",
             comparison->machine, weft_time_text(comparison->predicted, predicted), APP_COMPARED,
             weft_time_text(comparison->measured[1], fastest),
             comparison->measured[1] / comparison->predicted, weft_time_text(median, middle));
}

bool app_comparison_tell(app_comparison *comparison, char *text, size_t room)
{
    if (comparison->told[0] == '\0') return false;
    snprintf(text, room, "%s", comparison->told);
    comparison->told[0] = '\0';
    return true;
}
