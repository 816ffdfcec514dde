/* memory: the GPU's memory, the host's that is pinned for it, and bytes between them. */
#include "parts.h"

#include <string.h>

/* The driver's addresses are numbers, and ours pointers. */
static CUdeviceptr address(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

static weft_status fail_take(const cuda_gpu *gpu, CUresult result, size_t bytes, weft_error *error)
{
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return cuda_check(result, "cuMemAlloc", error);
    return weft_fail(error, WEFT_MEMORY,
                     "device cuda %d (%.60s) has no %.1f MiB more; %.1f MiB are free: a smaller "
                     "batch or model, or more GPUs",
                     gpu->ordinal, gpu->name, (double)bytes / 1048576.0,
                     (double)cuda_gpu_room(gpu) / 1048576.0);
}

weft_status cuda_take(weft_stream *stream, size_t bytes, void **memory, weft_error *error)
{
    const cuda_gpu *gpu = cuda_stream_of(stream)->gpu;
    CUdeviceptr taken = 0;
    cuda_enter_gpu(gpu);
    const CUresult result = cuda.cuMemAlloc(&taken, bytes > 0 ? bytes : 1);
    *memory = (void *)(uintptr_t)taken;
    if (result == CUDA_SUCCESS) return WEFT_OK;
    *memory = NULL;
    return fail_take(gpu, result, bytes, error);
}

/* On a stream of its own: the driver's usual one would wait for all others. */
static weft_status clear(CUdeviceptr memory, size_t bytes, weft_error *error)
{
    CUstream stream = NULL;
    WEFT_TRY(
        cuda_check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", error));
    weft_status status =
        cuda_check(cuda.cuMemsetD8Async(memory, 0, bytes, stream), "cuMemsetD8Async", error);
    if (status == WEFT_OK)
        status = cuda_check(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize", error);
    (void)cuda.cuStreamDestroy(stream);
    return status;
}

weft_status cuda_take_zeroed(weft_stream *stream, size_t bytes, void **memory, weft_error *error)
{
    WEFT_TRY(cuda_take(stream, bytes, memory, error));
    const weft_status status = bytes > 0 ? clear(address(*memory), bytes, error) : WEFT_OK;
    if (status == WEFT_OK) return WEFT_OK;
    cuda_give(stream, *memory, bytes);
    *memory = NULL;
    return status;
}

void cuda_give(weft_stream *stream, void *memory, size_t bytes)
{
    (void)bytes;
    if (memory == NULL) return;
    cuda_enter_gpu(cuda_stream_of(stream)->gpu);
    (void)cuda.cuMemFree(address(memory));
}

int64_t cuda_gpu_room(const cuda_gpu *gpu)
{
    size_t free_now = 0, total = 0;
    cuda_enter_gpu(gpu);
    return cuda.cuMemGetInfo(&free_now, &total) == CUDA_SUCCESS ? (int64_t)free_now : -1;
}

int64_t cuda_room(weft_stream *stream)
{
    return cuda_gpu_room(cuda_stream_of(stream)->gpu);
}

weft_status cuda_take_staging(size_t bytes, void **memory, weft_error *error)
{
    cuda_enter();
    *memory = NULL;
    const CUresult result =
        cuda.cuMemHostAlloc(memory, bytes > 0 ? bytes : 1, CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return weft_fail_memory(error, bytes);
    WEFT_TRY(cuda_check(result, "cuMemHostAlloc", error));
    memset(*memory, 0, bytes);
    return WEFT_OK;
}

void cuda_give_staging(void *memory, size_t bytes)
{
    (void)bytes;
    if (memory == NULL) return;
    cuda_enter();
    (void)cuda.cuMemFreeHost(memory);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static weft_status finish_queues(cuda_stream *s, weft_error *error)
{
    for (int q = 0; q < WEFT_QUEUES; q++)
        if (s->queues[q].stream != NULL)
            WEFT_TRY(cuda_check(cuda.cuStreamSynchronize(s->queues[q].stream),
                                "cuStreamSynchronize", error));
    return WEFT_OK;
}

/* put and get are called on any thread, of which one makes it. */
static weft_status open_copies(cuda_stream *s, weft_error *error)
{
    weft_status status = WEFT_OK;
    pthread_mutex_lock(&s->lock);
    if (s->copies == NULL)
        status = cuda_check(cuda.cuStreamCreate(&s->copies, CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate", error);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static weft_status copy_bytes(cuda_stream *s,
                              CUresult (*copy)(CUstream, void *, const void *, size_t),
                              const char *call, void *to, const void *from, size_t bytes,
                              weft_error *error)
{
    WEFT_TRY(finish_queues(s, error));
    WEFT_TRY(open_copies(s, error));
    WEFT_TRY(cuda_check(copy(s->copies, to, from, bytes), call, error));
    return cuda_check(cuda.cuStreamSynchronize(s->copies), call, error);
}

/* After all queues; it is over when this returns. Both of them only tell the driver which way. */
static void copy_now(weft_stream *stream, CUresult (*copy)(CUstream, void *, const void *, size_t),
                     const char *call, void *to, const void *from, size_t bytes)
{
    cuda_stream *s = cuda_stream_of(stream);
    weft_error error = {WEFT_OK, -1, ""};
    if (bytes == 0) return;
    cuda_enter_gpu(s->gpu);
    pthread_mutex_lock(&s->keep.lock); /* nobody waits for a queue whose calls are being kept */
    const weft_status status = copy_bytes(s, copy, call, to, from, bytes, &error);
    if (status != WEFT_OK) cuda_fail(stream, &error);
    pthread_mutex_unlock(&s->keep.lock);
}

static CUresult to_device(CUstream stream, void *to, const void *from, size_t bytes)
{
    return cuda.cuMemcpyHtoDAsync(address(to), from, bytes, stream);
}

static CUresult to_host(CUstream stream, void *to, const void *from, size_t bytes)
{
    return cuda.cuMemcpyDtoHAsync(to, address(from), bytes, stream);
}

void cuda_put_bytes(weft_stream *stream, void *to, const void *from, size_t bytes)
{
    copy_now(stream, to_device, "cuMemcpyHtoDAsync", to, from, bytes);
}

void cuda_get_bytes(weft_stream *stream, void *to, const void *from, size_t bytes)
{
    copy_now(stream, to_host, "cuMemcpyDtoHAsync", to, from, bytes);
}

/* The driver tells staging from the GPU's memory by the address. */
void cuda_copy(weft_stream *stream, int queue, void *to, const void *from, size_t bytes)
{
    cuda_queue *q = cuda_queue_for(stream, queue);
    if (q != NULL && bytes > 0)
        cuda_put(stream, q, cuda.cuMemcpyAsync(address(to), address(from), bytes, q->stream),
                 "cuMemcpyAsync");
}

void cuda_clear(weft_stream *stream, int queue, void *to, size_t bytes)
{
    cuda_queue *q = cuda_queue_for(stream, queue);
    if (q != NULL && bytes > 0)
        cuda_put(stream, q, cuda.cuMemsetD8Async(address(to), 0, bytes, q->stream),
                 "cuMemsetD8Async");
}
