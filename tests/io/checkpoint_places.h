/* checkpoint_places.h: meshes and layouts on which a net is saved and restored, those that a world can have. */
#ifndef TEST_CHECKPOINT_PLACES_H
#define TEST_CHECKPOINT_PLACES_H

#include "checkpoint_net.h"

static const place all_places[] = {
    {"data:1", "", 0, 1},
    {"data:2", "batch:data", 0, 2},
    {"data:2", "batch:data", 3, 2},
    {"model:2", "hidden:model", 0, 2},
    {"model:2", "digit:model,pixel:model", 0, 2},
    {"data:3", "batch:data", 1, 3},
    {"data:3", "batch:data", 3, 3},
    {"model:3", "hidden:model", 0, 3},
    {"data:2,model:2", "batch:data,hidden:model", 0, 4},
    {"data:2,model:2", "batch:data,hidden:model", 3, 4},
    {"data:4", "batch:data", 2, 4},
    {"data:2,model:4", "batch:data,hidden:model+data", 3, 8}, /* some boxes are empty */
};
static place places[16];
static int n_places;

/* Those that this world can have: all when alone. */
static inline void find_places(void)
{
    for (size_t i = 0; i < sizeof all_places / sizeof *all_places; i++)
        if (world.n_processes == 1 || all_places[i].n_ranks == world.n_processes)
            places[n_places++] = all_places[i];
}

/* The tests of a world of any number of processes. */
static inline int in_world(void (*run_all)(void))
{
    weft_error error = {0};
    if (!CHECK_OK(weft_world_open(&world, &error), error)) return weft_test_report();
    find_places();
    if (CAN_SAVE)
        run_all();
    else
        check_cannot_save();
    CHECK_EQ_INT(weft_world_agree(&error), WEFT_OK); /* nobody still reads */
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}

#endif
