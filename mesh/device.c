/* device: the CPU's memory and copies, and its table.
 *
 * A command on a queue of the CPU's is done when the call returns, so its events are over as soon as they are there.
 *
 * Large pieces come straight from the system: zeroed without being touched, so each page lands near
 * the core that first writes it, and on huge pages where the system has them.
 */
#include "mesh_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAPPED_FROM = 1 << 20, HUGE_PAGE = 2 << 20 };

/* Under the sanitizers everything comes from the heap, where they see an access out of bounds. */
#ifdef WEFT_SANITIZE
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

static bool is_mapped(size_t bytes)
{
    return !IS_SANITIZED && bytes >= MAPPED_FROM;
}

/* Huge pages start at multiples of their size: take more, and give the ends back. */
static void *map_huge(size_t bytes)
{
    size_t taken = bytes + HUGE_PAGE;
    char *from = mmap(NULL, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)from % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(from, before);
    if (taken - before - bytes > 0) munmap(from + before + bytes, taken - before - bytes);
    madvise(from + before, bytes, MADV_HUGEPAGE); /* advice: a refusal costs speed only */
    return from + before;
}

static void *map(size_t bytes)
{
    if (bytes >= HUGE_PAGE) return map_huge(bytes);
    void *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return from == MAP_FAILED ? NULL : from;
}

bool weft_has_free_memory(size_t bytes)
{
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

/* Whole pages when mapped, whole cache lines otherwise; the same for take and give. */
static size_t rounded(size_t bytes)
{
    size_t unit = is_mapped(bytes) ? 4096 * 16 : WEFT_ALIGNMENT;
    return bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
}

/* From the heap, zeroed. The sanitizers' own maps large pieces, and does not touch what it maps: they are taken where they are
 * aligned as it is. */
static void *take_zeroed(size_t bytes)
{
    enum { LARGE = 256 << 10 };
    void *memory = IS_SANITIZED && bytes >= LARGE ? calloc(1, bytes) : NULL;
    if (memory != NULL && (uintptr_t)memory % WEFT_ALIGNMENT == 0) return memory;
    free(memory);
    memory = aligned_alloc(WEFT_ALIGNMENT, bytes);
    return memory != NULL ? memset(memory, 0, bytes) : NULL;
}

weft_status weft_host_take(size_t bytes, void **memory, weft_error *error)
{
    *memory = NULL;
    if (bytes > SIZE_MAX / 4) return weft_fail_memory(error, bytes);
    size_t taken = rounded(bytes);
    *memory = is_mapped(bytes) ? map(taken) : take_zeroed(taken);
    return *memory == NULL ? weft_fail_memory(error, bytes) : WEFT_OK;
}

void weft_host_give(void *memory, size_t bytes)
{
    if (memory == NULL) return;
    if (is_mapped(bytes))
        munmap(memory, rounded(bytes));
    else
        free(memory);
}

static weft_status take_cpu(weft_stream *stream, size_t bytes, void **memory, weft_error *error)
{
    (void)stream;
    return weft_host_take(bytes, memory, error);
}

static void give_cpu(weft_stream *stream, void *memory, size_t bytes)
{
    (void)stream;
    weft_host_give(memory, bytes);
}

static int64_t room_cpu(weft_stream *stream)
{
    (void)stream;
    return weft_host_free_memory();
}

static void copy_cpu(weft_stream *stream, int queue, void *to, const void *from, size_t bytes)
{
    enum { SMALL = 64 << 10 };
    if (bytes > SMALL)
        weft_copy_box_cpu(stream, queue, to, from, &(weft_box_copy){.run = (int64_t)bytes}, 1);
    else if (bytes > 0) /* memory of nothing may be NULL */
        memcpy(to, from, bytes);
}

typedef struct touch_job {
    char *memory;
    size_t bytes;
} touch_job;

/* Pages that are made one by one as loops come to them cost twice as much, and those that are read before they are written
 * are made twice, with a word to all cores about it. A refusal costs speed only. */
static void touch_piece(void *argument, int64_t begin, int64_t end, int lane)
{
    const touch_job *job = argument;
    const size_t from = (size_t)begin * HUGE_PAGE, most = (size_t)end * HUGE_PAGE;
    const size_t to = most < job->bytes ? most : job->bytes;
    (void)lane;
#ifdef MADV_POPULATE_WRITE
    (void)madvise(job->memory + from, to - from, MADV_POPULATE_WRITE);
#endif
}

static void touch_cpu(weft_stream *stream, void *memory, size_t bytes)
{
    touch_job job = {.memory = memory, .bytes = rounded(bytes)};
    const size_t n = (job.bytes + HUGE_PAGE - 1) / HUGE_PAGE;
    if (memory != NULL && is_mapped(bytes)) weft_parallel(stream, (int64_t)n, 1, touch_piece, &job);
}

static void put_or_get(weft_stream *stream, void *to, const void *from, size_t bytes)
{
    (void)stream;
    if (bytes > 0) memcpy(to, from, bytes);
}

static weft_event record_cpu(weft_stream *stream, int queue)
{
    (void)stream;
    return (weft_event){queue, 0};
}

static void follow_cpu(weft_stream *stream, int queue, weft_event event)
{
    (void)stream, (void)queue, (void)event;
}

static bool is_done_cpu(weft_stream *stream, weft_event event)
{
    (void)stream, (void)event;
    return true;
}

static void wait_cpu(weft_stream *stream, weft_event event)
{
    (void)stream, (void)event;
}

static void finish_cpu(weft_stream *stream)
{
    (void)stream;
}

static uint64_t done_cpu(weft_stream *stream)
{
    (void)stream;
    return 0;
}

const weft_device weft_device_cpu = {
    .name = "cpu",
    .is_open = true,
    .take = take_cpu,
    .take_zeroed = take_cpu,
    .give = give_cpu,
    .room = room_cpu,
    .take_staging = weft_host_take,
    .give_staging = weft_host_give,
    .stream_create = weft_stream_create_cpu,
    .stream_destroy = weft_stream_destroy_cpu,
    .put = put_or_get,
    .get = put_or_get,
    .copy = copy_cpu,
    .copy_box = weft_copy_box_cpu,
    .combine_box = weft_combine_box_cpu,
    .identity = weft_identity_cpu,
    .record = record_cpu,
    .follow = follow_cpu,
    .is_done = is_done_cpu,
    .wait = wait_cpu,
    .finish = finish_cpu,
    .done = done_cpu,
    .touch = touch_cpu,
    .meanwhile = weft_stream_meanwhile,
};
