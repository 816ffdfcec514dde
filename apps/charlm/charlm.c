/* charlm: a recurrent net, or a transformer, learns a text byte by byte, on any mesh, under any layout, and writes more of it. */
#include "../training.h"
#include "model.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"data", OPTION_TEXT, "", "FILE", "Data", "text to learn, read as bytes"},
    APP_HELD_OPTIONS("Data", "FILE",
                     "such a text that nothing is learned from; its loss is told at the end"),
    {"seed", OPTION_COUNT, "1", "N", "Data",
     "of initial weights, dropout, order of samples, sampling"},
    APP_PLACE_OPTIONS("batch seq vocab embed hidden; of transformer heads kv too"),
    {"model", OPTION_CHOICE, "lstm", "NAME", "Model", "what its layers are",
     "lstm gru transformer"},
    {"layers", OPTION_COUNT, "1", "N", "Model", "of them, at most 1000", NULL, 1, 1000},
    {"width", OPTION_COUNT, "128", "N", "Model", "of embeddings and states", NULL, 1},
    {"heads", OPTION_COUNT, "4", "N", "Model", "transformer: of attention; must divide width", NULL,
     1},
    {"seq", OPTION_COUNT, "64", "N", "Model", "bytes in a window, at most 2^20", NULL, 1, 1 << 20},
    {"carry", OPTION_FLAG, "no", "", "Model",
     "lstm, gru: a window goes on from the state of the one before it"},
    {"dropout", OPTION_REAL, "0", "X", "Model", "probability of dropping a number behind a layer"},
    APP_DTYPE_OPTION,
    APP_LEARN_OPTIONS("1000", "length of training and of the rate's schedule", "32",
                      "windows a step, over all ranks", "3e-3", "20", "0.1", "1"),
    APP_CONTINUE_OPTIONS("runs/charlm"),
    {"sample", OPTION_COUNT, "0", "N", "Output", "bytes of text to write when it has learned"},
    {"prompt", OPTION_TEXT, "", "TEXT", "Output", "what that text begins with"},
    {"temperature", OPTION_REAL, "0.8", "X", "Output",
     "below 1 the text is safer, above it wilder; 0: always the likeliest"},
};
static const option_table table = {
    "charlm",
    "charlm [options]   learn a text byte by byte; again, to continue\n"
    "charlm search --ranks N --machine FILE   find the quickest mesh and layout\n"
    "\n"
    "  charlm --data book.txt --model lstm --mesh data:2,model:2 \\\n"
    "      --layout batch:data,hidden:model,vocab:model --sample 500\n",
    options,
    sizeof options / sizeof *options,
    "learn a text byte by byte by a recurrent net or a transformer, and write more of it",
    "data mesh layout zero model layers width seq steps batch optimizer rate run "
    "save-every sample prompt config",
    "search"};

/* What a run that carries its states has besides. */
typedef struct job {
    streams *streams;
    weft_value carried;
} job;

static weft_status check_carry(const settings *s, weft_error *error)
{
    const char *name = settings_text(s, "model");
    const double share = settings_real(s, "eval-share");
    if (settings_flag(s, "carry") && share > 0)
        return weft_fail(error, WEFT_USAGE,
                         "--carry --eval-share %g: rows go along the whole of --data; name another "
                         "text with --eval-data",
                         share);
    if (!settings_flag(s, "carry") || charlm_has_states(charlm_find(name))) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--carry --model %s: it has no state that could go on; take lstm or gru",
                     name);
}

static weft_status check(app_training *training, weft_error *error)
{
    const settings *s = training->settings;
    WEFT_TRY(check_carry(s, error));
    if (!settings_flag(training->settings, "dry-run"))
        WEFT_TRY(app_training_check_data(training, "text to learn", error));
    if (*settings_text(s, "prompt") != '\0' && settings_count(s, "sample") == 0)
        return weft_fail(error, WEFT_USAGE,
                         "--prompt %.60s: no text is written; say how many bytes with --sample N",
                         settings_text(s, "prompt"));
    return settings_is(s, "model", "transformer") ? app_training_check_heads(training, error)
                                                  : WEFT_OK;
}

static charlm_model build(const app_training *training, weft_graph *graph, bool learns,
                          int64_t batch)
{
    const settings *s = training->settings;
    const charlm_shape shape = {
        .kind = charlm_find(settings_text(s, "model")),
        .batch = batch,
        .seq = settings_count(s, "seq"),
        .layers = settings_count(s, "layers"),
        .width = settings_count(s, "width"),
        .heads = settings_count(s, "heads"),
        .dropout = learns ? settings_real(s, "dropout") : 0,
        .dtype = app_training_dtype(training),
        .carries = learns && settings_flag(s, "carry"),
    };
    return charlm_build(graph, &shape);
}

static weft_value loss(app_training *training)
{
    const int64_t batch = settings_count(training->settings, "batch");
    const charlm_model m = build(training, training->graph[APP_LEARNS], true, batch);
    ((job *)training->own)->carried = m.carried;
    return charlm_loss(training->graph[APP_LEARNS], &m);
}

