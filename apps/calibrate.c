/* calibrate: a machine measured, and written into a file. */
#include "calibrate.h"

#include "whole_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "weft/collectives.h"

typedef struct telling {
    bool is_terminal;
    char last[40];
} telling;

/* On a terminal a line that changes; else one line for each thing. */
static void tell(void *context, const char *what, double part)
{
    telling *t = context;
    if (!weft_world_is_root()) return;
    if (t->is_terminal)
        fprintf(stderr, "\rmeasuring %-16s %3.0f %%", what, 100 * part);
    else if (strcmp(t->last, what) != 0)
        fprintf(stderr, "measuring %s\n", what);
    snprintf(t->last, sizeof t->last, "%s", what);
}

/* By the root alone: what the file says already, if it is there. A name without a slash is a file here all the same. */
static weft_status read_known(const char *path, weft_machine_model **known, weft_error *error)
{
    char here[4096];
    const bool is_path = strchr(path, '/') != NULL;
    if (access(path, F_OK) != 0) return WEFT_OK;
    if (snprintf(here, sizeof here, is_path ? "%s" : "./%s", path) >= (int)sizeof here)
        return weft_fail(error, WEFT_USAGE, "the path %.60s... is longer than paths may be", path);
    return weft_machine_model_read(here, known, error);
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

/* Of a program its kernels alone, where the rest is known. */
static weft_status measure(const weft_world *world, const app_calibration *calibration,
                           weft_machine_model *known, weft_machine_model **model, telling *t,
                           weft_error *error)
{
    weft_calibrate_options options = {.name = calibration->name,
                                      .programs = &calibration->program,
                                      .n_programs = calibration->program ? 1 : 0,
                                      .seconds = calibration->seconds,
                                      .noisy = calibration->noisy,
                                      .progress = tell,
                                      .context = t};
    WEFT_TRY(weft_world_any(known && calibration->program, &options.only_programs, error));
    WEFT_TRY(weft_calibrate(world, &options, model, error));
    return known ? weft_machine_model_merge(known, *model, error) : WEFT_OK;
}

static void say_done(const app_calibration *calibration, const weft_machine_model *model)
{
    fprintf(stderr, "%s: %s, %s\n", calibration->path, weft_machine_model_processor(model),
            weft_machine_model_made(model));
}

/* The file is opened before a minute is spent. */
weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error)
{
    app_whole_file file = {.stream = NULL};
    telling t = {.is_terminal = isatty(STDERR_FILENO) == 1};
    weft_machine_model *model = NULL, *known = NULL;
    const bool is_root = weft_world_is_root();
    if (is_root && (calibration->program || calibration->adds))
        (void)!read_known(calibration->path, &known, error);
    if (is_root && error->status == WEFT_OK) (void)!app_whole_open(&file, calibration->path, error);
    if (weft_world_agree(error) == WEFT_OK)
        (void)!measure(world, calibration, known, &model, &t, error);
    if (t.is_terminal && is_root) fputc('\n', stderr);
    const weft_machine_model *whole = error->status != WEFT_OK ? NULL : known ? known : model;
    if (write_model(&file, whole, error) == WEFT_OK && whole && is_root)
        say_done(calibration, whole);
    weft_machine_model_destroy(&model);
    weft_machine_model_destroy(&known);
    return weft_world_agree(error);
}
