/* attention_grad: from attention's operands, its results y and what is kept of rows, and dy the gradients dq, dk, dv of attention, and dbias
 * where it is asked for, tile by tile.
 *
 * Factors as attention's; cut along the rows of q, or along heads that q alone has, dk and dv come out as partial sums,
 * and so does dbias along what it lacks. Its own gradient goes through the same written with einsum and softmax,
 * query x memory matrices and all. There y and the kept values are made from the other operands: no gradient flows to
 * them.
 */
#include <math.h>
#include <string.h>

#include "attention.h"
#include "weft/ops.h"

/* Of blocks: as it is for each block of q. */
static weft_shape shape_of_dbias(const weft_site *site)
{
    const weft_attention_attributes *a = site->attributes;
    const weft_shape *bias = &site->in[a->bias].shape;
    weft_shape shape = {.n_dims = 0};
    bool has_blocks = a->blocks == NULL || weft_shape_find(bias, a->blocks) >= 0;
    for (int d = 0; d < bias->n_dims; d++) {
        const char *name = bias->dims[d].name;
        const bool is_memory = a->column_blocks != NULL && strcmp(name, a->column_blocks) == 0;
        if (!is_memory)
            shape.dims[shape.n_dims++] = bias->dims[d];
        else if (!has_blocks)
            shape.dims[shape.n_dims++] = (weft_dim){a->blocks, a->n_blocks}, has_blocks = true;
    }
    if (!has_blocks) shape.dims[shape.n_dims++] = (weft_dim){a->blocks, a->n_blocks};
    return shape;
}

static weft_status infer(weft_site *site, weft_error *error)
{
    const weft_attention_attributes *attributes = site->attributes;
    const weft_type *given = &site->in[site->n_in - 3]; /* y, what is kept, dy */
    const weft_shape kept = weft_attention_kept(&site->in[0].shape, attributes);
    for (int i = 0; i < 3; i++)
        if (!weft_shape_same_order(i == 1 ? &kept : &site->in[0].shape, &given[i].shape) ||
            site->in[0].dtype != given[i].dtype)
            return weft_fail(error, WEFT_INTERNAL,
                             "the %s of the result has not the result's dims and dtype",
                             i == 0   ? "value"
                             : i == 1 ? "kept maximum and sum"
                                      : "gradient");
    site->n_out = attributes->bias_gradient ? 4 : 3;
    const weft_site alike = weft_attention_alike(site);
    for (int i = 0; i < 3; i++)
        site->out[i] = alike.in[i];
    if (!attributes->bias_gradient) return WEFT_OK;
    site->out[3] = (weft_type){site->in[attributes->bias].dtype, shape_of_dbias(site)};
    return WEFT_OK;
}

/* The matrix of query x memory and the dims both share, in which the mathematics is written out. */
typedef struct plain {
    const weft_attention_attributes *attributes;
    weft_dim query, memory; /* memory under the name that bias and mask use, or one of its own */
    weft_shape scores;
} plain;

/* k or v with its rows under the scores' name, or back. */
static weft_value rename_rows(weft_value x, const char *from, weft_dim to)
{
    return strcmp(from, to.name) == 0 ? x : weft_rename(x, (weft_dim){from, to.size}, to);
}

/* i32 [query, memory]: 1 where causal and window let a row see. id 0: everywhere. */
static weft_value seen_by_number(const plain *p, weft_graph *graph)
{
    const weft_attention_attributes *attributes = p->attributes;
    const int64_t most = p->query.size > p->memory.size ? p->query.size : p->memory.size;
    const bool has_window = attributes->window > 0 && attributes->window < most;
    if (!attributes->causal && !has_window) return weft_no_value(graph);
    weft_value row = weft_iota(graph, WEFT_I32, p->query),
               column = weft_iota(graph, WEFT_I32, p->memory);
    weft_value window =
        weft_constant(graph, WEFT_I32, WEFT_SCALAR, has_window ? (double)attributes->window : 1.0);
    weft_value seen =
        weft_less(weft_sub(column, row),
                  attributes->causal ? weft_constant(graph, WEFT_I32, WEFT_SCALAR, 1) : window);
    return has_window ? weft_mul(seen, weft_less(weft_sub(row, column), window)) : seen;
}

static weft_value number(weft_value like, double value)
{
    return weft_constant(like.graph, weft_dtype_of(like), WEFT_SCALAR, value);
}

