/* devices.h (private): devices beside the CPU, which one meshes are made on, and the libraries that devices come in. */
#ifndef WEFT_DEVICES_H
#define WEFT_DEVICES_H

#include "weft/device.h"

/* weft_device_named - its number; -1: there is none yet. Local. */
int weft_device_named(const char *name);

/* weft_mesh_use_device - the device of meshes that are created from now on, the CPU until then; of no such device:
 * nothing changes. Local. */
void weft_mesh_use_device(weft_device_kind kind);
weft_device_kind weft_device_in_use(void);

/* A library that a device comes in has one of these, called weft_device_entry. It is of Weft's own making, and shares what
 * is private: it is taken only where its version is the library's. */
typedef struct weft_device_plugin {
    const char *version; /* of the headers that it was compiled with */
    /* Adds the device, its kernels, and what runs loops on it; or says in one sentence why there is none. Once. */
    weft_status (*open)(weft_error *error);
} weft_device_plugin;

#endif
