/* search: gpt search: how gpt is built for a choice, and what it may do in several ways. */
#include "search.h"

#include <string.h>

/* One way of several that lead to the same: micro-batches through stages are parts of a batch too. */
static weft_status check(const weft_choice *choice, weft_error *error)
{
    const int64_t stages = weft_choice_value(choice, "stages", 1);
    if (stages == 1 || weft_choice_value(choice, "accumulate", 1) == 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "stages %lld and accumulate: micro-batches go through stages one behind the "
                     "other already; take more of them",
                     (long long)stages);
}

static weft_status build(void *context, const weft_choice *choice, weft_built_graph *built,
                         weft_error *error)
{
    const app_search *search = context;
    WEFT_TRY(check(choice, error));
    settings *s = app_search_settings(search, choice, error);
    if (!s) return error->status;
    gpt_setup setup = {.settings = s};
    weft_status status = gpt_setup_read(&setup, error);
    if (status == WEFT_OK) status = gpt_setup_graph(&setup, error);
    if (status == WEFT_OK) {
        built->options = gpt_setup_options(&setup, search->settings);
        /* Those are of the plan that was asked for, and not of others beside it. */
        built->options.dump = NULL;
        built->options.explain = false;
        const char *link = settings_text(search->settings, "link");
        if (*link && strcmp(link, "measured") != 0) built->options.link = link;
        built->n_values = gpt_setup_values(&setup, built->values);
        const weft_error *first = weft_graph_error(setup.graph);
        if (first->status != WEFT_OK)
            status = weft_fail(error, first->status, "%s", first->message);
    }
    built->graph = setup.graph;
    setup.graph = NULL;
    gpt_setup_close(&setup);
    settings_destroy(&s);
    return status;
}

void gpt_search_open(const settings *s, app_search *search)
{
    static const char *const dtypes[] = {
        "f32", "bf16", "f16"}; /* each is quicker, or smaller, than those before */
    static const int64_t twos[] = {1, 2, 4, 8, 16, 32};
    enum { N_TWOS = sizeof twos / sizeof *twos };
    *search = (app_search){.settings = s,
                           .command = "gpt train",
                           .build = build,
                           .hints = "data=batch model=hidden+heads+vocab seq=seq pipe=stage "
                                    "experts=experts+batch",
                           .layers = settings_count(s, "layers"),
                           .layers_knob = "stages"};
    search->context = search;
    app_search_knob(search, "recompute", true, NULL, 0, 0);
    app_search_knob(search, "accumulate", false, twos, 4, settings_count(s, "batch"));
    app_search_knob(search, "stages", false, twos, 4, settings_count(s, "layers"));
    app_search_knob(search, "micro", false, twos, N_TWOS, settings_count(s, "batch"));
    app_search_knob(search, "scan-layers", true, NULL, 0, 0);
    search->knobs[search->n_knobs - 1].is_asked =
        true; /* it makes plans short, and steps no quicker */
    app_search_knob(search, "halves", true, NULL, 0, 0);
    search->knobs[search->n_knobs - 1].is_asked = true;
    app_search_word_knob(search, "dtype", dtypes, sizeof dtypes / sizeof *dtypes);
    app_search_knob(search, "batch", false, NULL, 0, 0);
}

weft_status gpt_search(const settings *s, const weft_world *world, weft_error *error)
{
    app_search search;
    gpt_search_open(s, &search);
    search.world = world;
    gpt_setup setup = {.settings = s};
    weft_status status = app_search_check(s, true, error);
    if (status == WEFT_OK) status = gpt_setup_check(&setup, error);
    gpt_setup_close(&setup);
    return status == WEFT_OK ? app_search_run(&search, error) : status;
}
