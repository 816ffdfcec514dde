/* mesh_internal.h: what the files of this room share and nobody else sees. */
#ifndef WEFT_MESH_INTERNAL_H
#define WEFT_MESH_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "sync.h"
#include "weft/arena.h"
#include "weft/device.h"
#include "weft/mesh.h"

/* ---- team.c: threads that sleep between runs ------------------------------------------------- */

weft_patience weft_patience_for(bool has_core_each);
/* weft_lanes_crowd - whether threads outnumber cores in the streams that are made from now on; weft_patience_of_lanes
 * - of one that has so many lanes. */
void weft_lanes_crowd(bool are_crowded);
weft_patience weft_patience_of_lanes(int n_lanes);

typedef struct weft_team weft_team;
typedef void (*weft_team_body)(void *argument, int member);

/* `n_members` - 1 threads; member 0 is whoever calls weft_team_run. Local. */
weft_status weft_team_create(int n_members, weft_patience patience, weft_team **team,
                             weft_error *error);
void weft_team_destroy(weft_team **team);
/* body(argument, m) for every member m < n_called, each on its own thread; returns when all are
 * done. */
void weft_team_run(weft_team *team, int n_called, weft_team_body body, void *argument);
/* The same for bodies that neither wait for each other nor ask which thread they run on: the caller, done with its own, runs those
 * that their members have not begun. */
void weft_team_share(weft_team *team, int n_called, weft_team_body body, void *argument);
/* What a member waits for. Borrowed; read from any thread. */
weft_wait_sign *weft_team_sign(weft_team *team, int member);

/* ---- work_sharing.c: what lanes take of a loop ------------------------------------------------------- */

typedef struct weft_work weft_work;
/* NULL: no memory. */
weft_work *weft_work_create(int n_lanes);
void weft_work_destroy(weft_work *shares);
/* A loop of `count` items begins, a piece for each of n_lanes; nobody takes anything yet. */
void weft_work_begin(weft_work *shares, int64_t count, int n_lanes);
/* A lane's own piece. */
void weft_work_piece(const weft_work *shares, int lane, int64_t *begin, int64_t *end);
/* weft_stream_take, weft_stream_again; sign: the lane's, or NULL */
bool weft_work_take(weft_work *shares, int lane, int64_t most, weft_wait_sign *sign, int64_t *begin,
                    int64_t *end);
void weft_work_again(weft_work *shares, int lane);

/* ---- stream.c, device.c, box_copy.c ---------------------------------------------------------------------- */

weft_status weft_stream_create_cpu(int n_lanes, weft_stream **stream, weft_error *error);
void weft_stream_destroy_cpu(weft_stream **stream);
void weft_copy_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                       const weft_box_copy *box, size_t element);
void weft_combine_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                          const weft_box_copy *box, const weft_combining *rule);
void weft_identity_cpu(weft_stream *stream, int queue, void *into, int64_t n_states,
                       const weft_combining *rule);
extern const weft_device weft_device_cpu;
/* Memory of the host's: aligned to 64, zeroed, large pieces on large pages. give takes NULL, and the bytes that were asked
 * for. Local. */
weft_status weft_host_take(size_t bytes, void **memory, weft_error *error);
void weft_host_give(void *memory, size_t bytes);
/* Whether the system would give that much, for a library that does not ask, or not live through a refusal. Local. */
bool weft_has_free_memory(size_t bytes);
int64_t weft_host_free_memory(void); /* bytes that are free; -1: the system does not say */

/* ---- topology.c, blas.c ---------------------------------------------------------------------- */

/* Which OpenBLAS kernel to change to, or NULL to keep `found`. Pure. */
const char *weft_blas_kernel_wanted(const char *found, bool has_avx2, bool has_avx512);
/* Make OpenBLAS use kernel `name`; false, and nothing changed, when it cannot. No BLAS call may be
 * under way. */
bool weft_blas_use_kernel(const char *name);
/* Memory for as many calls at once, so that none asks for it later. Local. */
weft_status weft_blas_reserve(int n_callers, weft_error *error);
const char *weft_blas_kernel(void);       /* in use now; "" when not known */
const char *weft_blas_kernel_found(void); /* as chosen by the library itself */
const char *weft_blas_name(void);         /* "OpenBLAS 0.3.21" */

/* ---- mesh_text.c, mesh.c --------------------------------------------------------------------- */

typedef struct weft_mesh_axis {
    const char *name;
    int size;
    int stride; /* rank distance of neighbours along it */
} weft_mesh_axis;

struct weft_mesh {
    weft_arena *arena; /* names and text */
    const char *text;
    int n_axes, n_ranks;
    weft_mesh_axis axes[WEFT_MAX_AXES];
    int n_local, first_local;
    int n_lanes; /* of each local rank */
    weft_crowd crowd;
    weft_device_kind device;
    atomic_int n_users;    /* programs and communicators that were made on it and are there still */
    weft_team *team;       /* the threads of the local ranks; NULL for a plan */
    weft_stream **streams; /* [n_local] */
};

/* Fill text, axes and n_ranks of a mesh that has an arena. */
weft_status weft_mesh_parse(weft_mesh *mesh, const char *text, weft_error *error);

#endif
