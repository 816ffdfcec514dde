/* traced: what a rank has written down, read from its file.
 *
 * The file is memory that nobody put in order: every number is checked before it is used as a place.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring_file.h"

/* The struct that others see comes first; what it points to is in `head`, and behind this. */
typedef struct opened {
    weft_traced seen;
    weft_ring_head *head; /* the file, as it is */
    weft_traced_program *programs;
    weft_traced_step *steps;
} opened;

static weft_status read_all(const char *path, weft_ring_head **head, int64_t *bytes,
                            weft_error *error)
{
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &facts) != 0) {
        weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(errno));
        if (file >= 0) close(file);
        return WEFT_IO;
    }
    const size_t room = facts.st_size > 0 ? (size_t)facts.st_size : 0;
    char *all = malloc(room + sizeof **head);
    ssize_t n = 1;
    for (*bytes = 0; all && n > 0; *bytes += n > 0 ? n : 0)
        n = read(file, all + *bytes, room - (size_t)*bytes);
    const int reason = errno;
    close(file);
    *head = (weft_ring_head *)(void *)all;
    if (!all) return weft_fail_memory(error, room);
    return n == 0 ? WEFT_OK
                  : weft_fail(error, WEFT_IO, "cannot read %.300s: %s", path, strerror(reason));
}

static weft_status refuse(const char *path, const char *why, weft_error *error)
{
    return weft_fail(error, WEFT_CORRUPT,
                     "%.300s is not a trace of this version of Weft (%s); trace the run again with "
                     "--trace N..M",
                     path, why);
}

/* No number is so large that the sum of all parts would not fit. */
static bool is_sane(const weft_ring_sizes *sizes)
{
    const int64_t most = (int64_t)1 << 40;
    return sizes->n_programs >= 1 && sizes->n_programs <= WEFT_TRACE_PARTS && sizes->n_steps >= 0 &&
           sizes->n_steps <= INT_MAX && sizes->text_bytes >= 1 && sizes->text_bytes <= UINT32_MAX &&
           sizes->room >= 0 && sizes->room <= most;
}

/* A file is as long as its events, or, where the job did not end it, as its room. */
static const char *look_at_size(const weft_ring_head *head, int64_t bytes)
{
    if (bytes < (int64_t)sizeof *head || memcmp(head->magic, WEFT_RING_MAGIC, 8) != 0)
        return "it begins otherwise";
    if (head->format != WEFT_RING_FORMAT || head->head_bytes != sizeof *head)
        return "it is of another version";
    const int64_t n = weft_sync_load_relaxed(&head->counts.n_events);
    if (!is_sane(&head->sizes) || n < 0 || n > head->sizes.room) return "its sizes are wrong";
    if (bytes != weft_ring_end(&head->sizes, n) &&
        (bytes != weft_ring_end(&head->sizes, head->sizes.room) || head->seal != 0))
        return "it is cut off, or longer than it was";
    return NULL;
}

static const char *look_at_steps(weft_ring_head *head)
{
    const weft_ring_parts parts = weft_ring_parts_of(head);
    const uint32_t end = (uint32_t)head->sizes.text_bytes;
    int64_t n = 0;
    if (parts.texts[end - 1] != '\0' || head->mesh >= end || head->host >= end)
        return "its texts are wrong";
    for (int64_t i = 0; i < head->sizes.n_programs; i++) {
        if (parts.programs[i].name >= end) return "its texts are wrong";
        n += parts.programs[i].n_steps;
    }
    if (n != head->sizes.n_steps) return "its sizes are wrong";
    for (int64_t s = 0; s < n; s++) {
        const weft_ring_step *step = &parts.steps[s];
        const uint32_t texts[] = {step->name, step->op,   step->place,
                                  step->dims, step->spec, step->reason};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (texts[i] >= end) return "its texts are wrong";
        if (step->kind >= WEFT_STEPS || step->axes >= 1u << WEFT_MAX_AXES)
            return "its steps are wrong";
        if (step->predicted_begin < 0 || step->predicted_end < step->predicted_begin ||
            step->predicted_end > INT64_MAX / 4 || step->predicted_total < 0)
            return "its predicted times are wrong";
    }
    return NULL;
}

static const char *look_at_events(weft_ring_head *head)
{
    const weft_ring_parts parts = weft_ring_parts_of(head);
    const int64_t n = weft_sync_load_relaxed(&head->counts.n_events);
    for (int64_t i = 0; i < n; i++) {
        const weft_traced_event *e = &parts.events[i];
        if (e->program >= head->sizes.n_programs || e->kind >= WEFT_TRACED_KINDS)
            return "its events are wrong";
        if (e->kind != WEFT_TRACED_RUN && e->step >= parts.programs[e->program].n_steps)
            return "its events are wrong";
    }
    return NULL;
}

