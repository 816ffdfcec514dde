/* RANKS: 2 3 4 */
/* blocks_test: each layer is the ops that it says it is, to the bit; its values and gradients are those of one rank under every
 * layout; its variables have the names, dims and first numbers that they are told to have.
 */
#include "oracle.h"
#include "weft/autodiff.h"
#include "weft/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static const weft_dim batch = {"batch", 5}, row = {"row", 6}, column = {"column", 7},
                      seen = {"seen", 4}, embed = {"embed", 6}, heads = {"heads", 3},
                      key = {"key", 2}, hidden = {"hidden", 7}, vocab = {"vocab", 11},
                      channel = {"channel", 3}, features = {"features", 5}, group = {"group", 2};
static weft_oracle oracle;

static weft_value made(const weft_oracle_build *b, const char *name)
{
    weft_error error = {0};
    const weft_value v = weft_graph_find(b->graph, name, &error);
    CHECK_OK(error.status, error);
    return v;
}

static weft_value rows_of_embed(weft_oracle_build *b)
{
    return weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, embed), -1.0, 1.0);
}

/* ---- each layer, and the same by hand ------------------------------------------------------------ */

static weft_value dense(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    const weft_value y =
        weft_dense(x, &(weft_dense_options){.name = "net/dense",
                                            .in = WEFT_DIMS(embed),
                                            .out = WEFT_DIMS(heads, key),
                                            .activation = "tanh",
                                            .initializer = "lecun_normal",
                                            .biases = &(weft_initial){WEFT_INITIAL_FORMULA, 1, 1}});
    const weft_value wx =
        weft_einsum(WEFT_DIMS(batch, row, heads, key), x, made(b, "net/dense/weight"));
    *by_hand = weft_tanh(weft_add(wx, made(b, "net/dense/bias")));
    return y;
}

static weft_value gated(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    const weft_initial one = {WEFT_INITIAL_FORMULA, 1, 1};
    const weft_value y = weft_dense(x, &(weft_dense_options){.name = "glu",
                                                             .in = WEFT_DIMS(embed),
                                                             .out = WEFT_DIMS(hidden),
                                                             .activation = "silu",
                                                             .is_gated = true,
                                                             .biases = &one});
    const weft_shape out = WEFT_DIMS(batch, row, hidden);
    const weft_value plain =
        weft_add(weft_einsum(out, x, made(b, "glu/weight")), made(b, "glu/bias"));
    const weft_value gate =
        weft_add(weft_einsum(out, x, made(b, "glu/gate/weight")), made(b, "glu/gate/bias"));
    *by_hand = weft_mul(plain, weft_silu(gate));
    return y;
}

static weft_value convolution(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x =
        weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, column, channel), -1.0, 1.0);
    const weft_spatial rows = weft_spatial_same(row, (weft_dim){"tap_row", 3}, "row", 2, 1),
                       columns =
                           weft_spatial_valid(column, (weft_dim){"tap_column", 2}, "at", 1, 1);
    const weft_value y = weft_convolution(
        x, &(weft_convolution_options){.name = "conv",
                                       .spatial = WEFT_SPATIAL(rows, columns),
                                       .channel = channel,
                                       .features = features,
                                       .activation = "relu",
                                       .biases = &(weft_initial){WEFT_INITIAL_FORMULA, 1, 1}});
    *by_hand = weft_relu(weft_add(weft_conv(WEFT_DIMS(batch, rows.out, columns.out, features), x,
                                            made(b, "conv/weight"), WEFT_SPATIAL(rows, columns)),
                                  made(b, "conv/bias")));
    return y;
}

static weft_value grouped(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, group, row), -1.0, 1.0);
    const weft_spatial rows = weft_spatial_same(row, (weft_dim){"tap", 3}, "row", 1, 1);
    const weft_value y =
        weft_convolution(x, &(weft_convolution_options){.name = "deep",
                                                        .spatial = WEFT_SPATIAL(rows),
                                                        .features = features,
                                                        .group = group,
                                                        .lacks_bias = true});
    *by_hand = weft_conv(WEFT_DIMS(batch, group, row, features), x, made(b, "deep/weight"),
                         WEFT_SPATIAL(rows));
    return y;
}

