/* attention_grad: from q, k, v and dy the gradients dq, dk, dv of attention, tile by tile.
 *
 * Roles as attention's; cut along the rows of q, dk and dv come out as partial sums.
 * Its own gradient goes through the same written with einsum and softmax, query x memory matrices
 * and all.
 */
#include <string.h>

#include "op.h"
#include "weft/ops.h"

static weft_status infer(weft_site *site, weft_error *error)
{
    WEFT_TRY(weft_check_same_dtype(site, error));
    if (!weft_shape_same_order(&site->in[0].shape, &site->in[3].shape))
        return weft_fail(error, WEFT_INTERNAL,
                         "the gradient of the result has not the result's dims");
    site->n_out = 3;
    for (int i = 0; i < 3; i++)
        site->out[i] = site->in[i];
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
        const bool is_query = strcmp(name, attributes->query) == 0;
        weft_factor *factor = weft_factor_new(factors, is_query ? WEFT_SUM : WEFT_NOT_PARTIAL);
        factor->in[0] = factor->in[3] = factor->out[0] = (int8_t)d;
        for (int i = 1; i < 3 && !is_query; i++)
            factor->in[i] = factor->out[i] = (int8_t)weft_shape_find(&site->in[i].shape, name);
    }
}

/* The matrix of query x memory and the dims both share, in which the mathematics is written out. */
typedef struct plain {
    weft_dim query, memory; /* memory under a name of its own */
    weft_shape scores;
    double scale;
    bool causal;
} plain;

/* k or v with its rows under the memory's own name, or back. */
static weft_value rename_rows(weft_value x, const char *from, weft_dim to)
{
    return weft_rename(x, (weft_dim){from, to.size}, to);
}

static weft_value softmax_of_scores(const plain *p, weft_value q, weft_value k)
{
    weft_value scores = weft_scale(weft_einsum(p->scores, q, k), p->scale);
    if (p->causal) {
        weft_value row = weft_iota(q.graph, WEFT_I32, p->query);
        weft_value column = weft_iota(q.graph, WEFT_I32, p->memory);
        weft_value never = weft_constant(q.graph, weft_dtype_of(q), WEFT_SCALAR, -1e30);
        scores = weft_where(weft_greater_equal(row, column), scores, never);
    }
    return weft_softmax(scores, p->memory);
}

static plain plain_of(const weft_vjp *vjp)
{
    const weft_attention_attributes *attributes = vjp->site->attributes;
    plain p = {.scale = attributes->scale, .causal = attributes->causal != 0};
    p.query = weft_dim_of(vjp->in[0], attributes->query);
    p.memory = weft_dim_beside(vjp->graph, weft_dim_of(vjp->in[1], attributes->memory));
    p.scores = weft_shape_without(weft_shape_of(vjp->in[0]), attributes->feature);
    p.scores.dims[p.scores.n_dims++] = p.memory;
    return p;
}

static void expand(weft_vjp *vjp)
{
    const weft_attention_attributes *attributes = vjp->site->attributes;
    const plain p = plain_of(vjp);
    weft_value q = vjp->in[0], dy = vjp->in[3];
    weft_value k = rename_rows(vjp->in[1], attributes->memory, p.memory);
    weft_value v = rename_rows(vjp->in[2], attributes->memory, p.memory);
    weft_value weights = softmax_of_scores(&p, q, k);
    weft_value dweights = weft_einsum(p.scores, dy, v);
    weft_value mean = weft_einsum(weft_shape_without(&p.scores, p.memory.name), weights, dweights);
    weft_value dscores = weft_scale(weft_mul(weights, weft_sub(dweights, mean)), p.scale);

    const weft_dim rows = {attributes->memory, p.memory.size};
    vjp->out[0] = weft_einsum(*weft_shape_of(q), dscores, k);
    vjp->out[1] = rename_rows(weft_einsum(*weft_shape_of(k), dscores, q), p.memory.name, rows);
    vjp->out[2] = rename_rows(weft_einsum(*weft_shape_of(v), weights, dy), p.memory.name, rows);
}

/* Five products where attention has two. */
static double flops(const weft_site *site)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_shape *k = &site->in[1].shape;
    const double rows = (double)k->dims[weft_shape_find(k, attributes->memory)].size;
    return (attributes->causal ? 5.0 : 10.0) * weft_count_of(&site->in[0].shape) * rows;
}

const weft_op weft_op_attention_grad = {
    .name = "attention_grad",
    .attributes = &weft_attributes_attention,
    .infer = infer,
    .factors = factors,
    .expand = expand,
    .flops = flops,
    .kernel = {[WEFT_CPU] = weft_attention_grad_cpu},
};
