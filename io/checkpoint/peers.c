/* peers: what the processes of a mesh tell each other during a save or restore. */
#include "peers.h"

#include "weft/extend/engine.h"

#include <stdlib.h>
#include <string.h>

/* What one process cannot do, all return: nobody goes on to a call in which that one would be waited for. */
static weft_status settle(weft_error *own, weft_error *error)
{
    if (weft_world_agree(own) == WEFT_OK) return WEFT_OK;
    return weft_fail(error, own->status, "%s", own->message);
}

weft_status weft_peers_open(weft_mesh *mesh, weft_peers *peers, weft_error *error)
{
    const uint32_t everybody = (1u << weft_mesh_n_axes(mesh)) - 1;
    *peers = (weft_peers){.n = 1};
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh)) return WEFT_OK;
    weft_error own = WEFT_NO_ERROR;
    (void)!weft_comms_create(mesh, &peers->comms, &own);
    weft_status status = settle(&own, error);
    if (status == WEFT_OK) status = weft_comms_prepare(peers->comms, everybody, error);
    peers->comm = weft_comm_of(peers->comms, weft_mesh_first_local(mesh), everybody);
    weft_comm_exchange *first = NULL; /* it is kept for later ones */
    if (status == WEFT_OK) status = weft_exchange_take(peers->comm, &first, error);
    weft_exchange_give(first);
    if (status == WEFT_OK) {
        peers->n = weft_comm_n_ranks(peers->comm);
        peers->self = weft_comm_self(peers->comm);
    } else {
        weft_peers_close(peers);
    }
    return status;
}

void weft_peers_close(weft_peers *peers)
{
    weft_comms_destroy(&peers->comms);
    *peers = (weft_peers){.n = 1};
}

weft_status weft_peers_gather(const weft_peers *peers, const void *mine, int64_t bytes, void *all,
                              weft_error *error)
{
    if (bytes == 0) return WEFT_OK;
    if (peers->comm == NULL) {
        if (all == NULL) return weft_fail_memory(error, (size_t)bytes);
        memcpy(all, mine, (size_t)bytes);
        return WEFT_OK;
    }
    weft_error own = WEFT_NO_ERROR;
    if (all == NULL) weft_fail_memory(&own, (size_t)(peers->n * bytes));
    WEFT_TRY(settle(&own, error));
    return weft_comm_gather(peers->comm, mine, bytes, all, error);
}

weft_status weft_peers_join(const weft_peers *peers, void *data, int64_t bytes, weft_error *error)
{
    const int64_t count = bytes / (int64_t)sizeof(int32_t);
    if (peers->comm == NULL || count == 0) return WEFT_OK;
    const int64_t scratch_bytes = weft_all_reduce_scratch(peers->comm, WEFT_SUM, WEFT_I32, count);
    void *scratch = aligned_alloc(WEFT_ALIGNMENT, (size_t)weft_aligned(scratch_bytes + 1));
    weft_error own = WEFT_NO_ERROR;
    if (scratch == NULL) weft_fail_memory(&own, (size_t)scratch_bytes);
    weft_status status = settle(&own, error);
    if (status == WEFT_OK)
        status =
            weft_all_reduce(peers->comm, WEFT_SUM, WEFT_I32, data, data, count, scratch, error);
    free(scratch);
    return status;
}

weft_status weft_peers_tell(const weft_peers *peers, void *data, int64_t bytes, weft_error *error)
{
    if (peers->comm == NULL || bytes == 0) return WEFT_OK;
    return weft_broadcast(peers->comm, 0, data, bytes, error);
}
