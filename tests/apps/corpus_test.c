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

/* The words of a text, in the order in which they first stand there; each stands there once less than the one before. */
static void check_words(const char *text, const char *const *words, int n)
{
    char all[4000] = "";
    for (int from = 0; from < n; from++) /* so that frequency ranks them */
        for (int i = 0; i + from < n; i++) {
            strcat(all, words[i]);
            strcat(all, " ");
        }
    strcat(all, text);
    CHECK(write_text(all, 1));
    corpus *c = open_corpus((corpus_options){.most_words = 100, .window = 1, .negatives = 1});
    if (!CHECK(c != NULL)) return;
    CHECK_EQ_INT((int)corpus_words(c), n);
    for (int i = 0; i < n && i < corpus_words(c); i++)
        if (!CHECK(strcmp(corpus_word(c, i), words[i]) == 0))
            fprintf(stderr, "%s\n", corpus_word(c, i));
    CHECK_EQ_INT((int)corpus_length(c), n * (n + 1) / 2 + n);
    corpus_close(&c);
}
#define WORDS(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)

static void test_words_are_of_any_script(void)
{
    check_words("ПРИВЕТ, Мир: ёлка-Ещё", WORDS("привет", "мир", "ёлка", "ещё"));
    check_words("ὉΔΌΣ Ἀθήνα (ΣΊΣΥΦΟΣ)", WORDS("ὁδός", "ἀθήνα", "σίσυφος"));
    check_words("हिन्दी|संस्कृतम्", WORDS("हिन्दी", "संस्कृतम्"));
    check_words("x \xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7.", /* a joiner within */
                WORDS("x", "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7"));
    check_words("中文。汉字,日本語", WORDS("中文", "汉字", "日本語"));
    check_words("العربية، عَرَبِيّ", WORDS("العربية", "عَرَبِيّ"));
    check_words("x ภาษาไทย 123", WORDS("x", "ภาษาไทย"));
    check_words("Straße ÉCOLE Ǆep naïve", WORDS("straße", "école", "ǆep", "naïve"));
    check_words("Don\xe2\x80\x99t \xe2\x80\x98Quoted\xe2\x80\x99 L\xe2\x80\x99\xc3\x89t\xc3\xa9",
                WORDS("don't", "quoted", "l'été"));
    check_words("Caf\xc3\xa9 cafe\xcc\x81", WORDS("caf\xc3\xa9", "cafe\xcc\x81")); /* as written */
    check_words("heart \xe2\x9d\xa4\xef\xb8\x8f 5\xe2\x83\xa3 \xef\xbb\xbfmark",
                WORDS("heart", "mark"));
}

/* A large letter of two bytes, of which the small one has three. */
static void test_small_letters_may_take_more_room(void)
{
    char text[300] = "x ";
    for (int i = 0; i < 100; i++)
        strcat(text, "\xc8\xba");
    CHECK(write_text(text, 1));
    corpus *c = open_corpus((corpus_options){.most_words = 100, .window = 1, .negatives = 1});
    weft_error error = {0};
    if (!CHECK(c != NULL)) return;
    CHECK_EQ_INT((int)strlen(corpus_word(c, 1)), 300);
    CHECK_EQ_INT((int)corpus_find(c, text + 2, strlen(text) - 2, &error), 1);
    corpus_close(&c);
}

static void test_a_word_that_is_asked_for_may_be_large(void)
{
    CHECK(write_text("москва Париж don't ", 3));
    corpus *c = open_corpus((corpus_options){.most_words = 100, .window = 1, .negatives = 1});
    weft_error error = {0};
    CHECK_EQ_INT((int)corpus_find(c, "МОСКВА", strlen("МОСКВА"), &error), 0);
    CHECK_EQ_INT((int)corpus_find(c, "париж,x", strlen("париж"), &error), 1);
    CHECK_EQ_INT((int)corpus_find(c, "Don\xe2\x80\x99T", 7, &error), 2);
    CHECK_EQ_INT((int)corpus_find(c, "Москвы", strlen("Москвы"), &error), -1);
    CHECK_TEXT(error.message, "\"москвы\" is none of the 3 words; did you mean москва?");
    error = (weft_error){0};
    CHECK_EQ_INT((int)corpus_find(c, "a\xff", 2, &error), -1);
    CHECK_TEXT(error.message, "asked for is no UTF-8: byte 1 of it, 0xff");
    corpus_close(&c);
}

static void test_what_is_no_utf8_is_told_with_its_place(void)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {{"caf\xe9 noir et caf\xe9", "is no UTF-8: byte 3 of it, 0xe9"},
                 {"good text and then \xd0", "is no UTF-8: byte 19 of it, 0xd0"},
                 {"\xed\xa0\x80", "is no UTF-8: byte 0 of it, 0xed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        corpus *c;
        weft_error error = {0};
        const corpus_options o = {.most_words = 9, .window = 1, .negatives = 1};
        CHECK(write_text(cases[i].text, 1));
        CHECK_EQ_INT(corpus_open(path, &o, &c, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, cases[i].sentence);
        CHECK(c == NULL);
    }
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
        RUN(test_words_are_of_any_script);
        RUN(test_small_letters_may_take_more_room);
        RUN(test_a_word_that_is_asked_for_may_be_large);
        RUN(test_what_is_no_utf8_is_told_with_its_place);
        RUN(test_a_text_without_words_is_refused);
        RUN(test_pairs_stand_within_the_window);
        RUN(test_negatives_are_drawn_by_powers_of_their_counts);
        RUN(test_frequent_words_are_left_out_by_the_rule);
        unlink(path);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
