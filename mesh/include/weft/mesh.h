/* mesh.h: the processor mesh: named axes, ranks and their coordinates, groups, and the ranks' threads.
 *
 *     weft_world world;
 *     WEFT_TRY(weft_world_open(&world, &error));                  (collectives.h: alone, mpirun, srun)
 *     WEFT_TRY(weft_mesh_create(&world, "data:2,model:2", &mesh, &error));
 *
 * Ranks are numbered row-major over the axes as written: the last axis varies fastest. Alone, all
 * ranks of a mesh are threads of this process; with several processes, each process is one rank.
 */
#ifndef WEFT_MESH_H
#define WEFT_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/device.h"
#include "weft/error.h"
#include "weft/name.h"

WEFT_BEGIN

enum { WEFT_MAX_AXES = 6, WEFT_MAX_RANKS = 1 << 20 };

/* The processes this one was started with. Filled by weft_world_open. */
typedef struct weft_world {
    int n_processes;      /* in the whole job                             */
    int process;          /* this one, from 0                             */
    int n_host_processes; /* of the job on this host: they share its cores */
    const char *launcher; /* "alone", "mpirun", "srun"                    */
    int host_process;     /* this one among those of the host, from 0      */
    /* of the host that are this process's, where it shares some with others too; 0: not known */
    double cores;
    int n_sharing; /* processes on the core of its that most are on, itself too; 0: not known */
    int n_used;    /* cores of the host that some process of the job may use; 0: not known */
} weft_world;

typedef struct weft_mesh weft_mesh; /* opaque */

/* weft_mesh_create - parse a mesh and start its local ranks. Collective over the world.
 *
 * world   borrowed during the call
 * text    "data:2,model:4"; NULL or "" means "data:N", N = the number of processes
 * returns WEFT_USAGE for a text that does not parse (with the place), a repeated axis, a size below 1,
 *         more than WEFT_MAX_AXES axes, a size that is not the world's when there are more processes
 *         than one (with both numbers), or more threads than the system allows (with both numbers)
 * cost    one thread per lane of each local rank, the calling one among them
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_mesh_create(const weft_world *world, const char *text,
                                                      weft_mesh **mesh, weft_error *error);

/* weft_mesh_plan - a mesh without ranks, for planning: nothing can run on it. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_mesh_plan(const char *text, weft_mesh **mesh,
                                                    weft_error *error);

/* weft_mesh_destroy - Local. WEFT_USAGE, and *mesh stays as it is, while programs or communicators of it are there:
 * destroy those first. */
WEFT_API weft_status weft_mesh_destroy(weft_mesh **mesh);

/* weft_mesh_keep, weft_mesh_release - for whoever holds a mesh beyond a call: from the one to the other it refuses to
 * be destroyed. Local. */
WEFT_API void weft_mesh_keep(weft_mesh *mesh);
WEFT_API void weft_mesh_release(weft_mesh *mesh);

/* All Local. Names are borrowed; an axis is an index in the order written. Without a mesh (NULL), and for an axis or
 * rank that it has not, these return 0, "", -1 or NULL. */
WEFT_API const char *weft_mesh_text(const weft_mesh *mesh); /* canonical: "data:2,model:2" */
WEFT_API int weft_mesh_n_axes(const weft_mesh *mesh);
WEFT_API const char *weft_mesh_axis_name(const weft_mesh *mesh, int axis);
WEFT_API int weft_mesh_axis_size(const weft_mesh *mesh, int axis);
WEFT_API int weft_mesh_find_axis(const weft_mesh *mesh, const char *name); /* -1: no such axis */
WEFT_API int weft_mesh_n_ranks(const weft_mesh *mesh);
WEFT_API int weft_mesh_n_local(const weft_mesh *mesh); /* ranks in this process; 0 for a plan  */
/* its lowest rank */
WEFT_API int weft_mesh_first_local(const weft_mesh *mesh);
WEFT_API bool weft_mesh_is_root(const weft_mesh *mesh); /* holds rank 0: the one that prints    */

