/* split_test: rows of tokens are cut behind each end, as an oracle cuts them, whatever pieces threads look through; the index is found
 * again; files of tokens are packed by their documents.
 */
#include <stdlib.h>
#include <unistd.h>

#include "chain.h"

#include "own_folder.h"

enum { RECORDS = 5, LONGEST = 700000, END = 3 };

static atomic_int n_read;

/* Some records are longer than what a thread looks through; one is empty, one has no end. */
static int64_t length_of(int64_t record)
{
    static const int64_t lengths[RECORDS] = {1000, 0, LONGEST, 1, 262144};
    return lengths[record];
}

static int32_t token_of(int64_t record, int64_t i)
{
    const uint64_t x = (uint64_t)(record * LONGEST + i) * 0x9E3779B97F4A7C15u;
    return record == 3 ? 9 : (int32_t)((x >> 40) % 37);
}

static weft_status read_tokens(const void *self, int64_t record, const weft_want *wants,
                               int n_wants, void *scratch, weft_error *error)
{
    (void)self, (void)scratch, (void)error;
    atomic_fetch_add(&n_read, 1);
    for (const weft_want *w = wants; w < wants + n_wants; w++)
        for (int64_t i = w->begin; i < w->end; i++)
            ((int32_t *)w->to)[i - w->begin] = token_of(record, i);
    return WEFT_OK;
}

static weft_status count_tokens(const void *self, int64_t record, int field, void *scratch,
                                int64_t *n, weft_error *error)
{
    (void)self, (void)field, (void)scratch, (void)error;
    *n = length_of(record);
    return WEFT_OK;
}

static weft_chain *rows(void)
{
    static const weft_chain_kind kind = {
        .name = "rows", .read = read_tokens, .count = count_tokens};
    weft_error error = {0};
    weft_chain *chain = NULL;
    const weft_chain_found found = {.records = RECORDS,
                                    .n_fields = 1,
                                    .fields = {{.name = "tokens",
                                                .dtype = WEFT_I32,
                                                .is_ragged = true,
                                                .shape = {1, {{"token", LONGEST}}}}}};
    CHECK_OK(weft_chain_make(&kind, NULL, &found, &chain, &error), error);
    return chain;
}

static weft_chain *documents(int n_threads, const char *where)
{
    weft_error error = {0};
    weft_chain *chain = rows();
    const weft_split_options o = {.token = END, .folder = where, .n_threads = n_threads};
    CHECK_OK(weft_chain_split(&chain, &o, &error), error);
    return chain;
}

/* Document i is tokens [begin, end) of a record. */
static void check_document(const weft_chain *chain, int64_t i, int64_t record, int64_t begin,
                           int64_t end)
{
    static int32_t tokens[LONGEST];
    int64_t n = -1;
    weft_error error = {0};
    CHECK_OK(weft_chain_lengths(chain, i, 1, 0, &n, &error), error);
    if (!CHECK_EQ_INT(n, end - begin)) return;
    CHECK_OK(weft_chain_read(chain, i, 1, 0, tokens, n * 4, &error), error);
    for (int64_t k = 0; k < n; k++)
        if (tokens[k] != token_of(record, begin + k)) {
            CHECK_EQ_INT(tokens[k], token_of(record, begin + k));
            return;
        }
}

static void test_rows_are_cut_behind_each_end(void)
{
    weft_chain *chain = documents(3, NULL);
    int64_t i = 0;
    for (int64_t r = 0; r < RECORDS; r++)
        for (int64_t begin = 0, at = 1; at <= length_of(r); at++)
            if (token_of(r, at - 1) == END || at == length_of(r)) {
                check_document(chain, i++, r, begin, at);
                begin = at;
            }
    CHECK_EQ_INT(weft_chain_records(chain), i);
    weft_chain_close(&chain);
}

static void test_the_index_is_the_same_and_is_found_again(void)
{
    weft_chain *one = documents(1, NULL), *four = documents(4, folder);
    const weft_hash first = weft_chain_digest(one), made = weft_chain_digest(four);
    const int before = atomic_load(&n_read);
    weft_chain *again = documents(2, folder);
    const weft_hash found = weft_chain_digest(again);
    CHECK_EQ_INT(atomic_load(&n_read), before);
    CHECK(weft_hash_equal(&first, &made) && weft_hash_equal(&first, &found));
    CHECK_TEXT(weft_chain_facts(again), "then split behind 3, index ");
    weft_chain_close(&one), weft_chain_close(&four), weft_chain_close(&again);
}

static void test_what_is_split_is_packed(void)
{
    weft_chain *chain = documents(2, NULL);
    weft_error error = {0};
    int32_t tokens[64], segments[64];
    int64_t n_tokens = 0, n_ends = 0, n_own = 0;
    if (!CHECK_OK(weft_chain_pack(&chain, &(weft_pack_options){.seq = 64, .end = -1}, &error),
                  error))
        return;
    for (int64_t w = 0; w < weft_chain_records(chain); w++) {
        CHECK_OK(weft_chain_read(chain, w, 1, 0, tokens, sizeof tokens, &error), error);
        CHECK_OK(weft_chain_read(chain, w, 1, 2, segments, sizeof segments, &error), error);
        for (int i = 0; i < 64 && segments[i] > 0; i++) {
            n_tokens++, n_ends += tokens[i] == END;
            if (tokens[i] == END && i + 1 < 64) CHECK(segments[i + 1] != segments[i]);
        }
    }
    for (int64_t r = 0; r < RECORDS; n_tokens -= length_of(r++))
        for (int64_t i = 0; i < length_of(r); i++)
            n_own += token_of(r, i) == END;
    CHECK(n_tokens == 0 && n_ends == n_own);
    weft_chain_close(&chain);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    weft_error shuffled = {0}, below = {0}, error = {0};
    weft_chain *chain = rows();
    CHECK_EQ_INT(weft_chain_split(&chain, &(weft_split_options){.token = -1}, &below), WEFT_USAGE);
    CHECK_TEXT(below.message, "token");
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    CHECK_EQ_INT(weft_chain_split(&chain, &(weft_split_options){.token = 1}, &shuffled),
                 WEFT_USAGE);
    CHECK_TEXT(shuffled.message, "passes of the chain differ by its shuffle");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("split")) return weft_test_report();
    RUN(test_rows_are_cut_behind_each_end);
    RUN(test_the_index_is_the_same_and_is_found_again);
    RUN(test_what_is_split_is_packed);
    RUN(test_what_cannot_be_is_one_sentence);
    own_folder_close();
    return weft_test_report();
}
