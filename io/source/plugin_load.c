/* plugin_load: libweft_files.so, loaded by the first file that needs it. */
#include "plugin.h"
#include "sync.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/version.h"

/* Where the environment says, else beside the library (or program) that this is part of. */
static void find_path(char *path, size_t room)
{
    const char *said = getenv("WEFT_FILES_PATH");
    Dl_info here;
    const char *own =
        dladdr((void *)(uintptr_t)find_path, &here) && here.dli_fname ? here.dli_fname : "";
    const char *slash = strrchr(own, '/');
    if (said != NULL && said[0] != '\0')
        snprintf(path, room, "%s/libweft_files.so", said);
    else
        snprintf(path, room, "%.*slibweft_files.so", slash ? (int)(slash - own + 1) : 0, own);
}

static weft_status load(const char *path, const char *need, const weft_files_plugin **plugin,
                        weft_error *error)
{
    char library[4000];
    find_path(library, sizeof library);
    if (access(library, F_OK) != 0)
        return weft_fail(
            error, WEFT_USAGE,
            "%.140s is %s, which libweft_files.so reads, and there is no %.140s; "
            "install the package libweft-files0, or name its folder by WEFT_FILES_PATH",
            path, need, library);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "%.140s is %s, and %.100s cannot be loaded: %.160s; install the package "
                         "libweft-files0",
                         path, need, library, dlerror());
    *plugin = dlsym(handle, "weft_files_entry");
    if (*plugin != NULL && strcmp((*plugin)->version, weft_version()) == 0) return WEFT_OK;
    weft_fail(
        error, WEFT_USAGE,
        "%.140s is %s, and %.140s is of weft %.20s, while this is %s; take both from one build",
        path, need, library, *plugin != NULL ? (*plugin)->version : "(none)", weft_version());
    *plugin = NULL;
    dlclose(handle);
    return WEFT_USAGE;
}

weft_status weft_files_load(const char *path, const char *need, const weft_files_plugin **plugin,
                            weft_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const weft_files_plugin *loaded;
    weft_status status = WEFT_OK;
    weft_lock_take(&lock);
    if (loaded == NULL) status = load(path, need, &loaded, error);
    *plugin = loaded;
    weft_lock_give(&lock);
    return status;
}
