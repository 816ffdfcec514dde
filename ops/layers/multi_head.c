/* multi_head: attention between projections of x and of what it attends to. */
#include <stdio.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"

static weft_value projected(const weft_layer *l, weft_value x, const weft_multi_head_options *o,
                            const char *name)
{
    char whole[2 * WEFT_MAX_PATH];
    snprintf(whole, sizeof whole, "%.*s/%s", WEFT_MAX_PATH + 1, l->name, name);
    return weft_dense(x, &(weft_dense_options){.name = whole,
                                               .in = WEFT_DIMS(o->embed),
                                               .out = WEFT_DIMS(o->heads, o->attention.feature),
                                               .initializer = o->initializer,
                                               .lacks_bias = o->lacks_bias});
}

static weft_value written(const weft_layer *l, weft_value mixed, const weft_multi_head_options *o)
{
    char whole[2 * WEFT_MAX_PATH];
    snprintf(whole, sizeof whole, "%.*s/out", WEFT_MAX_PATH + 1, l->name);
    return weft_dense(mixed, &(weft_dense_options){.name = whole,
                                                   .in = WEFT_DIMS(o->heads, o->attention.feature),
                                                   .out = WEFT_DIMS(o->embed),
                                                   .initializer = o->initializer,
                                                   .scale = o->out_scale,
                                                   .lacks_bias = o->lacks_bias});
}

static bool check(const weft_layer *l, weft_value x, weft_value memory,
                  const weft_multi_head_options *o)
{
    return weft_layer_has(l, "embed is", x, o->embed) &&
           weft_layer_has(l, "queries are along", x, o->attention.query) &&
           weft_layer_has(l, "memory's embed is", memory, o->embed) &&
           weft_layer_has(l, "memory is along", memory, o->attention.memory);
}

weft_value weft_multi_head(weft_value x, const weft_multi_head_options *options)
{
    weft_layer l;
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(
            x.graph, "multi_head: options are NULL; they say name, embed, heads and attention");
    const weft_value memory = options->memory.id != 0 ? options->memory : x;
    if (!weft_layer_begin(&l, "multi_head", options->name, x) || !check(&l, x, memory, options))
        return weft_no_value(x.graph);
    const weft_value q = projected(&l, x, options, "query"),
                     k = projected(&l, memory, options, "key"),
                     v = projected(&l, memory, options, "value");
    return written(&l, weft_attention_with(q, k, v, &options->attention), options);
}
