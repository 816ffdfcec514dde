/* pack: a stage that makes windows of documents. A document that has room in one window is not cut. Attention learns where one ends and the
 * next begins by segments and positions.
 *
 * Which piece is where is an index (pack_fit.h), made once of the documents' counts: groups of documents are fitted apart, so threads
 * share them and none of it depends on how many there are. A window is read by its pieces; each costs one read of its document.
 */
#include "chain.h"
#include "kept.h"
#include "pack_fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS, TARGETS, SEGMENTS, POSITIONS, FIELDS, LOOK_AHEAD = 4096, VERSION = 1 };
static const char *const names[FIELDS] = {"tokens", "targets", "segments", "positions"};

typedef struct pack {
    const weft_chain *operand;
    int field;
    int64_t seq, end, look_ahead;
    weft_packing index;
    void *kept;     /* what was loaded, in which the index lies; NULL: it was made */
    size_t scratch; /* where the operand's begins */
} pack;

static void pack_close(void *self)
{
    pack *p = self;
    if (p->kept == NULL) weft_packing_free(&p->index);
    free(p->kept);
    free(p);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Where a piece has its places [begin, end) of the window: as much of it as is wanted. */
typedef struct span {
    const weft_pack_piece *piece;
    int64_t at;         /* its first place in the window */
    int64_t begin, end; /* places that are wanted */
    int32_t segment;
} span;

/* A document may have become another one since the index was made: then it is not read beyond its end. */
static weft_status check_count(const pack *p, const span *s, int64_t count, weft_error *error)
{
    char place[240];
    const int64_t end = s->piece->part * p->seq + s->piece->length;
    if (count >= end && (s->piece->length == p->seq || count == end)) return WEFT_OK;
    weft_chain_place(p->operand, p->field, s->piece->document, 0, place, sizeof place);
    return weft_fail(error, WEFT_IO,
                     "%s: the document has %lld tokens, and had others when it was packed; do not "
                     "change data while it is read",
                     place, (long long)count);
}

/* Tokens and targets of a span; each is one read behind the other, so both are one. */
static weft_status read_span(const pack *p, const span *s, int32_t *row, int32_t *tokens,
                             int32_t *targets, void *scratch, weft_error *error)
{
    int64_t count = 0;
    WEFT_TRY(weft_chain_count(p->operand, s->piece->document, p->field, scratch, &count, error));
    WEFT_TRY(check_count(p, s, count, error));
    const int64_t first = s->piece->part * p->seq + s->begin - s->at, n = s->end - s->begin;
    const bool is_last = first + n == count;
    const weft_want want = {p->field, WEFT_I32, first, first + n + !is_last, row};
    WEFT_TRY(weft_chain_ask(p->operand, s->piece->document, &want, 1, scratch, error));
    if (is_last) row[n] = (int32_t)p->end;
    memcpy(tokens + s->begin, row, (size_t)n * sizeof *row);
    memcpy(targets + s->begin, row + 1, (size_t)n * sizeof *row);
    return WEFT_OK;
}

/* The next piece of a window that has a place in [low, high); false: there is none. *w: its next piece, *at: where that begins. */
static bool next_span(const pack *p, int64_t window, int64_t low, int64_t high, int64_t *w,
                      int64_t *at, span *s)
{
    const int64_t first = window > 0 ? p->index.ends[window - 1] : 0;
    while (*w < p->index.ends[window] && *at < high) {
        const weft_pack_piece *piece = &p->index.pieces[*w];
        const int64_t begin = *at, end = begin + piece->length;
        *at = end, (*w)++;
        if (end <= low) continue;
        *s = (span){.piece = piece,
                    .at = begin,
                    .begin = begin > low ? begin : low,
                    .end = end < high ? end : high,
                    .segment = (int32_t)(*w - first)};
        return true;
    }
    return false;
}

static void fill(const span *s, int32_t *segments, int32_t *positions)
{
    for (int64_t i = s->begin; i < s->end; i++)
        segments[i] = s->segment, positions[i] = (int32_t)(i - s->at);
}

/* Places [low, high) of all fields. */
static weft_status make_rows(const pack *p, int64_t window, int64_t low, int64_t high,
                             bool has_tokens, int32_t *rows[FIELDS], int32_t *row, void *scratch,
                             weft_error *error)
{
    span s;
    int64_t w = window > 0 ? p->index.ends[window - 1] : 0, at = 0;
    for (int f = 0; f < FIELDS; f++)
        memset(rows[f] + low, f == TARGETS ? 0xFF : 0, (size_t)(high - low) * sizeof *row);
    while (next_span(p, window, low, high, &w, &at, &s)) {
        fill(&s, rows[SEGMENTS], rows[POSITIONS]);
        if (has_tokens)
            WEFT_TRY(read_span(p, &s, row, rows[TOKENS], rows[TARGETS], scratch, error));
    }
    return WEFT_OK;
}

static weft_status pack_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                             void *scratch, weft_error *error)
{
    const pack *p = self;
    int32_t *rows[FIELDS], *room = scratch;
    int64_t low = p->seq, high = 0;
    bool has_tokens = false;
    for (int f = 0; f < FIELDS; f++)
        rows[f] = room + f * p->seq;
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        low = w->begin < low ? w->begin : low, high = w->end > high ? w->end : high;
        has_tokens |= w->field <= TARGETS;
    }
    if (low < high)
        WEFT_TRY(make_rows(p, i, low, high, has_tokens, rows, room + FIELDS * p->seq,
                           (char *)scratch + p->scratch, error));
    for (const weft_want *w = wants; w < wants + n_wants; w++)
        if (w->begin < w->end)
            memcpy(w->to, rows[w->field] + w->begin, (size_t)(w->end - w->begin) * sizeof *room);
    return WEFT_OK;
}

