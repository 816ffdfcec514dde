/* mhd: the library, found by the name of its interface. */
#include "mhd.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const char library[] = "libmicrohttpd.so.12";

static const struct {
    const char *name;
    size_t at;
} functions[] = {
#define ENTRY(name) {"MHD_" #name, offsetof(serve_mhd, name)},
    SERVE_MHD_FUNCTIONS(ENTRY)
#undef ENTRY
};

weft_status serve_mhd_load(serve_mhd *mhd, weft_error *error)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return weft_fail(error, WEFT_USAGE,
                         "serving is by HTTP of libmicrohttpd, and that cannot be loaded: %.200s; "
                         "install it: apt-get install libmicrohttpd12",
                         dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].name);
        if (!found)
            return weft_fail(error, WEFT_USAGE,
                             "serving is by HTTP of libmicrohttpd, and %s here has no %s; take "
                             "version 0.9.75, or a newer one of the same interface",
                             library, functions[i].name);
        memcpy((char *)mhd + functions[i].at, &found, sizeof found);
    }
    return WEFT_OK;
}
