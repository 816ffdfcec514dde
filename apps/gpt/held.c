/* held: the loss of a text that nothing is learned from: once through its windows, by a forward program that shares the variables.
 *
 * A batch of it is one micro-batch, so that it fits where training fits. Windows at the end that make no whole batch are left out.
 */
#include "held.h"

static weft_status open_text(gpt_setup *setup, weft_error *error)
{
    const char *path = settings_text(setup->settings, "held-out");
    const int64_t seq = setup->shape.seq;
    if (setup->words)
        WEFT_TRY(weft_tokens_open(path, setup->shape.vocab, seq, 1, &setup->held.data, error));
    else
        WEFT_TRY(weft_text_open(path, seq, 1, &setup->held.data, error));
    setup->held.n_batches = weft_dataset_samples(setup->held.data) / setup->held.batch;
    if (setup->held.n_batches > 0) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "--held-out %.200s has %lld windows, and a batch takes %lld; name a longer text, or "
        "give a smaller --batch",
        path, (long long)weft_dataset_samples(setup->held.data), (long long)setup->held.batch);
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

weft_status gpt_held_open(gpt_setup *setup, weft_error *error)
{
    const weft_compile_options options = {
        .share = setup->program,
        .precision = weft_precision_find(settings_text(setup->settings, "precision")),
        .unroll = setup->shape.scans ? 1 : 0};
    if (!*settings_text(setup->settings, "held-out")) return WEFT_OK;
    setup->held.batch = setup->shape.batch / setup->parts;
    if (open_text(setup, error) == WEFT_OK) (void)!build(setup, error);
    WEFT_TRY(weft_world_agree(error)); /* a file may be missing on one host only */
    WEFT_TRY(weft_compile(setup->mesh, setup->layout, WEFT_VALUES(setup->held.loss), &options,
                          &setup->held.program, error));
    return weft_dataset_start(setup->held.data, setup->held.program, error);
}

bool gpt_held_is_due(const gpt_setup *setup, int64_t step)
{
    const int64_t every = settings_count(setup->settings, "look-every");
    return setup->held.data && (step == setup->until || (every > 0 && step % every == 0));
}

weft_status gpt_held_loss(gpt_setup *setup, double *loss, weft_error *error)
{
    double sum = 0, one;
    weft_dataset_seek(setup->held.data, 0);
    for (int64_t i = 0; i < setup->held.n_batches; i++) {
        WEFT_TRY(weft_dataset_next(setup->held.data, setup->held.program, error));
        WEFT_TRY(weft_run(setup->held.program, error));
        WEFT_TRY(weft_read_scalar(setup->held.program, setup->held.loss, &one, error));
        sum += one;
    }
    *loss = sum / (double)setup->held.n_batches;
    return WEFT_OK;
}

void gpt_held_close(gpt_setup *setup)
{
    weft_dataset_close(&setup->held.data);
    weft_program_destroy(&setup->held.program);
    weft_graph_destroy(&setup->held.graph);
}
