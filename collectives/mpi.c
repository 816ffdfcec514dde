/* mpi: the engine for one rank a process.
 *
 * An exchange is one receive and send for each peer that has something. MPI's own non-blocking all_to_all and
 * all_gather do the same inside (Open MPI's libnbc, linear). But here peers without bytes cost nothing and no count
 * has to fit an int: larger data are sent as many blocks of a megabyte, and a rest. A message's tag comes from the
 * fingerprint of the call that it belongs to: ranks that make different calls wait for each other, which the watch
 * sees, and never take each other's bytes for their own. Requests have their room in the exchange: nothing is
 * allocated during a run.
 */
#include "engine.h"
#include "mpi_group.h"
#include "mpi_world.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 1 << 20,
    PER_PEER = 4 /* blocks and rest, sent and received */
};

/* This rank's side of one exchange. */
typedef struct side {
    int n_requests, n_over; /* posted; and finished, in the order they were posted */
    struct {
        MPI_Request request;
        int64_t expected; /* bytes to receive; -1: a send */
    } requests[];         /* [PER_PEER * n_ranks] */
} side;

/* ---- groups ---------------------------------------------------------------------------------- */

static weft_status takes(const weft_mesh *mesh, weft_error *error)
{
    if (weft_mpi_comm() == MPI_COMM_NULL)
        return weft_fail(error, WEFT_USAGE,
                         "mesh %.200s: engine mpi carries ranks that are processes, and none were "
                         "joined; start them with mpirun or srun, and call weft_world_open first",
                         weft_mesh_text(mesh));
    if (weft_mesh_n_local(mesh) == 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "engine mpi carries one rank a process, and mesh %.200s has %d in this one; "
                     "choose threads, or none",
                     weft_mesh_text(mesh), weft_mesh_n_local(mesh));
}

static weft_status gather(void *context, const void *own, int64_t bytes, void *all,
                          weft_error *error)
{
    const weft_mpi_group *g = context;
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, g->comm, &request);
    code = weft_mpi_finish(code, request);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "sharing memory", code);
}

/* Groups of a set of axes are made by all processes together. */
static weft_status agree(void *context, weft_error *error)
{
    (void)context;
    return weft_world_agree(error);
}

static int find_host(weft_mpi_group *g)
{
    MPI_Comm host;
    int n = 0;
    int code = MPI_Comm_split_type(g->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    if (code == MPI_SUCCESS) code = MPI_Comm_size(host, &n);
    g->is_far = n < g->n_ranks;
    return code == MPI_SUCCESS ? MPI_Comm_free(&host) : code;
}

/* Each process makes one; together they are all groups of the axes. Lowest: which of them, since they have no rank in common. */
static weft_status make(weft_mpi_group *g, int lowest, int self, weft_error *error)
{
    int code = MPI_Comm_split(weft_mpi_comm(), lowest, self, &g->comm);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = find_host(g);
    if (code == MPI_SUCCESS) code = MPI_Type_contiguous(BLOCK_BYTES, MPI_BYTE, &g->block);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&g->block);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "making a group of ranks", code);
}

static weft_mpi_group *blank(const int *ranks, int n_ranks)
{
    static int64_t n_made; /* on all processes alike: who has no memory counts too */
    n_made++;
    weft_mpi_group *g = malloc(sizeof *g + (size_t)n_ranks * sizeof *g->offsets);
    if (g == NULL) return NULL;
    *g = (weft_mpi_group){
        .comm = MPI_COMM_NULL, .block = MPI_DATATYPE_NULL, .number = n_made, .n_ranks = n_ranks};
    for (int i = 0; i < n_ranks; i++)
        g->offsets[i] = ranks[i] - ranks[0];
    return g;
}

/* One that was left, if all processes have the same one, else a new one. They agree on which, and so that none waits for one
 * without memory. */
static weft_status find_group(const int *ranks, weft_comm *end, weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    bool is_same = false;
    weft_mpi_group *g = weft_mpi_group_left(ranks, end->n_ranks);
    WEFT_TRY(weft_mpi_same(g != NULL ? g->number : 0, &is_same, error));
    if (g != NULL && is_same) {
        weft_mpi_group_take(g);
        end->state = g;
        return WEFT_OK;
    }
    end->state = g = blank(ranks, end->n_ranks);
    if (g == NULL) weft_fail_memory(&own, sizeof *g);
    const weft_status status = weft_world_agree(&own);
    if (status != WEFT_OK) return weft_fail(error, status, "%s", own.message);
    return make(g, ranks[0], end->self, error);
}

static weft_status group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *const *ends,
                                int n_ends, weft_error *error)
{
    static uint64_t n_users; /* on all processes alike: groups are made together */
    weft_comm *end = ends[0];
    weft_error own = WEFT_NO_ERROR;
    int *ranks = malloc((size_t)end->n_ranks * sizeof *ranks);
    (void)n_ends; /* one */
    end->state = NULL;
    if (ranks == NULL) weft_fail_memory(&own, (size_t)end->n_ranks * sizeof *ranks);
    weft_status status = weft_world_agree(&own); /* or all would wait for one without memory */
    if (status != WEFT_OK) {
        weft_fail(error, status, "%s", own.message);
    } else {
        weft_mesh_group(mesh, axes, end->rank, ranks, NULL);
        n_users++;
        status = find_group(ranks, end, error);
    }
    free(ranks);
    if (status != WEFT_OK) return status;
    weft_mpi_group *g = end->state;
    g->user = n_users;
    const weft_host_shm_peers peers = {end->n_ranks, end->self, gather, agree, g};
    return weft_shm_reduce_make(&peers, &end->window, error);
}

