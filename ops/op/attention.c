/* attention: softmax(scale q.k) v with an optional causal mask, one op, never a whole query x
 * memory matrix.
 *
 * Roles: the dims shared by name pass; rows of q can be cut while k and v are whole along theirs;
 * memory and feature are whole. Query and memory may be one name, so the factors are made by hand.
 * Gradient: attention_grad, which computes the softmax again, tile by tile.
 * source  Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the online softmax
 */
#include <math.h>
#include <string.h>

#include "weft/ops.h"
#include "op.h"

static const weft_field fields[] = {
    WEFT_FIELD(weft_attention_attributes, query), WEFT_FIELD(weft_attention_attributes, memory),
    WEFT_FIELD(weft_attention_attributes, feature), WEFT_FIELD(weft_attention_attributes, scale),
    WEFT_FIELD(weft_attention_attributes, causal)};
const weft_attributes weft_attributes_attention =
    WEFT_ATTRIBUTES(weft_attention_attributes, fields);

static weft_status fail_shapes(const weft_site *site, const char *rule, weft_error *error)
{
    char text[3][96];
    for (int i = 0; i < 3; i++)
        weft_shape_print(&site->in[i].shape, text[i], sizeof text[i]);
    return weft_fail(error, WEFT_USAGE, "q is %s, k is %s and v is %s; %s", text[0], text[1],
                     text[2], rule);
}

/* The rows of q and k may be one dim; what a row of them is made of cannot be their number. */
static weft_status check_feature(const weft_attention_attributes *attributes, weft_error *error)
{
    const bool is_query = strcmp(attributes->feature, attributes->query) == 0;
    if (!is_query && strcmp(attributes->feature, attributes->memory) != 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s is passed as feature and as %s; the feature dim, over which rows are "
                     "multiplied, is another one than the dims that number the rows. Name the last "
                     "dim of q and k as feature",
                     attributes->feature, is_query ? "query" : "memory");
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *q = &site->in[0].shape, *k = &site->in[1].shape, *v = &site->in[2].shape;
    WEFT_TRY(weft_check_float(site, 0, error));
    WEFT_TRY(weft_check_same_dtype(site, error));
    WEFT_TRY(weft_check_dims(site, error));
    WEFT_TRY(check_feature(attributes, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->query, -1, error));
    WEFT_TRY(weft_check_dim(site, 1, attributes->memory, -1, error));
    WEFT_TRY(weft_check_dim(site, 0, attributes->feature, -1, error));
    if (!weft_shape_same_dims(k, v))
        return fail_shapes(site, "k and v must have the same dims", error);
    weft_shape as_q = *k;
    as_q.dims[weft_shape_find(k, attributes->memory)].name = attributes->query;
    if (!weft_shape_same_dims(&as_q, q) ||
        (attributes->query != attributes->memory && weft_shape_find(k, attributes->query) >= 0))
        return fail_shapes(site, "q and k must share all dims but the rows of q and the rows of k",
                           error);
    site->n_out = 1;
    site->out[0] = site->in[0];
    return WEFT_OK;
}

static void factors(const weft_site *site, weft_factors *factors)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *q = &site->in[0].shape;
    factors->n_factors = 0;
    for (int d = 0; d < q->n_dims; d++) {
        const char *name = q->dims[d].name;
        if (strcmp(name, attributes->feature) == 0) continue;
        weft_factor *factor = weft_factor_new(factors, WEFT_NOT_PARTIAL);
        factor->in[0] = factor->out[0] = (int8_t)d;
        if (strcmp(name, attributes->query) == 0) continue;
        factor->in[1] = (int8_t)weft_shape_find(&site->in[1].shape, name);
        factor->in[2] = (int8_t)weft_shape_find(&site->in[2].shape, name);
    }
}

static void gradient(weft_vjp *vjp)
{
    const weft_value in[] = {vjp->in[0], vjp->in[1], vjp->in[2], vjp->dout[0]};
    weft_value d = weft_emit(vjp->graph, &weft_op_attention_grad, in, 4, vjp->site->attributes,
                             sizeof(weft_attention_attributes));
    for (int i = 0; i < 3; i++)
        vjp->din[i] = weft_result(d, i);
}

/* Two products of query x memory x feature; a causal mask leaves half of them. */
static double flops(const weft_site *site)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *k = &site->in[1].shape;
    const double rows = (double)k->dims[weft_shape_find(k, attributes->memory)].size;
    return (attributes->causal ? 2.0 : 4.0) * weft_count_of(&site->in[0].shape) * rows;
}

const weft_op weft_op_attention = {
    .name = "attention",
    .attributes = &weft_attributes_attention,
    .infer = infer,
    .factors = factors,
    .gradient = gradient,
    .flops = flops,
    .kernel = {[WEFT_CPU] = weft_attention_cpu},
};

/* Sizes are asked for as well as names: a wrong one would scale by the wrong root. */
static bool take_dim(weft_graph *graph, weft_value x, const char *which, weft_dim dim,
                     const char **name)
{
    weft_dim_attributes taken;
    if (!weft_graph_dim(graph, "attention", dim, &taken)) return false;
    const weft_dim found = weft_dim_of(x, taken.dim);
    if (found.size != 0 && found.size != dim.size)
        weft_graph_fail(graph,
                        "attention: %s is passed as %s:%lld and the operand has %s:%lld; pass the "
                        "size that it has",
                        which, taken.dim, (long long)dim.size, taken.dim, (long long)found.size);
    *name = taken.dim;
    return weft_graph_status(graph) == WEFT_OK;
}

weft_value weft_attention(weft_value q, weft_value k, weft_value v, weft_dim query, weft_dim memory,
                          weft_dim feature, bool causal)
{
    weft_attention_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    if (!take_dim(q.graph, q, "query", query, &attributes.query) ||
        !take_dim(q.graph, k, "memory", memory, &attributes.memory) ||
        !take_dim(q.graph, q, "feature", feature, &attributes.feature))
        return weft_no_value(q.graph);
    attributes.scale = 1.0 / sqrt((double)feature.size);
    attributes.causal = causal;
    const weft_value in[] = {q, k, v};
    return weft_emit(q.graph, &weft_op_attention, in, 3, &attributes, sizeof attributes);
}
