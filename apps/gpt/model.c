/* model: pre-norm transformer blocks; learned positions; attention and MLP each added to the
 * residual stream.
 *
 * Heads may share keys and values in groups; positions may be rotary in place of learned, norms those of root mean squares, and the
 * table of tokens the head.
 *
 * Dropout follows the embedding, the attention's projection and the MLP. Weights begin normal with
 * deviation 0.02, those that write into the residual stream divided by sqrt(2 layers), so that
 * depth does not blow it up. source  Radford et al. 2019, "Language models are unsupervised
 * multitask learners"
 */
#include "builder.h"
#include "pipe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft/autodiff.h"
#include "weft/scan.h"

const char *const gpt_dims[GPT_N_DIMS] = {"batch", "seq",    "embed", "heads", "group",
                                          "kv",    "hidden", "vocab", "stage", "experts"};

/* A block's variables; those that this shape has not are {0}. */
typedef struct block_variables {
    weft_value norm1[2], query, key, value, project; /* of a norm: gain, bias */
    weft_value norm2[2];
    union {
        struct {
            weft_value up, up_bias, down, down_bias;
        };
        weft_experts_weights experts;
    };
} block_variables;

enum { BLOCK_VARIABLES = sizeof(block_variables) / sizeof(weft_value) };

/* Variables that are not of a block. */
typedef struct outer_variables {
    weft_value table, places, norm[2], head;
} outer_variables;

/* That are written down: of a stage; without stages, all; one, through whose weights a scan goes. */
static int64_t layers_of(const gpt_shape *shape)
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

/* Of this layer in all stages, or of all layers: they begin as those of the layers would. */
static weft_value of_several(const builder *b, weft_dim along, const char *name, weft_shape dims,
                             weft_initial initial)
{
    char full[64], rows[64 * GPT_MOST_STAGES];
    const int64_t layers = layers_of(b->shape);
    int at = 0;
    for (int64_t s = 0; s < along.size; s++)
        at += snprintf(rows + at, sizeof rows - (size_t)at, "%sblock%lld.%s", s > 0 ? " " : "",
                       (long long)(s * layers + b->layer), name);
    snprintf(full, sizeof full, "%s.block%d.%s", along.name, b->layer, name);
    if (b->turn > 1) return weft_graph_find(b->graph, full, NULL);
    return weft_variable_of_rows(b->graph, full, b->shape->dtype, led_by(along, &dims), initial,
                                 rows);
}

/* How many variables a block has. */
static int n_of_block(const gpt_shape *shape)
{
    return BLOCK_VARIABLES - (shape->mixture.experts > 1) - 2 * shape->is_rms;
}

