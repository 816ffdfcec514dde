/* libhdf5: libhdf5, loaded when the first checkpoint is saved and not before. */
#include "libhdf5.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Where each symbol goes. A function's address and a variable's are kept alike, as dlsym gives them. */
static const struct {
    const char *name;
    size_t slot;
} symbols[] = {
#define SYMBOL(symbol) {#symbol, offsetof(weft_hdf5, symbol)},
    WEFT_HDF5_SYMBOLS(SYMBOL)
#undef SYMBOL
};
enum { N_SYMBOLS = sizeof symbols / sizeof *symbols };

/* A program that links HDF5 itself has its own copies of the variables, and the library uses those: what is in front of
 * the library for everybody is in front of it for us. */
static void *find(void *library, const char *name)
{
    void *first = dlsym(RTLD_DEFAULT, name);
    return first ? first : dlsym(library, name);
}

weft_status weft_hdf5_room(int64_t n_tensors, weft_error *error)
{
    enum { SMALLEST = 64 << 20, A_TENSOR = 8 << 10 };
    const size_t bytes = SMALLEST + (size_t)n_tensors * A_TENSOR;
    void *room = malloc(bytes);
    free(room);
    return room ? WEFT_OK : weft_fail_memory(error, bytes);
}

/* What fails though there is room, and goes when tried again, was short of memory. */
static void *open_library(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return handle ? handle : dlopen(library, RTLD_NOW | RTLD_LOCAL);
}

weft_status weft_hdf5_fill(const char *library, weft_hdf5 *h5, weft_error *error)
{
    WEFT_TRY(weft_hdf5_room(0, error));
    void *handle = open_library(library);
    if (handle == NULL) WEFT_TRY(weft_hdf5_room(0, error));
    if (handle == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "checkpoints are written with HDF5, and it cannot be loaded: %.200s; "
                         "install the package that has %s: " WEFT_HDF5_PACKAGE " on Debian 12",
                         dlerror(), library);
    for (int i = 0; i < N_SYMBOLS; i++) {
        void **slot = (void **)((char *)h5 + symbols[i].slot);
        if ((*slot = find(handle, symbols[i].name)) != NULL) continue;
        dlclose(handle);
        return weft_fail(error, WEFT_USAGE,
                         "checkpoints are written with HDF5, and the %s that was found has no %s: "
                         "it is not HDF5 " WEFT_HDF5_VERSION ", which this Weft was built for; "
                         "install the package that has it, " WEFT_HDF5_PACKAGE
                         " on Debian 12, or build Weft again",
                         library, symbols[i].name);
    }
    return WEFT_OK;
}

/* The library's exit handler crashes after a failed write, it prints by itself, and it loads plug-ins. Its variables
 * hold something only once it is open. */
static bool make_ready(const weft_hdf5 *h5)
{
    (void)h5->H5dont_atexit(); /* refused where the program itself has begun to use HDF5 */
    return h5->H5open() >= 0 && h5->H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0 &&
           h5->H5PLset_loading_state(0) >= 0;
}

weft_status weft_hdf5_load(const weft_hdf5 **h5, weft_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static weft_hdf5 loaded;
    static bool is_loaded;
    weft_status status = WEFT_OK;
    pthread_mutex_lock(&lock);
    if (!is_loaded) status = weft_hdf5_fill(WEFT_HDF5_LIBRARY, &loaded, error);
    if (!is_loaded && status == WEFT_OK && !make_ready(&loaded))
        status = weft_fail(error, WEFT_IO, "HDF5 was loaded and does not start: %s, version %s",
                           WEFT_HDF5_LIBRARY, WEFT_HDF5_VERSION);
    is_loaded |= status == WEFT_OK;
    pthread_mutex_unlock(&lock);
    *h5 = is_loaded ? &loaded : NULL;
    return status;
}
