/* calls: whether all ranks have made the same calls so far: before anything is kept that must not come from ranks that
 * disagree.
 */
#include <stdlib.h>

#include "engine.h"
#include "view.h"

/* How far one rank has come with each of its groups. */
typedef struct progress {
    int32_t rank, n;
    weft_channel_view channels[WEFT_CHANNELS];
} progress;

static progress progress_of(const weft_recorder *recorder)
{
    weft_rank_view view;
    progress p = {0};
    weft_view_take(recorder, &view);
    p.rank = view.rank;
    p.n = view.n_channels;
    for (int i = 0; i < view.n_channels; i++)
        p.channels[i] = view.channels[i];
    return p;
}

static weft_status compare(const progress *a, const progress *b, weft_error *error)
{
    for (int i = 0; i < a->n; i++) {
        for (int k = 0; k < b->n; k++) {
            const weft_channel_view *one = &a->channels[i], *other = &b->channels[k];
            if (one->key != other->key || one->lowest != other->lowest ||
                (one->sequence == other->sequence && !weft_channels_differ(one, other)))
                continue;
            return weft_fail(
                error, WEFT_MISMATCH,
                "ranks %d and %d have not made the same calls: %llu and %llu in a group of %d that "
                "both are in%s; nothing of what they hold is kept, so continue from the last "
                "checkpoint",
                a->rank, b->rank, (unsigned long long)one->sequence,
                (unsigned long long)other->sequence, one->n_ranks,
                one->sequence == other->sequence ? ", of different kinds or sizes" : "");
        }
    }
    return WEFT_OK;
}

/* Each with the lowest of every group is each with each; ranks are few against their bytes. */
static weft_status compare_all(const progress *all, int n, weft_error *error)
{
    for (int i = 1; i < n; i++) {
        WEFT_TRY(compare(&all[i], &all[0], error));
        for (int c = 0; c < all[i].n; c++) {
            const int lowest = all[i].channels[c].lowest;
            if (lowest > 0 && lowest < i) WEFT_TRY(compare(&all[i], &all[lowest], error));
        }
    }
    return WEFT_OK;
}

static weft_status gather(weft_comm *comm, progress *all, weft_error *error)
{
    const progress own =
        comm->recorder ? progress_of(comm->recorder) : (progress){.rank = comm->rank};
    const size_t n = (size_t)comm->n_ranks;
    int64_t *numbers = malloc(2 * n * sizeof *numbers);
    if (numbers == NULL) return weft_fail_memory(error, 2 * n * sizeof *numbers);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = sizeof own;
        numbers[n + i] = (int64_t)(i * sizeof own);
    }
    weft_request request;
    weft_status status =
        weft_all_gather_start(comm, &own, sizeof own, all, numbers, numbers + n, &request, error);
    if (status == WEFT_OK) status = weft_wait(&request, error);
    free(numbers);
    return status;
}

weft_status weft_calls_check(weft_comm *comm, weft_error *error)
{
    const int n = comm ? comm->n_ranks : weft_n_recorders();
    progress *all = calloc((size_t)n + 1, sizeof *all);
    if (all == NULL) return weft_fail_memory(error, (size_t)n * sizeof *all);
    weft_status status = comm ? gather(comm, all, error) : WEFT_OK;
    for (int i = 0; i < n && comm == NULL; i++)
        all[i] = progress_of(weft_recorder_at(i));
    if (status == WEFT_OK) status = compare_all(all, n, error);
    free(all);
    return status;
}
