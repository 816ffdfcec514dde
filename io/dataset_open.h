/* dataset_open.h (private): a set that is open: its chain, to which program it is bound, and the threads that read ahead. */
#ifndef WEFT_IO_DATASET_OPEN_H
#define WEFT_IO_DATASET_OPEN_H

#include <pthread.h>

#include "bounds.h"
#include "dataset.h"
#include "readers.h"

enum { WEFT_FEED_THREADS = 64, WEFT_FEED_BATCHES = 64 };

/* The box of one field that one local rank holds, or, where some read for all, reads. */
typedef struct weft_dataset_part {
    int field, rank;
    weft_value input;
    weft_dtype dtype;
    int64_t row_begin, row_end; /* of the batch */
    weft_box box;               /* of a record, its own dims */
    int64_t begin, end;         /* numbers of a record, from the box's first to its last */
    bool is_run;                /* the box is all of these */
    int same_as;                /* an earlier part with the same box, or -1 */
    size_t row_bytes, bytes;
    char *memory; /* [n_ahead + 1, row_end - row_begin, row_bytes]; NULL when empty or same_as */
} weft_dataset_part;

/* One batch that is read, or was. */
typedef struct weft_staged {
    int64_t sample;     /* its first; -1: none */
    int64_t row, n_row; /* rows given to threads, and rows that they are done with */
    int64_t failed_row; /* the first that could not be read, and error says why; -1: none */
    weft_error error;
} weft_staged;

struct weft_dataset {
    weft_chain *chain;
    char *facts; /* in words (facts.h); NULL: none */
    weft_bound bounds[WEFT_MAX_FIELDS];
    weft_program *program; /* bound to, or NULL */
    int64_t batch, position;
    bool has_agreed; /* the processes have, on what the set is, since it was started */
    int n_parts;
    weft_dataset_part *parts;
    int n_threads, n_ahead, n_readers;
    weft_rows *
        rows; /* [ranks] while it is bound and ranks read for others: whose each row is; else NULL */
    weft_readers *readers; /* from the first batch on, where they do; else NULL */
    bool helps; /* while it is bound: who waits for a batch reads, too (weft_feed_may_help) */
    size_t scratch_bytes; /* of a thread */
    char *scratch;        /* [n_threads + 1, scratch_bytes]; the last of who waits for a batch */

    pthread_t threads[WEFT_FEED_THREADS];
    int n_started;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    int64_t wanted; /* the first sample of the batch that is delivered next */
    int n_taken;    /* scratches in use */
    bool is_ending;
    int out; /* the slot whose batch is being delivered; -1: none */
    /* [n_ahead + 1]: one is delivered while others are read */
    weft_staged staged[WEFT_FEED_BATCHES + 1];
};

/* dataset_facts.c: all numbers of a field. */
weft_bound_source weft_dataset_numbers(const weft_dataset *dataset, int field);
/* feed.c: ends the threads and forgets the program. Local. */
void weft_feed_unbind(weft_dataset *dataset);
/* feed_read.c: the next batch to be delivered. Local. */
void weft_feed_want(weft_dataset *dataset, int64_t sample);
/* feed_read.c: what a reading thread of a dataset does until it ends. */
void *weft_feed_reader(void *dataset);
/* feed_read.c: with the lock: some rows of the batch that is wanted are read by this thread; false: there are none that nobody has taken, or
 * the set does not help. Local. */
bool weft_feed_help(weft_dataset *dataset);
/* Whether a thread that is not the dataset's may read such records. Local. */
bool weft_feed_may_help(const weft_chain *chain);

#endif
