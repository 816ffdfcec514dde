/* pack_index.h (private): which records share a window: an index that is made once, by threads, and kept in a folder. */
#ifndef WEFT_IO_PACK_INDEX_H
#define WEFT_IO_PACK_INDEX_H

#include "chain.h"
#include "pack_fit.h"

typedef struct weft_pack_order {
    const weft_chain *operand;
    int field;          /* ragged: what is packed */
    int64_t seq;        /* places of a window */
    int64_t look_ahead; /* records that are fitted together */
    bool
        is_whole; /* a record longer than a window is refused, and an empty one takes a place; else it is cut, and has no piece */
    const char *stage;  /* "pack", of the call and of the file */
    const char *folder; /* NULL: nowhere */
    int n_threads;
} weft_pack_order;

typedef struct weft_pack_index {
    weft_packing packing;
    void *kept; /* what was loaded, in which the packing lies; NULL: it was made */
} weft_pack_index;

/* weft_pack_index_find - looked for in the folder, or made. Own it, also on failure: weft_pack_index_free. Local.
 * returns  WEFT_USAGE where there is no piece, and for records that cannot be; WEFT_IO */
weft_status weft_pack_index_find(const weft_pack_order *order, weft_pack_index *index,
                                 weft_error *error);
void weft_pack_index_free(weft_pack_index *index);
weft_hash weft_pack_index_hash(const weft_pack_index *index);

#endif
