/* held_text: the text that is held out, and a forward program over the variables that are trained.
 *
 * A batch of it is one micro-batch of a step, so that it fits where training fits. There is no dropout.
 */
#include "held_text.h"

static weft_status open_text(gpt_setup *setup, weft_error *error)
{
    WEFT_TRY(gpt_setup_text(setup, true, &setup->held.data, error));
    return app_held_count(&setup->held, setup->settings, error);
}

static weft_status build(gpt_setup *setup, weft_error *error)
{
    gpt_model model;
    gpt_shape shape = setup->shape;
    shape.batch = setup->held.batch;
    shape.dropout = shape.mixture.balance = 0;
    shape.recomputes = false;
    setup->held.graph = weft_graph_create((uint64_t)settings_count(setup->settings, "seed"));
    if (!setup->held.graph) return weft_fail_memory(error, 0);
    setup->held.loss = gpt_loss(&shape, setup->held.graph, &model);
    return WEFT_OK;
}

static weft_status compile(gpt_setup *setup, weft_error *error)
{
    const weft_compile_options options = {
        .share = setup->program,
        .precision = weft_precision_find(settings_text(setup->settings, "precision")),
        .unroll = setup->shape.scans ? 1 : 0};
    return app_held_compile(&setup->held, setup->mesh, setup->layout, &options, error);
}

weft_status gpt_held_open(gpt_setup *setup, weft_error *error)
{
    if (!app_held_is_wanted(setup->settings)) return WEFT_OK;
    setup->held.batch = setup->shape.batch / setup->parts;
    if (open_text(setup, error) == WEFT_OK) (void)!build(setup, error);
    WEFT_TRY(weft_world_agree(error)); /* a file may be missing on one host only */
    return compile(setup, error);
}

weft_status gpt_held_compile(gpt_setup *setup, weft_error *error)
{
    const char *path = settings_text(setup->settings, "eval-data");
    weft_error own = {.rank = -1};
    if (!app_held_is_wanted(setup->settings)) return WEFT_OK;
    setup->held.batch = setup->shape.batch / setup->parts;
    /* A plan needs no data; where it is there, it says how long a look takes. */
    if (*path && open_text(setup, &own) != WEFT_OK && own.status != WEFT_IO) {
        *error = own;
        return own.status;
    }
    WEFT_TRY(build(setup, error));
    return compile(setup, error);
}
