/* commit: from bytes on disk to a checkpoint: manifest, rename, and old ones removed.
 *
 * Order, so that a crash or a power cut at any moment leaves this checkpoint whole or not there:
 * data (synced by whoever wrote it), manifest, directory, rename, directory above. Only then are
 * old ones removed. Removing is no part of the save: if it fails, there is a checkpoint too many.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "save.h"
#include "stored.h"

static weft_status put_manifest(weft_save *save, weft_error *error)
{
    char *text;
    WEFT_TRY(weft_structure_hash(save->manifest, 0, save->file, save->path,
                                 &save->manifest->files[0].structure, error));
    WEFT_TRY(weft_manifest_text(save->manifest, &text, error));
    const weft_status status =
        weft_file_put(save->temporary, WEFT_MANIFEST_NAME, text, strlen(text), error);
    free(text);
    return status;
}

static weft_status rename_or_fail(const char *from, const char *to, weft_error *error)
{
    if (rename(from, to) == 0) return WEFT_OK;
    return weft_fail_io(error, "give its name to", to, 0);
}

/* The old one is set aside under a name from which open would bring it back. An older one there may
 * go only when what took its place is known to be on the disk. */
static weft_status set_aside(const weft_checkpoints *c, const char *from, const char *aside,
                             weft_error *error)
{
    if (weft_path_exists(aside)) {
        WEFT_TRY(weft_directory_sync(c->directory, error));
        WEFT_TRY(weft_directory_remove(aside, error));
    }
    return rename_or_fail(from, aside, error);
}

/* A step that is saved again takes the place of the old one in one move, where the file system can.
 * Else the old one steps aside first. *old: where it is then, or NULL when there was none. */
static weft_status take_name(const weft_checkpoints *c, const char *to, const char *aside,
                             const char **old, weft_error *error)
{
    const char *from = c->save->temporary;
    *old = NULL;
    if (!weft_path_exists(to)) return rename_or_fail(from, to, error);
    *old = from;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) return WEFT_OK;
    *old = aside;
    WEFT_TRY(set_aside(c, to, aside, error));
    const weft_status status = rename_or_fail(from, to, error);
    if (status != WEFT_OK) (void)rename(aside, to); /* else the next open does it */
    return status;
}

static weft_status publish(const weft_checkpoints *c, weft_error *error)
{
    char path[WEFT_PATH_BYTES], aside[WEFT_PATH_BYTES];
    const char *old;
    WEFT_TRY(weft_step_path(path, c->directory, c->save->manifest->state.step, error));
    WEFT_TRY(weft_path(aside, error, "%s" WEFT_ASIDE, path));
    WEFT_TRY(take_name(c, path, aside, &old, error));
    const weft_status status = weft_directory_sync(c->directory, error);
    /* A power cut could still bring the old one back, so it must stay: out of the way of whoever
     * tidies up after a failure. */
    if (status != WEFT_OK && old == c->save->temporary) (void)set_aside(c, old, aside, NULL);
    if (status == WEFT_OK && old) (void)weft_directory_remove(old, NULL);
    return status;
}

/* ---- old ones -------------------------------------------------------------------------------- */

static weft_status path_of_dropped(char *path, const weft_checkpoints *c, int64_t step)
{
    return weft_path(path, NULL, "%s/step_%08lld" WEFT_LEFT_OVER, c->directory, (long long)step);
}

static weft_status rename_dropped(const weft_checkpoints *c, int64_t step)
{
    char path[WEFT_PATH_BYTES], dropped[WEFT_PATH_BYTES];
    WEFT_TRY(weft_step_path(path, c->directory, step, NULL));
    WEFT_TRY(path_of_dropped(dropped, c, step));
    WEFT_TRY(weft_directory_remove(dropped, NULL));
    return rename_or_fail(path, dropped, NULL);
}

/* Each gets a name that open removes anyway; only when those are on the disk do files go, so that
 * no name of a step is ever seen with a part of its files. What cannot be removed now can be after
 * the next save, or at the next open. */
static void drop(const weft_checkpoints *c, const int64_t *steps, int n)
{
    char path[WEFT_PATH_BYTES];
    int n_renamed = 0;
    for (int i = 0; i < n; i++)
        n_renamed += rename_dropped(c, steps[i]) == WEFT_OK;
    if (n_renamed == 0 || weft_directory_sync(c->directory, NULL) != WEFT_OK) return;
    for (int i = 0; i < n; i++)
        if (path_of_dropped(path, c, steps[i]) == WEFT_OK) (void)weft_directory_remove(path, NULL);
}

/* The step that stays besides the newest; -1: none. */
static int64_t best_of(const weft_checkpoints *c)
{
    weft_checkpoint_state best;
    const bool is_kept = c->options.keep_best;
    return is_kept && weft_stored_best(c->directory, c->held_out, &best) ? best.step : -1;
}

/* Of those up to the one just written the newest `keep` good ones stay, the one of the lowest loss where that is wanted, and damaged
 * ones that are no older than the newest. Later steps, of a run that has gone back, are not ours to judge. */
static void prune(const weft_checkpoints *c)
{
    int64_t *steps;
    int n, n_good = 0, n_dropped = 0;
    if (weft_steps_list(c->directory, &steps, &n, NULL) != WEFT_OK)
        return; /* after the next save */
    int64_t *dropped = malloc(((size_t)n + 1) * sizeof *dropped);
    const int64_t best = n > c->options.keep ? best_of(c) : -1;
    for (int i = n - 1; dropped && i >= 0; i--) {
        if (steps[i] > c->save->manifest->state.step) continue;
        if (n_good >= c->options.keep && steps[i] == best) continue;
        if (n_good >= c->options.keep)
            dropped[n_dropped++] = steps[i];
        else
            n_good += !weft_step_is_damaged(c->directory, steps[i]);
    }
    drop(c, dropped, n_dropped);
    free(dropped);
    free(steps);
}

weft_status weft_save_publish(weft_checkpoints *c, weft_error *error)
{
    if (c->save->peers.self != 0) return WEFT_OK;
    WEFT_TRY(put_manifest(c->save, error));
    WEFT_TRY(publish(c, error));
    prune(c);
    return WEFT_OK;
}
