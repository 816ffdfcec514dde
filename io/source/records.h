/* records.h (private): files of records with named fields, as people have them: one interface over many formats.
 *
 *     WEFT_TRY(weft_records_open("train-*.csv", NULL, &records, error));
 *     for (int i = 0; i < weft_records_fields(records); i++) ... weft_records_field(records, i)->name
 *     WEFT_TRY(weft_records_read(records, 17, 0, 0, 1, &number, error));       field 0 of record 17
 *
 * Record i is the same whenever and wherever it is read: files come in the order of their names, and records in the
 * order of each file. Reading keeps no state, so several threads may read from one handle. All functions are Local.
 *
 * npy, npz     a row of the first dim is a record; an array of an npz is a field
 * csv, tsv     a line is a record, a column a field: i64, f64, or text
 * jsonl        a line is a record, a key a field: text, a number, or a row of numbers
 * lines        a line of text is a record, its field is text
 * text         a whole file is a record; only where the format is said
 * tar          files of one key are a record, as webdataset has them; the ending is the field's name
 * images       a JPEG or PNG file is a record: image [row, column, channel] u8; in folders of classes label, i32, besides
 * parquet      a row is a record: flat columns, and lists of one level
 * hdf5         a row of the first dim is a record; a dataset is a field
 *
 * Each may be compressed by gzip, zstd, xz, bzip2 or lz4: it is decompressed once, into a file without a name in TMPDIR.
 */
#ifndef WEFT_IO_RECORDS_H
#define WEFT_IO_RECORDS_H

#include "../checkpoint/hash.h"
#include "weft/dtype.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_records weft_records; /* opaque */

enum { WEFT_RECORD_FIELDS = 64, WEFT_RECORD_DIMS = 8, WEFT_RECORD_NAME = 64 };

typedef struct weft_record_field {
    char name[WEFT_RECORD_NAME]; /* longer names are cut */
    weft_dtype dtype;            /* what is read; text is u8, in UTF-8 where the file is */
    bool is_text;
    int n_dims;                     /* of one record; 0: a number */
    int64_t dims[WEFT_RECORD_DIMS]; /* -1: each record has its own (weft_records_shape) */
} weft_record_field;

typedef struct weft_records_options {
    const char *format; /* "csv"; NULL: as the bytes and the ending of the first file say */
    const char
        *fields; /* "image, label": these in this order; NULL: all, at most WEFT_RECORD_FIELDS */
    int part,
        n_parts; /* of the files, those whose place by name is part modulo n_parts: a host's share; n_parts 0: all */
    int64_t rows, columns; /* that images are scaled to; 0: they stay as they are */
} weft_records_options;

/* weft_records_open - files by name, by pattern ("data/[0-9]*.tar"), or all of a folder and of its folders. Names that begin with
 * a point are left out. All have to be of one format, with the same fields.
 *
 * options   NULL: all fields of all files
 * records   out; NULL on failure
 * cost      one read of CSV, of lines and of what is compressed; headers of others
 * returns   WEFT_IO for what cannot be read; WEFT_USAGE for what is no such file, is cut or damaged, or needs a library that is not
 *           there; each names the file, and the record or byte */
WEFT_MUST_CHECK weft_status weft_records_open(const char *pattern,
                                              const weft_records_options *options,
                                              weft_records **records, weft_error *error);
void weft_records_close(weft_records **records);
/* weft_records_sees - the format of records that the first of these files is certainly of, by its first bytes or, where it is compressed
 * or a text, by its ending; NULL: of none, or it cannot be read. Lines of text are none: a text may be wanted whole. */
const char *weft_records_sees(const char *pattern);
/* weft_records_expands - whether a file is compressed, so that it is text only behind that. */
bool weft_records_expands(const char *path);
/* weft_records_finds - whether there is a format of that name. */
bool weft_records_finds(const char *format);

/* Of NULL, or of a field that is none: 0, "", NULL. Texts and fields are borrowed. */
int64_t weft_records_count(const weft_records *records);
int weft_records_files(const weft_records *records);
const char *weft_records_file(const weft_records *records, int file);
const char *weft_records_format(const weft_records *records); /* "csv" */
int weft_records_fields(const weft_records *records);
const weft_record_field *weft_records_field(const weft_records *records, int field);
/* The names of classes that files are of by their folders, [*n], whose numbers are the field "label"; NULL: of none. */
const char *const *weft_records_classes(const weft_records *records, int *n);
/* Of which class each file is, in a hash. */
weft_hash weft_records_labels_hash(const weft_records *records);

/* weft_records_shape - the sizes of a field of one record.
 *
 * dims   [n_dims of the field] out
 * returns   WEFT_USAGE for a record or field that is none, or a record that is damaged; WEFT_IO */
WEFT_MUST_CHECK weft_status weft_records_shape(const weft_records *records, int64_t record,
                                               int field, int64_t *dims, weft_error *error);
/* weft_records_read - elements [begin, end) of a field of one record, row-major, in the field's dtype.
 *
 * to        [end - begin] out
 * returns   as weft_records_shape; WEFT_IO for a file that was changed since it was opened */
WEFT_MUST_CHECK weft_status weft_records_read(const weft_records *records, int64_t record,
                                              int field, int64_t begin, int64_t end, void *to,
                                              weft_error *error);
/* weft_records_print - what the files hold: their bytes, decompressed, and a hash: "1234567 bytes (hash 5e1f0c2b9a3d4e77)". Up to
 * 64 MiB in all each byte is hashed; beyond, blocks of each file, its first and last among them. What the files are called and where
 * they are does not count.
 *
 * text      [WEFT_RECORDS_PRINT] out */
enum { WEFT_RECORDS_PRINT = 96 };
WEFT_MUST_CHECK weft_status weft_records_print(const weft_records *records, char *text,
                                               weft_error *error);

#endif
