/* map_view: where the elements of one tensor of ours lie in one of the file's.
 *
 * Every dim of the file's is one or several of ours, the last the fastest ("heads*kv"). One of them may be cut into
 * parts, and each part is one or several again. The rest is put into an order. All of it changes sizes and strides
 * only; the elements are copied once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "map.h"
#include "weft/name.h"

/* One tensor being looked at. */
typedef struct looking {
    carry_map *map;
    const map_rule *rule;
    const source *file;
    const carried *tensor;
    weft_error *error;
} looking;

static WEFT_FORMAT(2, 3) weft_status fail(const looking *l, const char *format, ...)
{
    char what[300], sizes[160] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    for (int d = 0; d < l->tensor->n_dims; d++) {
        const size_t used = strlen(sizes);
        snprintf(sizes + used, sizeof sizes - used, "%s%lld", d ? ", " : "",
                 (long long)l->tensor->sizes[d]);
    }
    return weft_fail(l->error, WEFT_USAGE, "%.80s is [%s] in %.120s: %s (%.80s)", l->tensor->name,
                     sizes, l->file->path, what, l->map->path);
}

/* ---- one dim that is several ----------------------------------------------------------------- */

/* 0: it is not said. */
static int64_t size_said(carry_map *map, const char *name)
{
    for (int i = 0; i < map->n_sizes; i++)
        if (strcmp(map->sizes[i].name, name) == 0) {
            map->sizes[i].is_used = true;
            return map->sizes[i].size;
        }
    return 0;
}

/* The names in "heads*kv", and the sizes that are said; 0 for the one that is not. */
typedef struct factors {
    int n, unknown; /* unknown: which; -1: none */
    const char *names[MAP_MOST_FACTORS];
    int64_t sizes[MAP_MOST_FACTORS], product; /* of those that are said */
} factors;

static weft_status read_factors(const looking *l, const char *text, factors *f)
{
    char words[400];
    char *rest = NULL;
    *f = (factors){.unknown = -1, .product = 1};
    snprintf(words, sizeof words, "%s", text);
    for (char *word = strtok_r(words, "*", &rest); word; word = strtok_r(NULL, "*", &rest)) {
        if (f->n == MAP_MOST_FACTORS || strlen(text) >= sizeof words)
            return fail(l, "\"%.60s...\" has too many dims; at most %d", text, MAP_MOST_FACTORS);
        WEFT_TRY(weft_name_check("dim", word, l->error));
        const int64_t size = f->sizes[f->n] = size_said(l->map, word);
        if ((f->names[f->n] = weft_arena_intern(l->map->arena, word)) == NULL)
            return weft_fail_memory(l->error, strlen(word));
        if (size == 0 && f->unknown >= 0)
            return fail(l,
                        "the sizes of %.60s and %.60s in \"%.60s\" are both unknown; say one: "
                        "--sizes %.60s=...",
                        f->names[f->unknown], word, text, f->names[f->unknown]);
        if (size == 0)
            f->unknown = f->n;
        else if (__builtin_mul_overflow(f->product, size, &f->product))
            return fail(l, "the sizes of \"%.60s\" are too large", text);
        f->n++;
    }
    return WEFT_OK;
}

/* The factors of a dim of `size` elements that are `stride` apart, behind the dims of the view. */
static weft_status add_factors(const looking *l, const char *text, int64_t size, int64_t stride,
                               map_view *view)
{
    factors f;
    WEFT_TRY(read_factors(l, text, &f));
    if (f.unknown >= 0 ? size % f.product != 0 : size != f.product)
        return fail(l, "\"%.80s\" is %s%lld by the sizes that are said, and it is %lld there", text,
                    f.unknown >= 0 ? "a multiple of " : "", (long long)f.product, (long long)size);
    if (f.unknown >= 0) f.sizes[f.unknown] = size / f.product;
    if (view->n_dims + f.n > MAP_MOST_FACTORS)
        return fail(l, "it becomes more than %d dims", MAP_MOST_FACTORS);
    for (int i = f.n - 1; i >= 0; i--) {
        view->dims[view->n_dims + i] = (map_dim){f.names[i], f.sizes[i], stride};
        stride *= f.sizes[i];
    }
    view->n_dims += f.n;
    return WEFT_OK;
}

