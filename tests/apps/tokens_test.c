/* tokens_test: words of a text: as Hugging Face's tokenizers find them, as the definitions say, and the same bytes again; gpt over
 * words. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "token_cases.h"

#include "test.h"

enum { MOST = 3000 };

/* ---- as others find them -------------------------------------------------------------------- */

static void test_tokens_are_those_of_the_tokenizers_library(void)
{
    check_cases(WEFT_TEST_DATA "/reference/bpe");
}

/* ---- as the definitions say ------------------------------------------------------------------- */

/* A text of few different words, in which pairs meet often. */
static size_t random_text(uint64_t seed, unsigned char *text, size_t most)
{
    static const char letters[] = "aab bcd ";
    size_t n = 0;
    for (; n < most; n++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        text[n] = (unsigned char)letters[(seed >> 33) % (sizeof letters - 1)];
    }
    return n;
}

/* Pieces of such a text: letters with a space before them, or spaces up to it. */
static bool begins_piece(const unsigned char *text, size_t n, size_t at)
{
    const bool is_space = text[at] == ' ';
    if (at == 0) return true;
    if (!is_space) return false; /* the space before it begins one, or a letter goes on */
    return text[at - 1] != ' ' || (at + 1 < n && text[at + 1] != ' ');
}

typedef struct slow {
    int32_t ids[MOST];
    bool begins[MOST]; /* a piece */
    size_t n;
} slow;

static void spell(const bpe *b, const unsigned char *text, size_t n, slow *s)
{
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t length;
        s->ids[i] = 0;
        while (bpe_word(b, s->ids[i], &length)[0] != text[i] || length != 1)
            s->ids[i]++;
        s->begins[i] = begins_piece(text, n, i);
    }
}

static void join(slow *s, int32_t left, int32_t right, int32_t joined)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const bool is_pair =
            i + 1 < s->n && !s->begins[i + 1] && s->ids[i] == left && s->ids[i + 1] == right;
        s->begins[n] = s->begins[i];
        s->ids[n++] = is_pair ? joined : s->ids[i];
        i += is_pair;
    }
    s->n = n;
}

/* How often a pair stands in it. */
static int count(const slow *s, int32_t left, int32_t right)
{
    int found = 0;
    for (size_t i = 0; i + 1 < s->n; i++)
        found += !s->begins[i + 1] && s->ids[i] == left && s->ids[i + 1] == right;
    return found;
}

/* The pair that occurs most, of equals the one of lower ids; how often. */
static int most_counted(const slow *s, int32_t pair[2])
{
    int most = 0;
    for (size_t i = 0; i + 1 < s->n; i++) {
        if (s->begins[i + 1]) continue;
        const int32_t left = s->ids[i], right = s->ids[i + 1];
        const int found = count(s, left, right);
        const bool is_lower = left < pair[0] || (left == pair[0] && right < pair[1]);
        if (found < most || (found == most && !is_lower)) continue;
        most = found;
        pair[0] = left;
        pair[1] = right;
    }
    return most;
}

static void check_word(const bpe *b, int32_t id, const int32_t pair[2])
{
    size_t n, left, right;
    const unsigned char *word = bpe_word(b, id, &n), *x = bpe_word(b, pair[0], &left),
                        *y = bpe_word(b, pair[1], &right);
    if (CHECK_EQ_INT(n, left + right)) {
        CHECK(memcmp(word, x, left) == 0);
        CHECK(memcmp(word + left, y, right) == 0);
    }
}

/* Learned pair after pair, each counted in the whole text; then the same text's tokens are what is left of it. */
static void check_lesson(uint64_t seed, size_t n, int n_words)
{
    static slow s;
    unsigned char text[MOST];
    weft_error error = {.rank = -1};
    bpe *b = NULL;
    bpe_tokens tokens = {0};
    random_text(seed, text, n);
    if (!CHECK_OK(bpe_train(text, n, n_words, &b, &error), error)) return;
    spell(b, text, n, &s);
    for (int32_t id = 256; id < bpe_n_words(b) - 1; id++) {
        int32_t pair[2] = {0};
        CHECK(most_counted(&s, pair) >= 2);
        check_word(b, id, pair);
        join(&s, pair[0], pair[1], id);
    }
    if (encode(b, text, n, &tokens) && CHECK_EQ_INT(tokens.n, s.n))
        for (size_t i = 0; i < s.n; i++)
            CHECK_EQ_INT(tokens.ids[i], s.ids[i]);
    free(tokens.ids);
    bpe_close(&b);
}

