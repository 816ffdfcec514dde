/* pack_index: an index of windows, made of the records' counts: groups of records are fitted apart, so threads share them and none of it
 * depends on how many there are.
 */
#include "pack_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kept.h"

enum { VERSION = 1 };

void weft_pack_index_free(weft_pack_index *index)
{
    if (index->kept == NULL) weft_packing_free(&index->packing);
    free(index->kept);
    *index = (weft_pack_index){.kept = NULL};
}

/* ---- making it -------------------------------------------------------------------------------------- */

typedef struct building {
    const weft_pack_order *p;
    int64_t n_groups;
    weft_packing *groups; /* [n_groups] */
} building;

static weft_status check_count(const weft_pack_order *p, int64_t record, int64_t count,
                               weft_error *error)
{
    char place[160];
    if (p->is_whole && count > p->seq) {
        weft_chain_place(p->operand, p->field, record, 0, place, sizeof place);
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_%s: record %lld has %lld in %.60s, and %lld have room (%s); "
                         "give more room, or filter it out",
                         p->stage, (long long)record, (long long)count,
                         p->operand->found.fields[p->field].name, (long long)p->seq, place);
    }
    if (count / p->seq <= UINT32_MAX) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_%s: document %lld has %lld tokens, more than 2^32 windows of seq "
                     "%lld; take a larger seq",
                     p->stage, (long long)record, (long long)count, (long long)p->seq);
}

static weft_status count_records(const weft_pack_order *p, int64_t first, int64_t n,
                                 int64_t *counts, void *scratch, weft_error *error)
{
    for (int64_t d = 0; d < n; d++) {
        WEFT_TRY(weft_chain_count(p->operand, first + d, p->field, scratch, &counts[d], error));
        WEFT_TRY(check_count(p, first + d, counts[d], error));
        if (p->is_whole && counts[d] == 0) counts[d] = 1;
    }
    return WEFT_OK;
}

static weft_status fit_group(void *argument, int64_t part, weft_error *error)
{
    const building *b = argument;
    const weft_pack_order *p = b->p;
    const int64_t first = part * p->look_ahead, left = p->operand->found.records - first;
    const int64_t n = left < p->look_ahead ? left : p->look_ahead;
    const size_t bytes = (p->operand->found.scratch_bytes + 127) / 64 * 64;
    void *scratch = aligned_alloc(64, bytes);
    int64_t *counts = malloc((size_t)n * sizeof *counts);
    weft_status status = scratch && counts ? WEFT_OK : weft_fail_memory(error, bytes);
    if (status == WEFT_OK) status = count_records(p, first, n, counts, scratch, error);
    if (status == WEFT_OK)
        status = weft_pack_fit(first, counts, n, p->seq, &b->groups[part], error);
    free(scratch), free(counts);
    return status;
}

/* Groups behind each other. */
static weft_status join(const building *b, weft_packing *all, weft_error *error)
{
    int64_t windows = 0, pieces = 0;
    for (int64_t g = 0; g < b->n_groups; g++)
        windows += b->groups[g].n_windows, pieces += b->groups[g].n_pieces;
    all->ends = malloc((size_t)(windows + 1) * sizeof *all->ends);
    all->pieces = malloc((size_t)(pieces + 1) * sizeof *all->pieces);
    if (all->ends == NULL || all->pieces == NULL)
        return weft_fail_memory(error, (size_t)(pieces + 1) * sizeof *all->pieces);
    for (int64_t g = 0; g < b->n_groups; g++) {
        const weft_packing *group = &b->groups[g];
        for (int64_t w = 0; w < group->n_windows; w++)
            all->ends[all->n_windows++] = all->n_pieces + group->ends[w];
        if (group->n_pieces > 0)
            memcpy(all->pieces + all->n_pieces, group->pieces,
                   (size_t)group->n_pieces * sizeof *all->pieces);
        all->n_pieces += group->n_pieces;
    }
    return WEFT_OK;
}

static weft_status build(const weft_pack_order *p, weft_packing *packing, weft_error *error)
{
    building b = {.p = p};
    b.n_groups = (p->operand->found.records + p->look_ahead - 1) / p->look_ahead;
    b.groups = calloc((size_t)b.n_groups, sizeof *b.groups);
    if (b.groups == NULL) return weft_fail_memory(error, (size_t)b.n_groups * sizeof *b.groups);
    weft_status status =
        weft_parts_do(b.n_groups, p->n_threads > 0 ? p->n_threads : 1, fit_group, &b, error);
    if (status == WEFT_OK) status = join(&b, packing, error);
    for (int64_t g = 0; g < b.n_groups; g++)
        weft_packing_free(&b.groups[g]);
    free(b.groups);
    return status;
}

