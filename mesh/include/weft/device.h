/* device.h: where tensors live and kernels run: the device table, and streams.
 *
 * One table per kind of device. The CPU's stream is a team of threads, one team per rank; kernels ask
 * it to run a loop (weft_parallel). BLAS is always called from inside the team, single-threaded.
 */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <stdint.h>

#include "weft/error.h"

WEFT_BEGIN

typedef enum weft_device_kind { WEFT_CPU = 0, WEFT_DEVICES = 1 } weft_device_kind;

typedef struct weft_stream weft_stream; /* opaque; belongs to one rank */

typedef struct weft_device {
    const char *name;
    weft_status (*take)(size_t bytes, void **memory, weft_error *error); /* aligned to 64, zeroed */
    void (*give)(void *memory, size_t bytes);
    weft_status (*stream_create)(int n_lanes, weft_stream **stream, weft_error *error);
    void (*stream_destroy)(weft_stream **stream);
    void (*copy)(weft_stream *stream, void *to, const void *from, size_t bytes);
    void (*wait)(weft_stream *stream); /* until all that was launched on it is done */
    /* What was taken is about to be used, all of it: its pages may be made now, by all lanes. */
    void (*touch)(weft_stream *stream, void *memory, size_t bytes);
} weft_device;

WEFT_API extern const weft_device *const weft_devices[WEFT_DEVICES];

/* weft_parallel - cut [0, count) into pieces of at least `grain` and run `body` on them. Local.
 *
 * Only the thread that owns the stream calls it; not nested. body(argument, begin, end, lane) runs with
 * lane in [0, lanes); two calls with one lane never overlap. Runs inline when one piece is enough, or stream is NULL.
 */
typedef void (*weft_piece)(void *argument, int64_t begin, int64_t end, int lane);
WEFT_API void weft_parallel(weft_stream *stream, int64_t count, int64_t grain, weft_piece body,
                            void *argument);
WEFT_API int weft_stream_lanes(const weft_stream *stream);
/* weft_stream_meanwhile - from now on the owner's thread, lane 0, calls this in the middle of long loops, a few times a
 * millisecond: for what must not wait until a kernel is done, as messages. It may not use the stream. Elements are worked
 * on in the same order as without it. NULL: nothing. Local. */
typedef void (*weft_meanwhile)(void *argument);
WEFT_API void weft_stream_meanwhile(weft_stream *stream, weft_meanwhile meanwhile, void *argument);

/* weft_stream_pause - what is done meanwhile has its turn, if lane is 0 and it is time. Takes as long as a look at a clock.
 * Local. */
WEFT_API void weft_stream_pause(weft_stream *stream, int lane);
/* weft_parallel_whole - weft_parallel for a body that does much for its whole piece, as packing what all of it reads: the
 * piece is one call, during which the body calls weft_stream_pause now and then. Local. */
WEFT_API void weft_parallel_whole(weft_stream *stream, int64_t count, int64_t grain,
                                  weft_piece body, void *argument);

/* weft_stream_scratch - WEFT_LANE_SCRATCH bytes for one lane, aligned to 64, made with the stream; NULL for a lane that
 * it has not. Local. */
enum { WEFT_LANE_SCRATCH = 2 << 20 };
WEFT_API void *weft_stream_scratch(weft_stream *stream, int lane);

WEFT_END

#endif
