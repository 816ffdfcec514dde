/* embedding: rows of a table by ids, and of another by places. */
#include "layer.h"
#include "op.h"
#include "weft/ops.h"

static bool begin(weft_layer *l, weft_value ids, const weft_embedding_options *o)
{
    *l = (weft_layer){"embedding", o->name, ids.graph, o->dtype, o->source, *weft_shape_of(ids)};
    if (o->name == NULL || o->entry.name == NULL || o->embed.name == NULL)
        weft_graph_fail(l->graph, "embedding: name, entry and embed are to be said");
    else if ((unsigned)o->dtype >= WEFT_DTYPES || !weft_dtype_is_float(o->dtype))
        weft_graph_fail(l->graph, "embedding: layer %.60s: its dtype is %s; it is a float", o->name,
                        weft_dtype_name(o->dtype));
    else if (o->positions.id != 0 && o->over.name == NULL)
        weft_graph_fail(l->graph,
                        "embedding: layer %.60s: positions are given, and no dim that they number; "
                        "say over, whose rows they choose",
                        o->name);
    else if (o->over.name != NULL && o->positions.id == 0)
        weft_layer_has(l, "places are along", ids, o->over);
    return weft_graph_status(l->graph) == WEFT_OK;
}

static weft_value table(const weft_layer *l, const weft_embedding_options *o, const char *name,
                        weft_dim rows)
{
    const weft_layer_weight weight = {
        .name = name,
        .shape = WEFT_DIMS(rows, o->embed),
        .fan_in = (double)o->embed.size, /* a row is an operand of sums over embed */
        .fan_out = (double)o->embed.size,
        .initializer = o->initializer != NULL ? o->initializer : "normal",
        .exactly = o->weights,
    };
    return weft_layer_weight_of(l, &weight);
}

weft_value weft_embedding(weft_value ids, const weft_embedding_options *options)
{
    weft_layer l;
    if (ids.id == 0) return weft_no_value(ids.graph);
    if (options == NULL)
        return weft_graph_fail(ids.graph,
                               "embedding: options are NULL; they say name, entry and embed");
    if (!begin(&l, ids, options)) return weft_no_value(ids.graph);
    const weft_value rows =
        weft_gather(table(&l, options, "weight", options->entry), ids, options->entry);
    if (options->over.name == NULL) return rows;
    const weft_value places = table(&l, options, "places", options->over);
    return weft_add(rows, options->positions.id == 0
                              ? places
                              : weft_gather(places, options->positions, options->over));
}
