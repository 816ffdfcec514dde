/* parts.h: what the files of the CUDA device have in common: streams and what is launched on them. */
#ifndef WEFT_CUDA_PARTS_H
#define WEFT_CUDA_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"
#include "weft/device.h"

/* Events are used again: one that is recorded over stands for what comes later, so who waits for it waits long enough. */
enum { CUDA_EVENTS = 512 };

typedef struct cuda_queue {
    _Atomic(CUstream)
        stream; /* waits for no other by itself; NULL until something is put onto it */
    CUevent events[CUDA_EVENTS];
    uint64_t recorded, done; /* numbers: of the newest event, and of the newest known to be over */
    bool has_more;           /* than was recorded */
    int n_more;              /* so many calls */
} cuda_queue;

typedef struct cuda_stream {
    const cuda_gpu *gpu; /* NULL: it has no seat yet */
    cuda_queue queues[WEFT_QUEUES];
    pthread_mutex_t lock; /* over `error`: put and get are called on any thread */
    weft_error error;     /* the first; nothing more is put onto queues then   */
    atomic_bool has_failed;
    CUstream copies; /* of put and get, on whatever thread, after all queues; NULL until then */
    struct {         /* capture.c */
        pthread_mutex_t lock; /* held while calls are kept: put and get wait */
        bool is_on;
        weft_error error; /* the first, of what is being kept */
        /* on the GPU: the number of the run that is done again; 0 until something is kept */
        CUdeviceptr cell;
    } keep;
} cuda_stream;

static inline cuda_stream *cuda_stream_of(weft_stream *s)
{
    return (cuda_stream *)s;
}

/* cuda_queue_for - where to put something; NULL: nothing is, as something went wrong. What was put is told by cuda_put. */
cuda_queue *cuda_queue_for(weft_stream *stream, int queue);
void cuda_put(weft_stream *stream, cuda_queue *q, CUresult result, const char *call);
/* cuda_mark - an event behind what was put. */
void cuda_mark(weft_stream *stream, cuda_queue *q);
void cuda_fail(weft_stream *stream, const weft_error *error);

/* ---- queues.c -------------------------------------------------------------------------------- */

weft_status cuda_stream_create(int n_lanes, weft_stream **stream, weft_error *error);
weft_status cuda_seat(weft_stream *stream, int at, weft_error *error);
void cuda_unit(weft_stream *stream, weft_device_unit *unit);
void cuda_stream_destroy(weft_stream **stream);
weft_event cuda_record(weft_stream *stream, int queue);
void cuda_follow(weft_stream *stream, int queue, weft_event event);
bool cuda_is_done(weft_stream *stream, weft_event event);
void cuda_wait(weft_stream *stream, weft_event event);
void cuda_finish(weft_stream *stream);
uint64_t cuda_done(weft_stream *stream);
void cuda_meanwhile(weft_stream *stream, void (*meanwhile)(void *argument), void *argument);
weft_status cuda_failed(weft_stream *stream, weft_error *error);

/* ---- capture.c ---------------------------------------------------------------------------------- */

bool cuda_keep_begin(weft_stream *stream, weft_error *why);
weft_kept *cuda_keep_end(weft_stream *stream, weft_error *why);
void cuda_keep_run(weft_stream *stream, weft_kept *kept, uint32_t run);
void cuda_keep_drop(weft_stream *stream, weft_kept **kept);
/* Where kernels that are being kept find the number of the run, of 32 bits; NULL: they are not, and are told it. */
const void *cuda_keep_cell(weft_stream *stream);

/* ---- memory.c -------------------------------------------------------------------------------- */

weft_status cuda_take(weft_stream *stream, size_t bytes, void **memory, weft_error *error);
weft_status cuda_take_zeroed(weft_stream *stream, size_t bytes, void **memory, weft_error *error);
void cuda_give(weft_stream *stream, void *memory, size_t bytes);
int64_t cuda_room(weft_stream *stream);
int64_t cuda_gpu_room(const cuda_gpu *gpu);
weft_status cuda_take_staging(size_t bytes, void **memory, weft_error *error);
void cuda_give_staging(void *memory, size_t bytes);
void cuda_put_bytes(weft_stream *stream, void *to, const void *from, size_t bytes);
void cuda_get_bytes(weft_stream *stream, void *to, const void *from, size_t bytes);
void cuda_copy(weft_stream *stream, int queue, void *to, const void *from, size_t bytes);
/* Zero bytes, put onto a queue. */
void cuda_clear(weft_stream *stream, int queue, void *to, size_t bytes);

/* ---- boxes.c --------------------------------------------------------------------------------- */

void cuda_copy_box(weft_stream *stream, int queue, void *to, const void *from,
                   const weft_box_copy *box, size_t element);
void cuda_combine_box(weft_stream *stream, int queue, void *to, const void *from,
                      const weft_box_copy *box, const weft_combining *rule);
void cuda_identity(weft_stream *stream, int queue, void *into, int64_t n_states,
                   const weft_combining *rule);

/* ---- launch.c: kernels that come with the library --------------------------------------------- */

typedef struct cuda_kernel {
    const char *name; /* of the function in the image */
    CUkernel function;
} cuda_kernel;

/* cuda_load_image - a library of kernels, and each of them found. Local; once for each list. */
weft_status cuda_load_image(const void *image, cuda_kernel *const *kernels, int n,
                            weft_error *error);
/* cuda_launch - one thread for each of `n` things to do, up to a number that fills the GPU; kernels go round. `argument` is the kernel's
 * one argument, copied. n may be 0. */
void cuda_launch(weft_stream *stream, int queue, const cuda_kernel *kernel, int64_t n,
                 const void *argument);
/* The same with so many blocks of so many threads. */
void cuda_launch_blocks(weft_stream *stream, int queue, const cuda_kernel *kernel, int64_t n_blocks,
                        int n_threads, const void *argument);

/* cuda_device_open - the driver, the kernels and the device's table. Once. */
weft_status cuda_device_open(weft_device_kind *kind, weft_error *error);

#endif
