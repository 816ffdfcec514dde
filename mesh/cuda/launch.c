/* launch: libraries of kernels, and kernels put onto queues. The driver brings a library to each GPU that a kernel of it is launched
 * on. */
#include "kernel_sizes.h"
#include "parts.h"

weft_status cuda_load_image(const void *image, cuda_kernel *const *kernels, int n,
                            weft_error *error)
{
    CUlibrary library = NULL;
    WEFT_TRY(cuda_check(cuda.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
                        "cuLibraryLoadData", error));
    for (int k = 0; k < n; k++)
        WEFT_TRY(
            cuda_check(cuda.cuLibraryGetKernel(&kernels[k]->function, library, kernels[k]->name),
                       kernels[k]->name, error));
    return WEFT_OK;
}

void cuda_launch_blocks(weft_stream *stream, int queue, const cuda_kernel *kernel, int64_t n_blocks,
                        int n_threads, const void *argument)
{
    cuda_queue *q = n_blocks > 0 ? cuda_queue_for(stream, queue) : NULL;
    void *arguments[] = {(void *)(uintptr_t)argument}; /* the driver copies what it points to */
    if (q == NULL) return;
    cuda_put(stream, q,
             cuda.cuLaunchKernel((CUfunction)kernel->function, (unsigned)n_blocks, 1, 1,
                                 (unsigned)n_threads, 1, 1, 0, q->stream, arguments, NULL),
             kernel->name);
}

void cuda_launch(weft_stream *stream, int queue, const cuda_kernel *kernel, int64_t n,
                 const void *argument)
{
    enum { BLOCKS_A_PROCESSOR = 2048 / KERNEL_THREADS };
    const int64_t full = (int64_t)cuda_stream_of(stream)->gpu->processors * BLOCKS_A_PROCESSOR;
    const int64_t needed = (n + KERNEL_THREADS - 1) / KERNEL_THREADS;
    cuda_launch_blocks(stream, queue, kernel, needed < full ? needed : full, KERNEL_THREADS,
                       argument);
}
