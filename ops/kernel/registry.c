/* registry.c: one list of kernels; what is added from outside stands after Weft's own.
 *
 * Nothing is ever taken out, so readers need no lock: an entry is written before the count that lets them see it.
 */
#include "registry.h"

#include "weft/name.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
    const char *op;
    const weft_kernel *kernel;
} entry;

#define WEFT_KERNEL(op, table) extern const weft_kernel weft_kernel_##table;
#include "kernel_list.inc"
#undef WEFT_KERNEL
#define WEFT_KERNEL(op, table) {#op, &weft_kernel_##table},
static const entry own[] = {
#include "kernel_list.inc"
};
#undef WEFT_KERNEL
enum { n_own = sizeof own / sizeof own[0], BUCKETS = 128 };

/* Those of one op, found by its name, in the order of the list: entry + 1; 0: none. */
static uint16_t first_own[BUCKETS], next_own[n_own];
static pthread_once_t is_listed = PTHREAD_ONCE_INIT;

static entry outside[WEFT_MAX_KERNELS];
static weft_kernel copies[WEFT_MAX_KERNELS]; /* what those are of */
static atomic_int n_outside;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static const entry *entry_at(int index)
{
    if (index < 0 || index >= n_own + atomic_load(&n_outside)) return NULL;
    return index < n_own ? &own[index] : &outside[index - n_own];
}

static uint32_t bucket_of(const char *op)
{
    uint32_t hash = 0;
    for (; *op; op++)
        hash = 31 * hash + (unsigned char)*op;
    return hash % BUCKETS;
}

static void list_own(void)
{
    for (int k = n_own; k-- > 0;) {
        uint16_t *first = &first_own[bucket_of(own[k].op)];
        next_own[k] = *first;
        *first = (uint16_t)(k + 1);
    }
}

/* The first entry that may be of the op, and the one behind `index`; past the end: none. */
static int first_of(const char *op)
{
    pthread_once(&is_listed, list_own);
    const int first = first_own[bucket_of(op)];
    return first ? first - 1 : n_own;
}

static int next_of(int index)
{
    if (index >= n_own) return index + 1;
    return next_own[index] ? next_own[index] - 1 : n_own;
}

const weft_kernel *weft_kernel_at(int index, const char **op)
{
    const entry *at = entry_at(index);
    if (!at) return NULL;
    *op = at->op;
    return at->kernel;
}

weft_dtype weft_call_dtype(const weft_call *call)
{
    return call->n_in > 0 ? call->in[0].dtype : call->out[0].dtype;
}

/* ---- what there is, for sentences ------------------------------------------------------------ */

static bool is_device(weft_device_kind device)
{
    return (unsigned)device < WEFT_DEVICES && weft_devices[device] != NULL;
}

static const char *device_name(weft_device_kind device)
{
    return is_device(device) ? weft_devices[device]->name : "no device";
}

static int n_devices(void)
{
    int n = 0;
    while (is_device((weft_device_kind)n))
        n++;
    return n;
}

/* "blas for f32, f64 on cpu" */
static void print_kernel(const weft_kernel *kernel, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%.40s for ", kernel->name);
    const char *comma = "";
    for (int dtype = 0; dtype < WEFT_DTYPES && used < room; dtype++) {
        if (!(kernel->dtypes & WEFT_DTYPE_BIT(dtype))) continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s", comma,
                                 weft_dtype_name((weft_dtype)dtype));
        comma = ", ";
    }
    if (used < room) snprintf(text + used, room - used, " on %s", device_name(kernel->device));
}

static weft_status fail_missing(const char *op, weft_device_kind device, weft_dtype dtype,
                                weft_error *error)
{
    char there[320] = "none at all";
    size_t used = 0;
    bool fits = false;
    const entry *at;
    for (int k = 0; (at = entry_at(k)) != NULL && used < sizeof there; k++) {
        char one[100];
        if (strcmp(at->op, op) != 0) continue;
        print_kernel(at->kernel, one, sizeof one);
        used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", used ? "; " : "", one);
        fits = fits || (at->kernel->device == device && at->kernel->dtypes & WEFT_DTYPE_BIT(dtype));
    }
    return weft_fail(error, WEFT_USAGE, "%s has no kernel%s for %s on %s; there is %s", op,
                     fits ? " that takes these operands" : "", weft_dtype_name(dtype),
                     device_name(device), there);
}

/* ---- what runs loops ------------------------------------------------------------------------- */

extern const weft_loop_driver weft_loops_own;
static const weft_loop_driver *_Atomic drivers[WEFT_DEVICES];
static weft_loop_driver driver_copies[WEFT_DEVICES]; /* what those are of */

static const weft_loop_driver *driver_of(weft_device_kind device)
{
    if (device == weft_loops_own.device) return &weft_loops_own;
    return is_device(device) ? atomic_load(&drivers[device]) : NULL;
}

weft_status weft_loop_driver_of(weft_device_kind device, const weft_loop_driver **driver,
                                weft_error *error)
{
    *driver = driver_of(device);
    if (*driver) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "nothing runs loops of element ops on %s; there is %s",
                     device_name(device), device_name(weft_loops_own.device));
}

