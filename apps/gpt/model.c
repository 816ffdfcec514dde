/* model: pre-norm transformer blocks; learned positions; attention and MLP each added to the
 * residual stream.
 *
 * Heads may share keys and values in groups; positions may be rotary in place of learned, norms those of root mean squares, MLPs
 * gated, and the table of tokens the head: so LLaMA's shape is one of its.
 *
 * Dropout follows the embedding, the attention's projection and the MLP. Weights begin normal with
 * deviation 0.02, those that write into the residual stream divided by sqrt(2 layers), so that
 * depth does not blow it up. source  Radford et al. 2019, "Language models are unsupervised
 * multitask learners"
 */
#include "builder.h"
#include "pipe.h"

#include <stdio.h>
#include <string.h>

#include "weft/autodiff.h"
#include "weft/layers.h"
#include "weft/scan.h"

const char *const gpt_dims[GPT_N_DIMS] = {"batch", "seq",    "embed", "heads", "group",
                                          "kv",    "hidden", "vocab", "stage", "experts"};

/* That are written down: of a stage; without stages, all; one, through whose weights a scan goes. */
int64_t gpt_layers_of(const gpt_shape *shape)
{
    if (shape->scans) return 1;
    return shape->stages > 1 ? shape->layers / shape->stages : shape->layers;
}

static int64_t micro_of(const gpt_shape *shape)
{
    return shape->micro > 1 ? shape->micro : 1;
}

static int64_t turns_of(const gpt_shape *shape)
{
    return shape->turns > 1 ? 2 : 1;
}

/* ---- variables ------------------------------------------------------------------------------------- */

/* What checkpoints have called them since before there were layers: "block3.query". */
static const char *const names[][2] = {
    {"tokens/weight", "bytes"},
    {"tokens/places", "places"},
    {"norm/gain", "norm.gain"},
    {"norm/bias", "norm.bias"},
    {"head/weight", "head"},
    {"self_norm/gain", "norm1.gain"},
    {"self_norm/bias", "norm1.bias"},
    {"self/query/weight", "query"},
    {"self/query/bias", "query.bias"},
    {"self/key/weight", "key"},
    {"self/key/bias", "key.bias"},
    {"self/value/weight", "value"},
    {"self/value/bias", "value.bias"},
    {"self/out/weight", "project"},
    {"self/out/bias", "project.bias"},
    {"up_norm/gain", "norm2.gain"},
    {"up_norm/bias", "norm2.bias"},
    {"up/weight", "up"},
    {"up/bias", "up.bias"},
    {"up/gate/weight", "gate"},
    {"up/gate/bias", "gate.bias"},
    {"down/weight", "down"},
    {"down/bias", "down.bias"},
    {"experts/router", "router"},
    {"experts/up", "up"},
    {"experts/down", "down"},
};

/* Of a block's variable what stands behind the block's own name. */
static const char *checkpoint_name(const builder *b, const char *whole)
{
    const char *name = b->layer >= 0 ? strchr(whole, '/') + 1 : whole;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0) return names[i][1];
    return name;
}

/* Of this layer in all stages, or of all layers: they begin as those of the layers would. */
static weft_value of_several(const builder *b, weft_graph *graph, weft_dim along, const char *name,
                             weft_shape dims, weft_initial initial)
{
    char full[64], rows[64 * GPT_MOST_STAGES];
    const int64_t layers = gpt_layers_of(b->shape);
    int at = 0;
    for (int64_t s = 0; s < along.size; s++)
        at += snprintf(rows + at, sizeof rows - (size_t)at, "%sblock%lld.%s", s > 0 ? " " : "",
                       (long long)(s * layers + b->layer), name);
    snprintf(full, sizeof full, "%s.block%d.%s", along.name, b->layer, name);
    if (b->turn > 1) return weft_graph_find(graph, full, NULL);
    return (weft_variable_of_rows)(graph, full, b->shape->dtype, led_by(along, &dims), initial,
                                   rows);
}

