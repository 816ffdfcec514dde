/* driver.h: the CUDA driver, loaded at run time: never linked, so a machine without it has no device and that is all.
 *
 *     WEFT_TRY(cuda_driver_open(error));
 *     WEFT_TRY(cuda_check(cuda.cuMemAlloc(&memory, bytes), "cuMemAlloc", error));
 */
#ifndef WEFT_CUDA_DRIVER_H
#define WEFT_CUDA_DRIVER_H

#include <cuda.h>

#include "weft/error.h"

typedef struct cuda_driver {
#define CUDA_CALL(name) __typeof__(name) *name;
#include "driver_list.inc"
#undef CUDA_CALL
} cuda_driver;

/* The names of the functions are macros of cuda.h, and so are the members'. */
extern cuda_driver cuda;

/* The one GPU of this process. */
typedef struct cuda_gpu {
    CUdevice number;
    CUcontext context;                /* the primary one, which libraries find too */
    int n_there, ordinal, processors; /* multiprocessors */
    int driver;                       /* 13000: CUDA 13.0 */
    int major, minor;                 /* of its architecture */
    char name[128];
} cuda_gpu;
extern cuda_gpu cuda_gpu_here;

/* cuda_driver_open - load the driver, find a GPU and keep its primary context. Once; refused with a sentence: no driver; no
 * device; a driver that is too old. */
weft_status cuda_driver_open(weft_error *error);
/* Every thread that calls the driver has the context first. Costs a look at a flag. */
void cuda_enter(void);

/* cuda_check - WEFT_OK, or a sentence of what was called and what the driver says. */
weft_status cuda_check(CUresult result, const char *call, weft_error *error);

#endif
