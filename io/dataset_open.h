/* dataset_open.h (private): a set that is open: what it holds, to which program it is bound, and the thread that reads ahead. */
#ifndef WEFT_IO_DATASET_OPEN_H
#define WEFT_IO_DATASET_OPEN_H

#include <pthread.h>

#include "bounds.h"
#include "dataset.h"

/* The box of one field that one local rank holds. */
typedef struct weft_dataset_part {
    int field, rank;
    weft_value input;
    weft_dtype dtype;
    int64_t row_begin, row_end, begin, end; /* rows of the batch, elements of a sample */
    int same_as;                            /* an earlier part with the same box, or -1 */
    size_t row_bytes, bytes;
    char *memory; /* [row_end - row_begin, end - begin]; NULL when empty or same_as */
} weft_dataset_part;

struct weft_dataset {
    const weft_dataset_kind *kind;
    void *source;
    weft_dataset_found found;
    int64_t first, n; /* of the samples found those that it has */
    char *facts;      /* in words (facts.h); NULL: none */
    weft_bound bounds[WEFT_MAX_FIELDS];
    weft_program *program; /* bound to, or NULL */
    int64_t batch, position;
    bool has_agreed; /* the processes have, on what the set is, since it was started */
    int n_parts;
    weft_dataset_part *parts;

    pthread_t reader;
    bool has_reader;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    int64_t wanted, staged; /* sample numbers; staged is -1 when nothing is */
    bool is_failed;         /* what is staged could not be read, and error says why */
    bool is_ending;
    weft_error error;
};

/* dataset_facts.c: all numbers of a field. */
weft_bound_source weft_dataset_numbers(const weft_dataset *dataset, int field);

#endif
