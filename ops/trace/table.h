/* table.h (private): what the steps of programs are, in words: written once, before anything is traced. */
#ifndef WEFT_TRACE_TABLE_H
#define WEFT_TRACE_TABLE_H

#include "program.h"
#include "ring_file.h"
#include "texts.h"

typedef struct weft_trace_table {
    weft_texts texts;
    int n_programs;
    weft_ring_program programs[WEFT_TRACE_PARTS];
    weft_ring_step *steps; /* [n_steps] of all programs in turn */
    int64_t n_steps;
} weft_trace_table;

/* weft_trace_table_make - of all ranks alike: bytes are left to weft_trace_table_bytes. Owned, and begun as {0}:
 * weft_trace_table_free, also after a failure. Local. */
weft_status weft_trace_table_make(const weft_trace_part *parts, int n, weft_trace_table *table,
                                  weft_error *error);
void weft_trace_table_free(weft_trace_table *table);
/* weft_trace_table_bytes - the bytes of one rank, into the steps of its program. Local. */
void weft_trace_table_bytes(const weft_rank *rank, weft_ring_step *steps);

#endif
