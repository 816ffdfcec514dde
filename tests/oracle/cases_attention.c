/* cases_attention.c: attention and its gradient. */
#include "cases.h"

static weft_value attention(build_t *b, weft_dtype t, weft_dim memory, bool causal)
{
    weft_value q = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(BATCH, memory, HEADS, FEATURE));
    weft_value v = in(b, t, WEFT_DIMS(BATCH, HEADS, memory, FEATURE));
    return weft_attention(q, k, v, SEQ, memory, FEATURE, causal);
}
static weft_value attention_causal(build_t *b, weft_dtype t)
{
    return attention(b, t, SEQ, true);
}
static weft_value attention_full(build_t *b, weft_dtype t)
{
    return attention(b, t, SEQ, false);
}
static weft_value attention_same(build_t *b, weft_dtype t) /* one value is all three operands */
{
    weft_value x = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    b->arguments[b->n_arguments++] = x, b->arguments[b->n_arguments++] = x; /* of the definition */
    return weft_attention(x, x, x, SEQ, SEQ, FEATURE, false);
}
static weft_value attention_cross(build_t *b, weft_dtype t)
{
    return attention(b, t, MEMORY, false);
}

static weft_value attention_with(build_t *b, weft_dtype t, weft_attention_options options,
                                 weft_shape bias, weft_shape mask)
{
    options.query = SEQ, options.feature = FEATURE;
    weft_value q = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(BATCH, options.memory, HEADS, FEATURE));
    weft_value v = in(b, t, WEFT_DIMS(BATCH, HEADS, options.memory, FEATURE));
    if (bias.n_dims > 0) options.bias = in(b, t, bias);
    if (mask.n_dims > 0) options.mask = weft_oracle_input(b, WEFT_I32, mask, 0, 2);
    return weft_attention_with(q, k, v, &options);
}
static weft_value attention_bias(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = SEQ, .column = KEY};
    return attention_with(b, t, options, WEFT_DIMS(HEADS, KEY, SEQ), WEFT_SCALAR);
}
static weft_value attention_mask(build_t *b, weft_dtype t) /* padding; some rows see nothing */
{
    const weft_attention_options options = {.memory = SEQ, .column = KEY, .causal = true};
    return attention_with(b, t, options, WEFT_SCALAR, WEFT_DIMS(BATCH, KEY));
}
static weft_value attention_window(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = SEQ, .causal = true, .window = 2};
    return attention_with(b, t, options, WEFT_SCALAR, WEFT_SCALAR);
}
static weft_value attention_everything(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {.memory = MEMORY, .window = 3, .scale = 0.8};
    return attention_with(b, t, options, WEFT_DIMS(MEMORY, BATCH), WEFT_DIMS(SEQ, MEMORY, HEADS));
}

/* Heads in groups that share rows of k and v. */
static weft_value attention_grouped(build_t *b, weft_dtype t)
{
    weft_value q = in(b, t, WEFT_DIMS(SEQ, HEADS, A, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(SEQ, HEADS, FEATURE)),
               v = in(b, t, WEFT_DIMS(HEADS, SEQ, FEATURE));
    return weft_attention(q, k, v, SEQ, SEQ, FEATURE, true);
}

/* One for all heads. */
static weft_value attention_multi_query(build_t *b, weft_dtype t)
{
    weft_attention_options options = {.query = SEQ, .memory = MEMORY, .feature = FEATURE};
    weft_value q = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    weft_value k = in(b, t, WEFT_DIMS(MEMORY, BATCH, FEATURE)),
               v = in(b, t, WEFT_DIMS(BATCH, MEMORY, FEATURE));
    options.bias = in(b, t, WEFT_DIMS(HEADS, MEMORY));
    options.mask = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(BATCH, MEMORY), 0, 2);
    return weft_attention_with(q, k, v, &options);
}