/* In its document, of a number that is of one. */
static void pack_place(const void *self, int field, int64_t i, int64_t number, char *text,
                       size_t bytes)
{
    const pack *p = self;
    span s;
    int64_t w = i > 0 ? p->index.ends[i - 1] : 0, at = 0;
    if (next_span(p, i, number, number + 1, &w, &at, &s))
        weft_chain_place(p->operand, p->field, s.piece->document,
                         s.piece->part * p->seq + number - s.at + (field == TARGETS), text, bytes);
    else
        snprintf(text, bytes, "%s of window %lld", names[field], (long long)i);
}

static const weft_chain_kind pack_kind = {
    .name = "pack", .read = pack_read, .close = pack_close, .place = pack_place};

/* ---- making the index ------------------------------------------------------------------------------- */

typedef struct building {
    const pack *p;
    int64_t n_groups;
    weft_packing *groups; /* [n_groups] */
} building;

static weft_status count_documents(const pack *p, int64_t first, int64_t n, int64_t *counts,
                                   void *scratch, weft_error *error)
{
    for (int64_t d = 0; d < n; d++) {
        WEFT_TRY(weft_chain_count(p->operand, first + d, p->field, scratch, &counts[d], error));
        if (counts[d] / p->seq > UINT32_MAX)
            return weft_fail(error, WEFT_USAGE,
                             "weft_chain_pack: document %lld has %lld tokens, more than 2^32 "
                             "windows of seq %lld; take a larger seq",
                             (long long)(first + d), (long long)counts[d], (long long)p->seq);
    }
    return WEFT_OK;
}

