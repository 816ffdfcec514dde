/* held: the loss of a text that nothing is learned from: once through its windows, by a forward program that shares the variables.
 *
 * A batch of it is one micro-batch, so that it fits where training fits. Windows at the end that make no whole batch are left out.
 */
#include "held.h"

static weft_status open_text(gpt_setup *job, weft_error *error)
{
    const char *path = settings_text(job->settings, "held-out");
    const int64_t seq = job->shape.seq;
    if (job->words)
        WEFT_TRY(weft_tokens_open(path, job->shape.vocab, seq, 1, &job->held.data, error));
    else
        WEFT_TRY(weft_text_open(path, seq, 1, &job->held.data, error));
    job->held.n_batches = weft_dataset_samples(job->held.data) / job->held.batch;
    if (job->held.n_batches > 0) return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "--held-out %.200s has %lld windows, and a batch takes %lld; name a longer text, or "
        "give a smaller --batch",
        path, (long long)weft_dataset_samples(job->held.data), (long long)job->held.batch);
}

static weft_status build(gpt_setup *job, weft_error *error)
{
    gpt_model model;
    gpt_shape shape = job->shape;
    shape.batch = job->held.batch;
    shape.dropout = shape.mixture.balance = 0;
    shape.recomputes = false;
    job->held.graph = weft_graph_create((uint64_t)settings_count(job->settings, "seed"));
    if (!job->held.graph) return weft_fail_memory(error, 0);
    job->held.loss = gpt_loss(&shape, job->held.graph, &model);
    return WEFT_OK;
}

weft_status gpt_held_open(gpt_setup *job, weft_error *error)
{
    const weft_compile_options options = {
        .share = job->program,
        .precision = weft_precision_find(settings_text(job->settings, "precision")),
        .unroll = job->shape.scans ? 1 : 0};
    if (!*settings_text(job->settings, "held-out")) return WEFT_OK;
    job->held.batch = job->shape.batch / job->parts;
    if (open_text(job, error) == WEFT_OK) (void)!build(job, error);
    WEFT_TRY(weft_world_agree(error)); /* a file may be missing on one host only */
    WEFT_TRY(weft_compile(job->mesh, job->layout, WEFT_VALUES(job->held.loss), &options,
                          &job->held.program, error));
    return weft_dataset_start(job->held.data, job->held.program, error);
}

bool gpt_held_is_due(const gpt_setup *job, int64_t step)
{
    const int64_t every = settings_count(job->settings, "look-every");
    return job->held.data && (step == job->until || (every > 0 && step % every == 0));
}

weft_status gpt_held_loss(gpt_setup *job, double *loss, weft_error *error)
{
    double sum = 0, one;
    weft_dataset_seek(job->held.data, 0);
    for (int64_t i = 0; i < job->held.n_batches; i++) {
        WEFT_TRY(weft_dataset_next(job->held.data, job->held.program, error));
        WEFT_TRY(weft_run(job->held.program, error));
        WEFT_TRY(weft_read_scalar(job->held.program, job->held.loss, &one, error));
        sum += one;
    }
    *loss = sum / (double)job->held.n_batches;
    return WEFT_OK;
}

void gpt_held_close(gpt_setup *job)
{
    weft_dataset_close(&job->held.data);
    weft_program_destroy(&job->held.program);
    weft_graph_destroy(&job->held.graph);
}
