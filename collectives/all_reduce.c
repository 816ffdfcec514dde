/* all_reduce: combine a buffer over a group, in rank order.
 *
 * By exchanges that any engine has - small: everybody gets everything and combines it all: one latency; large: each rank
 * combines one slice and all gather the slices: 2 (p-1)/p bytes through a link, the least there is. Or directly, where
 * ranks see each other's memory (direct.c); or through memory that processes of one host share (shm_reduce.c). The choice depends
 * on the size and the engine only, and every element is combined as ((0 with 1) with 2) ..., so all ranks and all engines
 * get the same bits. Of a device whose memory the host does not read, the device combines what exchanges bring into staging.
 * source  Rabenseifner 2004, "Optimization of collective reduction operations" (reduce-scatter, all-gather)
 */
#include "reduce.h"

#include <string.h>

enum { SMALL_BYTES = 4096 };

/* Elements of all slices but the last ones, which may be short or empty. */
static int64_t slice_count(int n_ranks, int width, int64_t count)
{
    const int64_t states = count / width;
    return (states / n_ranks + (states % n_ranks != 0)) * width;
}

/* What one rank combines of each buffer, at most. */
static int64_t part_bytes(int n_ranks, weft_combine combine, weft_dtype dtype, int64_t count)
{
    const int64_t element = (int64_t)weft_dtype_bytes(dtype);
    if (count * element <= SMALL_BYTES) return count * element;
    return slice_count(n_ranks, weft_combine_width(combine), count) * element;
}

int64_t weft_reduce_bytes(int n_ranks, weft_combine combine, weft_dtype dtype, int64_t count)
{
    const int64_t most = (int64_t)1 << 58; /* as weft_all_reduce takes them */
    if (n_ranks <= 1 || count <= 0 || count > most || !weft_combiner_of(combine, dtype)) return 0;
    return weft_aligned(n_ranks * part_bytes(n_ranks, combine, dtype, count));
}

int64_t weft_all_reduce_scratch(const weft_comm *comm, weft_combine combine, weft_dtype dtype,
                                int64_t count)
{
    return weft_reduce_bytes(weft_comm_n_ranks(comm), combine, dtype, count);
}

static bool is_small(const weft_reduce *reduce)
{
    return reduce->bytes <= SMALL_BYTES;
}

void weft_reduce_make(weft_reduce *reduce, int n_ranks, int self, weft_combine combine,
                      weft_dtype dtype, int64_t count, int64_t *numbers)
{
    const int64_t element = (int64_t)weft_dtype_bytes(dtype);
    *reduce = (weft_reduce){.combine = weft_combiner_of(combine, dtype),
                            .n_ranks = n_ranks,
                            .self = self,
                            .state_bytes = weft_combine_width(combine) * element,
                            .bytes = count * element,
                            .part_bytes = part_bytes(n_ranks, combine, dtype, count),
                            .slice_bytes = numbers,
                            .slice_at = numbers + n_ranks,
                            .send_bytes = numbers + 2 * n_ranks,
                            .recv_bytes = numbers + 3 * n_ranks,
                            .recv_at = numbers + 4 * n_ranks};
    for (int r = 0; r < n_ranks; r++) {
        const int64_t begin = r * reduce->part_bytes, total = reduce->bytes;
        const int64_t at = begin < total ? begin : total;
        reduce->slice_at[r] = at;
        reduce->slice_bytes[r] = total - at < reduce->part_bytes ? total - at : reduce->part_bytes;
        reduce->send_bytes[r] = r == self ? 0 : reduce->slice_bytes[r];
    }
    for (int r = 0; r < n_ranks; r++) {
        const bool comes = r != self || is_small(reduce);
        reduce->recv_bytes[r] = !comes             ? 0
                                : is_small(reduce) ? reduce->bytes
                                                   : reduce->slice_bytes[self];
        reduce->recv_at[r] = r * reduce->part_bytes;
    }
}

/* into = a with b; into is a or neither. */
static void combine_two(const weft_reduction *it, char *into, const char *a, const char *b,
                        int64_t bytes)
{
    const weft_reduce_device *on = &it->device;
    if (on->table == NULL) {
        it->reduce->combine(into, a, b, bytes / it->reduce->state_bytes);
        return;
    }
    const weft_box_copy all = {.run = bytes / on->rule->element};
    if (into != a)
        on->table->copy_box(on->stream, on->queue, into, a, &all, (size_t)on->rule->element);
    on->table->combine_box(on->stream, on->queue, into, b, &all, on->rule);
}

