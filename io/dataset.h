/* dataset.h: what a kind of dataset gives to the common part: its fields, and how to read a piece
 * of one.
 *
 * A new kind is one file with a weft_dataset_kind and its open function; order, prefetch, boxes and
 * agreement on failure are dataset.c's.
 */
#ifndef WEFT_IO_DATASET_H
#define WEFT_IO_DATASET_H

#include "weft/io.h"

/* One tensor of a sample, which fills the program's input of the same name. */
typedef struct weft_input_field {
    const char *name;
    bool is_wide;    /* [batch, width]; else [batch] */
    uint32_t dtypes; /* bit d: the input may have weft_dtype d */
    /* of this field alone; NULL: the kind's name, and the width of the facts */
    const char *width_name;
    int64_t width;
    /* where its numbers are ids: of what, and the way out of one that is none; NULL: nothing particular */
    const char *ids, *mend;
    /* its numbers are those of the kind's first field, so many later; 0: they are others */
    int64_t later;
} weft_input_field;

/* Elements [begin, end) of one field of one sample of the set. */
typedef struct weft_want {
    int field;
    weft_dtype dtype;
    int64_t sample, begin, end;
} weft_want;

typedef struct weft_dataset_kind {
    const char *width_name;                   /* of the second dim: "seq", "pixel" */
    weft_input_field fields[WEFT_MAX_FIELDS]; /* as many as have a name */
    weft_status (*read)(const void *source, const weft_want *want, void *to, weft_error *error);
    void (*close)(void *source);
    /* n numbers of a field from number `at` of all samples' on, each of number_bytes where they lie; NULL: there are too many */
    weft_status (*numbers)(const void *source, int field, int64_t at, int64_t n, int64_t *to,
                           weft_error *error);
    int64_t number_bytes;
    /* where what it holds can grow: the fact that tells it, and what that says of its first units; NULL: it cannot */
    const char *fact;
    weft_status (*print_first)(const void *source, int64_t units, char *print, weft_error *error);
    /* where a number stands: "FILE: label 17"; NULL: it is told by sample and field */
    void (*place)(const void *source, int field, int64_t sample, int64_t element, char *text,
                  size_t bytes);
} weft_dataset_kind;

/* What an open function found out. */
typedef struct weft_dataset_found {
    int64_t samples, width;
    uint64_t seed;
    bool shuffled;
} weft_dataset_found;

/* weft_dataset_make - takes over `source`, also on failure (closes it then). Local. */
weft_status weft_dataset_make(const weft_dataset_kind *kind, void *source,
                              const weft_dataset_found *found, weft_dataset **dataset,
                              weft_error *error);
/* weft_dataset_say - a fact of a set that is being opened; on failure it is closed. weft_dataset_say_number - one that is a number.
 * Local. */
weft_status weft_dataset_say(weft_dataset **dataset, const char *name, const char *value,
                             weft_error *error);
weft_status weft_dataset_say_number(weft_dataset **dataset, const char *name, int64_t number,
                                    weft_error *error);

/* weft_dataset_grew - whether of these facts one tells the beginning of what the set holds now; text: in words, "" if none does. Local. */
bool weft_dataset_grew(const weft_dataset *dataset, const char *facts, char *text, size_t bytes);

/* weft_file_open - a regular file for reading. Local. returns WEFT_IO with the reason. */
weft_status weft_file_open(const char *path, int *file, int64_t *bytes, weft_error *error);
/* weft_file_read - exactly `bytes` bytes at `at`; WEFT_IO when the file has become shorter. Local.
 */
weft_status weft_file_read(int file, const char *path, void *to, int64_t bytes, int64_t at,
                           weft_error *error);
/* weft_kind_check - weft_file_check of a file of `bytes` that is open. Local. */
weft_status weft_kind_check(int file, const char *path, int64_t bytes, weft_file_use use,
                            weft_error *error);

#endif