/* From few rows to many: x has what comes out of the convolution that it is the transpose of. */
static weft_value transposed(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_dim many = {"many", 12};
    const weft_spatial rows = weft_spatial_same(many, (weft_dim){"tap", 3}, "row", 2, 1);
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, channel), -1.0, 1.0);
    const weft_value y =
        weft_convolution(x, &(weft_convolution_options){.name = "up",
                                                        .spatial = WEFT_SPATIAL(rows),
                                                        .channel = channel,
                                                        .features = features,
                                                        .is_transposed = true,
                                                        .lacks_bias = true});
    *by_hand = weft_conv_transpose(WEFT_DIMS(batch, many, features), x, made(b, "up/weight"),
                                   WEFT_SPATIAL(rows));
    return y;
}

static weft_value separable(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_dim twice = {"twice", 2};
    const weft_spatial rows = weft_spatial_same(row, (weft_dim){"tap", 3}, "row", 1, 1);
    const weft_value x = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, row, channel), -1.0, 1.0);
    const weft_value y =
        weft_convolution(x, &(weft_convolution_options){.name = "thin",
                                                        .spatial = WEFT_SPATIAL(rows),
                                                        .channel = channel,
                                                        .features = features,
                                                        .multiplier = twice,
                                                        .activation = "tanh"});
    const weft_value deep = weft_conv(WEFT_DIMS(batch, row, channel, twice), x,
                                      made(b, "thin/deep"), WEFT_SPATIAL(rows));
    const weft_value across =
        weft_einsum(WEFT_DIMS(batch, row, features), deep, made(b, "thin/weight"));
    *by_hand = weft_tanh(weft_add(across, made(b, "thin/bias")));
    return y;
}

static weft_value norms(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    const weft_value y = weft_norm(x, &(weft_norm_options){.name = "a", .feature = embed});
    const weft_value z =
        weft_norm(y, &(weft_norm_options){.name = "b", .feature = embed, .is_rms = true});
    *by_hand = weft_rms_norm(weft_layer_norm(x, made(b, "a/gain"), made(b, "a/bias"), embed),
                             made(b, "b/gain"), embed);
    return z;
}

static weft_value embedding(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value ids = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(batch, row), 0, 12);
    const weft_value y = weft_embedding(
        ids, &(weft_embedding_options){
                 .name = "words", .entry = vocab, .embed = embed, .over = row, .dtype = WEFT_F64});
    *by_hand = weft_add(weft_gather(made(b, "words/weight"), ids, vocab), made(b, "words/places"));
    return y;
}

static weft_value dense_by_hand(const weft_oracle_build *b, weft_value x, const char *name,
                                weft_shape out, bool has_bias)
{
    char text[100];
    snprintf(text, sizeof text, "%s/weight", name);
    const weft_value y = weft_einsum(out, x, made(b, text));
    snprintf(text, sizeof text, "%s/bias", name);
    return has_bias ? weft_add(y, made(b, text)) : y;
}

static weft_value attention_by_hand(const weft_oracle_build *b, weft_value x, weft_value memory,
                                    const char *name, weft_dim rows, bool causal, bool has_bias)
{
    char text[4][100];
    static const char *const parts[] = {"query", "key", "value", "out"};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof *text, "%s/%s", name, parts[i]);
    const weft_shape split = WEFT_DIMS(batch, rows, heads, key);
    const weft_value q = dense_by_hand(b, x, text[0], WEFT_DIMS(batch, row, heads, key), has_bias);
    const weft_value k = dense_by_hand(b, memory, text[1], split, has_bias);
    const weft_value v = dense_by_hand(b, memory, text[2], split, has_bias);
    const weft_value mixed = weft_attention(q, k, v, row, rows, key, causal);
    return dense_by_hand(b, mixed, text[3], WEFT_DIMS(batch, row, embed), has_bias);
}

static weft_value multi_head(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    const weft_value y =
        weft_multi_head(x, &(weft_multi_head_options){.name = "self",
                                                      .embed = embed,
                                                      .heads = heads,
                                                      .attention = {row, row, key, .causal = true},
                                                      .lacks_bias = true});
    *by_hand = attention_by_hand(b, x, x, "self", row, true, false);
    return y;
}

/* Heads of queries in groups that share keys and values, rotary. */
static weft_value rotary(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b), places = weft_iota(b->graph, WEFT_I32, row);
    const weft_value y = weft_multi_head(x, &(weft_multi_head_options){.name = "gqa",
                                                                       .embed = embed,
                                                                       .heads = heads,
                                                                       .group = group,
                                                                       .is_rotary = true,
                                                                       .attention = {row, row, key},
                                                                       .lacks_bias = true});
    const weft_shape one = WEFT_DIMS(batch, row, heads, key);
    const weft_value q = dense_by_hand(b, x, "gqa/query", WEFT_DIMS(batch, row, heads, group, key),
                                       false),
                     k = dense_by_hand(b, x, "gqa/key", one, false),
                     v = dense_by_hand(b, x, "gqa/value", one, false);
    const weft_value mixed = weft_attention(weft_rope(q, places, key, 0),
                                            weft_rope(k, places, key, 0), v, row, row, key, false);
    *by_hand = dense_by_hand(b, mixed, "gqa/out", WEFT_DIMS(batch, row, embed), false);
    return y;
}

