/* model: -log s(u v) of words that stood near each other and -log s(-u v) of a word and those drawn, s the sigmoid, u and v rows of two
 * tables: Mikolov et al. 2013. A split table stays split: what goes over ranks is rows.
 */
#include "model.h"

#include "weft/autodiff.h"
#include "weft/layers.h"

static weft_value rows_of(weft_value ids, const word2vec_shape *shape, const char *table,
                          const char *initializer)
{
    return weft_embedding(ids, &(weft_embedding_options){.name = table,
                                                         .entry = {"vocab", shape->vocab},
                                                         .embed = {"embed", shape->embed},
                                                         .dtype = shape->dtype,
                                                         .initializer = initializer});
}

word2vec_model word2vec_build(weft_graph *graph, const word2vec_shape *shape)
{
    word2vec_model m;
    const weft_dim batch = {"batch", shape->batch}, candidate = {"candidate", shape->candidates};
    m.center = weft_input(graph, "center", WEFT_I32, WEFT_DIMS(batch));
    m.candidates = weft_input(graph, "candidates", WEFT_I32, WEFT_DIMS(batch, candidate));
    m.u = rows_of(m.center, shape, "centers", "lecun_uniform");
    m.v = rows_of(m.candidates, shape, "contexts", "zeros");
    const weft_value scores = weft_einsum(WEFT_DIMS(batch, candidate), m.u, m.v);
    const weft_value is_true =
        weft_one_hot(weft_constant(graph, WEFT_I32, WEFT_SCALAR, 0), candidate, shape->dtype);
    const weft_value losses =
        weft_sigmoid_cross_entropy(scores, weft_broadcast_to(is_true, WEFT_DIMS(batch, candidate)));
    m.loss = weft_mean(weft_sum(WEFT_DIMS(batch), losses));
    return m;
}

/* What is added are rows, so it is added to them where the table lies. */
static weft_value moved(const char *name, weft_value gradient, weft_value ids, weft_dim vocab,
                        weft_value rate)
{
    const weft_value table = weft_graph_find(gradient.graph, name, NULL);
    const weft_value rows = weft_neg(weft_mul(gradient, rate));
    return weft_assign(table, weft_add(table, weft_scatter_add(rows, ids, vocab)));
}

weft_value word2vec_step(const word2vec_model *model, const word2vec_shape *shape, weft_value rate)
{
    const weft_dim vocab = {"vocab", shape->vocab};
    weft_value gradients[2];
    weft_gradients(model->loss, WEFT_VALUES(model->u, model->v), gradients, 0);
    const weft_value u = moved("centers/weight", gradients[0], model->center, vocab, rate);
    const weft_value v = moved("contexts/weight", gradients[1], model->candidates, vocab, rate);
    return weft_group(model->loss.graph, WEFT_VALUES(u, v));
}

/* Of length 1. */
static weft_value unit(weft_value x, weft_shape rows)
{
    return weft_mul(x, weft_rsqrt(weft_shift(weft_sum(rows, weft_square(x)), 1e-12)));
}

weft_value word2vec_nearest(weft_graph *graph, const word2vec_shape *shape, int64_t n_queries,
                            int64_t n_near, weft_value *ids)
{
    const weft_dim batch = {"batch", n_queries}, near = {"candidate", n_near};
    const weft_dim vocab = {"vocab", shape->vocab};
    const weft_value asked = weft_input(graph, "query", WEFT_I32, WEFT_DIMS(batch));
    const weft_value u = unit(rows_of(asked, shape, "centers", "zeros"), WEFT_DIMS(batch));
    const weft_value table = weft_graph_find(graph, "centers/weight", NULL);
    const weft_value all = unit(table, WEFT_DIMS(vocab));
    return weft_top_k(weft_einsum(WEFT_DIMS(batch, vocab), u, all), vocab, near, ids);
}
