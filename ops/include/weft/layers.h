/* layers.h: blocks of ops with variables of their own, which networks are put together from.
 *
 *     weft_value h = weft_dense(image, &(weft_dense_options){.name = "first", .in = WEFT_DIMS(pixel), .out = WEFT_DIMS(hidden),
 *                                                            .activation = "relu"});
 *     weft_value logits = weft_dense(h, &(weft_dense_options){.name = "last", .in = WEFT_DIMS(hidden), .out = WEFT_DIMS(digit)});
 *
 * Nothing here is known to the compiler: a layer is what one would write with ops.h and scan.h, and every layout is
 * right for it. Variables are called "<name>/weight", "<name>/bias" and so on. They have the computing dtype of x
 * (f32 for bf16 and f16; operands of products are then rounded). Layers of one name in one graph have the same ones:
 * so two places share weights. docs/layers.md has all layers on a page. All Local; errors are the graph's, as those
 * of every builder.
 */
#ifndef WEFT_LAYERS_H
#define WEFT_LAYERS_H

#include "weft/ops.h"

WEFT_BEGIN

/* weft_initial_of - how weights begin, by name, where a sum has fan_in products and an operand goes into fan_out sums. Local.
 *
 *     glorot_uniform, glorot_normal   variance 2 / (fan_in + fan_out): what layers do that are told nothing
 *     he_uniform, he_normal           2 / fan_in: before relu
 *     lecun_uniform, lecun_normal     1 / fan_in
 *     normal                          deviation 0.02: what embeddings do that are told nothing
 *     zeros, ones
 *
 * returns  WEFT_USAGE for another name, with the nearest; for fans below 1
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_initial_of(const char *initializer, double fan_in,
                                                     double fan_out, weft_initial *initial,
                                                     weft_error *error);

/* weft_layer_source - where a layer takes its variables from, in place of weft_variable and its own names: under the names of old
 * checkpoints, several as one, what a trip of a scan sees of them.
 *
 * variable  asked once for each, in the order in which a layer's comment has them, by the whole name, "block/up/weight". Returns the
 *           variable, or what is made of it: of this dtype, or rounded to x's, with these dims, and perhaps others of x, of which each element then
 *           has weights of its own; the invalid value where the graph has an error. It calls builders without their macros,
 *           (weft_variable)(...): what the layer has made so far would else seem to come from there
 */
typedef weft_value (*weft_layer_variable_of)(void *context, weft_graph *graph, const char *name,
                                             weft_dtype dtype, weft_shape shape,
                                             weft_initial initial);
typedef struct weft_layer_source {
    weft_layer_variable_of variable;
    void *context; /* handed back with every call */
} weft_layer_source;

/* weft_dense_options - of x W + b. Variables: "<name>/weight" [in, out], "<name>/bias" [out]; gated, "<name>/gate/weight" and
 * "<name>/gate/bias" of the same dims besides. */
typedef struct weft_dense_options {
    const char *name;
    weft_shape in; /* dims of x, which are summed over */
    /* dims in place of them, behind x's others, which have none of these names; none: a number */
    weft_shape out;
    /* relu, gelu (its tanh form), gelu_erf (itself), silu, tanh or sigmoid; NULL: none */
    const char *activation;
    const char *initializer; /* of the weight: a name of weft_initial_of; NULL: glorot_uniform */
    const weft_initial *weights, *biases; /* exactly so; NULL: by the initializer, and zeros */
    double scale;                         /* times how the weight begins; 0: 1 */
    bool lacks_bias;
    const weft_layer_source *source; /* of its variables; NULL: they are its own */
    /* times a second such product, which alone has the activation: with silu SwiGLU, with gelu GEGLU, with none bilinear */
    bool is_gated;
} weft_dense_options;

/* weft_dense - activation(x W + b), over any dims: [embed] to [heads, key], [heads, key] to [embed]. Gated: (x W + b) activation(x V + c),
 * as in Shazeer 2020.
 *
 * returns  x's dims without in, then out */
WEFT_API weft_value weft_dense(weft_value x, const weft_dense_options *options);

/* weft_convolution_options - of weft_conv. Variables: "<name>/weight" [taps, group, channel, features], "<name>/bias" [group,
 * features]; separable, "<name>/deep" [taps, group, channel, multiplier] and "<name>/weight" [group, channel, multiplier, features]. */