static void test_words_are_the_pairs_that_occur_most(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        check_lesson(seed, 60 * seed, 256 + 12);
    check_lesson(9, 1500, 256 + 40);
}

/* Where no pair occurs twice nothing is learned any more. */
static void test_few_words_of_a_short_text(void)
{
    weft_error error = {.rank = -1};
    bpe *b = NULL;
    if (CHECK_OK(bpe_train((const unsigned char *)"ab ab", 5, 400, &b, &error), error))
        CHECK_EQ_INT(bpe_n_words(b), 258); /* bytes, ab, the end */
    bpe_close(&b);
}

/* ---- any bytes -------------------------------------------------------------------------------- */

static void test_any_bytes_come_back(void)
{
    static unsigned char bytes[200000];
    bpe *b = NULL;
    bpe_tokens tokens = {0};
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(seed >> 56);
    }
    memset(bytes + 50000, 'a', 70000); /* one piece, longer than a part of the text */
    memset(bytes + 150000, ' ', 30000);
    if (open_words(WEFT_TEST_DATA "/reference/bpe", &b) && encode(b, bytes, sizeof bytes, &tokens))
        check_same_bytes(b, &tokens, bytes, sizeof bytes);
    free(tokens.ids);
    bpe_close(&b);
}

static void test_halves_of_a_text_give_its_tokens(void)
{
    unsigned char text[MOST];
    bpe *b = NULL;
    bpe_tokens whole = {0}, halves = {0};
    const size_t n = random_text(3, text, sizeof text), cut = bpe_cut(text, n / 2);
    CHECK(cut > 0);
    CHECK(cut <= n / 2);
    if (open_words(WEFT_TEST_DATA "/reference/bpe", &b) && encode(b, text, n, &whole) &&
        encode(b, text, cut, &halves) && encode(b, text + cut, n - cut, &halves) &&
        CHECK_EQ_INT(halves.n, whole.n))
        CHECK(memcmp(halves.ids, whole.ids, whole.n * sizeof *whole.ids) == 0);
    CHECK_EQ_INT(bpe_cut((const unsigned char *)"abc", 3), 0);
    free(whole.ids);
    free(halves.ids);
    bpe_close(&b);
}

/* ---- the commands ----------------------------------------------------------------------------- */

static void test_a_text_is_encoded_and_decoded(void)
{
    const command_result r =
        run_in_folder("weft tokens train text.txt words --words 300 && weft tokens encode text.txt "
                      "text.tokens --tokens words && weft tokens decode text.tokens --tokens words "
                      "| cmp - text.txt && ls words");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "words: 300 words");
    CHECK_TEXT(r.text, "tokens of 300 words, for 8000 bytes");
    CHECK_TEXT(r.text, "merges.txt\nvocab.json");
}

/* Words that files beside a vocabulary tell of: one with a blank, one beyond ASCII, one that begins as another does. */
static void make_special_words(void)
{
    CHECK_EQ_INT(
        run_in_folder(
            "rm -rf more; cp -r words more; printf '{\"added_tokens\": [{\"id\": 300, \"content\": "
            "\"<|im start|>\"}, {\"id\": 302, \"content\": \"<\303\251>\"}, {\"id\": 299, "
            "\"content\": \"<|endoftext|>\"}]}' > more/tokenizer.json; printf "
            "'{\"<|endoftext|>>\": 301}' > more/added_tokens.json; printf 'the "
            "quick<|endoftext|>brown<|endoftext|>> <|im start|>fox <\303\251> é' > special.txt")
            .status,
        0);
}

