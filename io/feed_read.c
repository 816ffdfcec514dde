/* feed_read: rows of a dataset's batches, read into staging memory by its threads, and by the one that waits for them.
 *
 * Threads may take rows in any order. The thread that waits for a batch reads the rows of it that nobody has taken. So one that sleeps, or
 * has no core, holds up nobody.
 */
#include "chain.h"
#include "dataset_open.h"
#include "sync.h"

#include <string.h>

enum { WANTS = 64 /* of one call */ };

/* The pieces of a row that are read by one call: where parts go, by number. */
typedef struct row {
    weft_want wants[WANTS];
    int parts[WANTS];
    int n;
} row;

/* From the numbers of a span to those of a box in it. */
static void pick_box(const weft_dataset_part *p, const weft_shape *shape, const char *span,
                     char *to)
{
    const size_t element = weft_dtype_bytes(p->dtype);
    const int last = shape->n_dims - 1;
    const size_t run = (size_t)(p->box.end[last] - p->box.begin[last]) * element;
    int64_t at[WEFT_MAX_DIMS];
    memcpy(at, p->box.begin, sizeof at);
    for (;;) {
        int64_t number = 0;
        for (int d = 0; d <= last; d++)
            number = number * shape->dims[d].size + at[d];
        memcpy(to, span + (size_t)(number - p->begin) * element, run);
        to += run;
        int d = last - 1;
        for (; d >= 0 && ++at[d] == p->box.end[d]; d--)
            at[d] = p->box.begin[d];
        if (d < 0) return;
    }
}

static weft_status read_wants(const weft_dataset *dataset, row *r, int64_t sample,
                              int64_t batch_row, int slot, char *scratch, weft_error *error)
{
    WEFT_TRY(weft_chain_ask(dataset->chain, sample, r->wants, r->n, scratch, error));
    for (int i = 0; i < r->n; i++) {
        const weft_dataset_part *p = &dataset->parts[r->parts[i]];
        const weft_bound_source from = weft_dataset_numbers(dataset, p->field);
        WEFT_TRY(weft_bound_check(&dataset->bounds[p->field], &from, sample, &r->wants[i], error));
        if (!p->is_run)
            pick_box(p, &dataset->chain->found.fields[p->field].shape, r->wants[i].to,
                     p->memory + (size_t)slot * p->bytes +
                         (size_t)(batch_row - p->row_begin) * p->row_bytes);
    }
    r->n = 0;
    return WEFT_OK;
}

/* A row of the batch in a slot, of all parts that have it. */
static weft_status read_row(const weft_dataset *dataset, int slot, int64_t first, int64_t batch_row,
                            char *scratch, weft_error *error)
{
    char *room = scratch + dataset->chain->found.scratch_bytes;
    row r;
    r.n = 0;
    for (int i = 0; i < dataset->n_parts; i++) {
        const weft_dataset_part *p = &dataset->parts[i];
        if (!p->memory || batch_row < p->row_begin || batch_row >= p->row_end) continue;
        char *to =
            p->memory + (size_t)slot * p->bytes + (size_t)(batch_row - p->row_begin) * p->row_bytes;
        if (r.n == WANTS) {
            WEFT_TRY(read_wants(dataset, &r, first + batch_row, batch_row, slot, scratch, error));
            room = scratch + dataset->chain->found.scratch_bytes;
        }
        r.parts[r.n] = i;
        r.wants[r.n++] = (weft_want){p->field, p->dtype, p->begin, p->end, p->is_run ? to : room};
        if (!p->is_run) room += (size_t)(p->end - p->begin) * sizeof(int64_t);
    }
    if (r.n == 0) return WEFT_OK;
    return read_wants(dataset, &r, first + batch_row, batch_row, slot, scratch, error);
}

/* Whether the batch in a slot is one of those that are delivered next. */
static bool is_wanted(const weft_dataset *dataset, const weft_staged *s)
{
    const int64_t later = s->sample - dataset->wanted;
    return s->sample >= 0 && later >= 0 && later % dataset->batch == 0 &&
           later / dataset->batch < dataset->n_ahead;
}

static bool has_batch(const weft_dataset *dataset, int64_t sample)
{
    for (int i = 0; i <= dataset->n_ahead; i++)
        if (dataset->staged[i].sample == sample) return true;
    return false;
}

