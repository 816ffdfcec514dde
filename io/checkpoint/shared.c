/* shared: staging memory that all processes of one host can read. */
#include "shared.h"

static weft_status gather(void *context, const void *own, int64_t bytes, void *all,
                          weft_error *error)
{
    return weft_peers_gather(context, own, bytes, all, error);
}

static weft_status agree(void *context, weft_error *error)
{
    (void)context;
    return weft_world_agree(error);
}

weft_status weft_shared_make(weft_shared *s, const weft_peers *peers, int64_t bytes,
                             weft_error *error)
{
    bool is_short = false;
    weft_peers all = *peers;
    const weft_host_shm_peers near = {all.n, all.self, gather, agree, &all};
    if (s->is_refused) return WEFT_OK;
    WEFT_TRY(weft_world_any(s->near.n == 0 || s->near.bytes < bytes, &is_short, error));
    if (!is_short) return WEFT_OK;
    weft_host_shm_free(&s->near);
    const weft_status status = weft_host_shm_make(&s->near, &near, bytes, error);
    s->is_refused = status == WEFT_OK && s->near.n == 0;
    return status;
}

void weft_shared_free(weft_shared *s)
{
    weft_host_shm_free(&s->near);
    *s = (weft_shared){0};
}
