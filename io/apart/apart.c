/* apart: processes that decode, and those of them that are free. */
#include "apart.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream.h"

#define PACKAGE "libweft-files0"
enum {
    QUIET_MS = 120000,
    LARGE = 16 << 20 /* bytes that are given back at once */,
    MOST = 64 /* threads that read */
};
static const int64_t memory_bytes = INT64_C(2) << 30;
static const char *const way_out = "get it again, or leave it out";

/* ---- those that are free ------------------------------------------------------------------------- */

/* Its memory and its socket. */
static void close_process(weft_process *process)
{
    weft_apart *a = (weft_apart *)process;
    weft_sandbox_stop(&process->box);
    if (a->room != NULL) munmap(a->room, (size_t)files_room);
    if (a->file >= 0) close(a->file);
    free(a);
}

static weft_pool pool = {.close = close_process, .most = MOST, .lock = PTHREAD_MUTEX_INITIALIZER};

void weft_apart_give(weft_apart *a)
{
    if (a->used > LARGE) { /* goes back to the system */
        (void)fallocate(a->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, files_room);
        a->process.key.source = 0;
    }
    a->used = 0;
    weft_pool_give(&pool, &a->process);
}

/* ---- starting one -------------------------------------------------------------------------------- */

/* Memory that cannot become smaller, so that no access of ours fails, whatever the other side does. */
static weft_status make_room(weft_apart *a, weft_error *error)
{
    a->file = memfd_create("weft-read-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (a->file >= 0 && ftruncate(a->file, files_room) == 0 &&
        fcntl(a->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        void *room = mmap(NULL, (size_t)files_room, PROT_READ | PROT_WRITE, MAP_SHARED, a->file, 0);
        if (room != MAP_FAILED) a->room = room;
    }
    return a->room != NULL ? WEFT_OK : weft_fail_memory(error, (size_t)files_room);
}

static weft_status start(const char *path, const char *need, weft_apart **apart, weft_error *error)
{
    weft_apart *a = calloc(1, sizeof *a);
    if (a == NULL) return weft_fail_memory(error, sizeof *a);
    a->file = a->process.box.pipe = -1;
    a->arguments[0] = a->program;
    weft_status status =
        weft_program_find("weft-read-files", PACKAGE, path, need, a->program, error);
    if (status == WEFT_OK) status = make_room(a, error);
    const weft_sandbox_order order = {.subject = path,
                                      .arguments = a->arguments,
                                      .input = a->file,
                                      .memory_bytes = memory_bytes,
                                      .quiet_ms = QUIET_MS,
                                      .is_kept = true,
                                      .after = way_out,
                                      .status = WEFT_USAGE};
    if (status == WEFT_OK) status = weft_sandbox_start(&a->process.box, &order, error);
    if (status == WEFT_OK)
        *apart = a;
    else
        close_process(&a->process);
    return status;
}

weft_status weft_apart_take(const char *path, const char *need, weft_apart_key key, int64_t n,
                            weft_apart **apart, weft_error *error)
{
    if (n < 1 || n > FILES_LARGEST)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s is %s of %lld bytes, and from 1 to 256 MiB can be decoded", path,
                         need, (long long)n);
    *apart = (weft_apart *)weft_pool_take(&pool, key, true);
    if (*apart == NULL) WEFT_TRY(start(path, need, apart, error));
    weft_apart *a = *apart;
    a->has_it =
        key.source != 0 && a->process.key.source == key.source && a->process.key.at == key.at;
    if (!a->has_it) {
        a->wanted = key;
        a->process.key.source = 0;
        a->n = n;
        a->from = a->room;
        a->to = a->room + (n + 63) / 64 * 64;
    }
    return WEFT_OK;
}

/* ---- asking -------------------------------------------------------------------------------------- */

static weft_status fail_lie(weft_apart *a, const char *place, weft_error *error)
{
    weft_sandbox_stop(&a->process.box);
    return weft_fail(error, WEFT_USAGE,
                     "%.240s is damaged or hostile: the process that read it said what cannot be; "
                     "%s",
                     place, way_out);
}

static weft_status ask(weft_apart *a, files_task task, const char *place, int64_t bytes,
                       weft_error *error)
{
    const files_asked asked = {
        .task = (uint32_t)task, .n = a->n, .to = a->to - a->room, .bytes = bytes};
    a->process.box.order.subject = place;
    weft_sandbox_write(&a->process.box, &asked, sizeof asked);
    WEFT_TRY(weft_sandbox_read(&a->process.box, &a->answer, sizeof a->answer, error));
    if (a->answer.is_good > 1 || !stream_is_text(a->answer.why, sizeof a->answer.why))
        return fail_lie(a, place, error);
    if (a->answer.is_good) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%.240s cannot be read: %.199s; %s", place, a->answer.why,
                     way_out);
}