static weft_status fit_group(void *argument, int64_t part, weft_error *error)
{
    const building *b = argument;
    const pack *p = b->p;
    const int64_t first = part * p->look_ahead, left = p->operand->found.records - first;
    const int64_t n = left < p->look_ahead ? left : p->look_ahead;
    const size_t bytes = (p->operand->found.scratch_bytes + 127) / 64 * 64;
    void *scratch = aligned_alloc(64, bytes);
    int64_t *counts = malloc((size_t)n * sizeof *counts);
    weft_status status = scratch && counts ? WEFT_OK : weft_fail_memory(error, bytes);
    if (status == WEFT_OK) status = count_documents(p, first, n, counts, scratch, error);
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

static weft_status build(pack *p, int n_threads, weft_error *error)
{
    building b = {.p = p};
    b.n_groups = (p->operand->found.records + p->look_ahead - 1) / p->look_ahead;
    b.groups = calloc((size_t)b.n_groups, sizeof *b.groups);
    if (b.groups == NULL) return weft_fail_memory(error, (size_t)b.n_groups * sizeof *b.groups);
    weft_status status = weft_parts_do(b.n_groups, n_threads, fit_group, &b, error);
    if (status == WEFT_OK) status = join(&b, &p->index, error);
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

static weft_hash key_of(const pack *p)
{
    char text[160];
    weft_hashing hashing;
    const weft_hash below = weft_chain_digest(p->operand);
    snprintf(text, sizeof text, "pack %d: field %d, seq %lld, look-ahead %lld", VERSION, p->field,
             (long long)p->seq, (long long)p->look_ahead);
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, text, strlen(text) + 1);
    weft_hash_add(&hashing, below.bytes, sizeof below.bytes);
    return weft_hash_end(&hashing);
}

static weft_hash hash_of(const weft_packing *index)
{
    weft_hashing hashing;
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, index->ends, (size_t)index->n_windows * sizeof *index->ends);
    weft_hash_add(&hashing, index->pieces, (size_t)index->n_pieces * sizeof *index->pieces);
    return weft_hash_end(&hashing);
}

/* Whether it is one that reading can rely on. */
static bool is_sound(const pack *p, const weft_packing *index)
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

static bool lay_over(pack *p, void *bytes, size_t n)
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
    p->index = index, p->kept = bytes;
    return true;
}

static weft_status load(pack *p, const char *folder, const weft_hash *key, bool *is_there,
                        weft_error *error)
{
    void *bytes;
    size_t n;
    WEFT_TRY(weft_kept_load(folder, "pack", key, &bytes, &n, error));
    *is_there = bytes != NULL && lay_over(p, bytes, n);
    if (!*is_there) free(bytes);
    return WEFT_OK;
}

static weft_status store(const pack *p, const char *folder, const weft_hash *key, weft_error *error)
{
    const sizes s = {p->index.n_windows, p->index.n_pieces};
    const size_t n = bytes_of(&p->index), n_ends = (size_t)s.n_windows * sizeof *p->index.ends;
    char *bytes = malloc(n);
    if (bytes == NULL) return weft_fail_memory(error, n);
    memcpy(bytes, &s, sizeof s);
    memcpy(bytes + sizeof s, p->index.ends, n_ends);
    memcpy(bytes + sizeof s + n_ends, p->index.pieces, n - sizeof s - n_ends);
    const weft_status status = weft_kept_store(folder, "pack", key, bytes, n, error);
    free(bytes);
    return status;
}

