/* npy.h (private): NumPy's header of an array, and its elements in a dtype of ours. */
#ifndef WEFT_IO_NPY_H
#define WEFT_IO_NPY_H

#include "source.h"

typedef struct weft_npy {
    int64_t begin; /* bytes of the header */
    weft_dtype dtype;
    int stored;  /* bytes of an element in the file */
    char letter; /* its kind: f, i, u, b */
    bool is_swapped;
    int n_dims;
    int64_t dims[WEFT_RECORD_DIMS + 1], count; /* of all elements */
} weft_npy;

enum { WEFT_NPY_HEADER = 1 << 16 };

/* weft_npy_parse - the header of an array of `bytes` bytes, of which the first n are there. what: which array, for the sentence. Local.
 * returns WEFT_USAGE for what is none, or of a type or order that cannot be read, or has other than as many bytes as it says. */
weft_status weft_npy_parse(const weft_source *source, const char *what, const unsigned char *head,
                           int64_t n, int64_t bytes, weft_npy *array, weft_error *error);
/* weft_npy_convert - n stored elements into the dtype. Local. to: may be where they are, when both have as many bytes */
void weft_npy_convert(const weft_npy *array, const unsigned char *from, int64_t n, void *to);
/* weft_npy_read - elements [begin, end) of one that lies in a file, its header at `at`. Local. */
weft_status weft_npy_read(const weft_source *source, const weft_npy *array, int64_t at,
                          int64_t begin, int64_t end, void *to, weft_error *error);

#endif
