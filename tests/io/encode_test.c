/* encode_test: texts as tokens while they are read: those of an oracle, by any threads, in any pieces, in any order. Their counts are found
 * again in a folder, and they are packed as a file of the same tokens is. A failure of the function names the record.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "chain.h"

#include "own_folder.h"

enum { RECORDS = 400, LONGEST = 300 };

static char path[256], index_folder[256];
static char texts[RECORDS][LONGEST + 1];
static atomic_int n_asked;

static void write_records(void)
{
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    for (int i = 0; i < RECORDS; i++) {
        const int n = i % 17 == 0 ? 0 : i * 7919 % LONGEST;
        for (int k = 0; k < n; k++)
            texts[i][k] = (i + k) % 6 == 5 ? ' ' : (char)('a' + (i * 31 + k * k) % 26);
        fprintf(file, "{\"id\": %d, \"text\": \"%s\", \"title\": \"t\"}\n", i, texts[i]);
    }
    CHECK(fclose(file) == 0);
}

/* A token for each word, by its bytes, and one behind the last: where there is no word, too. */
static int64_t words_of(const char *text, int64_t bytes, int32_t *tokens)
{
    int64_t n = 0;
    for (int64_t at = 0; at < bytes;) {
        int32_t sum = 7;
        while (at < bytes && text[at] == ' ')
            at++;
        if (at == bytes) break;
        for (; at < bytes && text[at] != ' '; at++)
            sum = (sum * 31 + text[at]) % 50000;
        tokens[n++] = sum;
    }
    tokens[n++] = 50000;
    return n;
}

/* *argument: the record's text that cannot be encoded. */
static weft_status encode(const void *argument, const unsigned char *text, int64_t bytes,
                          int32_t *tokens, int64_t *n, weft_error *error)
{
    const char *odd = argument;
    atomic_fetch_add(&n_asked, 1);
    if (odd != NULL && bytes == (int64_t)strlen(odd) && memcmp(odd, text, strlen(odd)) == 0)
        return weft_fail(error, WEFT_USAGE, "a word of it is in no vocabulary");
    *n = words_of((const char *)text, bytes, tokens);
    return WEFT_OK;
}

static weft_status too_many(const void *argument, const unsigned char *text, int64_t bytes,
                            int32_t *tokens, int64_t *n, weft_error *error)
{
    (void)argument, (void)text, (void)tokens, (void)error;
    *n = bytes + 17;
    return WEFT_OK;
}

static weft_status opened(const weft_encode_options *o, weft_chain **chain, weft_error *error)
{
    WEFT_TRY(weft_chain_open(path, NULL, chain, error));
    return weft_chain_encode(chain, o, error);
}

static void check_record(const weft_chain *chain, int64_t i)
{
    int32_t expected[LONGEST + 1], found[LONGEST + 1];
    weft_error error = {0};
    int64_t n = words_of(texts[i], (int64_t)strlen(texts[i]), expected), count = 0;
    CHECK_OK(weft_chain_lengths(chain, i, 1, 0, &count, &error), error);
    if (!CHECK_EQ_INT(count, n)) return;
    CHECK_OK(weft_chain_read(chain, i, 1, 0, found, n * (int64_t)sizeof *found, &error), error);
    CHECK(memcmp(found, expected, (size_t)n * sizeof *found) == 0);
    const weft_want part = {0, WEFT_I32, n / 3, n - n / 4, found};
    void *scratch = aligned_alloc(64, (chain->found.scratch_bytes + 127) / 64 * 64);
    CHECK_OK(weft_chain_ask(chain, i + RECORDS, &part, 1, scratch, &error), error);
    CHECK(memcmp(found, expected + n / 3, (size_t)(part.end - part.begin) * sizeof *found) == 0);
    free(scratch);
}

static void *read_all(void *argument)
{
    for (int64_t i = 0; i < RECORDS; i++)
        check_record(argument, i * 7 % RECORDS);
    return NULL;
}

static void test_tokens_are_those_of_the_function(void)
{
    char *first = NULL;
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
        weft_error error = {0};
        weft_chain *chain = NULL;
        pthread_t threads[3];
        const weft_encode_options o = {.name = "words", .function = encode, .n_threads = n_threads};
        if (!CHECK_OK(opened(&o, &chain, &error), error)) return;
        CHECK(weft_chain_records(chain) == RECORDS && weft_chain_fields(chain) == 1);
        CHECK(strcmp(weft_chain_field_name(chain, 0), "tokens") == 0 &&
              weft_chain_is_ragged(chain, 0) && weft_chain_field_dtype(chain, 0) == WEFT_I32);
        for (int t = 0; t < 3; t++)
            CHECK(pthread_create(&threads[t], NULL, read_all, chain) == 0);
        read_all(chain);
        for (int t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
        const char *facts = weft_chain_facts(chain);
        CHECK_TEXT(facts, "encode words of text, index");
        if (first == NULL) first = strdup(facts);
        CHECK(strcmp(first, facts) == 0);
        weft_chain_close(&chain);
    }
    free(first);
}

