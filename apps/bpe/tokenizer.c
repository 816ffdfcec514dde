/* tokenizer: a vocabulary as Hugging Face's tokenizers keep it, all in one tokenizer.json. Taken is what does as GPT-2's: words of
 * bytes, GPT-2's pieces, pairs by their rank. Another way to make words is refused, as its tokens would be others.
 *
 *     {"normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "added_tokens": [..],
 *      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b", ["c", "d"]]}}
 */
#include <stdlib.h>
#include <string.h>

#include "../text.h"
#include "vocabulary.h"

/* A tokenizer.json being read. */
typedef struct reading {
    const char *path;
    json_t *all, *model; /* model: borrowed */
} reading;

static weft_status refuse(const reading *r, const char *key, const char *is, const char *only,
                          weft_error *error)
{
    return weft_fail(error, WEFT_USAGE,
                     "%.200s: %s is %.60s, and only %s is read; give a vocabulary of bytes as "
                     "GPT-2's, or have a text made tokens by whom it belongs to",
                     r->path, key, is, only);
}

/* The "type" of a part; "none" where the part is null or missing. */
static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    if (!part || json_is_null(part)) return "none";
    return type ? type : "of no type";
}

/* A key of the model that is set: neither null, false nor "". */
static bool is_set(const json_t *value)
{
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_string(value) && json_string_length(value) == 0);
}

static weft_status check_model(const reading *r, weft_error *error)
{
    static const char *const others[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    const json_t *model = r->model;
    const char *type = type_of(model);
    /* files of old have none there, but for pairs */
    const bool is_pairs =
        strcmp(type, "BPE") == 0 ||
        (json_is_array(json_object_get(model, "merges")) && !json_object_get(model, "type"));
    if (!is_pairs) return refuse(r, "model", type, "BPE", error);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_set(json_object_get(model, others[i])))
            return refuse(r, others[i], "set", "one without it", error);
    return WEFT_OK;
}

/* By default a space is put before a text, and the pieces are GPT-2's. */
static weft_status check_pieces(const reading *r, weft_error *error)
{
    const json_t *pieces = json_object_get(r->all, "pre_tokenizer"),
                 *prefix = json_object_get(pieces, "add_prefix_space"),
                 *pattern = json_object_get(pieces, "use_regex");
    if (strcmp(type_of(pieces), "ByteLevel") != 0)
        return refuse(r, "pre_tokenizer", type_of(pieces), "ByteLevel", error);
    if (!json_is_false(prefix))
        return refuse(r, "add_prefix_space", "true", "false, a text as it is,", error);
    if (pattern && !json_is_true(pattern))
        return refuse(r, "use_regex", "false", "true, pieces as GPT-2's,", error);
    return WEFT_OK;
}

static weft_status check(const reading *r, weft_error *error)
{
    const char *normalizer = type_of(json_object_get(r->all, "normalizer"));
    WEFT_TRY(check_model(r, error));
    if (strcmp(normalizer, "none") != 0)
        return refuse(r, "normalizer", normalizer, "none, a text as it is,", error);
    return check_pieces(r, error);
}

/* ---- pairs ------------------------------------------------------------------------------------- */

/* "a b" or ["a", "b"]: the halves; an empty one stands for what is none. */
static void halves_of(const json_t *pair, const char *halves[2], size_t lengths[2])
{
    const char *text = json_string_value(pair), *gap = text ? strchr(text, ' ') : NULL;
    for (size_t i = 0; i < 2; i++) {
        halves[i] = json_string_value(json_array_get(pair, i));
        lengths[i] = halves[i] ? strlen(halves[i]) : 0;
    }
    if (!gap) return;
    halves[0] = text, lengths[0] = (size_t)(gap - text);
    halves[1] = gap + 1, lengths[1] = strlen(gap + 1);
}

static bool is_half(const char *half, size_t n)
{
    return n > 0 && !memchr(half, ' ', n) && !memchr(half, '\n', n) && !memchr(half, '\r', n);
}

/* As lines of merges.txt. */
static weft_status write_pairs(const reading *r, app_text *pairs, weft_error *error)
{
    const json_t *list = json_object_get(r->model, "merges");
    size_t room = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *halves[2];
        size_t n[2];
        halves_of(json_array_get(list, i), halves, n);
        if (!is_half(halves[0], n[0]) || !is_half(halves[1], n[1]))
            return weft_fail(error, WEFT_IO,
                             "%.240s, merge %zu is no pair of words, as \"a b\" or [\"a\", \"b\"]; "
                             "get the file again",
                             r->path, i + 1);
        room += n[0] + n[1] + 2;
    }
    char *at = pairs->bytes = malloc(room + 1);
    if (!at) return weft_fail_memory(error, room);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *halves[2];
        size_t n[2];
        halves_of(json_array_get(list, i), halves, n);
        at = mempcpy(at, halves[0], n[0]), *at++ = ' ';
        at = mempcpy(at, halves[1], n[1]), *at++ = '\n';
    }
    *at = '\0';
    pairs->n = room;
    return WEFT_OK;
}

weft_status bpe_tokenizer_read(const char *path, json_t **words, app_text *pairs, weft_error *error)
{
    reading r = {.path = path};
    WEFT_TRY(app_json_read(path, "vocabulary", &r.all, error));
    r.model = json_object_get(r.all, "model");
    weft_status status = check(&r, error);
    if (status == WEFT_OK) status = write_pairs(&r, pairs, error);
    if (status == WEFT_OK) *words = json_incref(json_object_get(r.model, "vocab"));
    json_decref(r.all);
    return status;
}