static void test_special_words_are_one_token_each_where_they_shall_be(void)
{
    bpe *b = NULL;
    char path[1024];
    static const char text[] = "x<|endoftext|>>y<|im start|>";
    size_t at;
    make_special_words();
    snprintf(path, sizeof path, "%s/more", folder);
    if (open_words(path, &b)) {
        CHECK_EQ_INT(bpe_n_words(b), 303);
        CHECK_EQ_INT(bpe_find_special(b, (const unsigned char *)text, strlen(text), &at), 301);
        CHECK_EQ_INT(at, 1); /* the longer of two */
        CHECK_EQ_INT(bpe_find_special(b, (const unsigned char *)text + 2, strlen(text) - 2, &at),
                     300);
        CHECK_EQ_INT(bpe_find_special(b, (const unsigned char *)"<|endoftext", 11, &at), -1);
        CHECK_EQ_INT(at, 11);
    }
    bpe_close(&b);
    command_result r = run_in_folder("weft tokens encode special.txt special.tokens --tokens more "
                                     "--special && weft tokens decode "
                                     "special.tokens --tokens more | cmp - special.txt && od -An "
                                     "-v -tu2 -j1024 special.tokens | "
                                     "tr -s ' ' '\\n' | grep -c -x -E '299|300|301|302'");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text,
               "special.txt has 4 special words, the first <|endoftext|>: each is one token\n4");
    r = run_in_folder(
        "weft tokens encode special.txt plain.tokens --tokens more && weft tokens decode "
        "plain.tokens --tokens more | cmp - special.txt && od -An -v -tu2 -j1024 "
        "plain.tokens | tr -s ' ' '\\n' | grep -c -x -E '299|300|301|302'");
    CHECK_TEXT(r.text, "taken as text; --special makes one token of each\n0");
    r = run_in_folder("weft tokens encode text.txt none.tokens --tokens more --special");
    CHECK(strstr(r.text, "special word") == NULL);
}

/* Parts between special words are encoded as if each were a text of its own. */
static void test_special_words_part_a_text(void)
{
    const command_result r = run_in_folder(
        "printf 'the quick' > a; printf ' brown fox' > b; printf 'the quick<|endoftext|> brown "
        "fox' > "
        "ab; for f in a b ab; do weft tokens encode $f $f.t --tokens words --special >/dev/null; "
        "tail -c "
        "+1025 $f.t > $f.ids; done; (cat a.ids; printf '\\053\\001'; cat b.ids) | cmp - ab.ids");
    CHECK_EQ_INT(r.status, 0);
}

#define GPT                                                                                        \
    "gpt train --data text.tokens --tokens words --layers 1 --width 24 --heads 3 --batch 6 --seq " \
    "12 --steps 6 --dtype f64 --quiet "

static void losses_of(const char *launcher, const char *more, double *losses)
{
    char line[TEXT], metrics[1024];
    snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", folder);
    snprintf(line, sizeof line,
             "rm -f metrics.jsonl; %s %s/" GPT "--metrics metrics.jsonl --fresh %s", launcher,
             WEFT_TEST_BIN, more);
    const command_result r = run_in_folder(line);
    if (!CHECK_EQ_INT(r.status, 0)) fputs(r.text, stderr);
    CHECK_EQ_INT(text_folder_losses(metrics, losses, 6), 6);
}

static void test_gpt_learns_words_under_any_layout(void)
{
    double alone[6] = {0}, split[6] = {0};
    losses_of("", "", alone);
    CHECK_CLOSE(alone[0], log(300.0), 0.1); /* it knows nothing of 300 words */
    CHECK(alone[5] < alone[0]);
    losses_of("", "--mesh data:2,model:2 --layout batch:data,vocab:model,hidden:model", split);
    for (int i = 0; i < 6; i++)
        CHECK_CLOSE(split[i], alone[i], 1e-10);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    losses_of(WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--mesh model:2 --layout vocab:model",
              split);
    for (int i = 0; i < 6; i++)
        CHECK_CLOSE(split[i], alone[i], 1e-10);
}

static void test_gpt_writes_words(void)
{
    const command_result r = run_in_folder("gpt sample --sample 5 --prompt 'the quick'");
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "the quick");
    CHECK(strlen(r.text) > strlen("the quick\n") + 5 - 1);
}

