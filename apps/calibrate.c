/* calibrate: a machine measured, and written into a file. */
#include "calibrate.h"

#include <errno.h>
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

/* Under another name until all of it is there. */
static weft_status write_file(const weft_machine_model *model, const char *path, weft_error *error)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside)
        return weft_fail(error, WEFT_USAGE, "the name of the machine file is too long: %.100s...",
                         path);
    FILE *file = fopen(beside, "we");
    if (!file) return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", beside, strerror(errno));
    weft_status status = weft_machine_model_write(model, file, error);
    if (fclose(file) != 0 && status == WEFT_OK)
        status = weft_fail(error, WEFT_IO, "cannot write %.300s: %s", beside, strerror(errno));
    if (status == WEFT_OK && rename(beside, path) != 0)
        status = weft_fail(error, WEFT_IO, "cannot rename %.200s to %.200s: %s", beside, path,
                           strerror(errno));
    if (status != WEFT_OK) (void)remove(beside);
    return status;
}

weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error)
{
    telling t = {.is_terminal = isatty(STDERR_FILENO) == 1};
    weft_machine_model *model;
    const weft_calibrate_options options = {.name = calibration->name,
                                            .programs = &calibration->program,
                                            .n_programs = calibration->program ? 1 : 0,
                                            .seconds = calibration->seconds,
                                            .noisy = calibration->noisy,
                                            .progress = tell,
                                            .context = &t};
    const weft_status status = weft_calibrate(world, &options, &model, error);
    if (t.is_terminal && weft_world_is_root()) fputc('\n', stderr);
    if (status != WEFT_OK) return status;
    if (weft_world_is_root() && write_file(model, calibration->path, error) == WEFT_OK)
        printf("%s: %s, %s\n", calibration->path, weft_machine_model_processor(model),
               weft_machine_model_made(model));
    weft_machine_model_destroy(&model);
    return weft_world_agree(error);
}
