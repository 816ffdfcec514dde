/* advise: what would help: what is asked of the library, and what is told of it. See advise.h. */
#include "advise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "predict.h"
#include "weft/collectives.h"
#include "weft/mesh.h"
#include "whole_file.h"

/* A machine that nobody names is there to rank what fits: no seconds of it are told. */
static const char *const UNNAMED = "laptop";

/* ---- a host's memory -------------------------------------------------------------------------- */

/* Of a nominal machine nobody says how much it has. */
static int64_t memory_of(const char *machine)
{
    return *machine && !strpbrk(machine, "./") ? 0 : weft_machine_memory();
}

/* Where nothing runs, and no machine is named, a host is taken to hold a rank for each of its cores. */
static int ranks_of_host(const weft_mesh *mesh, const weft_machine_model *model, bool is_named)
{
    const int all = weft_mesh_n_ranks(mesh), here = weft_mesh_n_local(mesh),
              near = weft_world_n_near();
    if (!here && is_named) return weft_machine_model_host_ranks(model, all);
    const int ranks = here ? here * near : near > 1 ? near : weft_machine_info()->host_cores;
    return ranks < all ? ranks : all;
}

/* All ranks of the fullest host together; *most: of the rank that needs most. Of very many ranks some of all hosts are looked at, and each
 * of a host is taken to need as much as the fullest of them. */
static weft_status add_up(const weft_program *program, int ranks, int64_t *bytes, int64_t *most,
                          weft_error *error)
{
    enum { LOOKED = 256 };
    const int all = weft_mesh_n_ranks(weft_program_mesh(program));
    const int looked = all < LOOKED ? all : LOOKED, step = all / looked;
    weft_usage usage;
    int64_t host = 0;
    *bytes = *most = 0;
    for (int i = 0; i < looked; i++) {
        const int r = (int)((int64_t)i * all / looked) + i % step;
        WEFT_TRY(weft_plan_usage(program, r, &usage, error));
        host = r % ranks == 0 ? usage.total_bytes : host + usage.total_bytes;
        if (host > *bytes) *bytes = host;
        if (usage.total_bytes > *most) *most = usage.total_bytes;
    }
    if (looked < all) *bytes = *most * ranks;
    return WEFT_OK;
}

/* What one rank may have, if all of a host have as much as they need now in proportion; 0: any number. */
static int64_t share_of(const app_advice *advice, int64_t most)
{
    if (advice->host_memory <= 0 || advice->host_bytes <= 0) return 0;
    const double share = (double)most / (double)advice->host_bytes;
    const int64_t bytes = (int64_t)(share * (double)advice->host_memory);
    const bool fits = advice->host_bytes <= advice->host_memory;
    return fits ? (bytes > most ? bytes : most) : bytes < most ? bytes : most - 1;
}

/* ---- neighbours ------------------------------------------------------------------------------- */

/* false: a choice has no room for it. */
static bool choose_now(const app_search *search, const weft_program *program, weft_choice *now)
{
    const char *mesh = weft_mesh_text(weft_program_mesh(program));
    const char *layout = weft_layout_text(weft_plan_layout(program));
    *now = (weft_choice){.zero = weft_layout_stage(weft_plan_layout(program)),
                         .n_knobs = search->n_knobs,
                         .knobs = search->knobs};
    for (int k = 0; k < search->n_knobs; k++)
        now->values[k] = search->knobs[k].values[0];
    if (strlen(mesh) >= sizeof now->mesh || strlen(layout) >= sizeof now->layout) return false;
    memcpy(now->mesh, mesh, strlen(mesh) + 1);
    memcpy(now->layout, layout, strlen(layout) + 1);
    return true;
}

static weft_status find_slow(const settings *s, const weft_program *program,
                             const weft_machine_model *model, app_advice *advice, weft_error *error)
{
    weft_predict_options slow = {0};
    weft_prediction prediction;
    WEFT_TRY(weft_plan_predict(program, model, NULL, &prediction, error));
    advice->seconds = advice->even_seconds = prediction.seconds;
    if (!app_predict_slow(s, &slow)) return WEFT_OK;
    WEFT_TRY(weft_plan_predict(program, model, &slow, &prediction, error));
    advice->seconds = prediction.seconds;
    advice->slow_rank = slow.slow_rank;
    advice->slow_by = slow.slow_by;
    return WEFT_OK;
}

/* A plan that a search cannot build has no neighbours. It may be good all the same. */
static weft_status find(const app_search *search, const weft_program *program,
                        const weft_machine_model *model, double within, int64_t memory,
                        app_advice *advice, weft_error *error)
{
    weft_choice now;
    const weft_search_options options = {.machine = model,
                                         .memory = memory,
                                         .seconds = within,
                                         .n_knobs = search->n_knobs,
                                         .knobs = search->knobs,
                                         .store_dim = "batch",
                                         .layers = search->layers,
                                         .layers_knob = search->layers_knob,
                                         .hints = search->hints};
    weft_error own = {.rank = -1};
    WEFT_TRY(find_slow(search->settings, program, model, advice, error));
    if (!choose_now(search, program, &now)) return WEFT_OK;
    const weft_status status =
        weft_advise(search->build, search->context, &options, &now, &advice->plans, &own);
    if (status == WEFT_OK) return WEFT_OK;
    advice->plans = (weft_advice){.fits = true};
    return status == WEFT_USAGE ? WEFT_OK : weft_fail(error, status, "%s", own.message);
}

