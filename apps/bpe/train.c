/* train: the words of a vocabulary, learned from a text.
 *
 * The text is a list of different pieces, each with how often it occurs. A pair of words knows how often it stands in
 * them, and in which it has been seen. The most frequent pair is joined in those; changed counts are made again.
 * Counts in the heap may be old: a pair is in it with its newest count too, and an old one is passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

enum {
    LONGEST = 256 /* bytes of a piece: of a longer one, what is behind is a piece of its own */
};
static const char last_word[] = "<|endoftext|>";

typedef struct piece {
    int64_t count;
    uint32_t at, n; /* its symbols */
} piece;

typedef struct pair {
    int64_t count;
    uint32_t *in; /* pieces where it has been seen, some of them twice */
    size_t n_in, room_in;
    bool is_changed; /* its count, by this joining */
} pair;

typedef struct lesson {
    bpe *b;
    string_table texts; /* different pieces */
    piece *pieces;      /* [texts.n] */
    size_t room_pieces;
    int32_t *symbols;   /* of all pieces */
    string_table names; /* pairs, as two ids */
    pair *pairs;        /* [names.n] */
    size_t room_pairs;
    uint32_t *changed; /* pairs to be put into the heap */
    size_t n_changed, room_changed;
    heap heap; /* ~count, left << 32 | right */
} lesson;

static void lesson_end(lesson *l)
{
    for (size_t i = 0; i < l->names.n; i++)
        free(l->pairs[i].in);
    table_free(&l->texts);
    table_free(&l->names);
    free(l->pieces);
    free(l->symbols);
    free(l->pairs);
    free(l->changed);
    free(l->heap.entries);
}

/* ---- the text ------------------------------------------------------------------------------- */

static bool count_piece(lesson *l, const unsigned char *text, size_t bytes)
{
    piece *pieces = grow(l->pieces, l->texts.n, &l->room_pieces, sizeof *pieces);
    if (!pieces) return false;
    l->pieces = pieces;
    const size_t known = l->texts.n;
    const int64_t i = table_add(&l->texts, text, bytes);
    if (i < 0) return false;
    if (l->texts.n > known) pieces[i] = (piece){.n = (uint32_t)bytes};
    pieces[i].count++;
    return true;
}

static weft_status take_piece(void *with, const unsigned char *text, size_t bytes,
                              weft_error *error)
{
    for (size_t at = 0; at < bytes; at += LONGEST)
        if (!count_piece(with, text + at, bytes - at < LONGEST ? bytes - at : LONGEST))
            return weft_fail_memory(error, bytes);
    return WEFT_OK;
}

/* Every byte a symbol. */
static bool spell(lesson *l)
{
    const string_table *t = &l->texts;
    l->symbols = malloc((t->n_bytes + 1) * sizeof *l->symbols);
    for (size_t i = 0; l->symbols && i < t->n; i++) {
        l->pieces[i].at = (uint32_t)t->strings[i].at;
        for (uint32_t k = 0; k < t->strings[i].n; k++)
            l->symbols[t->strings[i].at + k] = l->b->of_byte[t->bytes[t->strings[i].at + k]];
    }
    return l->symbols != NULL;
}

/* ---- pairs ------------------------------------------------------------------------------------ */

/* Its number; -1: no memory. */
static int64_t pair_of(lesson *l, int32_t left, int32_t right)
{
    const int32_t name[2] = {left, right};
    pair *pairs = grow(l->pairs, l->names.n, &l->room_pairs, sizeof *pairs);
    if (!pairs) return -1;
    l->pairs = pairs;
    const size_t known = l->names.n;
    const int64_t i = table_add(&l->names, name, sizeof name);
    if (i >= 0 && l->names.n > known) pairs[i] = (pair){0};
    return i;
}

static bool note_change(lesson *l, uint32_t index)
{
    uint32_t *changed = grow(l->changed, l->n_changed, &l->room_changed, sizeof *changed);
    if (!changed) return false;
    l->changed = changed;
    if (!l->pairs[index].is_changed) changed[l->n_changed++] = index;
    l->pairs[index].is_changed = true;
    return true;
}

static bool see_in(pair *p, uint32_t which)
{
    if (p->n_in > 0 && p->in[p->n_in - 1] == which) return true;
    uint32_t *in = grow(p->in, p->n_in, &p->room_in, sizeof *in);
    if (!in) return false;
    p->in = in;
    in[p->n_in++] = which;
    return true;
}

/* Count the pairs of a piece (sign 1), or take them back (-1). Those with a word that is new to it have not been seen there;
 * -1: all have not. */
static bool count_pairs(lesson *l, uint32_t which, int sign, int32_t new_word)
{
    const piece *p = &l->pieces[which];
    const int32_t *s = l->symbols + p->at;
    for (uint32_t k = 0; k + 1 < p->n; k++) {
        const int64_t i = pair_of(l, s[k], s[k + 1]);
        if (i < 0 || !note_change(l, (uint32_t)i)) return false;
        l->pairs[i].count += sign * p->count;
        const bool is_new = new_word < 0 || s[k] == new_word || s[k + 1] == new_word;
        if (sign > 0 && is_new && !see_in(&l->pairs[i], which)) return false;
    }
    return true;
}

