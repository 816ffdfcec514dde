/* app: the way in and the way out of our programs. */
#include "app.h"

int app_error(const char *program, const weft_error *error)
{
    static const int exits[] = {
        [WEFT_OK] = 0,    [WEFT_USAGE] = 2,    [WEFT_IO] = 2,       [WEFT_MEMORY] = 1,
        [WEFT_COMM] = 71, [WEFT_MISMATCH] = 2, [WEFT_INTERNAL] = 1,
    };
    if (error->status == WEFT_OK || !weft_world_is_root()) return exits[error->status];
    if (error->rank > 0) /* rank 0 speaks for all */
        fprintf(stderr, "%s: rank %d: %s\n", program, error->rank, error->message);
    else
        fprintf(stderr, "%s: %s\n", program, error->message);
    return exits[error->status];
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
              const weft_error *error)
{
    weft_layout_destroy(layout);
    weft_mesh_destroy(mesh);
    settings_destroy(s);
    const int code = app_error(table->program, error);
    weft_world_close();
    return code;
}
