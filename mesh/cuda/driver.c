/* driver: libcuda loaded, GPUs chosen, their contexts kept; what the driver says, as sentences. */
#include "driver.h"

#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cuda_driver cuda;
cuda_gpu cuda_gpu_here;
static int n_gpus;                            /* that this process sees */
static _Thread_local const cuda_gpu *gpu_now; /* whose context the thread has; NULL: none */

#define NAME_OF(name) NAME_IS(name) /* cuMemAlloc is cuMemAlloc_v2 to the loader */
#define NAME_IS(name) #name

static const cuda_entry entries[] = {
#define CUDA_CALL(name) {NAME_OF(name), offsetof(cuda_driver, name)},
#include "driver_list.inc"
#undef CUDA_CALL
};
static weft_status load(weft_error *error)
{
    const char *file = "libcuda.so.1", *missing;
    missing = cuda_library_fill(file, entries, sizeof entries / sizeof *entries, &cuda);
    if (missing == file)
        return weft_fail(error, WEFT_USAGE,
                         "there is no device cuda: no NVIDIA driver can be loaded: %.240s; install "
                         "it, or compute on the device cpu",
                         dlerror());
    if (missing != NULL)
        return weft_fail(error, WEFT_USAGE,
                         "there is no device cuda: the NVIDIA driver is too old, it has no %s; "
                         "install one for CUDA %d.%d or later",
                         missing, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return WEFT_OK;
}

weft_status cuda_check(CUresult result, const char *call, weft_error *error)
{
    const cuda_gpu *gpu = gpu_now != NULL ? gpu_now : &cuda_gpu_here;
    const char *name = NULL, *text = NULL;
    if (result == CUDA_SUCCESS) return WEFT_OK;
    (void)cuda.cuGetErrorName(result, &name);
    (void)cuda.cuGetErrorString(result, &text);
    return weft_fail(error, result == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_MEMORY : WEFT_INTERNAL,
                     "device cuda %d (%.60s): %s: %s (%s)", gpu->ordinal, gpu->name, call,
                     text ? text : "unknown error", name ? name : "?");
}

/* A sentence of its own: this is what a user of a machine without a GPU sees. */
static weft_status fail_no_device(CUresult result, weft_error *error)
{
    const char *text = NULL, *visible = getenv("CUDA_VISIBLE_DEVICES");
    char hidden[120] = "";
    if (result != CUDA_SUCCESS) (void)cuda.cuGetErrorString(result, &text);
    if (visible)
        snprintf(hidden, sizeof hidden, ", and CUDA_VISIBLE_DEVICES is \"%.60s\"", visible);
    return weft_fail(
        error, WEFT_USAGE,
        "there is no device cuda: the NVIDIA driver is there and finds no GPU%s%.120s%s; "
        "nvidia-smi shows what it sees",
        text ? ": " : "", text ? text : "", hidden);
}

/* As the launcher says it: which GPU this process will have, before the world is open. */
static int local_process(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                        "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL) return (int)strtol(text, NULL, 10);
    }
    return 0;
}