static weft_value beside(app_training *training)
{
    return ((const job *)training->own)->carried;
}

static weft_status open_data(app_training *training, weft_error *error)
{
    job *j = training->own;
    const settings *s = training->settings;
    const char *path = settings_text(s, "data");
    const int64_t seq = settings_count(s, "seq");
    weft_dataset **data = &training->data[APP_LEARNS];
    if (!settings_flag(s, "carry")) {
        WEFT_TRY(weft_text_open(path, seq, (uint64_t)settings_count(s, "seed"), data, error));
        return app_held_split(s, false, *data, error);
    }
    WEFT_TRY(streams_open(path, settings_count(s, "batch"), seq, &j->streams, error));
    training->mark = streams_mark(j->streams);
    WEFT_TRY(streams_dataset(j->streams, data, error));
    WEFT_TRY(weft_dataset_fact_file(*data, "text", path, error));
    WEFT_TRY(app_training_fact(training, "seq", seq, error));
    return app_training_fact(training, "carried rows", settings_count(s, "batch"), error);
}

/* Windows begin anew there, also of a net that carries states from window to window as it learns. */
static weft_status hold(app_training *training, bool has_data, weft_error *error)
{
    app_held *held = &training->held;
    const settings *s = training->settings;
    const char *named = settings_text(s, "eval-data");
    const char *path = *named ? named : settings_text(s, "data");
    held->batch = settings_count(s, "batch");
    if (has_data) {
        WEFT_TRY(weft_text_open(path, settings_count(s, "seq"), 1, &held->data, error));
        WEFT_TRY(app_held_split(s, true, held->data, error));
    }
    const charlm_model m = build(training, held->graph, false, held->batch);
    held->loss = charlm_loss(held->graph, &m);
    return WEFT_OK;
}

static void close_data(app_training *training)
{
    streams_close(&((job *)training->own)->streams);
}

/* ---- writing -----------------------------------------------------------------------------------
 */

/* The last bytes, from the left; the net sees none behind the one that it goes on from. */
typedef struct window {
    int32_t *bytes; /* [2 seq]: what is there; what follows each, drawn */
    int64_t seq, filled;
} window;

static void append(window *w, unsigned char byte)
{
    if (w->filled == w->seq)
        memmove(w->bytes, w->bytes + 1, (size_t)--w->filled * sizeof *w->bytes);
    w->bytes[w->filled++] = byte;
}

static weft_status write_text(app_training *training, window *w, weft_value tokens, weft_value next,
                              weft_error *error)
{
    weft_program *program = training->program[APP_LOOKS];
    const bool is_root = weft_mesh_is_root(training->mesh);
    const char *prompt = settings_text(training->settings, "prompt");
    const int64_t bytes = w->seq * (int64_t)sizeof *w->bytes;
    int32_t *drawn = w->bytes + w->seq;
    for (const char *c = *prompt ? prompt : "\n"; *c; c++)
        append(w, (unsigned char)*c);
    if (is_root) fputs(prompt, stdout);
    for (int64_t i = 0; i < settings_count(training->settings, "sample"); i++) {
        WEFT_TRY(weft_write(program, tokens, WEFT_I32, w->bytes, bytes, error));
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read(program, next, WEFT_I32, drawn, bytes, error));
        const int32_t byte = drawn[w->filled - 1];
        append(w, (unsigned char)byte);
        if (is_root) app_put_byte(byte);
    }
    if (is_root) putchar('\n');
    return WEFT_OK;
}

static weft_status open_window(window *w, int64_t seq, weft_error *error)
{
    weft_error own = {.rank = -1};
    *w = (window){.bytes = calloc((size_t)(2 * seq), sizeof *w->bytes), .seq = seq};
    if (!w->bytes) weft_fail_memory(&own, (size_t)(2 * seq) * sizeof *w->bytes);
    if (weft_world_agree(&own) != WEFT_OK) *error = own;
    return own.status;
}

static weft_status sample(app_training *training, weft_error *error)
{
    window w;
    if (settings_count(training->settings, "sample") == 0) return WEFT_OK;
    WEFT_TRY(app_training_graph(training, error));
    const charlm_model m = build(training, training->graph[APP_LOOKS], false, 1);
    const double temperature = settings_real(training->settings, "temperature");
    const weft_value next =
        temperature > 1e-3 ? weft_random_categorical(weft_scale(m.logits, 1 / temperature), m.vocab)
                           : weft_argmax(m.logits, m.vocab);
    WEFT_TRY(app_training_look(training, WEFT_VALUES(next), error));
    weft_status status = open_window(&w, m.seq.size, error);
    if (status == WEFT_OK) status = write_text(training, &w, m.tokens, next, error);
    free(w.bytes);
    return status;
}

int main(int n, char **arguments)
{
    static const app_training_parts parts = {.table = &table,
                                             .hints = "data=batch model=hidden+vocab",
                                             .begin = check,
                                             .loss = loss,
                                             .beside = beside,
                                             .open = open_data,
                                             .hold = hold,
                                             .look = sample,
                                             .close = close_data};
    job own = {0};
    return app_training_main(&parts, &own, n, arguments);
}
