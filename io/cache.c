/* cache: a stage that keeps records in memory once they have been read. Which are kept is fixed: the first of a pass that there is room for.
 * So a shuffled pass, in which each comes once, finds as many as one in order; nothing is thrown out that is wanted later.
 */
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "sync.h"

enum { EMPTY, BEING_READ, READY };

typedef struct cache {
    const weft_chain *operand;
    int64_t records, n_kept;
    size_t at[WEFT_MAX_FIELDS], row_bytes;
    char *rows;                   /* [n_kept, row_bytes] */
    _Atomic unsigned char *state; /* [n_kept] */
} cache;

static void cache_close(void *self)
{
    cache *c = self;
    free(c->rows);
    free(c->state);
    free(c);
}

static weft_status fill(const cache *c, int64_t record, void *scratch, weft_error *error)
{
    weft_want whole[WEFT_MAX_FIELDS];
    const weft_chain_found *found = &c->operand->found;
    for (int f = 0; f < found->n_fields; f++)
        whole[f] = (weft_want){f, found->fields[f].dtype, 0, weft_field_count(&found->fields[f]),
                               c->rows + (size_t)record * c->row_bytes + c->at[f]};
    return weft_chain_ask(c->operand, record, whole, found->n_fields, scratch, error);
}

/* Whether the record is there now; of threads that want it at once one reads it, and the others for themselves. */
static weft_status find(const cache *c, int64_t record, bool *is_there, void *scratch,
                        weft_error *error)
{
    unsigned char seen = EMPTY;
    *is_there = false;
    if (record >= c->n_kept) return WEFT_OK;
    if (weft_sync_replace(&c->state[record], &seen, BEING_READ)) {
        const weft_status status = fill(c, record, scratch, error);
        weft_sync_store(&c->state[record], status == WEFT_OK ? READY : EMPTY);
        WEFT_TRY(status);
        seen = READY;
    }
    *is_there = seen == READY;
    return WEFT_OK;
}

static weft_status cache_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                              void *scratch, weft_error *error)
{
    const cache *c = self;
    const int64_t record = i % c->records;
    bool is_there;
    WEFT_TRY(find(c, record, &is_there, scratch, error));
    if (!is_there) return weft_chain_ask(c->operand, i, wants, n_wants, scratch, error);
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        const size_t element = weft_dtype_bytes(w->dtype);
        if (w->dtype != c->operand->found.fields[w->field].dtype) {
            WEFT_TRY(weft_chain_ask(c->operand, i, w, 1, scratch, error));
            continue;
        }
        memcpy(w->to,
               c->rows + (size_t)record * c->row_bytes + c->at[w->field] +
                   (size_t)w->begin * element,
               (size_t)(w->end - w->begin) * element);
    }
    return WEFT_OK;
}

static void cache_place(const void *self, int field, int64_t i, int64_t number, char *text,
                        size_t bytes)
{
    weft_chain_place(((const cache *)self)->operand, field, i, number, text, bytes);
}

static const weft_chain_kind cache_kind = {.name = "cache",
                                           .read = cache_read,
                                           .place = cache_place,
                                           .close = cache_close,
                                           .is_stage = true,
                                           .is_same = true};

static weft_status check(const weft_chain *chain, int64_t bytes, weft_error *error)
{
    if (bytes < 1)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_cache: %lld bytes; say how many there may be, at least 1",
                         (long long)bytes);
    WEFT_TRY(weft_chain_check_fixed(chain, "weft_chain_cache", "a record is kept once",
                                    "put it before that", error));
    for (int f = 0; f < chain->found.n_fields; f++)
        if (chain->found.fields[f].is_ragged)
            return weft_fail(error, WEFT_USAGE,
                             "weft_chain_cache: records have different sizes of %.80s; make them "
                             "of one size first, or take a snapshot",
                             chain->found.fields[f].name);
    return WEFT_OK;
}

weft_status weft_chain_cache(weft_chain **chain, int64_t bytes, weft_error *error)
{
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_TRY(check(*chain, bytes, error));
    weft_chain_found found = (*chain)->found;
    cache *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(error, sizeof *c);
    c->operand = *chain, c->records = found.records;
    for (int f = 0; f < found.n_fields; f++) {
        c->at[f] = c->row_bytes;
        c->row_bytes +=
            (size_t)weft_field_count(&found.fields[f]) * weft_dtype_bytes(found.fields[f].dtype);
        c->row_bytes = (c->row_bytes + 15) / 16 * 16;
        if (!weft_dtype_is_float(
                found.fields[f].dtype)) /* widened here as there; floats may not be */
            found.fields[f].native = 0;
    }
    const int64_t most = bytes / (int64_t)(c->row_bytes + 1);
    c->n_kept = most < found.records ? most : found.records;
    c->rows = malloc((size_t)c->n_kept * c->row_bytes + 1);
    c->state = calloc((size_t)c->n_kept + 1, sizeof *c->state);
    if (c->rows == NULL || c->state == NULL) {
        const size_t wanted = (size_t)c->n_kept * c->row_bytes;
        cache_close(c);
        return weft_fail_memory(error, wanted);
    }
    return weft_stage_make(&cache_kind, c, &found, "", chain, 1, chain, error);
}
