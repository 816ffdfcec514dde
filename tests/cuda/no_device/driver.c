/* driver: a libcuda.so.1 without a GPU, by which libraries that compile kernels themselves do so for a GPU that is described to them
 * (tests/cuda/dnn_test.c): what they load is taken, and nothing ever runs. Without cuda.h: many of these take other arguments there,
 * which nobody here looks at.
 */
#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, STUB_LIBRARY = 34, NOT_FOUND = 500, VERSION = 13000 };

/* The others are asked for by name. */
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version,
                               unsigned long long flags, int *found);
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version,
                               unsigned long long flags, int *found)
{
    (void)version, (void)flags;
    *function = dlsym(RTLD_DEFAULT, name);
    if (found != NULL) *found = *function == NULL;
    return *function != NULL ? SUCCESS : NOT_FOUND;
}

/* Handles of what is loaded are a number each. */
static int hand_out(void **handle)
{
    static _Atomic long n;
    *handle = (void *)++n;
    return SUCCESS;
}

#define DOES(name, arguments, result)                                                              \
    EXPORT int name arguments;                                                                     \
    EXPORT int name arguments                                                                      \
    {                                                                                              \
        return result;                                                                             \
    }
DOES(cuDriverGetVersion, (int *version), (*version = VERSION, SUCCESS))
DOES(cuGetErrorString, (int result, const char **text),
     ((void)result, *text = "there is no device", SUCCESS))
DOES(cuLibraryLoadData, (void **library), hand_out(library))
DOES(cuLibraryGetKernel, (void **kernel), hand_out(kernel))
DOES(cuLibraryUnload, (void), SUCCESS)
DOES(cuLibraryGetModule, (void **module, void *library), (*module = library, SUCCESS))
DOES(cuKernelGetFunction, (void **function, void *kernel), (*function = kernel, SUCCESS))
DOES(cuKernelGetAttribute, (int *value), (*value = 0, SUCCESS))
DOES(cuKernelSetAttribute, (void), SUCCESS)

#define NEEDS_A_GPU(name) DOES(name, (void), STUB_LIBRARY)
NEEDS_A_GPU(cuInit)
NEEDS_A_GPU(cuGetErrorName)
NEEDS_A_GPU(cuCtxGetCurrent)
NEEDS_A_GPU(cuCtxGetLimit)
NEEDS_A_GPU(cuCtxPopCurrent)
NEEDS_A_GPU(cuCtxPushCurrent)
NEEDS_A_GPU(cuStreamGetCtx)
NEEDS_A_GPU(cuLinkCreate)
NEEDS_A_GPU(cuLinkAddData)
NEEDS_A_GPU(cuLinkComplete)
NEEDS_A_GPU(cuLinkDestroy)
NEEDS_A_GPU(cuLaunchKernel)
NEEDS_A_GPU(cuLaunchCooperativeKernel)
NEEDS_A_GPU(cuLaunchKernelEx)
NEEDS_A_GPU(cuDeviceGetCount)
NEEDS_A_GPU(cuDeviceGet)
NEEDS_A_GPU(cuLibraryLoadFromFile)
NEEDS_A_GPU(cuOccupancyMaxPotentialClusterSize)