weft_status weft_loop_driver_add(const weft_loop_driver *driver, weft_error *error)
{
    WEFT_GIVEN(driver, error);
    if (!is_device(driver->device) || !driver->bind || !driver->run)
        return weft_fail(error, WEFT_USAGE,
                         "what runs loops has a device that is there, bind and run; this has "
                         "device %d%s%s",
                         (int)driver->device, driver->bind ? "" : ", no bind",
                         driver->run ? "" : ", no run");
    pthread_mutex_lock(&adding);
    const bool is_taken = driver_of(driver->device) != NULL;
    if (!is_taken) {
        driver_copies[driver->device] = *driver;
        atomic_store(&drivers[driver->device], &driver_copies[driver->device]);
    }
    pthread_mutex_unlock(&adding);
    if (!is_taken) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "something runs loops on %s already",
                     device_name(driver->device));
}

/* ---- finding and adding ---------------------------------------------------------------------- */

weft_status weft_kernel_find(const char *op, weft_device_kind device, const weft_call *call,
                             weft_kernel_choice *choice, weft_error *error)
{
    const weft_dtype dtype = weft_call_dtype(call);
    const entry *at;
    *choice = (weft_kernel_choice){0};
    for (int k = first_of(op); (at = entry_at(k)) != NULL; k = next_of(k)) {
        const weft_kernel *kernel = at->kernel;
        if (kernel->device != device || !(kernel->dtypes & WEFT_DTYPE_BIT(dtype))) continue;
        if (call->accumulates && !kernel->accumulates) continue;
        if (strcmp(at->op, op) != 0 || (kernel->takes && !kernel->takes(call))) continue;
        choice->n_could++;
        if (!choice->kernel || kernel->priority > choice->kernel->priority) choice->kernel = kernel;
    }
    return choice->kernel ? WEFT_OK : fail_missing(op, device, dtype, error);
}

static weft_status check_kernel(const char *op, const weft_kernel *kernel, weft_error *error)
{
    WEFT_TRY(weft_name_check("weft_kernel_add: the op", op, error));
    WEFT_TRY(weft_name_check("weft_kernel_add: the kernel", kernel->name, error));
    if (!is_device(kernel->device))
        return weft_fail(error, WEFT_USAGE,
                         "kernel %s of %s: device is %d; there are %d devices, from 0 (%s) on",
                         kernel->name, op, (int)kernel->device, n_devices(), device_name(0));
    if (kernel->dtypes == 0 || kernel->dtypes & ~(uint32_t)WEFT_ANY_DTYPE)
        return weft_fail(error, WEFT_USAGE,
                         "kernel %s of %s: dtypes is %#x; it has a bit for each dtype that the "
                         "kernel can do, and no other: from 1 to %#x",
                         kernel->name, op, (unsigned)kernel->dtypes, (unsigned)WEFT_ANY_DTYPE);
    if (!kernel->launch)
        return weft_fail(error, WEFT_USAGE, "kernel %s of %s: launch is NULL; it does the work",
                         kernel->name, op);
    if (kernel->release && !kernel->prepare)
        return weft_fail(error, WEFT_USAGE,
                         "kernel %s of %s: there is release, and no prepare that it gives back",
                         kernel->name, op);
    return WEFT_OK;
}

/* The choice must not depend on which was added first. */
static weft_status check_rivals(const char *op, const weft_kernel *kernel, weft_error *error)
{
    const entry *at;
    for (int k = 0; (at = entry_at(k)) != NULL; k++) {
        const weft_kernel *other = at->kernel;
        if (strcmp(at->op, op) != 0 || other->device != kernel->device) continue;
        if (strcmp(other->name, kernel->name) == 0)
            return weft_fail(error, WEFT_USAGE,
                             "%s has a kernel %s on %s; give this one another name", op,
                             kernel->name, device_name(kernel->device));
        if (other->priority == kernel->priority && other->dtypes & kernel->dtypes)
            return weft_fail(error, WEFT_USAGE,
                             "kernels %s and %s of %s both have priority %d on %s; give this one "
                             "another, so that the choice is clear",
                             other->name, kernel->name, op, kernel->priority,
                             device_name(kernel->device));
    }
    return WEFT_OK;
}

static weft_status add(const char *op, const weft_kernel *kernel, weft_error *error)
{
    const int n = atomic_load(&n_outside);
    WEFT_TRY(check_rivals(op, kernel, error));
    if (n == WEFT_MAX_KERNELS)
        return weft_fail(error, WEFT_USAGE,
                         "kernel %s of %s: there are %d kernels from outside already, which is the "
                         "most",
                         kernel->name, op, n);
    copies[n] = *kernel;
    outside[n] = (entry){op, &copies[n]};
    atomic_store(&n_outside, n + 1);
    return WEFT_OK;
}

weft_status weft_kernel_add(const char *op, const weft_kernel *kernel, weft_error *error)
{
    WEFT_GIVEN(op, error);
    WEFT_GIVEN(kernel, error);
    WEFT_TRY(check_kernel(op, kernel, error));
    pthread_mutex_lock(&adding);
    const weft_status status = add(op, kernel, error);
    pthread_mutex_unlock(&adding);
    return status;
}
