/* library: see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

const char *cuda_library_fill(const char *file, const cuda_entry *entries, size_t n, void *table)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return file;
    for (size_t i = 0; i < n; i++) {
        void *call = dlsym(library, entries[i].name);
        if (call == NULL) return entries[i].name;
        memcpy((char *)table + entries[i].offset, &call, sizeof call);
    }
    return NULL;
}
