/* areas.h (private): memory that was taken for the ranks of a mesh, and where in it something lies: so that a rank can tell
 * the others of its host, which have the same memory at other addresses.
 */
#ifndef WEFT_AREAS_H
#define WEFT_AREAS_H

#include "host_shm.h"
#include "weft/device.h"

enum { WEFT_MOST_AREAS = 8 }; /* seen by others; what is taken beyond is this process's alone */

typedef struct weft_area {
    weft_host_shm near; /* n 0: nobody else sees it */
    void *plain;        /* then */
    int64_t bytes;
} weft_area;

typedef struct weft_areas {
    const weft_device *device; /* of the mesh; set by whoever has them */
    int n, room;
    weft_area *all; /* [room], of which [n] */
    char why[120];  /* memory that others see was refused; "": never */
} weft_areas;

/* Where something lies. */
typedef struct weft_area_place {
    int32_t area; /* -1: where nobody else sees it */
    int32_t unused;
    int64_t at;
} weft_area_place;

/* weft_areas_take - of the peers, which are the ranks of the mesh, or NULL: of this process alone. Collective over them.
 * weft_areas_free - Local. */
weft_status weft_areas_take(weft_areas *areas, const weft_host_shm_peers *peers, int64_t bytes,
                            void **memory, weft_error *error);
void weft_areas_free(weft_areas *areas);
/* weft_areas_find - where this rank's [bytes] lie. weft_areas_at - what lies at a place of that rank of the mesh, in
 * this process's addresses; NULL: not on this host. Local. */
weft_area_place weft_areas_find(const weft_areas *areas, const void *memory, int64_t bytes);
char *weft_areas_at(const weft_areas *areas, weft_area_place place, int rank);

#endif
