/* hear: a few bytes of every rank, to all. */
#include "program.h"
#include "weft/extend/engine.h"

#include <stdlib.h>
#include <string.h>

weft_status weft_reserve_exchange(weft_comm *comm, weft_error *error)
{
    weft_comm_exchange *exchange;
    WEFT_TRY(weft_exchange_take(comm, &exchange, error));
    weft_exchange_give(exchange);
    return WEFT_OK;
}

weft_status weft_hear_all(weft_program *program, const void *own, int64_t bytes, void **all,
                          weft_error *error)
{
    const int n = weft_mesh_n_ranks(program->mesh), first = weft_mesh_first_local(program->mesh);
    const size_t n_places = 2 * (size_t)n * sizeof(int64_t), room = n_places + (size_t)(n * bytes);
    weft_comm *comm = weft_comm_of(program->comms, first, weft_all_axes(program));
    weft_error refused = WEFT_NO_ERROR;
    int64_t *places = calloc(1, room);
    *all = NULL;
    if (!places) weft_fail_memory(&refused, room);
    (void)!weft_reserve_exchange(comm, &refused);
    (void)weft_world_agree(&refused); /* nobody waits for a rank that has no room to listen */
    weft_status status = refused.status;
    if (status != WEFT_OK) {
        free(places);
        return weft_fail(error, status, "%s", refused.message);
    }
    for (int r = 0; r < n; r++) {
        places[r] = bytes;
        places[n + r] = r * bytes;
    }
    char *heard = (char *)(places + 2 * n);
    weft_request request;
    status = weft_all_gather_start(comm, own, bytes, heard, places, places + n, &request, error);
    if (status == WEFT_OK) status = weft_wait(&request, error);
    memmove(places, heard, (size_t)(n * bytes));
    *all = places;
    return status;
}
