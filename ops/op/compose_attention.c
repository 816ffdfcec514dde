/* compose_attention.c: where rows of q and k stand, as attention is told: rotary positions, and ALiBi's bias.
 *
 * source  Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding"; Press et al. 2022, "Train Short, Test
 *         Long: Attention with Linear Biases Enables Input Length Extrapolation"
 */
#include <math.h>
#include <string.h>

#include "op.h"
#include "weft/ops.h"

static weft_value number(weft_graph *graph, weft_dtype dtype, double value)
{
    return weft_constant(graph, dtype, WEFT_SCALAR, value);
}

/* ---- rotary ----------------------------------------------------------------------------------- */

static bool check_positions(weft_value x, weft_value positions, const char *feature)
{
    const weft_shape *of_x = weft_shape_of(x), *shape = weft_shape_of(positions);
    char texts[2][160];
    bool has_all = weft_shape_find(shape, feature) < 0;
    for (int d = 0; d < shape->n_dims; d++)
        has_all = has_all && weft_dim_of(x, shape->dims[d].name).size == shape->dims[d].size;
    weft_shape_print(shape, texts[0], sizeof texts[0]);
    weft_shape_print(of_x, texts[1], sizeof texts[1]);
    if (!has_all)
        weft_graph_fail(x.graph,
                        "rope: positions are %s and x is %s; they number rows, so they have any of "
                        "x's dims but %s, which is turned",
                        texts[0], texts[1], feature);
    else if (weft_dtype_of(positions) != WEFT_I32)
        weft_graph_fail(x.graph, "rope: positions are %s; weft_cast them to i32",
                        weft_dtype_name(weft_dtype_of(positions)));
    return weft_graph_status(x.graph) == WEFT_OK;
}

static bool check_slower(weft_value x, const weft_rope_options *o)
{
    if (!isfinite(o->factor) || o->factor < 0 || !isfinite(o->rows) || o->rows < 0)
        weft_graph_fail(x.graph,
                        "rope: the factor is %g and rows are %g; both are positive numbers, or 0",
                        o->factor, o->rows);
    else if (o->rows > 0 && !(isfinite(o->high) && o->low >= 0 && o->high > o->low))
        weft_graph_fail(x.graph,
                        "rope: low is %g and high %g; low is at least 0, and high more than low",
                        o->low, o->high);
    return weft_graph_status(x.graph) == WEFT_OK;
}

static bool check_rope(weft_value x, weft_dim feature, double base)
{
    const weft_dim found = weft_dim_of(x, feature.name);
    if (found.size != feature.size) {
        char text[160];
        weft_shape_print(weft_shape_of(x), text, sizeof text);
        weft_graph_fail(x.graph, "rope: feature is passed as %s:%lld and x is %s; pass a dim of x",
                        feature.name, (long long)feature.size, text);
    } else if (feature.size % 2 != 0) {
        weft_graph_fail(x.graph,
                        "rope: %s has %lld elements; they are turned in pairs, so pass a dim of an "
                        "even number",
                        feature.name, (long long)feature.size);
    } else if (!isfinite(base) || base < 0) {
        weft_graph_fail(x.graph, "rope: the base is %g; it is a positive number, or 0 for 10000",
                        base);
    }
    return weft_graph_status(x.graph) == WEFT_OK;
}

/* By what a place turns each pair, `slow` at first. */
static weft_value slower(weft_value slow, const weft_rope_options *o)
{
    const double least = o->factor == 0 ? 1.0 : 1.0 / o->factor;
    if (least == 1.0) return slow;
    if (o->rows == 0) return weft_scale(slow, least);
    const double scale = 1.0 / (o->high - o->low), turn = 2.0 * acos(-1.0);
    weft_value turns = weft_scale(slow, o->rows / turn * scale);
    weft_value keeps = weft_clamp(weft_shift(turns, -o->low * scale), 0.0, 1.0);
    return weft_mul(slow, weft_shift(weft_scale(keeps, 1.0 - least), least));
}

weft_value weft_rope(weft_value x, weft_value positions, weft_dim feature, double base)
{
    return weft_rope_with(x, positions, feature, &(weft_rope_options){.base = base});
}