/* The next variable; where all have been made before, that one. */
static weft_value variable(builder *b, const char *name, weft_shape dims, weft_initial initial)
{
    char full[64];
    const int index = b->n_variables++;
    if (b->m->variables != NULL) return b->m->variables[index];
    if (b->shape->is_formula) initial = weft_formula(0.3, 0.7 + 0.01 * index);
    if (b->layer >= 0 && b->shape->stages > 1)
        return of_several(b, b->m->stage, name, dims, initial);
    if (b->layer >= 0 && b->shape->scans) return of_several(b, b->m->layer, name, dims, initial);
    if (b->layer >= 0)
        snprintf(full, sizeof full, "block%d.%s", b->layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    return weft_variable(b->graph, full, b->shape->dtype, dims, initial);
}

/* A variable as products read it: rounded to what the model computes in; the variable itself is not. */
static weft_value operand(const builder *b, weft_value variable)
{
    return weft_cast(variable, dtype_of(b->shape));
}

static weft_value dropout(const builder *b, weft_value x)
{
    return b->shape->dropout > 0 ? weft_dropout(x, b->shape->dropout) : x;
}

/* A matrix that writes into the residual stream begins smaller. */
static weft_initial residual_initial(const builder *b)
{
    return weft_normal(0.0, 0.02 / sqrt(2.0 * (double)b->shape->layers));
}

static void declare_norm(builder *b, const char *gain, const char *bias, weft_value norm[2])
{
    norm[0] = variable(b, gain, WEFT_DIMS(b->m->embed), weft_constant_of(1.0));
    if (!b->shape->is_rms)
        norm[1] = variable(b, bias, WEFT_DIMS(b->m->embed), weft_constant_of(0.0));
}

/* [heads, kv]; of queries whose heads share keys and values, [heads, group, kv]. */
static weft_shape heads_of(const gpt_model *m, bool is_query)
{
    return is_query && m->group.size > 1 ? WEFT_DIMS(m->heads, m->group, m->kv)
                                         : WEFT_DIMS(m->heads, m->kv);
}

/* One behind all dims. */
static weft_shape ended_by(const weft_shape *dims, weft_dim last)
{
    weft_shape all = *dims;
    all.dims[all.n_dims++] = last;
    return all;
}

static void declare_mlp(builder *b, block_variables *v)
{
    const gpt_model *m = b->m;
    const weft_initial normal = weft_normal(0.0, 0.02), zero = weft_constant_of(0.0);
    v->up = variable(b, "up", WEFT_DIMS(m->embed, m->hidden), normal);
    v->up_bias = variable(b, "up.bias", WEFT_DIMS(m->hidden), zero);
    v->down = variable(b, "down", WEFT_DIMS(m->hidden, m->embed), residual_initial(b));
    v->down_bias = variable(b, "down.bias", WEFT_DIMS(m->embed), zero);
}

static void declare_experts(builder *b, weft_experts_weights *v)
{
    const gpt_model *m = b->m;
    const weft_dim route = {"route", m->experts.size};
    const weft_initial normal = weft_normal(0.0, 0.02);
    v->router = variable(b, "router", WEFT_DIMS(m->embed, route), normal);
    v->up = variable(b, "up", WEFT_DIMS(m->experts, m->embed, m->hidden), normal);
    v->down = variable(b, "down", WEFT_DIMS(m->experts, m->hidden, m->embed), residual_initial(b));
}

static void declare_block(builder *b, block_variables *v)
{
    const gpt_model *m = b->m;
    const weft_shape queries = heads_of(m, true), keys = heads_of(m, false);
    const weft_shape in = led_by(m->embed, &keys);
    const weft_initial normal = weft_normal(0.0, 0.02);
    *v = (block_variables){0};
    declare_norm(b, "norm1.gain", "norm1.bias", v->norm1);
    v->query = variable(b, "query", led_by(m->embed, &queries), normal);
    v->key = variable(b, "key", in, normal);
    v->value = variable(b, "value", in, normal);
    v->project = variable(b, "project", ended_by(&queries, m->embed), residual_initial(b));
    declare_norm(b, "norm2.gain", "norm2.bias", v->norm2);
    if (b->shape->mixture.experts > 1)
        declare_experts(b, &v->experts);
    else
        declare_mlp(b, v);
}

static void declare_first(builder *b, outer_variables *v)
{
    const gpt_model *m = b->m;
    *v = (outer_variables){0};
    v->table = variable(b, "bytes", WEFT_DIMS(m->vocab, m->embed), weft_normal(0.0, 0.02));
    if (!b->shape->ropes)
        v->places = variable(b, "places", WEFT_DIMS(m->seq, m->embed), weft_normal(0.0, 0.02));
}

static void declare_last(builder *b, outer_variables *v)
{
    declare_norm(b, "norm.gain", "norm.bias", v->norm);
    v->head = b->shape->ties ? v->table
                             : variable(b, "head", WEFT_DIMS(b->m->embed, b->m->vocab),
                                        weft_normal(0.0, 0.02));
}

/* The rows of x, which end with embed, of other features. */
static weft_shape rows_of(weft_value x, weft_shape features)
{
    weft_shape rows = *weft_shape_of(x);
    while (rows.n_dims > 0 && strcmp(rows.dims[--rows.n_dims].name, "embed") != 0)
        ;
    for (int d = 0; d < features.n_dims && rows.n_dims < WEFT_MAX_DIMS; d++)
        rows.dims[rows.n_dims++] = features.dims[d];
    return rows;
}

/* Turned to where its rows stand. */
static weft_value placed(const builder *b, weft_value x)
{
    if (!b->shape->ropes) return x;
    return weft_rope(x, b->is_step ? b->m->place : weft_iota(b->graph, WEFT_I32, b->m->seq),
                     b->m->kv, 0);
}

static weft_value attention(builder *b, const block_variables *v, weft_value x)
{
    const gpt_model *m = b->m;
    const weft_shape queries = rows_of(x, heads_of(m, true)), keys = rows_of(x, heads_of(m, false));
    weft_value wq = operand(b, v->query), wk = operand(b, v->key);
    weft_value wv = operand(b, v->value), wo = operand(b, v->project);

    weft_value q = placed(b, weft_einsum(queries, x, wq));
    weft_value k = placed(b, weft_einsum(keys, x, wk));
    weft_value value = weft_einsum(keys, x, wv);
    return weft_einsum(rows_of(x, WEFT_DIMS(m->embed)), gpt_attend(b, q, k, value), wo);
}

static weft_value mlp(const builder *b, const block_variables *v, weft_value x)
{
    gpt_model *m = b->m;
    if (b->shape->mixture.experts > 1)
        return gpt_experts(&b->shape->mixture, b->is_step ? m->token : m->seq, m->embed, m->experts,
                           m->hidden, &v->experts, x, &m->facts);
    weft_value w1 = operand(b, v->up), b1 = operand(b, v->up_bias);
    weft_value w2 = operand(b, v->down), b2 = operand(b, v->down_bias);

    weft_value h = weft_gelu(weft_add(weft_einsum(rows_of(x, WEFT_DIMS(m->hidden)), x, w1), b1));
    return weft_add(weft_einsum(rows_of(x, WEFT_DIMS(m->embed)), h, w2), b2);
}

static weft_value norm(const builder *b, const weft_value norm[2], weft_value x)
{
    if (b->shape->is_rms) return weft_rms_norm(x, norm[0], b->m->embed);
    return weft_layer_norm(x, norm[0], norm[1], b->m->embed);
}

static weft_value block(builder *b, const block_variables *v, weft_value x)
{
    x = weft_add(x, dropout(b, attention(b, v, norm(b, v->norm1, x))));
    return weft_add(x, dropout(b, mlp(b, v, norm(b, v->norm2, x))));
}

static void set_dims(const gpt_shape *shape, gpt_model *m)
{
    const int64_t shared = shape->kv_heads > 0 ? shape->kv_heads : shape->heads;
    *m = (gpt_model){
        .batch = {"batch", shape->batch},
        .seq = {"seq", shape->seq},
        .embed = {"embed", shape->width},
        .heads = {"heads", shared},
        .group = {"group", shape->heads / shared},
        .kv = {"kv", shape->width / shape->heads},
        .hidden = {"hidden", shape->hidden},
        .vocab = {"vocab", shape->vocab},
        .stage = {"stage", shape->stages},
        .layer = {"layer", shape->layers},
        .token = {"token", 1},
        .experts = {"experts", shape->mixture.experts},
    };
}

/* Places are learned, unless heads turn with them. */
static weft_value at_places(const builder *b, const outer_variables *v, weft_value x)
{
    if (b->shape->ropes) return x;
    return weft_add(x, b->is_step ? weft_gather(v->places, b->m->place, b->m->seq) : v->places);
}

static weft_value embedded(builder *b, const outer_variables *v, weft_value tokens)
{
    weft_value x = at_places(b, v, weft_gather(v->table, tokens, b->m->vocab));
    return dropout(b, weft_cast(x, dtype_of(b->shape)));
}

/* Kept, or computed again on the way back. */
static weft_value part(builder *b, const block_variables *v, weft_value x)
{
    return b->shape->recomputes ? weft_recompute_end(block(b, v, weft_recompute_begin(x)))
                                : block(b, v, x);
}

/* All blocks as one, each of whose trips sees the weights of a layer. */
static weft_value scanned(builder *b, const block_variables *all, weft_value x)
{
    weft_value stacked[BLOCK_VARIABLES], seen[BLOCK_VARIABLES] = {{0}};
    block_variables v;
    memcpy(stacked, all, sizeof stacked);
    const weft_value trip = weft_scan_begin(b->graph, b->shape->layers), h = weft_scan_carry(x);
    const gpt_facts carried = b->m->facts = gpt_facts_carry(b->m->facts);
    for (int i = 0; i < BLOCK_VARIABLES; i++)
        if (stacked[i].graph != NULL) seen[i] = weft_scan_each(stacked[i], b->m->layer);
    memcpy(&v, seen, sizeof v);
    for (int i = 0; i < GPT_N_CACHES && b->keeps; i++)
        b->cached[i] = weft_scan_each(b->cached[i], b->m->layer);
    weft_scan_next(h, part(b, &v, h));
    gpt_facts_next(carried, b->m->facts);
    weft_scan_end(trip);
    b->m->facts = gpt_facts_last(carried);
    for (int i = 0; i < GPT_N_CACHES && b->keeps; i++)
        b->made[i] = weft_scan_stack(b->made[i], b->m->layer);
    return weft_scan_last(h);
}

/* All blocks, or those of a stage: of a second turn the same ones. */
static weft_value blocks(void *argument, weft_value x)
{
    builder *b = argument;
    weft_value caches[GPT_N_CACHES];
    block_variables v;
    if (b->turn++ == 0) b->first = b->n_variables;
    b->n_variables = b->first;
    for (b->layer = 0; b->layer < layers_of(b->shape); b->layer++) {
        declare_block(b, &v);
        gpt_caches_open(b, caches);
        x = b->shape->scans ? scanned(b, &v, x) : part(b, &v, x);
        gpt_caches_close(b, caches);
    }
    b->layer = -1;
    return x;
}

static weft_value in_stages(builder *b, const outer_variables *v, weft_value tokens)
{
    const gpt_pipe pipe = {b->m->stage, micro_of(b->shape), turns_of(b->shape)};
    return gpt_pipe_through(&pipe, embedded(b, v, gpt_pipe_feed(&pipe, tokens)), blocks, b);
}

static weft_value logits(builder *b, weft_value tokens)
{
    outer_variables v;
    b->m->facts = gpt_facts_none(&b->shape->mixture, b->graph, b->shape->dtype);
    declare_first(b, &v);
    weft_value x =
        b->shape->stages > 1 ? in_stages(b, &v, tokens) : blocks(b, embedded(b, &v, tokens));
    declare_last(b, &v);
    x = norm(b, v.norm, x);
    return weft_einsum(rows_of(x, WEFT_DIMS(b->m->vocab)), x, operand(b, v.head));
}

static weft_value loss_of(const builder *b, weft_value logits, weft_value targets)
{
    const gpt_pipe pipe = {b->m->stage, micro_of(b->shape), turns_of(b->shape)};
    if (b->shape->stages > 1) targets = gpt_pipe_dealt(&pipe, targets);
    const weft_value loss = weft_mean(weft_cross_entropy(logits, targets, b->m->vocab));
    return gpt_facts_loss(&b->shape->mixture, loss, b->m->facts);
}

weft_value gpt_logits(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    set_dims(shape, model);
    model->tokens = weft_input(graph, "tokens", WEFT_I32, WEFT_DIMS(model->batch, model->seq));
    model->logits = logits(&b, model->tokens);
    return model->logits;
}

static weft_value keeping(builder *b, weft_dim rows)
{
    gpt_model *m = b->m;
    b->keeps = true;
    set_dims(b->shape, m);
    m->tokens = weft_input(b->graph, "tokens", WEFT_I32, WEFT_DIMS(m->batch, rows));
    m->place = weft_input(b->graph, "place", WEFT_I32, WEFT_SCALAR);
    m->logits = logits(b, m->tokens);
    return m->logits;
}

weft_value gpt_window(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    return keeping(&b, (weft_dim){"seq", shape->seq});
}

weft_value gpt_next(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1, .is_step = true};
    return keeping(&b, (weft_dim){"token", 1});
}

