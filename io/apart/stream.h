/* stream.h (private): what weft-read-hdf5 and weft-read-files say of a file, over a socket, to who started them.
 *
 *     TENSOR, one for each ... STATE, BYTES ... END        or at any place REFUSED, and nothing
 * after it
 *
 * Asked for rows (its argument is "rows"), it answers stream_rows behind STATE until nobody asks: each by BYTES, in frames, or REFUSED.
 *
 * After STATE it is told which tensors are wanted: a byte for each, 1 or 0. Of the others it reads no element. A tensor that
 * cannot be taken has a problem, and may only be left.
 *
 * Each message is a head and a struct of one size, so that there is nothing to parse. BYTES are the
 * elements of the wanted tensors in their order, each tensor in frames of STREAM_FRAME and a rest. Both
 * ends are one build on one machine. The receiver believes nothing of it: a file may have taken the
 * sender over.
 */
#ifndef WEFT_IO_STREAM_H
#define WEFT_IO_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "weft/layout.h"

enum {
    STREAM_FRAME = 1 << 20,
    STREAM_NAME = 512,  /* with the 0 at the end */
    STREAM_DIMS = 1024, /* as well */
    STREAM_DATA = 1024, /* as well */
    STREAM_TYPE = 8,
    STREAM_SENTENCE = 400,
    STREAM_PROBLEM = 320
};

typedef enum stream_kind {
    STREAM_TENSOR = 1,
    STREAM_STATE,
    STREAM_BYTES,
    STREAM_END,
    STREAM_REFUSED
} stream_kind;

typedef struct stream_head {
    uint32_t kind, bytes; /* of what follows */
} stream_head;

typedef struct stream_tensor {
    char name[STREAM_NAME];
    char dims[STREAM_DIMS]; /* "batch,seq"; "" when the file has no good names for them */
    char type[STREAM_TYPE]; /* what it is in the file: "f16" */
    uint32_t dtype;         /* what is sent: a weft_dtype */
    uint32_t is_slot;
    int32_t n_dims;
    uint32_t is_damaged;          /* by its problem: else it is something that is not taken */
    char problem[STREAM_PROBLEM]; /* a sentence that goes behind the file's name; "": none */
    int64_t sizes[WEFT_MAX_DIMS];
} stream_tensor;

typedef struct stream_state {
    int64_t step, sample; /* 0: the file does not say */
    uint64_t seed;
    char data[STREAM_DATA]; /* what it has learned from; "": the file does not say */
} stream_state;

typedef struct stream_rows {
    int32_t tensor; /* in the order in which they were sent */
    int32_t zero;
    int64_t record;     /* of its first dim; 0 where it has none */
    int64_t begin, end; /* elements of that, at least one */
} stream_rows;

typedef struct stream_refusal {
    uint32_t is_damaged;            /* else it is something that is not taken */
    char sentence[STREAM_SENTENCE]; /* goes behind the file's name */
} stream_refusal;

/* ---- how the receiver looks at what it was sent */

/* Whether it is printable and ends within its bytes, with nothing but zeros behind its end. */
static inline bool stream_is_text(const char *text, size_t bytes)
{
    const size_t length = strnlen(text, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (i < length ? (unsigned char)text[i] < ' ' || text[i] == 0x7F : text[i] != 0)
            return false;
    return length < bytes;
}

/* Whether it can be one. What has a problem can only be left, whatever else is said of it. */
static inline bool stream_is_tensor(const stream_tensor *t)
{
    static const int64_t most = INT64_C(1) << 40;
    bool is_good =
        stream_is_text(t->name, sizeof t->name) && stream_is_text(t->dims, sizeof t->dims) &&
        stream_is_text(t->type, sizeof t->type) && stream_is_text(t->problem, sizeof t->problem) &&
        t->dtype < WEFT_DTYPES && t->is_slot < 2 && t->is_damaged < 2 && t->n_dims >= 0 &&
        t->n_dims <= WEFT_MAX_DIMS;
    for (int d = 0; d < t->n_dims && is_good && !*t->problem; d++)
        is_good = t->sizes[d] >= 1 && t->sizes[d] <= most;
    return is_good;
}

#endif