static weft_value feed_forward_by_hand(const weft_oracle_build *b, weft_value x, const char *block)
{
    char up[100], down[100];
    snprintf(up, sizeof up, "%s/up", block);
    snprintf(down, sizeof down, "%s/down", block);
    const weft_value h = dense_by_hand(b, x, up, WEFT_DIMS(batch, row, hidden), true);
    return dense_by_hand(b, weft_gelu(h), down, WEFT_DIMS(batch, row, embed), true);
}

static weft_value norm_by_hand(const weft_oracle_build *b, weft_value x, const char *gain,
                               const char *bias)
{
    return weft_layer_norm(x, made(b, gain), made(b, bias), embed);
}

static weft_transformer_options block_options(void)
{
    return (weft_transformer_options){
        .name = "block", .embed = embed, .heads = heads, .hidden = hidden, .self = {row, row, key}};
}

static weft_value transformer(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    const weft_transformer_options o = block_options();
    const weft_value y = weft_transformer(x, &o);
    weft_value z = norm_by_hand(b, x, "block/self_norm/gain", "block/self_norm/bias");
    z = weft_add(x, attention_by_hand(b, z, z, "block/self", row, false, true));
    const weft_value up = norm_by_hand(b, z, "block/up_norm/gain", "block/up_norm/bias");
    *by_hand = weft_add(z, feed_forward_by_hand(b, up, "block"));
    return y;
}

/* What goes up is gated. */
static weft_value gated_block(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b);
    weft_transformer_options o = block_options();
    o.is_gated = true, o.activation = "silu";
    const weft_value y = weft_transformer(x, &o);
    weft_value z = norm_by_hand(b, x, "block/self_norm/gain", "block/self_norm/bias");
    z = weft_add(x, attention_by_hand(b, z, z, "block/self", row, false, true));
    const weft_value up = norm_by_hand(b, z, "block/up_norm/gain", "block/up_norm/bias");
    const weft_shape inside = WEFT_DIMS(batch, row, hidden);
    const weft_value plain = dense_by_hand(b, up, "block/up", inside, true);
    const weft_value h =
        weft_mul(plain, weft_silu(dense_by_hand(b, up, "block/up/gate", inside, true)));
    *by_hand = weft_add(z, dense_by_hand(b, h, "block/down", WEFT_DIMS(batch, row, embed), true));
    return y;
}

/* With a memory, and norms behind. */
static weft_value decoder(weft_oracle_build *b, weft_value *by_hand)
{
    const weft_value x = rows_of_embed(b),
                     memory = weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, seen, embed), -1, 1);
    weft_transformer_options o = block_options();
    o.self.causal = o.is_post_norm = true;
    o.memory = memory;
    o.across = (weft_attention_options){row, seen, key};
    const weft_value y = weft_transformer(x, &o);
    weft_value z = weft_add(x, attention_by_hand(b, x, x, "block/self", row, true, true));
    z = norm_by_hand(b, z, "block/self_norm/gain", "block/self_norm/bias");
    z = weft_add(z, attention_by_hand(b, z, memory, "block/across", seen, false, true));
    z = norm_by_hand(b, z, "block/across_norm/gain", "block/across_norm/bias");
    z = weft_add(z, feed_forward_by_hand(b, z, "block"));
    *by_hand = norm_by_hand(b, z, "block/up_norm/gain", "block/up_norm/bias");
    return y;
}

enum { MOST_LAYOUTS = 5 };

typedef struct layer {
    const char *name;
    weft_value (*build)(weft_oracle_build *b, weft_value *by_hand);
    const char *layouts[MOST_LAYOUTS]; /* for two axes: d and m */
} layer;

