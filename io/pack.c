/* pack: a stage that makes windows of documents. A document that has room in one window is not cut. Attention learns where one ends and the
 * next begins by segments and positions.
 *
 * Which piece is where is an index (pack_index.h). A window is read by its pieces; each costs one read of its document.
 */
#include "pack_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS, TARGETS, SEGMENTS, POSITIONS, FIELDS, LOOK_AHEAD = 4096 };
static const char *const names[FIELDS] = {"tokens", "targets", "segments", "positions"};

typedef struct pack {
    const weft_chain *operand;
    int field;
    int64_t seq, end;
    weft_pack_index index;
    size_t scratch; /* where the operand's begins */
} pack;

static void pack_close(void *self)
{
    pack *p = self;
    weft_pack_index_free(&p->index);
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
    const int64_t first = window > 0 ? p->index.packing.ends[window - 1] : 0;
    while (*w < p->index.packing.ends[window] && *at < high) {
        const weft_pack_piece *piece = &p->index.packing.pieces[*w];
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
    int64_t w = window > 0 ? p->index.packing.ends[window - 1] : 0, at = 0;
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
    int64_t w = i > 0 ? p->index.packing.ends[i - 1] : 0, at = 0;
    if (next_span(p, i, number, number + 1, &w, &at, &s))
        weft_chain_place(p->operand, p->field, s.piece->document,
                         s.piece->part * p->seq + number - s.at + (field == TARGETS), text, bytes);
    else
        snprintf(text, bytes, "%s of window %lld", names[field], (long long)i);
}

static const weft_chain_kind pack_kind = {
    .name = "pack", .read = pack_read, .close = pack_close, .place = pack_place};

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
    return weft_chain_check_fixed(chain, "weft_chain_pack", "an index is of one",
                                  "pack first and shuffle then", error);
}

static weft_status make(pack *p, weft_chain **chain, weft_error *error)
{
    char setting[240], digits[WEFT_HASH_DIGITS + 1];
    const weft_hash hash = weft_pack_index_hash(&p->index);
    weft_chain_found found = {.records = p->index.packing.n_windows, .n_fields = FIELDS};
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
    const weft_pack_order order = {.operand = *chain,
                                   .field = field,
                                   .seq = options->seq,
                                   .look_ahead =
                                       options->look_ahead > 0 ? options->look_ahead : LOOK_AHEAD,
                                   .stage = "pack",
                                   .folder = options->folder,
                                   .n_threads = options->n_threads};
    const weft_status status = weft_pack_index_find(&order, &p->index, error);
    if (status == WEFT_OK) return make(p, chain, error);
    pack_close(p);
    return status;
}
