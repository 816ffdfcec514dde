/* direct: all_reduce where ranks see each other's buffers, be they threads of one process or processes of one host.
 *
 * Each combines its slice straight from the buffers of all and puts it into the results of all: nothing is read or
 * written twice. Nobody begins before all have come, and nobody goes on before all have done.
 */
#include "reduce.h"

#include <string.h>

enum { CHUNK_BYTES = 1 << 14, SLICE_STATES = 16 };

/* One chunk of all buffers into all results. Nobody else reads or writes these elements, so a result may be where its
 * rank's summands are. */
static void combine_chunk(const weft_reduction *it, weft_reduce_see see, int64_t at, int64_t bytes)
{
    const weft_reduce *reduce = it->reduce;
    const int64_t n_states = bytes / reduce->state_bytes;
    char *sum = reduce->n_ranks == 2 ? it->recv + at : it->scratch;
    const char *before = see(it, 0).send + at;
    weft_sync_reads(before);
    for (int r = 1; r < reduce->n_ranks; r++) {
        const char *its = see(it, r).send + at;
        weft_sync_reads(its);
        reduce->combine(sum, before, its, n_states);
        before = sum;
    }
    for (int r = 0; r < reduce->n_ranks; r++) {
        char *into = see(it, r).recv + at;
        weft_sync_writes(into);
        if (into != sum) memcpy(into, sum, (size_t)bytes);
    }
}

/* Slices end where cache lines do, at least, so that ranks do not write to the same one. */
void weft_reduce_seen(const weft_reduction *it, weft_reduce_see see)
{
    const weft_reduce *reduce = it->reduce;
    const int64_t states = reduce->bytes / reduce->state_bytes;
    const int64_t each = (states + reduce->n_ranks - 1) / reduce->n_ranks;
    const int64_t slice =
        (each + SLICE_STATES - 1) / SLICE_STATES * SLICE_STATES * reduce->state_bytes;
    const int64_t chunk = CHUNK_BYTES / reduce->state_bytes * reduce->state_bytes;
    const int64_t begin = reduce->self * slice, limit = begin + slice;
    const int64_t end = limit < reduce->bytes ? limit : reduce->bytes;
    for (int64_t at = begin; at < end; at += chunk)
        combine_chunk(it, see, at, end - at < chunk ? end - at : chunk);
}

/* ---- between threads: the engine shows what all have ------------------------------------------- */

bool weft_direct_takes(const weft_comm *comm, const weft_reduce *reduce)
{
    (void)reduce;
    return comm->engine->peer != NULL;
}

weft_status weft_direct_start(weft_reduction *it, weft_error *error)
{
    it->exchange->send = (weft_parts){(char *)(uintptr_t)it->send, NULL, NULL, 0};
    it->exchange->recv = (weft_parts){it->recv, NULL, NULL, 0};
    it->exchange->is_direct = true;
    return weft_exchange_begin(it->exchange, it->ticket, it->fingerprint, error);
}

static weft_reduce_buffers see_peer(const weft_reduction *it, int r)
{
    const weft_comm_exchange *its = it->comm->engine->peer(it->exchange, r);
    return (weft_reduce_buffers){its->send.data, its->recv.data};
}

bool weft_direct_poll(weft_reduction *it, weft_error *error)
{
    bool is_over = weft_exchange_poll(it->exchange); /* not before it is released */
    if (it->turn == 0 && it->exchange->has_all_come) {
        if (it->exchange->error.status == WEFT_OK) weft_reduce_seen(it, see_peer);
        it->comm->engine->release(it->exchange);
        it->turn = 1;
        is_over = weft_exchange_poll(it->exchange);
    }
    if (!is_over || it->turn == 0) return false;
    weft_fail(error, it->exchange->error.status, "%s", it->exchange->error.message);
    return true;
}

/* ---- between processes: what lies in memory that all see (areas.h) is shown in the window -------- */

static weft_shm_reduce_shown *shown_by(const weft_shm_reduce *w, int r, uint64_t number)
{
    return &weft_shm_reduce_line_of(w, r)->shows[number % WEFT_SHM_REDUCE_SHOWN];
}

/* What was shown there before is read until all have done their part of it. */
bool weft_direct_can_show(const weft_shm_reduce *w)
{
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->done) + WEFT_SHM_REDUCE_SHOWN <=
            w->n_shown)
            return false;
    return true;
}

void weft_direct_show(weft_reduction *it, weft_shm_reduce *w)
{
    weft_shm_reduce_line *line = weft_shm_reduce_line_of(w, w->self);
    const int64_t bytes = it->reduce->bytes;
    it->base = w->n_shown++;
    weft_shm_reduce_shown *shown = shown_by(w, w->self, it->base);
    weft_sync_writes(shown);
    *shown = (weft_shm_reduce_shown){.fingerprint = it->fingerprint,
                                     .rank = it->comm->rank,
                                     .send = weft_areas_find(it->comm->areas, it->send, bytes),
                                     .recv = weft_areas_find(it->comm->areas, it->recv, bytes)};
    weft_sync_store_release(&line->shown, it->base + 1);
}

bool weft_direct_all_have_come(const weft_reduction *it, const weft_shm_reduce *w)
{
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->shown) <= it->base) return false;
    for (int r = 0; r < w->n_ranks; r++)
        if (shown_by(w, r, it->base)->fingerprint != it->fingerprint) return false;
    return true;
}

static weft_reduce_buffers see_shown(const weft_reduction *it, int r)
{
    const weft_shm_reduce_shown *shown = shown_by(it->comm->window, r, it->base);
    const weft_areas *areas = it->comm->areas;
    weft_sync_reads(shown);
    return (weft_reduce_buffers){weft_areas_at(areas, shown->send, shown->rank),
                                 weft_areas_at(areas, shown->recv, shown->rank)};
}

/* All ranks look at the same, and come to the same end: an area is seen by all of a host, or by none. */
bool weft_direct_combine(const weft_reduction *it, const weft_shm_reduce *w)
{
    bool is_seen = true;
    for (int r = 0; r < w->n_ranks; r++)
        if (shown_by(w, r, it->base)->send.area < 0 || shown_by(w, r, it->base)->recv.area < 0)
            is_seen = false;
    if (is_seen) weft_reduce_seen(it, see_shown);
    weft_sync_store_release(&weft_shm_reduce_line_of(w, w->self)->done, it->base + 1);
    return is_seen;
}

bool weft_direct_all_have_done(const weft_reduction *it, const weft_shm_reduce *w)
{
    for (int r = 0; r < w->n_ranks; r++)
        if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->done) <= it->base) return false;
    return true;
}
