/* driver: the emulated driver's devices, contexts, modules and errors. */
#include "parts.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

pthread_mutex_t emulated_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext current;
static struct CUctx_st {
    int device;
} contexts[EMULATED_GPUS];

uint32_t emulated_random(uint32_t below)
{
    static uint64_t state = 0x9E3779B97F4A7C15u;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

void emulated_die(const char *why)
{
    fprintf(stderr, "emulated GPU: %s\n", why);
    abort();
}

int emulated_number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? (int)strtol(text, NULL, 10) : otherwise;
}

/* ---- what is to fail ------------------------------------------------------------------------- */

static bool fails_now(const char *call)
{
    static _Atomic long n;
    const char *plan = getenv("TEST_CUDA_FAIL");
    const size_t length = strlen(call);
    if (plan == NULL || strncmp(plan, call, length) != 0 || plan[length] != ':') return false;
    return ++n >= strtol(plan + length + 1, NULL, 10);
}

int emulated_device(void)
{
    return current->device;
}

/* A thread that captures puts kernels, copies and zeros onto that stream, and asks for nothing else. */
static bool may_capture(const char *call)
{
    static const char *const calls[] = {"cuLaunchKernel", "cuMemcpyAsync", "cuMemsetD8Async",
                                        "cuMemsetD32Async"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        is_one = is_one || strcmp(calls[i], call) == 0;
    return is_one;
}

void emulated_refuse_capture(const char *call)
{
    if (!emulated_captures) return;
    fprintf(stderr, "%s: ", call);
    emulated_die("it cannot be captured");
}

CUresult emulated_enter(const char *call)
{
    if (current == NULL) return CUDA_ERROR_INVALID_CONTEXT;
    if (!may_capture(call)) emulated_refuse_capture(call);
    return fails_now(call) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

static const struct {
    CUresult result;
    const char *name, *text;
} errors[] = {{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
              {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
              {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
              {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
              {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
              {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}};
enum { N_ERRORS = sizeof errors / sizeof *errors };

static int find_error(CUresult result)
{
    for (int i = 0; i < N_ERRORS; i++)
        if (errors[i].result == result) return i;
    return -1;
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **name)
{
    const int at = find_error(result);
    *name = at < 0 ? NULL : errors[at].name;
    return at < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult result, const char **text)
{
    const int at = find_error(result);
    *text = at < 0 ? NULL : errors[at].text;
    return at < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- devices and contexts -------------------------------------------------------------------- */

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    return emulated_number("TEST_CUDA_DEVICES", 1) > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

/* The toolkit's NVRTC looks for a driver in its process, and asks it for tables that no other has. */
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
    const int said = emulated_number("TEST_CUDA_DEVICES", 1);
    *n = said < EMULATED_GPUS ? said : EMULATED_GPUS;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < EMULATED_GPUS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    snprintf(name, (size_t)bytes, "emulated GPU %d", device);
    return CUDA_SUCCESS;
}

/* With TEST_CUDA_APART=1 each process has GPUs of its own, as where a launcher gives each one of the host's. */
EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const int apart = emulated_number("TEST_CUDA_APART", 0) ? (int)getpid() : 0;
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, &device, sizeof device);
    memcpy(uuid->bytes + sizeof device, &apart, sizeof apart);
    return CUDA_SUCCESS;
}

/* With TEST_CUDA_MIXED=1 GPUs are of one architecture and of another, in turns. */
EXPORT CUresult cuDeviceGetAttribute(int *to, CUdevice_attribute what, CUdevice device)
{
    const bool is_older = emulated_number("TEST_CUDA_MIXED", 0) && device % 2 == 1;
    *to = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? is_older ? 8 : 9
          : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                 : 2;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    contexts[device].device = device;
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

/* ---- libraries of kernels --------------------------------------------------------------------------------- */

static bool is_library(const void *image)
{
    const Elf64_Ehdr *header = image;
    enum { CUDA = 190 }; /* machine code of GPUs */
    return memcmp(image, ELFMAG, SELFMAG) == 0 && header->e_machine != CUDA;
}

/* A library that the emulated NVRTC made: it ends with its table of sections. Its kernels add themselves. */
static bool load_library(const void *image)
{
    const Elf64_Ehdr *header = image;
    const size_t bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    char path[] = "/tmp/weft_module_XXXXXX"; /* the loader knows libraries by their names */
    const int file = mkstemp(path);
    const bool is_loaded = file >= 0 && write(file, image, bytes) == (ssize_t)bytes &&
                           dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL;
    if (!is_loaded) fprintf(stderr, "emulated GPU: a module: %s\n", dlerror());
    close(file);
    (void)unlink(path);
    return is_loaded;
}

/* The kernels of a file that nvcc made are this library's own. Neither needs a context. */
EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                                  void **values, unsigned n_options, CUlibraryOption *more,
                                  void **more_values, unsigned n_more)
{
    uint32_t magic;
    (void)options, (void)values, (void)n_options, (void)more, (void)more_values, (void)n_more;
    memcpy(&magic, image, sizeof magic);
    *library = (CUlibrary)(uintptr_t)1;
    if (is_library(image)) return load_library(image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return magic == 0xBA55ED50u ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library;
    *kernel = (CUkernel)(uintptr_t)emulated_find(name);
    return *kernel != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
