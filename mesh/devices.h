/* devices.h (private): devices beside the CPU, and which one meshes are made on. */
#ifndef WEFT_DEVICES_H
#define WEFT_DEVICES_H

#include "weft/device.h"

/* weft_device_add - one more, known by its name. It is not copied, and lives as long as the process. Local; before a mesh
 * is made on it. */
weft_status weft_device_add(const weft_device *device, weft_device_kind *kind, weft_error *error);

/* weft_mesh_use_device - the device of meshes that are created from now on, the CPU until then; of no such device:
 * nothing changes. Local. */
void weft_mesh_use_device(weft_device_kind kind);
weft_device_kind weft_device_in_use(void);

#endif