/* into = all parts [bytes], in rank order. `own` is this rank's, the others lie in the scratch. */
static void combine_parts(weft_reduction *it, char *into, const char *own, int64_t bytes)
{
    const weft_reduce *reduce = it->reduce;
    const weft_reduce_device *on = &it->device;
    const char *before = NULL;
    for (int r = 0; r < reduce->n_ranks && bytes > 0; r++) {
        const char *part = r == reduce->self ? own : it->scratch + r * reduce->part_bytes;
        if (before != NULL) combine_two(it, into, before, part, bytes);
        before = before == NULL ? part : into;
    }
    it->is_combining = on->table != NULL;
    if (it->is_combining) it->combined = on->table->record(on->stream, on->queue);
}

/* The host reads what was combined, or sends it. */
static bool is_combined(weft_reduction *it)
{
    const weft_reduce_device *on = &it->device;
    if (it->is_combining) it->is_combining = !on->table->is_done(on->stream, it->combined);
    return !it->is_combining;
}

static weft_status begin_exchange(weft_reduction *it, weft_parts send, weft_parts recv,
                                  weft_error *error)
{
    it->exchange->send = send;
    it->exchange->recv = recv;
    return weft_exchange_begin(it->exchange, it->ticket + (uint64_t)it->turn, it->fingerprint,
                               error);
}

/* Whether the exchange of this turn is over. */
static bool poll_exchange(weft_reduction *it, weft_error *error)
{
    if (!weft_exchange_poll(it->exchange)) return false;
    weft_fail(error, it->exchange->error.status, "%s", it->exchange->error.message);
    return true;
}

enum { COMES, IS_COMBINED, IS_GATHERED }; /* phases of those that exchange */

/* ---- small: all get all ------------------------------------------------------------------------ */

static bool takes_small(const weft_comm *comm, const weft_reduce *reduce)
{
    (void)comm;
    return is_small(reduce);
}

static weft_status start_small(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    const weft_parts send = {(char *)(uintptr_t)it->send, NULL, NULL, reduce->bytes};
    const weft_parts recv = {it->scratch, reduce->recv_bytes, reduce->recv_at, 0};
    return begin_exchange(it, send, recv, error);
}

static bool poll_small(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    if (it->phase == COMES) {
        if (!poll_exchange(it, error)) return false;
        if (it->exchange->error.status != WEFT_OK) return true;
        combine_parts(it, it->recv, it->scratch + reduce->recv_at[reduce->self], reduce->bytes);
        it->phase = IS_COMBINED;
    }
    return is_combined(it);
}

/* ---- large: slices, and all gather them -------------------------------------------------------- */

static bool takes_any(const weft_comm *comm, const weft_reduce *reduce)
{
    (void)comm, (void)reduce;
    return true;
}

/* This rank's slice from everybody else into the scratch; own summands stay where they are. */
static weft_status start_large(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    const weft_parts send = {(char *)(uintptr_t)it->send, reduce->send_bytes, reduce->slice_at, 0};
    const weft_parts recv = {it->scratch, reduce->recv_bytes, reduce->recv_at, 0};
    return begin_exchange(it, send, recv, error);
}

/* The slice goes straight to its place, unless that would destroy own summands before their turn. */
static char *slice_of(const weft_reduction *it)
{
    const weft_reduce *reduce = it->reduce;
    const int self = reduce->self, last = it->device.table != NULL ? 0 : 1; /* a, or a and b */
    const bool would_destroy = it->recv == it->send && self > last;
    return would_destroy ? it->scratch + self * reduce->part_bytes
                         : it->recv + reduce->slice_at[self];
}

static weft_status gather_slices(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    const weft_parts send = {slice_of(it), NULL, NULL, reduce->slice_bytes[reduce->self]};
    const weft_parts recv = {it->recv, reduce->slice_bytes, reduce->slice_at, 0};
    it->turn = 1;
    return begin_exchange(it, send, recv, error);
}

static bool poll_large(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    const int self = reduce->self;
    if (it->phase == COMES) {
        if (!poll_exchange(it, error)) return false;
        if (it->exchange->error.status != WEFT_OK) return true;
        combine_parts(it, slice_of(it), it->send + reduce->slice_at[self],
                      reduce->slice_bytes[self]);
        it->phase = IS_COMBINED;
    }
    if (it->phase == IS_COMBINED) {
        if (!is_combined(it)) return false;
        it->phase = IS_GATHERED;
        if (gather_slices(it, error) != WEFT_OK) return true;
    }
    return poll_exchange(it, error);
}

/* ---- ways ---------------------------------------------------------------------------------------- */

/* The first that takes it. */
static const weft_reduce_way ways[] = {
    {true, weft_direct_takes, 1, weft_direct_start, weft_direct_poll},
    {true, weft_shm_reduce_takes, 0, weft_shm_reduce_start, weft_shm_reduce_poll},
    {false, takes_small, 1, start_small, poll_small},
    {false, takes_any, 2, start_large, poll_large}};