/* What has changed goes into the heap with its new count. */
static bool offer_changed(lesson *l)
{
    for (size_t c = 0; c < l->n_changed; c++) {
        int32_t name[2];
        pair *p = &l->pairs[l->changed[c]];
        p->is_changed = false;
        memcpy(name, l->names.bytes + l->names.strings[l->changed[c]].at, sizeof name);
        const uint64_t ids = (uint64_t)name[0] << 32 | (uint32_t)name[1];
        if (p->count > 0 && !heap_push(&l->heap, (heap_entry){~(uint64_t)p->count, ids}))
            return false;
    }
    l->n_changed = 0;
    return true;
}

/* ---- joining ---------------------------------------------------------------------------------- */

static bool has_pair(const lesson *l, const piece *p, int32_t left, int32_t right)
{
    const int32_t *s = l->symbols + p->at;
    for (uint32_t k = 0; k + 1 < p->n; k++)
        if (s[k] == left && s[k + 1] == right) return true;
    return false;
}

static bool join_in(lesson *l, uint32_t which, int32_t left, int32_t right, int32_t joined)
{
    piece *p = &l->pieces[which];
    int32_t *s = l->symbols + p->at;
    uint32_t n = 0;
    if (!has_pair(l, p, left, right)) return true;
    if (!count_pairs(l, which, -1, -1)) return false;
    for (uint32_t k = 0; k < p->n; k++) {
        const bool is_pair = k + 1 < p->n && s[k] == left && s[k + 1] == right;
        s[n++] = is_pair ? joined : s[k];
        k += is_pair;
    }
    p->n = n;
    return count_pairs(l, which, 1, joined);
}

/* Where it has been seen it may be no more: then nothing changes there. The list is its own from here on: pairs move as
 * new ones come. */
static bool join_everywhere(lesson *l, uint32_t index, int32_t left, int32_t right)
{
    uint32_t *in = l->pairs[index].in;
    const size_t n_in = l->pairs[index].n_in;
    const int32_t joined = bpe_join(l->b, left, right);
    bool is_good = joined >= 0;
    l->pairs[index].in = NULL;
    l->pairs[index].n_in = l->pairs[index].room_in = 0;
    for (size_t i = 0; is_good && i < n_in; i++)
        is_good = join_in(l, in[i], left, right, joined);
    free(in);
    return is_good && offer_changed(l);
}

/* The pair that is counted most; false: none occurs twice. */
static bool most_counted(lesson *l, int32_t name[2], uint32_t *index)
{
    heap_entry most;
    while (heap_pop(&l->heap, &most)) {
        const int64_t count = (int64_t)~most.first;
        name[0] = (int32_t)(most.second >> 32);
        name[1] = (int32_t)(most.second & UINT32_MAX);
        *index = (uint32_t)table_find(&l->names, name, 2 * sizeof *name);
        if (l->pairs[*index].count == count) return count >= 2;
    }
    return false;
}

static bool learn(lesson *l, int n_words)
{
    int32_t name[2];
    uint32_t index;
    for (uint32_t i = 0; i < l->texts.n; i++)
        if (!count_pairs(l, i, 1, -1)) return false;
    if (!offer_changed(l)) return false;
    while (bpe_n_words(l->b) < n_words - 1 && most_counted(l, name, &index))
        if (!join_everywhere(l, index, name[0], name[1])) return false;
    return true;
}

/* The 256 bytes, in the order in which GPT-2 has them: those that are seen first. */
static bool add_bytes(bpe *b)
{
    uint32_t letters[256];
    bpe_letters(letters);
    for (int turn = 0; turn < 2; turn++)
        for (int c = 0; c < 256; c++) {
            const unsigned char byte = (unsigned char)c;
            if ((letters[c] >= 256) != (turn == 1)) continue;
            const int64_t id = table_add(&b->words, &byte, 1);
            if (id < 0) return false;
            b->of_byte[c] = (int32_t)id;
        }
    return true;
}

static bool add_last(bpe *b)
{
    const int64_t id = table_add(&b->words, last_word, sizeof last_word - 1);
    return id >= 0 && bpe_mark_special(b, (int32_t)id);
}

weft_status bpe_train(const unsigned char *text, size_t bytes, int n_words, bpe **out,
                      weft_error *error)
{
    lesson l = {0};
    *out = NULL;
    WEFT_TRY(bpe_create(&l.b, error));
    weft_status status = add_bytes(l.b) ? split(l.b->split, text, bytes, take_piece, &l, error)
                                        : weft_fail_memory(error, bytes);
    if (status == WEFT_OK && !(spell(&l) && learn(&l, n_words) && add_last(l.b)))
        status = weft_fail_memory(error, bytes);
    lesson_end(&l);
    if (status != WEFT_OK) bpe_close(&l.b);
    *out = l.b;
    return status;
}
