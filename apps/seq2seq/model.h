/* model.h: an encoder that reads a word and a decoder that writes another, letter by letter, as one net out of layers: with LSTMs, or
 * transformer blocks.
 */
#ifndef WEFT_APPS_SEQ2SEQ_MODEL_H
#define WEFT_APPS_SEQ2SEQ_MODEL_H

#include "weft/ops.h"

typedef struct seq2seq_kind seq2seq_kind; /* "lstm" */

typedef struct seq2seq_shape {
    const seq2seq_kind *kind;
    int64_t batch, source, target,
        vocab; /* letters of what is read and of what is written; how many letters there are */
    int64_t layers, width, heads; /* width: of embeddings and states; heads divides it */
    double dropout;
    weft_dtype dtype;
} seq2seq_shape;

typedef struct seq2seq_model {
    weft_dim batch, source, target, vocab;
    weft_value read; /* input "read", i32 [batch, source] */
    /* input "written", i32 [batch, target]: the letter before each that is to be written */
    weft_value written;
    weft_value logits; /* [batch, target, vocab] */
} seq2seq_model;

/* seq2seq_find - NULL where there is none of that name. Local. */
const seq2seq_kind *seq2seq_find(const char *name);
/* seq2seq_build - the model in a graph; errors stay there. Local. Dims: batch source target vocab embed hidden heads kv. */
seq2seq_model seq2seq_build(weft_graph *graph, const seq2seq_shape *shape);
/* seq2seq_loss - with the input "wanted", i32 [batch, target]: mean cross-entropy. Local. */
weft_value seq2seq_loss(weft_graph *graph, const seq2seq_model *model);

#endif
