/* plugin: what libweft_cuda.so has: the device, and what computes on it. */
#include "mesh/cuda/parts.h"
#include "mesh/devices.h"

static weft_status open_all(weft_error *error)
{
    weft_device_kind kind;
    return cuda_device_open(&kind, error);
}

WEFT_API extern const weft_device_plugin weft_device_entry;
WEFT_API const weft_device_plugin weft_device_entry = {WEFT_VERSION, open_all};