#define ATTENTION "batch:d", "heads:d", "row:d", "embed:d", "batch:d,heads:m"
#define BLOCK     "batch:d", "heads:d,hidden:d", "row:d", "embed:d", "batch:d,heads:m,hidden:m"
static const layer layers[] = {
    {"dense", dense, {"batch:d", "heads:d", "embed:d", "key:d", "batch:d,heads:m"}},
    {"convolution",
     convolution,
     {"batch:d", "row:d", "channel:d", "at:d,column:d", "row:d,features:m"}},
    {"grouped", grouped, {"batch:d", "row:d", "group:d", "features:d", "group:d,row:m"}},
    {"gated", gated, {"batch:d", "hidden:d", "embed:d", "row:d", "batch:d,hidden:m"}},
    {"transposed", transposed, {"batch:d", "row:d", "many:d", "channel:d", "row:d,features:m"}},
    {"separable", separable, {"batch:d", "row:d", "channel:d", "features:d", "row:d,channel:m"}},
    {"norms", norms, {"batch:d", "row:d", "embed:d", "batch:d,embed:m"}},
    {"embedding", embedding, {"batch:d", "row:d", "vocab:d", "embed:d", "batch:d,vocab:m"}},
    {"multi_head", multi_head, {ATTENTION}},
    {"rotary", rotary, {"batch:d", "heads:d", "group:d", "row:d", "batch:d,heads:m"}},
    {"transformer", transformer, {BLOCK}},
    {"gated_block", gated_block, {BLOCK}},
    {"decoder", decoder, {BLOCK}},
};
enum { N_LAYERS = sizeof layers / sizeof *layers };

/* The layer, the same by hand, and the gradients of its variables. */
static void build(weft_oracle_build *b)
{
    const layer *l = b->argument;
    weft_value by_hand, variables[64], gradients[64];
    const weft_value y = l->build(b, &by_hand);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_sin(weft_shift(y, 0.3)));
    const int n = weft_trainable(loss, variables, 64);
    CHECK(n > 0 && n < 64);
    weft_gradients(loss, (weft_values){variables, n}, gradients, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, by_hand);
    for (int i = 0; i < n && b->n_outputs < WEFT_ORACLE_VALUES; i++)
        weft_oracle_output(b, gradients[i]);
}

static bool run(weft_mesh *mesh, const layer *l, const char *layout, weft_oracle_result *result)
{
    const weft_oracle_case what = {
        .name = l->name, .build = build, .argument = l, .layout = layout};
    weft_error error = {0};
    return CHECK_OK(weft_oracle_run(mesh, &what, NULL, result, &error), error);
}

static void test_each_is_the_ops_that_it_says(void)
{
    for (int i = 0; i < N_LAYERS; i++) {
        weft_oracle_result r;
        if (!run(oracle.alone, &layers[i], NULL, &r)) continue;
        const size_t bytes = (size_t)r.count[0] * sizeof **r.data;
        weft_test_check(r.count[0] == r.count[1] && memcmp(r.data[0], r.data[1], bytes) == 0,
                        __FILE__, __LINE__, layers[i].name);
        weft_oracle_free(&r);
    }
}

static void check_layout(weft_mesh *mesh, const layer *l, const char *layout)
{
    weft_oracle_result alone, split;
    char text[600], what[900];
    if (!run(oracle.alone, l, NULL, &alone)) return;
    if (run(mesh, l, layout, &split)) {
        const bool same = weft_oracle_same(&alone, &split, 0, text, sizeof text);
        snprintf(what, sizeof what, "%s on %s \"%s\": %s", l->name, weft_mesh_text(mesh), layout,
                 same ? "same" : text);
        weft_test_check(same, __FILE__, __LINE__, what);
        weft_oracle_free(&split);
    }
    weft_oracle_free(&alone);
}

static void test_every_layout_is_one_rank(void)
{
    for (int m = 0; m < oracle.n_meshes; m++) {
        const bool has_two = strchr(weft_mesh_text(oracle.meshes[m]), ',') != NULL;
        for (int i = 0; i < N_LAYERS; i++)
            for (int k = 0; k < MOST_LAYOUTS && layers[i].layouts[k] != NULL; k++)
                if ((strstr(layers[i].layouts[k], ":m") != NULL) == has_two)
                    check_layout(oracle.meshes[m], &layers[i], layers[i].layouts[k]);
    }
}

/* ---- how variables begin ------------------------------------------------------------------------- */

