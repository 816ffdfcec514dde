/* layers.h: blocks of ops with variables of their own, which networks are put together from.
 *
 *     weft_recurrent_options options = {.name = "encoder", .over = time, .feature = letter, .hidden = hidden};
 *     weft_value states = weft_lstm(x, &options, NULL);                     x [time, batch, letter]: [time, batch, hidden]
 *
 * Nothing here is known to the compiler: a layer is what one would write with ops.h and scan.h, and every layout is right for
 * it. All Local; errors are the graph's, as those of every builder.
 */
#ifndef WEFT_LAYERS_H
#define WEFT_LAYERS_H

#include "weft/graph.h"

WEFT_BEGIN

/* weft_recurrent_options - of a layer that goes along one dim of x, element by element, with a state that goes on.
 *
 * Variables, of x's dtype: "<name>/input" [gate, feature, hidden], "<name>/state" [gate, from, hidden], "<name>/bias"
 * [gate, hidden]; gru's "<name>/new_bias" [hidden] besides. `from` is the hidden
 * dim of the state before. With a direction all have that dim, first. A rule hidden:axis splits the state and all gates alike,
 * and gathers one state a trip; dims of the batch, and the direction, are split without any exchange forward. */
typedef struct weft_recurrent_options {
    const char *name; /* of the variables */
    weft_dim over;    /* x's dim that is gone along, from its first element to its last */
    weft_dim feature; /* x's dim that is mixed into the state */
    weft_dim hidden;  /* of the state; not one of x's dims */
    bool
        is_reversed; /* from the last element to the first; the result's elements stand where x's do */
    weft_dim
        direction; /* of size 2: both ways, side by side: element 0 along `over`, 1 back. {0}: one way */
    weft_value
        mask; /* i32, of `over` and any other dims of x but feature: where it is 0 the state stays as it was, and the
                            result is 0; {0}: none */
    weft_value
        first_h; /* the states before the first trip [x's dims without over and feature, direction, hidden], in */
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
 * Variables, of the dtype that x is computed with: "<name>/gain", "<name>/bias", "<name>/mean" and "<name>/variance", each
 * [channel]. Layers of one name in one graph have the same ones: one that trains and one that does not. */
typedef struct weft_batch_norm_options {
    const char *name; /* of the variables */
    weft_dim channel; /* x's dim of which each element is normalized by itself */
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

WEFT_END

#ifndef WEFT_NO_HERE
#include "weft/layers_here.h"
#endif

#endif
