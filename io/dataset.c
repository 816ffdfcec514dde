/* dataset: a chain that is bound to a program by its feed: life, facts, position. */
#include "chain.h"
#include "dataset_open.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes over the chain, also on failure. */
static weft_status create(weft_chain **chain, char *facts, weft_dataset **dataset,
                          weft_error *error)
{
    weft_dataset *d = calloc(1, sizeof *d);
    if (!d) {
        weft_chain_close(chain);
        free(facts);
        return weft_fail_memory(error, sizeof *d);
    }
    d->chain = *chain;
    d->facts = facts;
    d->n_threads = d->n_ahead = 1;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    *chain = NULL;
    *dataset = d;
    return WEFT_OK;
}

weft_status weft_dataset_make(weft_chain **chain, bool is_shuffled, uint64_t seed,
                              weft_dataset **dataset, weft_error *error)
{
    char *facts = (*chain)->facts;
    weft_status status = WEFT_OK;
    (*chain)->facts = NULL;
    if (is_shuffled) status = weft_chain_shuffle(chain, 0, seed, error);
    if (status == WEFT_OK) return create(chain, facts, dataset, error);
    weft_chain_close(chain);
    free(facts);
    return status;
}

void weft_dataset_close(weft_dataset **dataset)
{
    weft_dataset *d = dataset ? *dataset : NULL;
    if (!d) return;
    weft_feed_unbind(d);
    weft_chain_close(&d->chain);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    free(d->facts);
    free(d);
    *dataset = NULL;
}

int64_t weft_dataset_samples(const weft_dataset *dataset)
{
    return dataset ? dataset->chain->found.records : 0;
}

weft_status weft_dataset_take(weft_dataset *dataset, int64_t first, int64_t n, weft_error *error)
{
    char text[80];
    WEFT_GIVEN(dataset, error);
    const int64_t there = weft_dataset_samples(dataset);
    if (dataset->program)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_take: the dataset has been started, and reads already; say "
                         "it before");
    if (first < 0 || n < 1 || first > there || n > there - first)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_take: %lld samples from sample %lld on, of a set of %lld",
                         (long long)n, (long long)first, (long long)there);
    if (n == there) return WEFT_OK;
    WEFT_TRY(weft_chain_take_unshuffled(&dataset->chain, first, n, error));
    snprintf(text, sizeof text, "%lld from %lld on", (long long)n,
             (long long)weft_chain_first(dataset->chain));
    return weft_dataset_fact(dataset, "part", text, error);
}

int64_t weft_dataset_width(const weft_dataset *dataset)
{
    return dataset ? weft_field_count(&dataset->chain->found.fields[0]) : 0;
}

int64_t weft_dataset_position(const weft_dataset *dataset)
{
    return dataset ? dataset->position : 0;
}

void weft_dataset_seek(weft_dataset *dataset, int64_t sample)
{
    if (!dataset) return;
    const int64_t last = WEFT_MAX_SAMPLES - 1;
    dataset->position = sample < 0 ? 0 : sample < last ? sample : last;
    weft_feed_want(dataset, dataset->position);
}

/* ---- how it is fed ---------------------------------------------------------------------------------- */

static weft_status check_feed(const weft_feed_options *o, const char *call, weft_error *error)
{
    if (o->n_threads < 0 || o->n_threads > WEFT_FEED_THREADS || o->n_ahead < 0 ||
        o->n_ahead > WEFT_FEED_BATCHES)
        return weft_fail(error, WEFT_USAGE,
                         "%s: %d threads and %d batches ahead; each can be 1 to 64, or 0 for 1",
                         call, o->n_threads, o->n_ahead);
    if (o->n_readers >= 0 && o->n_readers <= WEFT_MAX_RANKS) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: %d readers; from 1 to all ranks can read for the others, or 0: each rank "
                     "reads what it holds",
                     call, o->n_readers);
}

static void set_feed(weft_dataset *dataset, const weft_feed_options *o)
{
    dataset->n_threads = o->n_threads > 0 ? o->n_threads : 1;
    dataset->n_ahead = o->n_ahead > 0 ? o->n_ahead : 1;
    dataset->n_readers = o->n_readers;
}

weft_status weft_dataset_feed(weft_dataset *dataset, const weft_feed_options *options,
                              weft_error *error)
{
    WEFT_GIVEN(dataset, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check_feed(options, __func__, error));
    if (dataset->program)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_feed: the dataset has been started, and reads already; say "
                         "it before");
    set_feed(dataset, options);
    return WEFT_OK;
}

weft_status weft_chain_dataset(weft_chain **chain, const weft_feed_options *options,
                               weft_dataset **dataset, weft_error *error)
{
    static const weft_feed_options none = {0};
    const weft_feed_options *o = options ? options : &none;
    char *facts = NULL;
    WEFT_GIVEN(dataset, error);
    *dataset = NULL;
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_TRY(check_feed(o, __func__, error));
    WEFT_TRY(weft_chain_tell(*chain, &facts, error));
    WEFT_TRY(create(chain, facts, dataset, error));
    set_feed(*dataset, o);
    return WEFT_OK;
}
