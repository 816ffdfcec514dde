/* areas: memory that was taken for the ranks of a mesh, and where in it something lies. */
#include "areas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_status make_room(weft_areas *areas, weft_error *error)
{
    if (areas->n < areas->room) return WEFT_OK;
    const int room = 2 * areas->room + 2;
    weft_area *all = realloc(areas->all, (size_t)room * sizeof *all);
    if (all == NULL) return weft_fail_memory(error, (size_t)room * sizeof *all);
    areas->all = all;
    areas->room = room;
    return WEFT_OK;
}

/* What no other process sees needs no segment, and lies on larger pages without. */
static weft_status share(weft_areas *areas, weft_area *area, const weft_host_shm_peers *peers,
                         weft_error *error)
{
    if (peers == NULL || peers->n == 1 || areas->n >= WEFT_MOST_AREAS) return WEFT_OK;
    WEFT_TRY(weft_host_shm_make(&area->near, peers, area->bytes, error));
    if (area->near.n == 0) snprintf(areas->why, sizeof areas->why, "%s", area->near.why);
    if (area->near.n == 1) weft_host_shm_free(&area->near);
    return WEFT_OK;
}

weft_status weft_areas_take(weft_areas *areas, const weft_host_shm_peers *peers, int64_t bytes,
                            void **memory, weft_error *error)
{
    weft_error own = {.rank = -1};
    *memory = NULL;
    (void)make_room(areas, &own);
    const weft_status status = peers != NULL ? peers->agree(peers->context, &own) : own.status;
    if (status != WEFT_OK) return weft_fail(error, status, "%s", own.message);
    weft_area *area = &areas->all[areas->n];
    *area = (weft_area){.bytes = bytes};
    WEFT_TRY(share(areas, area, peers, error));
    if (area->near.n == 0)
        WEFT_TRY(areas->device->take_staging((size_t)bytes, &area->plain, error));
    *memory = area->near.n > 0 ? area->near.memory[area->near.self] : area->plain;
    areas->n++;
    return WEFT_OK;
}

void weft_areas_free(weft_areas *areas)
{
    for (int i = 0; i < areas->n; i++) {
        weft_host_shm_free(&areas->all[i].near);
        areas->device->give_staging(areas->all[i].plain, (size_t)areas->all[i].bytes);
    }
    free(areas->all);
    *areas = (weft_areas){0};
}

weft_area_place weft_areas_find(const weft_areas *areas, const void *memory, int64_t bytes)
{
    for (int i = 0; i < areas->n; i++) {
        const weft_host_shm *near = &areas->all[i].near;
        if (near->n == 0) continue;
        const uintptr_t at = (uintptr_t)memory - (uintptr_t)near->memory[near->self];
        if (at <= (uintptr_t)near->bytes && bytes <= near->bytes - (int64_t)at)
            return (weft_area_place){i, 0, (int64_t)at};
    }
    return (weft_area_place){-1, 0, 0};
}

char *weft_areas_at(const weft_areas *areas, weft_area_place place, int rank)
{
    if (place.area < 0 || place.area >= areas->n) return NULL;
    const weft_host_shm *near = &areas->all[place.area].near;
    for (int k = 0; k < near->n; k++)
        if (near->peers[k] == rank) return near->memory[k] + place.at;
    return NULL;
}
