/* fingerprint.h (private): the identity of bytes: their number and a hash. Up to WEFT_PRINT_WHOLE it is of all of
 * them; beyond, of WEFT_PRINT_BLOCKS blocks at even distances, from the first to the last, so that 10 GB cost what 4
 * MiB do. Bytes that change between two of those blocks are not noticed then, if there are as many as before.
 *
 *     weft_fingerprint_begin(&print, bytes);
 *     while (...) weft_fingerprint_add(&print, some, n);        all of them, in their order
 *     weft_fingerprint_end(&print, "bytes", bytes, text);       "300000 bytes (hash 5e1f0c2b9a3d4e77)"
 */
#ifndef WEFT_IO_FINGERPRINT_H
#define WEFT_IO_FINGERPRINT_H

#include "checkpoint/hash.h"
#include "weft/error.h"

enum {
    WEFT_PRINT_WHOLE = 64 << 20,
    WEFT_PRINT_BLOCK = 64 << 10,
    WEFT_PRINT_BLOCKS = 64,
    WEFT_PRINT_TEXT = 96
};

typedef struct weft_fingerprint {
    int64_t bytes, at; /* in all; that have come */
    weft_hashing hashing;
} weft_fingerprint;

/* All Local. weft_fingerprint_span - which of the bytes are hashed: span i of weft_fingerprint_spans, in their order. */
int weft_fingerprint_spans(int64_t bytes);
void weft_fingerprint_span(int64_t bytes, int i, int64_t *begin, int64_t *end);
void weft_fingerprint_begin(weft_fingerprint *print, int64_t bytes);
void weft_fingerprint_add(weft_fingerprint *print, const void *bytes, int64_t n);
void weft_fingerprint_end(const weft_fingerprint *print, const char *unit, int64_t units,
                          char text[WEFT_PRINT_TEXT]);
/* weft_fingerprint_file - of the bytes [begin, begin + bytes) of a file that is open: reads no more of it than what is hashed. */
weft_status weft_fingerprint_file(int file, const char *path, int64_t begin, int64_t bytes,
                                  const char *unit, int64_t units, char text[WEFT_PRINT_TEXT],
                                  weft_error *error);

#endif
