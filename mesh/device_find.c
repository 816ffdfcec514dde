/* device_find: devices by name; those beside the CPU come in libraries of their own, which are loaded when they are asked for.
 *
 * So this library needs nothing of what they need, and a machine without them pays nothing for them.
 */
#include "devices.h"

#include "weft/version.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *device, *file;
} libraries[] = {{"cuda", "libweft_cuda.so"}};
enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* Where the environment says, else beside the library (or program) that this is part of. */
static void find_folder(char *folder, size_t room)
{
    const char *said = getenv("WEFT_DEVICE_PATH");
    Dl_info here;
    if (said != NULL && said[0] != '\0') {
        snprintf(folder, room, "%s", said);
        return;
    }
    snprintf(folder, room, "%s",
             dladdr((void *)(uintptr_t)find_folder, &here) ? here.dli_fname : ".");
    char *slash = strrchr(folder, '/');
    snprintf(slash ? slash : folder, 2, "%s", slash ? "" : ".");
}

static weft_status fail_absent(const char *name, const char *folder, const char *file,
                               weft_error *error)
{
    return weft_fail(
        error, WEFT_USAGE,
        "there is no device %s: %.200s has no %s, which is built where the CUDA Toolkit "
        "is; WEFT_DEVICE_PATH names another folder, and the device cpu is always there",
        name, folder, file);
}

/* The loader begins with the path, if it is that what is wrong. */
static const char *reason_of(const char *path)
{
    const char *reason = dlerror();
    const size_t n = strlen(path);
    if (reason == NULL) return "no reason given";
    return strncmp(reason, path, n) == 0 && strncmp(reason + n, ": ", 2) == 0 ? reason + n + 2
                                                                              : reason;
}

static weft_status check_version(const weft_device_plugin *plugin, const char *path,
                                 weft_error *error)
{
    if (plugin != NULL && strcmp(plugin->version, weft_version()) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.250s is of weft %.20s, and this is %s; take both from one build", path,
                     plugin != NULL ? plugin->version : "(none)", weft_version());
}

static weft_status load(const char *name, const char *file, weft_error *error)
{
    char folder[3900], path[4000];
    find_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (access(path, F_OK) != 0) return fail_absent(name, folder, file, error);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return weft_fail(error, WEFT_USAGE,
                         "there is no device %s: %.160s cannot be loaded: %.240s", name, path,
                         reason_of(path));
    const weft_device_plugin *plugin = dlsym(library, "weft_device_entry");
    weft_status status = check_version(plugin, path, error);
    if (status == WEFT_OK) status = plugin->open(error);
    if (status == WEFT_OK && weft_device_named(name) < 0)
        status =
            weft_fail(error, WEFT_INTERNAL,
                      "%.200s added its device to another libweft.so than this program's", path);
    if (status != WEFT_OK && weft_device_named(name) < 0) dlclose(library);
    return status;
}

/* "cuda:1": which of a device's units a rank takes is not said by name. */
static weft_status fail_numbered(const char *name, const char *colon, weft_error *error)
{
    return weft_fail(error, WEFT_USAGE,
                     "no device %.60s: a rank takes the one of its place among those of its host; "
                     "say %.*s, and which there are by CUDA_VISIBLE_DEVICES=%.40s",
                     name, (int)(colon - name), name, colon[1] ? colon + 1 : "0");
}

static weft_status fail_unknown(const char *name, weft_error *error)
{
    const char *known[WEFT_DEVICES + N_LIBRARIES + 1] = {"auto"};
    int n = 1;
    char list[WEFT_DEVICES * 20] = "";
    const char *colon = strchr(name, ':');
    for (int i = 0; i < N_LIBRARIES && colon != NULL; i++)
        if (strlen(libraries[i].device) == (size_t)(colon - name) &&
            strncmp(name, libraries[i].device, (size_t)(colon - name)) == 0)
            return fail_numbered(name, colon, error);
    for (int at = 0; at < WEFT_DEVICES && weft_devices[at] != NULL; at++)
        known[n++] = weft_devices[at]->name;
    for (int i = 0; i < N_LIBRARIES; i++)
        if (weft_device_named(libraries[i].device) < 0) known[n++] = libraries[i].device;
    for (int i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.18s", i ? ", " : "",
                 known[i]);
    /* what most call one; the nearest by its letters is the cpu */
    const char *near = strcmp(name, "gpu") == 0 ? "cuda" : weft_nearest(name, known, n);
    return weft_fail(error, WEFT_USAGE, "no device %.60s%s%s%s; it can be one of: %s", name,
                     near ? "; did you mean " : "", near ? near : "", near ? "?" : "", list);
}

static weft_status find(const char *name, int *kind, weft_error *error)
{
    *kind = weft_device_named(name);
    for (int i = 0; i < N_LIBRARIES && *kind < 0; i++) {
        if (strcmp(name, libraries[i].device) != 0) continue;
        WEFT_TRY(load(name, libraries[i].file, error));
        *kind = weft_device_named(name);
    }
    return *kind < 0 ? fail_unknown(name, error) : WEFT_OK;
}

static weft_status find_once(const char *name, int *kind, weft_error *error)
{
    pthread_mutex_lock(&loading);
    const weft_status status = find(name, kind, error);
    pthread_mutex_unlock(&loading);
    return status;
}

weft_status weft_device_look(const char *name, weft_error *error)
{
    int kind;
    WEFT_GIVEN(name, error);
    return find_once(name, &kind, error);
}

/* The first that is there of those in libraries, else the CPU. */
static weft_status find_any(int *kind, weft_error *error)
{
    weft_error why = {WEFT_OK, -1, ""};
    for (int i = 0; i < N_LIBRARIES; i++)
        if (find_once(libraries[i].device, kind, &why) == WEFT_OK) return WEFT_OK;
    return find_once("cpu", kind, error);
}

weft_status weft_device_choose(const char *name, weft_error *error)
{
    int kind = -1;
    WEFT_GIVEN(name, error);
    if (strcmp(name, "auto") == 0)
        WEFT_TRY(find_any(&kind, error));
    else
        WEFT_TRY(find_once(name, &kind, error));
    weft_mesh_use_device((weft_device_kind)kind);
    return WEFT_OK;
}
