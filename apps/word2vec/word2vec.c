/* word2vec: words of a text get vectors by the company they keep, on any mesh, under any layout; the tables are split by vocab:model.
 * Afterwards: which words are nearest to some.
 */
#include "../training.h"
#include "corpus.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8, MOST_QUERIES = 64 };
static const option options[] = {
    {"data", OPTION_TEXT, "", "FILE", "Data",
     "text to learn, UTF-8; words are runs of letters in any script"},
    {"words", OPTION_COUNT, "2000", "N", "Data", "the most frequent ones; others are left out",
     NULL, 2},
    {"window", OPTION_COUNT, "4", "N", "Data", "words to each side that are near a word", NULL, 1},
    {"negatives", OPTION_COUNT, "5", "N", "Data", "words that are drawn for each pair", NULL, 1},
    {"thin", OPTION_REAL, "1e-3", "X", "Data",
     "words that are more than X of the text are left out now and then; 0: never"},
    {"seed", OPTION_COUNT, "1", "N", "Data", "of vectors, order of pairs, what is drawn"},
    APP_PLACE_OPTIONS("batch candidate vocab embed"),
    {"width", OPTION_COUNT, "64", "N", "Model", "of vectors", NULL, 1},
    APP_DTYPE_OPTION,
    APP_LEARN_OPTIONS("6000", "length of training and of the rate's schedule", "1024",
                      "pairs a step, over all ranks", "5e-3", "1", "0", "0"),
    {"sparse", OPTION_FLAG, "no", "", "Learning",
     "with --optimizer sgd: only rows of words that a step has are read and written"},
    APP_CONTINUE_OPTIONS("runs/word2vec"),
    {"nearest", OPTION_TEXT, "", "WORDS", "Output",
     "words to show the nearest ones of, as king,love; without it some frequent ones"},
    {"show", OPTION_COUNT, "5", "N", "Output", "how many of them", NULL, 1},
};
static const option_table table = {
    "word2vec",
    "word2vec [options]   learn vectors of a text's words; again, to continue\n"
    "word2vec search --ranks N --machine FILE   find the quickest mesh and layout\n"
    "\n"
    "  word2vec --data book.txt --nearest king,love --mesh data:2,model:2 \\\n"
    "      --layout batch:data,vocab:model\n",
    options,
    sizeof options / sizeof *options,
    "learn vectors of a text's words by the company they keep",
    "data words window mesh layout zero width steps batch optimizer rate run save-every nearest "
    "config",
    "search"};

typedef struct job {
    corpus *corpus;
    int64_t n_queries;
    int32_t queries[MOST_QUERIES];
    word2vec_model model;
} job;

/* ---- what to show --------------------------------------------------------------------------------
 */

/* Frequent enough to have been learned, and no longer "the" and "and". */
static void choose_some(job *j)
{
    const int64_t n = corpus_words(j->corpus), first = n / 20;
    j->n_queries = n < SHOWN ? n : SHOWN;
    for (int64_t i = 0; i < j->n_queries; i++)
        j->queries[i] = (int32_t)((first + i * (n / 40 + 1)) % n);
}

static weft_status read_queries(job *j, const char *text, weft_error *error)
{
    if (*text == '\0') choose_some(j);
    for (size_t n; *text != '\0'; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (j->n_queries == MOST_QUERIES)
            return weft_fail(error, WEFT_USAGE, "--nearest: there are more than %d words",
                             MOST_QUERIES);
        const int64_t id = corpus_find(j->corpus, text, n, error);
        if (id < 0) return error->status;
        j->queries[j->n_queries++] = (int32_t)id;
    }
    return WEFT_OK;
}

/* ---- the parts -----------------------------------------------------------------------------------
 */

static weft_status check_sparse(const settings *s, weft_error *error)
{
    const char *optimizer = settings_text(s, "optimizer");
    if (!settings_flag(s, "sparse") ||
        (strcmp(optimizer, "sgd") == 0 && settings_real(s, "clip") == 0))
        return WEFT_OK;
    return weft_fail(
        error, WEFT_USAGE,
        "--sparse, --optimizer %.40s and --clip %g: what an optimizer keeps of all rows, "
        "and a norm of all gradients, need all rows; give --optimizer sgd --clip 0",
        optimizer, settings_real(s, "clip"));
}

static weft_status begin(app_training *training, weft_error *error)
{
    job *j = training->own;
    const settings *s = training->settings;
    const corpus_options o = {.most_words = settings_count(s, "words"),
                              .window = settings_count(s, "window"),
                              .negatives = settings_count(s, "negatives"),
                              .sample = settings_real(s, "thin"),
                              .seed = (uint64_t)settings_count(s, "seed")};
    WEFT_TRY(app_training_check_data(training, "text to learn", error));
    WEFT_TRY(check_sparse(s, error));
    if (o.window > CORPUS_MOST_NEAR || o.negatives > CORPUS_MOST_NEAR)
        return weft_fail(error, WEFT_USAGE,
                         "--window %lld --negatives %lld: there can be 1 to %d of each",
                         (long long)o.window, (long long)o.negatives, CORPUS_MOST_NEAR);
    WEFT_TRY(corpus_open(settings_text(s, "data"), &o, &j->corpus, error));
    training->mark = corpus_mark(j->corpus);
    return read_queries(j, settings_text(s, "nearest"), error);
}

