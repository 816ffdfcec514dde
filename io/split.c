/* split: a stage that cuts rows of tokens into documents, behind each token that ends one. Where they end is an index, made once: threads
 * look through pieces of the rows, and none of it depends on how many there are.
 */
#include "chain.h"
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 /* tokens that a thread looks through at once */ };

typedef struct document {
    int64_t record, begin, length;
} document;

typedef struct split {
    const weft_chain *operand;
    int field;
    int32_t token;
    int64_t n;
    document *documents; /* [n] */
} split;

static void split_close(void *self)
{
    split *s = self;
    free(s->documents);
    free(s);
}

static weft_status split_read(const void *self, int64_t i, const weft_want *wants, int n_wants,
                              void *scratch, weft_error *error)
{
    const split *s = self;
    const document *d = &s->documents[i];
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        weft_want there = *w;
        there.field = s->field, there.begin += d->begin, there.end += d->begin;
        WEFT_TRY(weft_chain_ask(s->operand, d->record, &there, 1, scratch, error));
    }
    return WEFT_OK;
}

static weft_status split_count(const void *self, int64_t i, int field, void *scratch, int64_t *n,
                               weft_error *error)
{
    (void)field, (void)scratch, (void)error;
    *n = ((const split *)self)->documents[i].length;
    return WEFT_OK;
}

static void split_place(const void *self, int field, int64_t i, int64_t number, char *text,
                        size_t bytes)
{
    const split *s = self;
    (void)field;
    weft_chain_place(s->operand, s->field, s->documents[i].record, s->documents[i].begin + number,
                     text, bytes);
}

static const weft_chain_kind split_kind = {.name = "split",
                                           .read = split_read,
                                           .count = split_count,
                                           .place = split_place,
                                           .close = split_close};

/* ---- looking ---------------------------------------------------------------------------------------- */

/* Tokens [begin, end) of a record, and the ends that are in there. */
typedef struct piece {
    int64_t record, begin, end, n_ends;
    int64_t *ends;
    bool is_last; /* of its record */
} piece;

typedef struct looking {
    const split *s;
    piece *pieces;
    int64_t n, room;
} looking;

static weft_status add_piece(looking *l, piece p, weft_error *error)
{
    if (l->n == l->room) {
        const int64_t room = 2 * l->room + 64;
        piece *more = realloc(l->pieces, (size_t)room * sizeof *more);
        if (more == NULL) return weft_fail_memory(error, (size_t)room * sizeof *more);
        l->pieces = more, l->room = room;
    }
    l->pieces[l->n++] = p;
    return WEFT_OK;
}

static weft_status cut(looking *l, void *scratch, weft_error *error)
{
    const weft_chain *from = l->s->operand;
    for (int64_t r = 0; r < from->found.records; r++) {
        int64_t n = 0;
        WEFT_TRY(weft_chain_count(from, r, l->s->field, scratch, &n, error));
        for (int64_t at = 0, end; at < n; at = end) {
            end = n - at < PIECE ? n : at + PIECE;
            WEFT_TRY(add_piece(
                l, (piece){.record = r, .begin = at, .end = end, .is_last = end == n}, error));
        }
    }
    return WEFT_OK;
}

static weft_status look(void *argument, int64_t part, weft_error *error)
{
    const looking *l = argument;
    const split *s = l->s;
    piece *p = &l->pieces[part];
    const int64_t n = p->end - p->begin;
    int64_t n_ends = 0;
    int32_t *tokens = malloc((size_t)n * sizeof *tokens);
    void *scratch = aligned_alloc(64, (s->operand->found.scratch_bytes + 127) / 64 * 64);
    const weft_want want = {s->field, WEFT_I32, p->begin, p->end, tokens};
    weft_status status =
        tokens && scratch ? WEFT_OK : weft_fail_memory(error, (size_t)n * sizeof *tokens);
    if (status == WEFT_OK) status = weft_chain_ask(s->operand, p->record, &want, 1, scratch, error);
    for (int64_t i = 0; i < n && status == WEFT_OK; i++)
        n_ends += tokens[i] == s->token;
    if (status == WEFT_OK) p->ends = malloc(((size_t)n_ends + 1) * sizeof *p->ends);
    if (status == WEFT_OK && p->ends == NULL) status = weft_fail_memory(error, (size_t)n_ends * 8);
    for (int64_t i = 0; i < n && status == WEFT_OK; i++)
        if (tokens[i] == s->token) p->ends[p->n_ends++] = p->begin + i + 1;
    free(tokens), free(scratch);
    return status;
}

