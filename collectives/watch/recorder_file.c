/* recorder_file: a recorder, read from the file that its rank kept it in.
 *
 * The file is memory that nobody put in order: every number is checked before it is used as an index (view.c), and every
 * text is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

static void end_texts(weft_recorder *recorder)
{
    weft_recorder_head *head = &recorder->head;
    head->host[sizeof head->host - 1] = head->busy[sizeof head->busy - 1] = '\0';
    head->verdict[sizeof head->verdict - 1] = '\0';
    for (int i = 0; i < WEFT_CHANNELS; i++)
        head->channels[i].axes[WEFT_AXES_BYTES - 1] = '\0';
    for (int i = 0; i < WEFT_SITES; i++)
        recorder->sites[i].text[sizeof recorder->sites[i].text - 1] = '\0';
}

weft_status weft_recorder_read(const char *path, weft_recorder **made, weft_error *error)
{
    weft_recorder *recorder = *made = malloc(sizeof *recorder);
    if (!recorder) return weft_fail_memory(error, sizeof *recorder);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? -1 : read(file, recorder, sizeof *recorder);
    if (file >= 0) close(file);
    if (n < 0)
        return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    if (n != sizeof *recorder || memcmp(recorder->head.magic, "weftrec", 8) != 0 ||
        recorder->head.format != WEFT_RECORDER_FORMAT || recorder->head.rank < 0)
        return weft_fail(error, WEFT_CORRUPT,
                         "%.300s is not a record of this version of Weft (%lld bytes, format %u; "
                         "expected %zu, %d)",
                         path, (long long)n, n == sizeof *recorder ? recorder->head.format : 0,
                         sizeof *recorder, WEFT_RECORDER_FORMAT);
    end_texts(recorder);
    return WEFT_OK;
}

/* ---- ranks that can no longer speak ---------------------------------------------------------- */

void weft_view_refresh(const char *folder, weft_rank_view *view)
{
    char path[4096];
    weft_recorder *recorder = NULL;
    weft_rank_view fresh;
    weft_recorder_path(folder, view->rank, path, sizeof path);
    if (weft_recorder_read(path, &recorder, NULL) == WEFT_OK && recorder->head.pid == view->pid) {
        weft_view_take(recorder, &fresh);
        fresh.presence = view->presence;
        fresh.silent = view->silent;
        fresh.waiting = view->waiting;
        if (fresh.signal == 0) fresh.signal = view->signal;
        *view = fresh;
    }
    free(recorder);
}