/* Local. coordinates [n_axes] of `rank`, and back. */
WEFT_API void weft_mesh_coordinates(const weft_mesh *mesh, int rank, int *coordinates);
WEFT_API int weft_mesh_rank(const weft_mesh *mesh, const int *coordinates);

/* weft_mesh_group - the ranks that differ from `rank` only along the axes in `axes` (bit a = axis a),
 * in row-major order of those axes. Local.
 *
 * ranks   [product of those axes' sizes], or NULL to count only
 * self    where `rank` stands among them; may be NULL
 * returns how many
 */
WEFT_API int weft_mesh_group(const weft_mesh *mesh, uint32_t axes, int rank, int *ranks, int *self);

/* weft_mesh_each - run `body` once for every local rank, each on its own thread; returns when all are
 * done. Collective over the ranks of this process. Not to be nested.
 */
typedef void (*weft_rank_body)(void *argument, int rank);
WEFT_API void weft_mesh_each(weft_mesh *mesh, weft_rank_body body, void *argument);

/* Local. The device that tensors of its ranks live on (weft_devices); the stream (on the CPU a thread team) of a local
 * rank; how many lanes each local rank has: the threads of its team. */
WEFT_API weft_device_kind weft_mesh_device(const weft_mesh *mesh);
WEFT_API weft_stream *weft_mesh_stream(weft_mesh *mesh, int rank);
WEFT_API int weft_mesh_lanes(const weft_mesh *mesh);

/* weft_mesh_crowding - a sentence about wasted cores or crowded lanes of this host, with the way out; "": nothing.
 * Local.
 *
 * text  [room] gets it
 */
WEFT_API void weft_mesh_crowding(const weft_mesh *mesh, char *text, size_t room);

/* weft_lanes_choose - lanes of a rank in meshes created from now on, at most WEFT_MAX_LANES; 0: its share of the
 * cores. No number depends on it. Local. */
enum { WEFT_MAX_LANES = 1024 }; /* a thread each, with a stack each */
WEFT_API void weft_lanes_choose(int lanes);

/* weft_blas_start - make BLAS run on the calling thread only, and put its kernel right where it took the
 * processor for an older one; a kernel that OPENBLAS_CORETYPE names is kept. Local.
 *
 * Once a process, further calls do nothing. Before the first BLAS call: no other thread may be in one.
 */
WEFT_API void weft_blas_start(void);

/* weft_machine - the machine as found, for `weft info`. Local. Texts are static or live for ever. */
typedef struct weft_machine {
    const char *processor;          /* "AMD EPYC"                                          */
    int n_cores;                    /* that this process may use (its affinity mask)       */
    int n_threads;                  /* hardware threads of these: more where cores have several */
    int host_cores, host_threads;   /* that are there, whatever the mask                   */
    int n_nodes;                    /* of memory (NUMA)                                    */
    int n_kinds, kind_cores[8];     /* of the n_cores: fast and slow ones; slower ones first */
    double cpu_quota;               /* cores that the control group has time for; 0: no limit */
    int64_t memory_limit;           /* of the control group, bytes; 0: no limit            */
    int64_t threads_limit;          /* that may be there at once; 0: no limit              */
    const char *threads_limit_name; /* what says so: "ulimit -u"                          */
    int64_t memory_bytes;           /* of the machine                                      */
    int64_t l2_bytes, l3_bytes;     /* 0 when unknown                                      */
    const char *blas;               /* "OpenBLAS 0.3.21"                                   */
    const char *blas_kernel;        /* in use: "SkylakeX"                                  */
    const char *blas_kernel_found;  /* as the library chose it, before it was put right */
} weft_machine;
WEFT_API const weft_machine *weft_machine_info(void);
/* weft_machine_memory - bytes that all processes of this host may have together: the machine's, or its control group's where
 * those are fewer. Local. */
WEFT_API int64_t weft_machine_memory(void);

WEFT_END

#endif
