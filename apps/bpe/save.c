/* save: a vocabulary written as GPT-2 keeps it (files.c). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vocabulary.h"

enum { MAX_PATH = 4096 };

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

/* As it is written; to be freed. NULL: no memory. */
static char *text_of(const bpe *b, int id)
{
    size_t n;
    const unsigned char *bytes = bpe_word(b, id, &n);
    char *text = malloc(2 * n + 1);
    if (!text) return NULL;
    if (!bpe_is_special(b, id)) {
        word_of_bytes(bytes, n, text);
        return text;
    }
    memcpy(text, bytes, n);
    text[n] = '\0';
    return text;
}

static weft_status write_words(const bpe *b, FILE *file, weft_error *error)
{
    bool is_good = true;
    json_t *all = json_object();
    for (int id = 0; is_good && id < bpe_n_words(b); id++) {
        char *text = text_of(b, id);
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
            char *text = text_of(b, pair[k]);
            if (!text) return weft_fail_memory(error, 0);
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
    WEFT_TRY(write_file(b, folder, "vocab.json", write_words, error));
    return write_file(b, folder, "merges.txt", write_pairs, error);
}
