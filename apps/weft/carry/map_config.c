/* map_config: what a model's config.json says, which lies beside its tensors: sizes of dims, options of gpt.
 *
 *     "config": {"sizes": {"kv": ["head_dim", "hidden_size / num_attention_heads"]},
 *                "options": {"epsilon": "rms_norm_eps", "activation": {"hidden_act": {"silu": "silu", "gelu": "gelu_erf"}}},
 *                "kinds": {"rope_scaling.rope_type": {"default": [], "linear": ["factor"]}},
 *                "lacks": {"attention_bias": "map for such biases"}}
 *
 * Words are keys of config.json, with points between those of objects in objects. A list has several ways to say it, and the first with all its keys there is taken.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../text.h"
#include "map.h"
#include "weft/name.h"

enum { MAX_PATH = 4096 };

/* One config.json being read by a map. */
typedef struct reading {
    carry_map *map;
    json_t *config;
    char path[MAX_PATH];
} reading;

static weft_status fail(const reading *r, const char *what, const char *word, const char *then,
                        weft_error *error)
{
    return weft_fail(error, WEFT_USAGE, "%.200s: %.100s%.100s%.120s", r->path, what, word, then);
}

/* Of "rope_scaling.type"; NULL: it is not there, or null. Borrowed. */
static json_t *value_of(const reading *r, const char *key)
{
    char words[200];
    char *rest = NULL;
    json_t *value = r->config;
    snprintf(words, sizeof words, "%s", key);
    for (char *word = strtok_r(words, ".", &rest); word && value; word = strtok_r(NULL, ".", &rest))
        value = json_object_get(value, word);
    return json_is_null(value) ? NULL : value;
}

/* A text, or the first of a list for which `is_there`; NULL: none. */
static const char *first_there(const reading *r, const json_t *words,
                               bool (*is_there)(const reading *, const char *))
{
    if (json_is_string(words))
        return is_there(r, json_string_value(words)) ? json_string_value(words) : NULL;
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word && is_there(r, word)) return word;
    }
    return NULL;
}

/* ---- sizes ------------------------------------------------------------------------------------ */

/* "hidden_size / heads": two keys; of one the second is empty. A number stands for itself. */
static void cut(const char *text, char keys[2][200])
{
    const char *over = strstr(text, " / ");
    snprintf(keys[0], sizeof keys[0], "%.*s", (int)(over ? (size_t)(over - text) : strlen(text)),
             text);
    snprintf(keys[1], sizeof keys[1], "%s", over ? over + 3 : "");
}

static bool is_number(const char *key)
{
    return *key && strspn(key, "0123456789") == strlen(key);
}

static bool has_key(const reading *r, const char *key)
{
    return !*key || is_number(key) || value_of(r, key) != NULL;
}

static bool has_keys(const reading *r, const char *text)
{
    char keys[2][200];
    cut(text, keys);
    return has_key(r, keys[0]) && has_key(r, keys[1]);
}

static json_int_t whole_of(const reading *r, const char *key)
{
    json_int_t number = 0;
    if (!is_number(key)) return json_integer_value(value_of(r, key));
    return sscanf(key, "%10lld", &number) == 1 ? number : 0;
}

static weft_status read_size(const reading *r, const char *dim, const json_t *words, json_t *sizes,
                             weft_error *error)
{
    char keys[2][200];
    const char *text = first_there(r, words, has_keys);
    if (!text) return WEFT_OK;
    cut(text, keys);
    const json_int_t a = whole_of(r, keys[0]), b = *keys[1] ? whole_of(r, keys[1]) : 1;
    if (a < 1 || b < 1 || a % b != 0)
        return fail(r, text, " is no whole number above 0, and a size of ", dim, error);
    json_object_set_new(sizes, dim, json_integer(a / b));
    return WEFT_OK;
}

/* ---- options ---------------------------------------------------------------------------------- */

static json_t *text_of(const json_t *value)
{
    char text[40] = "";
    if (json_is_string(value)) return json_string(json_string_value(value));
    if (json_is_boolean(value)) return json_string(json_is_true(value) ? "yes" : "no");
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    if (json_is_real(value)) snprintf(text, sizeof text, "%.17g", json_real_value(value));
    return *text ? json_string(text) : NULL;
}

