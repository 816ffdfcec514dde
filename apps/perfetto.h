/* perfetto.h: a trace file for Perfetto (ui.perfetto.dev, trace_processor): tracks of slices, and counters, from any source.
 *
 *     perfetto *p = perfetto_create();
 *     const uint32_t rank = perfetto_process(p, "rank 0"), queue = perfetto_thread(p, rank, "compute");
 *     perfetto_begin(p, queue, 1000, &(perfetto_slice){.name = "einsum"});
 *     perfetto_end(p, queue, 1500);
 *     WEFT_TRY(perfetto_write(p, file, error));
 *
 * A slice that begins while another of its track is open lies inside it: slices of a track nest. Calls of one track come in the
 * order of time, and tracks in any order. Where memory runs out, perfetto_write says so.
 *
 * The format is protobuf: fields of a number and a value. A file is packets: one with all texts, one for each track, and one for
 * each begin, end and count, in the order of time. Packets are deflated by half a megabyte.
 */
#ifndef WEFT_APPS_PERFETTO_H
#define WEFT_APPS_PERFETTO_H

#include <stdint.h>
#include <stdio.h>

#include "proto.h"
#include "weft/error.h"

typedef struct perfetto perfetto; /* opaque */

perfetto *perfetto_create(void); /* NULL: out of memory */
void perfetto_destroy(perfetto **p);

/* Their tracks, from 1; 0: out of memory. */
uint32_t perfetto_process(perfetto *p, const char *name);
uint32_t perfetto_thread(perfetto *p, uint32_t process, const char *name);
uint32_t perfetto_counter(perfetto *p, uint32_t process, const char *name); /* of bytes */

typedef struct perfetto_note {
    const char *name;
    const char *text; /* NULL: it is a number */
    int64_t number;
} perfetto_note;

typedef struct perfetto_slice {
    const char *name, *category; /* category NULL: none */
    const perfetto_note *notes;  /* [n_notes] */
    int n_notes, n_flows;
    uint64_t flows[2]; /* [n_flows] slices with the same number are joined by an arrow; not 0 */
} perfetto_slice;

/* at: ns. An end without a begin is none; what is open at last ends with its track's last call. */
void perfetto_begin(perfetto *p, uint32_t track, int64_t at, const perfetto_slice *slice);
void perfetto_end(perfetto *p, uint32_t track, int64_t at);
void perfetto_count(perfetto *p, uint32_t track, int64_t at, int64_t value);

/* perfetto_bytes - of all events so far, not deflated, and perfetto_slices - how many slices these are. */
int64_t perfetto_bytes(const perfetto *p);
int64_t perfetto_slices(const perfetto *p);
/* perfetto_write - all of it, once. */
weft_status perfetto_write(perfetto *p, FILE *file, weft_error *error);

#endif