static void test_counts_are_found_again(void)
{
    const weft_encode_options o = {.name = "words", .function = encode, .folder = index_folder};
    for (int k = 0; k < 2; k++) {
        weft_error error = {0};
        weft_chain *chain = NULL;
        atomic_store(&n_asked, 0);
        if (!CHECK_OK(opened(&o, &chain, &error), error)) return;
        CHECK_EQ_INT(atomic_load(&n_asked), k == 0 ? RECORDS : 0);
        check_record(chain, 13);
        weft_chain_close(&chain);
    }
}

/* Each token is once in the windows, each document in its order. */
static void test_documents_are_packed(void)
{
    enum { SEQ = 32 };
    weft_error error = {0};
    weft_chain *chain = NULL;
    int64_t n_tokens = 0, n_found = 0;
    int32_t room[LONGEST + 1], tokens[SEQ], segments[SEQ], sum = 0, found = 0;
    for (int i = 0; i < RECORDS; i++) {
        const int64_t n = words_of(texts[i], (int64_t)strlen(texts[i]), room);
        for (int64_t k = 0; k < n; k++)
            sum ^= room[k] * 40503 + (int32_t)(k % SEQ);
        n_tokens += n;
    }
    if (!CHECK_OK(
            opened(&(weft_encode_options){.name = "words", .function = encode}, &chain, &error),
            error) ||
        !CHECK_OK(weft_chain_pack(&chain, &(weft_pack_options){.seq = SEQ, .end = -1}, &error),
                  error))
        return;
    for (int64_t w = 0; w < weft_chain_records(chain); w++) {
        int32_t positions[SEQ];
        CHECK_OK(weft_chain_read(chain, w, 1, 0, tokens, sizeof tokens, &error), error);
        CHECK_OK(weft_chain_read(chain, w, 1, 2, segments, sizeof segments, &error), error);
        CHECK_OK(weft_chain_read(chain, w, 1, 3, positions, sizeof positions, &error), error);
        for (int k = 0; k < SEQ; k++)
            if (segments[k] > 0) found ^= tokens[k] * 40503 + positions[k], n_found++;
    }
    CHECK(n_found == n_tokens && found == sum);
    weft_chain_close(&chain);
}

static void check_refused(const weft_encode_options *o, weft_status expected, const char *one,
                          const char *other)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_EQ_INT(opened(o, &chain, &error), expected);
    CHECK_TEXT(error.message, one);
    CHECK_TEXT(error.message, other);
    CHECK(weft_chain_fields(chain) == 3); /* as it was */
    weft_chain_close(&chain);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    for (int n_threads = 1; n_threads < 4; n_threads++)
        check_refused(
            &(weft_encode_options){
                .name = "words", .function = encode, .argument = texts[5], .n_threads = n_threads},
            WEFT_USAGE, "a word of it is in no vocabulary", "encode words, record 5");
    check_refused(&(weft_encode_options){.name = "words", .function = too_many}, WEFT_USAGE,
                  "more tokens than there is room for", "record 0");
    check_refused(&(weft_encode_options){.name = "words", .function = encode, .field = "id"},
                  WEFT_USAGE, "2 fields are texts", "id is none of them");
    check_refused(&(weft_encode_options){.name = "two words", .function = encode}, WEFT_USAGE,
                  "weft_chain_encode: name", "two words");
    check_refused(&(weft_encode_options){.name = "words"}, WEFT_USAGE, "function is NULL", "said");
    CHECK_OK(weft_chain_open(path, NULL, &chain, &error), error);
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    CHECK(weft_chain_encode(&chain, &(weft_encode_options){.name = "words", .function = encode},
                            &error) == WEFT_USAGE);
    CHECK_TEXT(error.message, "encode first and shuffle then");
    weft_chain_close(&chain);
}

/* Another function under the same name: its tokens are not those that the index is of. */
static void test_another_function_is_found_out(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    int32_t tokens[LONGEST + 1];
    const weft_encode_options o = {.name = "words", .function = too_many, .folder = index_folder};
    if (!CHECK_OK(opened(&o, &chain, &error), error)) return;
    CHECK(weft_chain_read(chain, 3, 1, 0, tokens, sizeof tokens, &error) != WEFT_OK);
    CHECK_TEXT(error.message, "record 3");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("encode")) return weft_test_report();
    snprintf(path, sizeof path, "%s", path_of("r.jsonl"));
    snprintf(index_folder, sizeof index_folder, "%s", path_of("index"));
    write_records();
    RUN(test_tokens_are_those_of_the_function);
    RUN(test_counts_are_found_again);
    RUN(test_documents_are_packed);
    RUN(test_what_cannot_be_is_one_sentence);
    RUN(test_another_function_is_found_out);
    own_folder_close();
    return weft_test_report();
}