/* Begin to read the batch at `sample` where one is that nobody wants, reads or delivers. */
static void begin_batch(weft_dataset *dataset, int64_t sample)
{
    for (int i = 0; i <= dataset->n_ahead; i++) {
        weft_staged *s = &dataset->staged[i];
        if (is_wanted(dataset, s) || s->row != s->n_row) continue;
        if (i == dataset->out) continue;
        *s = (weft_staged){.sample = sample, .failed_row = -1};
        return;
    }
}

/* The slot with rows that nobody has taken, of the batch that is delivered first; -1: there is none. */
static int slot_to_read(weft_dataset *dataset)
{
    int found = -1;
    for (int b = 0; b < dataset->n_ahead; b++)
        if (!has_batch(dataset, dataset->wanted + b * dataset->batch))
            begin_batch(dataset, dataset->wanted + b * dataset->batch);
    for (int i = 0; i <= dataset->n_ahead; i++) {
        const weft_staged *s = &dataset->staged[i];
        if (!is_wanted(dataset, s) || s->row == dataset->batch) continue;
        if (found < 0 || s->sample < dataset->staged[found].sample) found = i;
    }
    return found;
}

/* Rows [begin, end) of a slot. The first failure of the batch, by row, is the one that is told. */
static void read_rows(weft_dataset *dataset, int slot, int64_t begin, int64_t end, char *scratch)
{
    const int64_t sample = dataset->staged[slot].sample;
    weft_error error = {.rank = -1};
    weft_status status = WEFT_OK;
    int64_t at = begin;
    weft_lock_give(&dataset->lock);
    for (; at < end; at++)
        if ((status = read_row(dataset, slot, sample, at, scratch, &error)) != WEFT_OK) break;
    weft_lock_take(&dataset->lock);
    weft_staged *s = &dataset->staged[slot];
    if (status != WEFT_OK && (s->failed_row < 0 || at < s->failed_row)) {
        s->failed_row = at;
        s->error = error;
    }
    s->n_row += end - begin;
    if (s->n_row == s->row) weft_condition_tell(&dataset->changed); /* it is whole, or free */
}

/* Rows that are taken at once of those that are left: all, where one thread takes them; else fewer and fewer, so that all end together. Few
 * are not worth the lock. */
static int64_t share_of(const weft_dataset *dataset, int64_t left)
{
    const int n = dataset->n_threads + dataset->helps;
    const int64_t least = 1 + dataset->batch / (8 * n), fair = left / (2 * n);
    return n == 1 || left < least ? left : fair > least ? fair : least;
}

/* Some rows of a slot that nobody has taken, by this thread, which has the lock before and after. */
static void take_rows(weft_dataset *dataset, int slot, char *scratch)
{
    weft_staged *s = &dataset->staged[slot];
    const int64_t begin = s->row;
    s->row += share_of(dataset, dataset->batch - begin);
    read_rows(dataset, slot, begin, s->row, scratch);
}

void *weft_feed_reader(void *argument)
{
    weft_dataset *dataset = argument;
    weft_lock_take(&dataset->lock);
    char *scratch = dataset->scratch + (size_t)dataset->n_taken++ * dataset->scratch_bytes;
    while (!dataset->is_ending) {
        const int slot = slot_to_read(dataset);
        if (slot < 0)
            weft_condition_wait(&dataset->changed, &dataset->lock, "a batch to be wanted");
        else
            take_rows(dataset, slot, scratch);
    }
    weft_lock_give(&dataset->lock);
    return NULL;
}

bool weft_feed_may_help(const weft_chain *chain)
{
    bool may = !chain->kind->is_called;
    for (int i = 0; i < chain->n_operands && may; i++)
        may = weft_feed_may_help(chain->operands[i]);
    return may;
}

bool weft_feed_help(weft_dataset *dataset)
{
    const int slot = dataset->helps ? slot_to_read(dataset) : -1;
    if (slot < 0 || dataset->staged[slot].sample != dataset->wanted) return false;
    take_rows(dataset, slot,
              dataset->scratch + (size_t)dataset->n_threads * dataset->scratch_bytes);
    return true;
}

/* Ask for the batch that begins at `sample`. */
void weft_feed_want(weft_dataset *dataset, int64_t sample)
{
    weft_lock_take(&dataset->lock);
    dataset->wanted = sample;
    weft_condition_tell(&dataset->changed);
    weft_lock_give(&dataset->lock);
}