weft_value gpt_loss(const gpt_shape *shape, weft_graph *graph, gpt_model *model)
{
    const builder b = {.shape = shape, .m = model, .graph = graph, .layer = -1};
    weft_value logits = gpt_logits(shape, graph, model);
    model->targets = weft_input(graph, "targets", WEFT_I32, WEFT_DIMS(model->batch, model->seq));
    return loss_of(&b, logits, model->targets);
}

int gpt_n_variables(const gpt_shape *shape)
{
    const int n_outer = 5 - shape->ropes - shape->is_rms - shape->ties;
    return (int)(n_outer + n_of_block(shape) * layers_of(shape));
}

/* Those of them that there are, in the order of asking; returns where the next goes. */
static weft_value *put_variables(weft_value *to, const weft_value *from, int n)
{
    for (int i = 0; i < n; i++)
        if (from[i].graph != NULL) *to++ = from[i];
    return to;
}

void gpt_variables(const gpt_shape *shape, weft_graph *graph, weft_value *variables)
{
    gpt_model m;
    builder b = {.shape = shape, .m = &m, .graph = graph, .layer = -1};
    outer_variables outer;
    block_variables v;
    set_dims(shape, &m);
    declare_first(&b, &outer);
    variables = put_variables(variables, (weft_value[]){outer.table, outer.places}, 2);
    for (b.layer = 0; b.layer < layers_of(shape); b.layer++) {
        weft_value all[BLOCK_VARIABLES];
        declare_block(&b, &v);
        memcpy(all, &v, sizeof all);
        variables = put_variables(variables, all, BLOCK_VARIABLES);
    }
    b.layer = -1;
    declare_last(&b, &outer);
    variables = put_variables(variables, outer.norm, 2);
    put_variables(variables, &outer.head, !shape->ties);
}

