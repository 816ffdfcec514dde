/* filter_test: the records that a function keeps, those of an oracle, in their order and each pass; with any threads; found again in a
 * folder without being asked; what a function fails with names the record.
 */
#include <stdlib.h>
#include <unistd.h>

#include "chain.h"

#include "own_folder.h"

enum { RECORDS = 3000, LONGEST = 30 };

static char path[256], index_folder[256];
static char texts[RECORDS][LONGEST + 1];
static atomic_int n_asked;

static void write_records(void)
{
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    for (int i = 0; i < RECORDS; i++) {
        const int n = i * 7919 % (LONGEST + 1);
        for (int k = 0; k < n; k++)
            texts[i][k] = (char)('a' + (i * 31 + k * k) % 26);
        fprintf(file, "{\"id\": %d, \"text\": \"%s\"}\n", i, texts[i]);
    }
    CHECK(fclose(file) == 0);
}

/* Long texts of numbers that 3 does not divide; *argument: a record that cannot be judged. */
static bool is_kept(int64_t id)
{
    return id % 3 != 0 && strlen(texts[id]) > 12;
}

static weft_status keep(const void *argument, int64_t i, const void *const *in,
                        const int64_t *counts, bool *stays, weft_error *error)
{
    const int64_t id = *(const int64_t *)in[0], *odd = argument;
    atomic_fetch_add(&n_asked, 1);
    CHECK(id == i && counts[0] == 1 && counts[1] == (int64_t)strlen(texts[id]));
    CHECK(memcmp(in[1], texts[id], (size_t)counts[1]) == 0);
    *stays = id % 3 != 0 && counts[1] > 12;
    if (odd != NULL && i >= *odd && *odd >= 0)
        return weft_fail(error, WEFT_USAGE, "its text rhymes with nothing");
    return odd != NULL && *odd < 0 && i >= -*odd ? WEFT_IO : WEFT_OK;
}

static weft_status keep_none(const void *argument, int64_t i, const void *const *in,
                             const int64_t *counts, bool *stays, weft_error *error)
{
    (void)argument, (void)i, (void)in, (void)counts, (void)stays, (void)error;
    return WEFT_OK;
}

static weft_chain *opened(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_OK(weft_chain_open(path, NULL, &chain, &error), error);
    return chain;
}

static weft_chain *filtered(int n_threads, const char *where)
{
    weft_error error = {0};
    weft_chain *chain = opened();
    const weft_filter_options o = {
        .name = "long", .function = keep, .folder = where, .n_threads = n_threads};
    if (chain) CHECK_OK(weft_chain_filter(&chain, &o, &error), error);
    return chain;
}

/* ---- what stays ------------------------------------------------------------------------------------- */

static void check_record(const weft_chain *chain, int64_t i, int64_t id)
{
    weft_error error = {0};
    int64_t found = -1, length = -1;
    char text[LONGEST];
    CHECK_OK(weft_chain_read(chain, i, 1, 0, &found, sizeof found, &error), error);
    CHECK_OK(weft_chain_lengths(chain, i, 1, 1, &length, &error), error);
    CHECK_OK(weft_chain_read(chain, i, 1, 1, text, sizeof text, &error), error);
    CHECK_EQ_INT(found, id);
    CHECK(length == (int64_t)strlen(texts[id]) && memcmp(text, texts[id], (size_t)length) == 0);
}

static void test_what_stays_is_what_the_function_keeps(void)
{
    weft_chain *chain = filtered(1, NULL);
    int64_t n = 0;
    for (int64_t id = 0; id < RECORDS; id++)
        if (is_kept(id)) check_record(chain, n++, id);
    CHECK_EQ_INT(weft_chain_records(chain), n);
    CHECK_EQ_INT(atomic_load(&n_asked), RECORDS);
    for (int64_t i = 0, id = 0; i < 20; i++, id++) {
        while (!is_kept(id))
            id++;
        check_record(chain, 5 * n + i, id); /* a later pass */
    }
    weft_chain_close(&chain);
}

