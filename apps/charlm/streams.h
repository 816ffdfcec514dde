/* streams.h: a text cut into as many parts as a batch has rows. Each part is read from its first window to its last.
 * The next batch has the window after a row's window in that row, so a state can be carried there.
 *
 *     WEFT_TRY(streams_open("book.txt", batch, seq, &streams, error));
 *     WEFT_TRY(streams_dataset(streams, &data, error));        inputs "tokens", "targets" [batch, seq], "goes_on" [batch], all i32
 *
 * Sample step * batch + row is window step of part row. After a part's last window all begin again: there goes_on is 0, else 1.
 * All Local.
 */
#ifndef WEFT_APPS_CHARLM_STREAMS_H
#define WEFT_APPS_CHARLM_STREAMS_H

#include "weft/io.h"

typedef struct streams streams; /* opaque */

/* streams_open - returns WEFT_IO for a file that cannot be read; WEFT_USAGE for one that has no window for each row: own it on
 * success, streams_close. */
weft_status streams_open(const char *path, int64_t batch, int64_t seq, streams **made,
                         weft_error *error);
void streams_close(streams **streams);
/* streams_mark - other texts, and windows of another length, have other ones; never 0. */
uint64_t streams_mark(const streams *streams);
/* streams_dataset - it reads from `streams`, which lives as long. */
weft_status streams_dataset(const streams *streams, weft_dataset **dataset, weft_error *error);

#endif
