/* commit: from bytes on disk to a checkpoint: manifest, rename, and old ones removed.
 *
 * Order, so that a crash or a power cut at any moment leaves this checkpoint whole or not there:
 * data (synced by whoever wrote it), manifest, directory, rename, directory above. Only then are
 * old ones removed, each by a rename to a name that open removes anyway.
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
    return weft_fail(error, WEFT_IO, "cannot rename %.200s to %.200s: %s", from, to,
                     strerror(errno));
}

/* A step that is saved again takes the place of the old one in one move, where the file system can.
 * The old one is then `old`, and goes only when the new names are on the disk. */
static weft_status rename_over(const char *from, const char *to, const char **old, char *other,
                               weft_error *error)
{
    *old = from;
    if (!weft_path_exists(to)) return rename_or_fail(from, to, error);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) return WEFT_OK;
    *old = other;
    WEFT_TRY(weft_path(other, error, "%s.old.tmp", to));
    WEFT_TRY(weft_directory_remove(other, error));
    WEFT_TRY(rename_or_fail(to, other, error));
    return rename_or_fail(from, to, error);
}

static weft_status publish(const weft_checkpoints *c, weft_error *error)
{
    char path[WEFT_PATH_BYTES], other[WEFT_PATH_BYTES];
    const char *old;
    WEFT_TRY(weft_step_path(path, c->directory, c->save->manifest->state.step, error));
    WEFT_TRY(rename_over(c->save->temporary, path, &old, other, error));
    WEFT_TRY(weft_directory_sync(c->directory, error));
    return weft_directory_remove(old, error);
}

static weft_status drop_step(const weft_checkpoints *c, int64_t step, weft_error *error)
{
    char path[WEFT_PATH_BYTES], old[WEFT_PATH_BYTES];
    WEFT_TRY(weft_step_path(path, c->directory, step, error));
    WEFT_TRY(weft_path(old, error, "%s.old.tmp", path));
    WEFT_TRY(weft_directory_remove(old, error));
    WEFT_TRY(rename_or_fail(path, old, error));
    return weft_directory_remove(old, error);
}

/* Of those up to the one just written the newest `keep` good ones stay, and damaged ones that are
 * no older. Later steps, of a run that has gone back, are not ours to judge. */
static weft_status prune(const weft_checkpoints *c, weft_error *error)
{
    const int room = weft_stored_steps(c->directory, NULL, 0);
    int64_t *steps = malloc(((size_t)room + 1) * sizeof *steps);
    if (steps == NULL) return weft_fail_memory(error, (size_t)room * sizeof *steps);
    int n = weft_stored_steps(c->directory, steps, room), n_good = 0;
    weft_status status = WEFT_OK;
    for (int i = (n < room ? n : room) - 1; i >= 0 && status == WEFT_OK; i--) {
        if (steps[i] > c->save->manifest->state.step) continue;
        if (n_good >= c->options.keep)
            status = drop_step(c, steps[i], error);
        else
            n_good += !weft_step_is_damaged(c->directory, steps[i]);
    }
    free(steps);
    return status;
}

weft_status weft_save_publish(weft_checkpoints *c, weft_error *error)
{
    if (c->save->peers.self != 0) return WEFT_OK;
    WEFT_TRY(put_manifest(c->save, error));
    WEFT_TRY(publish(c, error));
    return prune(c, error);
}
