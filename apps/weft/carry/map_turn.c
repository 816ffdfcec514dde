/* map_turn: a map read backwards: a checkpoint's tensors as another program has them.
 *
 * Parts of a rule are put together again: each of our tensors lies in theirs where the same view says (map_view.c). Sizes
 * of dims are those that our tensors have. Tensors that a rule leaves, or wants zero, are not made again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "weft/name.h"

/* A tensor of theirs. */
typedef struct turned_tensor {
    int n;           /* of ours that are in it */
    int *parts;      /* [n] */
    map_view *views; /* [n]; NULL: it is ours as it is */
} turned_tensor;

typedef struct turned {
    source ours;
    carry_map *map;
    weft_arena *arena;
    turned_tensor *tensors; /* [source.n_tensors] */
    int room;
    bool *is_used; /* [ours.n_tensors] */
} turned;

static weft_status fail(const turned *m, weft_error *error, const char *a, const char *what,
                        const char *b)
{
    return weft_fail(error, WEFT_USAGE, "%.120s is not written by %.80s: %.100s %s%.200s",
                     m->ours.path, m->map->path, a, what, b ? b : "");
}

/* -1: there is none; slots are nobody's business. */
static int find(const turned *m, const char *name)
{
    for (int i = 0; i < m->ours.n_tensors; i++)
        if (!m->ours.tensors[i].is_slot && strcmp(m->ours.tensors[i].name, name) == 0) return i;
    return -1;
}

static weft_status fail_missing(const turned *m, const char *name, weft_error *error)
{
    const int n = m->ours.n_tensors;
    const char **names = calloc((size_t)n + 1, sizeof *names);
    int n_names = 0;
    if (!names) return weft_fail_memory(error, (size_t)n * sizeof *names);
    for (int i = 0; i < n; i++)
        if (!m->ours.tensors[i].is_slot) names[n_names++] = m->ours.tensors[i].name;
    const char *near = weft_nearest(name, names, n_names);
    free(names);
    return fail(m, error, name,
                near ? "is not in the checkpoint; the nearest there is "
                     : "is not in the checkpoint",
                near);
}

/* ---- sizes of dims ---------------------------------------------------------------------------- */

static void set_size(carry_map *map, const char *name, int64_t size)
{
    for (int i = 0; i < map->n_sizes; i++)
        if (strcmp(map->sizes[i].name, name) == 0) {
            map->sizes[i].size = size;
            return;
        }
    map->sizes[map->n_sizes++] = (map_size){name, size, true};
}

/* As these tensors of ours have them; of a single that they lack, 1. */
static weft_status set_sizes(const turned *m, const turned_tensor *t, const map_rule *rule,
                             weft_error *error)
{
    carry_map *map = m->map;
    const size_t most = (size_t)(t->n * WEFT_MAX_DIMS + map->singles.n + 1);
    char *rest = NULL;
    map->n_sizes = 0;
    map->sizes = weft_arena_take(m->arena, most * sizeof *map->sizes);
    if (!map->sizes) return weft_fail_memory(error, most * sizeof *map->sizes);
    for (int s = 0; s < map->singles.n; s++)
        set_size(map, map->singles.at[s], 1);
    for (int p = 0; p < t->n; p++) {
        const carried *ours = &m->ours.tensors[t->parts[p]];
        char *dims = weft_arena_text(m->arena, "%s", ours->dims);
        int d = 0;
        if (!dims) return weft_fail_memory(error, strlen(ours->dims));
        for (char *dim = strtok_r(dims, " ", &rest); dim; dim = strtok_r(NULL, " ", &rest))
            set_size(map, dim, ours->sizes[d++]);
    }
    if (!rule->split) return WEFT_OK;
    int64_t all = 0;
    for (int p = 0; p < t->n; p++) {
        const char *unknown;
        int64_t size;
        WEFT_TRY(map_size_of(map, rule->parts.at[p], &size, &unknown, error));
        if (unknown)
            return fail(m, error, m->ours.tensors[t->parts[p]].name, "has no dim ", unknown);
        all += size;
    }
    set_size(map, rule->split, all);
    return WEFT_OK;
}

/* ---- one tensor of theirs --------------------------------------------------------------------- */

