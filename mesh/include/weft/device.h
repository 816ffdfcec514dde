/* device.h: where tensors live and kernels run: the device table, and streams.
 *
 *     const weft_device *device = weft_devices[weft_mesh_device(mesh)];
 *     WEFT_TRY(device->take(stream, bytes, &memory, error));
 *     device->put(stream, memory, numbers, bytes);                         the host's numbers, into a tensor
 *     device->copy(stream, WEFT_COMPUTE, other, memory, bytes);            after all that is on that queue
 *     device->wait(stream, device->record(stream, WEFT_COMPUTE));
 *
 * One table per kind of device, and nothing touches a tensor's memory but through it. The CPU's stream is a team of threads,
 * one team per rank; kernels ask it to run a loop (weft_parallel). BLAS is always called from inside the team,
 * single-threaded.
 */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/error.h"

WEFT_BEGIN

/* Numbers of devices are places in weft_devices; devices not added yet are NULL. */
typedef enum weft_device_kind { WEFT_CPU = 0, WEFT_DEVICES = 8 } weft_device_kind;

typedef struct weft_stream weft_stream; /* opaque; belongs to one rank, and has queues */

/* A queue does its commands in order, when events allow it. Queues of a stream are independent of each other, except
 * for events. Kernels and loops are put onto WEFT_COMPUTE. Exchanges have the others: a queue's number is the set of
 * axes that they go over, so few are used. */
enum { WEFT_COMPUTE = 0, WEFT_QUEUES = 64 };

/* Opaque: commands that a device has kept, once put onto a queue. */
typedef struct weft_kept weft_kept;

/* All that was put onto a queue before. number 0: nothing. */
typedef struct weft_event {
    int queue;
    uint64_t number;
} weft_event;

/* Elements that lie in two boxes, as loops over runs that are contiguous in both. All in elements. */
enum { WEFT_BOX_LOOPS = 8 };
typedef struct weft_box_copy {
    int64_t from_at, to_at; /* the first element's place in each box                */
    int64_t run;            /* elements that are contiguous in both; at least 1     */
    int n_loops;            /* 0: all of it is one run                              */
    int64_t count[WEFT_BOX_LOOPS], from_stride[WEFT_BOX_LOOPS],
        to_stride[WEFT_BOX_LOOPS]; /* innermost first */
} weft_box_copy;

/* weft_box_copy_add - one more dim of `count` elements outside those there are, which begin as {.run = 1}: a part of the run
 * or of a loop where it is in line with that. At most WEFT_BOX_LOOPS dims are added; of less than 1 or more than 2^50
 * elements, or by such strides: nothing. Local.
 * weft_copy_box - what devices do with it, done by this thread, from the host's memory to the host's. `to` and `from` are
 * distinct; elements have 1, 2, 4 or 8 bytes. Of other elements, no memory, no box or no run: nothing. Local. */
WEFT_API void weft_box_copy_add(weft_box_copy *box, int64_t count, int64_t from_stride,
                                int64_t to_stride);
WEFT_API void weft_copy_box(void *to, const void *from, const weft_box_copy *box, size_t element);

/* How states are combined: by number and dtype, and as the host does it. A state is `width` numbers of `element` bytes. */
typedef struct weft_combining {
    int combine, dtype, width; /* a weft_combine, a weft_dtype */
    int64_t element;
    /* out [n_states] = a with b; out is a or b, or neither. into [n_states] = nothing combined. */
    void (*host)(void *out, const void *a, const void *b, int64_t n_states);
    void (*identity)(void *into, int64_t n_states);
} weft_combining;

/* One GPU, or what a device has else of units with memory of their own. */
typedef struct weft_device_unit {
    uint64_t id;        /* the same in all processes, and no other unit's */
    bool may_be_shared; /* by several ranks: the user has said so */
    char name[48];      /* as its device counts it: "cuda 1 (NVIDIA H200)" */
    char way_out[40];   /* how the user says so: "set WEFT_SHARE_GPU=1" */
} weft_device_unit;

/* Tensors, homes, scratch and what lies in them one behind the other begin at lines of memory. */
enum { WEFT_ALIGNMENT = 64 };
static inline int64_t weft_aligned(int64_t bytes) /* up to the next line's begin */
{
    return (bytes + WEFT_ALIGNMENT - 1) / WEFT_ALIGNMENT * WEFT_ALIGNMENT;
}