weft_status weft_apart_image(weft_apart *a, const char *place, weft_error *error)
{
    const files_answer *s = &a->answer;
    weft_status status = ask(a, FILES_IMAGE, place, FILES_LARGEST, error);
    if (status == WEFT_OK && (s->rows < 1 || s->columns < 1 || s->channels < 1 || s->channels > 4 ||
                              s->rows > FILES_LARGEST || s->columns > FILES_LARGEST / s->rows ||
                              s->channels > FILES_LARGEST / (s->rows * s->columns)))
        status = fail_lie(a, place, error);
    a->used = FILES_LARGEST; /* who fails may have written anywhere */
    if (status == WEFT_OK) a->used = a->n + s->rows * s->columns * s->channels;
    if (status == WEFT_OK) a->process.key = a->wanted;
    return status;
}

weft_status weft_apart_block(files_task task, const char *path, const char *place, const void *from,
                             int64_t n, void *to, int64_t bytes, weft_error *error)
{
    static const char *const needs[FILES_TASKS] = {
        [FILES_SNAPPY] = "compressed by snappy", [FILES_ZSTD] = "compressed by zstd"};
    weft_apart *a = NULL;
    if (bytes < 0 || bytes > FILES_LARGEST)
        return weft_fail(error, WEFT_USAGE, "%.240s has %lld bytes, and at most 256 MiB can be",
                         place, (long long)bytes);
    WEFT_TRY(weft_apart_take(path, needs[task], (weft_apart_key){0, 0}, n, &a, error));
    memcpy(a->from, from, (size_t)n);
    const weft_status status = ask(a, task, place, bytes, error);
    if (status == WEFT_OK) memcpy(to, a->to, (size_t)bytes);
    a->used = n + bytes;
    weft_apart_give(a);
    return status;
}

/* ---- whole files --------------------------------------------------------------------------------- */

/* *is_more: false behind the last. */
static weft_status take_frame(weft_sandbox *box, char *frame, size_t *bytes, weft_error *error)
{
    stream_head head;
    stream_refusal refusal;
    *bytes = 0;
    WEFT_TRY(weft_sandbox_read(box, &head, sizeof head, error));
    if (head.kind == STREAM_END && head.bytes == 0) return WEFT_OK;
    if (head.kind == STREAM_BYTES && head.bytes > 0 && head.bytes <= STREAM_FRAME) {
        *bytes = head.bytes;
        return weft_sandbox_read(box, frame, head.bytes, error);
    }
    if (head.kind != STREAM_REFUSED || head.bytes != sizeof refusal)
        return weft_fail(error, WEFT_USAGE,
                         "%.240s is damaged or hostile: the process that read it said what cannot "
                         "be; get it again",
                         box->order.subject);
    WEFT_TRY(weft_sandbox_read(box, &refusal, sizeof refusal, error));
    return weft_fail(error, WEFT_USAGE, "%.200s cannot be decompressed: %.199s; get it again",
                     box->order.subject,
                     stream_is_text(refusal.sentence, sizeof refusal.sentence) ? refusal.sentence
                                                                               : "no reason given");
}

weft_status weft_apart_expand(const char *path, const char *need, int file,
                              weft_status (*write)(const void *argument, const char *bytes,
                                                   size_t n, weft_error *error),
                              const void *argument, weft_error *error)
{
    char program[WEFT_PROGRAM_PATH], word[] = "expand";
    char *const arguments[] = {program, word, NULL};
    size_t bytes;
    weft_sandbox box;
    const weft_sandbox_order order = {.subject = path,
                                      .arguments = arguments,
                                      .input = file,
                                      .memory_bytes = memory_bytes,
                                      .quiet_ms = QUIET_MS,
                                      .after = "get it again",
                                      .status = WEFT_USAGE};
    WEFT_TRY(weft_program_find("weft-read-files", PACKAGE, path, need, program, error));
    char *frame = malloc(STREAM_FRAME);
    if (frame == NULL) return weft_fail_memory(error, STREAM_FRAME);
    weft_status status = weft_sandbox_start(&box, &order, error);
    while (status == WEFT_OK && (status = take_frame(&box, frame, &bytes, error)) == WEFT_OK &&
           bytes > 0)
        status = write(argument, frame, bytes, error);
    weft_sandbox_stop(&box);
    free(frame);
    return status;
}
