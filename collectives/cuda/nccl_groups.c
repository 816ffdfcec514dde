/* nccl_groups: a communicator for each set of axes: that of all ranks is made first, of an id that its first rank makes and tells the
 * others by the engine below; those of fewer axes are split from it.
 */
#include "nccl_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The groups of all ranks of the meshes there are: others are split from them. */
enum { MOST_MESHES = 64 };
static struct {
    const weft_mesh *mesh; /* NULL: free */
    weft_comm *const *ends;
} wholes[MOST_MESHES]; /* the controlling thread's */

static int find_whole(const weft_mesh *mesh)
{
    int at = 0;
    while (at < MOST_MESHES && wholes[at].mesh != mesh)
        at++;
    return at;
}

static nccl_group *group_of(const weft_comm *end)
{
    return weft_comm_state(end);
}

/* ---- made -------------------------------------------------------------------------------------- */

/* What one of these does for one rank: starts to make its communicator. */
typedef struct making {
    const weft_mesh *mesh;
    uint32_t axes;
    ncclUniqueId id;         /* of a group of all ranks */
    weft_comm *const *whole; /* of the same ranks, or NULL: this is it */
    ncclConfig_t config;
} making;

static int lowest_of(const making *m, int rank)
{
    int at[WEFT_MAX_AXES];
    weft_mesh_coordinates(m->mesh, rank, at);
    for (int a = 0; a < weft_mesh_n_axes(m->mesh); a++)
        if (m->axes >> a & 1) at[a] = 0;
    return weft_mesh_rank(m->mesh, at);
}

static ncclResult_t begin_one(making *m, int i, weft_comm *end)
{
    const int rank = weft_comm_rank(end), self = weft_comm_self(end);
    weft_stream *stream = weft_mesh_stream((weft_mesh *)(uintptr_t)m->mesh, rank);
    nccl_group *group = group_of(end);
    cuda_enter_gpu(cuda_stream_of(stream)->gpu);
    if (m->whole == NULL)
        return nccl.ncclCommInitRankConfig(&group->comm, weft_comm_n_ranks(end), m->id, self,
                                           &m->config);
    return nccl.ncclCommSplit(group_of(m->whole[i])->comm, lowest_of(m, rank), self, &group->comm,
                              &m->config);
}

static bool is_worse(ncclResult_t a, ncclResult_t than)
{
    return than == ncclSuccess || (than == ncclInProgress && a != ncclSuccess);
}

/* Several ranks of a process in one go: each waits for the others. */
static ncclResult_t begin_all(making *m, weft_comm *const *ends, int n_ends)
{
    ncclResult_t worst = nccl.ncclGroupStart();
    for (int i = 0; i < n_ends; i++) {
        const ncclResult_t result = begin_one(m, i, ends[i]);
        if (is_worse(result, worst)) worst = result;
    }
    const ncclResult_t result = nccl.ncclGroupEnd();
    return is_worse(result, worst) ? result : worst;
}

/* A split is the old communicators' doing before there are new ones, of all ranks of the process: each waits for the others. */
static weft_status settle_all(const making *m, weft_comm *const *ends, int n_ends,
                              ncclResult_t result, const char *what, weft_error *error)
{
    for (int i = 0; i < n_ends && m->whole != NULL; i++)
        WEFT_TRY(nccl_settle(group_of(m->whole[i]), result, what, error));
    if (m->whole != NULL) result = ncclInProgress;
    for (int i = 0; i < n_ends; i++) {
        const bool is_made = group_of(ends[i])->comm != NULL;
        WEFT_TRY(nccl_settle(group_of(ends[i]), is_made ? result : ncclInternalError, what, error));
    }
    return WEFT_OK;
}

/* The first rank's, to all: each of them is a process, or they are all here. */
static weft_status share_id(const weft_mesh *mesh, weft_comm *const *ends, ncclUniqueId *id,
                            weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    nccl_group none = {0};
    if (weft_mesh_is_root(mesh))
        (void)!nccl_settle(&none, nccl.ncclGetUniqueId(id), "ncclGetUniqueId", &own);
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh))
        return own.status == WEFT_OK ? WEFT_OK : weft_fail(error, own.status, "%s", own.message);
    if (weft_world_agree(&own) != WEFT_OK) return weft_fail(error, own.status, "%s", own.message);
    return weft_broadcast(weft_comm_below(ends[0]), 0, id, sizeof *id, error);
}

