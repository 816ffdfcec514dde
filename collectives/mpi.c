/* mpi: the engine for one rank a process.
 *
 * An exchange is one receive and one send for each peer that has something: what MPI's own
 * non-blocking all_to_all and all_gather do inside (Open MPI's libnbc, linear), but peers without
 * bytes cost nothing and no count has to fit an int: what does not is sent as many blocks of a
 * megabyte, and a rest. A message's tag comes from the fingerprint of the call that it belongs to:
 * ranks that make different calls wait for each other, which the watch sees, and never take each
 * other's bytes for their own. Requests are made room for with the group: nothing is allocated
 * during a run.
 */
#include "engine.h"
#include "mpi_world.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, PER_PEER = 4 /* blocks and rest, sent and received */ };

typedef struct group {
    MPI_Comm comm;
    MPI_Datatype block; /* BLOCK_BYTES bytes */
    int n_requests[WEFT_SLOTS];
    MPI_Request *requests; /* [WEFT_SLOTS][PER_PEER * n_ranks] */
    int64_t *expected;     /* the same: bytes to receive; -1: a send */
    MPI_Status *statuses;  /* [PER_PEER * n_ranks] */
} group;

/* ---- groups ---------------------------------------------------------------------------------- */

static weft_status group_start(group *g, const weft_comm *end, int lowest, weft_error *error)
{
    g->comm = MPI_COMM_NULL;
    g->block = MPI_DATATYPE_NULL;
    const size_t n = PER_PEER * (size_t)end->n_ranks;
    g->requests = malloc(WEFT_SLOTS * n * sizeof *g->requests);
    g->expected = malloc(WEFT_SLOTS * n * sizeof *g->expected);
    g->statuses = malloc(n * sizeof *g->statuses);
    if (g->requests == NULL || g->expected == NULL || g->statuses == NULL)
        return weft_fail_memory(error, n * (WEFT_SLOTS * sizeof *g->requests));
    WEFT_TRY(weft_mpi_same(WEFT_CALL_GROUP, end->n_ranks, error));
    int code = MPI_Comm_split(weft_mpi_comm(), lowest, end->self, &g->comm);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Type_contiguous(BLOCK_BYTES, MPI_BYTE, &g->block);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&g->block);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "making a group of ranks", code);
}

static weft_status group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *ends,
                                weft_error *error)
{
    if (weft_mpi_comm() == MPI_COMM_NULL)
        return weft_fail(error, WEFT_USAGE,
                         "mesh %.200s has ranks in other processes, but they were not joined; call "
                         "weft_world_open first",
                         weft_mesh_text(mesh));
    int *ranks = malloc((size_t)ends->n_ranks * sizeof *ranks);
    group *g = ends->group = calloc(1, sizeof *g);
    weft_status status = WEFT_OK;
    if (ranks == NULL || g == NULL) {
        status = weft_fail_memory(error, sizeof *g);
    } else {
        weft_mesh_group(mesh, axes, ends->rank, ranks, NULL);
        status = group_start(g, ends, ranks[0], error); /* groups have no rank in common */
    }
    free(ranks);
    return status;
}