weft_status map_size_of(carry_map *map, const char *text, int64_t *size, const char **unknown,
                        weft_error *error)
{
    factors f;
    const source none = {.path = map->path};
    const carried nothing = {.name = text};
    const looking l = {map, NULL, &none, &nothing, error};
    WEFT_TRY(read_factors(&l, text, &f));
    *unknown = f.unknown >= 0 ? f.names[f.unknown] : NULL;
    *size = f.unknown >= 0 ? 0 : f.product;
    return WEFT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static weft_status name_dims(const looking *l, map_view *view)
{
    const carried *t = l->tensor;
    int64_t stride[WEFT_MAX_DIMS], next = 1;
    if (l->rule->dims.n != t->n_dims)
        return fail(l, "these are %d dims, and the map names %d", t->n_dims, l->rule->dims.n);
    for (int d = t->n_dims - 1; d >= 0; d--) {
        stride[d] = next;
        next *= t->sizes[d];
    }
    for (int d = 0; d < t->n_dims; d++)
        WEFT_TRY(add_factors(l, l->rule->dims.at[d], t->sizes[d], stride[d], view));
    return WEFT_OK;
}

static int find_dim(const map_view *view, const char *name)
{
    for (int d = 0; d < view->n_dims; d++)
        if (strcmp(view->dims[d].name, name) == 0) return d;
    return -1;
}

static weft_status fail_dim(const looking *l, const map_view *view, const char *what,
                            const char *name)
{
    const char *names[MAP_MOST_FACTORS];
    for (int d = 0; d < view->n_dims; d++)
        names[d] = view->dims[d].name;
    const char *near = weft_nearest(name, names, view->n_dims);
    return fail(l, "%s names %.60s, which is none of its dims%s%.60s", what, name,
                near ? "; did you mean " : "", near ? near : "");
}

static bool is_alike(const map_words *words)
{
    for (int i = 1; i < words->n; i++)
        if (strcmp(words->at[i], words->at[0]) != 0) return false;
    return true;
}

/* Where part `part` begins and how much it has: equal parts when all are written alike, else by their sizes; at most one
 * of these may be unknown, and has the rest. */
static weft_status find_part(const looking *l, int64_t size, int part, int64_t *begin,
                             int64_t *count)
{
    const map_words *parts = &l->rule->parts;
    int64_t sum = 0, before = 0, own = 0; /* of those that are known */
    int unknown = -1;
    *begin = part * (size / parts->n);
    *count = size / parts->n;
    if (is_alike(parts) && size % parts->n == 0) return WEFT_OK;
    if (is_alike(parts))
        return fail(l, "%.60s has %lld, which cannot be split into %d equal parts", l->rule->split,
                    (long long)size, parts->n);
    for (int p = 0; p < parts->n; p++) {
        factors f;
        WEFT_TRY(read_factors(l, parts->at[p], &f));
        const int64_t known = f.unknown >= 0 ? 0 : f.product;
        if (f.unknown >= 0 && unknown >= 0)
            return fail(l,
                        "the sizes of the parts \"%.60s\" and \"%.60s\" are both unknown; say one "
                        "with --sizes",
                        parts->at[unknown], parts->at[p]);
        if (f.unknown >= 0) unknown = p;
        if (known > size) sum = size + 1;
        if (sum <= size) sum += known;
        if (p < part) before += known;
        if (p == part) own = known;
    }
    if (unknown >= 0 ? sum >= size : sum != size)
        return fail(l, "the parts of %.60s are %s%lld together, and it has %lld", l->rule->split,
                    unknown >= 0 ? "more than " : "", (long long)sum, (long long)size);
    *begin = before + (unknown >= 0 && unknown < part ? size - sum : 0);
    *count = unknown == part ? size - sum : own;
    return WEFT_OK;
}

static weft_status cut(const looking *l, int part, map_view *view)
{
    map_view result = {.begin = view->begin};
    const int at = find_dim(view, l->rule->split);
    int64_t begin = 0, count = 0;
    if (at < 0) return fail_dim(l, view, "\"split\"", l->rule->split);
    const map_dim dim = view->dims[at];
    WEFT_TRY(find_part(l, dim.size, part, &begin, &count));
    memcpy(result.dims, view->dims, (size_t)at * sizeof *view->dims);
    result.n_dims = at;
    result.begin += begin * dim.stride;
    WEFT_TRY(add_factors(l, l->rule->parts.at[part], count, dim.stride, &result));
    if (result.n_dims + view->n_dims - at - 1 > MAP_MOST_FACTORS)
        return fail(l, "it becomes more than %d dims", MAP_MOST_FACTORS);
    for (int d = at + 1; d < view->n_dims; d++)
        result.dims[result.n_dims++] = view->dims[d];
    *view = result;
    return WEFT_OK;
}

static weft_status put_in_order(const looking *l, map_view *view)
{
    const map_words *order = &l->rule->order;
    map_view result = {.n_dims = view->n_dims, .begin = view->begin};
    if (order->n != view->n_dims)
        return fail(l, "\"order\" names %d of the %d dims that it becomes; it names them all",
                    order->n, view->n_dims);
    for (int d = 0; d < order->n; d++) {
        const int from = find_dim(view, order->at[d]);
        if (from < 0) return fail_dim(l, view, "\"order\"", order->at[d]);
        result.dims[d] = view->dims[from];
    }
    *view = result;
    return WEFT_OK;
}

/* Of size 1, where the map says that such a one is no dim. */
static void drop_singles(const looking *l, map_view *view)
{
    int n = 0;
    for (int d = 0; d < view->n_dims; d++) {
        bool is_single = false;
        for (int s = 0; s < l->map->singles.n; s++)
            is_single |= strcmp(l->map->singles.at[s], view->dims[d].name) == 0;
        if (!is_single || view->dims[d].size > 1) view->dims[n++] = view->dims[d];
    }
    view->n_dims = n;
}

static weft_status check_dims(const looking *l, const map_view *view)
{
    if (view->n_dims > WEFT_MAX_DIMS)
        return fail(l, "it becomes %d dims; a tensor has at most %d", view->n_dims, WEFT_MAX_DIMS);
    for (int d = 0; d < view->n_dims; d++)
        if (find_dim(view, view->dims[d].name) != d) /* it finds the first */
            return fail(l,
                        "two of its dims are called %.60s; dims of a tensor have different names",
                        view->dims[d].name);
    return WEFT_OK;
}

weft_status map_view_of(carry_map *map, const map_rule *rule, const source *file, const carried *t,
                        int part, map_view *view, weft_error *error)
{
    const looking l = {map, rule, file, t, error};
    *view = (map_view){0};
    WEFT_TRY(name_dims(&l, view));
    if (rule->split) WEFT_TRY(cut(&l, part, view));
    if (rule->order.n > 0) WEFT_TRY(put_in_order(&l, view));
    drop_singles(&l, view);
    return check_dims(&l, view);
}

/* ---- the elements ---------------------------------------------------------------------------- */

#define COPY(name, back, T)                                                                        \
    static void name(char *theirs, int64_t stride, int64_t count, char *ours)                      \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((T *)ours)[i] = ((const T *)theirs)[i * stride];                                      \
    }                                                                                              \
    static void back(char *theirs, int64_t stride, int64_t count, char *ours)                      \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((T *)theirs)[i * stride] = ((const T *)ours)[i];                                      \
    }
