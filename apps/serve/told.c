/* told: a broadcast, where there is another process to hear it. */
#include "told.h"

weft_status serve_told_open(serve_told *told, weft_mesh *mesh, weft_error *error)
{
    const uint32_t all = (1u << weft_mesh_n_axes(mesh)) - 1;
    *told = (serve_told){NULL};
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh)) return WEFT_OK;
    (void)!weft_comms_create(mesh, &told->comms, error);
    WEFT_TRY(weft_world_agree(error));
    WEFT_TRY(weft_comms_prepare(told->comms, all, error));
    told->comm = weft_comm_of(told->comms, weft_mesh_first_local(mesh), all);
    return WEFT_OK;
}

weft_status serve_told_send(const serve_told *told, void *bytes, int64_t n, weft_error *error)
{
    return told->comm ? weft_broadcast(told->comm, 0, bytes, n, error) : WEFT_OK;
}

void serve_told_close(serve_told *told)
{
    weft_comms_destroy(&told->comms);
    *told = (serve_told){NULL};
}