static void destroy(weft_comm *ends, int n_local)
{
    group *g = ends->group;
    int is_over = 0;
    (void)n_local; /* one */
    if (g == NULL) return;
    MPI_Finalized(&is_over);
    if (!is_over && g->block != MPI_DATATYPE_NULL) MPI_Type_free(&g->block);
    if (!is_over && g->comm != MPI_COMM_NULL) MPI_Comm_free(&g->comm);
    free(g->requests);
    free(g->expected);
    free(g->statuses);
    free(g);
    ends->group = NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* One direction of one exchange with one peer. */
typedef struct message {
    char *data;
    int64_t bytes;
    int peer, slot, tag;
    bool is_send;
} message;

static int slot_of(const weft_request *request)
{
    return (int)(request->ticket % WEFT_SLOTS);
}

static int post(const weft_comm *comm, const message *m, char *data, int count, MPI_Datatype type)
{
    group *g = comm->group;
    const size_t at =
        (size_t)m->slot * PER_PEER * (size_t)comm->n_ranks + (size_t)g->n_requests[m->slot];
    MPI_Request *request = g->requests + at;
    const int code = m->is_send ? MPI_Isend(data, count, type, m->peer, m->tag, g->comm, request)
                                : MPI_Irecv(data, count, type, m->peer, m->tag, g->comm, request);
    if (code != MPI_SUCCESS) return code;
    g->expected[at] = m->is_send ? -1 : type == MPI_BYTE ? count : (int64_t)count * BLOCK_BYTES;
    g->n_requests[m->slot]++;
    return code;
}

/* Both sides cut a message in the same way, from its bytes alone. */
static int post_message(const weft_comm *comm, const message *m)
{
    const group *g = comm->group;
    if (m->bytes == 0) return MPI_SUCCESS;
    if (m->bytes <= INT_MAX) return post(comm, m, m->data, (int)m->bytes, MPI_BYTE);
    const int64_t n_blocks = m->bytes / BLOCK_BYTES, rest = m->bytes % BLOCK_BYTES;
    if (n_blocks > INT_MAX) return MPI_ERR_COUNT;
    const int code = post(comm, m, m->data, (int)n_blocks, g->block);
    if (code != MPI_SUCCESS || rest == 0) return code;
    return post(comm, m, m->data + n_blocks * BLOCK_BYTES, (int)rest, MPI_BYTE);
}

static int post_all(const weft_comm *comm, const weft_parts *parts, const weft_request *request,
                    bool is_send)
{
    const int slot = slot_of(request), tag = weft_mpi_tag(request->fingerprint, slot);
    for (int i = 1; i < comm->n_ranks; i++) {
        const int step = is_send ? i : comm->n_ranks - i; /* not all to one at a time */
        const int peer = (comm->self + step) % comm->n_ranks;
        if (parts->bytes[peer] == 0) continue;
        const message m = {
            parts->data + parts->at[peer], parts->bytes[peer], peer, slot, tag, is_send};
        const int code = post_message(comm, &m);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

static weft_status copy_own(const weft_comm *comm, const char *from, int64_t bytes,
                            const weft_parts *recv, weft_error *error)
{
    const int64_t expected = recv->bytes[comm->self];
    if (bytes != expected)
        return weft_fail(
            error, WEFT_MISMATCH,
            "rank %d of a group of %d sends %lld bytes to itself, but expects %lld; both "
            "must be the same count",
            comm->self, comm->n_ranks, (long long)bytes, (long long)expected);
    if (bytes == 0) return WEFT_OK;
    char *to = recv->data + recv->at[comm->self];
    if (to != from) memcpy(to, from, (size_t)bytes);
    return WEFT_OK;
}

static weft_status all_to_all_start(weft_comm *comm, const weft_parts *send, const weft_parts *recv,
                                    weft_request *request, weft_error *error)
{
    group *g = comm->group;
    g->n_requests[slot_of(request)] = 0;
    int code = post_all(comm, recv, request, false);
    if (code == MPI_SUCCESS) code = post_all(comm, send, request, true);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "all_to_all", code);
    const int64_t own = send->bytes[comm->self];
    return copy_own(comm, own > 0 ? send->data + send->at[comm->self] : NULL, own, recv, error);
}

static weft_status all_gather_start(weft_comm *comm, const void *send, int64_t send_bytes,
                                    const weft_parts *recv, weft_request *request,
                                    weft_error *error)
{
    group *g = comm->group;
    const int slot = slot_of(request), tag = weft_mpi_tag(request->fingerprint, slot);
    g->n_requests[slot] = 0;
    int code = post_all(comm, recv, request, false);
    for (int i = 1; i < comm->n_ranks && code == MPI_SUCCESS; i++) {
        const int peer = (comm->self + i) % comm->n_ranks;
        const message m = {(char *)(uintptr_t)send, send_bytes, peer, slot, tag, true};
        code = post_message(comm, &m);
    }
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "all_gather", code);
    return copy_own(comm, send, send_bytes, recv, error);
}

/* What MPI says of a message that is longer than the receiver has given room for. */
static weft_status fail_wait(const weft_comm *comm, int code, const MPI_Status *about,
                             int64_t expected, weft_error *error)
{
    int class = code;
    MPI_Error_class(code, &class);
    if (class != MPI_ERR_TRUNCATE) return weft_mpi_fail(error, "exchanging data", code);
    return weft_fail(
        error, WEFT_MISMATCH,
        "rank %d of a group of %d sends more than the %lld bytes that rank %d expects; both "
        "sides must give the same count",
        about->MPI_SOURCE, comm->n_ranks, (long long)expected, comm->self);
}

/* A message that is longer than expected MPI finds itself; a shorter one it takes for right. */
static weft_status check_lengths(const weft_comm *comm, const int64_t *expected, int n,
                                 weft_error *error)
{
    const group *g = comm->group;
    for (int i = 0; i < n; i++) {
        MPI_Count bytes = 0;
        if (expected[i] < 0) continue;
        MPI_Get_elements_x(&g->statuses[i], MPI_BYTE, &bytes);
        if (bytes != expected[i])
            return weft_fail(error, WEFT_MISMATCH,
                             "rank %d of a group of %d sends %lld bytes to rank %d, which expects "
                             "%lld; both sides must give the same count",
                             g->statuses[i].MPI_SOURCE, comm->n_ranks, (long long)bytes, comm->self,
                             (long long)expected[i]);
    }
    return WEFT_OK;
}

/* One by one: where a message was longer than expected, MPI_Waitall of Open MPI 4.1 does not return. */
static weft_status wait_slot(const weft_comm *comm, int slot, weft_error *error)
{
    group *g = comm->group;
    const size_t at = (size_t)slot * PER_PEER * (size_t)comm->n_ranks;
    const int n = g->n_requests[slot];
    g->n_requests[slot] = 0;
    for (int i = 0; i < n; i++) {
        const int code = MPI_Wait(&g->requests[at + (size_t)i], &g->statuses[i]);
        if (code != MPI_SUCCESS)
            return fail_wait(comm, code, &g->statuses[i], g->expected[at + (size_t)i], error);
    }
    return check_lengths(comm, g->expected + at, n, error);
}

static weft_status wait_request(weft_request *request, weft_error *error)
{
    return wait_slot(request->comm, slot_of(request), error);
}

static weft_status pass_on(const weft_comm *comm, const message *m, weft_error *error)
{
    const int code = post_message(comm, m);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "broadcast", code);
}

