/* files: a vocabulary as GPT-2 keeps it. A byte that cannot be seen is written as a letter behind Latin-1, so both files are text. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "../json.h"
#include "vocabulary.h"

enum { MAX_PATH = 4096, MOST_LETTERS = 512 /* what a letter's number is below */ };

/* What its files are called: today, and first. */
static const char *const names[][2] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

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

/* The letters of a word; to: twice as long, and 1. returns how many bytes of UTF-8 */
static size_t word_of_bytes(const unsigned char *bytes, size_t n, char *to)
{
    uint32_t letters[256];
    size_t length = 0;
    bpe_letters(letters);
    for (size_t i = 0; i < n; i++) {
        const uint32_t letter = letters[bytes[i]];
        if (letter >= 0x80) to[length++] = (char)(0xc0 | letter >> 6);
        to[length++] = (char)(letter < 0x80 ? letter : 0x80 | (letter & 0x3f));
    }
    to[length] = '\0';
    return length;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static weft_status add_word(bpe *b, const char *path, const char *text, weft_error *error)
{
    const size_t n = strlen(text), known = b->words.n;
    unsigned char *bytes = malloc(n + 1);
    if (!bytes) return weft_fail_memory(error, n);
    const int64_t length = bytes_of_word(text, n, bytes);
    const int64_t id = length > 0 ? table_add(&b->words, bytes, (size_t)length) : 0;
    if (length == 1) b->of_byte[bytes[0]] = (int32_t)id;
    free(bytes);
    if (id < 0) return weft_fail_memory(error, n);
    if (b->words.n > known) return WEFT_OK;
    return weft_fail(error, WEFT_IO,
                     "%s: \"%.60s\" is %s; words are written as GPT-2's are, each once", path, text,
                     length > 0 ? "there twice" : "no word of bytes");
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

static weft_status take_words(bpe *b, json_t *all, const char *path, weft_error *error)
{
    const char **by_id = NULL;
    const size_t n = json_object_size(all);
    weft_status status = WEFT_OK;
    if (!json_is_object(all) || n < 256 || n > BPE_MOST_WORDS)
        return weft_fail(error, WEFT_IO,
                         "%s has %zu words by their ids; a vocabulary has 256, for the bytes, to "
                         "%d",
                         path, n, BPE_MOST_WORDS);
    memset(b->of_byte, -1, sizeof b->of_byte);
    status = sort_words(all, path, &by_id, error);
    for (size_t i = 0; status == WEFT_OK && i < n; i++)
        status = add_word(b, path, by_id[i], error);
    free(by_id);
    return status == WEFT_OK ? check_words(b, path, error) : status;
}

static weft_status fail_opening(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO,
                     "cannot read %s: %s; a vocabulary is a folder with %s and %s, as weft tokens "
                     "train makes one",
                     path, strerror(errno), names[0][0], names[0][1]);
}

static weft_status read_words(bpe *b, const char *path, weft_error *error)
{
    json_error_t where;
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    weft_status status = app_json_status(error);
    if (status == WEFT_OK && !all)
        status = weft_fail(error, WEFT_IO,
                           "%s, line %d: %s; a vocabulary is a folder with %s and %s, as weft "
                           "tokens train makes one",
                           path, where.line, where.text, names[0][0], names[0][1]);
    if (status == WEFT_OK) status = take_words(b, all, path, error);
    json_decref(all);
    return status;
}

/* One word of a pair; -1: there is no such word. */
static int64_t find_word(const bpe *b, const char *text, size_t n)
{
    unsigned char bytes[1024];
    const int64_t length = n > 0 && n < sizeof bytes ? bytes_of_word(text, n, bytes) : -1;
    return length > 0 ? table_find(&b->words, bytes, (size_t)length) : -1;
}

static weft_status read_pair(bpe *b, const char *path, int number, char *line, weft_error *error)
{
    line[strcspn(line, "\r\n")] = '\0';
    char *gap = strchr(line, ' ');
    const int n_words = bpe_n_words(b);
    if (*line == '\0' || (number == 1 && strncmp(line, "#version", 8) == 0)) return WEFT_OK;
    const int64_t left = gap ? find_word(b, line, (size_t)(gap - line)) : -1;
    const int64_t right = gap ? find_word(b, gap + 1, strlen(gap + 1)) : -1;
    if (left >= 0 && right >= 0) {
        const int32_t joined = bpe_join(b, (int32_t)left, (int32_t)right);
        if (joined < 0) return weft_fail_memory(error, 0);
        if (joined < n_words) return WEFT_OK;
    }
    return weft_fail(
        error, WEFT_IO,
        "%s, line %d: \"%.60s\" is no pair of words of the vocabulary that makes one of "
        "it",
        path, number, line);
}

static weft_status read_pairs(bpe *b, const char *path, weft_error *error)
{
    char *line = NULL;
    size_t room = 0;
    weft_status status = WEFT_OK;
    FILE *file = fopen(path, "r");
    if (!file) return fail_opening(path, error);
    for (int number = 1; status == WEFT_OK && getline(&line, &room, file) >= 0; number++)
        status = read_pair(b, path, number, line, error);
    if (status == WEFT_OK && ferror(file)) status = fail_opening(path, error);
    free(line);
    fclose(file);
    return status;
}

weft_status bpe_open(const char *folder, bpe **b, weft_error *error)
{
    char words[MAX_PATH], pairs[MAX_PATH];
    struct stat there;
    int as = 0;
    *b = NULL;
    know_letters();
    for (int i = 1; i >= 0; i--) {
        snprintf(words, sizeof words, "%s/%s", folder, names[i][0]);
        if (stat(words, &there) == 0) as = i;
    }
    snprintf(words, sizeof words, "%s/%s", folder, names[as][0]);
    snprintf(pairs, sizeof pairs, "%s/%s", folder, names[as][1]);
    if (stat(words, &there) != 0) return fail_opening(words, error);
    WEFT_TRY(bpe_create(b, error));
    weft_status status = read_words(*b, words, error);
    if (status == WEFT_OK) status = read_pairs(*b, pairs, error);
    if (status != WEFT_OK) bpe_close(b);
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static weft_status write_words(const bpe *b, FILE *file, weft_error *error)
{
    bool is_good = true;
    json_t *all = json_object();
    for (int id = 0; is_good && id < bpe_n_words(b); id++) {
        size_t n;
        const unsigned char *bytes = bpe_word(b, id, &n);
        char *text = malloc(2 * n + 1);
        if (text) word_of_bytes(bytes, n, text);
        is_good = text && json_object_set_new(all, text, json_integer(id)) == 0;
        free(text);
    }
    if (is_good) (void)json_dumpf(all, file, JSON_COMPACT); /* ferror tells */
    json_decref(all);
    return is_good ? WEFT_OK : weft_fail_memory(error, b->words.n_bytes);
}

static weft_status write_pairs(const bpe *b, FILE *file, weft_error *error)
{
    fputs("#version: 0.2\n", file);
    for (size_t i = 0; i < b->pairs.n; i++) {
        int32_t pair[2];
        memcpy(pair, b->pairs.bytes + b->pairs.strings[i].at, sizeof pair);
        for (int k = 0; k < 2; k++) {
            size_t n;
            const unsigned char *bytes = bpe_word(b, pair[k], &n);
            char *text = malloc(2 * n + 1);
            if (!text) return weft_fail_memory(error, n);
            word_of_bytes(bytes, n, text);
            fprintf(file, "%s%c", text, k == 0 ? ' ' : '\n');
            free(text);
        }
    }
    return WEFT_OK;
}

static weft_status fail_writing(const char *path, const char *why, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "cannot write %s: %s; name a place with room for it", path,
                     why);
}

/* A file is there as a whole or as it was. */
static weft_status write_file(const bpe *b, const char *folder, const char *name,
                              weft_status (*write)(const bpe *, FILE *, weft_error *),
                              weft_error *error)
{
    char path[MAX_PATH], partial[MAX_PATH];
    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    snprintf(partial, sizeof partial, "%.4000s/%s.partial", folder, name);
    FILE *file = fopen(partial, "w");
    if (!file) return fail_writing(path, strerror(errno), error);
    const weft_status status = write(b, file, error);
    const bool is_bad = ferror(file) != 0;
    if (fclose(file) == 0 && !is_bad && status == WEFT_OK && rename(partial, path) == 0)
        return WEFT_OK;
    const char *why = strerror(errno);
    remove(partial);
    return status != WEFT_OK ? status : fail_writing(path, why, error);
}

weft_status bpe_save(const bpe *b, const char *folder, weft_error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail_writing(folder, strerror(errno), error);
    WEFT_TRY(write_file(b, folder, names[0][0], write_words, error));
    return write_file(b, folder, names[0][1], write_pairs, error);
}
