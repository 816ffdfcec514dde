/* collectives.h: moving elements between ranks, and agreeing on failure.
 *
 *     WEFT_TRY(weft_world_open(&world, &error));                first call of a program
 *     WEFT_TRY(weft_comms_create(mesh, &comms, &error));
 *     weft_comm *comm = weft_comm_of(comms, rank, axes, &error); one rank's end of a group
 *     WEFT_TRY(weft_all_reduce(comm, WEFT_SUM, WEFT_F32, send, recv, count, scratch, &error));
 *
 * Engines behind one table: threads (all ranks in this process), MPI (one rank a process), and those from outside
 * (weft/extend/engine.h). On every engine parts are combined in rank order, so results are equal bit by bit.
 */
#ifndef WEFT_COLLECTIVES_H
#define WEFT_COLLECTIVES_H

#include "weft/layout.h"
#include "weft/mesh.h"

WEFT_BEGIN

/* weft_world_open - find out how this process was started, and join the others.
 *
 * Collective over the job. Under mpirun or srun (OMPI_COMM_WORLD_SIZE, PMIX_RANK, SLURM_PROCID) it calls
 * MPI_Init_thread, unless somebody has; alone it does not touch MPI. Also puts the BLAS kernel right.
 * returns WEFT_USAGE when started by a launcher but built without MPI, or when a launcher started several
 *         copies that do not see each other (srun without PMIx)
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_world_open(weft_world *world, weft_error *error);
/* Collective over the job. Last call; ends MPI if weft_world_open began it. */
WEFT_API void weft_world_close(void);
/* Local. The rank that prints, usable before and without weft_world_open. */
WEFT_API bool weft_world_is_root(void);
/* Local. Processes of the job on this host; 1 where no world is open. */
WEFT_API int weft_world_n_near(void);

/* weft_world_agree - every process passes its own error; all return the first failure (of the lowest
 * process) together. Collective over the job; alone it returns error->status. */
WEFT_API weft_status weft_world_agree(weft_error *error);

/* weft_world_any - whether any process says so: a decision that all take together, as stopping early. Collective over
 * the job; alone *any is `mine`. */
WEFT_API WEFT_MUST_CHECK weft_status weft_world_any(bool mine, bool *any, weft_error *error);

/* weft_engine_choose - the engine of all groups made from now on, of whatever mesh: its name, and after a colon its
 * settings, if it takes any: "threads", "link:50us,1GB". NULL or "", the default: for each mesh the first of Weft's
 * own that can carry it. All processes of a job choose the same; groups are refused where they do not. Local.
 *
 * returns WEFT_USAGE for an engine that is not there (with the nearest name), or settings that it does not take
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_engine_choose(const char *text, weft_error *error);

/* weft_sums_in_order - whether sums between ranks are always added up in the order of the ranks, as Weft's own
 * engines do it. A device's own sums (NCCL) are faster, and in an order that depends on the machine. The default is
 * false. All processes of a job alike, before groups are made. Local. */
WEFT_API void weft_sums_in_order(bool always);

typedef struct weft_comms weft_comms; /* all groups of a mesh, for the local ranks */
typedef struct weft_comm weft_comm;   /* one rank's end of one group               */

WEFT_API WEFT_MUST_CHECK weft_status weft_comms_create(weft_mesh *mesh, weft_comms **comms,
                                                       weft_error *error);
/* weft_comms_destroy - NULL is fine. Until then the mesh refuses to be destroyed. Local. */
WEFT_API void weft_comms_destroy(weft_comms **comms);

/* weft_comms_prepare - make the groups over `axes`. Collective over the mesh, once per set of axes, before any
 * rank asks for it, in one order everywhere (called from the thread that compiles). */
WEFT_API WEFT_MUST_CHECK weft_status weft_comms_prepare(weft_comms *comms, uint32_t axes,
                                                        weft_error *error);
/* Local. A local rank's end of a prepared group; NULL when it was not prepared or is not local. The
 * getters say 0, -1 and "" of NULL. */
WEFT_API weft_comm *weft_comm_of(weft_comms *comms, int rank, uint32_t axes);
WEFT_API int weft_comm_n_ranks(const weft_comm *comm);
WEFT_API int weft_comm_self(const weft_comm *comm);
WEFT_API const char *weft_comms_engine(const weft_comms *comms); /* "threads", "mpi", ... */

