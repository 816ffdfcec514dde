/* driver.h: the CUDA driver, loaded at run time: never linked, so a machine without it has no device and that is all.
 *
 *     WEFT_TRY(cuda_driver_open(error));
 *     WEFT_TRY(cuda_check(cuda.cuMemAlloc(&memory, bytes), "cuMemAlloc", error));
 */
#ifndef WEFT_CUDA_DRIVER_H
#define WEFT_CUDA_DRIVER_H

#include <cuda.h>
#include <stdint.h>

#include "weft/error.h"

typedef struct cuda_driver {
#define CUDA_CALL(name) __typeof__(name) *name;
#include "driver_list.inc"
#undef CUDA_CALL
} cuda_driver;

/* The names of the functions are macros of cuda.h, and so are the members'. */
extern cuda_driver cuda;

enum { CUDA_MOST_GPUS = 64 }; /* of which a process uses any */

/* One of the GPUs that this process sees. */
typedef struct cuda_gpu {
    CUdevice number;
    CUcontext context; /* the primary one, which libraries find too; NULL until the GPU is used */
    int n_there, ordinal, processors; /* multiprocessors */
    int driver;                       /* 13000: CUDA 13.0 */
    int major, minor;                 /* of its architecture */
    uint64_t id;                      /* of its UUID */
    char name[128];
} cuda_gpu;
/* The one of the process's first rank: kernels are compiled for its architecture, which all of a process have. */
extern cuda_gpu cuda_gpu_here;

/* cuda_driver_open - load the driver and find a GPU. Once; refused with a sentence: no driver; no device; a driver that is too
 * old. */
weft_status cuda_driver_open(weft_error *error);
/* cuda_gpu_for - the GPU of the at-th rank of this host: they take turns over those that this process sees. Lives as long as the
 * process. */
weft_status cuda_gpu_for(int at, const cuda_gpu **gpu, weft_error *error);
/* Every thread that calls the driver has a context first: that of the GPU, or of NULL: of the one that it has had, or else
 * cuda_gpu_here. Costs a look at a flag. Returns the GPU; NULL: there is none. */
const cuda_gpu *cuda_enter_gpu(const cuda_gpu *gpu);
static inline void cuda_enter(void)
{
    (void)cuda_enter_gpu(NULL);
}
/* That of the process's first rank, whatever the thread has had: what is asked for all ranks is asked of it. */
const cuda_gpu *cuda_enter_first(void);

/* cuda_check - WEFT_OK, or a sentence of what was called and what the driver says. */
weft_status cuda_check(CUresult result, const char *call, weft_error *error);

#endif
