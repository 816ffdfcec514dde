/* seq2seq: an encoder and a decoder learn to write words backwards, or their letters in order, as a mark before each word says; on any
 * mesh, under any layout. Afterwards they write words of another stream, the likeliest by beam search.
 */
#include "../training.h"
#include "beam.h"
#include "model.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEST = 1000,
    TEST_BATCH = 100,
    SHOWN = 4,
    LEARN_STREAM = 1,
    TEST_STREAM = 2,
    HELD_STREAM = 3,
    MOST_BEAM = 1000
};
static const option options[] = {
    {"letters", OPTION_COUNT, "10", "N", "Data", "that words are made of, 2 to 26", NULL, 2,
     WORDS_MOST_LETTERS},
    {"length", OPTION_COUNT, "8", "N", "Data", "of a word, 1 to 64", NULL, 1, WORDS_MOST_LENGTH},
    APP_EVAL_OPTIONS("Data", "8", 1),
    {"seed", OPTION_COUNT, "1", "N", "Data", "of initial weights, dropout and words"},
    APP_PLACE_OPTIONS("batch source target vocab embed hidden heads kv"),
    {"model", OPTION_CHOICE, "transformer", "NAME", "Model",
     "LSTMs with attention between them, or transformer blocks", "lstm transformer"},
    {"layers", OPTION_COUNT, "1", "N", "Model", "that read, and as many that write, at most 1000",
     NULL, 1, 1000},
    {"width", OPTION_COUNT, "64", "N", "Model", "of embeddings and states", NULL, 1},
    {"heads", OPTION_COUNT, "4", "N", "Model", "of attention; must divide width", NULL, 1},
    {"dropout", OPTION_REAL, "0", "X", "Model", "probability of dropping a number"},
    APP_DTYPE_OPTION,
    APP_LEARN_OPTIONS("1500", "length of training and of the rate's schedule", "64",
                      "words a step, over all ranks", "5e-3", "50", "0.02", "1"),
    APP_CONTINUE_OPTIONS("runs/seq2seq"),
    {"beam", OPTION_COUNT, "4", "N", "Output",
     "how many sequences of each word are kept as it is written, at most 1000; 1: greedy", NULL, 1,
     MOST_BEAM},
};
static const option_table table = {
    "seq2seq",
    "seq2seq [options]   learn to write words backwards; again, to continue\n"
    "seq2seq search --ranks N --machine FILE   find the quickest mesh and layout\n"
    "\n"
    "  seq2seq --model lstm --mesh data:2,model:2 \\\n"
    "      --layout batch:data,hidden:model,heads:model,vocab:model\n",
    options,
    sizeof options / sizeof *options,
    "learn to write words backwards or in order by an encoder and a decoder",
    "letters mesh layout zero model layers width steps batch optimizer rate run "
    "save-every beam config",
    "search"};

/* Words to learn from, and others. */
typedef struct job {
    words words[APP_PROGRAMS], held;
} job;

static weft_status begin(app_training *training, weft_error *error)
{
    job *j = training->own;
    const settings *s = training->settings;
    const int64_t letters = settings_count(s, "letters"), length = settings_count(s, "length");
    const words w = {letters, length, (uint64_t)settings_count(s, "seed"), LEARN_STREAM};
    j->words[APP_LEARNS] = j->words[APP_LOOKS] = j->held = w;
    j->words[APP_LOOKS].stream = TEST_STREAM;
    j->held.stream = HELD_STREAM;
    return app_training_check_heads(training, error);
}

static seq2seq_model build(const app_training *training, weft_graph *graph, bool learns,
                           int64_t batch)
{
    const settings *s = training->settings;
    const words *w = &((const job *)training->own)->words[APP_LEARNS];
    const seq2seq_shape shape = {
        .kind = seq2seq_find(settings_text(s, "model")),
        .batch = batch,
        .source = 1 + w->length,
        .target = w->length,
        .vocab = words_vocab(w),
        .layers = settings_count(s, "layers"),
        .width = settings_count(s, "width"),
        .heads = settings_count(s, "heads"),
        .dropout = learns ? settings_real(s, "dropout") : 0,
        .dtype = app_training_dtype(training),
    };
    return seq2seq_build(graph, &shape);
}

static weft_value loss(app_training *training)
{
    const int64_t batch = settings_count(training->settings, "batch");
    const seq2seq_model m = build(training, training->graph[APP_LEARNS], true, batch);
    return seq2seq_loss(training->graph[APP_LEARNS], &m);
}

static weft_status say_words(const words *w, weft_dataset *data, weft_error *error)
{
    char letters[24], length[24];
    snprintf(letters, sizeof letters, "%lld", (long long)w->letters);
    snprintf(length, sizeof length, "%lld", (long long)w->length);
    WEFT_TRY(weft_dataset_fact(data, "letters", letters, error));
    return weft_dataset_fact(data, "length", length, error);
}

static weft_status open_data(app_training *training, weft_error *error)
{
    const words *w = &((const job *)training->own)->words[APP_LEARNS];
    WEFT_TRY(words_open(w, &training->data[APP_LEARNS], error));
    return say_words(w, training->data[APP_LEARNS], error);
}

