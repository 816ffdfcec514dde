/* source.h (private): what a format of records gives, and the file that it reads.
 *
 * A new format is one file with a weft_record_kind, in the table of records.c. It gets a file that is open and decompressed, and
 * says which fields its records have. Everything else is records.c's: patterns, several files, the fields that are wanted, limits.
 */
#ifndef WEFT_IO_SOURCE_H
#define WEFT_IO_SOURCE_H

#include <stddef.h>
#include <time.h>

#include "records.h"

/* A file that records are read from. It is never mapped: a map of a file that shrinks ends the process. */
typedef struct weft_source {
    const char *path; /* as it was named */
    int file;         /* -1: opened for each read, as there are many */
    int64_t bytes;    /* decompressed */
    uint64_t number;  /* of all that this process has opened; from 1 on */
    bool is_own;      /* decompressed into a file of ours */
    struct timespec changed;
} weft_source;

/* A file of records, open. */
typedef struct weft_table {
    weft_source source;
    int64_t rows, columns; /* that images are scaled to; 0: they are not */
    int label;             /* the class of the file; -1: of none */
    void *state;           /* the kind's */
    int64_t n_records;
    int n_fields;
    weft_record_field *fields; /* [room], of malloc */
    int room;
} weft_table;

typedef struct weft_record_kind {
    const char *name; /* "csv" */
    const char *
        endings; /* " .csv .tsv ", of a file that does not show by its bytes what it is; NULL: none */
    /* whether the first n bytes are of one [at most WEFT_SOURCE_LOOK, ended by 0]; NULL: only endings tell */
    bool (*is)(const unsigned char *head, size_t n);
    /* fills state, n_records and fields; wanted: names of fields, or NULL. On failure close is called all the same */
    weft_status (*open)(weft_table *table, const char *wanted, weft_error *error);
    /* sizes of a field whose dims are not all fixed; NULL: there are none */
    weft_status (*shape)(const weft_table *table, int64_t record, int field, int64_t *dims,
                         weft_error *error);
    /* elements [begin, end) of at least one, inside the shape */
    weft_status (*read)(const weft_table *table, int64_t record, int field, int64_t begin,
                        int64_t end, void *to, weft_error *error);
    void (*close)(weft_table *table); /* frees state, which may be NULL or half made */
} weft_record_kind;

enum {
    WEFT_SOURCE_LOOK = 4096,
    WEFT_SOURCE_MANY = 128,       /* more files are not kept open */
    WEFT_SOURCE_LONGEST = 1 << 30 /* bytes of one field of one record, and of a header */
};

/* ---- source.c, all Local ----------------------------------------------------------------------- */

/* weft_source_open - a file, decompressed where it is compressed; ending: of its name, without that of the compression. */
weft_status weft_source_open(weft_source *source, const char *path, bool is_kept, char ending[16],
                             weft_error *error);
/* weft_source_look - the same as it lies, not decompressed. */
weft_status weft_source_look(weft_source *source, const char *path, char ending[16],
                             bool *is_compressed, weft_error *error);
void weft_source_close(weft_source *source);
/* weft_source_nameless - a file without a name in TMPDIR, for what is decoded of `path`; weft_source_write - at its end. */
weft_status weft_source_nameless(weft_source *source, weft_error *error);
weft_status weft_source_write(const weft_source *source, const char *from, size_t n,
                              weft_error *error);
/* weft_source_read - bytes [at, at + n); WEFT_IO when the file was changed since it was opened. */
weft_status weft_source_read(const weft_source *source, void *to, int64_t n, int64_t at,
                             weft_error *error);
/* weft_source_read_unchecked - the same of a file that is open, whether it was changed or not: the caller checks, before anybody sees them. */
weft_status weft_source_read_unchecked(const weft_source *source, void *to, int64_t n, int64_t at,
                                       weft_error *error);
/* weft_source_check - whether it is what it was when it was opened. */
weft_status weft_source_check(const weft_source *source, weft_error *error);
/* weft_source_take - the same into memory of malloc, ended by a 0. */
weft_status weft_source_take(const weft_source *source, char **to, int64_t n, int64_t at,
                             weft_error *error);
/* weft_source_fail - "PATH: <format>", the way out included; WEFT_USAGE. */
weft_status weft_source_fail(const weft_source *source, weft_error *error, const char *format, ...)
    WEFT_FORMAT(3, 4);

/* ---- table.c, all Local ------------------------------------------------------------------------- */

/* weft_table_field - one more field, named [n] bytes; dims may be NULL when n_dims is 0. Returns NULL without memory. */
weft_record_field *weft_table_field(weft_table *table, const char *name, size_t n, weft_dtype dtype,
                                    int n_dims, const int64_t *dims);
/* weft_table_text - the same for a text. */
weft_record_field *weft_table_text(weft_table *table, const char *name, size_t n);
/* weft_table_wants - whether a name stands in "a, b"; wanted NULL: all are. */
bool weft_table_wants(const char *wanted, const char *name, size_t n);
/* weft_grow - room for one more element of `bytes` in *array [*room]. */
weft_status weft_grow(void **array, int64_t n, int64_t *room, size_t bytes, weft_error *error);

/* ---- numbers.c: whole texts as numbers. Local ------------------------------------------------- */

bool weft_text_i64(const char *text, size_t n, int64_t *number);
bool weft_text_f64(const char *text, size_t n, double *number);

/* ---- the kinds ---------------------------------------------------------------------------------- */

extern const weft_record_kind weft_kind_npy, weft_kind_npz, weft_kind_csv, weft_kind_jsonl,
    weft_kind_lines, weft_kind_tar, weft_kind_images, weft_kind_parquet, weft_kind_hdf5,
    weft_kind_whole;

#endif