/* Without the macros, which would say that what a layer has made so far comes from here. */
static weft_value made_in(const builder *b, weft_graph *graph, const char *name, weft_shape dims,
                          weft_initial initial)
{
    char full[64];
    if (b->layer >= 0 && b->shape->stages > 1)
        return of_several(b, graph, b->m->stage, name, dims, initial);
    if (b->layer >= 0 && b->shape->scans)
        return of_several(b, graph, b->m->layer, name, dims, initial);
    if (b->layer >= 0)
        snprintf(full, sizeof full, "block%d.%s", b->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    return (weft_variable)(graph, full, b->shape->dtype, dims, initial);
}

/* The next variable, as layers ask for it; where all have been made before, that one. */
static weft_value variable(builder *b, const char *whole, weft_shape dims, weft_initial initial)
{
    const char *name = checkpoint_name(b, whole);
    const int index = b->n_variables++;
    if (b->m->variables != NULL) return b->m->variables[index];
    if (b->shape->is_formula) initial = weft_formula(0.3, 0.7 + 0.01 * index);
    if (b->declares) b->declared[index] = made_in(b, b->declares, name, dims, initial);
    return made_in(b, b->graph, name, dims, initial);
}

static weft_value outer_variable(void *context, weft_graph *graph, const char *name,
                                 weft_dtype dtype, weft_shape shape, weft_initial initial)
{
    builder *b = context;
    const weft_value made = variable(b, name, shape, initial);
    (void)graph, (void)dtype;
    if (strcmp(name, "tokens/weight") == 0) b->table = made;
    return made;
}

/* A block's are made before it, as they belong to no scan and to no part: it is built once beside the graph, which tells which it
 * asks for. */
static weft_value block_variable(void *context, weft_graph *graph, const char *name,
                                 weft_dtype dtype, weft_shape shape, weft_initial initial)
{
    builder *b = context;
    b->block[b->n_block++] = weft_at("variable", WEFT_HERE, variable(b, name, shape, initial));
    return weft_variable(graph, name, dtype, shape, initial);
}

/* Of the dense layers of a block's attention, and of its MLP. */
static int n_in_attention(const gpt_shape *shape)
{
    return shape->biases == GPT_BIASES_ALL ? 8 : 4;
}
static int n_in_mlp(const gpt_shape *shape)
{
    if (shape->mixture.experts > 1) return 3;
    return (2 + shape->is_gated) * (shape->biases == GPT_BIASES_NONE ? 1 : 2);
}

/* What the products of a part read is rounded together, so that what is gathered of it is ready together. */
static void round_next(builder *b, int n)
{
    for (int i = b->n_block; i < b->n_block + n; i++)
        b->block[i] = (weft_cast)(b->block[i], dtype_of(b->shape));
}

static weft_value made_before(void *context, weft_graph *graph, const char *name, weft_dtype dtype,
                              weft_shape shape, weft_initial initial)
{
    builder *b = context;
    (void)graph, (void)dtype, (void)shape, (void)initial;
    if (strcmp(name, "block/self/query/weight") == 0) round_next(b, n_in_attention(b->shape));
    if (strcmp(name, "block/up/weight") == 0) round_next(b, n_in_mlp(b->shape));
    return b->block[b->n_block++];
}

/* ---- blocks ---------------------------------------------------------------------------------------- */

static weft_dim rows_of(const builder *b)
{
    return b->cache.is_step ? b->m->token : b->m->seq;
}

static weft_experts_options experts_of(const builder *b)
{
    const gpt_mixture *mixture = &b->shape->mixture;
    return (weft_experts_options){.token = rows_of(b),
                                  .experts = b->m->experts,
                                  .hidden = b->m->hidden,
                                  .top_k = mixture->top_k,
                                  .chooser = mixture->experts_choose ? WEFT_EXPERTS_CHOOSE
                                                                     : WEFT_TOKENS_CHOOSE,
                                  .capacity = mixture->capacity,
                                  .activation = b->shape->activation,
                                  .is_dropless = mixture->capacity == 0,
                                  .normalizes = mixture->top_k > 1 && !mixture->experts_choose};
}

static weft_transformer_options options_of(builder *b, const weft_layer_source *source)
{
    const gpt_model *m = b->m;
    return (weft_transformer_options){
        .name = "block",
        .embed = m->embed,
        .heads = m->heads,
        .group = m->group.size > 1 ? m->group : (weft_dim){0},
        .hidden = m->hidden,
        .is_rotary = b->shape->ropes,
        .rotary = b->shape->rotary,
        .self = {.query = rows_of(b), .memory = rows_of(b), .feature = m->kv, .causal = true},
        .is_rms = b->shape->is_rms,
        .epsilon = b->shape->epsilon,
        .activation = b->shape->activation,
        .is_gated = b->shape->is_gated,
        .initializer = "normal",
        .dropout = b->shape->dropout,
        .depth = b->shape->layers,
        .lacks_bias = b->shape->biases == GPT_BIASES_NONE,
        .lacks_attention_bias = b->shape->biases != GPT_BIASES_ALL,
        .source = source};
}

/* The block under construction, on x; facts of its experts are added to the model's. */
static weft_value block(builder *b, weft_value x)
{
    const weft_layer_source source = {made_before, b};
    const weft_experts_options experts = experts_of(b);
    weft_experts_facts facts = {.balance = {b->graph, 0}, .dropped = {b->graph, 0}};
    weft_transformer_options o = options_of(b, &source);
    b->n_block = 0;
    if (b->keeps) o.attend = weft_kv_attend, o.attend_context = &b->cache;
    if (b->cache.is_step) o.positions = b->m->place;
    gpt_documents_attend(&b->documents, &o);
    if (b->shape->mixture.experts > 1) o.experts = &experts, o.facts = &facts;
    x = weft_transformer(x, &o);
    b->m->facts = gpt_facts_sum(b->m->facts, (gpt_facts){facts.balance, facts.dropped});
    return x;
}

static void declare_block(builder *b)
{
    const weft_layer_source source = {block_variable, b};
    const weft_experts_options experts = experts_of(b);
    weft_graph *beside = weft_graph_create(0);
    weft_transformer_options o = options_of(b, &source);
    if (b->shape->mixture.experts > 1) o.experts = &experts;
    b->n_block = 0;
    (void)weft_transformer(
        weft_input(beside, "x", b->shape->dtype, WEFT_DIMS(b->m->batch, rows_of(b), b->m->embed)),
        &o);
    (void)weft_graph_destroy(&beside); /* what is wrong the block itself tells */
}

static weft_value dropout(const builder *b, weft_value x)
{
    return b->shape->dropout > 0 ? weft_dropout(x, b->shape->dropout) : x;
}

void gpt_set_dims(const gpt_shape *shape, gpt_model *m)
{
    const int64_t shared = shape->kv_heads > 0 ? shape->kv_heads : shape->heads;
    *m = (gpt_model){
        .batch = {"batch", shape->batch},
        .seq = {"seq", shape->seq},
        .embed = {"embed", shape->width},
        .heads = {"heads", shared},
        .group = {"group", shape->heads / shared},
        .kv = {"kv", shape->head_dim > 0 ? shape->head_dim : shape->width / shape->heads},
        .hidden = {"hidden", shape->hidden},
        .vocab = {"vocab", shape->vocab},
        .stage = {"stage", shape->stages},
        .layer = {"layer", shape->layers},
        .token = {"token", 1},
        .experts = {"experts", shape->mixture.experts},
    };
}

/* ---- the model ------------------------------------------------------------------------------------- */

/* Places are learned, unless heads turn with them. */
static weft_value embedded(builder *b, weft_value tokens)
{
    const gpt_model *m = b->m;
    const bool is_learned = !b->shape->ropes;
    const weft_layer_source source = {outer_variable, b};
    const weft_value x = weft_embedding(
        tokens, &(weft_embedding_options){.name = "tokens",
                                          .entry = m->vocab,
                                          .embed = m->embed,
                                          .over = is_learned ? m->seq : (weft_dim){0},
                                          .positions = !is_learned        ? (weft_value){0}
                                                       : b->cache.is_step ? m->place
                                                                          : b->documents.positions,
                                          .dtype = b->shape->dtype,
                                          .source = &source});
    return dropout(b, weft_cast(x, dtype_of(b->shape)));
}

/* Kept, or computed again on the way back. */
static weft_value part(builder *b, weft_value x)
{
    return b->shape->recomputes ? weft_recompute_end(block(b, weft_recompute_begin(x)))
                                : block(b, x);
}

static weft_kv_rows cache_of_trip(const builder *b)
{
    const weft_value key = weft_scan_each(b->cache.kept.key, b->m->layer);
    return (weft_kv_rows){key, weft_scan_each(b->cache.kept.value, b->m->layer)};
}
static weft_kv_rows caches_of_trips(const builder *b)
{
    const weft_value key = weft_scan_stack(b->cache.next.key, b->m->layer);
    return (weft_kv_rows){key, weft_scan_stack(b->cache.next.value, b->m->layer)};
}

/* All blocks as one, each of whose trips sees the weights of a layer. */
static weft_value scanned(builder *b, weft_value x)
{
    const weft_value trip = weft_scan_begin(b->graph, b->shape->layers), h = weft_scan_carry(x);
    const gpt_facts carried = b->m->facts = gpt_facts_carry(b->m->facts);
    for (int i = 0; i < b->n_block; i++)
        b->block[i] = weft_scan_each(b->block[i], b->m->layer);
    if (b->keeps) b->cache.kept = cache_of_trip(b);
    weft_scan_next(h, part(b, h));
    gpt_facts_next(carried, b->m->facts);
    weft_scan_end(trip);
    b->m->facts = gpt_facts_last(carried);
    if (b->keeps) b->cache.next = caches_of_trips(b);
    return weft_scan_last(h);
}

/* All blocks, or those of a stage: of a second turn the same ones. */
static weft_value blocks(void *argument, weft_value x)
{
    builder *b = argument;
    if (b->turn++ == 0) b->first = b->n_variables;
    b->n_variables = b->first;
    const int layers = (int)gpt_layers_of(b->shape), parts = b->parts > 1 ? b->parts : 1;
    for (b->layer = b->part * layers / parts; b->layer < (b->part + 1) * layers / parts;
         b->layer++) {
        declare_block(b);
        const weft_kv_rows caches = gpt_cache_open(b);
        x = b->shape->scans ? scanned(b, x) : part(b, x);
        gpt_cache_close(b, &caches);
    }
    b->layer = -1;
    return x;
}

/* A turn's, on what stages hold, and the documents that are there with it. */
static weft_value blocks_of_stages(void *argument, weft_value held)
{
    builder *b = argument;
    b->documents = gpt_documents_of_tick(&b->held[b->turn]);
    return blocks(b, held);
}

static weft_value in_stages(builder *b, weft_value tokens)
{
    const gpt_pipe pipe = {b->m->stage, micro_of(b->shape), turns_of(b->shape)};
    const gpt_documents own = b->documents;
    for (int turn = 0; turn < pipe.turns; turn++)
        b->held[turn] = gpt_documents_held(&own, &pipe, turn);
    b->documents = gpt_documents_entering(&own, &pipe);
    const weft_value entering = embedded(b, gpt_pipe_feed(&pipe, tokens));
    const weft_value x = gpt_pipe_through(&pipe, entering, blocks_of_stages, b);
    b->documents = own;
    return x;
}

/* Scores of all tokens; by a head of its own, or by the table. */
static weft_value scored(builder *b, weft_value x, weft_value table)
{
    const gpt_model *m = b->m;
    const weft_layer_source source = {outer_variable, b};
    weft_shape scores = *weft_shape_of(x);
    if (x.id == 0 || !b->shape->ties)
        return weft_dense(x, &(weft_dense_options){.name = "head",
                                                   .in = WEFT_DIMS(m->embed),
                                                   .out = WEFT_DIMS(m->vocab),
                                                   .initializer = "normal",
                                                   .lacks_bias = true,
                                                   .source = &source});
    scores.dims[scores.n_dims - 1] = m->vocab; /* in place of embed */
    return weft_einsum(scores, x, weft_cast(table, dtype_of(b->shape)));
}

static int n_in_embedding(const gpt_shape *shape)
{
    return 2 - shape->ropes;
}

static int n_in_block(const gpt_shape *shape)
{
    const int n_norms = shape->is_rms ? 2 : 4;
    return n_norms + n_in_attention(shape) + n_in_mlp(shape);
}

/* What the parts before have asked for. */
static weft_value entering(builder *b)
{
    const int layer = b->part * (int)gpt_layers_of(b->shape) / b->parts;
    b->n_variables = n_in_embedding(b->shape) + layer * n_in_block(b->shape);
    b->table = b->m->variables[0];
    return b->m->entering;
}

weft_value gpt_scores(builder *b, weft_value tokens)
{
    const weft_layer_source source = {outer_variable, b};
    b->m->facts = gpt_facts_none(&b->shape->mixture, b->graph, b->shape->dtype);
    if (b->shape->stages <= 1) gpt_documents_see(&b->documents);
    weft_value x = b->shape->stages > 1
                       ? in_stages(b, tokens)
                       : blocks(b, b->part > 0 ? entering(b) : embedded(b, tokens));
    if (b->part + 1 < b->parts) return x;
    x = weft_norm(x, &(weft_norm_options){.name = "norm",
                                          .feature = b->m->embed,
                                          .is_rms = b->shape->is_rms,
                                          .epsilon = b->shape->epsilon,
                                          .source = &source});
    b->m->normed = x;
    if (b->m->last.id != 0) x = weft_gather(x, b->m->last, b->m->token);
    return scored(b, x, b->table);
}

static weft_value loss_of(const builder *b, weft_value logits, weft_value targets)
{
    const gpt_pipe pipe = {b->m->stage, micro_of(b->shape), turns_of(b->shape)};
    if (b->shape->stages > 1) targets = gpt_pipe_dealt(&pipe, targets);
    const weft_value loss =
        gpt_documents_mean(&b->documents, weft_cross_entropy(logits, targets, b->m->vocab));
    return gpt_facts_loss(&b->shape->mixture, loss, b->m->facts);
}

/* Of a builder whose dims are set. */
static weft_value window_logits(builder *b)
{
    gpt_model *m = b->m;
    m->tokens = weft_input(b->graph, "tokens", WEFT_I32, WEFT_DIMS(m->batch, m->seq));
    if (b->packs) b->documents = gpt_documents_open(b->graph, m->batch, m->seq);
    m->logits = gpt_scores(b, m->tokens);
    return m->logits;
}

weft_value gpt_logits(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    gpt_set_dims(shape, model);
    return window_logits(&b);
}

weft_value gpt_loss(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    gpt_set_dims(shape, model);
    b.packs = shape->packs;
    const weft_value scores = window_logits(&b);
    model->targets = weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(model->batch, model->seq));
    gpt_documents_count(&b.documents, model->targets, shape->dtype, 1);
    model->documents = b.documents;
    return loss_of(&b, scores, model->targets);
}

