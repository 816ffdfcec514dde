/* pack_fit: best fit, the longest first. Open windows lie in lists by the room that is left in them; two levels of bits say which lists
 * are not empty, so that the next larger room is found in a few words.
 * source  Johnson, "Near-optimal bin packing algorithms", 1973
 */
#include "pack_fit.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct rest {
    weft_pack_piece piece;
    int64_t window;
} rest;

typedef struct rooms {
    int64_t seq;
    int64_t *heads;         /* [seq + 1] the last window opened of that room; -1: none */
    int64_t *next;          /* [most windows] of the same room */
    uint64_t *bits, *words; /* which heads there are; which words of bits are not 0 */
} rooms;

void weft_packing_free(weft_packing *packing)
{
    free(packing->ends);
    free(packing->pieces);
    *packing = (weft_packing){0};
}

/* ---- rooms ------------------------------------------------------------------------------------------ */

static void rooms_close(rooms *r)
{
    free(r->heads), free(r->next), free(r->bits), free(r->words);
}

static weft_status rooms_open(rooms *r, int64_t seq, int64_t most, weft_error *error)
{
    const size_t n = (size_t)seq + 1;
    *r = (rooms){.seq = seq,
                 .heads = malloc(n * sizeof *r->heads),
                 .next = malloc(((size_t)most + 1) * sizeof *r->next),
                 .bits = calloc(n / 64 + 1, sizeof *r->bits),
                 .words = calloc(n / 4096 + 1, sizeof *r->words)};
    if (r->heads == NULL || r->next == NULL || r->bits == NULL || r->words == NULL) {
        rooms_close(r);
        return weft_fail_memory(error, n * sizeof *r->heads);
    }
    for (size_t i = 0; i < n; i++)
        r->heads[i] = -1;
    return WEFT_OK;
}

static void put(rooms *r, int64_t window, int64_t room)
{
    r->next[window] = r->heads[room];
    r->heads[room] = window;
    r->bits[room / 64] |= UINT64_C(1) << room % 64;
    r->words[room / 4096] |= UINT64_C(1) << room / 64 % 64;
}

static int64_t take(rooms *r, int64_t room)
{
    const int64_t window = r->heads[room];
    r->heads[room] = r->next[window];
    if (r->heads[room] >= 0) return window;
    r->bits[room / 64] &= ~(UINT64_C(1) << room % 64);
    if (r->bits[room / 64] == 0) r->words[room / 4096] &= ~(UINT64_C(1) << room / 64 % 64);
    return window;
}

/* The first bit at or above `at` of n bits; -1: none. */
static int64_t bit_from(const uint64_t *bits, int64_t at, int64_t n)
{
    for (uint64_t mask = ~UINT64_C(0) << at % 64; at < n;
         at = (at / 64 + 1) * 64, mask = ~UINT64_C(0)) {
        const uint64_t word = bits[at / 64] & mask;
        if (word != 0) return at / 64 * 64 + __builtin_ctzll(word);
    }
    return -1;
}

/* The least room of an open window that has at least so much; -1: there is none. */
static int64_t least_room(const rooms *r, int64_t room)
{
    const int64_t end = (room / 64 + 1) * 64, n_words = r->seq / 64 + 1;
    const int64_t here = bit_from(r->bits, room, end);
    if (here >= 0) return here;
    const int64_t word = bit_from(r->words, room / 64 + 1, n_words);
    return word < 0 ? -1 : bit_from(r->bits, word * 64, word * 64 + 64);
}

/* ---- rests ------------------------------------------------------------------------------------------ */

static int longest_first(const void *a, const void *b)
{
    const weft_pack_piece *x = &((const rest *)a)->piece, *y = &((const rest *)b)->piece;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return x->document < y->document ? -1 : x->document > y->document;
}

static int by_window(const void *a, const void *b)
{
    const rest *x = a, *y = b;
    if (x->window != y->window) return x->window < y->window ? -1 : 1;
    return x->piece.document < y->piece.document ? -1 : x->piece.document > y->piece.document;
}

