/* plugin: shared libraries that add to Weft. */
#include "weft/extend/plugin.h"

#include <dlfcn.h>
#include <string.h>

typedef weft_status (*plugin_entry)(weft_error *error);
enum { WEFT_MAX_PLUGINS = 64 };
static void *loaded[WEFT_MAX_PLUGINS]; /* what dlopen gave; the same library is the same handle */
static int n_loaded;

static bool is_loaded(const void *library)
{
    for (int i = 0; i < n_loaded; i++)
        if (loaded[i] == library) return true;
    return false;
}

static weft_status enter(void *library, const char *path, weft_error *error)
{
    plugin_entry entry;
    void *symbol = dlsym(library, "weft_plugin");
    if (symbol == NULL)
        return weft_fail(
            error, WEFT_USAGE,
            "%.200s has no function weft_plugin; a plug-in registers there what it adds", path);
    if (n_loaded == WEFT_MAX_PLUGINS)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: there are %d plug-ins already, which is the most", path,
                         n_loaded);
    memcpy(&entry, &symbol, sizeof entry); /* what POSIX asks for, and C has no cast for */
    WEFT_TRY(entry(error));
    loaded[n_loaded++] = library;
    return WEFT_OK;
}

/* The loader begins with the path, if it is that what is wrong. */
static weft_status fail_to_load(const char *path, const char *reason, weft_error *error)
{
    const size_t n = strlen(path);
    if (strncmp(reason, path, n) == 0 && strncmp(reason + n, ": ", 2) == 0) reason += n + 2;
    return weft_fail(error, WEFT_USAGE,
                     "the plug-in %.120s cannot be loaded: %.220s; name a shared library that was "
                     "built for this Weft, with its folder (./%.30s)",
                     path, reason, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

weft_status weft_extend_load(const char *path, weft_error *error)
{
    WEFT_GIVEN(path, error);
    if (path[0] == '\0')
        return weft_fail(error, WEFT_USAGE,
                         "weft_extend_load: path is empty; name a shared library");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return fail_to_load(path, dlerror(), error);
    if (is_loaded(library)) {
        dlclose(library); /* it counts how often it was opened */
        return WEFT_OK;
    }
    const weft_status status = enter(library, path, error);
    if (status != WEFT_OK && dlsym(library, "weft_plugin") == NULL) dlclose(library);
    return status;
}
