/* segment.h (private): memory of this process that others on its host can see: a System V segment, which has no name and is
 * gone with the last process that sees it, however that ends. Unlike files for the same purpose it needs no room in
 * /dev/shm.
 */
#ifndef WEFT_HOST_SHM_SEGMENT_H
#define WEFT_HOST_SHM_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

/* What a process tells of its segment. */
typedef struct weft_segment_ticket {
    uint64_t host; /* the machine since it was started, and its name space for segments           */
    /* stands before the memory: one that has another is not the one that is meant */
    uint64_t token;
    int32_t id; /* -1: refused, and errno_ says by what */
    int32_t errno_;
} weft_segment_ticket;

/* weft_segment_make - zeros, on a boundary of 4096; NULL: refused. The ticket tells of the host in any case.
 * weft_segment_attach - another's of this host; NULL: refused, or it is not the one that is meant. weft_segment_leave - of
 * what either gave; NULL is fine. Local. */
char *weft_segment_make(int64_t bytes, weft_segment_ticket *ticket);
char *weft_segment_attach(const weft_segment_ticket *ticket);
void weft_segment_leave(char *memory);

#endif