static void test_a_shuffle_of_what_stays_has_each_once(void)
{
    static int seen[RECORDS];
    weft_error error = {0};
    weft_chain *chain = filtered(3, NULL);
    CHECK_OK(weft_chain_shuffle(&chain, 0, 5, &error), error);
    for (int64_t i = 0, id = 0; i < weft_chain_records(chain); i++) {
        CHECK_OK(weft_chain_read(chain, i, 1, 0, &id, sizeof id, &error), error);
        if (CHECK(id >= 0 && id < RECORDS)) seen[id]++;
    }
    for (int64_t id = 0; id < RECORDS; id++)
        CHECK_EQ_INT(seen[id], is_kept(id));
    weft_chain_close(&chain);
}

static weft_hash digest_of(weft_chain *chain)
{
    const weft_hash hash = weft_chain_digest(chain);
    CHECK_TEXT(weft_chain_facts(chain), "then filter long, index ");
    weft_chain_close(&chain);
    return hash;
}

static void test_it_does_not_depend_on_threads_and_is_found_again(void)
{
    const weft_hash first = digest_of(filtered(1, NULL));
    for (int n = 2; n < 6; n++) {
        const weft_hash many = digest_of(filtered(n, n == 5 ? index_folder : NULL));
        CHECK(weft_hash_equal(&first, &many));
    }
    const int before = atomic_load(&n_asked);
    const weft_hash found = digest_of(filtered(2, index_folder));
    CHECK(weft_hash_equal(&first, &found));
    CHECK_EQ_INT(atomic_load(&n_asked), before);
}

/* ---- what cannot be --------------------------------------------------------------------------------- */

static void test_a_function_that_fails_is_told_with_the_record(void)
{
    for (int n = 1; n < 5; n++) {
        int64_t odd = 1500;
        weft_error error = {0};
        weft_chain *chain = opened();
        weft_filter_options o = {"long", keep, &odd, NULL, n};
        CHECK_EQ_INT(weft_chain_filter(&chain, &o, &error), WEFT_USAGE);
        CHECK_TEXT(error.message, "its text rhymes with nothing (filter long, record 1500: ");
        odd = -1500;
        weft_error silent = {0};
        CHECK_EQ_INT(weft_chain_filter(&chain, &o, &silent), WEFT_IO);
        CHECK_TEXT(silent.message, "its function gave no reason (filter long, record 1500");
        o.argument = NULL;
        CHECK_OK(weft_chain_filter(&chain, &o, &error), error); /* it is as it was */
        weft_chain_close(&chain);
    }
}

static void check_refused(const weft_filter_options *o, const char *fact)
{
    weft_error error = {0};
    weft_chain *chain = opened();
    CHECK_EQ_INT(weft_chain_filter(&chain, o, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, fact);
    weft_chain_close(&chain);
}

static void test_what_cannot_be_is_one_sentence(void)
{
    weft_error error = {0};
    check_refused(&(weft_filter_options){.name = "none", .function = keep_none},
                  "none leaves none of 3000 records");
    check_refused(&(weft_filter_options){.name = "none"}, "function is NULL");
    check_refused(&(weft_filter_options){.function = keep_none}, "name is NULL");
    check_refused(&(weft_filter_options){.name = "none", .function = keep_none, .n_threads = 65},
                  "65");
    weft_chain *chain = opened();
    const weft_filter_options o = {.name = "long", .function = keep};
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    CHECK_EQ_INT(weft_chain_filter(&chain, &o, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "passes of the chain differ by its shuffle");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("filter")) return weft_test_report();
    snprintf(path, sizeof path, "%s", path_of("r.jsonl"));
    snprintf(index_folder, sizeof index_folder, "%s", path_of("index"));
    write_records();
    RUN(test_what_stays_is_what_the_function_keeps);
    RUN(test_a_shuffle_of_what_stays_has_each_once);
    RUN(test_it_does_not_depend_on_threads_and_is_found_again);
    RUN(test_a_function_that_fails_is_told_with_the_record);
    RUN(test_what_cannot_be_is_one_sentence);
    own_folder_close();
    return weft_test_report();
}
