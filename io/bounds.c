/* bounds: ids that are looked at before they are learned from: in the graph one outside is ignored, as is said there, so a loss of
 * nothing but such labels is 0.
 */
#include "bounds.h"

#include <stdio.h>

#include "fingerprint.h"

/* The first of count that is outside; -1: none. Most often there is none, which is seen without a branch for each: x or n - 1 - x
 * is below 0 where x is outside. W: as wide as T, so that a vector has as many; there is no larger T than MOST. */
#define FIRST(name, T, W, MOST)                                                                    \
    static int64_t name(const weft_bound *b, const void *numbers, int64_t count)                   \
    {                                                                                              \
        const T *x = numbers;                                                                      \
        const uint64_t n = (uint64_t)b->n;                                                         \
        const W last = (W)(b->n - 1 < MOST ? b->n - 1 : MOST);                                     \
        W signs = 0;                                                                               \
        for (int64_t i = 0; i < count; i++)                                                        \
            signs |= (W)x[i] | (last - (W)x[i]);                                                   \
        for (int64_t i = 0; signs >> (8 * sizeof(W) - 1) && i < count; i++)                        \
            if ((uint64_t)(int64_t)x[i] >= n && (int64_t)x[i] != b->ignored) return i;             \
        return -1;                                                                                 \
    }
FIRST(first_i32, int32_t, uint32_t, INT32_MAX)
FIRST(first_i64, int64_t, uint64_t, INT64_MAX)
FIRST(first_u8, uint8_t, uint32_t, INT32_MAX)

static int64_t (*const firsts[WEFT_DTYPES])(const weft_bound *, const void *, int64_t) = {
    [WEFT_I32] = first_i32, [WEFT_I64] = first_i64, [WEFT_U8] = first_u8};

static weft_status fail(const weft_bound *b, const weft_bound_source *from, int64_t sample,
                        int64_t element, int64_t number, weft_error *error)
{
    const weft_field *field = &from->chain->found.fields[from->field];
    const char *ids = field->ids ? field->ids : "ids";
    char place[260], besides[48] = "";
    weft_chain_place(from->chain, from->field, sample, element, place, sizeof place);
    if (b->ignored < 0 || b->ignored >= b->n)
        snprintf(besides, sizeof besides, ", or %lld, which is ignored", (long long)b->ignored);
    return weft_fail(error, WEFT_USAGE, "%s is %lld, and there are %lld %s, 0 to %lld%s; %s", place,
                     (long long)number, (long long)b->n, ids, (long long)b->n - 1, besides,
                     field->mend ? field->mend : "give as many as there are, or other data");
}

weft_status weft_bound_check(const weft_bound *bound, const weft_bound_source *from, int64_t sample,
                             const weft_want *want, weft_error *error)
{
    if (bound->n == 0 || !firsts[want->dtype]) return WEFT_OK;
    const int64_t at = firsts[want->dtype](bound, want->to, want->end - want->begin);
    if (at < 0) return WEFT_OK;
    return fail(bound, from, sample, want->begin + at,
                (int64_t)weft_dtype_get(want->dtype, want->to, at), error);
}

enum { PIECE = 8192 };

static weft_status scan_span(const weft_bound *bound, const weft_bound_source *from, int64_t begin,
                             int64_t end, weft_error *error)
{
    const weft_chain *base = weft_chain_base(from->chain);
    const weft_bound_source there = {.chain = base, .field = from->field};
    int64_t numbers[PIECE];
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < PIECE ? end - at : PIECE;
        WEFT_TRY(base->kind->numbers(base->self, from->field, at, n, numbers, error));
        const int64_t odd = first_i64(bound, numbers, n);
        if (odd >= 0) return fail(bound, &there, 0, at + odd, numbers[odd], error);
    }
    return WEFT_OK;
}

weft_status weft_bound_scan(const weft_bound *bound, const weft_bound_source *from,
                            weft_error *error)
{
    const weft_chain_kind *kind = weft_chain_base(from->chain)->kind;
    const int64_t width = kind->number_bytes, bytes = from->count * width;
    if (kind->numbers == NULL) return WEFT_OK;
    if (from->known > 0) return scan_span(bound, from, from->known, from->count, error);
    for (int i = 0; i < weft_fingerprint_spans(bytes); i++) {
        int64_t begin, end;
        weft_fingerprint_span(bytes, i, &begin, &end);
        WEFT_TRY(scan_span(bound, from, begin / width, end / width, error));
    }
    return WEFT_OK;
}

weft_status weft_bound_highest(const weft_bound_source *from, int64_t *highest, weft_error *error)
{
    const weft_chain *base = weft_chain_base(from->chain);
    int64_t numbers[PIECE];
    *highest = 0;
    if (base->kind->numbers == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "weft_dataset_highest: the numbers of %.80s are made as they are wanted, "
                         "so there is no largest; it can be asked of what is in a file",
                         base->found.fields[from->field].name);
    for (int64_t at = 0, n; at < from->count; at += n) {
        n = from->count - at < PIECE ? from->count - at : PIECE;
        WEFT_TRY(base->kind->numbers(base->self, from->field, at, n, numbers, error));
        for (int64_t i = 0; i < n; i++)
            *highest = numbers[i] > *highest ? numbers[i] : *highest;
    }
    return WEFT_OK;
}
