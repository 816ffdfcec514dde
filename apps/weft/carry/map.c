/* map: a map laid over a file: a source with the tensors that the file's become.
 *
 * They come in the order of the file's, so that each of those is read once, and the file may be one that comes
 * through a pipe. A tensor that is left is never looked at; one that has to be zero is read too.
 */
#include "map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/name.h"

/* One tensor of ours. */
typedef struct mapped_tensor {
    int from;      /* of the file's; -1: zeros */
    bool is_as_is; /* else the view says where it lies */
    map_view view;
} mapped_tensor;

typedef struct mapped {
    source file;
    carry_map *map;
    weft_arena *arena;      /* of names */
    const char **names;     /* [file.n_tensors] without the map's prefix */
    int *by_name;           /* [file.n_tensors] */
    const map_rule **zero;  /* [file.n_tensors] the rule by which it has to be; NULL: none */
    bool *is_used;          /* [n_rules] */
    bool *wanted;           /* [file.n_tensors] taken, or to be zero: the others are never read */
    mapped_tensor *tensors; /* [source.n_tensors] */
    int room, at;           /* at: the file's tensor that is in the buffer; -1: none yet */
    void *buffer;
} mapped;

static weft_status fail(const mapped *m, weft_error *error, const char *a, const char *what,
                        const char *b, const char *then)
{
    return weft_fail(error, WEFT_USAGE, "%.120s is not taken by %.80s: %.100s %s%.100s%s",
                     m->file.path, m->map->path, a, what, b ? b : "", then);
}

/* ---- names of the file ----------------------------------------------------------------------- */

static int compare(const void *a, const void *b, void *names)
{
    return strcmp(((const char **)names)[*(const int *)a], ((const char **)names)[*(const int *)b]);
}

static bool has_name(const mapped *m, const char *name)
{
    int low = 0, high = m->file.n_tensors;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const int order = strcmp(m->names[m->by_name[middle]], name);
        if (order == 0) return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static weft_status set_names(mapped *m, weft_error *error)
{
    const size_t prefix = strlen(m->map->prefix), n = (size_t)m->file.n_tensors + 1;
    m->names = weft_arena_take(m->arena, n * sizeof *m->names);
    m->by_name = weft_arena_take(m->arena, n * sizeof *m->by_name);
    m->zero = weft_arena_take(m->arena, n * sizeof *m->zero);
    m->is_used = weft_arena_take(m->arena, (size_t)m->map->n_rules + 1);
    m->wanted = weft_arena_take(m->arena, n);
    if (!m->names || !m->by_name || !m->zero || !m->is_used || !m->wanted)
        return weft_fail_memory(error, n);
    for (int i = 0; i < m->file.n_tensors; i++) {
        const char *name = m->file.tensors[i].name;
        m->names[i] = strncmp(name, m->map->prefix, prefix) == 0 ? name + prefix : name;
        m->by_name[i] = i;
    }
    qsort_r(m->by_name, n - 1, sizeof *m->by_name, compare, m->names);
    return WEFT_OK;
}

/* ---- tensors of ours ------------------------------------------------------------------------- */

static weft_status add(source *ours, const carried *tensor, const mapped_tensor *where,
                       weft_error *error)
{
    mapped *m = ours->file;
    if (ours->n_tensors == m->room) {
        const int room = m->room ? 2 * m->room : 256;
        carried *more = realloc(ours->tensors, (size_t)room * sizeof *more);
        if (more) ours->tensors = more;
        mapped_tensor *places = realloc(m->tensors, (size_t)room * sizeof *places);
        if (places) m->tensors = places;
        if (!more || !places) return weft_fail_memory(error, (size_t)room * sizeof *places);
        m->room = room;
    }
    m->tensors[ours->n_tensors] = *where;
    ours->tensors[ours->n_tensors++] = *tensor;
    return WEFT_OK;
}

static weft_status check_numbers(const mapped *m, int i, weft_error *error)
{
    return carry_check_numbers(&m->file, &m->file.tensors[i], "a map can \"leave\" it", error);
}

static weft_status add_as_is(source *ours, int i, const char *name, weft_error *error)
{
    mapped *m = ours->file;
    carried tensor = m->file.tensors[i];
    m->wanted[i] = true;
    tensor.name = weft_arena_text(m->arena, "%s", name);
    if (!tensor.name) return weft_fail_memory(error, strlen(name));
    return add(ours, &tensor, &(mapped_tensor){.from = i, .is_as_is = true}, error);
}

/* "heads kv embed", with what the file's format has between names. */
static weft_status name_dims(const mapped *m, const map_view *view, carried *tensor,
                             weft_error *error)
{
    char text[WEFT_MAX_DIMS * (WEFT_MAX_NAME + 1) + 1] = "";
    tensor->n_dims = view->n_dims;
    memset(tensor->sizes, 0, sizeof tensor->sizes);
    for (int d = 0; d < view->n_dims; d++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%.*s%s", d > 0, m->file.separators,
                 view->dims[d].name);
        tensor->sizes[d] = view->dims[d].size;
    }
    tensor->dims = weft_arena_text(m->arena, "%s", text);
    return tensor->dims ? WEFT_OK : weft_fail_memory(error, sizeof text);
}

