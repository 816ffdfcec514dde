/* map_read: a map's text, checked before any file is looked at. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../text.h"
#include "map.h"
#include "weft/name.h"

enum { MAX_PATH = 4096, MOST_SIZE_DIGITS = 15 };

static weft_status fail(const carry_map *map, const char *what, const char *word, weft_error *error)
{
    return weft_fail(error, WEFT_USAGE, "%.200s: %s%s%.100s%s", map->path, what, word ? " \"" : "",
                     word ? word : "", word ? "\"" : "");
}

/* ---- parts of JSON --------------------------------------------------------------------------- */

static weft_status check_keys(const carry_map *map, json_t *object, const char *const *known, int n,
                              weft_error *error)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        bool is_known = false;
        for (int i = 0; i < n; i++)
            is_known |= strcmp(known[i], key) == 0;
        if (is_known) continue;
        const char *near = weft_nearest(key, known, n);
        return weft_fail(error, WEFT_USAGE, "%.200s: unknown key \"%.60s\"%s%s%s", map->path, key,
                         near ? "; did you mean \"" : "; docs/reliability.md has those there are",
                         near ? near : "", near ? "\"?" : "");
    }
    return WEFT_OK;
}

/* A text, or an array of texts. */
static weft_status read_words(carry_map *map, const json_t *value, const char *what,
                              map_words *words, weft_error *error)
{
    const bool is_one = json_is_string(value);
    words->n = is_one ? 1 : (int)json_array_size(value);
    if (!is_one && !json_is_array(value))
        return fail(map, "a text or a list of texts is", what, error);
    words->at = weft_arena_take(map->arena, ((size_t)words->n + 1) * sizeof *words->at);
    if (!words->at) return weft_fail_memory(error, (size_t)words->n * sizeof *words->at);
    for (int i = 0; i < words->n; i++) {
        const json_t *word = is_one ? value : json_array_get(value, (size_t)i);
        words->at[i] = json_string_value(word);
        if (!words->at[i]) return fail(map, "a text or a list of texts is", what, error);
    }
    return WEFT_OK;
}

static weft_status read_text(carry_map *map, const json_t *value, const char *what,
                             const char **text, weft_error *error)
{
    if (value && !json_is_string(value)) return fail(map, "a text is", what, error);
    if (value) *text = json_string_value(value);
    return WEFT_OK;
}

/* ---- one rule -------------------------------------------------------------------------------- */

static const char *const rule_keys[] = {"from",  "to",    "dims", "split",
                                        "order", "leave", "zero", "optional"};
static const char *const map_keys[] = {"tensors", "prefix",  "sizes",   "slots", "rest",
                                       "about",   "singles", "options", "config"};
#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* {"qkv": "heads*kv"}, or {"qkv": ["heads*kv", "groups*kv", "groups*kv"]}: one for each part. */
static weft_status read_split(carry_map *map, json_t *split, map_rule *rule, weft_error *error)
{
    if (!json_is_object(split) || json_object_size(split) != 1)
        return fail(map, "a split names one dim and what its parts are, {\"qkv\": \"heads*kv\"}:",
                    rule->from.at[0], error);
    void *only = json_object_iter(split);
    const json_t *value = json_object_iter_value(only);
    rule->split = json_object_iter_key(only);
    WEFT_TRY(read_words(map, value, "split", &rule->parts, error));
    const bool is_for_all = json_is_string(value);
    if (!is_for_all && rule->parts.n != rule->to.n)
        return weft_fail(error, WEFT_USAGE,
                         "%.200s: %.80s is split into %d parts, and \"to\" has %d names", map->path,
                         rule->from.at[0], rule->parts.n, rule->to.n);
    if (!is_for_all) return WEFT_OK;
    const char *all = rule->parts.at[0];
    rule->parts.n = rule->to.n;
    rule->parts.at = weft_arena_take(map->arena, (size_t)rule->to.n * sizeof *rule->parts.at);
    if (!rule->parts.at) return weft_fail_memory(error, (size_t)rule->to.n);
    for (int p = 0; p < rule->to.n; p++)
        rule->parts.at[p] = all;
    return WEFT_OK;
}