static weft_status take_groups(weft_comm *const *ends, int n_ends, weft_error *error)
{
    for (int i = 0; i < n_ends; i++) {
        nccl_group *group = calloc(1, sizeof *group);
        if (group == NULL) return weft_fail_memory(error, sizeof *group);
        weft_comm_set_state(ends[i], group);
    }
    return WEFT_OK;
}

static weft_status make(making *m, weft_comm *const *ends, int n_ends, weft_error *error)
{
    char what[120];
    snprintf(what, sizeof what, "making a group of %d ranks over axes 0x%x of mesh %.60s",
             weft_comm_n_ranks(ends[0]), (unsigned)m->axes, weft_mesh_text(m->mesh));
    if (m->whole == NULL) WEFT_TRY(share_id(m->mesh, ends, &m->id, error));
    m->config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    m->config.blocking = 0;
    return settle_all(m, ends, n_ends, begin_all(m, ends, n_ends), what, error);
}

/* What is half made. */
static void give_up_all(weft_comm *const *ends, int n_ends)
{
    for (int i = 0; i < n_ends; i++) {
        nccl_group *group = group_of(ends[i]);
        if (group->comm != NULL) (void)nccl.ncclCommAbort(group->comm);
        group->comm = NULL;
    }
}

weft_status nccl_group_create(const weft_mesh *mesh, uint32_t axes, weft_comm *const *ends,
                              int n_ends, weft_error *error)
{
    weft_error own = WEFT_NO_ERROR;
    const bool is_whole = axes + 1 == 1u << weft_mesh_n_axes(mesh);
    const int at = find_whole(is_whole ? NULL : mesh);
    if (weft_comm_n_ranks(ends[0]) > 1 && at == MOST_MESHES)
        weft_fail(
            &own, WEFT_USAGE,
            "engine nccl: there are groups of %d meshes, which is the most; destroy those that "
            "are not needed",
            MOST_MESHES);
    if (own.status == WEFT_OK) (void)take_groups(ends, n_ends, &own);
    if (weft_world_agree(&own) != WEFT_OK) return weft_fail(error, own.status, "%s", own.message);
    if (weft_comm_n_ranks(ends[0]) == 1) return WEFT_OK;
    making m = {.mesh = mesh, .axes = axes, .whole = is_whole ? NULL : wholes[at].ends};
    (void)make(&m, ends, n_ends, &own);
    if (weft_world_agree(&own) != WEFT_OK) {
        give_up_all(ends, n_ends);
        return weft_fail(error, own.status, "%s", own.message);
    }
    if (is_whole) wholes[at].mesh = mesh, wholes[at].ends = ends;
    return WEFT_OK;
}

/* ---- destroyed --------------------------------------------------------------------------------- */

/* Ranks of a process come to the end together. */
void nccl_group_destroy(weft_comm *const *ends, int n_ends)
{
    for (int i = 0; i < MOST_MESHES; i++)
        if (wholes[i].ends == ends) wholes[i].mesh = NULL, wholes[i].ends = NULL;
    ncclResult_t results[2] = {ncclSuccess, ncclSuccess};
    for (int i = 0; i < n_ends; i++) {
        nccl_group *group = group_of(ends[i]);
        if (group == NULL || group->comm == NULL) continue;
        results[0] = nccl.ncclCommFinalize(group->comm);
        if (results[0] != ncclSuccess) results[1] = results[0];
    }
    for (int i = 0; i < n_ends; i++) {
        nccl_group *group = group_of(ends[i]);
        if (group == NULL) continue;
        if (group->comm != NULL &&
            nccl_settle(group, results[1], "ending a group", NULL) == WEFT_OK)
            (void)nccl.ncclCommDestroy(group->comm);
        free(group);
        weft_comm_set_state(ends[i], NULL);
    }
}
