/* plugin.h: all of the device cuda. */
#ifndef WEFT_CUDA_PLUGIN_H
#define WEFT_CUDA_PLUGIN_H

#include "weft/error.h"

/* cuda_open_all - the driver, the device's table, its kernels. Once in a process; else a sentence that says what is not there. */
weft_status cuda_open_all(weft_error *error);

#endif