/* Several tiles of query and of memory rows. */
static weft_value attention_long(build_t *b, weft_dtype t)
{
    weft_value q = in(b, t, WEFT_DIMS(LONG, D)), k = in(b, t, WEFT_DIMS(LATER, D)),
               v = in(b, t, WEFT_DIMS(LATER, D));
    return weft_attention(q, k, v, LONG, LATER, D, true);
}

/* Scores of some hundreds: exp of them is no number. */
static weft_value attention_steep(build_t *b, weft_dtype t)
{
    const weft_attention_options options = {
        .query = LONG, .memory = LATER, .feature = D, .scale = 300.0};
    weft_value q = in(b, t, WEFT_DIMS(LONG, D)), k = in(b, t, WEFT_DIMS(LATER, D)),
               v = in(b, t, WEFT_DIMS(LATER, D));
    return weft_attention_with(q, k, v, &options);
}

/* With its second result, the maximum and the sum of each row's softmax; some rows see nothing. */
static weft_value attention_sums(build_t *b, weft_dtype t)
{
    weft_value y = attention_mask(b, t);
    weft_oracle_other(b, weft_result(y, 1));
    return y;
}

/* The op that gradients of attention make, with what they hand to it: n operands of attention, its results, dy. */
static weft_value emit_attention_grad(build_t *b, weft_value operands[WEFT_MAX_IN], int n,
                                      weft_value dy, weft_attention_attributes attributes)
{
    weft_attention_attributes plain = attributes;
    plain.bias_gradient = false;
    operands[n] = weft_emit(b->graph, &weft_op_attention, operands, n, &plain, sizeof plain);
    operands[n + 1] = weft_result(operands[n], 1);
    operands[n + 2] = dy;
    weft_value dq = weft_emit(b->graph, &weft_op_attention_grad, operands, n + 3, &attributes,
                              sizeof attributes);
    for (int o = 1; o < (attributes.bias_gradient ? 4 : 3); o++)
        weft_oracle_other(b, weft_result(dq, o));
    return dq;
}
static weft_value attention_grad_of(build_t *b, weft_dtype t, weft_dim memory,
                                    weft_attention_attributes attributes)
{
    attributes.query = SEQ.name, attributes.memory = memory.name, attributes.feature = FEATURE.name;
    if (attributes.scale == 0) attributes.scale = 1.0 / sqrt((double)FEATURE.size);
    if (attributes.column == NULL) attributes.column = memory.name;
    weft_value operands[WEFT_MAX_IN] = {in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE)),
                                        in(b, t, WEFT_DIMS(BATCH, memory, HEADS, FEATURE)),
                                        in(b, t, WEFT_DIMS(BATCH, HEADS, memory, FEATURE))};
    int n = 3;
    if (attributes.bias > 0) operands[n++] = in(b, t, WEFT_DIMS(HEADS, memory, SEQ));
    if (attributes.mask > 0)
        operands[n++] = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(BATCH, memory), 0, 2);
    weft_value dy = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    return emit_attention_grad(b, operands, n, dy, attributes);
}
static weft_value attention_grad_long(build_t *b, weft_dtype t)
{
    const weft_attention_attributes attributes = {.query = LONG.name,
                                                  .memory = LATER.name,
                                                  .column = LATER.name,
                                                  .feature = D.name,
                                                  .scale = 1.0 / sqrt((double)D.size)};
    weft_value operands[WEFT_MAX_IN] = {in(b, t, WEFT_DIMS(LONG, D)), in(b, t, WEFT_DIMS(LATER, D)),
                                        in(b, t, WEFT_DIMS(LATER, D))};
    weft_value dy = in(b, t, WEFT_DIMS(LONG, D));
    return emit_attention_grad(b, operands, 3, dy, attributes);
}
static weft_value attention_grad_causal(build_t *b, weft_dtype t)
{
    return attention_grad_of(b, t, SEQ, (weft_attention_attributes){.causal = true});
}
static weft_value attention_grad_cross(build_t *b, weft_dtype t)
{
    return attention_grad_of(b, t, MEMORY, (weft_attention_attributes){.scale = 0.8});
}
/* k and v are common to batch and heads, and the bias to the batch. */
static weft_value attention_grad_common(build_t *b, weft_dtype t)
{
    const weft_attention_attributes attributes = {.query = SEQ.name,
                                                  .memory = MEMORY.name,
                                                  .column = MEMORY.name,
                                                  .feature = FEATURE.name,
                                                  .scale = 0.8,
                                                  .bias = 3,
                                                  .bias_gradient = true};
    weft_value operands[WEFT_MAX_IN] = {
        in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE)), in(b, t, WEFT_DIMS(MEMORY, FEATURE)),
        in(b, t, WEFT_DIMS(MEMORY, FEATURE)), in(b, t, WEFT_DIMS(HEADS, MEMORY, SEQ))};
    weft_value dy = in(b, t, WEFT_DIMS(BATCH, SEQ, HEADS, FEATURE));
    return emit_attention_grad(b, operands, 4, dy, attributes);
}
static weft_value attention_grad_everything(build_t *b, weft_dtype t)
{
    const weft_attention_attributes attributes = {
        .window = 3, .bias = 3, .mask = 4, .bias_gradient = true};
    return attention_grad_of(b, t, MEMORY, attributes);
}