/* With all keys as 0 the names that come of it are names that there may be. */
static weft_status check_names(const carry_map *map, const map_rule *rule, weft_error *error)
{
    char name[MAP_MOST_NAME];
    map_found found = {0};
    for (const char *open = strchr(rule->from.at[0], '{'); open; open = strchr(open + 1, '{')) {
        const size_t bytes = strcspn(open + 1, "}");
        if (!open[1 + bytes] || bytes == 0 || bytes >= sizeof found.at[0].key ||
            found.n == MAP_MOST_KEYS)
            return fail(map,
                        "the braces of a name hold a key, as {i}, at most four:", rule->from.at[0],
                        error);
        memcpy(found.at[found.n].key, open + 1, bytes);
        strcpy(found.at[found.n++].digits, "0");
    }
    for (int i = 0; i < rule->from.n; i++)
        if (!map_fill(rule->from.at[i], &found, name))
            return fail(map,
                        "all names of one \"from\" have the same keys in braces, and are no longer "
                        "than 1,099 letters:",
                        rule->from.at[i], error);
    for (int i = 0; i < rule->to.n; i++) {
        if (!map_fill(rule->to.at[i], &found, name))
            return fail(
                map,
                "a key in braces is in \"to\" and not in \"from\", or the name is longer than "
                "1,099 letters:",
                rule->to.at[i], error);
        WEFT_TRY(weft_path_check("tensor", name, error));
    }
    return WEFT_OK;
}

static weft_status check_rule(const carry_map *map, const map_rule *rule, weft_error *error)
{
    const int n_ends = (rule->to.n > 0) + (rule->leave != NULL) + (rule->zero != NULL);
    const char *name = rule->from.at[0];
    if (n_ends != 1)
        return fail(
            map, "a tensor has one of \"to\", \"leave\" and \"zero\", and this one has not:", name,
            error);
    if (rule->to.n > 1 && !rule->split)
        return fail(map, "without \"split\" there is one name in \"to\":", name, error);
    if (!rule->has_dims && (rule->split || rule->order.n > 0))
        return fail(map, "\"split\" and \"order\" want \"dims\":", name, error);
    return check_names(map, rule, error);
}

static weft_status read_rule(carry_map *map, json_t *entry, map_rule *rule, weft_error *error)
{
    json_t *dims = json_object_get(entry, "dims"), *order = json_object_get(entry, "order");
    json_t *to = json_object_get(entry, "to"), *split = json_object_get(entry, "split");
    if (!json_is_object(entry)) return fail(map, "a tensor is an object, in", "tensors", error);
    WEFT_TRY(check_keys(map, entry, rule_keys, COUNT(rule_keys), error));
    WEFT_TRY(read_words(map, json_object_get(entry, "from"), "from", &rule->from, error));
    if (rule->from.n == 0) return fail(map, "nothing is in", "from", error);
    if (to) WEFT_TRY(read_words(map, to, "to", &rule->to, error));
    if (to && rule->to.n == 0) return fail(map, "nothing is in \"to\" of", rule->from.at[0], error);
    rule->has_dims = dims != NULL;
    if (dims) WEFT_TRY(read_words(map, dims, "dims", &rule->dims, error));
    if (order) WEFT_TRY(read_words(map, order, "order", &rule->order, error));
    if (split && to) WEFT_TRY(read_split(map, split, rule, error));
    WEFT_TRY(read_text(map, json_object_get(entry, "leave"), "leave", &rule->leave, error));
    WEFT_TRY(read_text(map, json_object_get(entry, "zero"), "zero", &rule->zero, error));
    rule->is_optional = json_is_true(json_object_get(entry, "optional"));
    return check_rule(map, rule, error);
}

/* ---- all ------------------------------------------------------------------------------------- */

