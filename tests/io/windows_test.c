/* windows_test: text of records as windows has the bytes of the joined text, of any format; frozen passes stay; what a chain says leaves
 * nothing out; records are read without a program. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "chain.h"
#include "facts.h"

#include "own_folder.h"
#include "test.h"

enum { SEQ = 7, RECORDS = 60, LONGEST = 40 };

static char joined[RECORDS * (LONGEST + 1)];
static char texts[RECORDS][LONGEST + 1];

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Some of them empty. */
static void make_texts(void)
{
    size_t used = 0;
    for (int i = 0; i < RECORDS; i++) {
        const int n = i * 37 % 11 == 0 ? 0 : i * 7919 % LONGEST;
        for (int k = 0; k < n; k++)
            texts[i][k] = (char)('a' + (i * 31 + k * k) % 26);
        used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", i > 0 ? "\n" : "",
                                 texts[i]);
    }
}

static void write_records(void)
{
    FILE *jsonl = fopen(path_of("t.jsonl"), "w"), *csv = fopen(path_of("t.csv"), "w");
    if (!CHECK(jsonl != NULL && csv != NULL)) return;
    fputs("number,body\n", csv);
    for (int i = 0; i < RECORDS; i++) {
        fprintf(jsonl, "{\"id\": %d, \"text\": \"%s\"}\n", i, texts[i]);
        fprintf(csv, "%d,\"%s\"\n", i, texts[i]);
    }
    CHECK(fclose(jsonl) == 0 && fclose(csv) == 0);
}

static weft_chain *open_text(const char *name, const char *field)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    const weft_text_options o = {.seq = SEQ, .field = field};
    CHECK_OK(weft_chain_text(path_of(name), &o, &chain, &error), error);
    return chain;
}

/* In bytes, and as an input of i32 has them, in pieces too. */
static void check_windows(weft_chain *chain, const char *text)
{
    const int64_t n = ((int64_t)strlen(text) - 1) / SEQ;
    weft_error error = {0};
    if (!CHECK(chain != NULL) || !CHECK_EQ_INT(weft_chain_records(chain), n)) return;
    char *scratch = calloc(1, chain->found.scratch_bytes + 64);
    for (int64_t i = 0; i < n + 2; i++) {
        const char *at = text + i % n * SEQ;
        unsigned char bytes[2][SEQ] = {{0}};
        int32_t words[SEQ];
        const weft_want wants[] = {{1, WEFT_U8, 0, SEQ, bytes[1]},
                                   {0, WEFT_U8, 2, SEQ, bytes[0] + 2},
                                   {0, WEFT_U8, 0, 2, bytes[0]},
                                   {1, WEFT_I32, 1, SEQ, words + 1}};
        CHECK_OK(weft_chain_ask(chain, i, wants, 4, scratch, &error), error);
        CHECK(memcmp(bytes[0], at, SEQ) == 0 && memcmp(bytes[1], at + 1, SEQ) == 0);
        for (int k = 1; k < SEQ; k++)
            CHECK_EQ_INT(words[k], at[1 + k]);
    }
    free(scratch);
    weft_chain_close(&chain);
}

static void test_texts_of_records_are_joined(void)
{
    check_windows(open_text("t.jsonl", NULL), joined);
    check_windows(open_text("t.jsonl", "text"), joined);
    check_windows(open_text("t.csv", NULL), joined);
}

static void test_files_of_a_pattern_are_joined_in_the_order_of_their_names(void)
{
    char all[4 * sizeof joined];
    gzFile packed = gzopen(path_of("b3.txt.gz"), "wb");
    CHECK(packed != NULL && gzwrite(packed, joined, (unsigned)strlen(joined)) > 0 &&
          gzclose(packed) == Z_OK);
    write_text("b10.txt", "the first of all by its name");
    write_text("b2.txt", "x");
    snprintf(all, sizeof all, "the first of all by its name\nx\n%s", joined);
    check_windows(open_text("b*.txt*", NULL), all);
    check_windows(open_text("b3.txt.gz", NULL), joined);
    check_windows(open_text("b10.txt", NULL), "the first of all by its name");
}

static void check_refused(const char *name, const weft_text_options *o, weft_status status,
                          const char *fact, const char *other)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_EQ_INT(weft_chain_text(path_of(name), o, &chain, &error), status);
    CHECK_TEXT(error.message, fact);
    CHECK_TEXT(error.message, other);
    CHECK(chain == NULL && strchr(error.message, '\n') == NULL);
}

