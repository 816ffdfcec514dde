/* map.h: how the tensors of another program's file become ours: names, dims, transposes, splits. A JSON text:
 *
 *     {"prefix": "transformer.", "sizes": {"kv": 64}, "slots": ["m", "v"], "rest": "refuse",
 *      "tensors": [
 *        {"from": "h.{i}.attn.c_attn.weight", "dims": ["embed", "qkv"], "split": {"qkv": "heads*kv"},
 *         "to": ["block{i}.query", "block{i}.key", "block{i}.value"]},
 *        {"from": ["lm_head.weight", "wte.weight"], "dims": ["vocab", "embed"], "order": ["embed", "vocab"],
 *         "to": "head"},
 *        {"from": "h.{i}.attn.bias", "leave": "the causal mask"}]}
 *
 * docs/reliability.md, section 6, tells it all. A map is read and checked first, then laid over a file: that is a source
 * again, which reads as the file is read, one tensor after the other.
 */
#ifndef WEFT_APPS_MAP_H
#define WEFT_APPS_MAP_H

#include "carry.h"
#include "weft/arena.h"

typedef struct map_words {
    int n;
    const char **at; /* [n] borrowed from the JSON */
} map_words;

/* What becomes of the tensors of one name. */
typedef struct map_rule {
    map_words from;    /* patterns; of several the first that the file has */
    map_words to;      /* patterns, one for each part of the split, else one */
    bool has_dims;     /* else they are called as the file calls them */
    map_words dims;    /* of the file's tensor: "embed", or several in one: "heads*kv" */
    const char *split; /* the dim that is cut into to.n parts; NULL: none */
    /* [to.n] what the dim is in each: "heads*kv"; "": 1 of it, and no dim any more */
    map_words parts;
    map_words order;          /* of the dims of what it becomes; none: as they lie */
    const char *leave, *zero; /* why it is not taken; why it is not, and has to be zero; NULL */
    bool is_optional;         /* the file need not have it */
} map_rule;

typedef struct map_size {
    const char *name;
    int64_t size;
    bool is_used;
} map_size;

struct carry_map {
    const char *path; /* for sentences */
    json_t *json;
    weft_arena *arena;
    const char *prefix; /* of names in the file, where they have it; "" */
    int n_rules, n_sizes;
    map_rule *rules;
    map_size *sizes;
    map_words slots;   /* of every tensor, zero */
    map_words singles; /* dims that are none where their size is 1 */
    json_t *options;   /* of gpt: a text for each */
    bool keeps_rest;   /* what no rule is about stays as it is; else it is refused */
};

/* ---- names: {i} stands for a number, the same wherever it is written in one rule. All Local. ---- */

enum { MAP_MOST_KEYS = 4, MAP_MOST_NAME = 1100 };
typedef struct map_found {
    int n;
    struct {
        char key[32], digits[24];
    } at[MAP_MOST_KEYS];
} map_found;

/* map_match - whether a name is one of the pattern; what its keys stand for. */
bool map_match(const char *pattern, const char *name, map_found *found);
/* map_fill - the pattern with numbers for its keys, into text [MAP_MOST_NAME]; false: a key is not in `found`, braces
 * do not pair, or it is longer than that. */
bool map_fill(const char *pattern, const map_found *found, char *text);

/* ---- dims: one tensor of ours as it lies in one of the file's. All Local. ---- */

enum { MAP_MOST_FACTORS = 16 };
typedef struct map_dim {
    const char *name;
    int64_t size, stride; /* stride: elements of the file's tensor */
} map_dim;
typedef struct map_view {
    int n_dims;
    map_dim dims[MAP_MOST_FACTORS];
    int64_t begin; /* elements */
} map_view;

/* map_view_of - part `part` of a tensor of `file` by a rule that has dims. */
weft_status map_view_of(carry_map *map, const map_rule *rule, const source *file, const carried *t,
                        int part, map_view *view, weft_error *error);
/* map_size_of - of "heads*kv", by the sizes that the map has; 0: one is not known, which *unknown is. */
weft_status map_size_of(carry_map *map, const char *text, int64_t *size, const char **unknown,
                        weft_error *error);
/* map_view_copy - its elements, of `width` 4 or 8 bytes, one after the other. */
void map_view_copy(const map_view *view, int width, const void *from, void *to);
/* map_view_spread - such elements, to where they lie in the file's tensor. */
void map_view_spread(const map_view *view, int width, const void *from, void *to);

/* map_config_read - config.json of the folder, where there is one and the map speaks of it: sizes into `sizes`, options into the
 * map's. Local. */
weft_status map_config_read(carry_map *map, const char *folder, json_t *sizes, weft_error *error);

#endif
