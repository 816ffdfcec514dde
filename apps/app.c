/* app: the way in and the way out of our programs. */
#include "app.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "weft/checkpoint.h"
#include "weft/extend/plugin.h"

static const int exits[][APP_PHASES] = {
    [WEFT_OK] = {0, 0},       [WEFT_USAGE] = {2, 2},       [WEFT_IO] = {2, 74},
    [WEFT_MEMORY] = {1, 1},   [WEFT_COMM] = {71, 71},      [WEFT_MISMATCH] = {2, 73},
    [WEFT_INTERNAL] = {1, 1}, [WEFT_NONFINITE] = {76, 76}, [WEFT_CORRUPT] = {77, 77},
};

/* Before main: whatever locale a plug-in sets for all, this thread, which reads options and writes logs, metrics and reports,
 * keeps "C". */
__attribute__((constructor)) static void keep_plain_locale(void)
{
    uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void app_name_options(weft_error *error)
{
    static const char *const names[][2] = {{"weft_lanes_choose", "--lanes"},
                                           {"other_data of the options", "--data-changed"},
                                           {"noisy of the options", "--noisy"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *there = names[i][0], *here = names[i][1]; /* not longer */
        char *at = strstr(error->message, there);
        if (at == NULL) continue;
        memcpy(at, here, strlen(here));
        memmove(at + strlen(here), at + strlen(there), strlen(at + strlen(there)) + 1);
    }
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

int app_leave(const char *program, app_phase phase, const weft_error *error)
{
    weft_world world;
    weft_error first = *error, unopened = {.rank = -1}, json = {.rank = -1};
    /* whatever was concluded since, may be for want of what Jansson was refused */
    if (first.status != WEFT_MEMORY && app_json_status(&json) != WEFT_OK) first = json;
    if (!is_joined && app_join(&world, &unopened) == WEFT_OK) (void)weft_world_agree(&first);
    app_name_options(&first);
    say(program, &first);
    weft_world_close();
    return exits[first.status][phase];
}

/* The library looks into the environment, which may have it already. */
void app_device_path(const settings *s)
{
    const char *path = settings_text(s, "device-path");
    if (path[0] != '\0') (void)setenv("WEFT_DEVICE_PATH", path, 1);
}

weft_status app_extend(const settings *s, weft_error *error)
{
    const char *files = settings_text(s, "plugin");
    for (size_t n; files[0] != '\0'; files += n + (files[n] == ':')) {
        char path[4096];
        n = strcspn(files, ":");
        if (n >= sizeof path)
            return weft_fail(error, WEFT_USAGE, "--plugin: a path of %zu letters; it may have %zu",
                             n, sizeof path - 1);
        snprintf(path, sizeof path, "%.*s", (int)n, files);
        if (n > 0) WEFT_TRY(weft_extend_load(path, error));
    }
    app_device_path(s);
    WEFT_TRY(weft_device_choose(settings_text(s, "device"), error)); /* it may bring an engine */
    weft_sums_in_order(settings_flag(s, "deterministic"));
    weft_lanes_choose((int)settings_count(s, "lanes"));
    return weft_engine_choose(settings_text(s, "engine"), error);
}

/* Ranks that do different things would wait for each other for ever. */
static weft_status agree_on_plan(bool is_plan, weft_error *error)
{
    bool some, others;
    WEFT_TRY(weft_world_any(is_plan, &some, error));
    WEFT_TRY(weft_world_any(!is_plan, &others, error));
    if (!some || !others) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "some ranks were started with --dry-run and others to train; give all ranks "
                     "the same command");
}

static weft_status open_mesh(const settings *s, bool is_plan, const weft_world *world,
                             weft_mesh **mesh, weft_error *error)
{
    const char *text = settings_text(s, "mesh");
    return is_plan ? weft_mesh_plan(text, mesh, error) : weft_mesh_create(world, text, mesh, error);
}

weft_status app_begin(const settings *s, bool is_plan, weft_world *world, weft_error *error)
{
    WEFT_TRY(app_join(world, error));
    WEFT_TRY(agree_on_plan(is_plan, error));
    (void)!app_extend(s, error);
    return weft_world_agree(error);
}

weft_status app_lay_out(const settings *s, bool is_plan, const weft_world *world, weft_mesh **mesh,
                        weft_layout **layout, weft_error *error)
{
    if (open_mesh(s, is_plan, world, mesh, error) == WEFT_OK &&
        weft_layout_create(settings_text(s, "layout"), layout, error) == WEFT_OK)
        (void)!weft_layout_store(*layout, (int)settings_count(s, "zero"), "batch", error);
    return weft_world_agree(error);
}

weft_status app_open(const settings *s, bool is_plan, weft_world *world, weft_mesh **mesh,
                     weft_layout **layout, weft_error *error)
{
    WEFT_TRY(app_begin(s, is_plan, world, error));
    return app_lay_out(s, is_plan, world, mesh, layout, error);
}

int app_close(const option_table *table, settings **s, weft_mesh **mesh, weft_layout **layout,
              app_phase phase, const weft_error *error)
{
    weft_layout_destroy(layout);
    weft_mesh_destroy(mesh);
    settings_destroy(s);
    return app_leave(table->program, phase, error);
}

void app_put_byte(int byte)
{
    const bool is_control = (byte < 32 && byte != '\n' && byte != '\t') || byte == 127;
    putchar(is_control ? '?' : byte);
}

static weft_status fail_list(const char *folder, weft_error *error)
{
    return weft_fail(error, errno == ENOMEM ? WEFT_MEMORY : WEFT_IO, "cannot list %.300s: %s",
                     folder, strerror(errno));
}

weft_status app_steps(const char *folder, int64_t **steps, int *n, weft_error *error)
{
    *steps = NULL;
    const int room = *n = weft_stored_steps(folder, NULL, 0);
    if (room < 0) return fail_list(folder, error);
    *steps = calloc((size_t)room + 1, sizeof **steps);
    if (!*steps) return weft_fail_memory(error, ((size_t)room + 1) * sizeof **steps);
    *n = weft_stored_steps(folder, *steps, room);
    if (*n > room) *n = room; /* another one has appeared */
    if (*n >= 0) return WEFT_OK;
    free(*steps);
    *steps = NULL;
    return fail_list(folder, error);
}

/* "a, b and c" */
static void list_names(const char *const *names, int n, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", names[i],
                                 i + 2 < n    ? ", "
                                 : i + 2 == n ? " and "
                                              : "");
}

int app_find_command(const char *command, const char *name, const char *const *names, int n,
                     weft_error *error)
{
    char all[200];
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    const char *near = weft_nearest(name, names, n);
    list_names(names, n, all, sizeof all);
    weft_fail(error, WEFT_USAGE, "unknown command \"%s %s\"; %s%s%s", command, name,
              near ? "did you mean " : "there are ", near ? near : all, near ? "?" : "");
    return -1;
}
