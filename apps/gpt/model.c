/* model: pre-norm transformer blocks; learned positions; attention and MLP each added to the
 * residual stream.
 *
 * Dropout follows the embedding, the attention's projection and the MLP. Weights begin normal with
 * deviation 0.02, those that write into the residual stream divided by sqrt(2 layers), so that
 * depth does not blow it up. source  Radford et al. 2019, "Language models are unsupervised
 * multitask learners"
 */
#include "model.h"

#include <math.h>
#include <stdio.h>

const char *const gpt_dims[GPT_N_DIMS] = {"batch", "seq",    "embed", "heads",
                                          "kv",    "hidden", "vocab"};

/* What the parts need while the model is being written down. */
typedef struct builder {
    const gpt_shape *shape;
    gpt_model *m;
    weft_graph *graph;
    int layer;       /* of the block under construction; -1 outside */
    int n_variables; /* made so far */
} builder;

static weft_value variable(builder *b, const char *name, weft_shape dims, weft_initial initial)
{
    char full[64];
    if (b->layer >= 0)
        snprintf(full, sizeof full, "block%d.%s", b->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    if (b->shape->is_formula) initial = weft_formula(0.3, 0.7 + 0.01 * b->n_variables);
    b->n_variables++;
    return weft_variable(b->graph, full, b->shape->dtype, dims, initial);
}

/* Of activations. */
static weft_dtype dtype_of(const gpt_shape *shape)
{
    const bool is_half = shape->computes == WEFT_BF16 || shape->computes == WEFT_F16;
    return is_half ? shape->computes : shape->dtype;
}

/* A variable as products read it: rounded to what the model computes in; the variable itself is not. */
static weft_value operand(builder *b, const char *name, weft_shape dims, weft_initial initial)
{
    return weft_cast(variable(b, name, dims, initial), dtype_of(b->shape));
}

static weft_value dropout(const builder *b, weft_value x)
{
    return b->shape->dropout > 0 ? weft_dropout(x, b->shape->dropout) : x;
}

static weft_value norm(builder *b, const char *gain_name, const char *bias_name, weft_value x)
{
    const weft_dim embed = b->m->embed;
    weft_value gain = variable(b, gain_name, WEFT_DIMS(embed), weft_constant_of(1.0));
    weft_value bias = variable(b, bias_name, WEFT_DIMS(embed), weft_constant_of(0.0));
    return weft_layer_norm(x, gain, bias, embed);
}

/* A matrix that writes into the residual stream begins smaller. */
static weft_initial residual_initial(const builder *b)
{
    return weft_normal(0.0, 0.02 / sqrt(2.0 * (double)b->shape->layers));
}

static weft_value attention(builder *b, weft_value x)
{
    const gpt_model *m = b->m;
    const weft_shape in = WEFT_DIMS(m->embed, m->heads, m->kv);
    const weft_shape split = WEFT_DIMS(m->batch, m->seq, m->heads, m->kv);
    weft_value wq = operand(b, "query", in, weft_normal(0.0, 0.02));
    weft_value wk = operand(b, "key", in, weft_normal(0.0, 0.02));
    weft_value wv = operand(b, "value", in, weft_normal(0.0, 0.02));
    weft_value wo =
        operand(b, "project", WEFT_DIMS(m->heads, m->kv, m->embed), residual_initial(b));

    weft_value q = weft_einsum(split, x, wq);
    weft_value k = weft_einsum(split, x, wk);
    weft_value v = weft_einsum(split, x, wv);
    weft_value mixed = weft_attention(q, k, v, m->seq, m->seq, m->kv, true);
    return weft_einsum(WEFT_DIMS(m->batch, m->seq, m->embed), mixed, wo);
}

static weft_value mlp(builder *b, weft_value x)
{
    const gpt_model *m = b->m;
    weft_value w1 = operand(b, "up", WEFT_DIMS(m->embed, m->hidden), weft_normal(0.0, 0.02));
    weft_value b1 = operand(b, "up.bias", WEFT_DIMS(m->hidden), weft_constant_of(0.0));
    weft_value w2 = operand(b, "down", WEFT_DIMS(m->hidden, m->embed), residual_initial(b));
    weft_value b2 = operand(b, "down.bias", WEFT_DIMS(m->embed), weft_constant_of(0.0));

    weft_value h =
        weft_gelu(weft_add(weft_einsum(WEFT_DIMS(m->batch, m->seq, m->hidden), x, w1), b1));
    return weft_add(weft_einsum(WEFT_DIMS(m->batch, m->seq, m->embed), h, w2), b2);
}

static weft_value block(builder *b, weft_value x)
{
    x = weft_add(x, dropout(b, attention(b, norm(b, "norm1.gain", "norm1.bias", x))));
    return weft_add(x, dropout(b, mlp(b, norm(b, "norm2.gain", "norm2.bias", x))));
}

static void set_dims(const gpt_shape *shape, gpt_model *m)
{
    *m = (gpt_model){
        .batch = {"batch", shape->batch},
        .seq = {"seq", shape->seq},
        .embed = {"embed", shape->width},
        .heads = {"heads", shape->heads},
        .kv = {"kv", shape->width / shape->heads},
        .hidden = {"hidden", shape->hidden},
        .vocab = {"vocab", shape->vocab},
    };
}

weft_value gpt_logits(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    gpt_model *m = model;
    builder b = {.shape = shape, .m = m, .graph = graph, .layer = -1};
    set_dims(shape, m);
    m->tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(m->batch, m->seq));
    weft_value table = variable(&b, "bytes", WEFT_DIMS(m->vocab, m->embed), weft_normal(0.0, 0.02));
    weft_value places = variable(&b, "places", WEFT_DIMS(m->seq, m->embed), weft_normal(0.0, 0.02));

    weft_value x = weft_add(weft_gather(table, m->tokens, m->vocab), places);
    x = dropout(&b, weft_cast(x, dtype_of(shape)));
    for (b.layer = 0; b.layer < shape->layers; b.layer++)
        x = block(&b, x);
    b.layer = -1;
    x = norm(&b, "norm.gain", "norm.bias", x);
    weft_value head = operand(&b, "head", WEFT_DIMS(m->embed, m->vocab), weft_normal(0.0, 0.02));
    m->logits = weft_einsum(WEFT_DIMS(m->batch, m->seq, m->vocab), x, head);
    return m->logits;
}

weft_value gpt_loss(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    weft_value logits = gpt_logits(shape, graph, model);
    model->targets = weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(model->batch, model->seq));
    return weft_mean(weft_cross_entropy(logits, model->targets, model->vocab));
}

double gpt_parameters(const gpt_shape *shape)
{
    const double embed = (double)shape->width, hidden = (double)shape->hidden;
    const double block = 4 * embed * embed + 2 * embed * hidden + hidden + embed + 4 * embed;
    return (double)shape->layers * block + ((double)(2 * shape->vocab + shape->seq) + 2) * embed;
}