static void test_wrong_files_are_refused(void)
{
    check_refused("gpt train --tokens nowhere --dry-run", "nowhere/vocab.json");
    check_refused("gpt train --tokens words", "weft tokens encode");
    check_refused("gpt train --tokens words --data text.txt", /* a text is encoded as it is read */
                  "has learned from other data");
    check_refused("head -c 2000 text.tokens > short.tokens; gpt train --tokens words --data "
                  "short.tokens",
                  "it has not as many as it says");
    check_refused("weft tokens train text.txt few --words 260; gpt train --tokens few --data "
                  "text.tokens --steps 9 --run few.run --seq 8",
                  "and there are 260 words");
    check_refused("weft tokens decode text.tokens --tokens few", "and there are 260 words");
    check_refused("weft tokens decode text.txt --tokens few", "no file of tokens: it is text");
    check_refused("weft tokens decode short.tokens --tokens words", "bytes, and it has 2000;");
    check_refused("weft tokens encode text.txt x", "give --tokens DIR");
    check_refused("weft tokens encode text.txt ./text.txt --tokens words", "is the text itself");
    check_refused("weft tokens trian text.txt x", "did you mean train?");
    check_refused("weft tokens train text.txt", "wants TEXT DIR");
    check_refused("weft tokens train text.txt x --words 70000",
                  "--words 70000: words must be from 257 to 65536\n");
    check_refused("weft tokens train text.txt x --words 10", "from 257 to 65536\n");
    check_refused("weft tokens train nowhere.txt x",
                  "nowhere.txt: No such file or directory; name a file");
    check_refused("weft tokens train text.txt no/where",
                  "cannot write no/where: No such file or directory; name a place");
    check_refused("weft tokens encode text.txt /dev/full/x --tokens words",
                  "cannot write /dev/full/x: Not a directory; name a place");
    check_refused(": > empty.txt; weft tokens train empty.txt x", "is empty");
}

static void test_wrong_vocabularies_are_refused(void)
{
#define TRY(edit)                                                                                  \
    "rm -rf bad; cp -r words bad; " edit "; weft tokens decode text.tokens --tokens bad"
    check_refused(TRY("echo '{' > bad/vocab.json"), "bad/vocab.json:2:0: this is no JSON");
    check_refused(TRY("echo '{\"a\":0}' > bad/vocab.json"), "has 1 words");
    check_refused(TRY("sed -i 's/\"a\":/\"aa\":/' bad/vocab.json"), "no word for the byte 97");
    check_refused(TRY("sed -i 's/:299/:7/' bad/vocab.json"), "no id of its own");
    check_refused(TRY("sed -i 's/\"!\"/\"\\\\u4e00\"/' bad/vocab.json"), "no word of bytes");
    check_refused(TRY("echo 'x qqq' >> bad/merges.txt"), "bad/merges.txt, line 45: \"x qqq\"");
    check_refused(TRY("head -n 20 words/merges.txt > bad/merges.txt"),
                  "has 19 pairs, which make 19 of the 43 words that bad/vocab.json has beside 256 "
                  "bytes and 1 special ones");
    check_refused(TRY("sed -i '$d' bad/merges.txt"), "make 42 of the 43 words");
    check_refused(TRY(": > bad/merges.txt"), "has 0 pairs, which make 0 of the 43");
    check_refused(TRY("echo '{\"added_tokens\": [{\"id\": 7, \"content\": \"<x>\"}]}' > "
                      "bad/tokenizer.json"),
                  "\"<x>\" is the word 7, which is another");
    check_refused(TRY("echo '{\"<x>\": 400}' > bad/added_tokens.json"), "which is not the next");
    check_refused(TRY("rm bad/merges.txt"), "bad/merges.txt: No such file or directory; a voc");
#undef TRY
}

int main(void)
{
    if (!text_folder_open("/tmp", "tokens")) return 1;
    RUN(test_tokens_are_those_of_the_tokenizers_library);
    RUN(test_words_are_the_pairs_that_occur_most);
    RUN(test_few_words_of_a_short_text);
    RUN(test_any_bytes_come_back);
    RUN(test_halves_of_a_text_give_its_tokens);
    RUN(test_a_text_is_encoded_and_decoded);
    RUN(test_special_words_are_one_token_each_where_they_shall_be);
    RUN(test_special_words_part_a_text);
    RUN(test_gpt_learns_words_under_any_layout);
    RUN(test_gpt_writes_words);
    RUN(test_wrong_files_are_refused);
    RUN(test_wrong_vocabularies_are_refused);
    text_folder_close();
    return weft_test_report();
}