static weft_status add_parts(source *ours, int i, const map_rule *rule, const map_found *found,
                             weft_error *error)
{
    mapped *m = ours->file;
    const carried *from = &m->file.tensors[i];
    char name[MAP_MOST_NAME];
    m->wanted[i] = true;
    if (rule->has_dims) WEFT_TRY(check_numbers(m, i, error));
    for (int part = 0; part < rule->to.n; part++) {
        mapped_tensor where = {.from = i};
        carried tensor = *from;
        (void)map_fill(rule->to.at[part], found, name);
        if (!rule->has_dims) {
            WEFT_TRY(add_as_is(ours, i, name, error));
            continue;
        }
        WEFT_TRY(map_view_of(m->map, rule, &m->file, from, part, &where.view, error));
        WEFT_TRY(name_dims(m, &where.view, &tensor, error));
        tensor.name = weft_arena_text(m->arena, "%s", name);
        if (!tensor.name) return weft_fail_memory(error, strlen(name));
        WEFT_TRY(add(ours, &tensor, &where, error));
    }
    return WEFT_OK;
}

/* ---- every tensor of the file by every rule -------------------------------------------------- */

/* Of several names of a rule, the first that the file has. */
static bool is_meant(const mapped *m, const map_rule *rule, const char *name, map_found *found)
{
    char before[MAP_MOST_NAME];
    for (int a = 0; a < rule->from.n; a++) {
        if (!map_match(rule->from.at[a], name, found)) continue;
        for (int b = 0; b < a; b++)
            if (map_fill(rule->from.at[b], found, before) && has_name(m, before)) return false;
        return true;
    }
    return false;
}

static void count_reason(source *ours, const char *reason)
{
    if (!ours->left) ours->left = json_object();
    const json_int_t n = json_integer_value(json_object_get(ours->left, reason));
    json_object_set_new(ours->left, reason, json_integer(n + 1));
}

/* The pattern most like a name: numbers are compared as a key is. */
static const char *nearest_rule(const mapped *m, const char *name)
{
    char pattern[2 * MAP_MOST_NAME], *end = pattern;
    const char *patterns[256];
    int n = 0;
    for (const char *c = name; *c && end < pattern + MAP_MOST_NAME;) {
        const size_t digits = strspn(c, "0123456789");
        if (digits > 0)
            end = stpcpy(end, "{i}");
        else
            *end++ = *c;
        c += digits > 0 ? digits : 1;
    }
    *end = 0;
    for (int r = 0; r < m->map->n_rules; r++)
        for (int a = 0; a < m->map->rules[r].from.n && n < 256; a++)
            patterns[n++] = m->map->rules[r].from.at[a];
    return weft_nearest(pattern, patterns, n);
}