/* ---- keeping it ------------------------------------------------------------------------------------- */

/* As it is kept: these two numbers, ends, pieces. */
typedef struct sizes {
    int64_t n_windows, n_pieces;
} sizes;

static size_t bytes_of(const weft_packing *index)
{
    return sizeof(sizes) + (size_t)index->n_windows * sizeof *index->ends +
           (size_t)index->n_pieces * sizeof *index->pieces;
}

static weft_hash key_of(const weft_pack_order *p)
{
    char text[160];
    weft_hashing hashing;
    const weft_hash below = weft_chain_digest(p->operand);
    snprintf(text, sizeof text, "%s %d: field %d, seq %lld, look-ahead %lld", p->stage, VERSION,
             p->field, (long long)p->seq, (long long)p->look_ahead);
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, text, strlen(text) + 1);
    weft_hash_add(&hashing, below.bytes, sizeof below.bytes);
    return weft_hash_end(&hashing);
}

weft_hash weft_pack_index_hash(const weft_pack_index *index)
{
    const weft_packing *p = &index->packing;
    weft_hashing hashing;
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, p->ends, (size_t)p->n_windows * sizeof *p->ends);
    weft_hash_add(&hashing, p->pieces, (size_t)p->n_pieces * sizeof *p->pieces);
    return weft_hash_end(&hashing);
}

/* Whether it is one that reading can rely on. */
static bool is_sound(const weft_pack_order *p, const weft_packing *index)
{
    int64_t at = 0;
    for (int64_t w = 0; w < index->n_windows; w++) {
        int64_t used = 0;
        if (index->ends[w] <= at || index->ends[w] > index->n_pieces) return false;
        for (; at < index->ends[w]; at++) {
            const weft_pack_piece *piece = &index->pieces[at];
            used += piece->length;
            if (piece->document < 0 || piece->document >= p->operand->found.records ||
                piece->length == 0 || used > p->seq)
                return false;
        }
    }
    return at == index->n_pieces;
}

static bool lay_over(const weft_pack_order *p, weft_pack_index *made, void *bytes, size_t n)
{
    const sizes *s = bytes;
    if (n < sizeof *s || s->n_windows < 0 || s->n_pieces < 0 ||
        (uint64_t)s->n_windows > n / sizeof(int64_t) ||
        (uint64_t)s->n_pieces > n / sizeof(weft_pack_piece))
        return false;
    weft_packing index = {.n_windows = s->n_windows, .n_pieces = s->n_pieces};
    if (bytes_of(&index) != n) return false;
    index.ends = (int64_t *)(void *)((char *)bytes + sizeof *s);
    index.pieces = (weft_pack_piece *)(void *)(index.ends + index.n_windows);
    if (!is_sound(p, &index)) return false;
    made->packing = index, made->kept = bytes;
    return true;
}

static weft_status load(const weft_pack_order *p, weft_pack_index *index, const weft_hash *key,
                        bool *is_there, weft_error *error)
{
    void *bytes;
    size_t n;
    WEFT_TRY(weft_kept_load(p->folder, p->stage, key, &bytes, &n, error));
    *is_there = bytes != NULL && lay_over(p, index, bytes, n);
    if (!*is_there) free(bytes);
    return WEFT_OK;
}

static weft_status store(const weft_pack_order *p, const weft_packing *index, const weft_hash *key,
                         weft_error *error)
{
    const sizes s = {index->n_windows, index->n_pieces};
    const size_t n = bytes_of(index), n_ends = (size_t)s.n_windows * sizeof *index->ends;
    char *bytes = malloc(n);
    if (bytes == NULL) return weft_fail_memory(error, n);
    memcpy(bytes, &s, sizeof s);
    memcpy(bytes + sizeof s, index->ends, n_ends);
    memcpy(bytes + sizeof s + n_ends, index->pieces, n - sizeof s - n_ends);
    const weft_status status = weft_kept_store(p->folder, p->stage, key, bytes, n, error);
    free(bytes);
    return status;
}

weft_status weft_pack_index_find(const weft_pack_order *p, weft_pack_index *index,
                                 weft_error *error)
{
    const weft_hash key = key_of(p);
    bool is_there = false;
    *index = (weft_pack_index){.kept = NULL};
    if (p->folder) WEFT_TRY(load(p, index, &key, &is_there, error));
    if (!is_there) WEFT_TRY(build(p, &index->packing, error));
    if (index->packing.n_windows == 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_%s: %lld documents have no token in %.80s; take others, or "
                         "another field",
                         p->stage, (long long)p->operand->found.records,
                         p->operand->found.fields[p->field].name);
    return p->folder && !is_there ? store(p, &index->packing, &key, error) : WEFT_OK;
}
