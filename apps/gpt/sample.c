/* sample: text, byte by byte or word by word, by a forward-only program over the trained variables: those of the
 * training program, which it shares, or of a checkpoint.
 *
 * Attention is causal, so a window that is not full yet is filled from the left: row t - 1 of the
 * logits does not see what stands behind it. So keys and values of its rows are kept, and each token that follows goes through
 * the model alone. Where the window is full it moves on, all its tokens to other places: then all are computed again. So is
 * each token of a model in stages, or of one whose experts have places for so many tokens of a window, which has no step of its
 * own.
 */
#include "draw.h"
#include "logits.h"
#include "setup.h"

#include <stdlib.h>
#include <string.h>

typedef struct forward {
    weft_graph *graph;
    gpt_model model;
    weft_program *program;
} forward;

typedef struct writer {
    forward all,
        step; /* of a window, and of one token by what is kept of those before; no program: there is none */
    int64_t n_kept;  /* rows of the window that are kept */
    int32_t *window; /* [seq] */
    void *logits;    /* [seq, vocab], in the model's dtype */
    double *weights; /* [vocab] */
    bpe *words;      /* borrowed; NULL: bytes */
    int64_t seq, vocab;
    int64_t n_words; /* of the vocab rows those that are words, the first */
    weft_dtype dtype;
    double temperature;
    uint64_t seed;
} writer;

/* Of token number `counter` of the text, which follows row `row`. */
static int32_t draw(const writer *w, int64_t row, uint64_t counter)
{
    const gpt_drawing drawing = {w->n_words, w->temperature, w->seed};
    const size_t at = (size_t)(row * w->vocab) * weft_dtype_bytes(w->dtype);
    return gpt_draw(&drawing, w->dtype, (const char *)w->logits + at, w->weights, counter);
}

static void print_token(const writer *w, int32_t token)
{
    size_t n;
    if (!w->words) {
        app_put_byte(token);
        return;
    }
    const unsigned char *bytes = bpe_word(w->words, token, &n);
    for (size_t i = 0; i < n; i++)
        app_put_byte(bytes[i]);
}

static weft_status compile(gpt_setup *setup, forward *f, weft_program *share, weft_error *error)
{
    const weft_compile_options options = {.share = share};
    if (f->model.kept.graph == NULL)
        return weft_compile(setup->mesh, setup->layout, WEFT_VALUES(f->model.logits), &options,
                            &f->program, error);
    return weft_compile(setup->mesh, setup->layout, WEFT_VALUES(f->model.logits, f->model.kept),
                        &options, &f->program, error);
}

static weft_status open_programs(gpt_setup *setup, writer *w, const gpt_shape *shape,
                                 weft_error *error)
{
    if (!gpt_has_step(shape))
        (void)gpt_logits(shape, w->all.graph, &w->all.model);
    else
        (void)gpt_context(shape, w->all.graph, &w->all.model);
    w->dtype = weft_dtype_of(w->all.model.logits);
    WEFT_TRY(compile(setup, &w->all, setup->program, error));
    if (!setup->program) WEFT_TRY(gpt_stored_restore(setup, w->all.program, error));
    if (!gpt_has_step(shape)) return WEFT_OK;
    (void)gpt_next(shape, w->step.graph, &w->step.model);
    return compile(setup, &w->step, w->all.program, error);
}

static weft_status open_writer(gpt_setup *setup, writer *w, weft_error *error)
{
    gpt_shape shape = setup->shape;
    shape.batch = 1;
    shape.dropout = 0;
    shape.micro = shape.turns = 1;
    *w = (writer){.seq = shape.seq,
                  .vocab = shape.vocab,
                  .n_words = setup->words ? bpe_n_words(setup->words) : GPT_VOCAB,
                  .words = setup->words,
                  .temperature = settings_real(setup->settings, "temperature"),
                  .seed = (uint64_t)settings_count(setup->settings, "seed")};
    const size_t logits = (size_t)(shape.seq * shape.vocab) * weft_dtype_bytes(shape.dtype);
    w->all.graph = weft_graph_create(w->seed);
    w->step.graph = weft_graph_create(w->seed);
    w->window = calloc((size_t)shape.seq, sizeof *w->window);
    w->logits = malloc(logits);
    w->weights = malloc((size_t)shape.vocab * sizeof *w->weights);
    weft_error own = {.rank = -1};
    (void)gpt_setup_words(setup, &own);
    if (!w->all.graph || !w->step.graph || !w->window || !w->logits || !w->weights)
        weft_fail_memory(&own, logits);
    if (weft_world_agree(&own) != WEFT_OK) {
        *error = own;
        return own.status;
    }
    return open_programs(setup, w, &shape, error);
}

static void close_writer(writer *w)
{
    forward *both[] = {&w->step, &w->all}; /* the step's shares the other's variables */
    for (int i = 0; i < 2; i++) {
        weft_program_destroy(&both[i]->program);
        weft_graph_destroy(&both[i]->graph);
    }
    free(w->window);
    free(w->logits);
    free(w->weights);
}

