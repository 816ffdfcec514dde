/* launch: modules of kernels, and kernels put onto queues. */
#include "kernel_sizes.h"
#include "parts.h"

weft_status cuda_load_image(const void *image, cuda_kernel *const *kernels, int n,
                            weft_error *error)
{
    CUmodule module = NULL;
    cuda_enter();
    WEFT_TRY(cuda_check(cuda.cuModuleLoadData(&module, image), "cuModuleLoadData", error));
    for (int k = 0; k < n; k++)
        WEFT_TRY(
            cuda_check(cuda.cuModuleGetFunction(&kernels[k]->function, module, kernels[k]->name),
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
             cuda.cuLaunchKernel(kernel->function, (unsigned)n_blocks, 1, 1, (unsigned)n_threads, 1,
                                 1, 0, q->stream, arguments, NULL),
             kernel->name);
}

void cuda_launch(weft_stream *stream, int queue, const cuda_kernel *kernel, int64_t n,
                 const void *argument)
{
    enum { BLOCKS_A_PROCESSOR = 2048 / KERNEL_THREADS };
    const int64_t full = (int64_t)cuda_gpu_here.processors * BLOCKS_A_PROCESSOR;
    const int64_t needed = (n + KERNEL_THREADS - 1) / KERNEL_THREADS;
    cuda_launch_blocks(stream, queue, kernel, needed < full ? needed : full, KERNEL_THREADS,
                       argument);
}
