/* nccl_parts.h: NCCL, loaded where it is first wanted: never linked, so a machine without it exchanges through staging and that is all.
 *
 * Communicators do not block: what is asked of one is done when its state is no longer ncclInProgress, and until then nothing else
 * may be asked of it.
 */
#ifndef WEFT_CUDA_NCCL_PARTS_H
#define WEFT_CUDA_NCCL_PARTS_H

#include <nccl.h>

#include "mesh/cuda/parts.h"
#include "weft/extend/engine.h"

typedef struct nccl_library {
#define NCCL_CALL(name) __typeof__(name) *name;
#include "nccl_list.inc"
#undef NCCL_CALL
} nccl_library;

/* The members have the functions' names. */
extern nccl_library nccl;

/* One rank's end of a group. */
typedef struct nccl_group {
    ncclComm_t comm; /* NULL: a group of one, or given up */
} nccl_group;

/* nccl_open - load it, once; any thread. Refused with a sentence: it is not there; it is older than the headers.
 * on_one_gpu: ranks of this host, which are processes, share GPUs, and NCCL is told so. */
weft_status nccl_open(bool on_one_gpu, weft_error *error);
/* nccl_settle - until what was asked last is done, as far as the host has to do with it; result: what the call gave. `what` names
 * it. A group that fails is given up. */
weft_status nccl_settle(nccl_group *group, ncclResult_t result, const char *what,
                        weft_error *error);
/* nccl_look - whether it still works; never waits. */
weft_status nccl_look(nccl_group *group, weft_error *error);

/* nccl_groups.c: as weft_engine has them. */
weft_status nccl_group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *const *ends,
                              int n_ends, weft_error *error);
void nccl_group_destroy(weft_comm *const *ends, int n_ends);

/* nccl_engine.c: makes the engine known, for meshes on that device. */
weft_status cuda_nccl_open(weft_device_kind device, weft_error *error);

#endif
