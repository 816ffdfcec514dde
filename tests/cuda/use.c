/* use: with TEST_DEVICE=cuda the meshes of a test are on the device cuda. For tests that know nothing of it (CMakeLists.txt). */
#include "mesh/devices.h"
#include "ops/kernel/cuda/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void use(void)
{
    const char *device = getenv("TEST_DEVICE");
    weft_error error = {0};
    if (device == NULL || strcmp(device, "cuda") != 0) return;
    if (cuda_open_all(&error) != WEFT_OK) {
        printf("skipped: %s\n", error.message);
        exit(77);
    }
    weft_mesh_use_device((weft_device_kind)weft_device_named("cuda"));
}
