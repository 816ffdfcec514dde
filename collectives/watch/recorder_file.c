/* recorder_file: a recorder, read from the file that its rank kept it in.
 *
 * The file is memory that nobody put in order: every number is checked before it is used as an
 * index (view.c), and every text is made one that can be printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

/* Bytes of the UTF-8 character at `text`, which ends in a 0; 0: it is none, or one that steers a
 * terminal. */
static size_t character_bytes(const unsigned char *text)
{
    const unsigned char first = *text;
    const size_t bytes = first < 0x80   ? 1
                         : first < 0xc2 ? 0
                         : first < 0xe0 ? 2
                         : first < 0xf0 ? 3
                                        : 4;
    if (first < 0x20 || first == 0x7f || first > 0xf4 || bytes == 0) return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    const bool is_other_form =
        (first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
        (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f) ||
        (first == 0xc2 && text[1] < 0xa0);
    return is_other_form ? 0 : bytes;
}

static void mend_text(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (unsigned char *at = (unsigned char *)text; *at != '\0';) {
        const size_t n = character_bytes(at);
        if (n == 0) *at = '?';
        at += n > 0 ? n : 1;
    }
}

static void mend_texts(weft_recorder *recorder)
{
    weft_recorder_head *head = &recorder->head;
    mend_text(head->host, sizeof head->host);
    mend_text(head->busy, sizeof head->busy);
    mend_text(head->device.device, sizeof head->device.device);
    mend_text(head->verdict, sizeof head->verdict);
    for (int i = 0; i < WEFT_CHANNELS; i++)
        mend_text(head->channels[i].axes, sizeof head->channels[i].axes);
    for (int i = 0; i < WEFT_SPOTS; i++)
        mend_text(recorder->spots[i].text, sizeof recorder->spots[i].text);
}

weft_status weft_recorder_read(const char *path, weft_recorder **made, weft_error *error)
{
    weft_recorder *recorder = *made = malloc(sizeof *recorder);
    if (!recorder) return weft_fail_memory(error, sizeof *recorder);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = file < 0 ? -1 : read(file, recorder, sizeof *recorder);
    if (file >= 0) close(file);
    if (n < 0) return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    if (n != sizeof *recorder || memcmp(recorder->head.magic, "weftrec", 8) != 0 ||
        recorder->head.format != WEFT_RECORDER_FORMAT || recorder->head.rank < 0)
        return weft_fail(error, WEFT_CORRUPT,
                         "%.300s is not a record of this version of Weft (%lld bytes, format %u; "
                         "expected %zu, %d)",
                         path, (long long)n, n == sizeof *recorder ? recorder->head.format : 0,
                         sizeof *recorder, WEFT_RECORDER_FORMAT);
    mend_texts(recorder);
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
        fresh.device_idle = view->device_idle;
        fresh.device_allowed = view->device_allowed;
        if (fresh.signal == 0) fresh.signal = view->signal;
        *view = fresh;
    }
    free(recorder);
}