#define SELF  .dim = "seq", .other = "seq", .feature = "feature"
#define CROSS .dim = "seq", .other = "memory", .feature = "feature"
CASES(attention, CASE(attention_causal, OP_FLOAT, 2, .with = {SELF, .causal = true}),
      CASE(attention_full, OP_FLOAT, 2, .with = {SELF}),
      CASE(attention_same, OP_FLOAT, 2, .with = {SELF}),
      CASE(attention_cross, OP_FLOAT, 1, .with = {CROSS}),
      CASE(attention_bias, OP_FLOAT, 2, .with = {SELF, .column = "key", .bias = 3}),
      CASE(attention_mask, OP_FLOAT, 1, .with = {SELF, .column = "key", .causal = true, .mask = 3}),
      CASE(attention_sums, OP_WIDE, 0, .with = {SELF, .column = "key", .causal = true, .mask = 3}),
      CASE(attention_window, OP_FLOAT, 2, .with = {SELF, .causal = true, .window = 2}),
      CASE(attention_grouped, OP_FLOAT, 2, .with = {SELF, .causal = true}),
      CASE(attention_multi_query, OP_FLOAT, 1,
           .with = {CROSS, .column = "memory", .bias = 3, .mask = 4}),
      CASE(attention_long, OP_FLOAT, 0, .alone = true,
           .with = {.dim = "long", .other = "later", .feature = "d", .causal = true}),
      /* a score of 1000 is 1e-4 wide in f32, and exp makes of that a part of the weight */
      CASE(attention_steep, OP_FLOAT, 0, .alone = true, .f32 = 3e-4, .f64 = 1e-12,
           .with = {.dim = "long", .other = "later", .feature = "d", .a = 300.0}),
      CASE(attention_everything, OP_FLOAT, 2,
           .with = {CROSS, .column = "memory", .window = 3, .a = 0.8, .bias = 3, .mask = 4}))
CASES(attention_grad, CASE(attention_grad_causal, OP_WIDE, 1, .with = {SELF, .causal = true}),
      CASE(attention_grad_cross, OP_WIDE, 1, .with = {CROSS, .a = 0.8}),
      CASE(attention_grad_long, OP_WIDE, 0, .alone = true,
           .with = {.dim = "long", .other = "later", .feature = "d"}),
      CASE(attention_grad_common, OP_WIDE, 1,
           .with = {CROSS, .column = "memory", .a = 0.8, .bias = 3}),
      CASE(attention_grad_everything, OP_WIDE, 1,
           .with = {CROSS, .column = "memory", .window = 3, .bias = 3, .mask = 4}))
