/* gpt2: GPT-2 as published (biases everywhere, the head is the table of tokens), its loss and AdamW's step.
 *
 * Sizes are batch, seq, layers, width, heads, vocab. There are as many places as the sequence has.
 * source  Radford et al. 2019, "Language models are unsupervised multitask learners"
 */
#include <math.h>
#include <stdio.h>

#include "rows.h"

typedef struct builder {
    bench *b;
    weft_dim batch, seq, embed, heads, kv, hidden, vocab;
    int layer; /* -1 outside of blocks */
    weft_initial narrow, residual;
} builder;

static weft_value raw_variable(builder *m, const char *name, weft_shape shape, weft_initial initial)
{
    char full[64];
    snprintf(full, sizeof full, "block%d.%s", m->layer, name);
    return bench_variable(m->b, m->layer >= 0 ? full : name, shape, initial);
}

static weft_value variable(builder *m, const char *name, weft_shape shape, weft_initial initial)
{
    return weft_cast(raw_variable(m, name, shape, initial), m->b->computes);
}

static weft_value norm(builder *m, const char *name, weft_value x)
{
    char gain[32], bias[32];
    snprintf(gain, sizeof gain, "%s.gain", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    weft_value g = variable(m, gain, WEFT_DIMS(m->embed), weft_constant_of(1.0));
    return weft_layer_norm(x, g, variable(m, bias, WEFT_DIMS(m->embed), weft_constant_of(0.0)),
                           m->embed);
}

/* x w + bias; the bias has the dims of the result that the weight brings. */
static weft_value linear(builder *m, const char *name, weft_value x, weft_shape weight,
                         weft_initial initial, weft_shape out, weft_shape bias)
{
    char bias_name[32];
    snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    weft_value w = variable(m, name, weight, initial);
    return weft_add(weft_einsum(out, x, w), variable(m, bias_name, bias, weft_constant_of(0.0)));
}

static weft_value head_of(builder *m, const char *name, weft_value x)
{
    return linear(m, name, x, WEFT_DIMS(m->embed, m->heads, m->kv), m->narrow,
                  WEFT_DIMS(m->batch, m->seq, m->heads, m->kv), WEFT_DIMS(m->heads, m->kv));
}

static weft_value attention(builder *m, weft_value x)
{
    weft_value q = head_of(m, "query", x), k = head_of(m, "key", x), v = head_of(m, "value", x);
    weft_value mixed = weft_attention(q, k, v, m->seq, m->seq, m->kv, true);
    return linear(m, "project", mixed, WEFT_DIMS(m->heads, m->kv, m->embed), m->residual,
                  WEFT_DIMS(m->batch, m->seq, m->embed), WEFT_DIMS(m->embed));
}

static weft_value mlp(builder *m, weft_value x)
{
    weft_value h = linear(m, "up", x, WEFT_DIMS(m->embed, m->hidden), m->narrow,
                          WEFT_DIMS(m->batch, m->seq, m->hidden), WEFT_DIMS(m->hidden));
    return linear(m, "down", weft_gelu(h), WEFT_DIMS(m->hidden, m->embed), m->residual,
                  WEFT_DIMS(m->batch, m->seq, m->embed), WEFT_DIMS(m->embed));
}

static builder builder_for(bench *b)
{
    const int64_t *n = b->row->sizes;
    return (builder){
        .b = b,
        .batch = {"batch", n[0]},
        .seq = {"seq", n[1]},
        .embed = {"embed", n[3]},
        .heads = {"heads", n[4]},
        .kv = {"kv", n[3] / n[4]},
        .hidden = {"hidden", 4 * n[3]},
        .vocab = {"vocab", n[5]},
        .layer = -1,
        .narrow = weft_normal(0.0, 0.02),
        .residual = weft_normal(0.0, 0.02 / sqrt(2.0 * (double)n[2])),
    };
}

static void build_gpt2(bench *b)
{
    builder m = builder_for(b);
    const weft_shape places = WEFT_DIMS(m.batch, m.seq);
    weft_value tokens = bench_indices(b, places, m.vocab.size);
    weft_value targets = bench_indices(b, places, m.vocab.size);
    weft_value table = raw_variable(&m, "tokens", WEFT_DIMS(m.vocab, m.embed), m.narrow);
    weft_value place = raw_variable(&m, "places", WEFT_DIMS(m.seq, m.embed), m.narrow);
    weft_value x = weft_cast(weft_add(weft_gather(table, tokens, m.vocab), place), b->computes);
    for (m.layer = 0; m.layer < b->row->sizes[2]; m.layer++) {
        x = weft_add(x, attention(&m, norm(&m, "norm1", x)));
        x = weft_add(x, mlp(&m, norm(&m, "norm2", x)));
    }
    m.layer = -1;
    x = norm(&m, "norm", x);
    weft_value logits =
        weft_einsum(WEFT_DIMS(m.batch, m.seq, m.vocab), x, weft_cast(table, b->computes));
    b->values[0] = weft_mean(weft_cross_entropy(weft_cast(logits, WEFT_F32), targets, m.vocab));
    b->values[1] = weft_adamw(
        b->values[0],
        &(weft_optimizer_options){
            .rate = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1});
}

const bench_row bench_gpt2_rows[] = {
    {"gpt2_4x64", &bench_training, build_gpt2, {4, 64, 12, 768, 12, 50304}},
    {"gpt2_1x1024", &bench_training, build_gpt2, {1, 1024, 12, 768, 12, 50304}},
    {"gpt2_bytes", &bench_training, build_gpt2, {4, 64, 12, 768, 12, 256}},
    {"char", &bench_training, build_gpt2, {12, 64, 4, 128, 4, 65}},
    {"gpt2_64x1024", &bench_training, build_gpt2, {64, 1024, 12, 768, 12, 50304}},
    {"gpt2_4x1024", &bench_training, build_gpt2, {4, 1024, 12, 768, 12, 50304}},
    {"gpt2_xl_16x1024", &bench_training, build_gpt2, {16, 1024, 48, 1600, 25, 50304}},
    {"tiny", &bench_training, build_gpt2, {2, 16, 2, 32, 2, 64}},
    {0},
};
