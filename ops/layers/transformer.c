/* transformer: a block: attention to its own rows, perhaps to those of a memory, and two dense layers, each with a norm of its own and
 * added to what it read.
 *
 * source  Vaswani et al. 2017 (norms behind), Radford et al. 2019 (norms before, smaller weights where the residual stream is
 *         written)
 */
#include <math.h>
#include <stdio.h>

#include "layer.h"
#include "op.h"
#include "weft/ops.h"

enum { MOST_BYTES = 2 * WEFT_MAX_PATH };

typedef struct block {
    const weft_transformer_options *options;
    weft_layer layer;
    double out_scale; /* of what writes into the stream */
} block;

/* One part of a block: what is added. */
typedef weft_value part(const block *b, weft_value x);

static const char *named(const block *b, const char *name, char text[MOST_BYTES])
{
    snprintf(text, MOST_BYTES, "%.*s/%s", WEFT_MAX_PATH + 1, b->layer.name, name);
    return text;
}

static weft_value attend(const block *b, weft_value x, const char *name, weft_value memory,
                         const weft_attention_options *attention)
{
    const bool is_self = memory.id == 0;
    const weft_transformer_options *o = b->options;
    char text[MOST_BYTES];
    return weft_multi_head(
        x, &(weft_multi_head_options){.name = named(b, name, text),
                                      .embed = o->embed,
                                      .heads = o->heads,
                                      .group = o->group,
                                      .is_rotary = o->is_rotary && is_self,
                                      .rotary = o->rotary,
                                      .memory = memory,
                                      .attention = *attention,
                                      .initializer = o->initializer,
                                      .out_scale = b->out_scale,
                                      .lacks_bias = o->lacks_bias || o->lacks_attention_bias,
                                      .source = o->source,
                                      .positions = o->positions,
                                      .attend = is_self ? o->attend : NULL,
                                      .attend_context = o->attend_context});
}

static weft_value attend_self(const block *b, weft_value x)
{
    return attend(b, x, "self", (weft_value){NULL, 0}, &b->options->self);
}

static weft_value attend_across(const block *b, weft_value x)
{
    return attend(b, x, "across", b->options->memory, &b->options->across);
}

static weft_value through_experts(const block *b, weft_value x)
{
    char text[MOST_BYTES];
    weft_experts_options e = *b->options->experts;
    e.name = named(b, "experts", text), e.feature = b->options->embed;
    if (e.source == NULL) e.source = b->options->source;
    if (e.initializer == NULL) e.initializer = b->options->initializer;
    if (e.out_scale == 0) e.out_scale = b->out_scale;
    return weft_experts(x, &e, b->options->facts);
}

static weft_value feed_forward(const block *b, weft_value x)
{
    const weft_transformer_options *o = b->options;
    char text[MOST_BYTES];
    if (o->experts != NULL) return through_experts(b, x);
    const weft_value h = weft_dense(
        x, &(weft_dense_options){.name = named(b, "up", text),
                                 .in = WEFT_DIMS(o->embed),
                                 .out = WEFT_DIMS(o->hidden),
                                 .activation = o->activation != NULL ? o->activation : "gelu",
                                 .is_gated = o->is_gated,
                                 .initializer = o->initializer,
                                 .lacks_bias = o->lacks_bias,
                                 .source = o->source});
    return weft_dense(h, &(weft_dense_options){.name = named(b, "down", text),
                                               .in = WEFT_DIMS(o->hidden),
                                               .out = WEFT_DIMS(o->embed),
                                               .initializer = o->initializer,
                                               .scale = b->out_scale,
                                               .lacks_bias = o->lacks_bias,
                                               .source = o->source});
}

static weft_value normed(const block *b, weft_value x, const char *name)
{
    char text[MOST_BYTES];
    return weft_norm(x, &(weft_norm_options){.name = named(b, name, text),
                                             .feature = b->options->embed,
                                             .is_rms = b->options->is_rms,
                                             .epsilon = b->options->epsilon,
                                             .source = b->options->source});
}

/* x and what a part makes of it. */
static weft_value with(const block *b, weft_value x, part *build, const char *norm)
{
    const weft_transformer_options *o = b->options;
    weft_value y = build(b, o->is_post_norm ? x : normed(b, x, norm));
    if (o->dropout != 0) y = weft_dropout(y, o->dropout);
    y = weft_add(x, y);
    return o->is_post_norm ? normed(b, y, norm) : y;
}

static bool check(const block *b, weft_value x)
{
    const int64_t depth = b->options->depth;
    if (depth < 0)
        weft_graph_fail(x.graph,
                        "%s: layer %.60s: depth is %lld; it is how many blocks there are, or 0",
                        b->layer.kind, b->layer.name, (long long)depth);
    if (b->options->is_gated && b->options->experts != NULL)
        weft_graph_fail(x.graph,
                        "%s: layer %.60s: is_gated is set and there are experts; what is gated is "
                        "the dense layer that they stand in place of. Leave one out",
                        b->layer.kind, b->layer.name);
    return weft_layer_has(&b->layer, "embed is", x, b->options->embed);
}

weft_value weft_transformer(weft_value x, const weft_transformer_options *options)
{
    block b = {.options = options};
    if (options != NULL && options->facts != NULL) *options->facts = (weft_experts_facts){0};
    if (x.id == 0) return weft_no_value(x.graph);
    if (options == NULL)
        return weft_graph_fail(x.graph,
                               "transformer: options are NULL; they say name, embed, heads, "
                               "hidden and self");
    if (!weft_layer_begin(&b.layer, "transformer", options->name, options->source, x) ||
        !check(&b, x))
        return weft_no_value(x.graph);
    if (options->depth > 0) b.out_scale = 1.0 / sqrt(2.0 * (double)options->depth);
    x = with(&b, x, attend_self, "self_norm");
    if (options->memory.id != 0) x = with(&b, x, attend_across, "across_norm");
    return with(&b, x, feed_forward, "up_norm");
}
