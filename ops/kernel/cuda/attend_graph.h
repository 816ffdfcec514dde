/* attend_graph.h: attention and its gradient as cuDNN's graphs (dnn.h), for numbers of bf16, added up in f32. */
#ifndef WEFT_CUDA_ATTEND_GRAPH_H
#define WEFT_CUDA_ATTEND_GRAPH_H

#include "dnn.h"

/* Which graph. Forward makes what the gradient needs of it too: no engine has it without. */
typedef enum attend_kind { ATTEND_FORWARD, ATTEND_BACKWARD, ATTEND_KINDS } attend_kind;

/* Ids of what is in memory, and of numbers. Of bf16 [batch, head, row, feature]: q, k, v and their gradients, and as q lies the result
 * and its gradient, dout. Of f32 without gaps: stats [batch, head, query], the logsumexp of each row's scores; sums, of dout times out
 * of each row; dq_sum [batch, head, query, feature], which is zero before. */
enum {
    ATTEND_ID_Q = 1,
    ATTEND_ID_K,
    ATTEND_ID_V,
    ATTEND_ID_OUT,
    ATTEND_ID_STATS, /* the last that forward has */
    ATTEND_ID_DOUT,
    ATTEND_ID_DQ,
    ATTEND_ID_DK,
    ATTEND_ID_DV,
    ATTEND_ID_SUMS,
    ATTEND_ID_DQ_SUM,
    ATTEND_ID_SCALE, /* of scores; the second of their gradients: the same */
    ATTEND_ID_SCALE_BACK,
    ATTEND_ID_HIDDEN, /* the score of what is not seen */
    ATTEND_ID_ONE,
    ATTEND_IDS
};

/* No gaps: plans are found again by these bytes. Strides in elements: of q, k, v; of batch, head, row; a feature's is 1. */
typedef struct attend_problem {
    int64_t kind, batch, heads, n_query, n_memory, n_feature, is_causal;
    int64_t stride[3][3];
} attend_problem;

/* cuda_attend_build - the graph of an attend_problem. */
void cuda_attend_build(dnn_graph *g, const void *problem);

#endif
