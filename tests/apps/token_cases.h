/* token_cases.h: texts and their tokens, as Hugging Face's tokenizers find them; programs that go on with words, in the folder of a
 * test. */
#ifndef WEFT_TESTS_TOKEN_CASES_H
#define WEFT_TESTS_TOKEN_CASES_H

#include <jansson.h>
#include <stdlib.h>

#include "apps/bpe/bpe.h"
#include "text_folder.h"
#include "test.h"

enum { TEXT = 2048 };

static inline bool open_words(const char *path, bpe **b)
{
    weft_error error = {.rank = -1};
    return CHECK_OK(bpe_open(path, b, &error), error);
}

static inline bool encode(bpe *b, const void *text, size_t n, bpe_tokens *tokens)
{
    weft_error error = {.rank = -1};
    return CHECK_OK(bpe_encode(b, text, n, tokens, &error), error);
}

static inline void check_same_bytes(const bpe *b, const bpe_tokens *tokens, const void *text,
                                    size_t n)
{
    size_t at = 0, length;
    for (size_t i = 0; i < tokens->n; i++) {
        const unsigned char *word = bpe_word(b, tokens->ids[i], &length);
        if (!CHECK(at + length <= n) || !CHECK(memcmp((const char *)text + at, word, length) == 0))
            return;
        at += length;
    }
    CHECK_EQ_INT(at, n);
}

static inline void check_case(bpe *b, json_t *one)
{
    json_t *text = json_object_get(one, "text"), *ids = json_object_get(one, "ids");
    const size_t n = json_string_length(text);
    bpe_tokens tokens = {0};
    if (encode(b, json_string_value(text), n, &tokens) &&
        CHECK_EQ_INT(tokens.n, json_array_size(ids)))
        for (size_t i = 0; i < tokens.n; i++)
            CHECK_EQ_INT(tokens.ids[i], json_integer_value(json_array_get(ids, i)));
    check_same_bytes(b, &tokens, json_string_value(text), n);
    free(tokens.ids);
}

static inline command_result run_in_folder(const char *command)
{
    char line[TEXT];
    snprintf(line, sizeof line, "cd %s && PATH=%s:$PATH && { %s; } 2>&1", folder, WEFT_TEST_BIN,
             command);
    return command_run_all(line);
}

static inline void check_refused(const char *command, const char *says)
{
    const command_result r = run_in_folder(command);
    CHECK(r.status != 0);
    CHECK_TEXT(r.text, says);
}

/* By the vocabulary in a folder. */
static inline void check_cases(const char *path)
{
    bpe *b = NULL;
    json_t *cases =
        json_load_file(WEFT_TEST_DATA "/reference/bpe/cases.json", JSON_ALLOW_NUL, NULL);
    if (CHECK(json_array_size(cases) > 20) && open_words(path, &b))
        for (size_t i = 0; i < json_array_size(cases); i++)
            check_case(b, json_array_get(cases, i));
    bpe_close(&b);
    json_decref(cases);
}

#endif
