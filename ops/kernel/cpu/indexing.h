/* indexing.h: what gather and scatter share: a tensor of ids, and the dim of a table that it points into.
 *
 * Two nests of loops: `ids`, over the dims of the ids, and `rest`, over the dims of the rows that the ids lack. The table's stride
 * along a dim it shares with the ids makes pick out of gather. Ids are global; one that the local box does not hold reads zeros
 * and adds nothing.
 */
#ifndef WEFT_INDEXING_H
#define WEFT_INDEXING_H

#include "cpu/nest.h"

/* The tensors of both nests; ROWS: gather's result, scatter_add's operand. */
enum { IDS, TABLE, ROWS };

typedef struct weft_indexing {
    size_t bytes;
    weft_nest ids, rest;
    int64_t n_rest;                             /* iterations of rest */
    int64_t run, run_stride[WEFT_NEST_TENSORS]; /* the innermost loop of rest, taken out of it */
    const int32_t *id;
    char *table, *rows;
    int64_t first, end, step; /* of the indexed dim in the table: its box and stride */
} weft_indexing;

/* weft_indexing_open - of a zeroed one: the nests along the table's `dim`. Local. */
void weft_indexing_open(weft_indexing *x, const weft_view *table, const weft_view *ids,
                        const weft_view *rows, const char *dim);

#endif