static weft_status fit_rests(rest *rests, int64_t n, int64_t seq, int64_t *n_windows,
                             weft_error *error)
{
    rooms r;
    *n_windows = 0;
    WEFT_TRY(rooms_open(&r, seq, n, error));
    qsort(rests, (size_t)n, sizeof *rests, longest_first);
    for (int64_t i = 0; i < n; i++) {
        const int64_t length = rests[i].piece.length, found = least_room(&r, length);
        const int64_t room = found < 0 ? seq : found;
        rests[i].window = found < 0 ? (*n_windows)++ : take(&r, found);
        if (room > length) put(&r, rests[i].window, room - length);
    }
    qsort(rests, (size_t)n, sizeof *rests, by_window);
    rooms_close(&r);
    return WEFT_OK;
}

/* ---- windows ---------------------------------------------------------------------------------------- */

/* A window before it has its number: where its pieces stand among the rests, or the whole window that it is. */
typedef struct window {
    weft_pack_piece first;
    int64_t begin, n;
} window;

static int by_document(const void *a, const void *b)
{
    const weft_pack_piece *x = &((const window *)a)->first, *y = &((const window *)b)->first;
    if (x->document != y->document) return x->document < y->document ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static void lay(const window *windows, const rest *rests, weft_packing *packing)
{
    int64_t at = 0;
    for (int64_t w = 0; w < packing->n_windows; w++) {
        const bool is_whole = windows[w].n == 0;
        if (is_whole) packing->pieces[at++] = windows[w].first;
        for (int64_t i = 0; i < windows[w].n; i++)
            packing->pieces[at++] = rests[windows[w].begin + i].piece;
        packing->ends[w] = at;
    }
}

static void cut(int64_t first, const int64_t *counts, int64_t n, int64_t seq, rest *rests,
                window *windows)
{
    for (int64_t d = 0, w = 0, r = 0; d < n; d++) {
        const int64_t whole = counts[d] / seq, left = counts[d] % seq;
        for (int64_t p = 0; p < whole; p++)
            windows[w++].first = (weft_pack_piece){first + d, (uint32_t)p, (uint32_t)seq};
        if (left > 0)
            rests[r++].piece = (weft_pack_piece){first + d, (uint32_t)whole, (uint32_t)left};
    }
}

static void open_rests(const rest *rests, int64_t n, window *windows)
{
    for (int64_t i = 0; i < n; i++) {
        window *w = &windows[rests[i].window];
        if (w->n++ == 0) w->first = rests[i].piece, w->begin = i;
    }
}

weft_status weft_pack_fit(int64_t first, const int64_t *counts, int64_t n, int64_t seq,
                          weft_packing *packing, weft_error *error)
{
    int64_t n_whole = 0, n_rests = 0, n_shared = 0;
    *packing = (weft_packing){0};
    for (int64_t d = 0; d < n; d++)
        n_whole += counts[d] / seq, n_rests += counts[d] % seq > 0;
    const size_t most = (size_t)(n_whole + n_rests) + 1;
    rest *rests = calloc((size_t)n_rests + 1, sizeof *rests);
    window *windows = calloc(most, sizeof *windows);
    packing->ends = malloc(most * sizeof *packing->ends);
    packing->pieces = malloc(most * sizeof *packing->pieces);
    weft_status status = WEFT_OK;
    if (rests == NULL || windows == NULL || packing->ends == NULL || packing->pieces == NULL)
        status = weft_fail_memory(error, most * sizeof *windows);
    if (status == WEFT_OK) {
        cut(first, counts, n, seq, rests, windows);
        status = fit_rests(rests, n_rests, seq, &n_shared, error);
    }
    if (status == WEFT_OK) {
        open_rests(rests, n_rests, windows + n_whole);
        packing->n_windows = n_whole + n_shared, packing->n_pieces = n_whole + n_rests;
        qsort(windows, (size_t)packing->n_windows, sizeof *windows, by_document);
        lay(windows, rests, packing);
    }
    free(rests), free(windows);
    return status;
}