/* Memory is the device's (take) or staging (take_staging), and `bytes` or elements are at least 1, unless said otherwise.
 * Functions that have a queue return at once. All but put and get are called by one thread at a time, the stream's owner. */
typedef struct weft_device {
    const char *name;
    bool is_open; /* the host reads and writes the device's memory where it lies */
    /* by which its ranks exchange where it can (weft/extend/engine.h); NULL: as any others */
    const char *engine;
    /* aligned to WEFT_ALIGNMENT, where the stream's rank has its tensors; take: of any content; give takes NULL */
    weft_status (*take)(weft_stream *stream, size_t bytes, void **memory, weft_error *error);
    weft_status (*take_zeroed)(weft_stream *stream, size_t bytes, void **memory, weft_error *error);
    void (*give)(weft_stream *stream, void *memory, size_t bytes);
    int64_t (*room)(
        weft_stream *stream); /* bytes that may be taken yet; -1, or NULL: nobody knows */
    /* Memory of the host's, zeroed, that the device's queues read and write too. */
    weft_status (*take_staging)(size_t bytes, void **memory, weft_error *error);
    void (*give_staging)(void *memory, size_t bytes);
    weft_status (*stream_create)(int n_lanes, weft_stream **stream, weft_error *error);
    /* For the at-th of the ranks of this host, from 0: who has several units shares them out by it. Once, before anything
     * else is done with the stream. NULL: they are all the same to it. */
    weft_status (*seat)(weft_stream *stream, int at, weft_error *error);
    /* The unit that a stream is on. NULL: all ranks of a host are on one, and share it as they like. */
    void (*unit)(weft_stream *stream, weft_device_unit *unit);
    void (*stream_destroy)(weft_stream **stream);
    /* Between the device's memory and the host's. They return when it is done, after all that was on the stream; on any
     * thread. bytes may be 0. */
    void (*put)(weft_stream *stream, void *to, const void *from, size_t bytes);
    void (*get)(weft_stream *stream, void *to, const void *from, size_t bytes);
    void (*copy)(weft_stream *stream, int queue, void *to, const void *from, size_t bytes);
    /* to and from are whole boxes, distinct memory; element: bytes of one. combine: what is in `to` with what comes. */
    void (*copy_box)(weft_stream *stream, int queue, void *to, const void *from,
                     const weft_box_copy *box, size_t element);
    void (*combine_box)(weft_stream *stream, int queue, void *to, const void *from,
                        const weft_box_copy *box, const weft_combining *rule);
    void (*identity)(weft_stream *stream, int queue, void *into, int64_t n_states,
                     const weft_combining *rule);
    /* record: what is on the queue now. follow: the queue goes on when that is done, and not before. is_done: whether it
     * is. wait: until it is. finish: until all queues are empty. */
    weft_event (*record)(weft_stream *stream, int queue);
    void (*follow)(weft_stream *stream, int queue, weft_event event);
    bool (*is_done)(weft_stream *stream, weft_event event);
    void (*wait)(weft_stream *stream, weft_event event);
    void (*finish)(weft_stream *stream);
    /* The amount of finished work of all queues: it grows as long as the device goes on. Never waits. NULL: nobody
     * knows. */
    uint64_t (*done)(weft_stream *stream);
    /* This memory is about to be used, all of it: its pages may be made now, by all lanes. memory may be NULL. */
    void (*touch)(weft_stream *stream, void *memory, size_t bytes);
    /* From now on this is called in the middle of long kernels, a few times a millisecond, by the owner's thread: for
     * what must not wait until a kernel is done, as messages. It may not use the stream. NULL: nothing. Only open
     * devices have it: no thread of the host's is in the kernels of others. */
    void (*meanwhile)(weft_stream *stream, void (*meanwhile)(void *argument), void *argument);
    /* The first thing that went wrong on the stream since it was made, as a sentence; functions that return nothing leave it
     * here, and do nothing from then on. NULL: nothing can. */
    weft_status (*failed)(weft_stream *stream, weft_error *error);
    /* Commands put onto WEFT_COMPUTE between keep_begin and keep_end are not done but kept, to be done as one thing
     * (keep_run), any number of times, with the number of the run that it is part of. In between nothing else is
     * asked of the stream. keep_begin false, keep_end NULL: it is not kept, and `why` says why, in a part of a
     * sentence; nothing of it was done. NULL, all four: the device keeps nothing. */
    bool (*keep_begin)(weft_stream *stream, weft_error *why);
    weft_kept *(*keep_end)(weft_stream *stream, weft_error *why);
    void (*keep_run)(weft_stream *stream, weft_kept *kept, uint32_t run);
    void (*keep_drop)(weft_stream *stream, weft_kept **kept);
    /* Which device it is, in words. NULL: its name says it. */
    void (*describe)(char *text, size_t room);
} weft_device;

