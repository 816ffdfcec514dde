/* app: the way in and the way out of our programs. */
#include "app.h"

static const int exits[][APP_PHASES] = {
    [WEFT_OK] = {0, 0},       [WEFT_USAGE] = {2, 2},       [WEFT_IO] = {2, 74},
    [WEFT_MEMORY] = {1, 1},   [WEFT_COMM] = {71, 71},      [WEFT_MISMATCH] = {2, 73},
    [WEFT_INTERNAL] = {1, 1}, [WEFT_NONFINITE] = {76, 76}, [WEFT_CORRUPT] = {77, 77},
};

int app_error(const char *program, app_phase phase, const weft_error *error)
{
    const int code = exits[error->status][phase];
    if (error->status == WEFT_OK || !weft_world_is_root()) return code;
    if (error->rank > 0) /* rank 0 speaks for all */
        fprintf(stderr, "%s: rank %d: %s\n", program, error->rank, error->message);
    else
        fprintf(stderr, "%s: %s\n", program, error->message);
    return code;
}

weft_status app_open(const settings *s, weft_mesh **mesh, weft_layout **layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    if (weft_mesh_create(&world, settings_text(s, "mesh"), mesh, error) == WEFT_OK &&
        weft_layout_create(settings_text(s, "layout"), layout, error) == WEFT_OK)
        weft_layout_store(*layout, (int)settings_count(s, "zero"), "batch");
    return weft_world_agree(error);
}

int app_close(const option_table *table, settings **s, weft_mesh **mesh, weft_layout **layout,
              app_phase phase, const weft_error *error)
{
    weft_layout_destroy(layout);
    weft_mesh_destroy(mesh);
    settings_destroy(s);
    const int code = app_error(table->program, phase, error);
    weft_world_close();
    return code;
}