static weft_status look(const app_search *search, const weft_program *program, double within,
                        app_advice *advice, weft_error *error)
{
    const char *name = settings_text(search->settings, "machine");
    weft_machine_model *model;
    int64_t most = 0;
    advice->plans.fits = true;
    advice->knows_seconds = *name != '\0';
    advice->host_memory = memory_of(name);
    WEFT_TRY(weft_machine_model_read(*name ? name : UNNAMED, &model, error));
    advice->host_ranks = ranks_of_host(weft_program_mesh(program), model, *name != '\0');
    weft_status status = add_up(program, advice->host_ranks, &advice->host_bytes, &most, error);
    const bool fits = !advice->host_memory || advice->host_bytes <= advice->host_memory;
    if (status == WEFT_OK && (*name || !fits))
        status = find(search, program, model, within, share_of(advice, most), advice, error);
    weft_machine_model_destroy(&model);
    return status;
}

weft_status app_advise(const app_search *search, const weft_program *program, double within,
                       app_advice **advice, weft_error *error)
{
    *advice = calloc(1, sizeof **advice);
    if (!*advice) return weft_fail_memory(error, sizeof **advice);
    const weft_status status = look(search, program, within, *advice, error);
    if (status == WEFT_OK) return WEFT_OK;
    free(*advice);
    *advice = NULL;
    return status;
}

/* ---- told ------------------------------------------------------------------------------------- */

static void tell(const settings *s, const app_advice *advice, char text[APP_ADVICE_BYTES])
{
    if (!app_advice_text(advice, text, APP_ADVICE_BYTES)) *text = '\0';
    const size_t used = strlen(text);
    if (used > 0 && settings_is(s, "dry-run", "all"))
        app_advice_others(advice, text + used, APP_ADVICE_BYTES - used);
}

weft_status app_advise_line(const app_search *search, const weft_program *program, double within,
                            char text[APP_ADVICE_BYTES], weft_error *error)
{
    app_advice *advice;
    *text = '\0';
    if (settings_is(search->settings, "advice", "never")) return WEFT_OK;
    WEFT_TRY(app_advise(search, program, within, &advice, error));
    tell(search->settings, advice, text);
    free(advice);
    return WEFT_OK;
}

weft_status app_advise_list(void *advising, json_t **list, weft_error *error)
{
    const app_advising *of = advising;
    app_advice *advice;
    *list = NULL;
    if (settings_is(of->search->settings, "advice", "never")) return WEFT_OK;
    WEFT_TRY(app_advise(of->search, of->program, 0, &advice, error));
    *list = app_advice_json(of->search, advice, NULL);
    free(advice);
    return *list ? WEFT_OK : weft_fail_memory(error, 0);
}

/* ---- the end of a run ------------------------------------------------------------------------- */

static weft_status keep(const char *path, const app_search *search, const app_advice *advice,
                        const app_spent *spent, int64_t step, weft_error *error)
{
    app_whole_file file;
    json_t *all = json_pack("{s:I, s:s, s:o, s:o}", "step", (json_int_t)step, "machine",
                            settings_text(search->settings, "machine"), "seconds",
                            app_json_number(advice->seconds), "advice",
                            app_advice_json(search, advice, spent));
    if (!all) return weft_fail_memory(error, 0);
    weft_status status = app_whole_open(&file, path, error);
    if (status == WEFT_OK) {
        const bool is_written =
            json_dumpf(all, file.stream, JSON_INDENT(1)) == 0 && fputc('\n', file.stream) != EOF;
        status = app_whole_close(&file, is_written, error);
    }
    json_decref(all);
    return status;
}

static bool is_due(const settings *s, const app_spent *spent)
{
    if (*settings_text(s, "machine") == '\0' || settings_is(s, "advice", "never")) return false;
    return settings_is(s, "advice", "always") || app_spent_is_long(spent);
}

weft_status app_advise_end(const app_search *search, const weft_program *program,
                           const app_spent *spent, int64_t step, char text[APP_ADVICE_BYTES],
                           weft_error *error)
{
    char path[4096];
    app_advice *advice;
    *text = '\0';
    if (!is_due(search->settings, spent)) return WEFT_OK;
    app_spent_path(settings_text(search->settings, "run"), path, sizeof path);
    WEFT_TRY(app_advise(search, program, APP_ADVICE_SECONDS, &advice, error));
    tell(search->settings, advice, text);
    const weft_status status = keep(path, search, advice, spent, step, error);
    free(advice);
    return status;
}
