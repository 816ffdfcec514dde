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

/* What the run before left, or zeros where a row begins anew. No gradient goes there: a run's begins with its window. */
static weft_value carried_from(const builder *b, weft_value kept)
{
    const weft_value goes_on = weft_cast(b->m->goes_on, weft_dtype_of(kept));
    return weft_mul(weft_stop_gradient(kept), goes_on);
}

static weft_value kept_state(const builder *b, const char *layer, const char *state)
{
    char name[80];
    snprintf(name, sizeof name, "%.40s/carried/%s", layer, state);
    return weft_variable(b->m->tokens.graph, name, b->shape->dtype,
                         WEFT_DIMS(b->m->batch, b->hidden), weft_constant_of(0));
}

static void keep(const builder *b, weft_value kept, weft_value state)
{
    charlm_model *m = b->m;
    const weft_value token = weft_assign(kept, state);
    m->carried =
        m->carried.id == 0 ? token : weft_group(token.graph, WEFT_VALUES(m->carried, token));
}

/* has_cell: of lstm, beside its h. */
static weft_value recur(const builder *b, recurrent *build, bool has_cell, weft_value x,
                        const char *name)
{
    weft_recurrent_options o = {
        .name = name, .over = b->m->seq, .feature = b->embed, .hidden = b->hidden};
    weft_recurrent_states last, kept = {{NULL, 0}, {NULL, 0}};
    const bool carries = b->shape->carries, carries_cell = carries && has_cell;
    if (carries) kept.h = kept_state(b, name, "h");
    if (carries) o.first_h = carried_from(b, kept.h);
    if (carries_cell) kept.c = kept_state(b, name, "c");
    if (carries_cell) o.first_c = carried_from(b, kept.c);
    const weft_value y = build(x, &o, &last);
    if (carries) keep(b, kept.h, last.h);
    if (carries_cell) keep(b, kept.c, last.c);
    return weft_rename(y, b->hidden, b->embed);
}

static weft_value lstm(const builder *b, weft_value x, const char *name)
{
    return recur(b, weft_lstm, true, x, name);
}

static weft_value gru(const builder *b, weft_value x, const char *name)
{
    return recur(b, weft_gru, false, x, name);
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

bool charlm_has_states(const charlm_kind *kind)
{
    return !kind->has_places;
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
    charlm_model m = {
        .batch = {"batch", shape->batch}, .seq = {"seq", shape->seq}, .vocab = {"vocab", 256}};
    const builder b = {shape, &m, {"embed", shape->width}, {"hidden", shape->width}};
    const weft_dim none = {NULL, 0};
    m.tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(m.batch, m.seq));
    if (shape->carries) m.goes_on = weft_input(graph, "goes_on", WEFT_I32, WEFT_DIMS(m.batch));
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
