/* recorder_file: a recorder, read from the file that its rank kept it in.
 *
 * The file is memory that nobody put in order: every number is checked before it is used as an
 * index (view.c), and every text is made one that can be printed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

void weft_text_mend(char *text, size_t bytes)
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
    weft_text_mend(head->host, sizeof head->host);
    weft_text_mend(head->busy, sizeof head->busy);
    weft_text_mend(head->device.device, sizeof head->device.device);
    weft_text_mend(head->verdict, sizeof head->verdict);
    for (int i = 0; i < WEFT_CHANNELS; i++)
        weft_text_mend(head->channels[i].axes, sizeof head->channels[i].axes);
    for (int i = 0; i < WEFT_SPOTS; i++)
        weft_text_mend(recorder->spots[i].text, sizeof recorder->spots[i].text);
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

/* ---- a rank that writes it -------------------------------------------------------------------- */

/* Memory of zeros lies behind the file, so that a text without an end, in a file of somebody else's, ends there. */
static size_t mapped_bytes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(weft_recorder) + page - 1) / page * page + page;
}

static weft_status map_file(int file, const char *path, const weft_recorder **made,
                            weft_error *error)
{
    struct stat facts;
    if (fstat(file, &facts) != 0)
        return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    if (facts.st_size != (off_t)sizeof(weft_recorder))
        return weft_fail(
            error, WEFT_CORRUPT,
            "%.300s is not a record of this version of Weft (%lld bytes; expected %zu)", path,
            (long long)facts.st_size, sizeof(weft_recorder));
    void *room = mmap(NULL, mapped_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return weft_fail_memory(error, mapped_bytes());
    *made = room;
    if (mmap(room, sizeof(weft_recorder), PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        return weft_fail(error, WEFT_IO, "cannot map %.300s: %s", path, strerror(errno));
    return WEFT_OK;
}

weft_status weft_recorder_map(const char *path, const weft_recorder **made, weft_error *error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *made = NULL;
    if (file < 0) return weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
    const weft_status status = map_file(file, path, made, error);
    close(file);
    WEFT_TRY(status);
    const weft_recorder_head *head = &(*made)->head;
    if (memcmp(head->magic, "weftrec", 8) == 0 && head->format == WEFT_RECORDER_FORMAT &&
        head->rank >= 0)
        return WEFT_OK;
    return weft_fail(error, WEFT_CORRUPT,
                     "%.300s is not a record of this version of Weft (format %u; expected %d)",
                     path, head->format, WEFT_RECORDER_FORMAT);
}

void weft_recorder_unmap(const weft_recorder **recorder)
{
    if (*recorder) munmap((void *)(uintptr_t)*recorder, mapped_bytes());
    *recorder = NULL;
}

/* ---- a job's ----------------------------------------------------------------------------------- */

static int is_record(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 9 && strncmp(entry->d_name, "rank_", 5) == 0 &&
           strcmp(entry->d_name + length - 4, ".rec") == 0;
}

int weft_recorders_find(const char *path, char *folder, size_t bytes, struct dirent ***entries,
                        weft_error *error)
{
    snprintf(folder, bytes, "%.3900s/recorder", path);
    int n = scandir(folder, entries, is_record, alphasort);
    if (n > 0) return n;
    if (n == 0) free(*entries);
    const bool is_refused = n < 0 && errno == EACCES;
    if (!is_refused) snprintf(folder, bytes, "%.3900s", path);
    if (!is_refused) n = scandir(folder, entries, is_record, alphasort);
    if (n > 0) return n;
    if (n == 0) free(*entries);
    if (n < 0 && errno == EACCES)
        weft_fail(error, WEFT_IO, "cannot look into %.300s: %s; ask its owner", folder,
                  strerror(errno));
    else
        weft_fail(error, WEFT_USAGE,
                  "%.300s has no records of a job (recorder/rank_00000.rec); name the "
                  "directory that was given with --run",
                  path);
    return 0;
}

void weft_recorders_found(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    if (n > 0) free(entries);
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