static weft_status read_rules(carry_map *map, weft_error *error)
{
    json_t *tensors = json_object_get(map->json, "tensors");
    if (!json_is_array(tensors)) return fail(map, "a list of objects is", "tensors", error);
    map->n_rules = (int)json_array_size(tensors);
    map->rules = weft_arena_take(map->arena, ((size_t)map->n_rules + 1) * sizeof *map->rules);
    if (!map->rules) return weft_fail_memory(error, (size_t)map->n_rules * sizeof *map->rules);
    for (int i = 0; i < map->n_rules; i++)
        WEFT_TRY(read_rule(map, json_array_get(tensors, (size_t)i), &map->rules[i], error));
    return WEFT_OK;
}

/* Those of the map, then those of the model's config.json, then those of the command line in their place: "heads=12 kv=64". */
static weft_status read_sizes(carry_map *map, const carry_said *said, weft_error *error)
{
    const char *name;
    json_t *value, *sizes = json_object_get(map->json, "sizes");
    char *words = weft_arena_text(map->arena, "%s", said->sizes), *rest = NULL;
    if (!words) return weft_fail_memory(error, strlen(said->sizes));
    if (!sizes) json_object_set_new(map->json, "sizes", sizes = json_object());
    WEFT_TRY(map_config_read(map, said->folder, sizes, error));
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '='), *end = NULL;
        const long long size = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || end == equals + 1 || *end || size < 1)
            return weft_fail(error, WEFT_USAGE,
                             "--sizes has \"%.80s\"; sizes are written as heads=12 kv=64", word);
        *equals = 0;
        if (json_object_set_new(sizes, word, json_integer(size)) != 0)
            return weft_fail(error, WEFT_USAGE, "--sizes: a name that is not UTF-8");
    }
    map->sizes = weft_arena_take(map->arena, (json_object_size(sizes) + 1) * sizeof *map->sizes);
    if (!map->sizes) return weft_fail_memory(error, json_object_size(sizes));
    json_object_foreach(sizes, name, value)
    {
        const json_int_t size = json_integer_value(value);
        WEFT_TRY(weft_name_check("dim", name, error));
        if (size < 1 || size > INT64_C(1) << 40)
            return fail(map, "a size is a number from 1 to 2^40, and that is not one of", name,
                        error);
        map->sizes[map->n_sizes++] = (map_size){name, size, false};
    }
    return WEFT_OK;
}

static weft_status read_options(carry_map *map, weft_error *error)
{
    const char *name;
    json_t *value, *options = json_object_get(map->json, "options");
    if (options && !json_is_object(options))
        return fail(map, "an object of texts is", "options", error);
    json_object_foreach(options, name, value) if (!json_is_string(value)) return fail(
        map, "a text is the option", name, error);
    map->options = options ? json_copy(options) : json_object();
    return map->options ? WEFT_OK : weft_fail_memory(error, 0);
}

static weft_status read_map(carry_map *map, const carry_said *said, weft_error *error)
{
    const char *rest = "refuse";
    const json_t *slots = json_object_get(map->json, "slots"),
                 *singles = json_object_get(map->json, "singles");
    if (!json_is_object(map->json)) return fail(map, "a map is a JSON object", NULL, error);
    WEFT_TRY(check_keys(map, map->json, map_keys, COUNT(map_keys), error));
    map->prefix = "";
    WEFT_TRY(read_text(map, json_object_get(map->json, "prefix"), "prefix", &map->prefix, error));
    WEFT_TRY(read_text(map, json_object_get(map->json, "rest"), "rest", &rest, error));
    map->keeps_rest = strcmp(rest, "keep") == 0;
    if (!map->keeps_rest && strcmp(rest, "refuse") != 0)
        return fail(map, "\"rest\" is \"keep\" or \"refuse\", and not", rest, error);
    if (slots) WEFT_TRY(read_words(map, slots, "slots", &map->slots, error));
    for (int i = 0; i < map->slots.n; i++)
        WEFT_TRY(weft_name_check("slot", map->slots.at[i], error));
    if (singles) WEFT_TRY(read_words(map, singles, "singles", &map->singles, error));
    WEFT_TRY(read_options(map, error));
    WEFT_TRY(read_sizes(map, said, error));
    return read_rules(map, error);
}

