/* queues: a stream of the CUDA device: one of the driver's streams for each queue that is used, and events between them. */
#include "parts.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void cuda_fail(weft_stream *stream, const weft_error *error)
{
    cuda_stream *s = cuda_stream_of(stream);
    if (s->keep.is_on) { /* nothing is done yet: it can be done otherwise */
        if (s->keep.error.status == WEFT_OK) s->keep.error = *error;
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (s->error.status == WEFT_OK) s->error = *error;
    atomic_store(&s->has_failed, true);
    pthread_mutex_unlock(&s->lock);
}

weft_status cuda_failed(weft_stream *stream, weft_error *error)
{
    cuda_stream *s = cuda_stream_of(stream);
    pthread_mutex_lock(&s->lock);
    const weft_error first = s->error;
    pthread_mutex_unlock(&s->lock);
    return first.status == WEFT_OK ? WEFT_OK : weft_fail(error, first.status, "%s", first.message);
}

/* The stream last: who sees it finds the events. */
static weft_status create_queue(cuda_queue *q, weft_error *error)
{
    CUstream stream = NULL;
    for (int i = 0; i < CUDA_EVENTS; i++)
        WEFT_TRY(cuda_check(cuda.cuEventCreate(&q->events[i], CU_EVENT_DISABLE_TIMING),
                            "cuEventCreate", error));
    WEFT_TRY(
        cuda_check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", error));
    atomic_store(&q->stream, stream);
    return WEFT_OK;
}

/* Few of the queues are used, so each is made when something is put onto it. */
cuda_queue *cuda_queue_for(weft_stream *stream, int queue)
{
    cuda_stream *s = cuda_stream_of(stream);
    cuda_queue *q = &s->queues[queue];
    weft_error error = {WEFT_OK, -1, ""};
    cuda_enter_gpu(s->gpu);
    if (atomic_load(&s->has_failed)) return NULL;
    if (q->stream != NULL || create_queue(q, &error) == WEFT_OK) return q;
    cuda_fail(stream, &error);
    return NULL;
}

static CUevent event_of(const cuda_queue *q, uint64_t number)
{
    return q->events[number % CUDA_EVENTS];
}

static void fail_call(weft_stream *stream, CUresult result, const char *call)
{
    weft_error error = {WEFT_OK, -1, ""};
    if (cuda_check(result, call, &error) != WEFT_OK) cuda_fail(stream, &error);
}

void cuda_mark(weft_stream *stream, cuda_queue *q)
{
    q->recorded++;
    q->has_more = false;
    q->n_more = 0;
    fail_call(stream, cuda.cuEventRecord(event_of(q, q->recorded), q->stream), "cuEventRecord");
}

/* Now and then an event, so that whoever waits for long sees the GPU go on. */
void cuda_put(weft_stream *stream, cuda_queue *q, CUresult result, const char *call)
{
    enum { CALLS_A_MARK = 64 };
    fail_call(stream, result, call);
    if (cuda_stream_of(stream)->keep.is_on) return; /* what is kept is not on the queue */
    q->has_more = true;
    if (++q->n_more >= CALLS_A_MARK) cuda_mark(stream, q);
}

/* ---- made and ended -------------------------------------------------------------------------- */

weft_status cuda_stream_create(int n_lanes, weft_stream **stream, weft_error *error)
{
    (void)n_lanes; /* the host's; kernels are not its */
    cuda_stream *s = calloc(1, sizeof *s);
    *stream = (weft_stream *)s;
    if (s == NULL) return weft_fail_memory(error, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->keep.lock, NULL);
    return WEFT_OK;
}

weft_status cuda_seat(weft_stream *stream, int at, weft_error *error)
{
    return cuda_gpu_for(at, &cuda_stream_of(stream)->gpu, error);
}

void cuda_unit(weft_stream *stream, weft_device_unit *unit)
{
    const cuda_gpu *gpu = cuda_stream_of(stream)->gpu;
    const char *share = getenv("WEFT_SHARE_GPU");
    *unit = (weft_device_unit){.id = gpu->id,
                               .may_be_shared = share != NULL && strcmp(share, "1") == 0,
                               .way_out = "set WEFT_SHARE_GPU=1"};
    snprintf(unit->name, sizeof unit->name, "cuda %d (%.30s)", gpu->ordinal, gpu->name);
}

static void destroy_queue(cuda_queue *q)
{
    for (int i = 0; i < CUDA_EVENTS; i++)
        if (q->events[i] != NULL) (void)cuda.cuEventDestroy(q->events[i]);
    if (q->stream != NULL) (void)cuda.cuStreamDestroy(q->stream);
}

void cuda_stream_destroy(weft_stream **stream)
{
    cuda_stream *s = cuda_stream_of(*stream);
    if (s == NULL) return;
    if (s->gpu != NULL) cuda_enter_gpu(s->gpu);
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (s->queues[q].stream != NULL) (void)cuda.cuStreamSynchronize(s->queues[q].stream);
    for (int q = 0; q < WEFT_QUEUES; q++)
        destroy_queue(&s->queues[q]);
    if (s->copies != NULL) (void)cuda.cuStreamDestroy(s->copies);
    if (s->keep.cell != 0) (void)cuda.cuMemFree(s->keep.cell);
    pthread_mutex_destroy(&s->keep.lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *stream = NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

weft_event cuda_record(weft_stream *stream, int queue)
{
    cuda_queue *q = &cuda_stream_of(stream)->queues[queue];
    if (q->has_more && cuda_queue_for(stream, queue) != NULL) cuda_mark(stream, q);
    return (weft_event){queue, q->recorded};
}

void cuda_follow(weft_stream *stream, int queue, weft_event event)
{
    const cuda_queue *other = &cuda_stream_of(stream)->queues[event.queue];
    if (queue == event.queue || event.number <= other->done) return;
    cuda_queue *q = cuda_queue_for(stream, queue);
    if (q == NULL) return;
    cuda_put(stream, q, cuda.cuStreamWaitEvent(q->stream, event_of(other, event.number), 0),
             "cuStreamWaitEvent");
}

bool cuda_is_done(weft_stream *stream, weft_event event)
{
    cuda_queue *q = &cuda_stream_of(stream)->queues[event.queue];
    weft_error error = {WEFT_OK, -1, ""};
    if (event.number <= q->done || cuda_queue_for(stream, event.queue) == NULL)
        return true; /* who has failed waits for nothing */
    const CUresult result = cuda.cuEventQuery(event_of(q, event.number));
    if (result == CUDA_ERROR_NOT_READY) return false;
    if (cuda_check(result, "cuEventQuery", &error) != WEFT_OK) cuda_fail(stream, &error);
    if (event.number > q->done) q->done = event.number;
    return true;
}

/* An event that was recorded over stands for a later one, so no fewer are over than are counted. */
uint64_t cuda_done(weft_stream *stream)
{
    uint64_t n = 0;
    for (int k = 0; k < WEFT_QUEUES; k++) {
        cuda_queue *q = &cuda_stream_of(stream)->queues[k];
        if (q->done < q->recorded && cuda_queue_for(stream, k) == NULL)
            return 0; /* it has failed */
        while (q->done < q->recorded && cuda.cuEventQuery(event_of(q, q->done + 1)) == CUDA_SUCCESS)
            q->done++;
        n += q->done;
    }
    return n;
}

/* Looks, yields, then sleeps for moments. */
void cuda_wait(weft_stream *stream, weft_event event)
{
    enum { LOOKS = 64, YIELDS = 256 };
    for (int n = 0; !cuda_is_done(stream, event); n++) {
        if (n > YIELDS)
            nanosleep(&(struct timespec){0, 20000}, NULL);
        else if (n > LOOKS)
            sched_yield();
    }
}

void cuda_finish(weft_stream *stream)
{
    for (int q = 0; q < WEFT_QUEUES; q++)
        cuda_wait(stream, cuda_record(stream, q));
}

/* No thread of the host's is in a kernel: whoever waits for exchanges brings them on himself. */
void cuda_meanwhile(weft_stream *stream, void (*meanwhile)(void *argument), void *argument)
{
    (void)stream, (void)meanwhile, (void)argument;
}