static weft_status place(source *ours, int i, weft_error *error)
{
    mapped *m = ours->file;
    int n_taken = 0, n_left = 0;
    for (int r = 0; r < m->map->n_rules; r++) {
        const map_rule *rule = &m->map->rules[r];
        map_found found;
        if (!is_meant(m, rule, m->names[i], &found)) continue;
        m->is_used[r] = true;
        n_taken += rule->to.n > 0;
        n_left += rule->to.n == 0;
        if (rule->zero) m->zero[i] = rule, m->wanted[i] = true;
        if (rule->to.n == 0) count_reason(ours, rule->zero ? rule->zero : rule->leave);
        if (rule->to.n > 0) WEFT_TRY(add_parts(ours, i, rule, &found, error));
    }
    const char *name = m->file.tensors[i].name;
    if (n_taken > 0 && n_left > 0)
        return fail(m, error, name, "is both taken and left", NULL, "; remove one of the two");
    if (n_taken + n_left > 0) return WEFT_OK;
    if (m->map->keeps_rest) return add_as_is(ours, i, name, error);
    const char *near = nearest_rule(m, m->names[i]);
    return fail(m, error, name,
                near ? "is not in the map; the nearest there is " : "is not in the map", near,
                ": take it, \"leave\" it and say why, or \"rest\": \"keep\"");
}

static weft_status check_rules(const mapped *m, weft_error *error)
{
    for (int r = 0; r < m->map->n_rules; r++) {
        const map_rule *rule = &m->map->rules[r];
        char name[MAP_MOST_NAME];
        map_found found = {0};
        if (m->is_used[r] || rule->is_optional || rule->to.n == 0) continue;
        for (const char *key = strchr(rule->from.at[0], '{'); key; key = strchr(key + 1, '{')) {
            snprintf(found.at[found.n].key, sizeof found.at[0].key, "%.*s",
                     (int)strcspn(key + 1, "}"), key + 1);
            strcpy(found.at[found.n++].digits, "0");
        }
        (void)map_fill(rule->from.at[0], &found, name);
        const char *near = weft_nearest(name, m->names, m->file.n_tensors);
        return fail(m, error, rule->from.at[0],
                    near ? "is not in the file; the nearest there is " : "is not in the file", near,
                    "");
    }
    return WEFT_OK;
}

static weft_status check_sizes(const source *ours, weft_error *error)
{
    const mapped *m = ours->file;
    const carry_map *map = m->map;
    for (int s = 0; s < map->n_sizes; s++) {
        if (map->sizes[s].is_used) continue;
        const char *names[256];
        int n = 0;
        for (int i = 0; i < ours->n_tensors; i++)
            for (int d = 0; d < m->tensors[i].view.n_dims && n < 256; d++)
                names[n++] = m->tensors[i].view.dims[d].name;
        const char *near = weft_nearest(map->sizes[s].name, names, n);
        return weft_fail(error, WEFT_USAGE,
                         "%.120s: a size is said of %.60s, and no dim that is made of %.120s is "
                         "called so%s%.60s",
                         map->path, map->sizes[s].name, m->file.path, near ? "; did you mean " : "",
                         near ? near : "");
    }
    return WEFT_OK;
}

static weft_status check_unique(const source *ours, weft_error *error)
{
    const mapped *m = ours->file;
    const size_t n = (size_t)ours->n_tensors;
    const char **names = calloc(n + 1, sizeof *names);
    int *order = calloc(n + 1, sizeof *order);
    weft_status status = names && order ? WEFT_OK : weft_fail_memory(error, n * sizeof *names);
    for (size_t i = 0; status == WEFT_OK && i < n; i++) {
        names[i] = ours->tensors[i].name;
        order[i] = (int)i;
    }
    if (status == WEFT_OK) qsort_r(order, n, sizeof *order, compare, names);
    for (size_t i = 1; status == WEFT_OK && i < n; i++) {
        const int a = order[i - 1], b = order[i];
        if (strcmp(names[a], names[b]) == 0)
            status = weft_fail(error, WEFT_USAGE,
                               "%.120s is not taken by %.80s: %.100s and %.100s would both be "
                               "called %.100s",
                               m->file.path, m->map->path, m->file.tensors[m->tensors[a].from].name,
                               m->file.tensors[m->tensors[b].from].name, names[a]);
    }
    free(names);
    free(order);
    return status;
}

static weft_status add_slots(source *ours, weft_error *error)
{
    mapped *m = ours->file;
    const int n = ours->n_tensors;
    for (int i = 0; i < n; i++) {
        for (int s = 0; s < m->map->slots.n; s++) {
            carried slot = ours->tensors[i];
            slot.name = weft_arena_text(m->arena, "%s/%s", slot.name, m->map->slots.at[s]);
            slot.type = NULL;
            if (!slot.name) return weft_fail_memory(error, 0);
            WEFT_TRY(add(ours, &slot, &(mapped_tensor){.from = -1}, error));
        }
    }
    return WEFT_OK;
}

