/* ring_file: the file that a rank keeps its trace in. */
#include "ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder.h"

static int64_t table_end(const weft_ring_sizes *sizes)
{
    const int64_t end = (int64_t)sizeof(weft_ring_head) +
                        sizes->n_programs * (int64_t)sizeof(weft_ring_program) +
                        sizes->n_steps * (int64_t)sizeof(weft_ring_step) + sizes->text_bytes;
    return (end + 63) / 64 * 64;
}

int64_t weft_ring_end(const weft_ring_sizes *sizes, int64_t n_events)
{
    return table_end(sizes) + n_events * (int64_t)sizeof(weft_traced_event);
}

weft_ring_parts weft_ring_parts_of(weft_ring_head *head)
{
    weft_ring_parts parts = {.programs = (weft_ring_program *)(void *)(head + 1)};
    parts.steps = (weft_ring_step *)(void *)(parts.programs + head->sizes.n_programs);
    parts.texts = (char *)(parts.steps + head->sizes.n_steps);
    parts.events = (weft_traced_event *)(void *)((char *)head + table_end(&head->sizes));
    return parts;
}

uint64_t weft_ring_digest(weft_ring_head *head, int64_t n_events)
{
    const uint64_t seal = head->seal;
    head->seal = 0;
    const uint64_t digest = weft_digest(0, head, (size_t)weft_ring_end(&head->sizes, n_events));
    head->seal = seal;
    return digest ? digest : 1;
}

void weft_ring_path(const char *folder, int rank, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/rank_%05d.ring", folder, rank);
}

static weft_status fail(weft_error *error, const char *path)
{
    return weft_fail(error, WEFT_IO, "cannot keep a trace in %.300s: %s; this rank is not traced",
                     path, strerror(errno));
}

/* Every byte gets its place on the disk now: a full disk later would end the rank at a store. */
static weft_status map(int file, const char *path, size_t bytes, weft_ring_head **head,
                       weft_error *error)
{
    errno = posix_fallocate(file, 0, (off_t)bytes);
    if (errno != 0) return fail(error, path);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) return fail(error, path);
    *head = memory;
    return WEFT_OK;
}

weft_status weft_ring_create(const char *path, const weft_ring_sizes *sizes, weft_ring_head **head,
                             weft_error *error)
{
    *head = NULL;
    unlink(path); /* an earlier job's, which somebody may be reading */
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return fail(error, path);
    const weft_status status =
        map(file, path, (size_t)weft_ring_end(sizes, sizes->room), head, error);
    close(file);
    if (status != WEFT_OK) {
        unlink(path);
        return status;
    }
    memcpy((*head)->magic, WEFT_RING_MAGIC, sizeof(*head)->magic);
    (*head)->format = WEFT_RING_FORMAT;
    (*head)->head_bytes = sizeof **head;
    (*head)->sizes = *sizes;
    return WEFT_OK;
}

void weft_ring_close(const char *path, weft_ring_head **head, bool seals)
{
    if (!*head) return;
    const weft_ring_sizes sizes = (*head)->sizes;
    const int64_t n = weft_sync_load(&(*head)->counts.n_events);
    if (seals) (*head)->seal = weft_ring_digest(*head, n);
    munmap(*head, (size_t)weft_ring_end(&sizes, sizes.room));
    (void)!truncate(path, (off_t)weft_ring_end(&sizes, n)); /* longer, it is good all the same */
    *head = NULL;
}