/* weft_comms_are_queued - whether exchanged data go from queue to queue of the mesh's device, and not through staging
 * that the host reads. false of NULL. Local. */
WEFT_API bool weft_comms_are_queued(const weft_comms *comms);

/* weft_comms_take - memory of this process's ranks. Other processes on its host see it, if the system grants that:
 * they read and write reduced data there themselves, as threads do, without copies. Collective over the mesh, from
 * the thread that compiles.
 *
 * bytes   for all of this process's ranks; other processes may ask for more or less
 * memory  zeros, aligned to 64; lives as long as comms
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_comms_take(weft_comms *comms, int64_t bytes,
                                                     void **memory, weft_error *error);
/* weft_comms_see - what a rank in another process has at the same distance from the begin of its memory as `memory` is from
 * the begin of ours, which was taken together with it. NULL: this process does not see it. Local. */
WEFT_API void *weft_comms_see(const weft_comms *comms, const void *memory, int rank);

typedef struct weft_comm_exchange weft_comm_exchange; /* weft/extend/engine.h */

/* One exchange under way. `send` may not be written, `recv` not read, until weft_wait has returned. Any number may be
 * under way, in any groups, and be waited for in any order, not the same on all ranks: a wait brings on all that its
 * rank has under way. They are *started* in one order in each group, the same on all its ranks. */
typedef struct weft_request {
    weft_comm *comm; /* NULL: never begun, or over */
    weft_comm_exchange *exchange;
    uint64_t call, fingerprint; /* as recorded (watch.h) */
} weft_request;

/* weft_all_to_all_start - rank i gets what each rank has for it.
 *
 * Collective over the group: all call, in one order. Offsets and counts in bytes, arrays [n_ranks], borrowed
 * until weft_wait has returned; 0 allowed.
 * send_at, recv_at  where each rank's part begins in send and recv
 */
WEFT_API weft_status weft_all_to_all_start(weft_comm *comm, const void *send,
                                           const int64_t *send_bytes, const int64_t *send_at,
                                           void *recv, const int64_t *recv_bytes,
                                           const int64_t *recv_at, weft_request *request,
                                           weft_error *error);
/* weft_all_gather_start - every rank gets what each rank has. Collective over the group; bytes. */
WEFT_API weft_status weft_all_gather_start(weft_comm *comm, const void *send, int64_t send_bytes,
                                           void *recv, const int64_t *recv_bytes,
                                           const int64_t *recv_at, weft_request *request,
                                           weft_error *error);
WEFT_API weft_status weft_wait(weft_request *request, weft_error *error);
/* weft_comm_gather - the same bytes of every rank, by rank: all [n_ranks * bytes]. Over when it returns; it takes no memory except
 * for the group's first exchange. A rank without room for `all` does not call: agree on that before. Collective over the group. */
WEFT_API weft_status weft_comm_gather(weft_comm *comm, const void *own, int64_t bytes, void *all,
                                      weft_error *error);
/* weft_comms_apart - why processes of this host do not see each other's memory although it was asked for: the refused
 * process, the owner of the memory, and the system's reason; "": nothing was refused. The same on all processes.
 * Lives as long as comms. Local. */
WEFT_API const char *weft_comms_apart(const weft_comms *comms);
/* weft_comms_poll - advance all exchanges under way of a local rank, as far as possible without waiting: for a caller
 * that computes meanwhile. From the rank's thread. Local. */
WEFT_API void weft_comms_poll(weft_comms *comms, int rank);

/* The links over one axis, as a rank of it sees them: what one rank sends a second, and what an exchange takes before
 * its first byte is there. Zeros: the axis has one rank. */
typedef struct weft_link_speed {
    double bytes_per_s, latency_s;
    bool is_between_hosts; /* some of its groups are on several */
} weft_link_speed;

