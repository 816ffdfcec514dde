/* all_reduce: combine a buffer over a group, in rank order, by exchanges that any engine has.
 *
 * Small: everybody gets everything and combines it all: one latency. Large: each rank combines one
 * slice and all gather the slices: 2 (p-1)/p bytes through a link, the least there is. The choice
 * depends on the size only, and every element is combined as ((0 with 1) with 2) ..., so all ranks
 * and all engines get the same bits. source  Rabenseifner 2004, "Optimization of collective
 * reduction operations" (reduce-scatter, all-gather)
 */
#include "engine.h"

#include <string.h>

enum { SMALL_BYTES = 4096, ALIGNED = 64 };

typedef struct job {
    weft_comm *comm;
    weft_combiner combine;
    int64_t state_bytes; /* of one state of the combine            */
    int64_t bytes;       /* of the buffer                          */
    /* that this rank combines of each buffer, and their distance in the scratch */
    int64_t part_bytes;
    const char *send;
    char *recv, *scratch;
} job;

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

int64_t weft_all_reduce_bytes(int n_ranks, weft_combine combine, weft_dtype dtype, int64_t count)
{
    const int64_t most = (int64_t)1 << 58; /* as weft_all_reduce takes them */
    if (n_ranks <= 1 || count <= 0 || count > most || !weft_combiner_of(combine, dtype)) return 0;
    const int64_t bytes = n_ranks * part_bytes(n_ranks, combine, dtype, count);
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

int64_t weft_all_reduce_scratch(const weft_comm *comm, weft_combine combine, weft_dtype dtype,
                                int64_t count)
{
    return weft_all_reduce_bytes(weft_comm_n_ranks(comm), combine, dtype, count);
}

/* into = all parts [bytes], in rank order. `own` is this rank's, the others lie in the scratch. */
static void combine_parts(const job *j, char *into, const char *own, int64_t bytes)
{
    const char *before = NULL;
    for (int r = 0; r < j->comm->n_ranks; r++) {
        const char *part = r == j->comm->self ? own : j->scratch + r * j->part_bytes;
        if (before != NULL) j->combine(into, before, part, bytes / j->state_bytes);
        before = before == NULL ? part : into;
    }
}

static weft_status reduce_small(const job *j, weft_error *error)
{
    int64_t *bytes = j->comm->numbers, *at = bytes + j->comm->n_ranks;
    for (int r = 0; r < j->comm->n_ranks; r++) {
        bytes[r] = j->bytes;
        at[r] = r * j->bytes;
    }
    weft_request request;
    WEFT_TRY(
        weft_all_gather_start(j->comm, j->send, j->bytes, j->scratch, bytes, at, &request, error));
    WEFT_TRY(weft_wait(&request, error));
    combine_parts(j, j->recv, j->scratch + at[j->comm->self], j->bytes);
    return WEFT_OK;
}

/* Where slices begin in the buffer, and how long they are. */
static void cut_slices(const job *j, int64_t *bytes, int64_t *at)
{
    for (int r = 0; r < j->comm->n_ranks; r++) {
        const int64_t begin = r * j->part_bytes;
        at[r] = begin < j->bytes ? begin : j->bytes;
        bytes[r] = j->bytes - at[r] < j->part_bytes ? j->bytes - at[r] : j->part_bytes;
    }
}

/* This rank's slice from everybody else into the scratch; own summands stay where they are. */
static weft_status exchange_slices(const job *j, int64_t *bytes, const int64_t *at,
                                   weft_error *error)
{
    const int n = j->comm->n_ranks, self = j->comm->self;
    const int64_t own_bytes = bytes[self];
    int64_t *recv_bytes = j->comm->numbers + 2 * n, *recv_at = recv_bytes + n;
    for (int r = 0; r < n; r++) {
        recv_bytes[r] = r == self ? 0 : own_bytes;
        recv_at[r] = r * j->part_bytes;
    }
    bytes[self] = 0;
    weft_request request;
    WEFT_TRY(weft_all_to_all_start(j->comm, j->send, bytes, at, j->scratch, recv_bytes, recv_at,
                                   &request, error));
    const weft_status status = weft_wait(&request, error);
    bytes[self] = own_bytes;
    return status;
}

static weft_status reduce_large(const job *j, weft_error *error)
{
    const int self = j->comm->self;
    int64_t *bytes = j->comm->numbers, *at = bytes + j->comm->n_ranks;
    cut_slices(j, bytes, at);
    WEFT_TRY(exchange_slices(j, bytes, at, error));
    /* The slice goes straight to its place, unless that would destroy own summands before their
     * turn. */
    const bool would_destroy = j->recv == j->send && self > 1;
    char *into = would_destroy ? j->scratch + self * j->part_bytes : j->recv + at[self];
    combine_parts(j, into, j->send + at[self], bytes[self]);
    weft_request request;
    WEFT_TRY(
        weft_all_gather_start(j->comm, into, bytes[self], j->recv, bytes, at, &request, error));
    return weft_wait(&request, error);
}

weft_status weft_all_reduce(weft_comm *comm, weft_combine combine, weft_dtype dtype,
                            const void *send, void *recv, int64_t count, void *scratch,
                            weft_error *error)
{
    WEFT_GIVEN(comm, error);
    WEFT_TRY(weft_combine_check(combine, dtype, error));
    const int64_t element = (int64_t)weft_dtype_bytes(dtype);
    const int width = weft_combine_width(combine);
    if (count < 0 || count % width != 0)
        return weft_fail(
            error, WEFT_USAGE,
            "all_reduce of %lld elements by %s, whose states have %d numbers each; give a "
            "multiple of that",
            (long long)count, weft_combine_name(combine), width);
    if (count == 0) return WEFT_OK;
    WEFT_GIVEN(send, error);
    WEFT_GIVEN(recv, error);
    WEFT_GIVEN_RANGE(count, 0, (int64_t)1 << 58, error);
    if (comm->n_ranks > 1) WEFT_GIVEN(scratch, error);
    if (comm->n_ranks == 1) {
        if (recv != send) memcpy(recv, send, (size_t)(count * element));
        return WEFT_OK;
    }
    const job j = {.comm = comm,
                   .combine = weft_combiner_of(combine, dtype),
                   .state_bytes = width * element,
                   .bytes = count * element,
                   .part_bytes = part_bytes(comm->n_ranks, combine, dtype, count),
                   .send = send,
                   .recv = recv,
                   .scratch = scratch};
    const weft_call_facts call = {.kind = WEFT_CALL_ALL_REDUCE,
                                  .dtype = (uint8_t)dtype,
                                  .combine = (uint8_t)combine,
                                  .root = -1,
                                  .count = count};
    const weft_call_mark mark = weft_comm_begin(comm, &call);
    const bool has_entered = weft_comm_enter(comm, &mark);
    weft_recorder_wait(comm->recorder, &mark);
    const weft_status status =
        j.bytes <= SMALL_BYTES ? reduce_small(&j, error) : reduce_large(&j, error);
    weft_recorder_end(comm->recorder, &mark);
    weft_comm_leave(comm, has_entered);
    return status;
}
