/* map_written: the config.json of a model that a map writes under another program's names.
 *
 *     "writes": {"model_type": "llama", "hidden_size": {"size": "embed"}, "num_attention_heads": {"size": "heads*group"},
 *                "num_hidden_layers": {"count": "block{i}.query"}, "rms_norm_eps": {"number": "epsilon"},
 *                "hidden_act": {"text": "activation"}, "tie_word_embeddings": {"lacks": "head"},
 *                "rope_scaling": [{"if": {"rope-factor": "1"}, "then": {"factor": {"number": "rope-factor"}}}]}
 *
 * size: of dims of our tensors, 1 of one that they lack. count: tensors of the pattern. number, text: an option of gpt; a text by the
 * table of "config" backwards. lacks: whether there is no such tensor. A list: the first "then" with another value of the option, or
 * nothing. All else is written as it stands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"

typedef struct writing {
    const carry_map *map;
    const source *ours;
    const json_t *options; /* of gpt: a text for each */
} writing;

static json_t *value_of(const writing *w, const char *key, json_t *said);

static json_int_t size_of_dim(const writing *w, const char *name)
{
    for (int i = 0; i < w->ours->n_tensors; i++) {
        const carried *t = &w->ours->tensors[i];
        char dims[1100];
        char *rest = NULL;
        int d = 0;
        snprintf(dims, sizeof dims, "%s", t->dims ? t->dims : "");
        for (char *dim = strtok_r(dims, " ", &rest); dim; dim = strtok_r(NULL, " ", &rest), d++)
            if (strcmp(dim, name) == 0 && d < t->n_dims) return t->sizes[d];
    }
    return 1;
}

static json_t *size_of(const writing *w, const char *text)
{
    char words[200];
    char *rest = NULL;
    json_int_t size = 1;
    snprintf(words, sizeof words, "%s", text);
    for (char *word = strtok_r(words, "*", &rest); word; word = strtok_r(NULL, "*", &rest))
        size *= size_of_dim(w, word);
    return json_integer(size);
}

static int count(const writing *w, const char *pattern)
{
    map_found found;
    int n = 0;
    for (int i = 0; i < w->ours->n_tensors; i++)
        n += !w->ours->tensors[i].is_slot && map_match(pattern, w->ours->tensors[i].name, &found);
    return n;
}

/* As whole a number as its text is. NULL: the option is not known. */
static json_t *number_of(const writing *w, const char *option)
{
    char *end;
    const char *text = json_string_value(json_object_get(w->options, option));
    if (!text || !*text) return NULL;
    const long long whole = strtoll(text, &end, 10);
    return *end ? json_real(strtod(text, NULL)) : json_integer(whole);
}

/* The first of theirs that the table makes it of. */
static json_t *text_of(const writing *w, const char *key, const char *option)
{
    const char *theirs;
    json_t *ours;
    const json_t *config = json_object_get(w->map->json, "config"),
                 *text = json_object_get(w->options, option),
                 *tables = json_object_get(json_object_get(config, "options"), option);
    json_object_foreach(json_object_get(tables, key), theirs,
                        ours) if (json_equal(ours, text)) return json_string(theirs);
    return NULL;
}

/* {"rope-factor": "1"}: one of these options is known, and another number. */
static bool is_other(const writing *w, json_t *unless)
{
    const char *option;
    json_t *value;
    json_object_foreach(unless, option, value)
    {
        const char *text = json_string_value(json_object_get(w->options, option));
        if (text && strtod(text, NULL) != strtod(json_string_value(value), NULL)) return true;
    }
    return false;
}

static json_t *object_of(const writing *w, json_t *said)
{
    const char *key;
    json_t *value, *object = json_object();
    json_object_foreach(said, key, value)
    {
        json_t *made = value_of(w, key, value);
        if (made) json_object_set_new(object, key, made);
    }
    return object;
}

static json_t *first_of(const writing *w, json_t *cases)
{
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *one = json_array_get(cases, i), *unless = json_object_get(one, "if");
        if (!unless) return json_incref(cases);
        if (is_other(w, unless)) return object_of(w, json_object_get(one, "then"));
    }
    return NULL;
}

/* What is said of a key; NULL: it is not written. */
static json_t *value_of(const writing *w, const char *key, json_t *said)
{
    if (json_is_array(said)) return first_of(w, said);
    if (!json_is_object(said)) return json_incref(said);
    const char *how = json_object_iter_key(json_object_iter(said)),
               *what = how ? json_string_value(json_object_get(said, how)) : NULL;
    if (!what) return NULL;
    if (strcmp(how, "size") == 0) return size_of(w, what);
    if (strcmp(how, "count") == 0) return json_integer(count(w, what));
    if (strcmp(how, "number") == 0) return number_of(w, what);
    if (strcmp(how, "text") == 0) return text_of(w, key, what);
    return strcmp(how, "lacks") == 0 ? json_boolean(count(w, what) == 0) : NULL;
}

json_t *carry_map_config(const carry_map *map, const source *ours, const json_t *options)
{
    json_t *said = json_object_get(json_object_get(map->json, "config"), "writes"),
           *all = json_copy(map->options);
    const writing w = {map, ours, all};
    if (all) json_object_update(all, (json_t *)options);
    json_t *config = said ? object_of(&w, said) : NULL;
    json_decref(all);
    return config;
}