/* Append a token to the window of the last seq tokens. */
static void append(writer *w, int64_t *filled, int32_t token)
{
    if (*filled == w->seq) {
        for (int64_t i = 1; i < w->seq; i++)
            w->window[i - 1] = w->window[i];
        --*filled;
        w->n_kept = 0; /* they stand elsewhere now */
    }
    w->window[(*filled)++] = token;
}

/* What the text begins with, a new line if nothing. */
static weft_status begin_with(writer *w, const char *prompt, int64_t *filled, weft_error *error)
{
    const unsigned char *text = (const unsigned char *)(*prompt ? prompt : "\n");
    const size_t n = strlen((const char *)text);
    bpe_tokens tokens = {0};
    weft_error own = {.rank = -1};
    (void)gpt_encode(w->words, text, n, &tokens, &own);
    for (size_t i = 0; i < tokens.n; i++)
        append(w, filled, tokens.ids[i]);
    free(tokens.ids);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

/* Logits of tokens [n]; place: model.h. */
static weft_status run(const writer *w, const forward *f, const int32_t *tokens, int64_t n,
                       int32_t place, weft_error *error)
{
    const weft_value logits = f->model.logits;
    WEFT_TRY(weft_write(f->program, f->model.tokens, WEFT_I32, tokens, n * (int64_t)sizeof *tokens,
                        error));
    if (f->model.place.graph != NULL)
        WEFT_TRY(weft_write(f->program, f->model.place, WEFT_I32, &place, sizeof place, error));
    WEFT_TRY(weft_run(f->program, error));
    return weft_read(f->program, logits, w->dtype, w->logits,
                     n * w->vocab * (int64_t)weft_dtype_bytes(w->dtype), error);
}

/* Logits of what follows the first `filled` tokens of the window; *row: which of them. */
static weft_status predict(writer *w, int64_t filled, int64_t *row, weft_error *error)
{
    const bool is_step = w->step.program && w->n_kept > 0 && w->n_kept == filled - 1;
    *row = is_step ? 0 : filled - 1;
    w->n_kept = filled;
    if (is_step) return run(w, &w->step, &w->window[filled - 1], 1, (int32_t)filled - 1, error);
    return run(w, &w->all, w->window, w->seq, (int32_t)filled, error);
}

/* Of all tokens that the text begins with: which comes behind each. */
static weft_status write_logits(const gpt_setup *setup, writer *w, int64_t filled,
                                weft_error *error)
{
    const char *path = settings_text(setup->settings, "logits");
    int64_t row;
    weft_error own = {.rank = -1};
    if (!*path) return WEFT_OK;
    WEFT_TRY(predict(w, filled, &row, error));
    if (weft_mesh_is_root(setup->mesh))
        (void)gpt_logits_write(path, w->dtype, w->logits, filled, w->vocab, &own);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static weft_status write_text(gpt_setup *setup, writer *w, int64_t tokens, weft_error *error)
{
    const bool is_root = weft_mesh_is_root(setup->mesh);
    const char *prompt = settings_text(setup->settings, "prompt");
    int64_t filled = 0, row;
    WEFT_TRY(begin_with(w, prompt, &filled, error));
    WEFT_TRY(write_logits(setup, w, filled, error));
    if (tokens == 0) return WEFT_OK;
    if (is_root) fputs(prompt, stdout);
    for (int64_t i = 0; i < tokens; i++) {
        WEFT_TRY(predict(w, filled, &row, error));
        const int32_t token = draw(w, row, (uint64_t)i);
        append(w, &filled, token);
        if (is_root) print_token(w, token);
    }
    if (is_root) putchar('\n');
    return WEFT_OK;
}

/* Weights and their averages change places: before and after. */
static weft_status swap(gpt_setup *setup, weft_error *error)
{
    weft_program *program = NULL;
    const weft_compile_options shared = {.share = setup->program};
    if (!setup->program || settings_real(setup->settings, "average") <= 0) return WEFT_OK;
    const weft_value token = weft_average_swap(setup->graph);
    WEFT_TRY(
        weft_compile(setup->mesh, setup->layout, WEFT_VALUES(token), &shared, &program, error));
    const weft_status status = weft_run(program, error);
    weft_program_destroy(&program);
    return status;
}

weft_status gpt_sample(gpt_setup *setup, int64_t tokens, weft_error *error)
{
    writer w;
    weft_status status = open_writer(setup, &w, error);
    if (status == WEFT_OK) status = swap(setup, error);
    if (status == WEFT_OK) status = write_text(setup, &w, tokens, error);
    if (status == WEFT_OK) status = swap(setup, error);
    close_writer(&w);
    if (fflush(stdout) != 0 && status == WEFT_OK)
        status = weft_fail(error, WEFT_IO, "cannot write the text to stdout");
    return status;
}
