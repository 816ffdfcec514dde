/* kv_cache: attention to keys and values that variables keep from run to run.
 *
 * A row is added where zeros are, so that it is all that is touched (scatter_add and unpick, which begin with the variable); but
 * where a scan stacks the caches of several layers.
 */
#include <string.h>

#include "ir.h"
#include "op.h"
#include "weft/layers.h"
#include "weft/ops.h"

/* ---- what was told ------------------------------------------------------------------------------- */

/* The rows that are kept are the first dim; the others are those of a row of x. */
static weft_shape wanted(weft_value kept, weft_value x, const char *rows)
{
    const weft_shape *is = weft_shape_of(kept), row = weft_shape_without(weft_shape_of(x), rows);
    weft_shape all = {.n_dims = row.n_dims + 1};
    all.dims[0] = is->n_dims > 0 ? is->dims[0] : (weft_dim){"memory", 1};
    memcpy(all.dims + 1, row.dims, (size_t)row.n_dims * sizeof *row.dims);
    return all;
}

static bool check_dims(weft_value kept, weft_value x, const char *rows, const char *what)
{
    char texts[2][160];
    const weft_shape *is = weft_shape_of(kept), wants = wanted(kept, x, rows);
    bool same = is->n_dims == wants.n_dims;
    for (int d = 0; same && d < wants.n_dims; d++)
        same = weft_dim_of(kept, wants.dims[d].name).size == wants.dims[d].size;
    weft_shape_print(is, texts[0], sizeof texts[0]);
    weft_shape_print(&wants, texts[1], sizeof texts[1]);
    if (!same)
        weft_graph_fail(x.graph,
                        "kv_attend: the kept %s are %s, and these rows make them %s: declare a "
                        "variable of these dims, the rows that are kept first",
                        what, texts[0], texts[1]);
    return same;
}

static bool check_kept(weft_value kept, weft_value x, const char *rows, const char *what)
{
    const bool has_rows = weft_dim_of(x, rows).size > 0;
    if (!has_rows)
        weft_graph_fail(x.graph, "kv_attend: the %s have no %.63s, which their rows are along",
                        what, rows);
    else if (kept.id == 0 || kept.graph != x.graph)
        weft_graph_fail(x.graph, "kv_attend: the cache keeps no %s; give it a variable of %s", what,
                        what);
    return has_rows && weft_graph_status(x.graph) == WEFT_OK && check_dims(kept, x, rows, what);
}

/* A number, or of a step one for each of some rows of x, which are as k's. */
static bool check_place(const weft_kv_cache *cache, weft_value k, const char *feature)
{
    const weft_value place = cache->place;
    const bool is_number = place.id != 0 && place.graph == k.graph &&
                           weft_dtype_of(place) == WEFT_I32 &&
                           (cache->is_step || weft_shape_of(place)->n_dims == 0);
    if (!is_number) {
        weft_graph_fail(k.graph,
                        "kv_attend: the cache's place is no number; it is an i32 scalar, as "
                        "of weft_input(graph, \"place\", WEFT_I32, WEFT_SCALAR), and in a "
                        "step it may have dims of its rows");
        return false;
    }
    const weft_shape *of_place = weft_shape_of(place);
    for (int d = 0; d < of_place->n_dims; d++) {
        const weft_dim dim = of_place->dims[d];
        if (weft_dim_of(k, dim.name).size == dim.size && strcmp(dim.name, feature) != 0) continue;
        weft_graph_fail(k.graph,
                        "kv_attend: the cache's place has %.63s:%lld, which is no dim that numbers "
                        "rows of the keys; it has some of these, or none",
                        dim.name, (long long)dim.size);
        return false;
    }
    return true;
}

/* Each row of a step stands at a place of its own, where place says so. */
static bool places_rows(const weft_kv_cache *cache, const char *rows)
{
    return weft_shape_find(weft_shape_of(cache->place), rows) >= 0;
}

