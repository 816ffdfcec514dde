/* events.h: an event file of TensorBoard: scalars, texts, histograms and a graph, each an event with its step and time.
 *
 *     events *e = NULL;
 *     WEFT_TRY(events_open("runs/board", first_step, &e, error));
 *     WEFT_TRY(events_text(e, 0, "layout", "batch:data", error));
 *     WEFT_TRY(events_scalar(e, 12, "loss", 2.31, error));
 *     WEFT_TRY(events_flush(e, error));
 *     events_close(&e);
 *
 * A file is records: the bytes of an event, their number, and a CRC-32C of either. So a file that was cut off anywhere is read up to its
 * last whole record. A run that goes on begins a file of its own. The first event of it is the start of a session at its first step: readers
 * drop what earlier files of the folder have of that step and of later ones. All Local.
 */
#ifndef WEFT_APPS_EVENTS_H
#define WEFT_APPS_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

typedef struct events events; /* opaque */

/* events_open - a new file in `folder`, which is made where it is not there. step: the first whose numbers will come. returns WEFT_IO,
 * with the folder */
weft_status events_open(const char *folder, int64_t step, events **e, weft_error *error);
void events_close(events **e);

/* All return WEFT_IO when something could not be written, as on a full disk. What has been written stays. */
weft_status events_scalar(events *e, int64_t step, const char *tag, double number,
                          weft_error *error);
/* text: Markdown */
weft_status events_text(events *e, int64_t step, const char *tag, const char *text,
                        weft_error *error);
/* bytes of a GraphDef */
weft_status events_graph(events *e, const void *graph, size_t bytes, weft_error *error);
/* counts [n] of equal parts of [low, high], the last with `high` too */
typedef struct events_histogram {
    double low, high, sum, sum_squares;
    const double *counts;
    size_t n;
} events_histogram;
weft_status events_counts(events *e, int64_t step, const char *tag, const events_histogram *h,
                          weft_error *error);
/* events_flush - hands what there is to the system. */
weft_status events_flush(events *e, weft_error *error);
/* The file's path. Borrowed. */
const char *events_path(const events *e);

/* events_crc - CRC-32C of some bytes, as the file has it: turned by 15 bits, and a constant added, so that the CRC of bytes that hold one is
 * not a constant. Pure. */
uint32_t events_crc(const void *data, size_t bytes);

#endif
