/* driver: libcuda loaded, a GPU chosen, its context kept; what the driver says, as sentences. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cuda_driver cuda;
cuda_gpu cuda_gpu_here;

#define NAME_OF(name) NAME_IS(name) /* cuMemAlloc is cuMemAlloc_v2 to the loader */
#define NAME_IS(name) #name

static const struct {
    const char *name;
    size_t offset;
} calls[] = {
#define CUDA_CALL(name) {NAME_OF(name), offsetof(cuda_driver, name)},
#include "driver_list.inc"
#undef CUDA_CALL
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static weft_status load(weft_error *error)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "there is no device cuda: no NVIDIA driver can be loaded: %.240s; install "
                         "it, or compute on the device cpu",
                         dlerror());
    for (int i = 0; i < N_CALLS; i++) {
        void *call = dlsym(library, calls[i].name);
        if (call == NULL)
            return weft_fail(error, WEFT_USAGE,
                             "there is no device cuda: the NVIDIA driver is too old, it has no %s; "
                             "install one for CUDA %d.%d or later",
                             calls[i].name, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
        memcpy((char *)&cuda + calls[i].offset, &call, sizeof call);
    }
    return WEFT_OK;
}

weft_status cuda_check(CUresult result, const char *call, weft_error *error)
{
    const char *name = NULL, *text = NULL;
    if (result == CUDA_SUCCESS) return WEFT_OK;
    (void)cuda.cuGetErrorName(result, &name);
    (void)cuda.cuGetErrorString(result, &text);
    return weft_fail(error, result == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_MEMORY : WEFT_INTERNAL,
                     "device cuda %d (%.60s): %s: %s (%s)", cuda_gpu_here.ordinal,
                     cuda_gpu_here.name, call, text ? text : "unknown error", name ? name : "?");
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

/* One process a GPU: of the processes of a host each takes the next one. */
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

static weft_status look_at(cuda_gpu *gpu, weft_error *error)
{
    WEFT_TRY(cuda_check(cuda.cuDeviceGet(&gpu->number, gpu->ordinal), "cuDeviceGet", error));
    WEFT_TRY(cuda_check(cuda.cuDeviceGetName(gpu->name, sizeof gpu->name, gpu->number),
                        "cuDeviceGetName", error));
    const struct {
        int *to;
        CUdevice_attribute what;
    } facts[] = {{&gpu->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
                 {&gpu->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
                 {&gpu->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        WEFT_TRY(cuda_check(cuda.cuDeviceGetAttribute(facts[i].to, facts[i].what, gpu->number),
                            "cuDeviceGetAttribute", error));
    if (gpu->major < 8)
        return weft_fail(error, WEFT_USAGE,
                         "there is no device cuda that Weft can use: GPU %d, %.60s, has compute "
                         "capability %d.%d, and 8.0 is the least",
                         gpu->ordinal, gpu->name, gpu->major, gpu->minor);
    return cuda_check(cuda.cuDevicePrimaryCtxRetain(&gpu->context, gpu->number),
                      "cuDevicePrimaryCtxRetain", error);
}

weft_status cuda_driver_open(weft_error *error)
{
    cuda_gpu *gpu = &cuda_gpu_here;
    WEFT_TRY(load(error));
    const CUresult begun = cuda.cuInit(0);
    if (begun != CUDA_SUCCESS) return fail_no_device(begun, error);
    WEFT_TRY(cuda_check(cuda.cuDriverGetVersion(&gpu->driver), "cuDriverGetVersion", error));
    if (cuda.cuDeviceGetCount(&gpu->n_there) != CUDA_SUCCESS || gpu->n_there < 1)
        return fail_no_device(CUDA_SUCCESS, error);
    gpu->ordinal = local_process() % gpu->n_there;
    return look_at(gpu, error);
}

void cuda_enter(void)
{
    static _Thread_local bool is_in;
    if (!is_in) is_in = cuda.cuCtxSetCurrent(cuda_gpu_here.context) == CUDA_SUCCESS;
}
