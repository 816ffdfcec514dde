/* told.h: what the root of a server tells the other ranks: bytes, before each step. */
#ifndef WEFT_APPS_SERVE_TOLD_H
#define WEFT_APPS_SERVE_TOLD_H

#include "weft/collectives.h"

typedef struct serve_told {
    weft_comms *comms; /* NULL: all ranks are in this process, and see the root's memory */
    weft_comm *comm;
} serve_told;

/* serve_told_open - Collective over the job, as all here; agrees on failure. Own it: serve_told_close, also on failure. */
weft_status serve_told_open(serve_told *told, weft_mesh *mesh, weft_error *error);
/* serve_told_send - the root's bytes are then everybody's. */
weft_status serve_told_send(const serve_told *told, void *bytes, int64_t n, weft_error *error);
void serve_told_close(serve_told *told);

#endif