static void group_destroy(weft_comm *const *ends, int n_ends)
{
    weft_comm *end = ends[0];
    (void)n_ends; /* one */
    weft_shm_reduce_destroy(&end->window);
    if (end->state != NULL) weft_mpi_group_leave(end->state);
    end->state = NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* One direction of one exchange with one peer. */
typedef struct message {
    char *data;
    int64_t bytes;
    int peer, tag;
    bool is_send;
} message;

static int post(weft_comm_exchange *exchange, const message *m, char *data, int count,
                MPI_Datatype type)
{
    side *mine = exchange->state;
    const weft_mpi_group *g = exchange->comm->state;
    MPI_Request *request = &mine->requests[mine->n_requests].request;
    const int code = m->is_send ? MPI_Isend(data, count, type, m->peer, m->tag, g->comm, request)
                                : MPI_Irecv(data, count, type, m->peer, m->tag, g->comm, request);
    if (code != MPI_SUCCESS) return code;
    mine->requests[mine->n_requests++].expected = m->is_send         ? -1
                                                  : type == MPI_BYTE ? count
                                                                     : (int64_t)count * BLOCK_BYTES;
    return code;
}

/* Of the call, and of who uses the group now. */
static int tag_of(const weft_comm_exchange *exchange)
{
    const weft_mpi_group *g = exchange->comm->state;
    const uint64_t print = weft_digest(exchange->fingerprint, &g->user, sizeof g->user);
    return weft_mpi_tag(print, exchange->ticket);
}

/* Both sides cut a message in the same way, from its bytes alone. */
static int post_message(weft_comm_exchange *exchange, const message *m)
{
    const weft_mpi_group *g = exchange->comm->state;
    if (m->bytes == 0) return MPI_SUCCESS;
    if (m->bytes <= INT_MAX) return post(exchange, m, m->data, (int)m->bytes, MPI_BYTE);
    const int64_t n_blocks = m->bytes / BLOCK_BYTES, rest = m->bytes % BLOCK_BYTES;
    if (n_blocks > INT_MAX) return MPI_ERR_COUNT;
    const int code = post(exchange, m, m->data, (int)n_blocks, g->block);
    if (code != MPI_SUCCESS || rest == 0) return code;
    return post(exchange, m, m->data + n_blocks * BLOCK_BYTES, (int)rest, MPI_BYTE);
}

static int post_all(weft_comm_exchange *exchange, const weft_parts *parts, bool is_send)
{
    const weft_comm *comm = exchange->comm;
    const int tag = tag_of(exchange);
    for (int i = 1; i < comm->n_ranks; i++) {
        const int step = is_send ? i : comm->n_ranks - i; /* not all to one at a time */
        const int peer = (comm->self + step) % comm->n_ranks;
        const int64_t bytes = parts->bytes ? parts->bytes[peer] : parts->all_bytes;
        if (bytes == 0) continue;
        const message m = {parts->data + (parts->bytes ? parts->at[peer] : 0), bytes, peer, tag,
                           is_send};
        const int code = post_message(exchange, &m);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
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
static weft_status check_length(const weft_comm *comm, const MPI_Status *about, int64_t expected,
                                weft_error *error)
{
    MPI_Count bytes = 0;
    if (expected < 0) return WEFT_OK;
    MPI_Get_elements_x(about, MPI_BYTE, &bytes);
    if (bytes == expected) return WEFT_OK;
    return weft_fail(error, WEFT_MISMATCH,
                     "rank %d of a group of %d sends %lld bytes to rank %d, which expects "
                     "%lld; both sides must give the same count",
                     about->MPI_SOURCE, comm->n_ranks, (long long)bytes, comm->self,
                     (long long)expected);
}

/* Open MPI looks at what comes by TCP in one of eight times that it is asked how a message fares, and a look takes
 * microseconds. So all that a rank has under way is asked for together, eight times; and who computes looks no more often than
 * costs a hundredth of its time, a millisecond apart at most: sockets hold what comes meanwhile. (ZeRO 3 between two hosts,
 * 400 mbit: 467 -> 451 ms a step.) Within a host messages move only while somebody looks. */
enum { ASKED = 8, APART = 100, APART_AT_MOST_NS = 1000000 };

/* Of the process, as its rank is. */
static struct {
    const weft_desk *desk; /* of the last look, with its round */
    uint64_t round;
    bool is_one;  /* that round looks */
    int64_t next; /* when who computes looks again, ns */
} look;

static int test_often(MPI_Request *request, int *is_over, MPI_Status *about)
{
    const int64_t begin = weft_sync_now();
    int code = MPI_SUCCESS;
    for (int i = 0; i < ASKED && code == MPI_SUCCESS && !*is_over; i++)
        code = MPI_Test(request, is_over, about);
    const int64_t now = weft_sync_now(), apart = APART * (now - begin);
    look.next = now + (apart < APART_AT_MOST_NS ? apart : APART_AT_MOST_NS);
    return code;
}

/* Whether this round of the desk looks at all, and whether this request is its first. */
static bool looks(const weft_comm *comm, bool *is_first)
{
    const weft_desk *desk = comm->desk;
    const weft_mpi_group *g = comm->state;
    *is_first = look.desk != desk || look.round != desk->round;
    if (*is_first) look.is_one = desk->is_waiting || weft_sync_now() >= look.next;
    look.desk = desk;
    look.round = desk->round;
    return look.is_one || !g->is_far;
}

static int test(const weft_comm *comm, MPI_Request *request, int *is_over, MPI_Status *about)
{
    bool is_first;
    *is_over = 0;
    if (!looks(comm, &is_first)) return MPI_SUCCESS;
    return is_first ? test_often(request, is_over, about) : MPI_Test(request, is_over, about);
}

/* One by one: where a message was longer than expected, MPI_Testall of Open MPI 4.1 does not come to an end. */
static bool test_all(void *argument)
{
    weft_comm_exchange *exchange = argument;
    side *mine = exchange->state;
    for (; mine->n_over < mine->n_requests; mine->n_over++) {
        MPI_Status about;
        int is_over = 0;
        const int code =
            test(exchange->comm, &mine->requests[mine->n_over].request, &is_over, &about);
        const int64_t expected = mine->requests[mine->n_over].expected;
        if (code != MPI_SUCCESS)
            return fail_wait(exchange->comm, code, &about, expected, &exchange->error) != WEFT_OK;
        if (!is_over) return false;
        (void)!check_length(exchange->comm, &about, expected, &exchange->error);
    }
    return true;
}

static bool poll(weft_comm_exchange *exchange)
{
    return weft_mpi_look(test_all, exchange);
}

/* ---- exchanges --------------------------------------------------------------------------------- */

static int64_t exchange_bytes(const weft_comm *comm)
{
    const side *any = NULL;
    return (int64_t)(sizeof *any + PER_PEER * (size_t)comm->n_ranks * sizeof *any->requests);
}

static weft_status copy_own(const weft_comm_exchange *exchange, weft_error *error)
{
    const weft_parts *send = &exchange->send, *recv = &exchange->recv;
    const int self = exchange->comm->self;
    const int64_t bytes = send->bytes ? send->bytes[self] : send->all_bytes;
    const int64_t expected = recv->bytes[self];
    if (bytes != expected)
        return weft_fail(
            error, WEFT_MISMATCH,
            "rank %d of a group of %d sends %lld bytes to itself, but expects %lld; both "
            "must be the same count",
            self, exchange->comm->n_ranks, (long long)bytes, (long long)expected);
    if (bytes == 0) return WEFT_OK;
    const char *from = send->data + (send->bytes ? send->at[self] : 0);
    char *to = recv->data + recv->at[self];
    if (to != from) memcpy(to, from, (size_t)bytes);
    return WEFT_OK;
}

static weft_status start(weft_comm_exchange *exchange, weft_error *error)
{
    side *mine = exchange->state;
    mine->n_requests = mine->n_over = 0;
    int code = post_all(exchange, &exchange->recv, false);
    if (code == MPI_SUCCESS) code = post_all(exchange, &exchange->send, true);
    if (code != MPI_SUCCESS) return weft_mpi_fail(error, "an exchange", code);
    return copy_own(exchange, error);
}

static weft_status pass_on(weft_comm_exchange *exchange, const message *m, weft_error *error)
{
    const int code = post_message(exchange, m);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "broadcast", code);
}

/* A binomial tree over the ranks counted from the root: who has the bytes after k rounds is 2^k. */
static weft_status broadcast(weft_comm_exchange *exchange, int root, void *data, int64_t bytes,
                             weft_error *error)
{
    side *mine = exchange->state;
    const int n = exchange->comm->n_ranks, own = (exchange->comm->self - root + n) % n;
    message m = {data, bytes, 0, tag_of(exchange), false};
    int bit = 1;
    mine->n_requests = mine->n_over = 0;
    while (bit < n && !(own & bit))
        bit <<= 1;
    if (own > 0) {
        m.peer = (own - bit + root) % n;
        WEFT_TRY(pass_on(exchange, &m, error));
        WEFT_TRY(weft_exchange_wait(exchange, error));
    }
    m.is_send = true;
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (own + bit >= n) continue;
        m.peer = (own + bit + root) % n;
        WEFT_TRY(pass_on(exchange, &m, error));
    }
    return weft_exchange_wait(exchange, error);
}

const weft_engine weft_engine_mpi = {
    .size = sizeof(weft_engine),
    .name = "mpi",
    .takes = takes,
    .group_create = group_create,
    .group_destroy = group_destroy,
    .exchange_bytes = exchange_bytes,
    .start = start,
    .poll = poll,
    .broadcast = broadcast,
};
