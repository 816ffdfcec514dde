/* hear: a few bytes of every rank, to all. */
#include "program.h"
#include "weft/extend/engine.h"

#include <stdlib.h>

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
    const size_t room = (size_t)(weft_mesh_n_ranks(program->mesh) * bytes);
    weft_comm *comm =
        weft_comm_of(program->comms, weft_mesh_first_local(program->mesh), weft_all_axes(program));
    weft_error refused = WEFT_NO_ERROR;
    *all = calloc(1, room);
    if (!*all) weft_fail_memory(&refused, room);
    (void)!weft_reserve_exchange(comm, &refused);
    (void)weft_world_agree(&refused); /* nobody waits for a rank that has no room to listen */
    if (refused.status == WEFT_OK) return weft_comm_gather(comm, own, bytes, *all, error);
    free(*all);
    *all = NULL;
    return weft_fail(error, refused.status, "%s", refused.message);
}
