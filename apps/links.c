/* links: the speed of links that was asked to be measured, as the text that stands for it from then on. */
#include "links.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

weft_status app_links_measure(weft_mesh *mesh, weft_link_speed *speeds, weft_error *error)
{
    weft_comms *comms = NULL;
    weft_error own = {.rank = -1};
    (void)!weft_comms_create(mesh, &comms, &own);
    weft_status status = weft_world_agree(&own);
    if (status == WEFT_OK) status = weft_comms_measure(comms, speeds, &own);
    weft_comms_destroy(&comms);
    return status == WEFT_OK ? WEFT_OK : weft_fail(error, own.status, "%s", own.message);
}

/* What an earlier start of this run has measured on this mesh; "": nothing. */
static void read_measured(const char *run, const weft_mesh *mesh, char *text, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/run.json", run);
    json_t *all = json_load_file(path, 0, NULL);
    const json_t *measured = json_object_get(all, "measured_link");
    const char *of = json_string_value(json_object_get(measured, "mesh"));
    const char *link = json_string_value(json_object_get(measured, "link"));
    *text = '\0';
    if (of && link && strcmp(of, weft_mesh_text(mesh)) == 0 && strlen(link) < bytes)
        snprintf(text, bytes, "%s", link);
    json_decref(all);
}

/* Ranks of one process have one text: only between processes it has to travel. */
static weft_status tell_all(weft_mesh *mesh, char *text, weft_error *error)
{
    const uint32_t all = (1u << weft_mesh_n_axes(mesh)) - 1;
    weft_comms *comms = NULL;
    if (weft_mesh_n_local(mesh) == weft_mesh_n_ranks(mesh)) return WEFT_OK;
    (void)!weft_comms_create(mesh, &comms, error);
    weft_status status = weft_world_agree(error);
    if (status == WEFT_OK) status = weft_comms_prepare(comms, all, error);
    if (status == WEFT_OK)
        status = weft_broadcast(weft_comm_of(comms, weft_mesh_first_local(mesh), all), 0, text,
                                APP_LINK_BYTES, error);
    weft_comms_destroy(&comms);
    return status;
}

weft_status app_links(const settings *s, weft_mesh *mesh, app_link *link, weft_error *error)
{
    weft_link_speed speeds[WEFT_MAX_AXES];
    const char *said = settings_text(s, "link");
    *link = (app_link){.is_measured = strcmp(said, "measured") == 0};
    if (!link->is_measured) {
        static const char *const measured[] = {"measured"};
        if (weft_nearest(said, measured, 1))
            return weft_fail(
                error, WEFT_USAGE,
                "--link %.100s: did you mean measured? Else it takes speeds: 1GB+50us, or "
                "data:125MB,model:10GB",
                said);
        if (strlen(said) >= sizeof link->text)
            return weft_fail(error, WEFT_USAGE, "--link has %zu letters; it may have %zu",
                             strlen(said), sizeof link->text - 1);
        snprintf(link->text, sizeof link->text, "%s", said);
        return WEFT_OK;
    }
    if (weft_mesh_n_local(mesh) == 0)
        return weft_fail(
            error, WEFT_USAGE,
            "--link measured needs the ranks, and a plan has none: state what "
            "`weft info --links` printed there, or what run.json has as measured_link");
    if (weft_mesh_is_root(mesh))
        read_measured(settings_text(s, "run"), mesh, link->text, sizeof link->text);
    WEFT_TRY(tell_all(mesh, link->text, error));
    if (*link->text) return WEFT_OK;
    WEFT_TRY(app_links_measure(mesh, speeds, error));
    weft_links_text(mesh, speeds, link->text, sizeof link->text);
    return WEFT_OK;
}
