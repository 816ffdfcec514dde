/* calibrate: a machine measured, and written into a file. */
#include "calibrate.h"

#include "whole_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "weft/collectives.h"

typedef struct telling {
    bool is_terminal;
    double seconds; /* that it may take */
    char last[40];
    char left[200]; /* what there was no time for */
} telling;

/* On a terminal a line that changes; else one line for each thing. */
static void tell(void *context, const char *what, double part)
{
    telling *t = context;
    if (!weft_world_is_root()) return;
    if (t->is_terminal)
        fprintf(stderr, "\rmeasuring %-16s %3.0f %%, about %.0f s left ", what, 100 * part,
                (1 - part) * t->seconds);
    else if (strcmp(t->last, what) != 0)
        fprintf(stderr, "measuring %s, about %.0f s left\n", what, (1 - part) * t->seconds);
    snprintf(t->last, sizeof t->last, "%s", what);
}

static void keep_left(void *context, const char *what, int n)
{
    telling *t = context;
    const size_t used = strlen(t->left);
    snprintf(t->left + used, sizeof t->left - used, "%s%d of %s", used ? ", " : "", n, what);
}

/* By the root alone. */
static weft_status write_model(app_whole_file *file, const weft_machine_model *model,
                               weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    if (!file->stream) return WEFT_OK;
    const bool is_written = model && weft_machine_model_write(model, file->stream, &own) == WEFT_OK;
    WEFT_TRY(app_whole_close(file, is_written, error));
    if (own.status == WEFT_OK) return WEFT_OK;
    return weft_fail(error, own.status, "%.300s: %.150s", file->path, own.message);
}

/* The file as it is, to be added to; *base stays NULL where there is none. By the root alone. */
static weft_status read_base(const app_calibration *calibration, weft_machine_model **base,
                             weft_error *error)
{
    char why[480];
    if (!(calibration->program || calibration->adds) || access(calibration->path, F_OK) != 0)
        return WEFT_OK;
    WEFT_TRY(weft_machine_model_read(calibration->path, base, error));
    if (!weft_machine_model_differs(*base, true, why, sizeof why)) return WEFT_OK;
    *strstr(why, "; predicted all the same") = '\0';
    return weft_fail(error, WEFT_USAGE,
                     "nothing is added to %.200s: %.200s; name another file, or remove it",
                     calibration->path, why);
}

static void say(const app_calibration *calibration, const weft_machine_model *model,
                const telling *t)
{
    fprintf(stderr, "%s: %s, %s\n", calibration->path, weft_machine_model_processor(model),
            weft_machine_model_made(model));
    if (*t->left)
        fprintf(stderr, "there was no time for %s: --seconds %.0f\n", t->left, 2 * t->seconds);
}

/* A program's kernels are put to the base, if there is one; else the whole machine is, or stands alone. The result, maybe *base itself, is the
 * caller's; NULL: it failed. */
static weft_machine_model *measure(const weft_world *world, const app_calibration *calibration,
                                   weft_machine_model **base, telling *t, weft_error *error)
{
    weft_machine_model *model = NULL;
    const bool is_base_changed = *base && !calibration->program;
    const weft_calibrate_options options = {.name = calibration->name,
                                            .programs = &calibration->program,
                                            .n_programs = calibration->program ? 1 : 0,
                                            .seconds = calibration->seconds,
                                            .noisy = calibration->noisy,
                                            .base = is_base_changed ? NULL : *base,
                                            .progress = tell,
                                            .left_out = keep_left,
                                            .context = t};
    weft_status status = weft_calibrate(world, &options, &model, error);
    if (status != WEFT_OK || !is_base_changed) return model;
    status = weft_machine_model_merge(*base, model, error);
    weft_machine_model_destroy(&model);
    if (status != WEFT_OK) return NULL;
    model = *base;
    *base = NULL;
    return model;
}

/* The file is opened before a minute is spent. */
weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error)
{
    app_whole_file file = {.stream = NULL};
    telling t = {.is_terminal = isatty(STDERR_FILENO) == 1, .seconds = calibration->seconds};
    weft_machine_model *model = NULL, *base = NULL;
    const bool is_root = weft_world_is_root();
    if (is_root && read_base(calibration, &base, error) == WEFT_OK)
        (void)!app_whole_open(&file, calibration->path, error);
    if (weft_world_agree(error) == WEFT_OK) model = measure(world, calibration, &base, &t, error);
    if (t.is_terminal && is_root) fputc('\n', stderr);
    const weft_status status = write_model(&file, model, error);
    if (status == WEFT_OK && model && is_root) say(calibration, model, &t);
    weft_machine_model_destroy(&model);
    weft_machine_model_destroy(&base);
    return weft_world_agree(error);
}

weft_status app_calibrate_program(const settings *s, const weft_world *world,
                                  const weft_program *program, weft_error *error)
{
    const app_calibration calibration = {.path = settings_text(s, "calibrate"),
                                         .name = "",
                                         .program = program,
                                         .seconds = (double)settings_count(s, "calibrate-seconds"),
                                         .noisy = settings_flag(s, "noisy")};
    return app_calibrate(world, &calibration, error);
}
