/* app: the way in and the way out of our programs. */
#include "app.h"

static int exit_status(weft_status status)
{
    static const int exits[] = {
        [WEFT_OK] = 0,    [WEFT_USAGE] = 2,    [WEFT_IO] = 2,       [WEFT_MEMORY] = 1,
        [WEFT_COMM] = 71, [WEFT_MISMATCH] = 2, [WEFT_INTERNAL] = 1,
    };
    return exits[status];
}

static void say(const char *program, const weft_error *error)
{
    if (error->status == WEFT_OK || !weft_world_is_root()) return;
    if (error->rank > 0) /* rank 0 speaks for all */
        fprintf(stderr, "%s: rank %d: %s\n", program, error->rank, error->message);
    else
        fprintf(stderr, "%s: %s\n", program, error->message);
}

static bool is_joined; /* this process has been where all agree */

weft_status app_join(weft_world *world, weft_error *error)
{
    is_joined = true;
    return weft_world_open(world, error);
}

int app_leave(const char *program, const weft_error *error)
{
    weft_world world;
    weft_error first = *error, unopened = {.rank = -1};
    if (!is_joined && app_join(&world, &unopened) == WEFT_OK) (void)weft_world_agree(&first);
    say(program, &first);
    weft_world_close();
    return exit_status(first.status);
}

weft_status app_open(const settings *s, weft_mesh **mesh, weft_layout **layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(app_join(&world, error));
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
    return app_leave(table->program, error);
}
