/* registry.h: which kernel does an op's work: found by op, device and dtype, among Weft's own (kernel_list.inc) and those
 * from outside (weft_kernel_add).
 *
 *     WEFT_TRY(weft_kernel_find("einsum", device, &call, &choice, error));
 *     WEFT_TRY(choice.kernel->prepare(&call, arena, &call.prepared, error));        where there is one
 *     choice.kernel->launch(&call);                                                 any number of times
 *
 * Ops are known by their names alone. All functions are Local; any thread may call them at any time.
 */
#ifndef WEFT_REGISTRY_H
#define WEFT_REGISTRY_H

#include "kernel.h"
#include "loop.h"

enum { WEFT_MAX_KERNELS = 512 }; /* from outside */

typedef struct weft_kernel_choice {
    const weft_kernel *kernel;
    int n_could; /* how many take the call, that one included */
} weft_kernel_choice;

/* weft_kernel_find - of the kernels that take the call, the one of the highest priority. WEFT_USAGE when there is none,
 * with a sentence that says what there is.
 *
 * call   its data, stream, prepared and scratch are not looked at
 */
weft_status weft_kernel_find(const char *op, weft_device_kind device, const weft_call *call,
                             weft_kernel_choice *choice, weft_error *error);

/* weft_loop_driver_of - what runs loops on a device; WEFT_USAGE when there is none. weft_loop_driver_add - what does on one
 * more, copied; refused where one does. */
weft_status weft_loop_driver_of(weft_device_kind device, const weft_loop_driver **driver,
                                weft_error *error);
weft_status weft_loop_driver_add(const weft_loop_driver *driver, weft_error *error);

/* The dtype that a call is filed under: of its first operand, without operands of its first result. */
weft_dtype weft_call_dtype(const weft_call *call);

/* weft_kernel_add - one more kernel for an op. Refused: one that could not be told from another that is there (op, device
 * and name the same), or not chosen between (op, device, a dtype and priority the same), or one of nothing.
 *
 * op       kept: it lives as long as the process, and so do the kernel's name and functions
 * kernel   copied
 */
weft_status weft_kernel_add(const char *op, const weft_kernel *kernel, weft_error *error);

/* The kernels there are, Weft's own first. NULL past the end. */
const weft_kernel *weft_kernel_at(int index, const char **op);

#endif
