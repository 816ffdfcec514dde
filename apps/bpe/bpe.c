/* bpe: what words there are, and a text in them. */
#include "bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

enum {
    KNOWN_BYTES = 64,
    MOST_KNOWN = 1 << 20
}; /* pieces that are remembered: how long, how many */

/* ---- words -------------------------------------------------------------------------------- */

weft_status bpe_create(bpe **b, weft_error *error)
{
    *b = calloc(1, sizeof **b);
    if (!*b) return weft_fail_memory(error, sizeof **b);
    const weft_status status = splitter_open(&(*b)->split, error);
    if (status != WEFT_OK) bpe_close(b);
    return status;
}

void bpe_close(bpe **out)
{
    bpe *b = *out;
    if (!b) return;
    table_free(&b->words);
    table_free(&b->pairs);
    table_free(&b->known);
    splitter_close(&b->split);
    free(b->joined);
    free(b->where);
    free(b->kept.ids);
    free(b->symbols);
    free(b->heap.entries);
    free(b->specials);
    free(b);
    *out = NULL;
}

/* Bytes that are seen are themselves; the others come after the 256 of Latin-1, in their order. */
void bpe_letters(uint32_t letters[256])
{
    uint32_t next = 256;
    for (uint32_t c = 0; c < 256; c++) {
        const bool is_seen = (c > ' ' && c < 127) || (c > 160 && c != 173);
        letters[c] = is_seen ? c : next++;
    }
}

int bpe_n_words(const bpe *b)
{
    return (int)b->words.n;
}

const unsigned char *bpe_word(const bpe *b, int id, size_t *bytes)
{
    *bytes = b->words.strings[id].n;
    return b->words.bytes + b->words.strings[id].at;
}

/* FNV-1a of the hashes that the tables have anyway, in the order of ids and of ranks. */
static uint64_t hash_strings(const string_table *t, uint64_t hash)
{
    for (size_t i = 0; i < t->n; i++)
        hash = (hash ^ t->strings[i].hash) * UINT64_C(0x100000001b3);
    return hash;
}

void bpe_told(const bpe *b, char text[BPE_TOLD])
{
    const uint64_t hash =
        hash_strings(&b->pairs, hash_strings(&b->words, UINT64_C(0xcbf29ce484222325)));
    snprintf(text, BPE_TOLD, "%d words (hash %016llx)", bpe_n_words(b), (unsigned long long)hash);
}

/* left and right, one behind the other; table_add copies, so they may not be in the table's own bytes. */
static int64_t add_joined(bpe *b, int32_t left, int32_t right)
{
    size_t n, m;
    const unsigned char *x = bpe_word(b, left, &n), *y = bpe_word(b, right, &m);
    unsigned char *both = malloc(n + m);
    if (!both) return -1;
    memcpy(both, x, n);
    memcpy(both + n, y, m);
    const int64_t id = table_add(&b->words, both, n + m);
    free(both);
    return id;
}

int32_t bpe_join(bpe *b, int32_t left, int32_t right)
{
    const int32_t pair[2] = {left, right};
    int32_t *joined = grow(b->joined, b->pairs.n, &b->room_joined, sizeof *joined);
    if (!joined) return -1;
    b->joined = joined;
    const int64_t id = add_joined(b, left, right), rank = table_add(&b->pairs, pair, sizeof pair);
    if (id < 0 || rank < 0) return -1;
    b->joined[rank] = (int32_t)id;
    return (int32_t)id;
}

/* ---- a text in words ------------------------------------------------------------------------ */

static bool append(bpe_tokens *tokens, int32_t id)
{
    int32_t *ids = grow(tokens->ids, tokens->n, &tokens->room, sizeof *ids);
    if (!ids) return false;
    tokens->ids = ids;
    ids[tokens->n++] = id;
    return true;
}

weft_status bpe_append(bpe_tokens *tokens, int32_t id, weft_error *error)
{
    return append(tokens, id) ? WEFT_OK : weft_fail_memory(error, sizeof id);
}

static bool append_all(bpe_tokens *tokens, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!append(tokens, ids[i])) return false;
    return true;
}