/* What is not seen has a score that is never reached; false: all is seen. */
static const double never = -1e30;
static bool find_scores(const plain *p, const weft_vjp *vjp, weft_value q, weft_value k,
                        weft_value *scores)
{
    const weft_attention_attributes *attributes = p->attributes;
    weft_value seen = seen_by_number(p, vjp->graph);
    *scores = weft_scale(weft_einsum(p->scores, q, k), attributes->scale);
    if (attributes->bias > 0)
        *scores = weft_maximum(weft_add(*scores, vjp->in[attributes->bias]), number(q, never));
    if (attributes->mask > 0)
        *scores = weft_where(vjp->in[attributes->mask], *scores, number(q, never));
    if (seen.id != 0) *scores = weft_where(seen, *scores, number(q, never));
    return seen.id != 0 || attributes->bias > 0 || attributes->mask > 0;
}

/* A row that sees nothing has weights of 0. */
static weft_value softmax_of_scores(const plain *p, const weft_vjp *vjp, weft_value q, weft_value k)
{
    weft_value scores;
    const bool hides = find_scores(p, vjp, q, k, &scores);
    weft_value weights = weft_softmax(scores, p->memory);
    if (!hides) return weights;
    return weft_where(weft_greater(scores, number(q, never)), weights, number(q, 0.0));
}

/* -inf and 0 for a row that sees nothing. */
static weft_value kept_of_scores(const plain *p, const weft_vjp *vjp, weft_value q, weft_value k)
{
    weft_value scores;
    const bool hides = find_scores(p, vjp, q, k, &scores);
    const weft_shape rows = weft_shape_without(&p->scores, p->memory.name);
    weft_value kept[2] = {weft_max(rows, scores)};
    kept[1] = weft_sum(rows, weft_exp(weft_sub(scores, kept[0])));
    if (hides) {
        weft_value sees = weft_greater(kept[0], number(q, 0.5 * never));
        kept[0] = weft_where(sees, kept[0], number(q, -(double)INFINITY));
        kept[1] = weft_where(sees, kept[1], number(q, 0.0));
    }
    return weft_stack((weft_values){kept, 2}, (weft_dim){p->attributes->feature, 2});
}

static plain plain_of(const weft_vjp *vjp)
{
    const weft_attention_attributes *attributes = vjp->site->attributes;
    plain p = {.attributes = attributes};
    p.query = weft_dim_of(vjp->in[0], attributes->query);
    p.memory = weft_dim_of(vjp->in[1], attributes->memory);
    if (weft_attention_has_column(attributes))
        p.memory.name = attributes->column;
    else
        p.memory = weft_dim_beside(vjp->graph, p.memory);
    p.scores = weft_shape_without(weft_shape_of(vjp->in[0]), attributes->feature);
    p.scores.dims[p.scores.n_dims++] = p.memory;
    return p;
}

void weft_attention_expand(weft_vjp *vjp)
{
    const weft_attention_attributes *attributes = vjp->site->attributes;
    const plain p = plain_of(vjp);
    weft_value k = rename_rows(vjp->in[1], attributes->memory, p.memory);
    weft_value v = rename_rows(vjp->in[2], attributes->memory, p.memory);
    weft_value weights = softmax_of_scores(&p, vjp, vjp->in[0], k);
    vjp->out[0] = weft_einsum(*weft_shape_of(vjp->in[0]), weights, v);
    vjp->out[1] = kept_of_scores(&p, vjp, vjp->in[0], k);
}

static void expand(weft_vjp *vjp)
{
    const weft_attention_attributes *attributes = vjp->site->attributes;
    const plain p = plain_of(vjp);
    weft_value q = vjp->in[0], dy = vjp->in[vjp->site->n_in - 1];
    weft_value k = rename_rows(vjp->in[1], attributes->memory, p.memory);
    weft_value v = rename_rows(vjp->in[2], attributes->memory, p.memory);
    weft_value weights = softmax_of_scores(&p, vjp, q, k);
    weft_value dweights = weft_einsum(p.scores, dy, v);
    weft_value mean = weft_einsum(weft_shape_without(&p.scores, p.memory.name), weights, dweights);
    weft_value dscores = weft_mul(weights, weft_sub(dweights, mean));
    weft_value dproducts = weft_scale(dscores, attributes->scale);

    const weft_dim rows = {attributes->memory, p.memory.size};
    vjp->out[0] = weft_einsum(*weft_shape_of(q), dproducts, k);
    vjp->out[1] = rename_rows(weft_einsum(*weft_shape_of(k), dproducts, q), p.memory.name, rows);
    vjp->out[2] = rename_rows(weft_einsum(*weft_shape_of(v), weights, dy), p.memory.name, rows);
    if (attributes->bias_gradient) vjp->out[3] = weft_sum_to(dscores, vjp->in[attributes->bias]);
}

/* Five products where attention has two. */
static double flops(const weft_site *site)
{
    return 10.0 * weft_attention_work(site);
}

const weft_op weft_op_attention_grad = {
    .name = "attention_grad",
    .attributes = &weft_attributes_attention,
    .infer = infer,
    .factors = weft_attention_factors,
    .expand = expand,
    .variants = weft_attention_variants,
    .flops = flops,
};