/* weft_comms_measure - how fast the links over each axis are, while all groups over it exchange at once: some hundred
 * ms. All ranks get the same numbers, the slowest of all; another measurement gives others, so a plan is made of it
 * only on request, and keeps the text. Collective over the mesh, from the thread that compiles.
 *
 * speeds  [WEFT_MAX_AXES] by axis
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_comms_measure(weft_comms *comms, weft_link_speed *speeds,
                                                        weft_error *error);
/* weft_links_text - the same as weft_compile_options.link takes it: "data:48MB+1.1ms,model:5.2GB+4us", with two digits of each. Axes
 * of one rank are left out; "" where nothing is left, and of NULL. Local.
 *
 * speeds  [WEFT_MAX_AXES]
 * bytes   of text; 600 are enough
 */
WEFT_API void weft_links_text(const weft_mesh *mesh, const weft_link_speed *speeds, char *text,
                              size_t bytes);

/* weft_broadcast - the bytes of group rank `root` to all. Collective over the group. */
WEFT_API weft_status weft_broadcast(weft_comm *comm, int root, void *data, int64_t bytes,
                                    weft_error *error);

/* weft_all_reduce - combine a buffer over the group; every rank gets the result, bit for bit the same.
 *
 * Collective over the group. Combination runs in rank order.
 * send, recv  [count] elements; may be the same memory; count is a multiple of the combine's width
 * scratch     [weft_all_reduce_scratch(...)] bytes, aligned to 64
 * cost        2 (p-1)/p bytes/bandwidth + 2 (p-1) latency
 */
WEFT_API weft_status weft_all_reduce(weft_comm *comm, weft_combine combine, weft_dtype dtype,
                                     const void *send, void *recv, int64_t count, void *scratch,
                                     weft_error *error);
WEFT_API int64_t weft_all_reduce_scratch(const weft_comm *comm, weft_combine combine,
                                         weft_dtype dtype, int64_t count);

/* weft_combine_into - into[i] = into[i] combined with with[i], for `count` elements. Local. */
WEFT_API void weft_combine_into(weft_combine combine, weft_dtype dtype, void *into,
                                const void *with, int64_t count);
/* weft_combine_identity - fill [count] with the combine's neutral state. Local. */
WEFT_API void weft_combine_identity(weft_combine combine, weft_dtype dtype, void *into,
                                    int64_t count);

/* weft_calls_check - whether all ranks have made the same calls so far, in each group that they share: WEFT_MISMATCH names
 * two that have not. Collective over the group; comm NULL: over the ranks of this process, from the controlling thread.
 * cost    about 1.4 kB from every rank to every rank */
WEFT_API WEFT_MUST_CHECK weft_status weft_calls_check(weft_comm *comm, weft_error *error);

/* ---- conversions, executed ------------------------------------------------------------------- */

/* A conversion step made ready for one rank: pieces to pack, exchange, combine and unpack. It never changes, and may be
 * run by several at once. All kinds but all_reduce are one mechanism, the mover: it intersects source boxes with
 * destination boxes, sends every element once, and copies or combines. A value replicated over an axis is sent by the
 * nearest holder (itself when it has it). */
typedef struct weft_move weft_move; /* opaque */

/* weft_move_create - Local; pure. from_box and to_box of every rank of the group come from the step's specs.
 *
 * mesh    may be a plan (no ranks): then only bytes can be asked
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_move_create(const weft_mesh *mesh,
                                                      const weft_shape *shape, weft_dtype dtype,
                                                      const weft_convert_step *step, int rank,
                                                      weft_move **move, weft_error *error);
/* One tensor of a move, and its step: only `kind`, `axes`, `from` and `to` count. */
typedef struct weft_move_part {
    const weft_shape *shape;
    weft_convert_step step;
} weft_move_part;

/* weft_move_create_joined - several tensors in one exchange: small tensors pay an exchange's latency once, not once
 * for each. Every element goes where it would alone, and is combined as it would be alone, to the bit. Local; pure.
 *
 * parts   [n_parts] their steps have one kind, the same axes, and partial results that end by one combine
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_move_create_joined(const weft_mesh *mesh,
                                                             const weft_move_part *parts,
                                                             int n_parts, weft_dtype dtype,
                                                             int rank, weft_move **move,
                                                             weft_error *error);
/* The parts of a tensor that ranks have and get, where no spec says it. */
typedef struct weft_move_boxes {
    const weft_shape *shape;
    weft_dtype dtype;
    const weft_box *from, *to; /* [ranks of the mesh] */
} weft_move_boxes;

