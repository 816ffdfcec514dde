/* kernel_source.h: one source of a kernel for three compilers: nvcc and NVRTC, for the GPU; and any C compiler, for tests,
 * which do what a GPU does in any order that it may (tests/cuda/driver).
 *
 *     KERNEL(scale, scale_work)                       a function of one struct, named `work`
 *     {
 *         float *x = GLOBAL(work.x);
 *         for (int64_t i = THREAD; i < work.n; i += THREADS) x[i] *= work.by;
 *     }
 *
 * Code written so is C and C++ at once. Pointers of the struct go through GLOBAL before they are used.
 */
#ifndef WEFT_KERNEL_SOURCE_H
#define WEFT_KERNEL_SOURCE_H

#include "kernel_sizes.h"

#ifdef __CUDACC__
#define DEVICE             static __device__ inline
#define GLOBAL(pointer)    (pointer)
#define KERNEL(name, type) KERNEL_OF(name, type, KERNEL_THREADS)
/* Of blocks of at most so many threads. */
#define KERNEL_OF(name, type, threads)                                                             \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ type work)
#define SHARED        __shared__
#define SYNC()        __syncthreads()
#define IN_BLOCK      ((int)threadIdx.x)
#define BLOCK_THREADS ((int)blockDim.x)
#define BLOCK         ((int64_t)blockIdx.x)
#define BLOCKS        ((int64_t)gridDim.x)
#else
#include "emulate.h"
#endif

#define THREAD  (BLOCK * BLOCK_THREADS + IN_BLOCK)
#define THREADS (BLOCKS * BLOCK_THREADS)

#endif
