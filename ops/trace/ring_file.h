/* ring_file.h (private): the file that a rank keeps its trace in: a head, a table of the steps, and the ring.
 *
 * The file is memory, mapped while the rank runs, so that a kill takes nothing away. `weft trace` reads it on the same kind of
 * machine. Behind the head come programs, then steps, then texts, each ended by a 0, then events: no gaps between them.
 */
#ifndef WEFT_RING_FILE_H
#define WEFT_RING_FILE_H

#include "stamp.h"

enum { WEFT_RING_FORMAT = 2 };
#define WEFT_RING_MAGIC "weftring" /* 8 letters; the 0 behind them is not in the file */

typedef struct weft_ring_program {
    uint64_t digest;
    uint32_t name, n_steps;
} weft_ring_program;

/* A step: texts are places in the texts. */
typedef struct weft_ring_step {
    int64_t sent_bytes, arena_bytes;
    int64_t predicted_begin, predicted_end, predicted_total; /* ns; end 0: it was not predicted */
    uint32_t name, op, place, dims, spec, reason;
    uint32_t kind, axes, scan, unused;
} weft_ring_step;

/* Of the parts behind the head. */
typedef struct weft_ring_sizes {
    int64_t n_programs, n_steps, text_bytes, room;
} weft_ring_sizes;

typedef struct weft_ring_head {
    char magic[8];
    uint32_t format, head_bytes;
    weft_ring_sizes sizes;
    uint64_t job;
    uint64_t seal; /* digest of all that is in the file, with this 0; 0: not sealed */
    int32_t rank, n_ranks, process;
    uint32_t mesh, host; /* texts */
    uint32_t unused;
    weft_traced_clock clocks[2];
    weft_ring_counts counts;
} weft_ring_head;

/* Where the parts are; and where the file ends when it has so many events. */
typedef struct weft_ring_parts {
    weft_ring_program *programs;
    weft_ring_step *steps;
    char *texts;
    weft_traced_event *events;
} weft_ring_parts;
weft_ring_parts weft_ring_parts_of(weft_ring_head *head);
int64_t weft_ring_end(const weft_ring_sizes *sizes, int64_t n_events);
/* Of a file with so many events; never 0. */
uint64_t weft_ring_digest(weft_ring_head *head, int64_t n_events);

void weft_ring_path(const char *folder, int rank, char *path, size_t bytes);
/* weft_ring_create - a file with room for `sizes`, every byte of which has its place on the disk, mapped; the head has its magic,
 * format and sizes. A file of that name is written over. Local. */
weft_status weft_ring_create(const char *path, const weft_ring_sizes *sizes, weft_ring_head **head,
                             weft_error *error);
/* weft_ring_close - cut to the events that there are, sealed where `seals`; unmapped. Local. */
void weft_ring_close(const char *path, weft_ring_head **head, bool seals);

#endif
