/* readers.h (private): some ranks read for all: which rows of a batch each reads, and the exchange by which each gets what it holds.
 *
 *     WEFT_TRY(weft_readers_rows(program, input, n_readers, rows, error));    as the set is bound
 *     WEFT_TRY(weft_readers_open(program, rows, parts, n, &readers, error));  before the first batch, by all
 *     WEFT_TRY(weft_readers_exchange(readers, read, error));                  as a batch is handed over, by all
 *
 * A process has one rank here: ranks of one process have what one of them reads, and nothing is exchanged.
 */
#ifndef WEFT_IO_READERS_H
#define WEFT_IO_READERS_H

#include "weft/program.h"

/* Of a batch; begin == end: none. */
typedef struct weft_rows {
    int64_t begin, end;
} weft_rows;

/* weft_readers_rows - which each rank reads: rows [ranks of the mesh]. Of n readers, 1 to all ranks, each has as many, of a batch
 * that begins as the input's. Local; the same on all ranks. */
weft_status weft_readers_rows(const weft_program *program, weft_value input, int n_readers,
                              weft_rows *rows, weft_error *error);
/* weft_readers_box - of an input all numbers of rows. Local. */
void weft_readers_box(weft_value input, const weft_rows *rows, weft_box *box);

typedef struct weft_readers weft_readers; /* opaque */

/* weft_readers_open - ready to exchange, of each of n inputs what ranks read for what they hold. Collective over the mesh; all return the same.
 *
 * rows   [ranks of the mesh], not looked at afterwards */
weft_status weft_readers_open(weft_program *program, const weft_rows *rows,
                              const weft_value *inputs, int n, weft_readers **readers,
                              weft_error *error);
/* weft_readers_exchange - what this rank has read, read [n], one behind the other: rows by the order of inputs; NULL where it reads none. What
 * ranks hold is in the program's inputs then. Collective over the mesh. */
weft_status weft_readers_exchange(weft_readers *readers, const void *const *read,
                                  weft_error *error);
/* Local; NULL is fine. Before the program is destroyed. */
void weft_readers_close(weft_readers **readers);

#endif