/* The pair that a symbol and the next one are, among those to be joined. */
static bool offer(bpe *b, uint32_t at, uint32_t n)
{
    const bpe_symbol *s = b->symbols;
    if (at >= n || s[at].next >= n) return true;
    const int32_t pair[2] = {s[at].id, s[s[at].next].id};
    const int64_t rank = table_find(&b->pairs, pair, sizeof pair);
    return rank < 0 || heap_push(&b->heap, (heap_entry){(uint64_t)rank, at});
}

/* Whether it still is the pair that was offered. */
static bool still_is(const bpe *b, heap_entry offered, uint32_t n)
{
    const bpe_symbol *s = &b->symbols[offered.second];
    if (s->id < 0 || s->next >= n) return false;
    const int32_t pair[2] = {s->id, b->symbols[s->next].id};
    return memcmp(b->pairs.bytes + b->pairs.strings[offered.first].at, pair, sizeof pair) == 0;
}

static bool begin(bpe *b, const unsigned char *piece, uint32_t n)
{
    while (b->room_symbols < n) {
        bpe_symbol *symbols = grow(b->symbols, b->room_symbols, &b->room_symbols, sizeof *symbols);
        if (!symbols) return false;
        b->symbols = symbols;
    }
    b->heap.n = 0;
    for (uint32_t i = 0; i < n; i++)
        b->symbols[i] = (bpe_symbol){b->of_byte[piece[i]], i > 0 ? i - 1 : n, i + 1};
    for (uint32_t i = 0; i < n; i++)
        if (!offer(b, i, n)) return false;
    return true;
}

/* Join what is joined first, again and again. A pair that is offered may be gone when it comes up. */
static bool join_all(bpe *b, const unsigned char *piece, uint32_t n)
{
    heap_entry first;
    if (!begin(b, piece, n)) return false;
    while (heap_pop(&b->heap, &first)) {
        if (!still_is(b, first, n)) continue;
        const uint32_t at = (uint32_t)first.second;
        bpe_symbol *s = b->symbols, *gone = &s[s[at].next];
        s[at].id = b->joined[first.first];
        s[at].next = gone->next;
        gone->id = -1;
        if (s[at].next < n) s[s[at].next].before = at;
        if (!offer(b, s[at].before, n) || !offer(b, at, n)) return false;
    }
    return true;
}

static bool append_piece(bpe *b, const unsigned char *piece, uint32_t n, bpe_tokens *tokens)
{
    if (!join_all(b, piece, n)) return false;
    for (uint32_t i = 0; i < n; i = b->symbols[i].next)
        if (!append(tokens, b->symbols[i].id)) return false;
    return true;
}

/* The tokens of a piece, worked out once. */
static bool remember(bpe *b, const unsigned char *piece, uint32_t n, int64_t *index)
{
    const size_t begin_at = b->kept.n;
    bpe_known *where = grow(b->where, b->known.n, &b->room_where, sizeof *where);
    if (!where) return false;
    b->where = where;
    if (!append_piece(b, piece, n, &b->kept)) return false;
    *index = table_add(&b->known, piece, n);
    if (*index < 0) return false;
    where[*index] = (bpe_known){begin_at, (uint32_t)(b->kept.n - begin_at)};
    return true;
}

typedef struct encoding {
    bpe *b;
    bpe_tokens *tokens;
} encoding;

static weft_status encode_piece(void *with, const unsigned char *piece, size_t bytes,
                                weft_error *error)
{
    const encoding *e = with;
    bpe *b = e->b;
    bool is_good;
    int64_t index = bytes <= KNOWN_BYTES ? table_find(&b->known, piece, bytes) : -1;
    if (index < 0 && (bytes > KNOWN_BYTES || b->known.n >= MOST_KNOWN))
        is_good = append_piece(b, piece, (uint32_t)bytes, e->tokens);
    else
        is_good = (index >= 0 || remember(b, piece, (uint32_t)bytes, &index)) &&
                  append_all(e->tokens, b->kept.ids + b->where[index].at, b->where[index].n);
    return is_good ? WEFT_OK : weft_fail_memory(error, bytes);
}

weft_status bpe_encode(bpe *b, const unsigned char *text, size_t bytes, bpe_tokens *tokens,
                       weft_error *error)
{
    encoding e = {b, tokens};
    return split(b->split, text, bytes, encode_piece, &e, error);
}
