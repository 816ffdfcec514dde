/* parquet.h (private): the parts of a Parquet reader: what the footer says, and values out of pages. */
#ifndef WEFT_IO_PARQUET_H
#define WEFT_IO_PARQUET_H

#include "source.h"
#include "thrift.h"

typedef enum weft_parquet_type {
    WEFT_PARQUET_BOOLEAN,
    WEFT_PARQUET_INT32,
    WEFT_PARQUET_INT64,
    WEFT_PARQUET_INT96,
    WEFT_PARQUET_FLOAT,
    WEFT_PARQUET_DOUBLE,
    WEFT_PARQUET_BYTES,
    WEFT_PARQUET_FIXED
} weft_parquet_type;

/* A leaf of the schema: a column. */
typedef struct weft_parquet_column {
    char name[WEFT_RECORD_NAME]; /* of the top-level field that it is */
    weft_parquet_type type;
    int width;              /* bytes of a value; 0: it has its own length */
    int most_def, most_rep; /* levels */
    int entry_def;          /* of a list: from which definition level on there is an entry */
    bool is_half;           /* two bytes are an f16 */
    const char *outside;    /* why it cannot be read, or NULL */
    int leaf;               /* its place among all leaves */
} weft_parquet_column;

typedef struct weft_parquet_chunk {
    int codec;
    int64_t at, bytes, n_values;
} weft_parquet_chunk;

typedef struct weft_parquet_meta {
    int64_t n_rows, n_groups, n_columns, n_leaves, column_room, group_room, chunk_room;
    weft_parquet_column *columns; /* [n_columns], top-level fields */
    int64_t *group_rows;          /* [n_groups] */
    weft_parquet_chunk *chunks;   /* [n_groups * n_leaves] */
    int64_t n_chunks;
} weft_parquet_meta;

/* weft_parquet_footer - what the end of the file says. Local. weft_parquet_meta_free - of any state. */
weft_status weft_parquet_footer(const weft_source *source, weft_parquet_meta *meta,
                                weft_error *error);
void weft_parquet_meta_free(weft_parquet_meta *meta);

/* Values one behind the other. */
typedef struct weft_parquet_values {
    uint8_t *bytes;
    int64_t n, n_bytes, room;
    int64_t *ends; /* [n] of a type without a width: where each ends in bytes */
    int64_t ends_room;
} weft_parquet_values;

/* Local. n values of an encoding from bytes; false: they are damaged, the encoding is none that is known (*why says). */
bool weft_parquet_decode(int encoding, const weft_parquet_column *column, const uint8_t *from,
                         int64_t bytes, int64_t n, const weft_parquet_values *dictionary,
                         weft_parquet_values *values, const char **why);
/* weft_parquet_levels - n numbers of so many bits, runs and packed ones mixed; used: bytes. Local. */
bool weft_parquet_levels(const uint8_t *from, int64_t bytes, int bits, int64_t n, uint32_t *to);
void weft_parquet_values_free(weft_parquet_values *values);

#endif
