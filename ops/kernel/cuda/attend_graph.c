/* attend_graph: see attend_graph.h.
 *
 * out = P v with P = softmax(scale q k'), stats = logsumexp of its scores. Backwards, with S = scale q k' again:
 * P = exp(S - stats), dv = P' dout, sums = rows of dout * out added up, dS = scale P (dout v' - sums), dk = dS' q, dq = dS k.
 *
 * The library knows these graphs as one kernel, by this very form; dq is added up in memory of its own.
 */
#include "attend_graph.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

static dnn_shape rows_of(const attend_problem *p, int tensor)
{
    const int64_t *stride = p->stride[tensor];
    return (dnn_shape){{p->batch, p->heads, tensor == 0 ? p->n_query : p->n_memory, p->n_feature},
                       {stride[0], stride[1], stride[2], 1}};
}

static dnn_shape turned(dnn_shape shape)
{
    return (dnn_shape){{shape.size[0], shape.size[1], shape.size[3], shape.size[2]},
                       {shape.stride[0], shape.stride[1], shape.stride[3], shape.stride[2]}};
}

/* A matrix of query rows for each head, without gaps. */
static dnn_shape matrix_of(const attend_problem *p, int64_t columns)
{
    return (dnn_shape){{p->batch, p->heads, p->n_query, columns},
                       {p->heads * p->n_query * columns, p->n_query * columns, columns, 1}};
}

/* ---- parts of both --------------------------------------------------------------------------- */

enum { BF16 = CUDNN_DATA_BFLOAT16, F32 = CUDNN_DATA_FLOAT };

static dnn_tensor between(dnn_graph *g, int type, dnn_shape shape)
{
    return cuda_dnn_between(g, (cudnnDataType_t)type, &shape);
}

static dnn_tensor in_memory(dnn_graph *g, int id, int type, dnn_shape shape)
{
    return cuda_dnn_tensor(g, id, (cudnnDataType_t)type, &shape);
}

static dnn_tensor apply(dnn_graph *g, cudnnPointwiseMode_t mode, dnn_tensor x, dnn_tensor y,
                        dnn_tensor to)
{
    return cuda_dnn_pointwise(g, &(dnn_pointwise){.mode = mode, .x = x, .y = y}, to);
}

static dnn_tensor number_along(dnn_graph *g, const attend_problem *p, dnn_tensor scores, int axis)
{
    return cuda_dnn_pointwise(
        g, &(dnn_pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis, .x = scores},
        between(g, CUDNN_DATA_INT32, matrix_of(p, p->n_memory)));
}

/* Row i sees columns 0 to i. */
static dnn_tensor hide(dnn_graph *g, const attend_problem *p, dnn_tensor scores)
{
    const dnn_shape shape = matrix_of(p, p->n_memory);
    if (!p->is_causal) return scores;
    dnn_tensor row = number_along(g, p, scores, 2), column = number_along(g, p, scores, 3);
    dnn_tensor seen = cuda_dnn_pointwise(
        g,
        &(dnn_pointwise){
            .mode = CUDNN_POINTWISE_CMP_GE, .gives_truth = true, .x = row, .y = column},
        between(g, CUDNN_DATA_BOOLEAN, shape));
    return cuda_dnn_pointwise(g,
                              &(dnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                               .x = scores,
                                               .y = cuda_dnn_number(g, ATTEND_ID_HIDDEN),
                                               .truth = seen},
                              between(g, F32, shape));
}

static dnn_tensor scale_scores(dnn_graph *g, const attend_problem *p, dnn_tensor q, dnn_tensor k)
{
    const dnn_shape shape = matrix_of(p, p->n_memory);
    return apply(g, CUDNN_POINTWISE_MUL, cuda_dnn_product(g, q, k, between(g, F32, shape)),
                 cuda_dnn_number(g, ATTEND_ID_SCALE), between(g, F32, shape));
}

/* ---- forward --------------------------------------------------------------------------------- */

static void build_forward(dnn_graph *g, const attend_problem *p)
{
    const dnn_shape scores = matrix_of(p, p->n_memory), row = matrix_of(p, 1);
    dnn_tensor q = in_memory(g, ATTEND_ID_Q, BF16, rows_of(p, 0)),
               k = in_memory(g, ATTEND_ID_K, BF16, turned(rows_of(p, 1))),
               v = in_memory(g, ATTEND_ID_V, BF16, rows_of(p, 2)),
               out = in_memory(g, ATTEND_ID_OUT, BF16, rows_of(p, 0));
    dnn_tensor s = hide(g, p, scale_scores(g, p, q, k));
    dnn_tensor most = cuda_dnn_reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, between(g, F32, row));
    dnn_tensor e = apply(g, CUDNN_POINTWISE_SUB, s, most, between(g, F32, scores));
    e = apply(g, CUDNN_POINTWISE_EXP, e, NULL, between(g, F32, scores));
    dnn_tensor sum = cuda_dnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, between(g, F32, row));
    apply(g, CUDNN_POINTWISE_ADD, most,
          apply(g, CUDNN_POINTWISE_LOG, sum, NULL, between(g, F32, row)),
          in_memory(g, ATTEND_ID_STATS, F32, row));
    cuda_dnn_product(g, apply(g, CUDNN_POINTWISE_DIV, e, sum, between(g, BF16, scores)), v, out);
}

