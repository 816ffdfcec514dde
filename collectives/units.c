/* units: ranks that share a unit of their device take turns on it and share its memory, which nobody wants who has not said so: so it
 * is found out before any of it is used. A launcher may show each process one GPU of its own, or all of a host's to all: only
 * what they are tells.
 */
#include "units.h"

#include <stdlib.h>

static void find_here(const weft_mesh *mesh, weft_device_unit *all)
{
    const weft_device *device = weft_devices[weft_mesh_device(mesh)];
    const int first = weft_mesh_first_local(mesh);
    for (int i = 0; i < weft_mesh_n_local(mesh); i++)
        device->unit(weft_mesh_stream((weft_mesh *)(uintptr_t)mesh, first + i), &all[i]);
}

/* The first rank that is on the same unit. */
static int first_on(const weft_device_unit *all, int r)
{
    int first = 0;
    while (all[first].id != all[r].id)
        first++;
    return first;
}

static weft_status check(const weft_device_unit *all, int n, weft_error *error)
{
    int n_units = 0, shared = -1;
    for (int r = 0; r < n; r++) {
        const int first = first_on(all, r);
        const bool may = all[r].may_be_shared && all[first].may_be_shared;
        n_units += first == r;
        if (first < r && !may && shared < 0) shared = r;
    }
    if (shared < 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "ranks %d and %d would share device %s, as %d ranks have %d of them in all; "
                     "start one rank for each, or %s to let several share one",
                     first_on(all, shared), shared, all[shared].name, n, n_units,
                     all[shared].way_out);
}

weft_status weft_units_check(const weft_mesh *mesh, weft_comm *comm, weft_error *error)
{
    const int n = weft_mesh_n_ranks(mesh);
    const size_t bytes = ((size_t)n + 1) * sizeof(weft_device_unit);
    weft_error own = WEFT_NO_ERROR;
    if (weft_devices[weft_mesh_device(mesh)]->unit == NULL || n == 1) return WEFT_OK;
    weft_device_unit *all = calloc(1, bytes);
    if (all == NULL) weft_fail_memory(&own, bytes);
    if (comm != NULL) (void)weft_world_agree(&own);
    weft_status status = own.status;
    if (status == WEFT_OK) {
        find_here(mesh, comm != NULL ? &all[n] : all);
        if (comm != NULL) status = weft_comm_gather(comm, &all[n], sizeof *all, all, error);
        if (status == WEFT_OK) status = check(all, n, error);
    } else {
        weft_fail(error, status, "%s", own.message);
    }
    free(all);
    return status;
}
