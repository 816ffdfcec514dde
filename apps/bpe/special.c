/* special: words that no pair makes, as <|endoftext|>: which there are, and where one stands in a text.
 *
 * They are told by the files that Hugging Face's tokenizers keep beside a vocabulary, where these are there. Besides, a word of
 * the vocabulary is one that no pair makes and that pieces of a text cannot become: <name>, [NAME], or fairseq's fillers.
 * A special word is written as it is; others by the letters of their bytes.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../text.h"
#include "vocabulary.h"

enum { MAX_PATH = 4096 };

/* ---- what the files say ----------------------------------------------------------------------- */

static weft_status tell(told_words *t, const json_t *content, json_int_t id, weft_error *error)
{
    const char *text = json_string_value(content);
    const size_t known = t->names.n;
    if (!text || !*text) return WEFT_OK;
    int64_t *ids = grow(t->ids, known, &t->room, sizeof *ids);
    if (ids) t->ids = ids;
    const int64_t at = ids ? table_add(&t->names, text, strlen(text)) : -1;
    if (at < 0) return weft_fail_memory(error, strlen(text));
    if ((size_t)at == known) ids[at] = -1;
    if (id >= 0) ids[at] = id;
    return WEFT_OK;
}

/* "<s>", or {"content": "<s>", ...}, or a list of such. */
static weft_status tell_value(told_words *t, const json_t *value, weft_error *error)
{
    const json_t *content = json_object_get(value, "content");
    for (size_t i = 0; i < json_array_size(value); i++)
        WEFT_TRY(tell_value(t, json_array_get(value, i), error));
    return tell(t, content ? content : value, -1, error);
}

/* tokenizer.json: {"added_tokens": [{"id": 50256, "content": "<|endoftext|>"}]} */
static weft_status tell_added(told_words *t, json_t *all, weft_error *error)
{
    const json_t *added = json_object_get(all, "added_tokens");
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *one = json_array_get(added, i), *id = json_object_get(one, "id");
        WEFT_TRY(tell(t, json_object_get(one, "content"),
                      json_is_integer(id) ? json_integer_value(id) : -1, error));
    }
    return WEFT_OK;
}

/* tokenizer_config.json: {"added_tokens_decoder": {"50256": {"content": "<|endoftext|>"}}} */
static weft_status tell_decoder(told_words *t, json_t *all, weft_error *error)
{
    const char *key;
    json_t *one;
    json_object_foreach(json_object_get(all, "added_tokens_decoder"), key, one)
        WEFT_TRY(tell(t, json_object_get(one, "content"), strtoll(key, NULL, 10), error));
    return WEFT_OK;
}

/* added_tokens.json: {"<|endoftext|>": 50256} */
static weft_status tell_ids(told_words *t, json_t *all, weft_error *error)
{
    const char *text;
    json_t *id;
    json_object_foreach(all, text, id)
    {
        json_t *content = json_string(text);
        const weft_status status =
            json_is_integer(id) ? tell(t, content, json_integer_value(id), error) : WEFT_OK;
        json_decref(content);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

/* special_tokens_map.json: {"bos_token": "<s>", "additional_special_tokens": ["<a>"]} */
static weft_status tell_map(told_words *t, json_t *all, weft_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(all, key, value) WEFT_TRY(tell_value(t, value, error));
    return WEFT_OK;
}

static const struct {
    const char *name;
    weft_status (*tell)(told_words *t, json_t *all, weft_error *error);
} files[] = {{BPE_TOKENIZER, tell_added},
             {"tokenizer_config.json", tell_decoder},
             {"added_tokens.json", tell_ids},
             {"special_tokens_map.json", tell_map}};

weft_status told_read(const char *folder, told_words *t, weft_error *error)
{
    char path[MAX_PATH + 32];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        json_t *all;
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        if (access(path, F_OK) != 0) continue;
        WEFT_TRY(app_json_read(path, "vocabulary", &all, error));
        const weft_status status = files[i].tell(t, all, error);
        json_decref(all);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

void told_free(told_words *t)
{
    table_free(&t->names);
    free(t->ids);
    *t = (told_words){0};
}

/* ---- which there are --------------------------------------------------------------------------- */

bool bpe_looks_special(const char *word)
{
    const size_t n = strlen(word);
    bool has_letter = false;
    if (strncmp(word, "madeupword", 10) == 0)
        return word[10] != '\0' && word[10 + strspn(word + 10, "0123456789")] == '\0';
    if (n < 3 ||
        !((word[0] == '<' && word[n - 1] == '>') || (word[0] == '[' && word[n - 1] == ']')))
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        has_letter |= isalnum((unsigned char)word[i]) || (unsigned char)word[i] >= 0x80;
    return has_letter;
}

bool bpe_is_special(const bpe *b, int64_t id)
{
    return b->is_special[id / 8] >> id % 8 & 1;
}

static size_t length_of(const bpe *b, int32_t id)
{
    return b->words.strings[id].n;
}

/* Longer ones first: of two that begin alike the longer is found. */
bool bpe_mark_special(bpe *b, int32_t id)
{
    if (bpe_is_special(b, id)) return true;
    int32_t *ids = grow(b->specials, b->n_specials, &b->room_specials, sizeof *ids);
    if (!ids) return false;
    size_t at = b->n_specials++;
    b->specials = ids;
    for (; at > 0 && length_of(b, ids[at - 1]) < length_of(b, id); at--)
        ids[at] = ids[at - 1];
    ids[at] = id;
    b->is_special[id / 8] |= (uint8_t)(1u << id % 8);
    b->begins_special[b->words.bytes[b->words.strings[id].at]] = true;
    return true;
}

/* ---- in a text --------------------------------------------------------------------------------- */

static int32_t special_at(const bpe *b, const unsigned char *text, size_t bytes)
{
    for (size_t i = 0; i < b->n_specials; i++) {
        size_t n;
        const unsigned char *word = bpe_word(b, b->specials[i], &n);
        if (n <= bytes && memcmp(word, text, n) == 0) return b->specials[i];
    }
    return -1;
}

int32_t bpe_find_special(const bpe *b, const unsigned char *text, size_t bytes, size_t *at)
{
    for (size_t i = 0; b->n_specials > 0 && i < bytes; i++) {
        const int32_t id = b->begins_special[text[i]] ? special_at(b, text + i, bytes - i) : -1;
        if (id < 0) continue;
        *at = i;
        return id;
    }
    *at = bytes;
    return -1;
}