static weft_status look_at(int ordinal, cuda_gpu *gpu, weft_error *error)
{
    CUuuid uuid = {{0}};
    gpu->n_there = n_gpus;
    gpu->ordinal = ordinal;
    WEFT_TRY(cuda_check(cuda.cuDriverGetVersion(&gpu->driver), "cuDriverGetVersion", error));
    WEFT_TRY(cuda_check(cuda.cuDeviceGet(&gpu->number, ordinal), "cuDeviceGet", error));
    WEFT_TRY(cuda_check(cuda.cuDeviceGetName(gpu->name, sizeof gpu->name, gpu->number),
                        "cuDeviceGetName", error));
    WEFT_TRY(cuda_check(cuda.cuDeviceGetUuid(&uuid, gpu->number), "cuDeviceGetUuid", error));
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        gpu->id = (gpu->id ^ (unsigned char)uuid.bytes[i]) * UINT64_C(0x100000001b3) + 1;
    const struct {
        int *to;
        CUdevice_attribute what;
    } facts[] = {{&gpu->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
                 {&gpu->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
                 {&gpu->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        WEFT_TRY(cuda_check(cuda.cuDeviceGetAttribute(facts[i].to, facts[i].what, gpu->number),
                            "cuDeviceGetAttribute", error));
    if (gpu->major >= 8) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "there is no device cuda that Weft can use: GPU %d, %.60s, has compute "
                     "capability %d.%d, and 8.0 is the least",
                     gpu->ordinal, gpu->name, gpu->major, gpu->minor);
}

weft_status cuda_driver_open(weft_error *error)
{
    WEFT_TRY(load(error));
    const CUresult begun = cuda.cuInit(0);
    if (begun != CUDA_SUCCESS) return fail_no_device(begun, error);
    if (cuda.cuDeviceGetCount(&n_gpus) != CUDA_SUCCESS || n_gpus < 1)
        return fail_no_device(CUDA_SUCCESS, error);
    return look_at(local_process() % n_gpus, &cuda_gpu_here, error);
}

/* ---- several ----------------------------------------------------------------------------------- */

static cuda_gpu gpus[CUDA_MOST_GPUS]; /* by ordinal; with a context: in use */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* Kernels are compiled once for all ranks of a process. */
static weft_status check_alike(const cuda_gpu *gpu, weft_error *error)
{
    for (int i = 0; i < CUDA_MOST_GPUS; i++)
        if (gpus[i].context != NULL && (gpus[i].major != gpu->major || gpus[i].minor != gpu->minor))
            return weft_fail(error, WEFT_USAGE,
                             "GPU %d, %.60s, has compute capability %d.%d and GPU %d, %.60s, has "
                             "%d.%d; the ranks of a process have GPUs of one kind: name those in "
                             "CUDA_VISIBLE_DEVICES, or start a process for each rank",
                             i, gpus[i].name, gpus[i].major, gpus[i].minor, gpu->ordinal, gpu->name,
                             gpu->major, gpu->minor);
    return WEFT_OK;
}

static weft_status open_gpu(int ordinal, cuda_gpu *gpu, weft_error *error)
{
    cuda_gpu found = {0};
    bool is_first = true;
    if (gpu->context != NULL) return WEFT_OK;
    WEFT_TRY(look_at(ordinal, &found, error));
    WEFT_TRY(check_alike(&found, error));
    for (int i = 0; i < CUDA_MOST_GPUS; i++)
        is_first = is_first && gpus[i].context == NULL;
    WEFT_TRY(cuda_check(cuda.cuDevicePrimaryCtxRetain(&found.context, found.number),
                        "cuDevicePrimaryCtxRetain", error));
    *gpu = found;
    if (is_first) cuda_gpu_here = found;
    return WEFT_OK;
}

weft_status cuda_gpu_for(int at, const cuda_gpu **gpu, weft_error *error)
{
    const int ordinal = at % (n_gpus < CUDA_MOST_GPUS ? n_gpus : CUDA_MOST_GPUS);
    pthread_mutex_lock(&opening);
    const weft_status status = open_gpu(ordinal, &gpus[ordinal], error);
    pthread_mutex_unlock(&opening);
    *gpu = status == WEFT_OK ? &gpus[ordinal] : NULL;
    return status;
}

/* What is asked before a rank has a seat is asked of the GPU that the process would get. */
const cuda_gpu *cuda_enter_gpu(const cuda_gpu *gpu)
{
    if (gpu == NULL) gpu = gpu_now;
    if (gpu == NULL && cuda_gpu_for(cuda_gpu_here.ordinal, &gpu, NULL) != WEFT_OK) return NULL;
    if (gpu != gpu_now && cuda.cuCtxSetCurrent(gpu->context) == CUDA_SUCCESS) gpu_now = gpu;
    return gpu;
}

const cuda_gpu *cuda_enter_first(void)
{
    const cuda_gpu *gpu = NULL;
    return cuda_gpu_for(cuda_gpu_here.ordinal, &gpu, NULL) == WEFT_OK ? cuda_enter_gpu(gpu) : NULL;
}
