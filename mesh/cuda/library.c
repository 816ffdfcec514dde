/* library: see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
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

/* ---- what is told of them ------------------------------------------------------------------------ */

enum { MOST = 4 };
static cuda_library_look looks[MOST];
static int n_looks;

void cuda_library_add(cuda_library_look look)
{
    if (n_looks < MOST) looks[n_looks++] = look;
}

/* cuDNN before 9 says 1000 major + 100 minor + patch. */
static int scale_of(int version)
{
    return version < 10000 ? 1000 : 10000;
}

static int major_of(int version)
{
    return version / scale_of(version);
}

bool cuda_library_fits(int version, int built)
{
    return version > 0 && major_of(version) == major_of(built);
}

static void print_version(int version, char text[24])
{
    snprintf(text, 24, "%d.%d.%d", major_of(version), version % scale_of(version) / 100,
             version % 100);
}

static int tell(const cuda_library_fact *fact, char *text, size_t room)
{
    char version[24], built[24];
    print_version(fact->version, version), print_version(fact->built, built);
    if (fact->version == 0)
        return snprintf(text, room, ", no %s: %s by plain kernels", fact->file, fact->work);
    if (!cuda_library_fits(fact->version, fact->built))
        return snprintf(text, room, ", %s %s, built with %s: %s by plain kernels", fact->name,
                        version, built, fact->work);
    if (fact->version != fact->built)
        return snprintf(text, room, ", %s %s (built with %s)", fact->name, version, built);
    return snprintf(text, room, ", %s %s", fact->name, version);
}

void cuda_library_tell(char *text, size_t room)
{
    size_t used = 0;
    for (int l = 0; l < n_looks && used < room; l++) {
        const cuda_library_fact fact = looks[l]();
        used += (size_t)tell(&fact, text + used, room - used);
    }
}