/* The view's dims are those that ours has. */
static weft_status check_dims(const turned *m, const carried *ours, const map_view *view,
                              weft_error *error)
{
    char is[300] = "", wanted[300] = "", dims[1100];
    char *rest = NULL;
    int d = 0;
    bool same = ours->n_dims == view->n_dims;
    snprintf(dims, sizeof dims, "%s", ours->dims);
    for (char *dim = strtok_r(dims, " ", &rest); dim; dim = strtok_r(NULL, " ", &rest), d++) {
        const size_t used = strlen(is);
        same = same && strcmp(dim, view->dims[d].name) == 0 && ours->sizes[d] == view->dims[d].size;
        snprintf(is + used, sizeof is - used, "%s%.30s:%lld", d ? ", " : "", dim,
                 (long long)ours->sizes[d]);
    }
    for (d = 0; d < view->n_dims; d++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%.30s:%lld", d ? ", " : "",
                 view->dims[d].name, (long long)view->dims[d].size);
    }
    if (same) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%.120s is not written by %.80s: %.100s is [%s], and the map makes it [%s]",
                     m->ours.path, m->map->path, ours->name, is, wanted);
}

static weft_status shape_of(const turned *m, const map_rule *rule, carried *theirs,
                            weft_error *error)
{
    theirs->n_dims = rule->dims.n;
    if (rule->dims.n > WEFT_MAX_DIMS)
        return fail(m, error, theirs->name, "has more than 8 dims", NULL);
    for (int d = 0; d < rule->dims.n; d++) {
        const char *unknown;
        WEFT_TRY(map_size_of(m->map, rule->dims.at[d], &theirs->sizes[d], &unknown, error));
        if (unknown) return fail(m, error, theirs->name, "has a dim that ours lack: ", unknown);
    }
    return WEFT_OK;
}

static weft_status set_views(const turned *m, const map_rule *rule, turned_tensor *t,
                             carried *theirs, weft_error *error)
{
    const source file = {.path = m->ours.path};
    t->views = weft_arena_take(m->arena, (size_t)t->n * sizeof *t->views);
    if (!t->views) return weft_fail_memory(error, (size_t)t->n * sizeof *t->views);
    WEFT_TRY(set_sizes(m, t, rule, error));
    WEFT_TRY(shape_of(m, rule, theirs, error));
    for (int p = 0; p < t->n; p++) {
        const carried *ours = &m->ours.tensors[t->parts[p]];
        WEFT_TRY(map_view_of(m->map, rule, &file, theirs, p, &t->views[p], error));
        WEFT_TRY(check_dims(m, ours, &t->views[p], error));
        if (ours->dtype != theirs->dtype)
            return fail(m, error, ours->name, "is of another dtype than ",
                        m->ours.tensors[t->parts[0]].name);
    }
    return WEFT_OK;
}

static weft_status add(source *theirs, const carried *tensor, const turned_tensor *t,
                       weft_error *error)
{
    turned *m = theirs->file;
    for (int i = 0; i < theirs->n_tensors; i++)
        if (strcmp(theirs->tensors[i].name, tensor->name) == 0)
            return fail(m, error, tensor->name, "would be there twice", NULL);
    if (theirs->n_tensors == m->room) {
        const int room = m->room ? 2 * m->room : 256;
        carried *more = realloc(theirs->tensors, (size_t)room * sizeof *more);
        if (more) theirs->tensors = more;
        turned_tensor *places = realloc(m->tensors, (size_t)room * sizeof *places);
        if (places) m->tensors = places;
        if (!more || !places) return weft_fail_memory(error, (size_t)room * sizeof *places);
        m->room = room;
    }
    m->tensors[theirs->n_tensors] = *t;
    theirs->tensors[theirs->n_tensors++] = *tensor;
    return WEFT_OK;
}