typedef struct weft_convolution_options {
    const char *name;
    weft_spatials spatial; /* as of weft_conv: WEFT_SPATIAL(rows, columns) */
    weft_dim channel;      /* x's dim that is summed over; {0}: none */
    weft_dim features;     /* of the result, in place of channel */
    weft_dim group;        /* x's dim with filters of its own for each element; {0}: none */
    const char *activation, *initializer; /* as of weft_dense_options */
    const weft_initial *weights, *biases;
    bool lacks_bias;
    bool is_transposed; /* weft_conv_transpose: x has each dim's `out`, and the result its `in` */
    /* separable: so many numbers of each channel by itself, then a product over channels; {0}: it is not */
    weft_dim multiplier;
} weft_convolution_options;

/* weft_convolution - activation(conv(x, filter) + b); is_transposed, conv_transpose in place of conv.
 *
 * returns  x's dims without channel, those of space as they come out, then features */
WEFT_API weft_value weft_convolution(weft_value x, const weft_convolution_options *options);

/* weft_norm_options - of weft_layer_norm. Variables: "<name>/gain", "<name>/bias", each [feature]. */
typedef struct weft_norm_options {
    const char *name;
    weft_dim feature;                /* x's dim along which it is normalized */
    bool is_rms;                     /* of weft_rms_norm, which has no bias */
    const weft_layer_source *source; /* of its variables; NULL: they are its own */
    double epsilon;                  /* is added to the variance; 0: 1e-5 */
} weft_norm_options;
WEFT_API weft_value weft_norm(weft_value x, const weft_norm_options *options);

/* weft_embedding_options - of rows of a table. Variables: "<name>/weight" [entry, embed]; "<name>/places" [over, embed]. */
typedef struct weft_embedding_options {
    const char *name;
    weft_dim entry;   /* what ids are of */
    weft_dim embed;   /* a row's dim */
    weft_dim over;    /* ids' dim with a row of its own for each place, which is added; {0}: none */
    weft_dtype dtype; /* of the result; variables' by it */
    const char *initializer; /* NULL: normal */
    const weft_initial *weights;
    const weft_layer_source *source; /* of its variables; NULL: they are its own */
    /* i32, some of ids' dims: which row of places goes with an id; {0}: that of its own place */
    weft_value positions;
} weft_embedding_options;

/* weft_embedding - row ids[..] of the table, and the row of its place. An id outside gives zeros in place of its row.
 *
 * ids      i32
 * returns  [ids' dims, embed] */
WEFT_API weft_value weft_embedding(weft_value ids, const weft_embedding_options *options);

/* How queries, [.., query, heads, group, feature], attend to keys and values. */
typedef weft_value (*weft_attend)(void *context, weft_value q, weft_value k, weft_value v,
                                  const weft_attention_options *options);

/* weft_kv_cache - keys and values of a text's rows, in variables that keep them from run to run: so a further token costs the
 * work of one row. Two programs share the variables. One goes through a window, whose first rows are text; the other,
 * with is_step, through one token at a time.
 *
 *     weft_shape kept = WEFT_DIMS(seq, batch, heads, feature);
 *     weft_kv_cache cache = {.kept = {weft_variable(graph, "cache/key", WEFT_F32, kept, weft_constant_of(0)),
 *                                     weft_variable(graph, "cache/value", WEFT_F32, kept, weft_constant_of(0))},
 *                            .place = weft_input(graph, "place", WEFT_I32, WEFT_SCALAR)};
 *     y = weft_transformer(x, &(weft_transformer_options){..., .attend = weft_kv_attend, .attend_context = &cache});
 *     token = weft_group(graph, WEFT_VALUES(weft_assign(cache.kept.key, cache.next.key),
 *                                           weft_assign(cache.kept.value, cache.next.value)));
 *
 * A cache is of one layer. Layers in a scan have theirs stacked: each trip sees its own by weft_scan_each, and `next` is
 * stacked again. docs/layers.md. */
typedef struct weft_kv_rows {
    weft_value key, value;
} weft_kv_rows;
typedef struct weft_kv_cache {
    /* [memory, dims of a row]: variables, of the dtype that attention computes in */
    weft_kv_rows kept;
    /* i32: how many rows of a window are text; the row at which a step's token is. A number, or of a step one for each of some
     * dims of x's rows: so texts of a batch are at places of their own. With the rows' own dim a step has any number of rows. A row
     * outside of the memory, as -1, is not kept and sees nothing */
    weft_value place;
    bool is_step;
    weft_kv_rows next; /* out: what the kept rows become */
} weft_kv_cache;

