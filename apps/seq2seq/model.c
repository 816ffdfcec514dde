/* model: what is read becomes a memory [.., source, embed]; what is written attends to it, row by row, and sees no letter behind.
 *
 * source  lstm: Luong et al. 2015, with an encoder that goes both ways; transformer: Vaswani et al. 2017, norms before
 */
#include "model.h"

#include <stdio.h>
#include <string.h>

#include "weft/layers.h"

typedef struct builder {
    const seq2seq_shape *shape;
    seq2seq_model *m;
    weft_dim embed, hidden, heads, kv;
} builder;

struct seq2seq_kind {
    const char *name;
    bool has_places; /* its layers do not know by themselves which letter is before which */
    /* from embedded letters to the rows that letters are told by */
    weft_value (*between)(const builder *b, weft_value read, weft_value written);
};

static weft_value dropout(const builder *b, weft_value x)
{
    return b->shape->dropout > 0 ? weft_dropout(x, b->shape->dropout) : x;
}

/* ---- LSTMs --------------------------------------------------------------------------------------- */

/* Both ways as one row of embed. */
static weft_value merged(const builder *b, weft_value x, weft_dim ways, const char *name)
{
    return weft_dense(x, &(weft_dense_options){.name = name,
                                               .in = WEFT_DIMS(ways, b->hidden),
                                               .out = WEFT_DIMS(b->embed),
                                               .activation = "tanh"});
}

static weft_value memorized(const builder *b, weft_value x, int64_t layer, weft_value *last)
{
    const weft_dim ways = {"ways", 2};
    weft_recurrent_states states;
    char name[3][40];
    static const char *const forms[] = {"encoder%lld", "encoder%lld_memory", "encoder%lld_last"};
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof *name, forms[i], (long long)layer);
    const weft_value both = weft_lstm(x,
                                      &(weft_recurrent_options){.name = name[0],
                                                                .over = b->m->source,
                                                                .feature = b->embed,
                                                                .hidden = b->hidden,
                                                                .direction = ways},
                                      &states);
    *last = weft_rename(merged(b, states.h, ways, name[2]), b->embed, b->hidden);
    return dropout(b, merged(b, both, ways, name[1]));
}

static weft_value recalled(const builder *b, weft_value x, int64_t layer, weft_value first)
{
    char name[40];
    snprintf(name, sizeof name, "decoder%lld", (long long)layer);
    const weft_recurrent_options o = {.name = name,
                                      .over = b->m->target,
                                      .feature = b->embed,
                                      .hidden = b->hidden,
                                      .first_h = first};
    return dropout(b, weft_rename(weft_lstm(x, &o, NULL), b->hidden, b->embed));
}

static weft_value lstms(const builder *b, weft_value read, weft_value written)
{
    weft_value last;
    for (int64_t i = 0; i < b->shape->layers; i++) {
        read = memorized(b, read, i, &last);
        written = recalled(b, written, i, last);
    }
    const weft_value seen =
        weft_multi_head(written, &(weft_multi_head_options){.name = "attention",
                                                            .embed = b->embed,
                                                            .heads = b->heads,
                                                            .memory = read,
                                                            .attention = {.query = b->m->target,
                                                                          .memory = b->m->source,
                                                                          .feature = b->kv}});
    const weft_value h =
        weft_dense(weft_add(written, seen), &(weft_dense_options){.name = "mix",
                                                                  .in = WEFT_DIMS(b->embed),
                                                                  .out = WEFT_DIMS(b->hidden),
                                                                  .activation = "tanh"});
    return weft_rename(h, b->hidden, b->embed);
}

/* ---- transformer blocks -------------------------------------------------------------------------- */

static weft_value block(const builder *b, weft_value x, const char *part, int64_t layer,
                        weft_dim rows, weft_value memory)
{
    char name[40];
    snprintf(name, sizeof name, "%s%lld", part, (long long)layer);
    return weft_transformer(
        x, &(weft_transformer_options){
               .name = name,
               .embed = b->embed,
               .heads = b->heads,
               .hidden = {"hidden", 4 * b->shape->width},
               .self = {.query = rows, .memory = rows, .feature = b->kv, .causal = memory.id != 0},
               .memory = memory,
               .across = {.query = rows, .memory = b->m->source, .feature = b->kv},
               .dropout = b->shape->dropout});
}

static weft_value blocks(const builder *b, weft_value read, weft_value written)
{
    const weft_value none = {NULL, 0};
    for (int64_t i = 0; i < b->shape->layers; i++)
        read = block(b, read, "encoder", i, b->m->source, none);
    read = weft_norm(read, &(weft_norm_options){.name = "encoder_norm", .feature = b->embed});
    for (int64_t i = 0; i < b->shape->layers; i++)
        written = block(b, written, "decoder", i, b->m->target, read);
    return weft_norm(written, &(weft_norm_options){.name = "norm", .feature = b->embed});
}

/* ---- public -------------------------------------------------------------------------------------- */

static const seq2seq_kind kinds[] = {{"lstm", false, lstms}, {"transformer", true, blocks}};

const seq2seq_kind *seq2seq_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static weft_value embedded(const builder *b, weft_value letters, weft_dim rows, const char *name)
{
    const weft_dim none = {NULL, 0};
    return weft_embedding(
        letters, &(weft_embedding_options){.name = name,
                                           .entry = b->m->vocab,
                                           .embed = b->embed,
                                           .over = b->shape->kind->has_places ? rows : none,
                                           .dtype = b->shape->dtype,
                                           .initializer = "lecun_normal"});
}

seq2seq_model seq2seq_build(weft_graph *graph, const seq2seq_shape *shape)
{
    const int64_t width = shape->width, heads = shape->heads;
    seq2seq_model m = {.batch = {"batch", shape->batch},
                       .source = {"source", shape->source},
                       .target = {"target", shape->target},
                       .vocab = {"vocab", shape->vocab}};
    const builder b = {
        shape, &m, {"embed", width}, {"hidden", width}, {"heads", heads}, {"kv", width / heads}};
    m.read = weft_input(graph, "read", WEFT_I32, WEFT_DIMS(m.batch, m.source));
    m.written = weft_input(graph, "written", WEFT_I32, WEFT_DIMS(m.batch, m.target));
    const weft_value rows = shape->kind->between(&b, embedded(&b, m.read, m.source, "read_letters"),
                                                 embedded(&b, m.written, m.target, "letters"));
    const weft_value scores =
        weft_dense(rows, &(weft_dense_options){
                             .name = "spell", .in = WEFT_DIMS(b.embed), .out = WEFT_DIMS(m.vocab)});
    m.logits = weft_transpose(scores, WEFT_DIMS(m.batch, m.target, m.vocab));
    return m;
}

weft_value seq2seq_loss(weft_graph *graph, const seq2seq_model *model)
{
    const weft_value wanted =
        weft_input(graph, "wanted", WEFT_I32, WEFT_DIMS(model->batch, model->target));
    return weft_mean(weft_cross_entropy(model->logits, wanted, model->vocab));
}
