/* parquet_page.h (private): the pages of one chunk, decompressed and decoded, one after the other. */
#ifndef WEFT_IO_PARQUET_PAGE_H
#define WEFT_IO_PARQUET_PAGE_H

#include "parquet.h"

typedef struct weft_parquet_pages {
    const weft_source *source;
    const weft_parquet_column *column;
    const weft_parquet_chunk *chunk;
    char *bytes;      /* [chunk->bytes] */
    int64_t at, seen; /* bytes, and entries of levels */
    weft_parquet_values dictionary;
    /* of the page under way */
    int64_t n;             /* entries */
    uint32_t *defs, *reps; /* [n]; NULL where the column has no such levels */
    weft_parquet_values values;
} weft_parquet_pages;

/* All Local. weft_parquet_pages_next - the next page; n is 0 behind the last. */
weft_status weft_parquet_pages_open(const weft_source *source, const weft_parquet_column *column,
                                    const weft_parquet_chunk *chunk, weft_parquet_pages *pages,
                                    weft_error *error);
weft_status weft_parquet_pages_next(weft_parquet_pages *pages, weft_error *error);
void weft_parquet_pages_close(weft_parquet_pages *pages);

#endif