weft_value weft_rope_with(weft_value x, weft_value positions, weft_dim feature,
                          const weft_rope_options *options)
{
    const weft_rope_options o = options ? *options : (weft_rope_options){0};
    const double base = o.base;
    weft_graph *graph = x.graph;
    weft_dim_attributes taken;
    if (x.id == 0 || positions.id == 0 || !weft_graph_dim(graph, "rope", feature, &taken) ||
        !weft_takes_float(x, "rope"))
        return weft_no_value(graph);
    feature = (weft_dim){taken.dim, taken.size};
    if (!check_rope(x, feature, base) || !check_slower(x, &o) ||
        !check_positions(x, positions, feature.name))
        return weft_no_value(graph);
    const weft_dtype dtype = weft_dtype_computes(weft_dtype_of(x));
    const int64_t half = feature.size / 2;
    weft_value f = weft_iota(graph, dtype, feature);
    weft_value is_first = weft_less(f, number(graph, dtype, (double)half));
    weft_value pair = weft_where(is_first, f, weft_shift(f, -(double)half));
    weft_value slow =
        weft_exp(weft_scale(pair, -2.0 * log(base == 0 ? 10000.0 : base) / (double)feature.size));
    weft_value angle = weft_mul(weft_cast(positions, dtype), slower(slow, &o)),
               sine = weft_sin(angle);
    weft_value other = weft_roll(weft_wide(x), feature, half); /* of the pair */
    weft_value turned = weft_add(weft_mul(weft_wide(x), weft_cos(angle)),
                                 weft_mul(other, weft_where(is_first, weft_neg(sine), sine)));
    return weft_cast(turned, weft_dtype_of(x));
}

/* ---- ALiBi ------------------------------------------------------------------------------------ */

/* log2 of 1 / slope of each head. Of n heads, n a power of two, 8 (h + 1) / n; of others those of the power of two below, and
 * then every second one of those of the power above. */
static weft_value steepness(weft_graph *graph, weft_dtype dtype, weft_dim heads)
{
    int64_t below = 1;
    while (2 * below <= heads.size)
        below *= 2;
    const double n = (double)below;
    weft_value h = weft_iota(graph, dtype, heads);
    weft_value of_below = weft_scale(weft_shift(h, 1.0), 8.0 / n);
    weft_value between = weft_scale(weft_shift(weft_shift(h, -n), 0.5), 8.0 / n);
    return weft_where(weft_less(h, number(graph, dtype, n)), of_below, between);
}

weft_value weft_alibi(weft_graph *graph, weft_dtype dtype, weft_dim heads, weft_dim query,
                      weft_dim memory)
{
    weft_dim_attributes taken[3];
    const weft_dim dims[3] = {heads, query, memory};
    if (weft_graph_status(graph) != WEFT_OK) return weft_no_value(graph);
    for (int d = 0; d < 3; d++)
        if (!weft_graph_dim(graph, "alibi", dims[d], &taken[d])) return weft_no_value(graph);
    if (!weft_takes_float(weft_constant(graph, dtype, WEFT_SCALAR, 0.0), "alibi"))
        return weft_no_value(graph);
    for (int d = 1; d < 3; d++)
        if (strcmp(taken[0].dim, taken[d].dim) == 0)
            return weft_graph_fail(graph,
                                   "alibi: heads and %s are both %s, and the bias has a dim for "
                                   "each; pass the dim that numbers the heads",
                                   d == 1 ? "query" : "memory", taken[0].dim);
    if (strcmp(taken[1].dim, taken[2].dim) == 0)
        return weft_graph_fail(graph,
                               "alibi: query and memory are both %s, and the bias has a dim for "
                               "each; give the memory rows another name, which attention is passed "
                               "as column",
                               taken[1].dim);
    const weft_dtype wide = weft_dtype_computes(dtype);
    weft_value rows = weft_iota(graph, wide, query), columns = weft_iota(graph, wide, memory);
    weft_value slope = weft_exp(weft_scale(steepness(graph, wide, heads), -log(2.0)));
    slope = weft_broadcast_to(slope, WEFT_DIMS(heads, query, memory));
    return weft_cast(weft_neg(weft_mul(slope, weft_abs(weft_sub(rows, columns)))), dtype);
}
