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
