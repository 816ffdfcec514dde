/* multi_head: attention between projections of x and of what it attends to. */
#include <stdio.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"

/* What one row of heads has: [heads, group, feature], or without the group. */
static weft_shape heads_of(const weft_multi_head_options *o, bool is_grouped)
{
    return is_grouped && o->group.name != NULL ? WEFT_DIMS(o->heads, o->group, o->attention.feature)
                                               : WEFT_DIMS(o->heads, o->attention.feature);
}

static weft_value projected(const weft_layer *l, weft_value x, const weft_multi_head_options *o,
                            const char *name, weft_shape heads)
{
    char whole[2 * WEFT_MAX_PATH];
    snprintf(whole, sizeof whole, "%.*s/%s", WEFT_MAX_PATH + 1, l->name, name);
    return weft_dense(x, &(weft_dense_options){.name = whole,
                                               .in = WEFT_DIMS(o->embed),
                                               .out = heads,
                                               .initializer = o->initializer,
                                               .lacks_bias = o->lacks_bias,
                                               .source = o->source});
}

static weft_value written(const weft_layer *l, weft_value mixed, const weft_multi_head_options *o)
{
    char whole[2 * WEFT_MAX_PATH];
    snprintf(whole, sizeof whole, "%.*s/out", WEFT_MAX_PATH + 1, l->name);
    return weft_dense(mixed, &(weft_dense_options){.name = whole,
                                                   .in = heads_of(o, true),
                                                   .out = WEFT_DIMS(o->embed),
                                                   .initializer = o->initializer,
                                                   .scale = o->out_scale,
                                                   .lacks_bias = o->lacks_bias,
                                                   .source = o->source});
}

/* Rows turned by their places. */
static weft_value turned(weft_value x, weft_dim rows, const weft_multi_head_options *o)
{
    if (!o->is_rotary || x.id == 0) return x;
    const weft_value places =
        o->positions.id != 0 ? o->positions : weft_iota(x.graph, WEFT_I32, rows);
    return weft_rope_with(x, places, o->attention.feature, &o->rotary);
}

static weft_value attended(weft_value q, weft_value k, weft_value v,
                           const weft_multi_head_options *o)
{
    q = turned(q, o->attention.query, o), k = turned(k, o->attention.memory, o);
    if (o->attend == NULL || q.id == 0 || k.id == 0 || v.id == 0)
        return weft_attention_with(q, k, v, &o->attention);
    return o->attend(o->attend_context, q, k, v, &o->attention);
}

static bool check(const weft_layer *l, weft_value x, weft_value memory,
                  const weft_multi_head_options *o)
{
    if (o->positions.id != 0 && memory.id != x.id)
        weft_graph_fail(l->graph,
                        "multi_head: layer %.60s: positions are x's, and the memory is another "
                        "value; turn both by weft_rope",
                        l->name);
    return weft_graph_status(l->graph) == WEFT_OK && weft_layer_has(l, "embed is", x, o->embed) &&
           weft_layer_has(l, "queries are along", x, o->attention.query) &&
           weft_layer_has_of(l, "memory's embed is", "the memory", memory, o->embed) &&
           weft_layer_has_of(l, "memory is along", "the memory", memory, o->attention.memory);
}

weft_value weft_multi_head(weft_value x, const weft_multi_head_options *options)
{
    weft_layer l;
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(
            x.graph, "multi_head: options are NULL; they say name, embed, heads and attention");
    const weft_value memory = options->memory.id != 0 ? options->memory : x;
    if (!weft_layer_begin(&l, "multi_head", options->name, options->source, x) ||
        !check(&l, x, memory, options))
        return weft_no_value(x.graph);
    const weft_value q = projected(&l, x, options, "query", heads_of(options, true)),
                     k = projected(&l, memory, options, "key", heads_of(options, false)),
                     v = projected(&l, memory, options, "value", heads_of(options, false));
    return written(&l, attended(q, k, v, options), options);
}