/* What a window and the steps behind it see alike. */
static bool check_options(const weft_kv_cache *cache, weft_value q,
                          const weft_attention_options *options)
{
    const bool is_placed = cache->is_step && places_rows(cache, options->query.name);
    const char *has = options->mask.id != 0   ? "a mask"
                      : options->bias.id != 0 ? "a bias"
                      : options->window != 0  ? "a window"
                      : !options->causal      ? "rows that see later ones"
                                              : NULL;
    const weft_dim rows = cache->is_step ? options->query : options->memory;
    const int64_t n = cache->is_step ? 1 : weft_shape_of(cache->kept.key)->dims[0].size;
    if (has != NULL)
        weft_graph_fail(q.graph,
                        "kv_attend: the attention has %s; with kept rows it is causal, and has no "
                        "mask, bias or window: leave these out, or call weft_attention_with",
                        has);
    else if (rows.size != n && !is_placed)
        weft_graph_fail(
            q.graph,
            "kv_attend: %.63s has %lld rows; a step has 1 row, or a place for each, and "
            "a window as many as are kept, here %lld",
            rows.name, (long long)rows.size, (long long)n);
    return weft_graph_status(q.graph) == WEFT_OK;
}

static bool check(const weft_kv_cache *cache, weft_value q, weft_value k, weft_value v,
                  const weft_attention_options *options)
{
    if (cache == NULL || options == NULL || options->memory.name == NULL ||
        options->query.name == NULL) {
        weft_graph_fail(q.graph,
                        "kv_attend: %s; it is called by a layer, as .attend = "
                        "weft_kv_attend, .attend_context = &cache",
                        cache == NULL ? "the cache is NULL" : "there are no dims of attention");
        return false;
    }
    const char *rows = options->memory.name;
    return check_place(cache, k, options->feature.name) &&
           check_kept(cache->kept.key, k, rows, "keys") &&
           check_kept(cache->kept.value, v, rows, "values") && check_options(cache, q, options);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static weft_dim memory_of(weft_value kept)
{
    return weft_shape_of(kept)->dims[0];
}

/* i32 [memory]: rows below the place; up to it. */
static weft_value rows_before(const weft_kv_cache *cache, weft_dim memory)
{
    return weft_less(weft_iota(cache->place.graph, WEFT_I32, memory), cache->place);
}
static weft_value rows_through(const weft_kv_cache *cache, weft_dim memory)
{
    return weft_less_equal(weft_iota(cache->place.graph, WEFT_I32, memory), cache->place);
}

/* Of a window the first rows, zeros behind. */
static weft_value of_window(const weft_kv_cache *cache, weft_value kept, weft_value x,
                            const char *rows)
{
    (void)rows;
    x = weft_cast(x, weft_dtype_of(kept));
    const weft_value zero = weft_constant(x.graph, weft_dtype_of(x), WEFT_SCALAR, 0.0);
    return weft_where(rows_before(cache, memory_of(kept)), x, zero);
}

/* The rows of a step join those that are kept: zeros are where they go. One outside goes nowhere. `rows` numbers them. */
static weft_value of_step(const weft_kv_cache *cache, weft_value kept, weft_value x,
                          const char *rows)
{
    const weft_dim memory = memory_of(kept);
    const weft_dtype dtype = weft_dtype_of(kept);
    const weft_shape *shape = weft_shape_of(kept);
    if (!places_rows(cache, rows))
        x = weft_sum(weft_shape_without(shape, memory.name), x); /* of one */
    x = weft_cast(x, dtype);
    const bool is_one = weft_shape_of(cache->place)->n_dims == 0;
    return weft_add(kept, is_one ? weft_scatter_add(x, cache->place, memory)
                                 : weft_unpick(*shape, x, cache->place, memory));
}

/* A step's query rows see the rows that are kept, each its own the last of them. */
static weft_value attend_kept(const weft_kv_cache *cache, weft_value q,
                              const weft_attention_options *options)
{
    weft_attention_options seen = *options;
    seen.memory = memory_of(cache->kept.key);
    seen.causal = false;
    seen.mask = rows_through(cache, seen.memory);
    const weft_dtype dtype = weft_dtype_of(cache->kept.key);
    return weft_cast(
        weft_attention_with(weft_cast(q, dtype), cache->next.key, cache->next.value, &seen),
        weft_dtype_of(q));
}

weft_value weft_kv_attend(void *context, weft_value q, weft_value k, weft_value v,
                          const weft_attention_options *options)
{
    weft_kv_cache *cache = context;
    if (q.id == 0 || k.id == 0 || v.id == 0 || !check(cache, q, k, v, options))
        return weft_no_value(q.graph);
    const weft_kv_rows kept = cache->kept;
    weft_value (*next)(const weft_kv_cache *, weft_value, weft_value, const char *) =
        cache->is_step ? of_step : of_window;
    cache->next.key = next(cache, kept.key, k, options->memory.name);
    cache->next.value = next(cache, kept.value, v, options->memory.name);
    return cache->is_step ? attend_kept(cache, q, options) : weft_attention_with(q, k, v, options);
}
