/* nccl_engine: the engine nccl: what lies on GPUs goes from GPU to GPU by NCCL, what lies with the host by the engine below. */
#include "nccl_parts.h"

#include <stdlib.h>
#include <string.h>

static int device_kind = -1;
static bool is_asked_for; /* by its name */

/* ---- what the host has: by the engine below ----------------------------------------------------- */

typedef struct carried {
    weft_comm_exchange *below;
} carried;

static int64_t exchange_bytes(const weft_comm *comm)
{
    (void)comm;
    return sizeof(carried);
}

static weft_status exchange_create(weft_comm_exchange *exchange, weft_error *error)
{
    carried *mine = exchange->state;
    return weft_exchange_take(weft_comm_below(exchange->comm), &mine->below, error);
}

static void exchange_destroy(weft_comm_exchange *exchange)
{
    weft_exchange_give(((carried *)exchange->state)->below);
}

static weft_status start(weft_comm_exchange *exchange, weft_error *error)
{
    carried *mine = exchange->state;
    mine->below->send = exchange->send;
    mine->below->recv = exchange->recv;
    return weft_exchange_begin(mine->below, exchange->ticket, exchange->fingerprint, error);
}

static bool poll(weft_comm_exchange *exchange)
{
    const carried *mine = exchange->state;
    if (!weft_exchange_poll(mine->below)) return false;
    weft_fail(&exchange->error, mine->below->error.status, "%s", mine->below->error.message);
    return true;
}

/* ---- which meshes ------------------------------------------------------------------------------ */

static weft_status set(const char *settings, weft_error *error)
{
    is_asked_for = true;
    if (settings[0] == '\0') return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "engine nccl has no settings, and was given \"%.200s\"; write nccl alone",
                     settings);
}

static bool is_shared(void)
{
    const char *share = getenv("WEFT_SHARE_GPU");
    return share != NULL && strcmp(share, "1") == 0;
}

/* Ranks of one process on one GPU no setting helps. */
static weft_status check_local(const weft_mesh *mesh, weft_error *error)
{
    const int n = weft_mesh_n_local(mesh), first = weft_mesh_first_local(mesh);
    weft_mesh *of = (weft_mesh *)(uintptr_t)mesh;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            const cuda_gpu *gpu = cuda_stream_of(weft_mesh_stream(of, first + i))->gpu;
            if (cuda_stream_of(weft_mesh_stream(of, first + k))->gpu != gpu) continue;
            return weft_fail(
                error, WEFT_USAGE,
                "engine nccl: ranks %d and %d of this process are on one GPU, cuda %d, "
                "which NCCL refuses; start a process for each rank, or exchange by "
                "--engine threads",
                first + k, first + i, gpu->ordinal);
        }
    return WEFT_OK;
}

/* Where GPUs are shared NCCL is for tests, and staging is faster: it has to be asked for. */
static weft_status takes(const weft_mesh *mesh, weft_error *error)
{
    if ((int)weft_mesh_device(mesh) != device_kind)
        return weft_fail(error, WEFT_USAGE,
                         "engine nccl is for the device cuda, and mesh %.200s is on the device %s; "
                         "choose another engine, or --device cuda",
                         weft_mesh_text(mesh), weft_devices[weft_mesh_device(mesh)]->name);
    if (is_shared() && !is_asked_for)
        return weft_fail(error, WEFT_USAGE, "engine nccl: several ranks may share a GPU");
    WEFT_TRY(check_local(mesh, error));
    return nccl_open(is_shared() && weft_mesh_n_local(mesh) < weft_mesh_n_ranks(mesh), error);
}

/* ---- what GPUs have ---------------------------------------------------------------------------- */

static weft_status fail_given_up(weft_error *error)
{
    return weft_fail(
        error, WEFT_COMM,
        "NCCL: this group was given up when a call in it failed; continue from the last "
        "checkpoint");
}

/* The driver's stream to put something onto; NULL: the stream or the group has failed. */
static cuda_queue *queue_of(const weft_comm *comm, const weft_device_queue *on, weft_error *error)
{
    const nccl_group *group = weft_comm_state(comm);
    cuda_queue *q = cuda_queue_for(on->stream, on->queue);
    if (q == NULL)
        (void)!cuda_failed(on->stream, error);
    else if (group->comm == NULL)
        (void)!fail_given_up(error);
    return q != NULL && group->comm != NULL ? q : NULL;
}

static int64_t bytes_to(const weft_parts *parts, int r)
{
    return parts->bytes != NULL ? parts->bytes[r] : parts->all_bytes;
}

static char *place_of(const weft_parts *parts, int r)
{
    return parts->data + (parts->bytes != NULL ? parts->at[r] : 0);
}

