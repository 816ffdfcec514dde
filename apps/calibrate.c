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

/* Under another name until all of it is there. It is opened before a minute is spent. */
typedef struct part_file {
    char path[4096];
    FILE *file; /* NULL but for the root */
} part_file;

static weft_status open_part(part_file *part, const char *path, weft_error *error)
{
    part->file = NULL;
    if (snprintf(part->path, sizeof part->path, "%s.part", path) >= (int)sizeof part->path)
        return weft_fail(error, WEFT_USAGE, "the name of the machine file is too long: %.100s...",
                         path);
    if (!weft_world_is_root()) return WEFT_OK;
    part->file = fopen(part->path, "we");
    if (part->file) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot write %.300s: %s", part->path, strerror(errno));
}

static weft_status close_part(part_file *part, const weft_machine_model *model, const char *path,
                              weft_error *error)
{
    if (!part->file) return WEFT_OK;
    weft_status status = model ? weft_machine_model_write(model, part->file, error) : WEFT_OK;
    if (fclose(part->file) != 0 && status == WEFT_OK)
        status = weft_fail(error, WEFT_IO, "cannot write %.300s: %s", part->path, strerror(errno));
    if (model && status == WEFT_OK && rename(part->path, path) != 0)
        status = weft_fail(error, WEFT_IO, "cannot rename %.200s to %.200s: %s", part->path, path,
                           strerror(errno));
    if (!model || status != WEFT_OK) (void)remove(part->path);
    return status;
}

weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error)
{
    part_file part;
    telling t = {.is_terminal = isatty(STDERR_FILENO) == 1};
    weft_machine_model *model = NULL;
    const weft_calibrate_options options = {.name = calibration->name,
                                            .programs = &calibration->program,
                                            .n_programs = calibration->program ? 1 : 0,
                                            .seconds = calibration->seconds,
                                            .noisy = calibration->noisy,
                                            .progress = tell,
                                            .context = &t};
    (void)!open_part(&part, calibration->path, error);
    WEFT_TRY(weft_world_agree(error));
    (void)!weft_calibrate(world, &options, &model, error);
    if (t.is_terminal && weft_world_is_root()) fputc('\n', stderr);
    if (close_part(&part, model, calibration->path, error) == WEFT_OK && model &&
        weft_world_is_root())
        fprintf(stderr, "%s: %s, %s\n", calibration->path, weft_machine_model_processor(model),
                weft_machine_model_made(model));
    weft_machine_model_destroy(&model);
    return weft_world_agree(error);
}
