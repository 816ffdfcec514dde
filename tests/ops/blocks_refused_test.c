/* blocks_refused_test: what a layer is told wrongly is one sentence. */
#include "weft/layers.h"

#include "test.h"

static const weft_dim batch = {"batch", 5}, row = {"row", 6}, column = {"column", 7},
                      embed = {"embed", 6}, heads = {"heads", 3}, key = {"key", 2},
                      hidden = {"hidden", 7}, features = {"features", 5};

static weft_value x_of(weft_graph *g)
{
    return weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, row, embed));
}

static void check_said(weft_graph *g, weft_value y, const char *sentence)
{
    CHECK_EQ_INT(y.id, 0);
    CHECK_TEXT(weft_graph_error(g)->message, sentence);
    (void)!weft_graph_destroy(&g);
}

#define SAYS(sentence, layer, options_type, ...)                                                   \
    do {                                                                                           \
        weft_graph *g = weft_graph_create(1);                                                      \
        check_said(g, layer(x_of(g), &(options_type){__VA_ARGS__}), sentence);                     \
    } while (0)

static void test_dense_and_convolution_told_wrongly(void)
{
    const weft_dim wrong = {"embd", 6}, other = {"embed", 9};
    const weft_shape in = WEFT_DIMS(embed), out = WEFT_DIMS(hidden);
    SAYS("it has no name", weft_dense, weft_dense_options, .in = in, .out = out);
    SAYS("layer a: it sums over embd:6, but x is [batch:5, row:6, embed:6]; did you mean embed?",
         weft_dense, weft_dense_options, .name = "a", .in = WEFT_DIMS(wrong), .out = out);
    SAYS("layer a: it sums over embed:9, but x is", weft_dense, weft_dense_options, .name = "a",
         .in = WEFT_DIMS(other), .out = out);
    SAYS("layer a: it makes a dim row:6, but x is [batch:5, row:6] besides", weft_dense,
         weft_dense_options, .name = "a", .in = in, .out = WEFT_DIMS(row));
    SAYS("in has 0 dims", weft_dense, weft_dense_options, .name = "a", .out = out);
    SAYS("there is no activation \"rleu\"; did you mean relu?", weft_dense, weft_dense_options,
         .name = "a", .in = in, .out = out, .activation = "rleu");
    SAYS("layer a: there is no initializer \"he_norml\"; did you mean he_normal?", weft_dense,
         weft_dense_options, .name = "a", .in = in, .out = out, .initializer = "he_norml");
    const weft_spatial rows = weft_spatial_same(row, (weft_dim){"tap", 3}, "row", 1, 1),
                       none = weft_spatial_same(column, (weft_dim){"tap", 3}, "row", 1, 1);
    SAYS("layer c: spatial has 0 dims; it has 1 to 3", weft_convolution, weft_convolution_options,
         .name = "c", .features = features);
    SAYS("layer c: it goes over column:7, but x is", weft_convolution, weft_convolution_options,
         .name = "c", .features = features, .spatial = WEFT_SPATIAL(none));
    SAYS("layer c: it sums over embd:6, but x is", weft_convolution, weft_convolution_options,
         .name = "c", .features = features, .channel = wrong, .spatial = WEFT_SPATIAL(rows));
    SAYS("layer c: it has a multiplier, hidden, and no channel; it is separable over a channel",
         weft_convolution, weft_convolution_options, .name = "c", .features = features,
         .multiplier = hidden, .spatial = WEFT_SPATIAL(rows));
    SAYS("layer c: it makes a dim embed:9, but x is", weft_convolution, weft_convolution_options,
         .name = "c", .features = features, .channel = embed, .multiplier = other,
         .spatial = WEFT_SPATIAL(rows));
    const weft_spatial wider =
        weft_spatial_same((weft_dim){"wide", 9}, (weft_dim){"tap", 3}, "at", 1, 1);
    SAYS("layer c: it goes over at:9, but x is", weft_convolution, weft_convolution_options,
         .name = "c", .features = features, .is_transposed = true, .spatial = WEFT_SPATIAL(wider));
    SAYS("there is no activation \"swish\"", weft_dense, weft_dense_options, .name = "a", .in = in,
         .out = out, .activation = "swish", .is_gated = true);
}

static void test_norm_and_attention_told_wrongly(void)
{
    const weft_dim wrong = {"embd", 6};
    SAYS("layer n: it goes along embd:6", weft_norm, weft_norm_options, .name = "n",
         .feature = wrong);
    SAYS("layer m: embed is embd:6, but x is", weft_multi_head, weft_multi_head_options,
         .name = "m", .embed = wrong);
    SAYS("layer m: queries are along column:7", weft_multi_head, weft_multi_head_options,
         .name = "m", .embed = embed, .heads = heads, .attention = {column, row, key});
    SAYS("layer m: memory is along column:7", weft_multi_head, weft_multi_head_options, .name = "m",
         .embed = embed, .heads = heads, .attention = {row, column, key});
    const weft_experts_options experts = {.token = row};
    SAYS("layer t: is_gated is set and there are experts", weft_transformer,
         weft_transformer_options, .name = "t", .embed = embed, .heads = heads, .hidden = hidden,
         .self = {row, row, key}, .is_gated = true, .experts = &experts);
    SAYS("layer t: depth is -1", weft_transformer, weft_transformer_options, .name = "t",
         .embed = embed, .depth = -1);
    weft_graph *g = weft_graph_create(1);
    check_said(g, weft_transformer(x_of(g), NULL), "options are NULL");
    g = weft_graph_create(1);
    check_said(g, weft_embedding(x_of(g), &(weft_embedding_options){.name = "e"}),
               "name, entry and embed are to be said");
    g = weft_graph_create(1);
    const weft_value ids = weft_input(g, "ids", WEFT_I32, WEFT_DIMS(batch, row));
    check_said(g,
               weft_dense(ids, &(weft_dense_options){.name = "d",
                                                     .in = WEFT_DIMS(row),
                                                     .out = WEFT_DIMS(hidden)}),
               "layer d: x is i32; it is a float. weft_cast it");
}

int main(void)
{
    RUN(test_dense_and_convolution_told_wrongly);
    RUN(test_norm_and_attention_told_wrongly);
    return weft_test_report();
}