/* All have as much for all, which lies in the order of the ranks: the same on all of them. */
static bool is_even_gather(const weft_comm *comm, const weft_parts *send, const weft_parts *recv)
{
    if (send->bytes != NULL || send->all_bytes == 0) return false;
    for (int r = 0; r < weft_comm_n_ranks(comm); r++)
        if (recv->bytes[r] != send->all_bytes || recv->at[r] != r * send->all_bytes) return false;
    return true;
}

static bool is_fine(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

static ncclResult_t send_all(const weft_comm *comm, CUstream stream, const weft_parts *send,
                             const weft_parts *recv)
{
    const nccl_group *group = weft_comm_state(comm);
    const int n = weft_comm_n_ranks(comm), self = weft_comm_self(comm);
    ncclResult_t result = nccl.ncclGroupStart();
    for (int i = 1; i < n && is_fine(result); i++) {
        const int to = (self + i) % n, from = (self - i + n) % n;
        if (bytes_to(send, to) > 0)
            result = nccl.ncclSend(place_of(send, to), (size_t)bytes_to(send, to), ncclChar, to,
                                   group->comm, stream);
        if (is_fine(result) && recv->bytes[from] > 0)
            result = nccl.ncclRecv(place_of(recv, from), (size_t)recv->bytes[from], ncclChar, from,
                                   group->comm, stream);
    }
    const ncclResult_t ended = nccl.ncclGroupEnd();
    return is_fine(result) ? ended : result;
}

static void copy_own(const weft_comm *comm, const weft_device_queue *on, const weft_parts *send,
                     const weft_parts *recv)
{
    const int self = weft_comm_self(comm);
    if (recv->bytes[self] > 0 && place_of(recv, self) != place_of(send, self))
        cuda_copy(on->stream, on->queue, place_of(recv, self), place_of(send, self),
                  (size_t)recv->bytes[self]);
}

static weft_status put(weft_comm *comm, const weft_device_queue *on, const weft_parts *send,
                       const weft_parts *recv, weft_error *error)
{
    nccl_group *group = weft_comm_state(comm);
    cuda_queue *q = queue_of(comm, on, error);
    if (q == NULL) return WEFT_COMM;
    q->has_more = true;
    if (is_even_gather(comm, send, recv))
        return nccl_settle(group,
                           nccl.ncclAllGather(send->data, recv->data, (size_t)send->all_bytes,
                                              ncclChar, group->comm, q->stream),
                           "ncclAllGather", error);
    copy_own(comm, on, send, recv);
    return nccl_settle(group, send_all(comm, q->stream, send, recv), "ncclSend and ncclRecv",
                       error);
}

/* Sums alone: NCCL's maximum takes no NaN, and sums of 16 bits it would round at every rank. */
static const int types[WEFT_DTYPES] = {[WEFT_F32] = 1 + ncclFloat32,
                                       [WEFT_F64] = 1 + ncclFloat64,
                                       [WEFT_I32] = 1 + ncclInt32,
                                       [WEFT_I64] = 1 + ncclInt64};

static bool reduces(const weft_comm *comm, const weft_combining *rule)
{
    (void)comm;
    return rule->combine == WEFT_SUM && types[rule->dtype] != 0;
}

static weft_status put_reduce(weft_comm *comm, const weft_device_queue *on,
                              const weft_device_reduce *r, weft_error *error)
{
    nccl_group *group = weft_comm_state(comm);
    const ncclDataType_t type = (ncclDataType_t)(types[r->rule->dtype] - 1);
    cuda_queue *q = queue_of(comm, on, error);
    if (q == NULL) return WEFT_COMM;
    q->has_more = true;
    if (r->is_scattered)
        return nccl_settle(group,
                           nccl.ncclReduceScatter(r->send, r->recv, (size_t)r->count, type, ncclSum,
                                                  group->comm, q->stream),
                           "ncclReduceScatter", error);
    return nccl_settle(group,
                       nccl.ncclAllReduce(r->send, r->recv, (size_t)r->count, type, ncclSum,
                                          group->comm, q->stream),
                       "ncclAllReduce", error);
}

static weft_status check(weft_comm *comm, weft_error *error)
{
    return nccl_look(weft_comm_state(comm), error);
}

static const weft_engine engine = {.size = sizeof engine,
                                   .name = "nccl",
                                   .below = "",
                                   .set = set,
                                   .takes = takes,
                                   .group_create = nccl_group_create,
                                   .group_destroy = nccl_group_destroy,
                                   .exchange_bytes = exchange_bytes,
                                   .exchange_create = exchange_create,
                                   .exchange_destroy = exchange_destroy,
                                   .start = start,
                                   .poll = poll,
                                   .put = put,
                                   .reduces = reduces,
                                   .put_reduce = put_reduce,
                                   .check = check};

weft_status cuda_nccl_open(weft_device_kind device, weft_error *error)
{
    device_kind = (int)device;
    return weft_extend_engine(&engine, error);
}
