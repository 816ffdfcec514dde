/* shm_reduce: all_reduce between processes of one host, through memory that they share.
 *
 * A large buffer is shown: where it lies in memory that all see each combines its slice right there (direct.c). Else
 * it goes through in pieces that stay in cache. Of each piece a rank *gives* what others combine: it copies it into
 * its slot. When all have given it *combines* its slice of the piece, in rank order, and puts the sum into the slots
 * of all, where the summands were. When all have combined it *takes* the rest of the sum out of its own slot. While
 * one piece is combined the next ones are given. Two ranks would read as much of each other's memory if each combined
 * everything, and so they do: pieces are given whole, every rank combines all of them, and there is nothing to take.
 * More ranks do so too, where a buffer is so small that latency is all. A rank shows its progress in counters that it
 * alone writes and that only grow; its slot is used again when all have combined the piece that was in it, and it has taken
 * its sum.
 *
 * Several may be under way. Each goes on as far as it can, so what ranks wait for they wait for together: where more
 * ranks than cores meet, a rank that has the core shows and combines whatever there is. Reductions are shown in the order
 * in which they began, and so are pieces numbered: where one may be direct or not, later pieces wait until it is known.
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
    if (piece < WEFT_SHM_REDUCE_SLOTS) return true;
    const uint64_t before = piece - WEFT_SHM_REDUCE_SLOTS;
    return w->n_taken > before && all_have_combined(w, before);
}

/* ---- steps ------------------------------------------------------------------------------------- */

static void give(weft_reduction *it, weft_shm_reduce *w)
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
    w->n_given++;
    weft_sync_store_release(&line->given, w->n_given);
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

static void combine(weft_reduction *it, weft_shm_reduce *w)
{
    if (is_whole(it->reduce))
        combine_whole(it, w);
    else
        combine_slice(it, w);
    it->n_combined++;
    w->n_combined++;
    weft_sync_store_release(&weft_shm_reduce_line_of(w, w->self)->combined, w->n_combined);
}

static void take(weft_reduction *it, weft_shm_reduce *w)
{
    const char *slot = slot_of(w, w->self, it->base + it->n_taken);
    for (int r = 0; r < w->n_ranks && !is_whole(it->reduce); r++) {
        const part p = slice_of(it->reduce, it->n_taken, r);
        if (r == w->self) continue;
        weft_sync_reads(slot + p.in_slot);
        memcpy(it->recv + p.at, slot + p.in_slot, (size_t)p.bytes);
    }
    it->n_taken++;
    w->n_taken++;
}

/* Pieces of all reductions take each step in order. The furthest piece first: what is in cache is used up before more is
 * brought there. */
static bool step(weft_reduction *it, weft_shm_reduce *w)
{
    const uint64_t taken = it->base + it->n_taken, combined = it->base + it->n_combined,
                   given = it->base + it->n_given;
    if (it->n_taken < it->n_combined && w->n_taken == taken &&
        (is_whole(it->reduce) || all_have_combined(w, taken)))
        take(it, w);
    else if (it->n_combined < it->n_given && w->n_combined == combined &&
             all_have_given(w, combined, it->fingerprint))
        combine(it, w);
    else if (it->n_given < it->n_pieces && w->n_given == given && is_slot_free(w, given))
        give(it, w);
    else
        return false;
    return true;
}

/* ---- phases ------------------------------------------------------------------------------------ */

/* The most bytes for which the window's one latency is less than two and no copies. */
enum { MOST_COPIED = 1 << 15 };
enum { BEGINS, IS_SHOWN, IS_DIRECT, IN_PIECES, IS_OVER };

/* Of those that began earlier: whether all are shown that will be, and whether it is known of all how they go. */
typedef struct earlier {
    bool are_shown, are_known;
} earlier;

static bool is_shown_first(const weft_reduction *it)
{
    return it->reduce->bytes > MOST_COPIED;
}

static bool go_to_pieces(weft_reduction *it, weft_shm_reduce *w)
{
    it->base = w->n_pieces;
    w->n_pieces += it->n_pieces;
    it->phase = IN_PIECES;
    return true;
}

static bool begin(weft_reduction *it, weft_shm_reduce *w, earlier before)
{
    if (!is_shown_first(it)) return before.are_known && go_to_pieces(it, w);
    if (!before.are_shown || !weft_direct_can_show(w)) return false;
    weft_direct_show(it, w);
    it->phase = IS_SHOWN;
    return true;
}

static bool meet_all(weft_reduction *it, weft_shm_reduce *w, earlier before)
{
    if (!before.are_known || !weft_direct_all_have_come(it, w)) return false;
    if (!weft_direct_combine(it, w)) return go_to_pieces(it, w);
    it->phase = IS_DIRECT;
    return true;
}

static bool part_all(weft_reduction *it, weft_shm_reduce *w, earlier before)
{
    (void)before;
    if (!weft_direct_all_have_done(it, w)) return false;
    it->phase = IS_OVER;
    return true;
}

static bool go_on(weft_reduction *it, weft_shm_reduce *w, earlier before)
{
    (void)before;
    if (!step(it, w)) return false;
    if (it->n_taken == it->n_pieces) it->phase = IS_OVER;
    return true;
}

static bool stay(weft_reduction *it, weft_shm_reduce *w, earlier before)
{
    (void)it, (void)w, (void)before;
    return false;
}

/* Whether it has got on. */
static bool (*const phases[])(weft_reduction *it, weft_shm_reduce *w, earlier before) = {
    [BEGINS] = begin,    [IS_SHOWN] = meet_all, [IS_DIRECT] = part_all,
    [IN_PIECES] = go_on, [IS_OVER] = stay,
};

/* All that are under way, each as far as it goes. */
static void go_all(weft_shm_reduce *w)
{
    earlier before = {true, true};
    weft_reduction **link = &w->first, *last = NULL;
    while (*link != NULL) {
        weft_reduction *it = *link;
        while (phases[it->phase](it, w, before))
            continue;
        before.are_shown = before.are_shown && (it->phase != BEGINS || !is_shown_first(it));
        before.are_known = before.are_known && it->phase != BEGINS && it->phase != IS_SHOWN;
        if (it->phase == IS_OVER)
            *link = it->next;
        else
            link = &(last = it)->next;
    }
    w->last = last;
}

/* ---- as a way to reduce ------------------------------------------------------------------------ */

bool weft_shm_reduce_takes(const weft_comm *comm, const weft_reduce *reduce)
{
    (void)reduce;
    return comm->window != NULL;
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
    go_all(w); /* the others need not wait until this rank does */
    return WEFT_OK;
}

/* Whoever waits polls all that a rank has under way, as it began (pending.c): once in a round they all go on. */
bool weft_shm_reduce_poll(weft_reduction *it, weft_error *error)
{
    (void)error;
    weft_shm_reduce *w = it->comm->window;
    if (w->first == it) go_all(w);
    return it->phase == IS_OVER;
}