/* weft_kv_attend - attention of q to the rows of a window, or of a step's rows to those that are kept and their own. A step keeps
 * its rows where zeros are: none was kept since the window, or since the variables began. Made to be a layer's `attend`.
 *
 * cache    a weft_kv_cache
 * options  causal, without mask, bias and window; query is one row in a step, if place does not have its dim
 * cost     of a step: the kept rows up to `place` are read; all of them where a scan stacks caches, where ranks hold them in
 *          common, and where they are split
 */
WEFT_API weft_value weft_kv_attend(void *cache, weft_value q, weft_value k, weft_value v,
                                   const weft_attention_options *options);

/* weft_multi_head_options - of attention between projections. Variables: those of dense layers "<name>/query", "<name>/key",
 * "<name>/value", each of weight [embed, heads, feature], and "<name>/out" of [heads, feature, embed]; with a group the query's is
 * [embed, heads, group, feature], and so is out's. */
typedef struct weft_multi_head_options {
    const char *name;
    weft_dim embed; /* of x, of the memory and of the result */
    weft_dim heads;
    /* so many heads of queries share keys and values, and `heads` counts groups; {0}: none do */
    weft_dim group;
    bool is_rotary;    /* queries and keys are turned by their places: weft_rope */
    weft_value memory; /* what x attends to; {0}: to x itself */
    /* query: x's rows, memory: the memory's; feature: a head's; masks and so on */
    weft_attention_options attention;
    const char *initializer; /* NULL: glorot_uniform */
    double out_scale;        /* times how the weight of out begins; 0: 1 */
    bool lacks_bias;
    const weft_layer_source *source; /* of its variables; NULL: they are its own */
    /* i32, where rows that are rotary stand: any of their dims; {0}: 0, 1, ... */
    weft_value positions;
    /* in place of weft_attention_with: by keys and values that are kept, say; NULL: that */
    weft_attend attend;
    void *attend_context;
    weft_rope_options rotary; /* how they are turned; all 0: as weft_rope does */
} weft_multi_head_options;

/* weft_multi_head - out(attention(query(x), key(memory), value(memory))).
 *
 * returns  x's dims, embed last
 * cost     a rule heads:axis splits all four products and the attention; one all_reduce of the result, as many backward
 * source   Vaswani et al. 2017 */
WEFT_API weft_value weft_multi_head(weft_value x, const weft_multi_head_options *options);

typedef struct weft_experts_options weft_experts_options;
typedef struct weft_experts_facts weft_experts_facts;

/* weft_transformer_options - of a block: attention to its own rows, perhaps to those of a memory, and two dense layers, each with a
 * norm and added to what it read. Layers: "<name>/self_norm", "<name>/self", "<name>/across_norm", "<name>/across",
 * "<name>/up_norm", "<name>/up", "<name>/down"; with experts "<name>/experts" in place of the last two. */
typedef struct weft_transformer_options {
    const char *name;
    weft_dim embed, heads, hidden;
    /* of heads of queries, and whether they are rotary, as of weft_multi_head_options */
    weft_dim group;
    bool is_rotary; /* of x's own rows alone */
    /* query and memory: x's rows; feature: a head's; causal for a decoder */
    weft_attention_options self;
    weft_value memory;             /* an encoder's result [.., memory rows, embed]; {0}: none */
    weft_attention_options across; /* query: x's rows, memory: the memory's */
    bool is_post_norm;             /* norms behind the sums, as of 2017; else before the parts */
    bool is_rms;                   /* norms are rms norms */
    const char *activation;        /* between up and down; NULL: gelu */
    const char *initializer;       /* NULL: glorot_uniform */
    double dropout;                /* of what is added; 0: none */
    /* how many blocks there are: what writes into the stream begins by sqrt(2 depth) smaller; 0: no smaller */
    int64_t depth;
    bool lacks_bias;           /* of dense layers */
    bool lacks_attention_bias; /* of those of attention alone */
    const weft_layer_source *source;
    weft_value positions; /* as of weft_multi_head_options, of x's own rows; so the next two */
    weft_attend attend;
    void *attend_context;
    /* in place of the two dense layers: name and feature are the block's; NULL: none */
    const weft_experts_options *experts;
    weft_experts_facts *facts; /* out, of the experts; NULL: none */
    bool is_gated;  /* of up, as of weft_dense_options: layers "<name>/up" and "<name>/up/gate" */
    double epsilon; /* of its norms, as of weft_norm_options */
    weft_rope_options rotary; /* as of weft_multi_head_options */
} weft_transformer_options;

