/* advise: the one change that would help most: what is asked of the library. See advise.h. */
#include "advise.h"

#include <stdlib.h>
#include <string.h>

#include "predict.h"
#include "weft/mesh.h"

/* A machine that nobody names is there to rank what fits: no seconds of it are told. */
static const char *const UNNAMED = "laptop";

/* That this host has. Of a nominal machine nobody says how much it has. */
static int64_t memory_of(const char *machine)
{
    const weft_machine *here = weft_machine_info();
    const int64_t limit = here->memory_limit, all = here->memory_bytes;
    if (*machine && !strpbrk(machine, "./")) return 0;
    return limit > 0 && limit < all ? limit : all;
}

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
                        const weft_machine_model *model, double within, app_advice *advice,
                        weft_error *error)
{
    weft_choice now;
    const weft_search_options options = {.machine = model,
                                         .memory = advice->memory,
                                         .seconds = within,
                                         .n_knobs = search->n_knobs,
                                         .knobs = search->knobs,
                                         .store_dim = "batch",
                                         .layers = search->layers,
                                         .layers_knob = search->layers_knob,
                                         .hints = search->hints};
    weft_error own = {.rank = -1};
    advice->plans.fits = true;
    WEFT_TRY(find_slow(search->settings, program, model, advice, error));
    if (!choose_now(search, program, &now)) return WEFT_OK;
    const weft_status status =
        weft_advise(search->build, search->context, &options, &now, &advice->plans, &own);
    if (status == WEFT_OK) return WEFT_OK;
    advice->plans = (weft_advice){.fits = true};
    return status == WEFT_USAGE ? WEFT_OK : weft_fail(error, status, "%s", own.message);
}

static void write(const settings *s, const app_advice *advice, char text[APP_ADVICE_BYTES])
{
    if (!app_advice_text(advice, text, APP_ADVICE_BYTES)) *text = '\0';
    const size_t used = strlen(text);
    if (used > 0 && settings_is(s, "dry-run", "all"))
        app_advice_others(advice, text + used, APP_ADVICE_BYTES - used);
}

weft_status app_advise(const app_search *search, const weft_program *program, double within,
                       char text[APP_ADVICE_BYTES], weft_error *error)
{
    const char *name = settings_text(search->settings, "machine");
    weft_machine_model *model;
    weft_usage usage;
    *text = '\0';
    WEFT_TRY(weft_plan_usage(program, 0, &usage, error));
    if (!*name && usage.total_bytes <= memory_of(name)) return WEFT_OK;
    app_advice *advice = calloc(1, sizeof *advice);
    if (!advice) return weft_fail_memory(error, sizeof *advice);
    advice->memory = memory_of(name);
    advice->knows_seconds = *name != '\0';
    weft_status status = weft_machine_model_read(*name ? name : UNNAMED, &model, error);
    if (status == WEFT_OK) {
        status = find(search, program, model, within, advice, error);
        if (status == WEFT_OK) write(search->settings, advice, text);
        weft_machine_model_destroy(&model);
    }
    free(advice);
    return status;
}