/* The CPU, and what was added; NULL: there is no such device. */
WEFT_API extern const weft_device *weft_devices[WEFT_DEVICES];
static inline const weft_device *weft_host_device(void) /* the one of the host's memory */
{
    return weft_devices[WEFT_CPU];
}

/* weft_device_choose - meshes that are created from now on are on this device: "cpu", "cuda", or "auto", which is cuda where
 * there is one and the CPU elsewhere. Local; the same on all processes.
 *
 * The code of a device other than the CPU is a library beside libweft.so (libweft_cuda.so), or in the folder that the
 * environment's WEFT_DEVICE_PATH names. It is loaded when it is first asked for, and stays.
 * errors  USAGE, in a sentence that says whether the library, the driver or the device is not there
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_device_choose(const char *name, weft_error *error);
/* weft_device_look - whether there is such a device, without choosing it; its table is then in weft_devices. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_device_look(const char *name, weft_error *error);

/* weft_device_add - one more device, known by its name: what a library of WEFT_DEVICE_PATH calls when it is loaded. The table is
 * not copied, and lives as long as the process; it is that of this version of Weft, and of no other. Local; before a mesh is
 * made on it.
 * errors  USAGE for a name that is none, or taken, or where WEFT_DEVICES are there already
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_device_add(const weft_device *device,
                                                     weft_device_kind *kind, weft_error *error);

/* weft_parallel - cut [0, count) into pieces of at least `grain` and run `body` on them. Local.
 *
 * Only the thread that owns the stream calls it; not nested. body(argument, begin, end, lane) runs with
 * lane in [0, lanes); two calls with one lane never overlap. Runs inline when one piece is enough, or stream is NULL.
 */
typedef void (*weft_piece)(void *argument, int64_t begin, int64_t end, int lane);
WEFT_API void weft_parallel(weft_stream *stream, int64_t count, int64_t grain, weft_piece body,
                            void *argument);
WEFT_API int weft_stream_lanes(const weft_stream *stream);
/* weft_stream_meanwhile - a CPU stream's `meanwhile`: lane 0 calls it. Elements are worked on in the same order as without
 * it. Local. */
typedef void (*weft_meanwhile)(void *argument);
WEFT_API void weft_stream_meanwhile(weft_stream *stream, weft_meanwhile meanwhile, void *argument);

/* weft_stream_pause - the stream's `meanwhile` has its turn, if lane is 0 and it is time. Takes as long as a look at
 * a clock. Local. */
WEFT_API void weft_stream_pause(weft_stream *stream, int lane);
/* weft_parallel_whole - weft_parallel for a body that does much for its whole piece, as packing what all of it reads: the
 * piece is one call, during which the body calls weft_stream_pause now and then. Local. */
WEFT_API void weft_parallel_whole(weft_stream *stream, int64_t count, int64_t grain,
                                  weft_piece body, void *argument);
/* weft_stream_take - the next items for this lane, in the body of a loop of weft_parallel_whole. At most `most` items
 * come from its own piece while there are any, then from the piece of a lane that is further behind. false: none are
 * left. The call finishes the items taken before. weft_stream_again, after that, begins with its piece once more, in
 * another pass. All lanes do so equally often. An item is taken only when the pass before has finished it. For bodies
 * whose bits do not depend on who does what; a body that never takes does its piece. Local. */
WEFT_API bool weft_stream_take(weft_stream *stream, int lane, int64_t most, int64_t *begin,
                               int64_t *end);
WEFT_API void weft_stream_again(weft_stream *stream, int lane);

/* weft_stream_scratch - WEFT_LANE_SCRATCH bytes for one lane, aligned to 64, made with the stream; NULL for a lane that
 * it has not. Local. */
enum { WEFT_LANE_SCRATCH = 2 << 20 };
WEFT_API void *weft_stream_scratch(weft_stream *stream, int lane);

WEFT_END

#endif