static weft_status lay_over(source *ours, weft_error *error)
{
    mapped *m = ours->file;
    WEFT_TRY(set_names(m, error));
    for (int i = 0; i < m->file.n_tensors; i++)
        WEFT_TRY(place(ours, i, error));
    WEFT_TRY(check_rules(m, error));
    WEFT_TRY(check_sizes(ours, error));
    WEFT_TRY(check_unique(ours, error));
    for (int i = 0; i < m->file.n_tensors; i++)
        if (m->wanted[i]) WEFT_TRY(check_numbers(m, i, error));
    if (m->file.choose) WEFT_TRY(m->file.choose(&m->file, m->wanted, error));
    return add_slots(ours, error);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t count_of(const carried *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->n_dims; d++)
        count *= t->sizes[d];
    return count;
}

static bool is_zero(const carried *t, const void *numbers, int64_t count)
{
    bool is_good = true;
    for (int64_t i = 0; i < count && is_good; i++)
        is_good = weft_dtype_get(t->dtype, numbers, i) == 0;
    return is_good;
}

/* The file's next tensor into the buffer. */
static weft_status read_next(mapped *m, weft_error *error)
{
    const carried *t = &m->file.tensors[++m->at];
    if (!m->wanted[m->at]) return WEFT_OK;
    const int64_t count = count_of(t);
    const size_t bytes = (size_t)count * weft_dtype_bytes(t->dtype);
    free(m->buffer);
    m->buffer = malloc(bytes + 1);
    if (!m->buffer) return weft_fail_memory(error, bytes);
    WEFT_TRY(m->file.read(&m->file, m->at, m->buffer, error));
    const map_rule *zero = m->zero[m->at];
    if (!zero || is_zero(t, m->buffer, count)) return WEFT_OK;
    return fail(m, error, t->name, "is not zero, as it has to be: ", zero->zero, "");
}

static weft_status read_tensor(source *ours, int i, void *buffer, weft_error *error)
{
    mapped *m = ours->file;
    const mapped_tensor *where = &m->tensors[i];
    const carried *t = &ours->tensors[i];
    const int width = (int)weft_dtype_bytes(t->dtype);
    while (m->at < where->from)
        WEFT_TRY(read_next(m, error));
    if (where->from < 0)
        memset(buffer, 0, (size_t)count_of(t) * (size_t)width);
    else if (where->is_as_is)
        memcpy(buffer, m->buffer, (size_t)count_of(t) * (size_t)width);
    else
        map_view_copy(&where->view, width, m->buffer, buffer);
    return WEFT_OK;
}

static weft_status finish(source *ours, weft_error *error)
{
    mapped *m = ours->file;
    while (m->at + 1 < m->file.n_tensors)
        WEFT_TRY(read_next(m, error));
    return m->file.finish ? m->file.finish(&m->file, error) : WEFT_OK;
}

static void close_mapped(source *ours)
{
    mapped *m = ours->file;
    if (m) {
        if (m->file.close) m->file.close(&m->file);
        weft_arena_destroy(&m->arena);
        free(m->tensors);
        free(m->buffer);
    }
    free(m);
    free(ours->tensors);
    json_decref(ours->left);
    *ours = (source){0};
}

weft_status carry_map_lay(carry_map *map, source *from, weft_error *error)
{
    source ours = *from;
    mapped *m = calloc(1, sizeof *m);
    if (!m || !(m->arena = weft_arena_create())) {
        free(m);
        return weft_fail_memory(error, sizeof *m);
    }
    *m = (mapped){.file = *from, .map = map, .arena = m->arena, .at = -1};
    ours.n_tensors = 0;
    ours.tensors = NULL;
    ours.file = m;
    ours.knows_slots = false;
    ours.read = read_tensor;
    ours.choose = NULL; /* the map has chosen */
    ours.finish = finish;
    ours.close = close_mapped;
    const weft_status status = lay_over(&ours, error);
    *from = ours;
    return status;
}