/* Words of a stream of their own: neither those it learns from nor those it writes in the end. */
static weft_status hold(app_training *training, bool has_data, weft_error *error)
{
    app_held *held = &training->held;
    const words *w = &((const job *)training->own)->held;
    held->batch = settings_count(training->settings, "batch");
    if (has_data) {
        WEFT_TRY(words_open(w, &held->data, error));
        WEFT_TRY(say_words(w, held->data, error));
    }
    const seq2seq_model m = build(training, held->graph, false, held->batch);
    held->loss = seq2seq_loss(held->graph, &m);
    return WEFT_OK;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

/* Some words at once, each as often as there are sequences of it. */
typedef struct writer {
    const words *words;
    weft_program *program;
    seq2seq_model model;
    weft_value likely; /* log probabilities, f64 [batch, target, vocab] */
    int64_t width;     /* of the beam */
    beam *beam;
    int32_t *read, *begun; /* the inputs, [batch, ..] */
    double *scores;
} writer;

static int64_t rows_of(const writer *w)
{
    return TEST_BATCH * w->width;
}

static void close_writer(writer *w)
{
    beam_destroy(&w->beam);
    free(w->read);
    free(w->begun);
    free(w->scores);
}

static weft_status open_writer(app_training *training, writer *w, weft_error *error)
{
    const words *own = &((const job *)training->own)->words[APP_LOOKS];
    *w = (writer){.words = own, .width = settings_count(training->settings, "beam")};
    const size_t rows = (size_t)rows_of(w), length = (size_t)own->length;
    const size_t scores = rows * length * (size_t)words_vocab(own);
    w->beam = beam_create(TEST_BATCH, w->width, own->length, words_vocab(own));
    w->read = calloc(rows * (1 + length), sizeof *w->read);
    w->begun = calloc(rows * length, sizeof *w->begun);
    w->scores = calloc(scores, sizeof *w->scores);
    weft_error mine = {.rank = -1};
    if (!w->beam || !w->read || !w->begun || !w->scores)
        weft_fail_memory(&mine, scores * sizeof *w->scores);
    if (weft_world_agree(&mine) != WEFT_OK) *error = mine;
    WEFT_TRY(mine.status);
    WEFT_TRY(app_training_graph(training, error));
    w->model = build(training, training->graph[APP_LOOKS], false, rows_of(w));
    w->likely = weft_cast(weft_log_softmax(w->model.logits, w->model.vocab), WEFT_F64);
    WEFT_TRY(app_training_look(training, WEFT_VALUES(w->likely), error));
    w->program = training->program[APP_LOOKS];
    return WEFT_OK;
}

/* Words from number `first` on into the beam's best. */
static weft_status write_words(writer *w, int64_t first, weft_error *error)
{
    const int64_t rows = rows_of(w), length = w->words->length;
    const int64_t bytes = rows * length * (int64_t)sizeof *w->begun;
    for (int64_t r = 0; r < rows; r++)
        words_read(w->words, first + r / w->width, w->read + r * (1 + length));
    WEFT_TRY(weft_write(w->program, w->model.read, WEFT_I32, w->read,
                        bytes + rows * (int64_t)sizeof *w->read, error));
    beam_begin(w->beam);
    for (int64_t at = 0; at < length; at++) {
        for (int64_t r = 0; r < rows; r++)
            words_begun(w->words, beam_written(w->beam) + r * length, w->begun + r * length);
        WEFT_TRY(weft_write(w->program, w->model.written, WEFT_I32, w->begun, bytes, error));
        WEFT_TRY(weft_run(w->program, error));
        WEFT_TRY(weft_read(w->program, w->likely, WEFT_F64, w->scores,
                           rows * length * words_vocab(w->words) * (int64_t)sizeof *w->scores,
                           error));
        beam_extend(w->beam, at, w->scores);
    }
    return WEFT_OK;
}

/* How many of those just written are right. */
static int count_right(const writer *w, int64_t first)
{
    int32_t wanted[WORDS_MOST_LENGTH];
    int n = 0;
    for (int64_t i = 0; i < TEST_BATCH; i++) {
        words_wanted(w->words, first + i, wanted);
        n += memcmp(wanted, beam_best(w->beam, i), (size_t)w->words->length * sizeof *wanted) == 0;
    }
    return n;
}

static weft_status write_all(writer *w, bool is_root, weft_error *error)
{
    int n = 0;
    for (int64_t first = 0; first < TEST; first += TEST_BATCH) {
        WEFT_TRY(write_words(w, first, error));
        n += count_right(w, first);
        for (int64_t i = 0; is_root && first == 0 && i < SHOWN; i++)
            words_print(w->words, w->read + i * w->width * (1 + w->words->length),
                        beam_best(w->beam, i));
    }
    if (is_root)
        printf("of %d other words %.1f %% exact, by a beam of %lld\n", TEST, 100.0 * n / TEST,
               (long long)w->width);
    return WEFT_OK;
}

static weft_status look(app_training *training, weft_error *error)
{
    writer w;
    weft_status status = open_writer(training, &w, error);
    if (status == WEFT_OK) status = write_all(&w, weft_mesh_is_root(training->mesh), error);
    close_writer(&w);
    return status;
}

int main(int n, char **arguments)
{
    static const app_training_parts parts = {.table = &table,
                                             .hints = "data=batch model=hidden+heads+vocab",
                                             .begin = begin,
                                             .loss = loss,
                                             .open = open_data,
                                             .hold = hold,
                                             .look = look};
    job j = {0};
    return app_training_main(&parts, &j, n, arguments);
}