/* A binomial tree over the ranks counted from the root: who has the bytes after k rounds is 2^k. */
static weft_status broadcast(weft_comm *comm, int root, void *data, int64_t bytes,
                             const weft_request *request, weft_error *error)
{
    group *g = comm->group;
    const int n = comm->n_ranks, own = (comm->self - root + n) % n, slot = slot_of(request);
    message m = {data, bytes, 0, slot, weft_mpi_tag(request->fingerprint, slot), false};
    int bit = 1;
    g->n_requests[slot] = 0;
    while (bit < n && !(own & bit))
        bit <<= 1;
    if (own > 0) {
        m.peer = (own - bit + root) % n;
        WEFT_TRY(pass_on(comm, &m, error));
        WEFT_TRY(wait_slot(comm, slot, error));
    }
    m.is_send = true;
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (own + bit >= n) continue;
        m.peer = (own + bit + root) % n;
        WEFT_TRY(pass_on(comm, &m, error));
    }
    return wait_slot(comm, slot, error);
}

const weft_comm_engine weft_engine_mpi = {
    .name = "mpi",
    .group_create = group_create,
    .destroy = destroy,
    .all_to_all_start = all_to_all_start,
    .all_gather_start = all_gather_start,
    .wait = wait_request,
    .broadcast = broadcast,
};
