/* model.h: vectors of words by the company they keep: skip-grams with negative sampling. */
#ifndef WEFT_APPS_WORD2VEC_MODEL_H
#define WEFT_APPS_WORD2VEC_MODEL_H

#include "weft/ops.h"

typedef struct word2vec_shape {
    int64_t batch, vocab, embed,
        candidates; /* candidates of a word: one that stood near it, then those drawn */
    weft_dtype dtype;
} word2vec_shape;

typedef struct word2vec_model {
    weft_value center; /* input "center", i32 [batch] */
    /* input "candidates", i32 [batch, candidate]: the first is the true one */
    weft_value candidates;
    weft_value loss; /* mean over pairs of what all candidates of one give */
    weft_value u, v; /* rows of the two tables: [batch, embed], [batch, candidate, embed] */
} word2vec_model;

/* word2vec_build - tables "centers/weight" and "contexts/weight" [vocab, embed], and the loss. Errors stay in the graph. Local. Dims:
 * batch candidate vocab embed. */
word2vec_model word2vec_build(weft_graph *graph, const word2vec_shape *shape);

/* word2vec_step - stochastic gradient descent, p -= rate g, of those rows of both tables that the batch has: these alone are read and
 * written, so a step costs what the batch does, however many words there are. rate: a scalar of the tables' dtype. Returns a token.
 * Local. */
weft_value word2vec_step(const word2vec_model *model, const word2vec_shape *shape, weft_value rate);

/* word2vec_nearest - the words whose vectors have the smallest angles with those of the input "query", i32 [batch:n_queries]: into
 * *ids, i32 [batch, candidate:n_near]; each word is the nearest to itself. The dims are those of word2vec_build, so that a layout of
 * that holds here. returns the cosines. Local. */
weft_value word2vec_nearest(weft_graph *graph, const word2vec_shape *shape, int64_t n_queries,
                            int64_t n_near, weft_value *ids);

#endif