/* A record's last document may be without an end. */
static weft_status join(split *s, const looking *l, weft_error *error)
{
    int64_t most = 0, begin = 0;
    for (int64_t k = 0; k < l->n; k++)
        most += l->pieces[k].n_ends + l->pieces[k].is_last;
    s->documents = malloc(((size_t)most + 1) * sizeof *s->documents);
    if (s->documents == NULL) return weft_fail_memory(error, (size_t)most * sizeof *s->documents);
    for (int64_t k = 0; k < l->n; k++) {
        const piece *p = &l->pieces[k];
        for (int64_t e = 0; e < p->n_ends; begin = p->ends[e++])
            s->documents[s->n++] = (document){p->record, begin, p->ends[e] - begin};
        if (p->is_last && begin < p->end)
            s->documents[s->n++] = (document){p->record, begin, p->end - begin};
        if (p->is_last) begin = 0;
    }
    return WEFT_OK;
}

static weft_status look_through(split *s, int n_threads, weft_error *error)
{
    looking l = {.s = s};
    void *scratch = aligned_alloc(64, (s->operand->found.scratch_bytes + 127) / 64 * 64);
    weft_status status = scratch ? cut(&l, scratch, error) : weft_fail_memory(error, 64);
    if (status == WEFT_OK) status = weft_parts_do(l.n, n_threads, look, &l, error);
    if (status == WEFT_OK) status = join(s, &l, error);
    for (int64_t k = 0; k < l.n; k++)
        free(l.pieces[k].ends);
    free(l.pieces), free(scratch);
    return status;
}

/* ---- keeping it ------------------------------------------------------------------------------------- */

static bool is_sound(const split *s, const document *d, size_t bytes)
{
    const size_t n = bytes / sizeof *d;
    if (bytes % sizeof *d != 0) return false;
    for (size_t i = 0; i < n; i++)
        if (d[i].record < 0 || d[i].record >= s->operand->found.records || d[i].begin < 0 ||
            d[i].length < 1)
            return false;
    return true;
}

static weft_status find_index(split *s, const weft_split_options *o, weft_error *error)
{
    char text[80];
    weft_hashing hashing;
    void *bytes = NULL;
    size_t n = 0;
    const weft_hash below = weft_chain_digest(s->operand);
    snprintf(text, sizeof text, "split 1: field %d, token %d", s->field, (int)s->token);
    weft_hash_begin(&hashing);
    weft_hash_add(&hashing, text, strlen(text) + 1);
    weft_hash_add(&hashing, below.bytes, sizeof below.bytes);
    const weft_hash key = weft_hash_end(&hashing);
    if (o->folder) WEFT_TRY(weft_kept_load(o->folder, "split", &key, &bytes, &n, error));
    const bool is_there = bytes != NULL && is_sound(s, bytes, n);
    if (is_there)
        s->documents = bytes, s->n = (int64_t)(n / sizeof *s->documents);
    else
        free(bytes);
    if (!is_there) WEFT_TRY(look_through(s, o->n_threads > 0 ? o->n_threads : 1, error));
    if (s->n == 0)
        return weft_fail(
            error, WEFT_USAGE, "weft_chain_split: %lld records have no token in %.80s; take others",
            (long long)s->operand->found.records, s->operand->found.fields[s->field].name);
    if (!o->folder || is_there) return WEFT_OK;
    return weft_kept_store(o->folder, "split", &key, s->documents,
                           (size_t)s->n * sizeof *s->documents, error);
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

static weft_status check(const weft_chain *chain, const weft_split_options *o, weft_error *error)
{
    WEFT_GIVEN_RANGE(o->token, 0, INT32_MAX, error);
    WEFT_GIVEN_RANGE(o->n_threads, 0, 64, error);
    WEFT_TRY(weft_chain_check_fixed(chain, "weft_chain_split", "an index is of one",
                                    "split first and shuffle then", error));
    const weft_field *f = &chain->found.fields[0];
    if (chain->found.n_fields == 1 && f->is_ragged && f->shape.n_dims == 1 &&
        !weft_dtype_is_float(f->dtype))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_chain_split: records have %d fields, the first %.80s, and it takes one: "
                     "a text, or a row of whole numbers of any length; open that alone",
                     chain->found.n_fields, f->name);
}

weft_status weft_chain_split(weft_chain **chain, const weft_split_options *options,
                             weft_error *error)
{
    char setting[120], digits[WEFT_HASH_DIGITS + 1];
    WEFT_GIVEN(chain, error);
    WEFT_GIVEN(*chain, error);
    WEFT_GIVEN(options, error);
    WEFT_TRY(check(*chain, options, error));
    split *s = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    s->operand = *chain, s->token = (int32_t)options->token;
    const weft_status status = find_index(s, options, error);
    if (status != WEFT_OK) {
        split_close(s);
        return status;
    }
    weft_chain_found found = (*chain)->found;
    const weft_hash hash = weft_hash_of(s->documents, (size_t)s->n * sizeof *s->documents);
    found.records = s->n;
    weft_hash_print(&hash, digits);
    snprintf(setting, sizeof setting, "behind %d, index %.16s", (int)s->token, digits);
    return weft_stage_make(&split_kind, s, &found, setting, chain, 1, chain, error);
}
