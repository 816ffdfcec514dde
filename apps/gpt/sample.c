/* sample: text, byte by byte, by a forward-only program over the trained variables: those of the
 * training program, which it shares, or of a checkpoint.
 *
 * Attention is causal, so a window that is not full yet is filled from the left: row t - 1 of the
 * logits does not see what stands behind it.
 */
#include "job.h"
#include "weft/philox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_STREAM = 0x53414d50 /* of random numbers: no op of a graph has this id */ };

typedef struct writer {
    weft_graph *graph;
    gpt_model model;
    weft_program *program;
    int32_t *window; /* [seq] */
    void *logits;    /* [seq, vocab], in the model's dtype */
    int64_t seq;
    weft_dtype dtype;
    double temperature;
    uint64_t seed;
} writer;

static double logit(const writer *w, int64_t row, int byte)
{
    const int64_t i = row * GPT_VOCAB + byte;
    return weft_dtype_get(w->dtype, w->logits, i);
}

/* Draw a byte with probability softmax(logits / temperature). */
static int draw(const writer *w, int64_t row, uint64_t counter)
{
    double highest = -INFINITY, sum = 0, weights[GPT_VOCAB];
    uint32_t words[4];
    for (int b = 0; b < GPT_VOCAB; b++)
        highest = fmax(highest, logit(w, row, b));
    for (int b = 0; b < GPT_VOCAB; b++) {
        weights[b] = exp((logit(w, row, b) - highest) / w->temperature);
        sum += weights[b];
    }
    weft_philox((weft_philox_key){w->seed, SAMPLE_STREAM, 0}, counter, words);
    double left = weft_philox_unit(words[0]) * sum;
    for (int b = 0; b < GPT_VOCAB; b++)
        if ((left -= weights[b]) < 0) return b;
    return GPT_VOCAB - 1;
}

/* Bytes that would confuse a terminal are shown as ?. */
static void print_byte(int byte)
{
    const bool is_control = (byte < 32 && byte != '\n' && byte != '\t') || byte == 127;
    putchar(is_control ? '?' : byte);
}

static weft_status open_writer(gpt_job *job, writer *w, weft_error *error)
{
    gpt_shape shape = job->shape;
    shape.batch = 1;
    shape.dropout = 0;
    shape.micro = shape.turns = 1;
    *w = (writer){.seq = shape.seq,

                  .temperature = settings_real(job->settings, "temperature"),
                  .seed = (uint64_t)settings_count(job->settings, "seed")};
    const size_t logits = (size_t)shape.seq * GPT_VOCAB * weft_dtype_bytes(shape.dtype);
    w->graph = weft_graph_create(w->seed);
    w->window = calloc((size_t)shape.seq, sizeof *w->window);
    w->logits = malloc(logits);
    weft_error own = {.rank = -1};
    if (!w->graph || !w->window || !w->logits) weft_fail_memory(&own, logits);
    if (weft_world_agree(&own) != WEFT_OK) {
        *error = own;
        return own.status;
    }
    w->dtype = weft_dtype_of(gpt_logits(&shape, w->graph, &w->model));
    WEFT_TRY(weft_compile(job->mesh, job->layout, WEFT_VALUES(w->model.logits),
                          &(weft_compile_options){.share = job->program}, &w->program, error));
    return job->program ? WEFT_OK : gpt_stored_restore(job->settings, w->program, error);
}

static void close_writer(writer *w)
{
    weft_program_destroy(&w->program);
    weft_graph_destroy(&w->graph);
    free(w->window);
    free(w->logits);
}

/* Append a byte to the window of the last seq bytes. */
static void append(writer *w, int64_t *filled, int byte)
{
    if (*filled == w->seq) {
        for (int64_t i = 1; i < w->seq; i++)
            w->window[i - 1] = w->window[i];
        --*filled;
    }
    w->window[(*filled)++] = byte;
}

static weft_status write_text(gpt_job *job, writer *w, int64_t bytes, weft_error *error)
{
    const bool is_root = weft_mesh_is_root(job->mesh);
    const char *prompt = settings_text(job->settings, "prompt");
    const int64_t n = w->seq;
    int64_t filled = 0;
    if (*prompt == '\0') append(w, &filled, '\n');
    for (const char *c = prompt; *c; c++)
        append(w, &filled, (unsigned char)*c);
    if (is_root) fputs(prompt, stdout);
    for (int64_t i = 0; i < bytes; i++) {
        WEFT_TRY(weft_write(w->program, w->model.tokens, WEFT_I32, w->window,
                            n * (int64_t)sizeof *w->window, error));
        WEFT_TRY(weft_run(w->program, error));
        WEFT_TRY(weft_read(w->program, w->model.logits, weft_dtype_of(w->model.logits), w->logits,
                           n * GPT_VOCAB * (int64_t)weft_dtype_bytes(w->dtype), error));
        const int byte = draw(w, filled - 1, (uint64_t)i);
        append(w, &filled, byte);
        if (is_root) print_byte(byte);
    }
    if (is_root) putchar('\n');
    return WEFT_OK;
}

/* Weights and their averages change places: before and after. */
static weft_status swap(gpt_job *job, weft_error *error)
{
    weft_program *program = NULL;
    const weft_compile_options shared = {.share = job->program};
    if (!job->program || settings_real(job->settings, "average") <= 0) return WEFT_OK;
    const weft_value token = weft_average_swap(job->graph);
    WEFT_TRY(weft_compile(job->mesh, job->layout, WEFT_VALUES(token), &shared, &program, error));
    const weft_status status = weft_run(program, error);
    weft_program_destroy(&program);
    return status;
}

weft_status gpt_sample(gpt_job *job, int64_t bytes, weft_error *error)
{
    writer w;
    weft_status status = open_writer(job, &w, error);
    if (status == WEFT_OK) status = swap(job, error);
    if (status == WEFT_OK) status = write_text(job, &w, bytes, error);
    if (status == WEFT_OK) status = swap(job, error);
    close_writer(&w);
    if (fflush(stdout) != 0 && status == WEFT_OK)
        status = weft_fail(error, WEFT_IO, "cannot write the text to stdout");
    return status;
}
