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

static void choose_now(const app_search *search, const weft_program *program, weft_choice *now)
{
    *now = (weft_choice){.zero = weft_layout_stage(weft_plan_layout(program)),
                         .n_knobs = search->n_knobs,
                         .knobs = search->knobs};
    snprintf(now->mesh, sizeof now->mesh, "%s", weft_mesh_text(weft_program_mesh(program)));
    snprintf(now->layout, sizeof now->layout, "%s", weft_layout_text(weft_plan_layout(program)));
    for (int k = 0; k < search->n_knobs; k++)
        now->values[k] = search->knobs[k].values[0];
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
    choose_now(search, program, &now);
    WEFT_TRY(find_slow(search->settings, program, model, advice, error));
    return weft_advise(search->build, search->context, &options, &now, &advice->plans, error);
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
