/* checkpoints: the public calls around saves; the directory they live in. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "save.h"

/* ---- open and close -------------------------------------------------------------------------- */

/* "step_00000007.tmp", for an ending of ".tmp". */
static bool is_step_with(const char *name, const char *ending)
{
    static const char prefix[] = "step_";
    const size_t bytes = strlen(name), tail = strlen(ending);
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && bytes > tail &&
           strcmp(name + bytes - tail, ending) == 0;
}

/* A save of a step that was there has been interrupted: after the old one was set aside, or when
 * the new one had its place. */
static weft_status settle_aside(const char *path, weft_error *error)
{
    char step[WEFT_PATH_BYTES];
    WEFT_TRY(weft_path(step, error, "%.*s", (int)(strlen(path) - strlen(WEFT_ASIDE)), path));
    if (weft_path_exists(step)) return weft_directory_remove(path, error);
    if (rename(path, step) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "cannot bring back %.200s, which a save had set aside: %s",
                     path, strerror(errno));
}

static weft_status settle_one(const char *directory, const char *name, weft_error *error)
{
    char path[WEFT_PATH_BYTES];
    WEFT_TRY(weft_path(path, error, "%s/%s", directory, name));
    if (is_step_with(name, WEFT_ASIDE)) return settle_aside(path, error);
    return is_step_with(name, WEFT_LEFT_OVER) ? weft_directory_remove(path, error) : WEFT_OK;
}

/* What interrupted saves and removals have left. The names as they are go to the disk first: what
 * looks left over may be what a name on the disk still leads to. */
static weft_status settle_left_over(const char *directory, weft_error *error)
{
    WEFT_TRY(weft_directory_sync(directory, error));
    DIR *listing = opendir(directory);
    weft_status status = WEFT_OK;
    if (listing == NULL) return weft_fail_io(error, "list", directory, 0);
    for (struct dirent *entry; status == WEFT_OK && (entry = readdir(listing)) != NULL;)
        status = settle_one(directory, entry->d_name, error);
    closedir(listing);
    return status == WEFT_OK ? weft_directory_sync(directory, error) : status;
}

static weft_status prepare_directory(const char *directory, weft_error *error)
{
    WEFT_TRY(weft_directory_make(directory, error));
    WEFT_TRY(weft_directory_anchor(directory, error));
    if (access(directory, W_OK | X_OK) != 0)
        return weft_fail(error, WEFT_IO, "checkpoints cannot be written to %.300s: %s", directory,
                         strerror(errno));
    return settle_left_over(directory, error);
}

/* A copy of one of the options: into own [WEFT_FACTS_BYTES]. */
static weft_status take_facts(const char **facts, char *own, weft_error *error)
{
    if (*facts != NULL) {
        WEFT_TRY(weft_facts_check(*facts, error));
        strcpy(own, *facts);
    }
    *facts = own;
    return WEFT_OK;
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
    WEFT_TRY(take_facts(&c->options.data, c->data, error));
    WEFT_TRY(take_facts(&c->options.held_out, c->held_out, error));
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
    WEFT_GIVEN(checkpoints, error);
    (void)make(directory, options, checkpoints, &own);
    if (weft_world_agree(&own) != WEFT_OK) weft_checkpoints_close(checkpoints);
    return report(&own, error);
}

void weft_checkpoints_close(weft_checkpoints **checkpoints)
{
    weft_checkpoints *c = checkpoints != NULL ? *checkpoints : NULL;
    if (c == NULL) return;
    weft_save_free(c, true);
    weft_staging_free(c);
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
    WEFT_TRY(weft_check_given(c != NULL, __func__, "checkpoints", error));
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(state, error);
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
    weft_error not_yet = {.status = weft_sync_load(&save->is_done) ? WEFT_OK : WEFT_IO, .rank = -1};
    return weft_world_agree(&not_yet);
}

weft_status weft_checkpoints_poll(weft_checkpoints *c, weft_error *error)
{
    weft_error own = {.rank = -1};
    WEFT_TRY(weft_check_given(c != NULL, __func__, "checkpoints", error));
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
    return c != NULL && c->save != NULL;
}

weft_status weft_checkpoints_wait(weft_checkpoints *c, weft_error *error)
{
    weft_error own = {.rank = -1};
    WEFT_TRY(weft_check_given(c != NULL, __func__, "checkpoints", error));
    while (c->save != NULL && own.status == WEFT_OK) {
        weft_save_join(c->save);
        (void)weft_save_advance(c, &own);
    }
    return report(&own, error);
}
