/* files: a vocabulary as GPT-2 keeps it, read; save.c writes it. A byte that cannot be seen is written as a letter behind Latin-1,
 * so both files are text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../text.h"
#include "vocabulary.h"

enum { MAX_PATH = 4096, MOST_LETTERS = 512 /* what a letter's number is below */ };

/* What its files are called: today, and first; and all in one. */
static const char *const names[][2] = {
    {"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}, {BPE_TOKENIZER, BPE_TOKENIZER}};
enum { N_NAMES = sizeof names / sizeof *names, IN_ONE = N_NAMES - 1 };

/* ---- letters and bytes ------------------------------------------------------------------------ */

/* One of these letters, as UTF-8, at most two bytes; -1: it is another. returns how long it was. */
static int letter_at(const char *text, uint32_t *letter)
{
    const unsigned char a = (unsigned char)text[0], b = a ? (unsigned char)text[1] : 0;
    *letter = a < 0x80 ? a : (a & 0x1fu) << 6 | (b & 0x3fu);
    if (a < 0x80) return 1;
    return a >= 0xc2 && a < 0xe0 && (b & 0xc0) == 0x80 ? 2 : -1;
}

static int16_t byte_of_letter[MOST_LETTERS]; /* -1: no byte is written so */

static void know_letters(void)
{
    uint32_t letters[256];
    bpe_letters(letters);
    memset(byte_of_letter, -1, sizeof byte_of_letter);
    for (int c = 0; c < 256; c++)
        byte_of_letter[letters[c]] = (int16_t)c;
}

/* The bytes of a word of n letters; -1: it has a letter that stands for none. to: as long as the text */
static int64_t bytes_of_word(const char *text, size_t n, unsigned char *to)
{
    int64_t bytes = 0;
    for (size_t at = 0; at < n;) {
        uint32_t letter;
        const int length = letter_at(text + at, &letter);
        if (length < 0 || letter >= MOST_LETTERS || byte_of_letter[letter] < 0) return -1;
        to[bytes++] = (unsigned char)byte_of_letter[letter];
        at += (size_t)length;
    }
    return bytes;
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* A vocabulary being read. */
typedef struct reading {
    bpe *b;
    char words[MAX_PATH], pairs[MAX_PATH]; /* paths */
    json_t *all;                           /* {word: id} */
    app_text lines;                        /* a pair each */
    const char *place;                     /* what the number of a pair is of: "line" */
    told_words told;                       /* special words, by what other files say */
    string_table made;                     /* by pairs, as they are written */
    size_t n_lost;                         /* words that neither a pair makes nor are special */
    const char *lost;                      /* the first of them */
} reading;

static bool is_told(const reading *r, const void *text, size_t n)
{
    return table_find(&r->told.names, text, n) >= 0;
}

/* Special words are written as they are. */
static bool is_written_plainly(const reading *r, const char *text)
{
    const size_t n = strlen(text);
    return is_told(r, text, n) || (table_find(&r->made, text, n) < 0 && bpe_looks_special(text));
}

enum { NO_MEMORY = -1, IS_THERE = -2 };

static int64_t add_bytes(bpe *b, const unsigned char *bytes, size_t n, bool is_special)
{
    const size_t known = b->words.n;
    const int64_t id = table_add(&b->words, bytes, n);
    if (id < 0) return NO_MEMORY;
    if (b->words.n == known) return IS_THERE;
    if (n == 1) b->of_byte[bytes[0]] = (int32_t)id;
    return !is_special || bpe_mark_special(b, (int32_t)id) ? id : NO_MEMORY;
}

static void count_lost(reading *r, const char *text)
{
    if (table_find(&r->made, text, strlen(text)) >= 0) return;
    if (r->n_lost++ == 0) r->lost = text;
}

/* bytes: room for the text's */
static weft_status take_word(reading *r, const char *text, unsigned char *bytes, weft_error *error)
{
    const size_t n = strlen(text);
    const bool is_plain = is_written_plainly(r, text);
    const int64_t length = is_plain ? (int64_t)n : bytes_of_word(text, n, bytes);
    if (is_plain) memcpy(bytes, text, n);
    if (length <= 0)
        return weft_fail(error, WEFT_IO,
                         "%.240s: \"%.60s\" is no word of bytes as GPT-2 writes them, and no file "
                         "beside it says that it is a special one",
                         r->words, text);
    const bool is_special = is_plain || is_told(r, bytes, (size_t)length);
    const int64_t id = add_bytes(r->b, bytes, (size_t)length, is_special);
    if (id == NO_MEMORY) return weft_fail_memory(error, n);
    if (id == IS_THERE)
        return weft_fail(error, WEFT_IO, "%.240s: \"%.60s\" is there twice; a word has one id",
                         r->words, text);
    if (length > 1 && !is_special) count_lost(r, text);
    return WEFT_OK;
}

static weft_status add_word(reading *r, const char *text, weft_error *error)
{
    unsigned char *bytes = malloc(strlen(text) + 1);
    if (!bytes) return weft_fail_memory(error, strlen(text));
    const weft_status status = take_word(r, text, bytes, error);
    free(bytes);
    return status;
}

/* Words by their ids: all of 0 .. n - 1. To be freed. */
static weft_status sort_words(json_t *all, const char *path, const char ***by_id, weft_error *error)
{
    const char *word;
    json_t *value;
    const size_t n = json_object_size(all);
    const char **sorted = *by_id = calloc(n + 1, sizeof *sorted);
    if (!sorted) return weft_fail_memory(error, n * sizeof *sorted);
    json_object_foreach(all, word, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= (json_int_t)n || sorted[id])
            return weft_fail(error, WEFT_IO,
                             "%s: \"%.60s\" has no id of its own from 0 to %zu, as many as there "
                             "are words",
                             path, word, n - 1);
        sorted[id] = word;
    }
    return WEFT_OK;
}

static weft_status check_words(const bpe *b, const char *path, weft_error *error)
{
    for (int c = 0; c < 256; c++)
        if (b->of_byte[c] < 0)
            return weft_fail(error, WEFT_IO,
                             "%s has no word for the byte %d alone; a vocabulary of bytes has all "
                             "256",
                             path, c);
    return WEFT_OK;
}

static weft_status check_made(const reading *r, size_t n_words, weft_error *error)
{
    const size_t n_special = r->b->n_specials, n_wanted = n_words - 256 - n_special;
    if (r->n_lost == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.120s has %zu pairs, which make %zu of the %zu words that %.120s has beside "
                     "256 bytes and %zu special ones, and not \"%.40s\"; it is cut off, or another "
                     "vocabulary's: get both again, with tokenizer.json if it is special",
                     r->pairs, r->made.n, n_wanted - r->n_lost, n_wanted, r->words, n_special,
                     r->lost);
}

static weft_status take_words(reading *r, weft_error *error)
{
    const char **by_id = NULL;
    json_t *all = r->all;
    const size_t n = json_object_size(all);
    weft_status status = WEFT_OK;
    if (!json_is_object(all) || n < 256 || n > BPE_MOST_WORDS)
        return weft_fail(error, WEFT_IO,
                         "%s has %zu words by their ids; a vocabulary has 256, for the bytes, to "
                         "%d",
                         r->words, n, BPE_MOST_WORDS);
    memset(r->b->of_byte, -1, sizeof r->b->of_byte);
    status = sort_words(all, r->words, &by_id, error);
    for (size_t i = 0; status == WEFT_OK && i < n; i++)
        status = add_word(r, by_id[i], error);
    free(by_id);
    if (status == WEFT_OK) status = check_words(r->b, r->words, error);
    return status == WEFT_OK ? check_made(r, n, error) : status;
}

static weft_status fail_opening(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO,
                     "cannot read %.300s: %s; a vocabulary is a folder with %s and %s, as weft "
                     "tokens train makes one, or with %s",
                     path, strerror(errno), names[0][0], names[0][1], BPE_TOKENIZER);
}

/* ---- special words ----------------------------------------------------------------------------- */

/* One that is told with an id: that of a word that is there, or the next. */
static weft_status add_told(reading *r, size_t i, weft_error *error)
{
    const byte_string *s = &r->told.names.strings[i];
    const unsigned char *text = r->told.names.bytes + s->at;
    const int64_t wanted = r->told.ids[i], there = table_find(&r->b->words, text, s->n);
    const int64_t id = there < 0 && wanted == bpe_n_words(r->b) && wanted < BPE_MOST_WORDS
                           ? table_add(&r->b->words, text, s->n)
                           : there;
    if (id < 0 && wanted < 0) return WEFT_OK; /* a name, of no word */
    if (id >= 0 && (wanted < 0 || wanted == id))
        return bpe_mark_special(r->b, (int32_t)id) ? WEFT_OK : weft_fail_memory(error, s->n);
    return weft_fail(
        error, WEFT_USAGE,
        "%.240s has %d words, and a file beside it says that \"%.*s\" is the word %lld, "
        "which %s; get all files of the vocabulary again",
        r->words, bpe_n_words(r->b), (int)(s->n < 60 ? s->n : 60), (const char *)text,
        (long long)wanted, wanted < bpe_n_words(r->b) ? "is another" : "is not the next");
}

/* In the order of their ids. */
static int by_id(const void *a, const void *b, void *ids)
{
    const int64_t *id = ids, x = id[*(const size_t *)a], y = id[*(const size_t *)b];
    return (x > y) - (x < y);
}

static weft_status add_all_told(reading *r, weft_error *error)
{
    const size_t n = r->told.names.n;
    weft_status status = WEFT_OK;
    size_t *order = calloc(n + 1, sizeof *order);
    if (!order) return weft_fail_memory(error, n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, by_id, r->told.ids);
    for (size_t i = 0; status == WEFT_OK && i < n; i++)
        status = add_told(r, order[i], error);
    free(order);
    return status;
}

/* ---- pairs ------------------------------------------------------------------------------------- */

/* The gap of a line "left right"; NULL: it has no pair, and need not have one. */
static char *gap_of(char *line, int number)
{
    if (*line == '\0' || (number == 1 && strncmp(line, "#version", 8) == 0)) return NULL;
    char *gap = strchr(line, ' ');
    return gap ? gap : line + strlen(line);
}

/* Which words pairs make, before the words are read. */
static weft_status list_made(reading *r, app_text *text, weft_error *error)
{
    char *at = NULL, *line;
    for (int number = 1; (line = app_text_line(text, &at)) != NULL; number++) {
        char *gap = gap_of(line, number);
        if (!gap || !*gap) continue;
        const size_t left = (size_t)(gap - line), right = strlen(gap + 1);
        char *made = malloc(left + right + 1);
        if (made) memcpy(mempcpy(made, line, left), gap + 1, right);
        const bool is_good = made && table_add(&r->made, made, left + right) >= 0;
        free(made);
        if (!is_good) return weft_fail_memory(error, left + right);
    }
    return WEFT_OK;
}

/* One word of a pair; -1: there is no such word, -2: no memory. */
static int64_t find_word(const bpe *b, const char *text, size_t n)
{
    unsigned char *bytes = malloc(n + 1);
    if (!bytes) return -2;
    const int64_t length = bytes_of_word(text, n, bytes);
    const int64_t id = length > 0 ? table_find(&b->words, bytes, (size_t)length) : -1;
    free(bytes);
    return id;
}

static weft_status read_pair(reading *r, int number, char *line, weft_error *error)
{
    bpe *b = r->b;
    char *gap = gap_of(line, number);
    const int n_words = bpe_n_words(b);
    if (!gap) return WEFT_OK;
    const int64_t left = *gap ? find_word(b, line, (size_t)(gap - line)) : -1;
    const int64_t right = *gap ? find_word(b, gap + 1, strlen(gap + 1)) : -1;
    if (left == -2 || right == -2) return weft_fail_memory(error, strlen(line));
    if (left >= 0 && right >= 0) {
        const int32_t joined = bpe_join(b, (int32_t)left, (int32_t)right);
        if (joined < 0) return weft_fail_memory(error, 0);
        if (joined < n_words) return WEFT_OK;
    }
    return weft_fail(
        error, WEFT_IO,
        "%.240s, %s %d: \"%.60s\" is no pair of words of the vocabulary that makes one of "
        "it",
        r->pairs, r->place, number, line);
}

static weft_status read_pairs(reading *r, app_text *text, weft_error *error)
{
    char *at = NULL, *line;
    weft_status status = WEFT_OK;
    for (int number = 1; status == WEFT_OK && (line = app_text_line(text, &at)) != NULL; number++)
        status = read_pair(r, number, line, error);
    return status;
}

/* ---- all --------------------------------------------------------------------------------------- */

static weft_status read_with(reading *r, const char *folder, weft_error *error)
{
    app_text lines = {.bytes = malloc(r->lines.n + 1),
                      .n = r->lines.n}; /* reading them cuts them */
    if (!lines.bytes) return weft_fail_memory(error, lines.n);
    memcpy(lines.bytes, r->lines.bytes, lines.n + 1);
    weft_status status = list_made(r, &lines, error);
    free(lines.bytes);
    if (status == WEFT_OK) status = told_read(folder, &r->told, error);
    if (status == WEFT_OK) status = take_words(r, error);
    if (status == WEFT_OK) status = add_all_told(r, error);
    return status == WEFT_OK ? read_pairs(r, &r->lines, error) : status;
}

static weft_status read_files(reading *r, int as, weft_error *error)
{
    if (as == IN_ONE) return bpe_tokenizer_read(r->words, &r->all, &r->lines, error);
    if (access(r->words, F_OK) != 0) return fail_opening(r->words, error);
    if (access(r->pairs, F_OK) != 0) return fail_opening(r->pairs, error);
    WEFT_TRY(app_text_read(r->pairs, "vocabulary", WEFT_FILE_LINES, &r->lines, error));
    return app_json_read(r->words, "vocabulary", &r->all, error);
}

static weft_status read_all(reading *r, const char *folder, int as, weft_error *error)
{
    weft_status status = read_files(r, as, error);
    if (status == WEFT_OK) status = bpe_create(&r->b, error);
    return status == WEFT_OK ? read_with(r, folder, error) : status;
}

/* The first names of which both are there; of those that are not the ones of today. */
static int find_names(reading *r, const char *folder)
{
    for (int as = 0; as <= N_NAMES; as++) {
        const int i = as < N_NAMES ? as : 0;
        snprintf(r->words, sizeof r->words, "%s/%s", folder, names[i][0]);
        snprintf(r->pairs, sizeof r->pairs, "%s/%s", folder, names[i][1]);
        if (access(r->words, F_OK) == 0 && access(r->pairs, F_OK) == 0) return i;
    }
    return 0;
}

weft_status bpe_open(const char *folder, bpe **b, weft_error *error)
{
    reading r = {0};
    *b = NULL;
    if (strlen(folder) > MAX_PATH - 32)
        return weft_fail(error, WEFT_USAGE,
                         "the folder %.100s... has %zu letters; name a shorter one", folder,
                         strlen(folder));
    know_letters();
    const int as = find_names(&r, folder);
    r.place = as == IN_ONE ? "merge" : "line";
    const weft_status status = read_all(&r, folder, as, error);
    if (status != WEFT_OK) bpe_close(&r.b);
    json_decref(r.all);
    free(r.lines.bytes);
    table_free(&r.made);
    told_free(&r.told);
    *b = r.b;
    return status;
}