weft_status weft_reduction_start(weft_reduction *it, weft_error *error)
{
    it->way = ways;
    while ((it->way->by_host && it->device.table != NULL) || !it->way->takes(it->comm, it->reduce))
        it->way++;
    it->phase = COMES;
    it->turn = 0;
    it->ticket = it->comm->next;
    it->comm->next += (uint64_t)it->way->n_tickets;
    return it->way->start(it, error);
}

bool weft_reduction_poll(weft_reduction *it, weft_error *error)
{
    return it->way->poll(it, error);
}

/* ---- on a queue: one thing follows the other there, and nobody looks whether it is over ------------ */

static weft_status put(const weft_reduction *it, weft_parts send, weft_parts recv,
                       weft_error *error)
{
    const weft_device_queue on = {it->device.stream, it->device.queue};
    return it->comm->engine->put(it->comm, &on, &send, &recv, error);
}

weft_status weft_reduction_put(weft_reduction *it, weft_error *error)
{
    const weft_reduce *reduce = it->reduce;
    const int self = reduce->self;
    char *send = (char *)(uintptr_t)it->send;
    const weft_parts comes = {it->scratch, reduce->recv_bytes, reduce->recv_at, 0};
    if (is_small(reduce)) {
        WEFT_TRY(put(it, (weft_parts){send, NULL, NULL, reduce->bytes}, comes, error));
        combine_parts(it, it->recv, it->scratch + reduce->recv_at[self], reduce->bytes);
        return WEFT_OK;
    }
    WEFT_TRY(put(it, (weft_parts){send, reduce->send_bytes, reduce->slice_at, 0}, comes, error));
    char *slice = slice_of(it);
    combine_parts(it, slice, it->send + reduce->slice_at[self], reduce->slice_bytes[self]);
    return put(it, (weft_parts){slice, NULL, NULL, reduce->slice_bytes[self]},
               (weft_parts){it->recv, reduce->slice_bytes, reduce->slice_at, 0}, error);
}

/* ---- public -------------------------------------------------------------------------------------- */

/* A call that blocks. */
typedef struct call {
    weft_pending pending; /* first */
    weft_reduction reduction;
} call;

static bool poll_call(weft_pending *it)
{
    call *c = (call *)(void *)it;
    return weft_reduction_poll(&c->reduction, &it->error);
}

static weft_status run_call(call *c, weft_error *error)
{
    weft_comm *comm = c->reduction.comm;
    WEFT_TRY(weft_reduction_start(&c->reduction, error));
    c->pending.poll = poll_call;
    weft_error_clear(&c->pending.error);
    weft_desk_begin(comm->desk, &c->pending);
    return weft_desk_wait(comm->desk, &c->pending, error);
}

static weft_status check_count(weft_combine combine, int64_t count, weft_error *error)
{
    const int width = weft_combine_width(combine);
    if (count >= 0 && count % width == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "all_reduce of %lld elements by %s, whose states have %d numbers each; give a "
                     "multiple of that",
                     (long long)count, weft_combine_name(combine), width);
}

weft_status weft_all_reduce(weft_comm *comm, weft_combine combine, weft_dtype dtype,
                            const void *send, void *recv, int64_t count, void *scratch,
                            weft_error *error)
{
    WEFT_GIVEN(comm, error);
    WEFT_TRY(weft_combine_check(combine, dtype, error));
    WEFT_TRY(check_count(combine, count, error));
    if (count == 0) return WEFT_OK;
    WEFT_GIVEN(send, error);
    WEFT_GIVEN(recv, error);
    WEFT_GIVEN_RANGE(count, 0, (int64_t)1 << 58, error);
    if (comm->n_ranks > 1) WEFT_GIVEN(scratch, error);
    if (comm->n_ranks == 1) {
        if (recv != send) memcpy(recv, send, (size_t)count * weft_dtype_bytes(dtype));
        return WEFT_OK;
    }
    weft_reduce reduce;
    call c;
    c.reduction = (weft_reduction){
        .reduce = &reduce, .comm = comm, .send = send, .recv = recv, .scratch = scratch};
    const weft_call_facts facts = {.kind = WEFT_CALL_ALL_REDUCE,
                                   .dtype = (uint8_t)dtype,
                                   .combine = (uint8_t)combine,
                                   .root = -1,
                                   .count = count,
                                   .digest = weft_combine_digest(combine)};
    weft_reduce_make(&reduce, comm->n_ranks, comm->self, combine, dtype, count, comm->numbers);
    WEFT_TRY(weft_exchange_take(comm, &c.reduction.exchange, error));
    const weft_call_mark mark = weft_comm_begin(comm, &facts);
    c.reduction.fingerprint = mark.fingerprint;
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status = run_call(&c, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_exchange_give(c.reduction.exchange);
    return status;
}