/* weft_transformer - returns x's dims, embed last. */
WEFT_API weft_value weft_transformer(weft_value x, const weft_transformer_options *options);

/* weft_recurrent_options - of a layer that goes along one dim of x, element by element, with a state that goes on.
 *
 *     weft_recurrent_options options = {.name = "encoder", .over = time, .feature = letter, .hidden = hidden};
 *     weft_value states = weft_lstm(x, &options, NULL);                     x [time, batch, letter]: [time, batch, hidden]
 *
 * Variables: "<name>/input" [gate, feature, hidden], "<name>/state" [gate, from, hidden], "<name>/bias"
 * [gate, hidden]; gru's "<name>/new_bias" [hidden] besides. `from` is the hidden
 * dim of the state before. With a direction all have that dim, first. A rule hidden:axis splits the state and all gates alike,
 * and gathers one state a trip; dims of the batch, and the direction, are split without any exchange forward. */
typedef struct weft_recurrent_options {
    const char *name; /* of the variables */
    weft_dim over;    /* x's dim that is gone along, from its first element to its last */
    weft_dim feature; /* x's dim that is mixed into the state */
    weft_dim hidden;  /* of the state; not one of x's dims */
    /* from the last element to the first; the result's elements stand where x's do */
    bool is_reversed;
    /* of size 2: both ways, side by side: element 0 along `over`, 1 back. {0}: one way */
    weft_dim direction;
    /* i32, of `over` and any other dims of x but feature: where it is 0 the state stays as it was, and the
    result is 0; {0}: none */
    weft_value mask;
    /* the states before the first trip [x's dims without over and feature, direction, hidden], in */
    weft_value first_h;
    weft_value first_c; /* any order; {0}: zeros. c: of lstm alone */
    const weft_initial *weights,
        *biases; /* how variables begin; NULL: uniform, up to 1 / sqrt(hidden) */
} weft_recurrent_options;

/* The states after the last trip, as first_h and first_c. */
typedef struct weft_recurrent_states {
    weft_value h, c;
} weft_recurrent_states;

/* weft_lstm - i, f, o = sigmoid(x W + h U + b) and g = tanh(..) of gates 0, 1, 3 and 2; c' = f c + i g; h' = o tanh(c').
 *
 * last     out, NULL for none: to go on from, or to read a sequence by
 * returns  h of all trips: [over, x's other dims without feature, direction, hidden]
 * source   Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000; order of gates and form as in PyTorch, whose two
 *          biases are one here
 */
WEFT_API weft_value weft_lstm(weft_value x, const weft_recurrent_options *options,
                              weft_recurrent_states *last);
/* weft_gru - r, z = sigmoid(x W + h U + b) of gates 0 and 1; n = tanh(x W + b + r (h U + new_bias)) of gate 2; h' = n + z (h - n).
 *
 * last, returns as of weft_lstm; last->c is invalid
 * source   Cho et al. 2014, in the form of cuDNN and PyTorch, where r comes after the product
 */
WEFT_API weft_value weft_gru(weft_value x, const weft_recurrent_options *options,
                             weft_recurrent_states *last);

/* weft_batch_norm_options - of a layer that normalizes each channel over all else: over the whole batch, however it is split.
 *
 * Variables: "<name>/gain", "<name>/bias", "<name>/mean" and "<name>/variance", each [channel]. So one that trains and one that
 * does not have the same. The last two are state: no gradient flows to them, and weft_trainable has them not among what to train. */
typedef struct weft_batch_norm_options {
    const char *name; /* of the variables */
    weft_dim channel; /* x's dim; each element of it is normalized by itself */
    bool is_fixed;    /* by the running averages, as after training, not by what the batch has */
    double momentum;  /* how much of a batch goes into the averages; 0: 0.1, as in PyTorch */
    double epsilon;   /* is added to the variance; 0: 1e-5 */
} weft_batch_norm_options;

/* weft_batch_norm - (x - mean) / sqrt(variance + epsilon) * gain + bias.
 *
 * x        any dims, channel among them; while it trains more than one element a channel
 * update   out, NULL for none: a token that takes the batch into the averages: mean' = mean + momentum (batch's - mean), and so
 *          the variance, of the batch divided by one element less. It is handed to weft_compile or weft_group, beside the
 *          optimizer's. Where is_fixed there is none: the invalid value
 * returns  x's dims and dtype
 * cost     two all_reduces of [channel] where anything but the channels is split, and as many backward
 * source   Ioffe, Szegedy 2015; averages as in PyTorch
 */