static void check_begins(const char *initializer, double mean, double square, double most)
{
    static double w[200 * 300];
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(7);
    const weft_dim in = {"in", 200}, out = {"out", 300};
    const weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, in));
    const weft_value y = weft_dense(x, &(weft_dense_options){.name = "net",
                                                             .in = WEFT_DIMS(in),
                                                             .out = WEFT_DIMS(out),
                                                             .initializer = initializer});
    if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(y), NULL, &program, &error), error) &&
        CHECK_OK(weft_read(program, weft_find(program, "net/weight", &error), WEFT_F64, w, sizeof w,
                           &error),
                 error)) {
        double sum = 0, squares = 0, largest = 0;
        for (int i = 0; i < 200 * 300; i++) {
            sum += w[i] / 60000, squares += w[i] * w[i] / 60000;
            largest = fmax(largest, fabs(w[i]));
        }
        CHECK(fabs(sum - mean) < 0.01 * (sqrt(square) + 1e-9));
        CHECK(fabs(squares - square) <= 0.02 * square);
        CHECK(largest <= most && largest >= 0.98 * most * (most < 1e9));
    }
    (void)!weft_program_destroy(&program);
    (void)!weft_graph_destroy(&g);
}

static void test_weights_have_the_variance_of_their_initializer(void)
{
    const double any = 1e10, both = 2.0 / 500, he = 2.0 / 200, lecun = 1.0 / 200;
    check_begins(NULL, 0, both, sqrt(3 * both));
    check_begins("glorot_uniform", 0, both, sqrt(3 * both));
    check_begins("glorot_normal", 0, both, any);
    check_begins("he_uniform", 0, he, sqrt(3 * he));
    check_begins("he_normal", 0, he, any);
    check_begins("lecun_uniform", 0, lecun, sqrt(3 * lecun));
    check_begins("lecun_normal", 0, lecun, any);
    check_begins("normal", 0, 4e-4, any);
    check_begins("zeros", 0, 0, 0);
    check_begins("ones", 1, 1, 1);
}

static void test_what_writes_into_the_stream_begins_smaller(void)
{
    weft_error error = {0};
    weft_program *program = NULL;
    weft_graph *g = weft_graph_create(7);
    const weft_value x = weft_input(g, "x", WEFT_F64, WEFT_DIMS(batch, row, embed));
    weft_transformer_options o = block_options();
    double w[2][7 * 6];
    o.initializer = "ones", o.depth = 8;
    const weft_value y = weft_transformer(x, &o);
    if (CHECK_OK(weft_compile(oracle.alone, NULL, WEFT_VALUES(y), NULL, &program, &error), error)) {
        CHECK_OK(weft_read(program, weft_find(program, "block/up/weight", &error), WEFT_F64, w[0],
                           sizeof w[0], &error),
                 error);
        CHECK_OK(weft_read(program, weft_find(program, "block/down/weight", &error), WEFT_F64, w[1],
                           sizeof w[1], &error),
                 error);
        CHECK_CLOSE(w[0][3], 1.0, 0);
        CHECK_CLOSE(w[1][3], 0.25, 1e-12);
    }
    (void)!weft_program_destroy(&program);
    (void)!weft_graph_destroy(&g);
}

/* A layer in 16 bits has variables of f32, and two layers of one name have the same ones. */
static void test_layers_of_one_name_have_the_same_variables(void)
{
    weft_graph *g = weft_graph_create(7);
    weft_error error = {0};
    const weft_value x = weft_input(g, "x", WEFT_BF16, WEFT_DIMS(batch, embed));
    const weft_dense_options o = {.name = "net", .in = WEFT_DIMS(embed), .out = WEFT_DIMS(hidden)};
    CHECK_EQ_INT(weft_dtype_of(weft_dense(x, &o)), WEFT_BF16);
    const weft_value w = weft_graph_find(g, "net/weight", &error);
    CHECK_EQ_INT(weft_dtype_of(w), WEFT_F32);
    CHECK(weft_dense(weft_scale(x, 2.0), &o).id != 0);
    CHECK_EQ_INT(weft_graph_find(g, "net/weight", &error).id, w.id);
    weft_dense_options wider = o;
    wider.out = WEFT_DIMS(features);
    CHECK_EQ_INT(weft_dense(x, &wider).id, 0);
    CHECK_TEXT(weft_graph_error(g)->message,
               "net/weight is f32[embed:6, hidden:7], and here it would be f32[embed:6, "
               "features:5]; layers of one name have the same dims");
    (void)!weft_graph_destroy(&g);
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:2,m:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_each_is_the_ops_that_it_says);
        RUN(test_every_layout_is_one_rank);
        RUN(test_weights_have_the_variance_of_their_initializer);
        RUN(test_what_writes_into_the_stream_begins_smaller);
        RUN(test_layers_of_one_name_have_the_same_variables);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