/* ---- backward -------------------------------------------------------------------------------- */

static dnn_tensor weights(dnn_graph *g, const attend_problem *p, dnn_tensor q, dnn_tensor k)
{
    const dnn_shape scores = matrix_of(p, p->n_memory);
    dnn_tensor stats = in_memory(g, ATTEND_ID_STATS, F32, matrix_of(p, 1));
    dnn_tensor s =
        apply(g, CUDNN_POINTWISE_SUB, scale_scores(g, p, q, k), stats, between(g, F32, scores));
    return apply(g, CUDNN_POINTWISE_EXP, hide(g, p, s), NULL, between(g, F32, scores));
}

static dnn_tensor sums_of(dnn_graph *g, const attend_problem *p, dnn_tensor dout)
{
    dnn_tensor out = in_memory(g, ATTEND_ID_OUT, BF16, rows_of(p, 0));
    dnn_tensor both =
        apply(g, CUDNN_POINTWISE_MUL, dout, out, between(g, F32, matrix_of(p, p->n_feature)));
    dnn_tensor sum =
        cuda_dnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, both, between(g, F32, matrix_of(p, 1)));
    return apply(g, CUDNN_POINTWISE_MUL, sum, cuda_dnn_number(g, ATTEND_ID_ONE),
                 in_memory(g, ATTEND_ID_SUMS, F32, matrix_of(p, 1)));
}

/* to = x' y */
static void product_turned(dnn_graph *g, const attend_problem *p, dnn_tensor x, dnn_tensor y,
                           dnn_tensor to)
{
    dnn_tensor x_turned =
        cuda_dnn_reshape(g, x, between(g, BF16, turned(matrix_of(p, p->n_memory))));
    cuda_dnn_product(g, x_turned, y, to);
}

static void build_backward(dnn_graph *g, const attend_problem *p)
{
    const dnn_shape scores = matrix_of(p, p->n_memory);
    dnn_tensor q = in_memory(g, ATTEND_ID_Q, BF16, rows_of(p, 0)),
               k = in_memory(g, ATTEND_ID_K, BF16, turned(rows_of(p, 1))),
               v = in_memory(g, ATTEND_ID_V, BF16, turned(rows_of(p, 2))),
               dout = in_memory(g, ATTEND_ID_DOUT, BF16, rows_of(p, 0));
    dnn_tensor sums = sums_of(g, p, dout), w = weights(g, p, q, k);
    product_turned(g, p, w, dout, in_memory(g, ATTEND_ID_DV, BF16, rows_of(p, 2)));
    dnn_tensor ds = cuda_dnn_product(g, dout, v, between(g, F32, scores));
    ds = apply(g, CUDNN_POINTWISE_SUB, ds, sums, between(g, F32, scores));
    ds = apply(g, CUDNN_POINTWISE_MUL, ds, w, between(g, F32, scores));
    ds = apply(g, CUDNN_POINTWISE_MUL, ds, cuda_dnn_number(g, ATTEND_ID_SCALE_BACK),
               between(g, BF16, scores));
    product_turned(g, p, ds, q, in_memory(g, ATTEND_ID_DK, BF16, rows_of(p, 1)));
    dnn_tensor dq =
        cuda_dnn_product(g, ds, cuda_dnn_reshape(g, k, between(g, BF16, rows_of(p, 1))),
                         in_memory(g, ATTEND_ID_DQ_SUM, F32, matrix_of(p, p->n_feature)));
    apply(g, CUDNN_POINTWISE_IDENTITY, dq, NULL, in_memory(g, ATTEND_ID_DQ, BF16, rows_of(p, 0)));
}

void cuda_attend_build(dnn_graph *g, const void *described)
{
    const attend_problem *problem = described;
    static void (*const builds[ATTEND_KINDS])(dnn_graph * g, const attend_problem *p) = {
        [ATTEND_FORWARD] = build_forward, [ATTEND_BACKWARD] = build_backward};
    builds[problem->kind](g, problem);
}
