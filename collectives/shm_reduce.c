/* shm_reduce: all_reduce between processes of one host, through memory that they share.
 *
 * A large buffer is shown: where it lies in memory that all see each combines its slice right there (direct.c). Else
 * it goes through in pieces that stay in cache. Of each piece a rank *gives* what others combine: it copies it into
 * its slot. When all have given it *combines* its slice of the piece, in rank order, and puts the sum into the slots
 * of all, where the summands were. When all have combined it *takes* the rest of the sum out of its own slot. While
 * one piece is combined the next ones are given. Two ranks would read as much of each other's memory if each combined
 * everything, and so they do: pieces are given whole, every rank combines all of them, and there is nothing to take.
 * More ranks do so too, where a buffer is so small that latency is all. A rank shows its progress in two counters
 * that it alone writes and that only grow; its slot is used again when all have combined the piece that was in it.
 *
 * Ranks that make other calls see it in the slot's fingerprint, take nothing, and wait: the watch says who differs. A rank
 * that ended is waited for in the same way, and found in the same way.
 */
#include "shm_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "reduce.h"

enum { SMALL_BYTES = 1 << 15, CHUNK_BYTES = 1 << 14, SLICE_STATES = 16 };

static char *slot_of(const weft_shm_reduce *w, int r, uint64_t piece)
{
    return w->near.memory[r] + sizeof(weft_shm_reduce_line) +
           piece % WEFT_SHM_REDUCE_SLOTS * WEFT_SHM_REDUCE_SLOT_BYTES;
}

/* ---- create and destroy ------------------------------------------------------------------------ */

weft_status weft_shm_reduce_make(const weft_host_shm_peers *peers, weft_shm_reduce **window,
                                 weft_error *error)
{
    const int64_t bytes = (int64_t)sizeof(weft_shm_reduce_line) +
                          (int64_t)WEFT_SHM_REDUCE_SLOTS * WEFT_SHM_REDUCE_SLOT_BYTES;
    weft_error own = {.rank = -1};
    *window = NULL;
    if (peers->n == 1) return WEFT_OK;
    weft_shm_reduce *w = calloc(1, sizeof *w);
    if (w == NULL) weft_fail_memory(&own, sizeof *w);
    weft_status status = peers->agree(peers->context, &own);
    if (status != WEFT_OK) weft_fail(error, status, "%s", own.message);
    if (status == WEFT_OK) status = weft_host_shm_make(&w->near, peers, bytes, error);
    if (status == WEFT_OK && w->near.n == peers->n) {
        w->n_ranks = peers->n;
        w->self = peers->self;
        *window = w;
        return WEFT_OK;
    }
    if (w != NULL) weft_host_shm_free(&w->near);
    free(w);
    return status;
}

void weft_shm_reduce_destroy(weft_shm_reduce **window)
{
    if (*window == NULL) return;
    weft_host_shm_free(&(*window)->near);
    free(*window);
    *window = NULL;
}

/* ---- pieces ------------------------------------------------------------------------------------ */

/* Whether all ranks combine all of it. */
static bool is_whole(const weft_reduce *reduce)
{
    return reduce->n_ranks == 2 || reduce->bytes * reduce->n_ranks <= SMALL_BYTES;
}

static int64_t piece_bytes(const weft_reduce *reduce)
{
    return WEFT_SHM_REDUCE_SLOT_BYTES / reduce->state_bytes * reduce->state_bytes;
}

/* A part of the buffer: where it begins in the buffer and in the slot. */
typedef struct part {
    int64_t at, in_slot, bytes;
} part;

static part whole_of(const weft_reduce *reduce, uint64_t piece)
{
    const int64_t begin = (int64_t)piece * piece_bytes(reduce), rest = reduce->bytes - begin;
    return (part){begin, 0, rest < piece_bytes(reduce) ? rest : piece_bytes(reduce)};
}

/* Rank r's slice of a piece: they end where cache lines do, at least, so that ranks do not write to the same one. */
static part slice_of(const weft_reduce *reduce, uint64_t piece, int r)
{
    const part whole = whole_of(reduce, piece);
    const int64_t states = whole.bytes / reduce->state_bytes;
    const int64_t each = (states + reduce->n_ranks - 1) / reduce->n_ranks;
    const int64_t most =
        (each + SLICE_STATES - 1) / SLICE_STATES * SLICE_STATES * reduce->state_bytes;
    const int64_t at = r * most < whole.bytes ? r * most : whole.bytes;
    return (part){whole.at + at, at, whole.bytes - at < most ? whole.bytes - at : most};
}