static word2vec_shape shape_of(const app_training *training)
{
    const settings *s = training->settings;
    return (word2vec_shape){.batch = settings_count(s, "batch"),
                            .vocab = corpus_words(((const job *)training->own)->corpus),
                            .embed = settings_count(s, "width"),
                            .candidates = 1 + settings_count(s, "negatives"),
                            .dtype = app_training_dtype(training)};
}

static weft_value loss(app_training *training)
{
    const word2vec_shape shape = shape_of(training);
    job *j = training->own;
    j->model = word2vec_build(training->graph[APP_LEARNS], &shape);
    return j->model.loss;
}

static weft_value update(app_training *training, weft_value of, weft_value rate)
{
    const job *j = training->own;
    const word2vec_shape shape = shape_of(training);
    if (!settings_flag(training->settings, "sparse")) return (weft_value){of.graph, 0};
    return word2vec_step(&j->model, &shape, rate);
}

static weft_status open_data(app_training *training, weft_error *error)
{
    const job *j = training->own;
    char told[CORPUS_TOLD];
    corpus_told(j->corpus, told);
    WEFT_TRY(corpus_pairs(j->corpus, &training->data[APP_LEARNS], error));
    WEFT_TRY(weft_dataset_fact(training->data[APP_LEARNS], "text", told, error));
    return app_training_fact(training, "window", settings_count(training->settings, "window"),
                             error);
}

/* How many more bytes than letters a word has: columns are filled by letters. */
static int n_more_bytes(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) == 0x80;
    return n;
}

static void print_nearest(const job *j, const int32_t *ids, const double *cosines, int64_t n_near)
{
    printf("%lld words, %lld of them in the text as it is gone through\n",
           (long long)corpus_words(j->corpus), (long long)corpus_length(j->corpus));
    for (int64_t q = 0; q < j->n_queries; q++) {
        const char *asked = corpus_word(j->corpus, j->queries[q]);
        printf("  %-*s", 12 + n_more_bytes(asked), asked);
        for (int64_t k = 0; k < n_near; k++)
            if (ids[q * n_near + k] != j->queries[q])
                printf(" %s %.2f", corpus_word(j->corpus, ids[q * n_near + k]),
                       cosines[q * n_near + k]);
        putchar('\n');
    }
}

static weft_status find_nearest(app_training *training, int32_t *ids, double *cosines,
                                int64_t n_near, weft_error *error)
{
    weft_value near_ids;
    const job *j = training->own;
    const word2vec_shape shape = shape_of(training);
    const int64_t n = j->n_queries * n_near;
    WEFT_TRY(app_training_graph(training, error));
    weft_graph *graph = training->graph[APP_LOOKS];
    const weft_value cosine =
        weft_cast(word2vec_nearest(graph, &shape, j->n_queries, n_near, &near_ids), WEFT_F64);
    WEFT_TRY(app_training_look(training, WEFT_VALUES(cosine, near_ids), error));
    weft_program *program = training->program[APP_LOOKS];
    WEFT_TRY(weft_write(program, weft_find_input(program, "query"), WEFT_I32, j->queries,
                        j->n_queries * (int64_t)sizeof *j->queries, error));
    WEFT_TRY(weft_run(program, error));
    WEFT_TRY(weft_read(program, near_ids, WEFT_I32, ids, n * (int64_t)sizeof *ids, error));
    return weft_read(program, cosine, WEFT_F64, cosines, n * (int64_t)sizeof *cosines, error);
}

static weft_status look(app_training *training, weft_error *error)
{
    const job *j = training->own;
    const int64_t asked = 1 + settings_count(training->settings, "show"); /* itself besides */
    const int64_t n_near = asked < corpus_words(j->corpus) ? asked : corpus_words(j->corpus);
    int32_t *ids = calloc((size_t)(j->n_queries * n_near), sizeof *ids);
    double *cosines = calloc((size_t)(j->n_queries * n_near), sizeof *cosines);
    weft_error own = {.rank = -1};
    if (!ids || !cosines) weft_fail_memory(&own, (size_t)(j->n_queries * n_near) * sizeof *cosines);
    if (weft_world_agree(&own) == WEFT_OK)
        (void)!find_nearest(training, ids, cosines, n_near, &own);
    if (own.status == WEFT_OK && weft_mesh_is_root(training->mesh))
        print_nearest(j, ids, cosines, n_near);
    free(ids);
    free(cosines);
    if (own.status != WEFT_OK) *error = own;
    return own.status;
}

static void close_corpus(app_training *training)
{
    corpus_close(&((job *)training->own)->corpus);
}

int main(int n, char **arguments)
{
    static const app_training_parts parts = {.table = &table,
                                             .hints = "data=batch model=vocab",
                                             .begin = begin,
                                             .loss = loss,
                                             .update = update,
                                             .open = open_data,
                                             .look = look,
                                             .close = close_corpus};
    job j = {0};
    return app_training_main(&parts, &j, n, arguments);
}