int gpt_n_variables(const gpt_shape *shape)
{
    const int n_behind = 3 - shape->is_rms - shape->ties;
    return n_in_embedding(shape) + n_behind + n_in_block(shape) * (int)gpt_layers_of(shape);
}

/* Those that a model asks for which is built beside the graph. */
void gpt_variables(const gpt_shape *shape, weft_graph *graph, weft_value *variables)
{
    gpt_model m;
    weft_graph *beside = weft_graph_create(0);
    builder b = {.shape = shape,
                 .m = &m,
                 .graph = beside,
                 .layer = -1,
                 .declares = graph,
                 .declared = variables};
    gpt_set_dims(shape, &m);
    gpt_scores(&b, weft_input(beside, "tokens", WEFT_I32, WEFT_DIMS(m.batch, m.seq)));
    (void)weft_graph_destroy(&beside);
}

weft_value gpt_loss_on(const gpt_shape *shape, weft_graph *graph, const weft_value *variables,
                       const gpt_windows *windows, gpt_facts *facts)
{
    gpt_model m;
    builder b = {.shape = shape, .m = &m, .graph = graph, .layer = -1};
    gpt_set_dims(shape, &m);
    m.variables = variables;
    b.documents = windows->documents;
    const weft_value scores = gpt_scores(&b, windows->tokens);
    *facts = m.facts;
    return loss_of(&b, scores, windows->targets);
}
