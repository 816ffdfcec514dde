/* devices: which devices there are, and which one meshes are made on. */
#include "devices.h"

#include "mesh_internal.h"
#include "weft/name.h"

#include <pthread.h>
#include <string.h>

const weft_device *weft_devices[WEFT_DEVICES] = {[WEFT_CPU] = &weft_device_cpu};

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int in_use = WEFT_CPU; /* a setting of the process, as the machine is */

static weft_status add(const weft_device *device, weft_device_kind *kind, weft_error *error)
{
    int at = 0;
    while (at < WEFT_DEVICES && weft_devices[at] != NULL) {
        if (strcmp(weft_devices[at]->name, device->name) == 0)
            return weft_fail(error, WEFT_USAGE, "there is a device %s; give this one another name",
                             device->name);
        at++;
    }
    if (at == WEFT_DEVICES)
        return weft_fail(error, WEFT_USAGE, "device %s: there are %d devices, which is the most",
                         device->name, WEFT_DEVICES);
    weft_devices[at] = device;
    *kind = (weft_device_kind)at;
    return WEFT_OK;
}

weft_status weft_device_add(const weft_device *device, weft_device_kind *kind, weft_error *error)
{
    WEFT_GIVEN(device, error);
    WEFT_GIVEN(kind, error);
    WEFT_TRY(weft_name_check("weft_device_add: the device", device->name, error));
    pthread_mutex_lock(&adding);
    const weft_status status = add(device, kind, error);
    pthread_mutex_unlock(&adding);
    return status;
}

int weft_device_named(const char *name)
{
    for (int at = 0; at < WEFT_DEVICES && weft_devices[at] != NULL; at++)
        if (strcmp(weft_devices[at]->name, name) == 0) return at;
    return -1;
}

void weft_mesh_use_device(weft_device_kind kind)
{
    if ((unsigned)kind < WEFT_DEVICES && weft_devices[kind] != NULL) atomic_store(&in_use, kind);
}

weft_device_kind weft_device_in_use(void)
{
    return (weft_device_kind)atomic_load(&in_use);
}