COPY(copy_1, spread_1, uint8_t)
COPY(copy_2, spread_2, uint16_t)
COPY(copy_4, spread_4, uint32_t)
COPY(copy_8, spread_8, uint64_t)
/* By the bytes of an element. */
typedef void move_run(char *theirs, int64_t stride, int64_t count, char *ours);
static move_run *const copies[] = {[1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8};
static move_run *const spreads[] = {[1] = spread_1, [2] = spread_2, [4] = spread_4, [8] = spread_8};

/* Run by run of the last dim: where it lies in theirs, and one behind the other in ours. */
static void move_all(const map_view *view, int width, move_run *move, char *theirs, char *ours)
{
    const int last = view->n_dims - 1;
    const map_dim one = {"", 1, 1}, *inner = last >= 0 ? &view->dims[last] : &one;
    int64_t at = view->begin, index[MAP_MOST_FACTORS] = {0};
    for (;;) {
        int d = last - 1;
        move(theirs + at * width, inner->stride, inner->size, ours);
        ours += inner->size * width;
        for (; d >= 0; d--) { /* to the next run */
            at += view->dims[d].stride;
            if (++index[d] < view->dims[d].size) break;
            at -= index[d] * view->dims[d].stride;
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

void map_view_copy(const map_view *view, int width, const void *from, void *to)
{
    move_all(view, width, copies[width], (char *)from, to); /* which is only read */
}

void map_view_spread(const map_view *view, int width, const void *from, void *to)
{
    move_all(view, width, spreads[width], to, (char *)from); /* as well */
}
