/* corpus_test: words of a text by frequency, whatever their case and what stands between; pairs that stand within the window, round
 * the text's ends; negatives drawn by count^0.75; frequent words left out as often as the rule says.
 */
#include "apps/word2vec/corpus.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static char path[] = "/tmp/weft-corpus-XXXXXX";
static weft_oracle oracle;

static bool write_text(const char *text, int times)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    for (int i = 0; i < times; i++)
        fputs(text, file);
    return fclose(file) == 0;
}

static corpus *open_corpus(corpus_options options)
{
    corpus *c;
    weft_error error = {0};
    CHECK_OK(corpus_open(path, &options, &c, &error), error);
    return c;
}

static void test_words_are_ranked_by_how_often_they_stand_there(void)
{
    static const char *const ranked[] = {"the", "cat", "it's", "a", "dog"};
    CHECK(write_text("The cat, the CAT: it's the--it's 1234 a\n\t\adog", 1));
    corpus *c = open_corpus((corpus_options){.most_words = 100, .window = 1, .negatives = 1});
    CHECK_EQ_INT((int)corpus_words(c), 5);
    CHECK_EQ_INT((int)corpus_length(c), 9);
    for (int i = 0; i < 5; i++)
        CHECK(strcmp(corpus_word(c, i), ranked[i]) == 0);
    weft_error error = {0};
    CHECK_EQ_INT((int)corpus_find(c, "cat,dog", 3, &error), 1);
    CHECK_EQ_INT((int)corpus_find(c, "catt", 4, &error), -1);
    CHECK_TEXT(error.message, "\"catt\" is none of the 5 words; did you mean cat?");
    corpus_close(&c);
    c = open_corpus((corpus_options){.most_words = 2, .window = 1, .negatives = 1});
    CHECK_EQ_INT((int)corpus_words(c), 2);
    CHECK_EQ_INT((int)corpus_length(c), 5);
    corpus_close(&c);
}