static weft_status find_index(pack *p, const weft_pack_options *o, weft_error *error)
{
    const weft_hash key = key_of(p);
    bool is_there = false;
    if (o->folder) WEFT_TRY(load(p, o->folder, &key, &is_there, error));
    if (!is_there) WEFT_TRY(build(p, o->n_threads > 0 ? o->n_threads : 1, error));
    if (p->index.n_windows == 0)
        return weft_fail(error, WEFT_USAGE,
                         "weft_chain_pack: %lld documents have no token in %.80s; take others, or "
                         "another field",
                         (long long)p->operand->found.records,
                         p->operand->found.fields[p->field].name);
    return o->folder && !is_there ? store(p, o->folder, &key, error) : WEFT_OK;
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

static bool has_tokens(const weft_field *f)
{
    return f->is_ragged && f->shape.n_dims == 1 && !weft_dtype_is_float(f->dtype);
}

static weft_status find_field(const weft_chain *chain, const char *name, int *field,
                              weft_error *error)
{
    static const char *const usual[] = {"text", "tokens"};
    int n = 0;
    *field = -1;
    for (int f = 0; f < chain->found.n_fields; f++)
        if (has_tokens(&chain->found.fields[f])) n++, *field = f;
    if (name == NULL && n == 1) return WEFT_OK;
    for (int i = 0; name == NULL && i < 2; i++) {
        const int f = weft_chain_field(chain, usual[i]);
        if (f >= 0 && has_tokens(&chain->found.fields[f])) return *field = f, WEFT_OK;
    }
    if (name != NULL) *field = weft_chain_field(chain, name);
    if (name != NULL && *field >= 0 && has_tokens(&chain->found.fields[*field])) return WEFT_OK;
    if (name != NULL && *field >= 0)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_chain_pack: %.80s is %s of one size in all records, and documents are "
            "texts or rows of whole numbers of any length; name such a field",
            name, weft_dtype_name(chain->found.fields[*field].dtype));
    return weft_fail(
        error, WEFT_USAGE,
        "weft_chain_pack: %d fields may be documents, and %s%.80s is none of them; name "
        "a text or a row of whole numbers of any length",
        n, name ? "" : "a field with the name ", name ? name : "text");
}

static weft_status check(const weft_chain *chain, const weft_pack_options *o, weft_error *error)
{
    WEFT_GIVEN_RANGE(o->seq, 1, INT64_C(1) << 30, error);
    WEFT_GIVEN_RANGE(o->look_ahead, 0, INT64_C(1) << 20, error);
    WEFT_GIVEN_RANGE(o->n_threads, 0, 64, error);
    WEFT_GIVEN_RANGE(o->end, INT32_MIN, INT32_MAX, error);
    if (chain->found.varies)
        return weft_fail(
            error, WEFT_USAGE,
            "weft_chain_pack: passes of the chain differ by its %s, and an index is of "
            "one; pack first and shuffle then, or freeze the chain",
            chain->kind->name);
    return WEFT_OK;
}

static weft_status make(pack *p, weft_chain **chain, weft_error *error)
{
    char setting[240], digits[WEFT_HASH_DIGITS + 1];
    const weft_hash hash = hash_of(&p->index);
    weft_chain_found found = {.records = p->index.n_windows, .n_fields = FIELDS};
    for (int f = 0; f < FIELDS; f++)
        found.fields[f] =
            (weft_field){.name = names[f], .dtype = WEFT_I32, .shape = {1, {{"seq", p->seq}}}};
    p->scratch = ((size_t)(FIELDS + 1) * (size_t)p->seq + 1) * sizeof(int32_t);
    p->scratch = (p->scratch + 63) / 64 * 64;
    found.scratch_bytes = p->scratch + p->operand->found.scratch_bytes;
    weft_hash_print(&hash, digits);
    snprintf(setting, sizeof setting, "seq %lld of %.80s, end %lld, index %.16s", (long long)p->seq,
             p->operand->found.fields[p->field].name, (long long)p->end, digits);
    return weft_stage_make(&pack_kind, p, &found, setting, chain, 1, chain, error);
}

weft_status weft_chain_pack(weft_chain **chain, const weft_pack_options *options, weft_error *error)
{
    int field;
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    WEFT_TRY(find_field(*chain, options->field, &field, error));
    pack *p = calloc(1, sizeof *p);
    if (p == NULL) return weft_fail_memory(error, sizeof *p);
    p->operand = *chain, p->field = field, p->seq = options->seq;
    p->end = options->end >= 0 ? options->end : -1;
    p->look_ahead = options->look_ahead > 0 ? options->look_ahead : LOOK_AHEAD;
    const weft_status status = find_index(p, options, error);
    if (status == WEFT_OK) return make(p, chain, error);
    pack_close(p);
    return status;
}