static void test_what_has_no_text_is_one_sentence(void)
{
    const weft_text_options seq = {.seq = SEQ}, id = {.seq = SEQ, .field = "id"},
                            near = {.seq = SEQ, .field = "txet"}, none = {.seq = 0},
                            large = {.seq = 1 << 20};
    write_text("numbers.csv", "a,b\n1,2\n3,4\n");
    write_text("two.csv", "a,b,c\nx,y,1\nz,w,2\n");
    check_refused("t.jsonl", &id, WEFT_USAGE, "t.jsonl", "id is i64 of 0 dims, and no text");
    check_refused("t.jsonl", &near, WEFT_USAGE, "no field txet", "did you mean text?");
    check_refused("numbers.csv", &seq, WEFT_USAGE, "no field with a text", "a, i64");
    check_refused("two.csv", &seq, WEFT_USAGE, "2 fields with texts", "a, b");
    check_refused("t.jsonl", &none, WEFT_USAGE, "seq 0", "1 to 2^40");
    check_refused("t.jsonl", &large, WEFT_USAGE, "60 records", "needs 1048577");
    check_refused("c*.txt", &seq, WEFT_IO, "c*.txt", "no file is called so");
    check_refused("b11.txt", &seq, WEFT_IO, "No such file", "as b10.txt");
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_EQ_INT(weft_chain_open(path_of("t.csv"), &(weft_open_options){.rows = 4, .columns = 4},
                                 &chain, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "no images that could be scaled to 4 x 4: it is csv");
    CHECK(chain == NULL);
    check_refused("", &seq, WEFT_IO, "not a regular file", "/*.txt'");
}

/* ---- frozen passes --------------------------------------------------------------------------------- */

static void test_what_is_taken_of_a_frozen_order_stays_apart(void)
{
    weft_error error = {0};
    weft_chain *parts[2];
    int seen[2][RECORDS] = {{0}};
    for (int p = 0; p < 2; p++) {
        CHECK_OK(weft_chain_open(path_of("t.jsonl"), &(weft_open_options){.fields = "id"},
                                 &parts[p], &error),
                 error);
        CHECK_OK(weft_chain_shuffle(&parts[p], 0, 3, &error), error);
        CHECK_OK(weft_chain_freeze(&parts[p], &error), error);
        CHECK_OK(weft_chain_take(&parts[p], p == 0 ? 0 : 45, p == 0 ? 45 : 15, &error), error);
        CHECK_OK(weft_chain_shuffle(&parts[p], 0, 9, &error), error);
        for (int64_t i = 0, n = weft_chain_records(parts[p]); i < 3 * n; i++) {
            int64_t id = -1;
            CHECK_OK(weft_chain_read(parts[p], i, 1, 0, &id, sizeof id, &error), error);
            if (CHECK(id >= 0 && id < RECORDS)) seen[p][id]++;
        }
        weft_chain_close(&parts[p]);
    }
    for (int i = 0; i < RECORDS; i++)
        CHECK(seen[0][i] + seen[1][i] == 3 && (seen[0][i] == 0 || seen[1][i] == 0));
}

/* ---- what is said ----------------------------------------------------------------------------------- */

/* So many files that what they say has no room; the last of them says `odd`. */
static char *facts_of_many(const char *odd)
{
    enum { MANY = 40 };
    weft_error error = {0};
    weft_chain *parts[MANY], *chain = NULL;
    for (int i = 0; i < MANY; i++) {
        write_text("one.txt", i == MANY - 1 ? odd : "some text");
        CHECK_OK(weft_chain_open(path_of("one.txt"), NULL, &parts[i], &error), error);
    }
    if (!CHECK_OK(weft_chain_concat(parts, MANY, &chain, &error), error)) return strdup("");
    char *facts = strdup(weft_chain_facts(chain));
    weft_dataset *data = NULL;
    CHECK_OK(weft_chain_dataset(&chain, NULL, &data, &error), error);
    CHECK(strcmp(weft_dataset_facts(data), facts) == 0);
    CHECK_OK(weft_dataset_fact(data, "words", "5000 (hash 0011223344556677)", &error), error);
    weft_dataset_close(&data);
    return facts;
}

static void test_facts_without_room_are_counted_and_hashed(void)
{
    char what[1024];
    const weft_facts_words words = {"was", "", "is ", ""};
    char *a = facts_of_many("some text"), *b = facts_of_many("other text"),
         *c = facts_of_many("some text");
    CHECK(strlen(a) < WEFT_FACTS_BYTES);
    CHECK_TEXT(a, "of these (hash ");
    CHECK(strcmp(a, c) == 0);
    CHECK(weft_facts_differ(a, b, &words, what, sizeof what));
    CHECK_TEXT(what, "more was ");
    CHECK_TEXT(what, "chain was ");
    free(a), free(b), free(c);
}

static void test_a_long_value_keeps_a_hash_of_all_of_it(void)
{
    char value[2000], first[300], second[300];
    memset(value, 'x', sizeof value - 1), value[sizeof value - 1] = '\0';
    weft_facts_shorten(value, first, sizeof first);
    value[sizeof value - 2] = 'y';
    weft_facts_shorten(value, second, sizeof second);
    CHECK_TEXT(first, "xxx... (1999 bytes, hash ");
    CHECK(strcmp(first, second) != 0 && strlen(first) < sizeof first);
    weft_facts_shorten("a; b", first, sizeof first);
    CHECK(strcmp(first, "a, b") == 0);
}

/* The same shares in other numbers are the same mixture; others are another. */
static void test_a_mixture_is_told_by_its_shares(void)
{
    static const double weights[3][3] = {{0.6, 0.3, 0.1}, {60, 30, 10}, {0.6, 0.3, 0.1000001}};
    weft_error error = {0};
    weft_hash hashes[3];
    for (int i = 0; i < 3; i++) {
        weft_chain *parts[3] = {NULL}, *chain = NULL;
        for (int k = 0; k < 3; k++)
            CHECK_OK(weft_chain_open(path_of("t.csv"), NULL, &parts[k], &error), error);
        if (!CHECK_OK(weft_chain_mix(parts, weights[i], 3, &chain, &error), error)) return;
        CHECK_TEXT(weft_chain_facts(chain), i < 2 ? "data: mix 0.6:0.3:0.1; "
                                                  : "data: mix 0.59999994:0.29999997:0.10000009");
        hashes[i] = weft_chain_digest(chain);
        weft_chain_close(&chain);
    }
    CHECK(weft_hash_equal(&hashes[0], &hashes[1]));
    CHECK(!weft_hash_equal(&hashes[0], &hashes[2]));
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static void test_records_are_read_one_behind_the_other(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    char all[RECORDS * LONGEST] = "", expected[RECORDS * LONGEST] = "";
    int64_t lengths[RECORDS], ids[RECORDS], n = 0;
    if (!CHECK_OK(weft_chain_open(path_of("t.jsonl"), NULL, &chain, &error), error)) return;
    const int id = weft_chain_field(chain, "id"), text = weft_chain_field(chain, "text");
    CHECK(weft_chain_is_ragged(chain, text) && !weft_chain_is_ragged(chain, id) &&
          !weft_chain_is_ragged(chain, 9) && !weft_chain_is_ragged(NULL, 0));
    CHECK(strcmp(weft_chain_format(chain), "jsonl") == 0);
    CHECK_OK(weft_chain_lengths(chain, 0, RECORDS, text, lengths, &error), error);
    CHECK_OK(weft_chain_read(chain, 0, RECORDS, id, ids, sizeof ids, &error), error);
    for (int i = 0; i < RECORDS; i++) {
        CHECK_EQ_INT(ids[i], i);
        CHECK_EQ_INT(lengths[i], strlen(texts[i]));
        strcpy(expected + n, texts[i]);
        n += lengths[i];
    }
    CHECK_OK(weft_chain_read(chain, 0, RECORDS, text, all, n, &error), error);
    CHECK(memcmp(all, expected, (size_t)n) == 0);
    CHECK_EQ_INT(weft_chain_read(chain, 0, RECORDS, text, all, n - 1, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "more than the");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("windows")) return weft_test_report();
    make_texts();
    write_records();
    RUN(test_texts_of_records_are_joined);
    RUN(test_files_of_a_pattern_are_joined_in_the_order_of_their_names);
    RUN(test_what_has_no_text_is_one_sentence);
    RUN(test_what_is_taken_of_a_frozen_order_stays_apart);
    RUN(test_facts_without_room_are_counted_and_hashed);
    RUN(test_a_long_value_keeps_a_hash_of_all_of_it);
    RUN(test_a_mixture_is_told_by_its_shares);
    RUN(test_records_are_read_one_behind_the_other);
    own_folder_close();
    return weft_test_report();
}