/* Takes the JSON. */
static weft_status make(const char *path, json_t *json, const carry_said *said, carry_map **made,
                        weft_error *error)
{
    carry_map *map = calloc(1, sizeof *map);
    if (!map || !(map->arena = weft_arena_create()) ||
        !(map->path = weft_arena_text(map->arena, "%s", path))) {
        json_decref(json);
        carry_map_destroy(&map);
        return weft_fail_memory(error, sizeof *map);
    }
    map->json = json;
    const weft_status status = read_map(map, said, error);
    if (status != WEFT_OK) carry_map_destroy(&map);
    *made = map;
    return status;
}

/* A name without a slash or an ending is one of those that come with Weft, in ../share/weft/maps beside this program. */
static bool find_file(const char *name, char *path)
{
    char self[MAX_PATH / 2] = "";
    if (strpbrk(name, "/.")) return snprintf(path, MAX_PATH, "%s", name) < MAX_PATH;
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;
    if (slash) *slash = 0;
    return snprintf(path, MAX_PATH, "%s/../share/weft/maps/%s.json", slash ? self : ".", name) <
           MAX_PATH;
}

const json_t *carry_map_options(const carry_map *map)
{
    return map->options;
}

weft_status carry_map_read(const char *name, const carry_said *said, carry_map **map,
                           weft_error *error)
{
    char path[MAX_PATH];
    json_t *json;
    *map = NULL;
    if (!find_file(name, path))
        return weft_fail(error, WEFT_USAGE,
                         "the map %.100s... has %zu letters; name a shorter path", name,
                         strlen(name));
    if (access(path, F_OK) != 0)
        return weft_fail(
            error, WEFT_USAGE,
            "cannot open the map %.300s: %s; name a .json file, or one that comes with "
            "Weft: bert, gpt2, llama",
            path, strerror(errno));
    WEFT_TRY(app_json_read(path, "map", &json, error));
    return make(name, json, said, map, error);
}

/* "w=pixel,hidden" as a rule. */
static weft_status add_dims(json_t *tensors, char *word, weft_error *error)
{
    char *equals = strchr(word, '='), *rest = NULL;
    if (!equals || equals == word)
        return weft_fail(error, WEFT_USAGE, "--dims has \"%.100s\"; dims are written as NAME=a,b",
                         word);
    *equals = 0;
    json_t *dims = json_array();
    for (char *dim = strtok_r(equals + 1, ",", &rest); dim; dim = strtok_r(NULL, ",", &rest))
        json_array_append_new(dims, json_string(dim));
    json_t *entry = json_pack("{s:s, s:s, s:o}", "from", word, "to", word, "dims", dims);
    if (!entry || json_array_append_new(tensors, entry) != 0)
        return weft_fail(error, WEFT_USAGE, "--dims: a name that is not UTF-8");
    return WEFT_OK;
}

weft_status carry_map_of_dims(const char *text, const char *sizes, carry_map **map,
                              weft_error *error)
{
    json_t *tensors = json_array();
    json_t *json = json_pack("{s:s, s:o}", "rest", "keep", "tensors", tensors);
    char *words = strdup(text), *rest = NULL;
    weft_status status = json && words ? WEFT_OK : weft_fail_memory(error, strlen(text));
    *map = NULL;
    for (char *word = words ? strtok_r(words, " ", &rest) : NULL; word && status == WEFT_OK;
         word = strtok_r(NULL, " ", &rest))
        status = add_dims(tensors, word, error);
    free(words);
    if (status == WEFT_OK) return make("--dims", json, &(carry_said){.sizes = sizes}, map, error);
    json_decref(json);
    return status;
}

void carry_map_destroy(carry_map **map)
{
    if (!*map) return;
    json_decref((*map)->json);
    json_decref((*map)->options);
    weft_arena_destroy(&(*map)->arena);
    free(*map);
    *map = NULL;
}
