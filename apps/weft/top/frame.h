/* frame.h: what of a running job is shown at one moment: ranks, or groups of them where there are more than lines.
 *
 *     frame *f = frame_create(live);
 *     frame_look(f);  ... some time later ...  frame_look(f);
 *     frame_print(f, &(frame_size){.columns = 80, .lines = 24}, stdout);
 *     frame_destroy(&f);
 *
 * Shares are of the time since the oldest look that is kept, two seconds back; of the first look alone since the job began. All Local.
 */
#ifndef WEFT_APPS_TOP_FRAME_H
#define WEFT_APPS_TOP_FRAME_H

#include <jansson.h>
#include <stdio.h>

#include "weft/watch.h"

typedef struct frame frame; /* opaque */
typedef struct frame_size {
    int columns, lines;
} frame_size;

/* frame_create - live, run: borrowed; run: the run directory. NULL: out of memory. */
frame *frame_create(weft_live *live, const char *run);
void frame_destroy(frame **f);
void frame_look(frame *f);
/* frame_is_over - whether no rank's process is there any more. */
bool frame_is_over(const frame *f);
/* frame_print - at most so many lines, none longer than so many columns. */
void frame_print(frame *f, const frame_size *size, FILE *out);
/* frame_json - the same of all ranks. NULL: out of memory. */
json_t *frame_json(frame *f);

#endif
