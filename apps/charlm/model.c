/* model: bytes to rows of a table, layers that go along them, scores of the next byte. */
#include "model.h"

#include <stdio.h>
#include <string.h>

#include "weft/layers.h"

typedef struct builder {
    const charlm_shape *shape;
    charlm_model *m;
    weft_dim embed, hidden;
} builder;

/* One layer: x [.., embed] to the same dims. */
struct charlm_kind {
    const char *name;
    bool has_places; /* its layers do not know by themselves which byte is before which */
    weft_value (*layer)(const builder *b, weft_value x, const char *name);
};

typedef weft_value recurrent(weft_value, const weft_recurrent_options *, weft_recurrent_states *);

static weft_value recur(const builder *b, recurrent *build, weft_value x, const char *name)
{
    const weft_recurrent_options o = {
        .name = name, .over = b->m->seq, .feature = b->embed, .hidden = b->hidden};
    return weft_rename(build(x, &o, NULL), b->hidden, b->embed);
}

static weft_value lstm(const builder *b, weft_value x, const char *name)
{
    return recur(b, weft_lstm, x, name);
}

static weft_value gru(const builder *b, weft_value x, const char *name)
{
    return recur(b, weft_gru, x, name);
}

static weft_value transformer(const builder *b, weft_value x, const char *name)
{
    const charlm_shape *s = b->shape;
    return weft_transformer(
        x, &(weft_transformer_options){.name = name,
                                       .embed = b->embed,
                                       .heads = {"heads", s->heads},
                                       .hidden = {"hidden", 4 * s->width},
                                       .self = {.query = b->m->seq,
                                                .memory = b->m->seq,
                                                .feature = {"kv", s->width / s->heads},
                                                .causal = true},
                                       .depth = s->layers});
}

static const charlm_kind kinds[] = {
    {"lstm", false, lstm}, {"gru", false, gru}, {"transformer", true, transformer}};

const charlm_kind *charlm_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static weft_value between(const builder *b, weft_value x)
{
    const charlm_shape *s = b->shape;
    for (int64_t i = 0; i < s->layers; i++) {
        char name[40];
        snprintf(name, sizeof name, "layer%lld", (long long)i);
        x = s->kind->layer(b, x, name);
        if (s->dropout > 0) x = weft_dropout(x, s->dropout);
    }
    return s->kind->has_places
               ? weft_norm(x, &(weft_norm_options){.name = "norm", .feature = b->embed})
               : x;
}

charlm_model charlm_build(weft_graph *graph, const charlm_shape *shape)
{
    charlm_model m = {{"batch", shape->batch}, {"seq", shape->seq}, {"vocab", 256}, {0}, {0}};
    const builder b = {shape, &m, {"embed", shape->width}, {"hidden", shape->width}};
    const weft_dim none = {NULL, 0};
    m.tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(m.batch, m.seq));
    const weft_value x =
        weft_embedding(m.tokens, &(weft_embedding_options){
                                     .name = "bytes",
                                     .entry = m.vocab,
                                     .embed = b.embed,
                                     .over = shape->kind->has_places ? m.seq : none,
                                     .dtype = shape->dtype,
                                     .initializer = "lecun_normal",
                                 });
    m.logits = weft_dense(
        between(&b, x),
        &(weft_dense_options){.name = "head", .in = WEFT_DIMS(b.embed), .out = WEFT_DIMS(m.vocab)});
    return m;
}

weft_value charlm_loss(weft_graph *graph, const charlm_model *model)
{
    const weft_value targets =
        weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(model->batch, model->seq));
    return weft_mean(weft_cross_entropy(model->logits, targets, model->vocab));
}
