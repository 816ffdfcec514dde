/* tokenizer_test: a vocabulary in one tokenizer.json is the same as in two files; one that makes other words than GPT-2 does is one
 * sentence. */
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "apps/text.h"
#include "token_cases.h"

#include "test.h"

/* The same vocabulary, all in one file; pairs are texts, or lists of two. */
static void write_tokenizer(const char *path, bool has_lists)
{
    app_text pairs;
    char *at = NULL, *line;
    weft_error error = {.rank = -1};
    json_t *merges = json_array(),
           *words = json_load_file(WEFT_TEST_DATA "/reference/bpe/vocab.json", 0, NULL);
    CHECK_OK(app_text_read(WEFT_TEST_DATA "/reference/bpe/merges.txt", "pairs", WEFT_FILE_LINES,
                           &pairs, &error),
             error);
    while (error.status == WEFT_OK && (line = app_text_line(&pairs, &at)) != NULL) {
        char *gap = strchr(line, ' ');
        if (*line == '#' && gap && strncmp(line, "#version", 8) == 0) continue;
        json_array_append_new(
            merges, has_lists && gap ? json_pack("[s%, s]", line, (size_t)(gap - line), gap + 1)
                                     : json_string(line));
    }
    json_t *all = json_pack("{s:n, s:{s:s, s:b}, s:{s:s, s:o, s:o}}", "normalizer", "pre_tokenizer",
                            "type", "ByteLevel", "add_prefix_space", 0, "model", "type", "BPE",
                            "vocab", words, "merges", merges);
    CHECK(all != NULL && json_dump_file(all, path, 0) == 0);
    json_decref(all);
    free(pairs.bytes);
}

static void test_a_vocabulary_in_one_file_is_the_same(void)
{
    char in_one[300], path[400];
    snprintf(in_one, sizeof in_one, "%s/one", folder);
    snprintf(path, sizeof path, "%s/one/tokenizer.json", folder);
    CHECK_EQ_INT(mkdir(in_one, 0777), 0);
    for (int has_lists = 0; has_lists < 2; has_lists++) {
        write_tokenizer(path, has_lists);
        check_cases(in_one);
    }
}

static void test_what_makes_other_words_is_refused(void)
{
#define TRY(edit)                                                                                  \
    "sed '" edit "' one/tokenizer.json > other/tokenizer.json; weft tokens decode text.tokens "    \
    "--tokens other"
    CHECK_EQ_INT(
        run_in_folder("mkdir other && weft tokens encode text.txt text.tokens --tokens one").status,
        0);
    check_refused(TRY("s/\"BPE\"/\"Unigram\"/"), "model is Unigram, and only BPE is read");
    check_refused(TRY("s/\"ByteLevel\"/\"Metaspace\"/"), "pre_tokenizer is Metaspace, and only");
    check_refused(TRY("s/\"normalizer\": null/\"normalizer\": {\"type\": \"NFC\"}/"),
                  "normalizer is NFC");
    check_refused(TRY("s/\"add_prefix_space\": false/\"x\": 1/"), "add_prefix_space is true");
    check_refused(TRY("s/\"BPE\"/\"BPE\", \"byte_fallback\": true/"), "byte_fallback is set");
    check_refused(TRY("s/\"add_prefix_space\"/\"use_regex\": false, &/"), "use_regex is false");
    check_refused(TRY("s/\"merges\": \\[/&[], /"), "tokenizer.json, merge 1 is no pair");
    check_refused(TRY("s/\"merges\": \\[\\[/&\"q\", \"zzz\"], [/"),
                  "merge 1: \"q zzz\" is no pair of words");
    check_refused("rm -r other/*; weft tokens decode text.tokens --tokens other",
                  "or with tokenizer.json");
#undef TRY
}

int main(void)
{
    if (!text_folder_open("/tmp", "tokenizer")) return 1;
    RUN(test_a_vocabulary_in_one_file_is_the_same);
    RUN(test_what_makes_other_words_is_refused);
    text_folder_close();
    return weft_test_report();
}