WEFT_API weft_value weft_batch_norm(weft_value x, const weft_batch_norm_options *options,
                                    weft_value *update);

/* weft_experts_options - of a layer of many small networks, experts. Each token goes through few of them.
 *
 * Variables, of the dtype that x is computed with: "<name>/router" [feature, route], "<name>/up" [experts, feature, hidden] and
 * "<name>/down" [experts, hidden, feature]. An expert is activation(x up) down.
 *
 * The elements of all dims of x but token and feature are *groups*: each expert has so many places for the tokens of each group.
 * So who is taken is a matter of a group alone, and no layout changes it. */
typedef enum weft_chooser {
    /* each token the top_k experts with the largest shares; who comes first along token sits first */
    WEFT_TOKENS_CHOOSE,
    /* each expert the tokens with the largest shares: what comes of a token depends on later ones too */
    WEFT_EXPERTS_CHOOSE
} weft_chooser;
typedef struct weft_experts_weights {
    weft_value router, up, down;
} weft_experts_weights;
struct weft_experts_options {
    const char *name;        /* of the variables */
    weft_dim token, feature; /* x's dims: whose elements go to experts; what experts mix */
    weft_dim experts;        /* how many; a rule for it splits them */
    weft_dim hidden;         /* inside an expert. x has neither, nor route, place or choice */
    int64_t top_k;           /* experts of a token; where experts choose, on average; 0: 1 */
    weft_chooser chooser;
    /* an expert has ceil(capacity top_k token / experts) places, from 1 to as many as there are tokens; 0: 1.25 */
    double capacity;
    /* no places: every expert computes every token, by a gate of 0 for those that did not choose it */
    bool is_dropless;
    /* of is_dropless: a token is multiplied with its own experts' matrices alone (weft_pick_product), experts / top_k
     * times less work and memory. For experts that every rank has whole: where they are split, values inside of them
     * go over ranks. On the CPU alone yet */
    bool is_picked;
    /* a token's gates are divided by their sum, of several experts; else they are shares as they are */
    bool normalizes;
    const char *activation, *initializer; /* as of weft_dense_options; NULL: gelu, glorot_uniform */
    const weft_initial *weights;          /* exactly so; NULL: by the initializer */
    double out_scale;                     /* times how the weights of down begin; 0: 1 */
    /* in place of variables of its own, of any float dtype; NULL: none */
    const weft_experts_weights *given;
    /* of its variables, as of dense layers; NULL: they are its own */
    const weft_layer_source *source;
    /* the router reads x times numbers from 1 - jitter to 1 + jitter, others in each run and the same in every
     * layout. So close choices alternate: for training; from 0, none, to below 1 */
    double jitter;
};

/* Scalars to be added to a loss, with weights of your own, or looked at. */
struct weft_experts_facts {
    /* mean over groups of experts sum_e (e's part of all choices) (mean share of e): 1 where the load is even, up to `experts`
     * where all choose one. Where experts choose, 1 */
    weft_value balance;
    weft_value z;           /* mean of logsumexp(logits)^2: keeps the router's logits small */
    weft_value dropped;     /* i32: tokens that no expert took; their result is 0 */
    weft_value turned_away; /* i32: choices of tokens for which there was no place */
};

/* weft_experts - sum over a token's experts of gate expert(token); shares are softmax(x router) along the experts, gates those shares.
 *
 * x        any dims, token and feature among them
 * facts    out, NULL for none
 * returns  x's dims and dtype; 0 for a token that no expert took: add it to x
 * cost     the work of capacity top_k dense layers of `hidden`, plus the router's; is_dropless: of as many as there are experts. Tokens are
 *          copied to places and back, not multiplied by a matrix of who sits where. With a group's dim and experts over one axis, as
 *          batch:data,experts:data, an all_to_all there and one back, and both again backward; with experts over another one,
 *          one all_reduce of the result
 * source   Shazeer et al. 2017; one choice and balance: Fedus et al. 2021; two: Lepikhin et al. 2020; experts choose: Zhou et al. 2022;
 *          z: Zoph et al. 2022
 */
WEFT_API weft_value weft_experts(weft_value x, const weft_experts_options *options,
                                 weft_experts_facts *facts);

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/layers_here.h"
#endif

#endif
