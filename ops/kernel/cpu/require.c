/* require.c: a condition that has to hold, looked at when its turn comes, and before anything is written: the result may lie in a
 * variable's memory. */
#include "cpu/kernels.h"
#include "require.h"

void weft_require_cpu(const weft_call *call)
{
    if (*(const int32_t *)call->in[1].data != 0)
        weft_copy_cpu(call);
    else
        weft_require_fail(call, call->n_in > 2 ? call->in[2].data : NULL);
}

const weft_kernel weft_kernel_require = {
    .size = sizeof(weft_kernel),
    .name = "require",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_require_cpu,
};