weft_value gpt_loss_on(const gpt_shape *shape, weft_graph *graph, const weft_value *variables,
                       weft_value tokens, weft_value targets, gpt_facts *facts)
{
    gpt_model m;
    builder b = {.shape = shape, .m = &m, .graph = graph, .layer = -1};
    set_dims(shape, &m);
    m.variables = variables;
    const weft_value scores = logits(&b, tokens);
    *facts = m.facts;
    return loss_of(&b, scores, targets);
}

double gpt_parameters(const gpt_shape *shape)
{
    const double embed = (double)shape->width, hidden = (double)shape->hidden;
    const double shared = shape->kv_heads > 0 ? (double)shape->kv_heads / (double)shape->heads : 1;
    const double norm = shape->is_rms ? 1 : 2; /* rows of it */
    const double rows = (double)((shape->ties ? 1 : 2) * shape->vocab) +
                        (double)(shape->ropes ? 0 : shape->seq) + norm;
    const double experts = (double)shape->mixture.experts;
    const double mlp =
        experts > 1 ? experts * (2 * embed * hidden + embed) : 2 * embed * hidden + hidden + embed;
    const double block = (2 + 2 * shared) * embed * embed + mlp + 2 * norm * embed;
    return (double)shape->layers * block + rows * embed;
}