static const char *look_at(weft_ring_head *head, int64_t bytes)
{
    const char *why = look_at_size(head, bytes);
    const int64_t n = why ? 0 : weft_sync_load_relaxed(&head->counts.n_events);
    if (!why && head->seal != 0 && head->seal != weft_ring_digest(head, n)) why = "it was changed";
    if (!why && (head->rank < 0 || head->n_ranks < 1 || head->n_ranks > WEFT_MAX_RANKS ||
                 head->rank >= head->n_ranks))
        why = "its rank is wrong";
    if (!why) why = look_at_steps(head);
    return why ? why : look_at_events(head);
}

static weft_traced_step step_of(const char *texts, const weft_ring_step *from)
{
    return (weft_traced_step){.name = texts + from->name,
                              .op = texts + from->op,
                              .place = texts + from->place,
                              .dims = texts + from->dims,
                              .spec = texts + from->spec,
                              .reason = texts + from->reason,
                              .kind = (weft_step_kind)from->kind,
                              .axes = from->axes,
                              .scan = from->scan,
                              .sent_bytes = from->sent_bytes,
                              .arena_bytes = from->arena_bytes,
                              .predicted_begin = from->predicted_begin,
                              .predicted_end = from->predicted_end,
                              .predicted_total = from->predicted_total};
}

static weft_status show(opened *o, weft_error *error)
{
    weft_ring_head *head = o->head;
    const weft_ring_parts parts = weft_ring_parts_of(head);
    const size_t n_steps = (size_t)head->sizes.n_steps;
    o->programs = calloc((size_t)head->sizes.n_programs, sizeof *o->programs);
    o->steps = calloc(n_steps + 1, sizeof *o->steps);
    if (!o->programs || !o->steps) return weft_fail_memory(error, n_steps * sizeof *o->steps);
    for (size_t s = 0; s < n_steps; s++)
        o->steps[s] = step_of(parts.texts, &parts.steps[s]);
    const weft_traced_step *steps = o->steps;
    for (int64_t i = 0; i < head->sizes.n_programs; i++) {
        const weft_ring_program *from = &parts.programs[i];
        o->programs[i] = (weft_traced_program){parts.texts + from->name, from->digest,
                                               (int)from->n_steps, steps};
        steps += from->n_steps;
    }
    o->seen = (weft_traced){.rank = head->rank,
                            .n_ranks = head->n_ranks,
                            .process = head->process,
                            .mesh = parts.texts + head->mesh,
                            .host = parts.texts + head->host,
                            .job = head->job,
                            .is_sealed = head->seal != 0,
                            .clocks = {head->clocks[0], head->clocks[1]},
                            .n_programs = (int)head->sizes.n_programs,
                            .programs = o->programs,
                            .n_events = weft_sync_load_relaxed(&head->counts.n_events),
                            .n_dropped = weft_sync_load_relaxed(&head->counts.n_dropped),
                            .events = parts.events};
    return WEFT_OK;
}

static void close_opened(opened *o)
{
    if (!o) return;
    free(o->steps);
    free(o->programs);
    free(o->head);
    free(o);
}

weft_status weft_traced_open(const char *path, weft_traced **traced, weft_error *error)
{
    int64_t bytes = 0;
    WEFT_GIVEN(traced, error);
    *traced = NULL;
    WEFT_GIVEN(path, error);
    opened *o = calloc(1, sizeof *o);
    if (!o) return weft_fail_memory(error, sizeof *o);
    weft_status status = read_all(path, &o->head, &bytes, error);
    const char *why = status == WEFT_OK ? look_at(o->head, bytes) : NULL;
    if (why) status = refuse(path, why, error);
    if (status == WEFT_OK) status = show(o, error);
    if (status == WEFT_OK)
        *traced = &o->seen;
    else
        close_opened(o);
    return status;
}

void weft_traced_close(weft_traced **traced)
{
    if (!traced) return;
    close_opened((opened *)(void *)*traced);
    *traced = NULL;
}

/* Where there is one comparison alone, its offset holds throughout. */
int64_t weft_traced_time(const weft_traced *traced, int64_t at)
{
    if (!traced) return 0;
    const weft_traced_clock *a = &traced->clocks[0], *b = &traced->clocks[1];
    if (b->at <= a->at) return at + a->offset;
    const double part = (double)(at - a->at) / (double)(b->at - a->at);
    return at + a->offset + (int64_t)llround(part * (double)(b->offset - a->offset));
}