static weft_status fail_kind(const reading *r, const char *key, const char *kind, json_t *table,
                             weft_error *error)
{
    const char *names[64], *name;
    json_t *value;
    int n = 0;
    json_object_foreach(table, name, value) if (n < 64) names[n++] = name;
    const char *near = weft_nearest(kind, names, n);
    return weft_fail(error, WEFT_USAGE, "%.200s: %.60s is \"%.60s\", which our gpt has not%s%.60s",
                     r->path, key, kind, near ? "; the nearest that it has is " : "",
                     near ? near : "");
}

/* {"hidden_act": {"silu": "silu"}}: theirs by a table into ours. */
static weft_status read_by_table(const reading *r, const char *option, json_t *tables,
                                 weft_error *error)
{
    const char *key;
    json_t *table;
    json_object_foreach(tables, key, table)
    {
        json_t *said = value_of(r, key);
        if (!said) continue;
        const char *text = json_is_string(said) ? json_string_value(said) : "no text";
        const json_t *ours = json_object_get(table, text);
        if (ours) {
            json_object_set(r->map->options, option, (json_t *)ours);
            continue;
        }
        return fail_kind(r, key, text, table, error);
    }
    return WEFT_OK;
}

static weft_status read_option(const reading *r, const char *option, json_t *words,
                               weft_error *error)
{
    if (json_is_object(words)) return read_by_table(r, option, words, error);
    const char *key = first_there(r, words, has_key);
    if (!key) return WEFT_OK;
    json_t *text = text_of(value_of(r, key));
    if (!text) return fail(r, key, " is neither a number nor a text, and gpt's ", option, error);
    json_object_set_new(r->map->options, option, text);
    return WEFT_OK;
}

/* What there are several kinds of: those that our gpt has, and the keys beside that each wants. */
static weft_status check_kinds(const reading *r, json_t *kinds, weft_error *error)
{
    const char *key;
    char beside[200];
    json_t *table;
    json_object_foreach(kinds, key, table)
    {
        const char *kind = json_string_value(value_of(r, key));
        const json_t *wanted = kind ? json_object_get(table, kind) : NULL;
        if (kind && !wanted) return fail_kind(r, key, kind, table, error);
        for (size_t i = 0; i < json_array_size(wanted); i++) {
            const char *word = json_string_value(json_array_get(wanted, i));
            snprintf(beside, sizeof beside, "%.*s%.60s", (int)(strrchr(key, '.') + 1 - key), key,
                     word);
            if (!json_is_number(value_of(r, beside)))
                return fail(r, beside, " is no number, and it is needed by what is ", kind, error);
        }
    }
    return WEFT_OK;
}

/* What the model has and our gpt has not. */
static weft_status check_lacks(const reading *r, json_t *lacks, weft_error *error)
{
    const char *key;
    json_t *reason;
    json_object_foreach(lacks, key, reason)
    {
        const json_t *value = value_of(r, key);
        const char *text = json_string_value(value);
        const bool is_nothing = !value || json_is_false(value) ||
                                (json_is_integer(value) && json_integer_value(value) == 0) ||
                                (text && (!*text || strcmp(text, "default") == 0));
        if (!is_nothing)
            return fail(r, key, " is set, and our gpt has no ", json_string_value(reason), error);
    }
    return WEFT_OK;
}

/* ---- all -------------------------------------------------------------------------------------- */

static weft_status read_all(const reading *r, json_t *by, json_t *sizes, weft_error *error)
{
    const char *name;
    json_t *words;
    json_object_foreach(json_object_get(by, "sizes"), name, words)
        WEFT_TRY(read_size(r, name, words, sizes, error));
    json_object_foreach(json_object_get(by, "options"), name, words)
        WEFT_TRY(read_option(r, name, words, error));
    WEFT_TRY(check_kinds(r, json_object_get(by, "kinds"), error));
    return check_lacks(r, json_object_get(by, "lacks"), error);
}

weft_status map_config_read(carry_map *map, const char *folder, json_t *sizes, weft_error *error)
{
    reading r = {.map = map};
    json_t *by = json_object_get(map->json, "config");
    if (!by || !folder) return WEFT_OK;
    if (snprintf(r.path, sizeof r.path, "%s/config.json", folder) >= MAX_PATH ||
        access(r.path, F_OK) != 0)
        return WEFT_OK;
    WEFT_TRY(app_json_read(r.path, "model's configuration", &r.config, error));
    const weft_status status = read_all(&r, by, sizes, error);
    json_decref(r.config);
    return status;
}
