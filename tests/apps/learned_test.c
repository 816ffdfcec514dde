/* learned_test: what programs made by apps/training.c do with what they learned, after trainings long enough to learn it. */
#include "tasks.h"

static const task charlm = {.program = "charlm", .arguments = "--data %s/text.txt --batch 6"};

/* A text of a sentence over and over is known by heart; what is written is the same under every layout. */
static void test_charlm_writes_what_it_has_learned(void)
{
    static const char *const options = "--model lstm --seq 30 --width 48 --steps 300 --rate 1e-2 "
                                       "--sample 90 --prompt 'the quick ' "
                                       "--temperature 0.1";
    char more[400], said[400] = "";
    const command_result *r = start(&charlm, "", "text", options);
    const char *at = strstr(r->text, "the quick ");
    CHECK_EQ_INT(r->status, 0);
    if (!CHECK(at != NULL)) return;
    snprintf(said, sizeof said, "%s", at);
    CHECK_TEXT(said, "the quick brown fox jumps over the lazy dog; the quick");
    snprintf(more, sizeof more, "%s --mesh model:2 --layout hidden:model,vocab:model", options);
    CHECK_TEXT(start(&charlm, "", "text", more)->text, said);
    snprintf(more, sizeof more, "%s --temperature 0", options);
    CHECK_TEXT(start(&charlm, "", "text", more)->text, "the quick brown fox jumps over the ");
}

/* The part of words that it writes as they should be. */
static double exact(const command_result *r)
{
    const char *at = strstr(r->text, "other words ");
    weft_test_check(r->status == 0 && at != NULL, __FILE__, __LINE__, r->text);
    return at != NULL ? atof(at + strlen("other words ")) : 0;
}

/* Both nets; by a beam too, and with everything split the same. */
static void test_seq2seq_writes_words_of_another_stream(void)
{
    static const char *const nets[] = {"--model lstm --steps 500 --width 32 --heads 2 --letters 6 "
                                       "--length 4 --batch 64 --rate 1e-2",
                                       "--model transformer --layers 1 --steps 500 --width 32 "
                                       "--heads 2 --letters 6 --length 4 --batch 64 --rate 1e-2"};
    const task net = {.program = "seq2seq", .arguments = "--schedule cosine"};
    for (int i = 0; i < 2; i++) {
        char name[20], more[600];
        snprintf(name, sizeof name, "words%d", i);
        snprintf(more, sizeof more, "%s --beam 1", nets[i]);
        CHECK(exact(start(&net, "", name, more)) >= 99.0);
        snprintf(more, sizeof more,
                 "%s --beam 3 --mesh data:2,model:2 --layout "
                 "batch:data,hidden:model,heads:model,vocab:model",
                 nets[i]);
        CHECK(exact(start(&net, "", name, more)) >= 99.0);
    }
}

/* Sentences of one topic each: words of the topic come out nearest to one of it. */
static bool write_topics(void)
{
    char path[200];
    unsigned h = 1;
    snprintf(path, sizeof path, "%s/topics.txt", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    for (int i = 0; i < 20000; i++) {
        h = h * 1664525u + 1013904223u;
        fprintf(file, "%c%c%s", "wgp"[i / 10 % 3], 'a' + (h >> 20) % 8, i % 10 == 9 ? ".\n" : " ");
    }
    return fclose(file) == 0;
}

static void test_word2vec_brings_words_of_a_topic_together(void)
{
    static const char *const layouts[] = {"",
                                          "--mesh data:2,model:2 --layout batch:data,vocab:model"};
    const task net = {.program = "word2vec",
                      .arguments = "--data %s/topics.txt --thin 0 --window 2 --batch 256 "
                                   "--steps 400 --width 8 --rate 2e-2 --nearest wa,gb,pc --show 4"};
    char said[2][400];
    if (!CHECK(write_topics())) return;
    for (int i = 0; i < 2; i++) {
        const command_result *r = start(&net, "", i == 0 ? "topics" : "topics2", layouts[i]);
        const char *at = strstr(r->text, "24 words, 20000 of them");
        weft_test_check(r->status == 0 && at != NULL, __FILE__, __LINE__, r->text);
        if (at == NULL) return;
        snprintf(said[i], sizeof said[i], "%s", at);
    }
    CHECK_TEXT(said[1], said[0]);
    int n_near[3] = {0};
    for (int t = 0; t < 3; t++) {
        const char *line = strstr(said[0], &"wa\0gb\0pc"[3 * t]);
        for (const char *c = line; line != NULL && *c != '\n' && *c != '\0'; c++)
            n_near[t] += c[0] == "wgp"[t] && c[1] >= 'a' && c[1] <= 'h' && c[-1] == ' ';
        CHECK_EQ_INT(n_near[t], 1 + 4);
    }
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "learned"))) return weft_test_report();
    RUN(test_charlm_writes_what_it_has_learned);
    RUN(test_seq2seq_writes_words_of_another_stream);
    RUN(test_word2vec_brings_words_of_a_topic_together);
    text_folder_close();
    return weft_test_report();
}
