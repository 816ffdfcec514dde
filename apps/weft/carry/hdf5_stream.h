/* hdf5_stream.h: what weft-read-hdf5 says of a file, over a socket, to the weft that started it.
 *
 *     TENSOR, one for each ... STATE, BYTES ... END        or at any place REFUSED, and nothing
 * after it
 *
 * After STATE it is told which tensors are wanted: a byte for each, 1 or 0. Of the others it reads no element. A tensor that
 * cannot be taken has a problem, and may only be left.
 *
 * Each message is a head and a struct of one size, so that there is nothing to parse. BYTES are the
 * elements of the wanted tensors in their order, each tensor in frames of STREAM_FRAME and a rest. Both
 * ends are one build on one machine. The receiver believes nothing of it: a file may have taken the
 * sender over.
 */
#ifndef WEFT_APPS_HDF5_STREAM_H
#define WEFT_APPS_HDF5_STREAM_H

#include <stdint.h>

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

typedef struct stream_refusal {
    uint32_t is_damaged;            /* else it is something that is not taken */
    char sentence[STREAM_SENTENCE]; /* goes behind the file's name */
} stream_refusal;

#endif