/* ---- what ranks have done ------------------------------------------------------------------------ */

static bool all_have_given(const weft_shm_reduce *w, uint64_t piece, uint64_t fingerprint)
{
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->given) <= piece) return false;
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_shm_reduce_line_of(w, r)->fingerprints[piece % WEFT_SHM_REDUCE_SLOTS] !=
            fingerprint)
            return false;
    return true;
}

static bool all_have_combined(const weft_shm_reduce *w, uint64_t piece)
{
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->combined) <= piece) return false;
    return true;
}

/* Whether this rank's slot for the piece is free. */
static bool is_slot_free(const weft_shm_reduce *w, uint64_t piece)
{
    return piece < WEFT_SHM_REDUCE_SLOTS || all_have_combined(w, piece - WEFT_SHM_REDUCE_SLOTS);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static void give(weft_reduction *it, const weft_shm_reduce *w)
{
    const uint64_t number = it->base + it->n_given;
    weft_shm_reduce_line *line = weft_shm_reduce_line_of(w, w->self);
    char *slot = slot_of(w, w->self, number);
    const part whole = whole_of(it->reduce, it->n_given);
    weft_sync_writes(slot);
    if (is_whole(it->reduce)) memcpy(slot, it->send + whole.at, (size_t)whole.bytes);
    for (int r = 0; r < w->n_ranks && !is_whole(it->reduce); r++) {
        const part p = slice_of(it->reduce, it->n_given, r);
        if (r == w->self) continue;
        weft_sync_writes(slot + p.in_slot);
        memcpy(slot + p.in_slot, it->send + p.at, (size_t)p.bytes);
    }
    line->fingerprints[number % WEFT_SHM_REDUCE_SLOTS] = it->fingerprint;
    it->n_given++;
    weft_sync_store_release(&line->given, number + 1);
}

/* into = the ranks' summands at `in_slot` of their slots, in rank order; this rank's own are at `own`. */
static void combine_slots(const weft_reduction *it, const weft_shm_reduce *w, char *into,
                          const char *own, int64_t in_slot, int64_t bytes)
{
    const uint64_t number = it->base + it->n_combined;
    const char *before = NULL;
    for (int r = 0; r < w->n_ranks; r++) {
        const char *theirs = r == w->self ? own : slot_of(w, r, number) + in_slot;
        if (r != w->self) weft_sync_reads(theirs);
        if (before != NULL)
            it->reduce->combine(into, before, theirs, bytes / it->reduce->state_bytes);
        before = before == NULL ? theirs : into;
    }
}

/* Own summands are nearest where they came from; but of more than two ranks' they might be overwritten before their turn. */
static void combine_whole(weft_reduction *it, const weft_shm_reduce *w)
{
    const part p = whole_of(it->reduce, it->n_combined);
    const char *own =
        w->n_ranks == 2 ? it->send + p.at : slot_of(w, w->self, it->base + it->n_combined);
    combine_slots(it, w, it->recv + p.at, own, 0, p.bytes);
}

/* The sum comes to be where nobody's summands are: in this rank's slot, to which it has given none of its own slice. */
static void combine_chunk(const weft_reduction *it, const weft_shm_reduce *w, part p)
{
    const uint64_t number = it->base + it->n_combined;
    char *sum = slot_of(w, w->self, number) + p.in_slot;
    combine_slots(it, w, sum, it->send + p.at, p.in_slot, p.bytes);
    for (int r = 0; r < w->n_ranks; r++) {
        if (r == w->self) continue;
        weft_sync_writes(slot_of(w, r, number) + p.in_slot);
        memcpy(slot_of(w, r, number) + p.in_slot, sum, (size_t)p.bytes);
    }
    memcpy(it->recv + p.at, sum, (size_t)p.bytes);
}

static void combine_slice(weft_reduction *it, const weft_shm_reduce *w)
{
    const part p = slice_of(it->reduce, it->n_combined, w->self);
    const int64_t chunk = CHUNK_BYTES / it->reduce->state_bytes * it->reduce->state_bytes;
    for (int64_t at = 0; at < p.bytes; at += chunk)
        combine_chunk(
            it, w, (part){p.at + at, p.in_slot + at, p.bytes - at < chunk ? p.bytes - at : chunk});
}

static void combine(weft_reduction *it, const weft_shm_reduce *w)
{
    if (is_whole(it->reduce))
        combine_whole(it, w);
    else
        combine_slice(it, w);
    it->n_combined++;
    weft_sync_store_release(&weft_shm_reduce_line_of(w, w->self)->combined,
                            it->base + it->n_combined);
}

static void take(weft_reduction *it, const weft_shm_reduce *w)
{
    const char *slot = slot_of(w, w->self, it->base + it->n_taken);
    for (int r = 0; r < w->n_ranks && !is_whole(it->reduce); r++) {
        const part p = slice_of(it->reduce, it->n_taken, r);
        if (r == w->self) continue;
        weft_sync_reads(slot + p.in_slot);
        memcpy(it->recv + p.at, slot + p.in_slot, (size_t)p.bytes);
    }
    it->n_taken++;
}

/* The furthest piece first: what is in cache is used up before more is brought there. */
static bool step(weft_reduction *it, const weft_shm_reduce *w)
{
    if (it->n_taken < it->n_combined &&
        (is_whole(it->reduce) || all_have_combined(w, it->base + it->n_taken)))
        take(it, w);
    else if (it->n_combined < it->n_given &&
             all_have_given(w, it->base + it->n_combined, it->fingerprint))
        combine(it, w);
    else if (it->n_given < it->n_pieces && it->n_given < it->n_taken + WEFT_SHM_REDUCE_SLOTS &&
             is_slot_free(w, it->base + it->n_given))
        give(it, w);
    else
        return false;
    return true;
}

/* ---- phases ------------------------------------------------------------------------------------ */

/* The most bytes for which the window's one latency is less than two and no copies. */
enum { MOST_COPIED = 1 << 15 };
enum { BEGINS, IS_SHOWN, IS_DIRECT, IN_PIECES, IS_OVER };

static bool go_to_pieces(weft_reduction *it, weft_shm_reduce *w)
{
    it->base = w->n_pieces;
    w->n_pieces += it->n_pieces;
    it->phase = IN_PIECES;
    return true;
}

static bool begin(weft_reduction *it, weft_shm_reduce *w)
{
    if (it->reduce->bytes <= MOST_COPIED) return go_to_pieces(it, w);
    weft_direct_show(it, w);
    it->phase = IS_SHOWN;
    return true;
}

static bool meet_all(weft_reduction *it, weft_shm_reduce *w)
{
    if (!weft_direct_all_have_come(it, w)) return false;
    if (!weft_direct_combine(it, w)) return go_to_pieces(it, w);
    it->phase = IS_DIRECT;
    return true;
}

static bool part_all(weft_reduction *it, weft_shm_reduce *w)
{
    if (!weft_direct_all_have_done(it, w)) return false;
    it->phase = IS_OVER;
    return true;
}

static bool go_on(weft_reduction *it, weft_shm_reduce *w)
{
    if (!step(it, w)) return false;
    if (it->n_taken == it->n_pieces) it->phase = IS_OVER;
    return true;
}

/* Whether it has got on. */
static bool (*const phases[])(weft_reduction *it, weft_shm_reduce *w) = {
    [BEGINS] = begin, [IS_SHOWN] = meet_all, [IS_DIRECT] = part_all, [IN_PIECES] = go_on};

/* ---- as a way to reduce ------------------------------------------------------------------------ */

bool weft_shm_reduce_takes(const weft_comm *comm, const weft_reduce *reduce)
{
    (void)reduce;
    return comm->window != NULL;
}

static void leave(weft_shm_reduce *w)
{
    w->first = w->first->next;
    if (w->first == NULL) w->last = NULL;
}

weft_status weft_shm_reduce_start(weft_reduction *it, weft_error *error)
{
    (void)error;
    weft_shm_reduce *w = it->comm->window;
    const int64_t piece = piece_bytes(it->reduce);
    it->next = NULL;
    *(w->last ? &w->last->next : &w->first) = it;
    w->last = it;
    it->n_pieces = (uint64_t)((it->reduce->bytes + piece - 1) / piece);
    it->n_given = it->n_combined = it->n_taken = 0;
    it->phase = BEGINS;
    (void)weft_shm_reduce_poll(it, error); /* the others need not wait until this rank does */
    return WEFT_OK;
}

/* One after the other, as they began; nothing of the next one is done before this one is over. */
bool weft_shm_reduce_poll(weft_reduction *it, weft_error *error)
{
    (void)error;
    weft_shm_reduce *w = it->comm->window;
    if (it->phase == IS_OVER) return true; /* it was when it started */
    if (w->first != it) return false;
    while (phases[it->phase](it, w))
        if (it->phase == IS_OVER) {
            leave(w);
            return true;
        }
    return false;
}
