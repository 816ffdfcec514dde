/* pack_fit.h (private): which pieces of documents share a window. */
#ifndef WEFT_IO_PACK_FIT_H
#define WEFT_IO_PACK_FIT_H

#include <stdint.h>

#include "weft/error.h"

/* Tokens [part * seq, part * seq + length) of a document. */
typedef struct weft_pack_piece {
    int64_t document;
    uint32_t part, length;
} weft_pack_piece;

/* Window w has pieces [w > 0 ? ends[w - 1] : 0, ends[w]), one behind the other from its first place on. */
typedef struct weft_packing {
    int64_t n_windows, n_pieces;
    int64_t *ends;
    weft_pack_piece *pieces;
} weft_packing;

/* weft_pack_fit - documents first, first + 1, ... of counts [n] tokens into windows of seq: one longer than a window is cut at multiples of
 * seq; whole windows stay alone, and rests go where the least room is left, the longest first. Windows come in the order of their first
 * documents, and pieces of a window in that of theirs. Own what packing holds, also on failure: weft_packing_free. Local.
 * cost  n log n, and as many steps for a rest as seq / 4096 */
weft_status weft_pack_fit(int64_t first, const int64_t *counts, int64_t n, int64_t seq,
                          weft_packing *packing, weft_error *error);
void weft_packing_free(weft_packing *packing);

#endif