/* weft_move_create_boxes - a move among all ranks of the mesh that brings each its box in `to`, from whoever has it in `from`. Local;
 * pure. It goes from the host's memory to the host's, whatever device the mesh has, and is done by the thread that starts and
 * finishes its flight. Its group is that of all axes.
 *
 * boxes    borrowed during the call, the same on all ranks
 * returns  WEFT_USAGE for a box that is not within the shape, and where an element that the rank gets is in no box of `from`, or in
 *          those of two ranks */
WEFT_API WEFT_MUST_CHECK weft_status weft_move_create_boxes(const weft_mesh *mesh,
                                                            const weft_move_boxes *boxes, int rank,
                                                            weft_move **move, weft_error *error);
/* weft_move_destroy - refused, and changes nothing, while it has flights. */
WEFT_API void weft_move_destroy(weft_move **move);
WEFT_API int64_t weft_move_scratch(const weft_move *move); /* bytes, aligned to 64 */
/* == weft_convert_bytes, of all its tensors together */
WEFT_API int64_t weft_move_wire_bytes(const weft_move *move);

/* The memory of one of several tensors: the rank's boxes before and after, contiguous. */
typedef struct weft_move_memory {
    const void *from;
    void *to;
} weft_move_memory;

/* weft_move_bring - of an all_gather whose result all ranks of the group have in one memory: the rank's own part is
 * put where it belongs there, and nothing else is touched. When all have done so it is carried out. This never waits:
 * the caller makes sure that all have read the old data before, and that none reads before all is there. Local.
 *
 * memory  [of its tensors]
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_move_bring(const weft_move *move,
                                                     const weft_move_memory *memory,
                                                     weft_error *error);

/* A move that can be under way: one run of it at a time, as often as wanted. Flights of one move, and of many, may be
 * under way together: they are started in one order on all ranks of a group, and finished in any. */
typedef struct weft_flight weft_flight; /* opaque */

/* weft_flight_create - Local. comm: the group of the step's axes, NULL when axes is 0; borrowed, as the move. */
WEFT_API WEFT_MUST_CHECK weft_status weft_flight_create(weft_move *move, weft_comm *comm,
                                                        weft_flight **flight, weft_error *error);
/* weft_flight_destroy - refused, and changes nothing, while it is under way. Before its group is destroyed. Local. */
WEFT_API void weft_flight_destroy(weft_flight **flight);
/* weft_flight_stamp - when the rank sees that all of a run is there, the time goes to *arrived: ns of CLOCK_MONOTONIC. NULL, as at
 * first: nowhere. A flight whose device exchanges by itself, and one without others, write nothing. Local.
 *
 * arrived  borrowed until the next call, or the flight's end */
WEFT_API void weft_flight_stamp(weft_flight *flight, int64_t *arrived);
/* weft_flight_name - what reports call it: "of w.grad [hidden:64] f32", and where it comes from: ", called at model.c:88".
 * The first part must be the same on all ranks, and so must be `program`, a mark of what the move is a part of. Local. */
WEFT_API void weft_flight_name(weft_flight *flight, uint64_t program, const char *what,
                               const char *where);

/* weft_flight_start / weft_flight_finish - run it. Collective over the step's group; start never waits for others.
 *
 * from, to   the rank's boxes, contiguous; distinct memory, or the same where the step is an all_reduce
 * scratch    [weft_move_scratch] bytes, untouched by others between start and finish
 */
WEFT_API weft_status weft_flight_start(weft_flight *flight, const void *from, void *to,
                                       void *scratch, weft_error *error);
WEFT_API weft_status weft_flight_finish(weft_flight *flight, weft_error *error);
/* weft_flight_settle - of a flight that was put onto queues (weft_comms_are_queued) and finished: until it is over there, so that
 * what went wrong is known. Others are over when they are finished. Local. */
WEFT_API weft_status weft_flight_settle(weft_flight *flight, weft_error *error);
WEFT_API bool
weft_flight_is_started(const weft_flight *flight); /* and not yet finished; false of NULL */
/* weft_flight_start_joined - the same of a move of several tensors.
 *
 * memory   [n_parts] in the order of the move's parts; copied
 */
WEFT_API weft_status weft_flight_start_joined(weft_flight *flight, const weft_move_memory *memory,
                                              void *scratch, weft_error *error);

WEFT_END

#endif