/* The tensor that a rule makes of those whose keys are `found`. */
static weft_status put_together(source *theirs, const map_rule *rule, const map_found *found,
                                weft_error *error)
{
    turned *m = theirs->file;
    char name[MAP_MOST_NAME];
    turned_tensor t = {.n = rule->to.n};
    t.parts = weft_arena_take(m->arena, (size_t)t.n * sizeof *t.parts);
    if (!t.parts) return weft_fail_memory(error, (size_t)t.n * sizeof *t.parts);
    for (int p = 0; p < t.n; p++) {
        (void)map_fill(rule->to.at[p], found, name);
        if ((t.parts[p] = find(m, name)) < 0) return fail_missing(m, name, error);
        m->is_used[t.parts[p]] = true;
    }
    carried tensor = m->ours.tensors[t.parts[0]];
    if (!map_fill(rule->from.at[0], found, name))
        return fail(m, error, rule->from.at[0], "has keys that \"to\" has not", NULL);
    tensor.name = weft_arena_text(m->arena, "%s", name);
    if (!tensor.name) return weft_fail_memory(error, strlen(name));
    if (rule->has_dims) WEFT_TRY(set_views(m, rule, &t, &tensor, error));
    return add(theirs, &tensor, &t, error);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static weft_status turn_rule(source *theirs, const map_rule *rule, weft_error *error)
{
    const turned *m = theirs->file;
    char name[MAP_MOST_NAME];
    int n = 0;
    for (int i = 0; i < m->ours.n_tensors; i++) {
        map_found found;
        if (m->ours.tensors[i].is_slot ||
            !map_match(rule->to.at[0], m->ours.tensors[i].name, &found))
            continue;
        WEFT_TRY(put_together(theirs, rule, &found, error));
        n++;
    }
    if (n > 0 || rule->is_optional) return WEFT_OK;
    snprintf(name, sizeof name, "%s", rule->to.at[0]);
    for (char *open = name, *close; (open = strchr(open, '{')) && (close = strchr(open, '}'));)
        *open = '0', memmove(open + 1, close + 1, strlen(close + 1) + 1);
    return fail_missing(m, name, error);
}

static const char *nearest_rule(const turned *m, const char *name)
{
    const char *patterns[256];
    int n = 0;
    for (int r = 0; r < m->map->n_rules; r++)
        for (int p = 0; p < m->map->rules[r].to.n && n < 256; p++)
            patterns[n++] = m->map->rules[r].to.at[p];
    return weft_nearest(name, patterns, n);
}

static weft_status take_rest(source *theirs, weft_error *error)
{
    turned *m = theirs->file;
    for (int i = 0; i < m->ours.n_tensors; i++) {
        const carried *ours = &m->ours.tensors[i];
        if (m->is_used[i] || ours->is_slot) continue;
        if (!m->map->keeps_rest) {
            const char *near = nearest_rule(m, ours->name);
            return fail(m, error, ours->name,
                        near ? "is not in the map; the nearest there is " : "is not in the map",
                        near);
        }
        turned_tensor t = {.n = 1, .parts = weft_arena_take(m->arena, sizeof *t.parts)};
        if (!t.parts) return weft_fail_memory(error, sizeof *t.parts);
        *t.parts = i;
        WEFT_TRY(add(theirs, ours, &t, error));
    }
    return WEFT_OK;
}

static weft_status turn_all(source *theirs, weft_error *error)
{
    turned *m = theirs->file;
    m->is_used = weft_arena_take(m->arena, (size_t)m->ours.n_tensors + 1);
    if (!m->is_used) return weft_fail_memory(error, (size_t)m->ours.n_tensors);
    for (int r = 0; r < m->map->n_rules; r++)
        if (m->map->rules[r].to.n > 0) WEFT_TRY(turn_rule(theirs, &m->map->rules[r], error));
    return take_rest(theirs, error);
}

/* ---- reading ---------------------------------------------------------------------------------- */

static weft_status read_part(const turned *m, const turned_tensor *t, int p, void *buffer,
                             weft_error *error)
{
    const carried *ours = &m->ours.tensors[t->parts[p]];
    const size_t width = weft_dtype_bytes(ours->dtype);
    size_t bytes = width;
    for (int d = 0; d < ours->n_dims; d++)
        bytes *= (size_t)ours->sizes[d];
    void *own = malloc(bytes + 1);
    if (!own) return weft_fail_memory(error, bytes);
    source ours_source = m->ours;
    const weft_status status = ours_source.read(&ours_source, t->parts[p], own, error);
    if (status == WEFT_OK) map_view_spread(&t->views[p], (int)width, own, buffer);
    free(own);
    return status;
}

static weft_status read_tensor(source *theirs, int i, void *buffer, weft_error *error)
{
    turned *m = theirs->file;
    const turned_tensor *t = &m->tensors[i];
    if (!t->views) return m->ours.read(&m->ours, t->parts[0], buffer, error);
    for (int p = 0; p < t->n; p++)
        WEFT_TRY(read_part(m, t, p, buffer, error));
    return WEFT_OK;
}

static void close_turned(source *theirs)
{
    turned *m = theirs->file;
    if (m) {
        if (m->ours.close) m->ours.close(&m->ours);
        weft_arena_destroy(&m->arena);
        free(m->tensors);
    }
    free(m);
    free(theirs->tensors);
    *theirs = (source){0};
}

weft_status carry_map_turn(carry_map *map, source *from, weft_error *error)
{
    source theirs = *from;
    turned *m = calloc(1, sizeof *m);
    if (!m || !(m->arena = weft_arena_create())) {
        free(m);
        return weft_fail_memory(error, sizeof *m);
    }
    m->ours = *from;
    m->map = map;
    theirs.kind = "pt"; /* which Hugging Face's readers want to see */
    theirs.n_tensors = 0;
    theirs.tensors = NULL;
    theirs.file = m;
    theirs.read = read_tensor;
    theirs.close = close_turned;
    const weft_status status = turn_all(&theirs, error);
    *from = theirs;
    return status;
}