static void test_a_text_without_words_is_refused(void)
{
    corpus *c;
    weft_error error = {0};
    const corpus_options o = {.most_words = 9, .window = 1, .negatives = 1};
    CHECK(write_text("123 ... 456 again again", 1));
    CHECK_EQ_INT(corpus_open(path, &o, &c, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "has 1 different words");
    CHECK(c == NULL);
    error = (weft_error){0};
    CHECK_EQ_INT(corpus_open("/tmp/weft-corpus-none", &o, &c, &error), WEFT_IO);
    CHECK_TEXT(error.message, "/tmp/weft-corpus-none: No such file");
}

/* ---- pairs --------------------------------------------------------------------------------------- */

enum { BATCH = 1000, STEPS = 40, NEGATIVES = 6 };

typedef struct pairs {
    int32_t center[BATCH * STEPS], candidates[BATCH * STEPS][1 + NEGATIVES];
} pairs;

static weft_status draw(const corpus *c, pairs *p, weft_error *error)
{
    const weft_dim batch = {"batch", BATCH}, candidate = {"candidate", 1 + NEGATIVES};
    weft_graph *g = weft_graph_create(1);
    weft_dataset *data = NULL;
    weft_program *program = NULL;
    const weft_value center = weft_input(g, "center", WEFT_I32, WEFT_DIMS(batch)),
                     candidates =
                         weft_input(g, "candidates", WEFT_I32, WEFT_DIMS(batch, candidate));
    const weft_value both = weft_group(
        g, WEFT_VALUES(weft_sum(WEFT_SCALAR, center), weft_sum(WEFT_SCALAR, candidates)));
    weft_status status = weft_compile(oracle.alone, NULL, WEFT_VALUES(both), NULL, &program, error);
    if (status == WEFT_OK) status = corpus_pairs(c, &data, error);
    if (status == WEFT_OK) status = weft_dataset_start(data, program, error);
    for (int i = 0; i < STEPS && status == WEFT_OK; i++) {
        status = weft_dataset_next(data, program, error);
        if (status == WEFT_OK)
            status = weft_read(program, center, WEFT_I32, p->center + i * BATCH,
                               BATCH * sizeof *p->center, error);
        if (status == WEFT_OK)
            status = weft_read(program, candidates, WEFT_I32, p->candidates + i * BATCH,
                               BATCH * sizeof *p->candidates, error);
    }
    weft_dataset_close(&data);
    (void)!weft_program_destroy(&program);
    (void)!weft_graph_destroy(&g);
    return status;
}

/* 26 words in a row, over and over: words apart by at most 2, which each offset has as often. */
static void test_pairs_stand_within_the_window(void)
{
    static pairs p;
    int counts[5] = {0}, n_negatives = 0;
    weft_error error = {0};
    CHECK(write_text("a b c d e f g h i j k l m n o p q r s t u v w x y z ", 10));
    corpus *c =
        open_corpus((corpus_options){.most_words = 100, .window = 2, .negatives = NEGATIVES});
    if (CHECK_OK(draw(c, &p, &error), error)) {
        for (int i = 0; i < BATCH * STEPS; i++) {
            const int apart = (p.candidates[i][0] - p.center[i] + 26 + 2) % 26;
            if (apart < 5) counts[apart]++;
            for (int k = 1; k <= NEGATIVES; k++)
                n_negatives += p.candidates[i][k] >= 0 && p.candidates[i][k] < 26;
        }
        CHECK_EQ_INT(counts[0] + counts[1] + counts[3] + counts[4], BATCH * STEPS);
        for (int k = 0; k < 5; k++)
            CHECK(k == 2 || abs(counts[k] - BATCH * STEPS / 4) < 500);
        CHECK_EQ_INT(n_negatives, BATCH * STEPS * NEGATIVES);
    }
    corpus_close(&c);
}

static void test_negatives_are_drawn_by_powers_of_their_counts(void)
{
    static pairs p;
    double counts[3] = {0};
    const double powers = pow(16, 0.75) + pow(4, 0.75) + 1;
    weft_error error = {0};
    CHECK(write_text("a a a a a a a a a a a a a a a a b b b b c ", 50));
    corpus *c =
        open_corpus((corpus_options){.most_words = 100, .window = 1, .negatives = NEGATIVES});
    if (CHECK_OK(draw(c, &p, &error), error)) {
        for (int i = 0; i < BATCH * STEPS; i++)
            for (int k = 1; k <= NEGATIVES; k++)
                counts[p.candidates[i][k]] += 1.0 / (BATCH * STEPS * NEGATIVES);
        CHECK(fabs(counts[0] - pow(16, 0.75) / powers) < 0.01);
        CHECK(fabs(counts[1] - pow(4, 0.75) / powers) < 0.01);
        CHECK(fabs(counts[2] - 1 / powers) < 0.01);
    }
    corpus_close(&c);
}

/* a is 16 of 21 words: sqrt(0.05 / (16 / 21)) of its places stay, and so on. */
static void test_frequent_words_are_left_out_by_the_rule(void)
{
    CHECK(write_text("a a a a a a a a a a a a a a a a b b b b c ", 1000));
    corpus *c = open_corpus(
        (corpus_options){.most_words = 100, .window = 1, .negatives = 1, .sample = 0.05});
    const double kept = 16000 * sqrt(0.05 * 21 / 16) + 4000 * sqrt(0.05 * 21 / 4) + 1000;
    CHECK(fabs((double)corpus_length(c) - kept) < 250);
    corpus_close(&c);
}

int main(void)
{
    weft_error error = {0};
    const int file = mkstemp(path);
    if (CHECK(file >= 0) && CHECK_OK(weft_oracle_open(&oracle, NULL, 0, &error), error)) {
        close(file);
        RUN(test_words_are_ranked_by_how_often_they_stand_there);
        RUN(test_a_text_without_words_is_refused);
        RUN(test_pairs_stand_within_the_window);
        RUN(test_negatives_are_drawn_by_powers_of_their_counts);
        RUN(test_frequent_words_are_left_out_by_the_rule);
        unlink(path);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
