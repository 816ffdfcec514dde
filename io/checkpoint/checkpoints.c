/* checkpoints: the public calls around saves; the directory they live in. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "save.h"

/* ---- open and close -------------------------------------------------------------------------- */

static bool is_left_over(const char *name)
{
    static const char prefix[] = "step_", suffix[] = ".tmp";
    const size_t bytes = strlen(name);
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && bytes > sizeof suffix - 1 &&
           strcmp(name + bytes - (sizeof suffix - 1), suffix) == 0;
}

/* What interrupted saves and removals have left. */
static weft_status remove_left_over(const char *directory, weft_error *error)
{
    DIR *listing = opendir(directory);
    weft_status status = WEFT_OK;
    if (listing == NULL)
        return weft_fail(error, WEFT_IO, "cannot list %.300s: %s", directory, strerror(errno));
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(listing)) != NULL;) {
        char path[WEFT_PATH_BYTES];
        if (!is_left_over(entry->d_name)) continue;
        status = weft_path(path, error, "%s/%s", directory, entry->d_name);
        if (status == WEFT_OK) status = weft_directory_remove(path, error);
    }
    closedir(listing);
    return status;
}

static weft_status prepare_directory(const char *directory, weft_error *error)
{
    WEFT_TRY(weft_directory_make(directory, error));
    if (access(directory, W_OK | X_OK) != 0)
        return weft_fail(error, WEFT_IO, "checkpoints cannot be written to %.300s: %s", directory,
                         strerror(errno));
    return remove_left_over(directory, error);
}

static weft_status make(const char *directory, const weft_checkpoint_options *options,
                        weft_checkpoints **checkpoints, weft_error *error)
{
    enum { LONGEST = WEFT_PATH_BYTES - 128 }; /* what stands in the directory needs room too */
    weft_checkpoints *c = *checkpoints = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    if (directory == NULL || directory[0] == 0 || strlen(directory) > LONGEST)
        return weft_fail(error, WEFT_USAGE,
                         "checkpoints need a directory, with a path of 1 to %d bytes", LONGEST);
    if (options) c->options = *options;
    if (c->options.keep < 2) c->options.keep = 2;
    WEFT_TRY(weft_path(c->directory, error, "%s", directory));
    return weft_world_is_root() ? prepare_directory(directory, error) : WEFT_OK;
}

/* What a public call returns, however many errors it has on the way. */
static weft_status report(const weft_error *own, weft_error *error)
{
    if (own->status != WEFT_OK && error != NULL && error->status == WEFT_OK) *error = *own;
    return own->status;
}

weft_status weft_checkpoints_open(const char *directory, const weft_checkpoint_options *options,
                                  weft_checkpoints **checkpoints, weft_error *error)
{
    weft_error own = {.rank = -1};
    (void)make(directory, options, checkpoints, &own);
    if (weft_world_agree(&own) != WEFT_OK) weft_checkpoints_close(checkpoints);
    return report(&own, error);
}

void weft_checkpoints_close(weft_checkpoints **checkpoints)
{
    weft_checkpoints *c = *checkpoints;
    if (c == NULL) return;
    weft_save_free(c, true);
    weft_devices[WEFT_CPU]->give(c->staging, (size_t)c->staging_bytes);
    weft_shared_free(&c->shared);
    weft_frame_drop(&c->frame);
    free(c);
    *checkpoints = NULL;
}

/* ---- save, poll, wait ------------------------------------------------------------------------ */

weft_status weft_checkpoints_save(weft_checkpoints *c, weft_program *program,
                                  const weft_checkpoint_state *state, weft_error *error)
{
    weft_error own = {.rank = -1};
    WEFT_TRY(weft_checkpoints_wait(c, error));
    if (weft_save_start(c, program, state, &own) != WEFT_OK) {
        weft_save_free(c, false);
        return report(&own, error);
    }
    return c->options.is_synchronous ? weft_checkpoints_wait(c, error) : WEFT_OK;
}

/* WEFT_OK: every process's phase is over. WEFT_IO: not yet. Else the agreement itself has failed.
 */
static weft_status agree_done(const weft_save *save)
{
    weft_error not_yet = {.status = atomic_load(&save->is_done) ? WEFT_OK : WEFT_IO, .rank = -1};
    return weft_world_agree(&not_yet);
}

weft_status weft_checkpoints_poll(weft_checkpoints *c, weft_error *error)
{
    weft_error own = {.rank = -1};
    if (c->save == NULL) return WEFT_OK;
    const weft_status status = agree_done(c->save);
    if (status == WEFT_IO) return WEFT_OK;
    if (status != WEFT_OK)
        return weft_fail(error, status,
                         "the processes could not agree whether a checkpoint is "
                         "written; look for the process that ended first");
    (void)weft_save_advance(c, &own);
    return report(&own, error);
}

bool weft_checkpoints_is_saving(const weft_checkpoints *c)
{
    return c->save != NULL;
}

weft_status weft_checkpoints_wait(weft_checkpoints *c, weft_error *error)
{
    weft_error own = {.rank = -1};
    while (c->save != NULL && own.status == WEFT_OK) {
        weft_save_join(c->save);
        (void)weft_save_advance(c, &own);
    }
    return report(&own, error);
}
