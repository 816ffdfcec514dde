/* rows: records of a chain read into memory of the caller, without a program: lengths, numbers, what a chain says of itself. */
#include "chain.h"

#include <stdlib.h>
#include <string.h>

/* Of one call; stages below want it aligned. NULL with *status: there is no memory. */
static void *new_scratch(const weft_chain *chain, weft_status *status, weft_error *error)
{
    const size_t bytes = (chain->found.scratch_bytes + 127) / 64 * 64;
    void *scratch = aligned_alloc(64, bytes);
    if (scratch == NULL) *status = weft_fail_memory(error, bytes);
    return scratch;
}

static weft_status check(const weft_chain *chain, int64_t first, int64_t n, int field,
                         const char *call, weft_error *error)
{
    if (chain == NULL)
        return weft_fail(error, WEFT_USAGE, "%s: chain is NULL; open it first", call);
    if (field < 0 || field >= chain->found.n_fields)
        return weft_fail(error, WEFT_USAGE,
                         "%s: there is no field %d; the chain has %d, the first of them 0", call,
                         field, chain->found.n_fields);
    if (first >= 0 && n >= 1 && first < WEFT_MAX_SAMPLES && n <= WEFT_MAX_SAMPLES - first)
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: %lld records from record %lld on; there can be 1 and more, from 0 on",
                     call, (long long)n, (long long)first);
}

weft_status weft_chain_lengths(const weft_chain *chain, int64_t first, int64_t n, int field,
                               int64_t *lengths, weft_error *error)
{
    weft_status status = WEFT_OK;
    WEFT_TRY(check(chain, first, n, field, __func__, error));
    WEFT_GIVEN(lengths, error);
    void *scratch = new_scratch(chain, &status, error);
    for (int64_t i = 0; i < n && status == WEFT_OK; i++)
        status = weft_chain_count(chain, first + i, field, scratch, &lengths[i], error);
    free(scratch);
    return status;
}

/* Of one record. */
static weft_status count_numbers(const weft_chain *chain, int64_t i, int field, void *scratch,
                                 int64_t *count, weft_error *error)
{
    const weft_field *f = &chain->found.fields[field];
    *count = 1;
    if (f->is_ragged) WEFT_TRY(weft_chain_count(chain, i, field, scratch, count, error));
    *count *= weft_field_count(f);
    return WEFT_OK;
}

weft_status weft_chain_read(const weft_chain *chain, int64_t first, int64_t n, int field, void *to,
                            int64_t bytes, weft_error *error)
{
    weft_status status = WEFT_OK;
    WEFT_TRY(check(chain, first, n, field, __func__, error));
    WEFT_GIVEN(to, error);
    WEFT_GIVEN_RANGE(bytes, 0, INT64_MAX, error);
    const weft_field *f = &chain->found.fields[field];
    const int64_t element = (int64_t)weft_dtype_bytes(f->dtype);
    void *scratch = new_scratch(chain, &status, error);
    for (int64_t i = 0, at = 0, count; i < n && status == WEFT_OK; i++, at += count) {
        status = count_numbers(chain, first + i, field, scratch, &count, error);
        if (status == WEFT_OK && count > bytes / element - at)
            status = weft_fail(error, WEFT_USAGE,
                               "weft_chain_read: %.80s of %lld records has more than the %lld "
                               "bytes that there is room for; weft_chain_lengths tells how many",
                               f->name, (long long)n, (long long)bytes);
        const weft_want want = {field, f->dtype, 0, status == WEFT_OK ? count : 0,
                                (char *)to + at * element};
        if (status == WEFT_OK && count > 0)
            status = weft_chain_ask(chain, first + i, &want, 1, scratch, error);
    }
    free(scratch);
    return status;
}

bool weft_chain_is_ragged(const weft_chain *chain, int field)
{
    return chain != NULL && field >= 0 && field < chain->found.n_fields &&
           chain->found.fields[field].is_ragged;
}

int weft_chain_labels(const weft_chain *chain, int field)
{
    const bool is_there = chain != NULL && field >= 0 && field < chain->found.n_fields;
    return is_there ? chain->found.fields[field].n_labels : 0;
}

const char *weft_chain_label(const weft_chain *chain, int field, int label)
{
    return label >= 0 && label < weft_chain_labels(chain, field)
               ? chain->found.fields[field].labels[label]
               : NULL;
}

const char *weft_chain_format(const weft_chain *chain)
{
    return chain == NULL ? "" : chain->format != NULL ? chain->format : chain->kind->name;
}

const char *weft_chain_facts(weft_chain *chain)
{
    if (chain == NULL) return "";
    if (chain->told == NULL) (void)!weft_chain_tell(chain, &chain->told, NULL);
    return chain->told != NULL ? chain->told : "";
}
