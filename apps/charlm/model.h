/* model.h: nets that tell the next byte of a text: recurrent ones and a transformer, out of layers. */
#ifndef WEFT_APPS_CHARLM_MODEL_H
#define WEFT_APPS_CHARLM_MODEL_H

#include "weft/ops.h"

typedef struct charlm_kind charlm_kind; /* "lstm": what stands between the bytes and their scores */

typedef struct charlm_shape {
    const charlm_kind *kind;
    int64_t batch, seq, layers, width,
        heads; /* width: of embeddings and states; heads, which divide it: of the transformer */
    double dropout; /* behind each layer; 0: none */
    weft_dtype dtype;
    /* recurrent ones: states begin as the run before left them, where goes_on is not 0 */
    bool carries;
} charlm_shape;

typedef struct charlm_model {
    weft_dim batch, seq, vocab;
    weft_value tokens; /* input: i32 [batch, seq] */
    weft_value logits; /* of the byte behind each; dims batch, seq and vocab in any order */
    /* Where states are carried; else invalid. goes_on: input, i32 [batch], 0 where a row begins anew. carried: a token that keeps
     * the last states in variables of their own, "layer0/carried/h" [batch, hidden] */
    weft_value goes_on, carried;
} charlm_model;

/* charlm_find - NULL where there is none of that name. Local. */
const charlm_kind *charlm_find(const char *name);
/* charlm_has_states - whether a kind has states that can be carried. Local. */
bool charlm_has_states(const charlm_kind *kind);
/* charlm_build - the model in a graph; errors stay there. Local. Dims: batch seq vocab embed hidden; of the transformer heads and
 * kv. */
charlm_model charlm_build(weft_graph *graph, const charlm_shape *shape);
/* charlm_loss - with the input "targets", i32 [batch, seq]: mean cross-entropy. Local. */
weft_value charlm_loss(weft_graph *graph, const charlm_model *model);

#endif
