/* model.h: a decoder-only transformer over bytes, as one expression of named dims. No mesh, no
 * layout here.
 *
 *     gpt_model model;
 *     weft_value loss = gpt_loss(&shape, graph, &model);
 */
#ifndef WEFT_APPS_GPT_MODEL_H
#define WEFT_APPS_GPT_MODEL_H

#include "documents.h"
#include "experts.h"
#include "weft/ops.h"

/* Which dense layers have biases: those of the MLP, attention's too, none. */
typedef enum gpt_biases { GPT_BIASES_MLP, GPT_BIASES_ALL, GPT_BIASES_NONE } gpt_biases;

typedef struct gpt_shape {
    int64_t batch, seq, layers, width, heads, hidden, vocab; /* heads divides width */
    double dropout;                                          /* 0: none */
    /* layers in so many stages, of as many each, through which micro-batches go one behind the other (pipe.h): stages
     * divides layers, micro x turns divides batch; 0 or 1: no stages, one turn */
    int64_t stages, micro, turns;
    bool recomputes; /* each block's values are computed again on the way back */
    /* the blocks are one, built once, and a scan goes through their weights, which are stacked along `layer`; without stages */
    bool scans;
    gpt_mixture mixture; /* of the blocks' MLPs; without stages */
    weft_dtype dtype;    /* of variables, norms and the loss: WEFT_F32, WEFT_F64            */
    /* of activations and what products read: WEFT_BF16, WEFT_F16; else dtype */
    weft_dtype computes;
    /* heads of keys and values, which heads / kv_heads queries' heads share: divides heads; 0: heads */
    int64_t kv_heads;
    int64_t head_dim; /* numbers of a head; 0: width / heads */
    bool ropes;       /* rotary positions, of an even head_dim, in place of learned ones */
    bool is_rms;      /* norms divide by the root of the mean square, and have no biases */
    bool ties;        /* the table of tokens is the head too */
    gpt_biases biases;
    bool is_gated; /* the MLP's first layer times a second one, which alone has the activation */
    const char *activation;   /* of layers.h; NULL: gelu */
    double epsilon;           /* of norms; 0: 1e-5 */
    weft_rope_options rotary; /* positions; all 0: as weft_rope has them */
    bool packs; /* windows are of several documents, none of which sees another; without stages */
    bool is_formula; /* variable k = 0, 1, ... (in creation order) begins as weft_formula(0.3, 0.7 +
                        0.01 k) instead of random: for comparing with other programs */
} gpt_shape;

typedef struct gpt_model {
    weft_dim batch, seq, embed, heads, group, kv, hidden, vocab, stage, layer, token, experts;
    weft_value tokens, targets;   /* inputs: i32 [batch, seq] */
    gpt_documents documents;      /* where it packs: two more */
    weft_value place, kept;       /* of gpt_context, gpt_next, gpt_rows and gpt_moved */
    weft_value last, normed;      /* of gpt_rows */
    weft_value entering, leaving; /* of its parts: what one leaves enters the next */
    /* [batch, seq, vocab], of what it computes in; with stages [micro, batch / micro, ..]:
    window k of the batch is in micro-batch k mod micro */
    weft_value logits;
    gpt_facts facts;             /* of the mixture; with parts of a batch the mean balance */
    const weft_value *variables; /* in creation order; NULL: they are made as they are needed */
} gpt_model;

/* The names of the model's dims, for checking layouts. */
enum { GPT_N_DIMS = 10, GPT_MOST_STAGES = 1000 };
extern const char *const gpt_dims[GPT_N_DIMS];

/* gpt_logits - the input "tokens", all variables, and the scores of every byte at every place.
 * Local. gpt_loss - the same, with the input "targets": mean cross-entropy, a scalar; where the shape
 * packs, with the inputs "segments" and "positions", and a mean over targets that are not -1. Errors stay in the graph. With experts their balance, by its weight, is part of the loss. */
weft_value gpt_logits(const gpt_shape *shape, weft_graph *graph, gpt_model *model);
weft_value gpt_loss(const gpt_shape *shape, weft_graph *graph, gpt_model *model);

/* gpt_context - gpt_logits of a window of which the first `place` rows (an input, i32) are text, and `kept`, a token: it keeps
 * keys and values of these rows in variables of its own, "cache.*" [seq, batch, heads, kv]. gpt_next - by these the scores
 * [batch, token:1, vocab] of what follows one token, [batch, token:1], which stands at row `place`; it keeps that row too, where none
 * has been kept since the window. Of any number of layers; without stages, and
 * without experts of limited capacity, whose places are counted along a window. Local. weft_kv_attend says what a step costs. */
#define GPT_CACHE "cache."
/* Whether there is a step of a token. */
bool gpt_has_step(const gpt_shape *shape);
weft_value gpt_context(const gpt_shape *shape, weft_graph *graph, gpt_model *model);
weft_value gpt_next(const gpt_shape *shape, weft_graph *graph, gpt_model *model);

/* gpt_rows - as gpt_next, of `rows` tokens of each window, [batch, token:rows], of which `place`, i32 [batch, token:rows], says at
 * which row each stands; one at -1 is none. A window's rows are added where zeros are. picks_last: `last`, an input, i32, says of
 * which token there are scores, [batch, vocab]. normed: [batch, token, embed], what the head reads. cached: GPT_SLOTS, or
 * GPT_CHUNK, of a batch of 1. gpt_moved - `kept` moves whole windows; `place`, an input, i32, is the one of `batch` windows. GPT_JOIN: the
 * chunk's rows are added to its rows, which are zeros. GPT_CLEAR: the chunk's rows become zeros. GPT_EMPTY: its rows do, if all of
 * them are finite; nothing else is touched. GPT_WIPE: whatever they are, and all windows are gone through. gpt_chunk_caches - the chunk's variables, into
 * [GPT_MOST_CACHES]; returns how many: so that one program has all that others share. Local.
 * part, parts  gpt_rows in so many parts, each a program, 2 to gpt_most_parts(shape) of them: the layers are shared out, and `leaving`,
 *              [batch, token, embed], the result of all but the last, is to be written to `entering`, an input of the next. The first
 *              has `tokens`, the last `last`, logits and normed
 * variables    of a part all of the model's, in its graph, as gpt_variables gives them: the layout names their dims */
#define GPT_SLOTS GPT_CACHE "slots."
#define GPT_CHUNK GPT_CACHE "chunk."
typedef struct gpt_rows_options {
    const char *cached;
    int64_t rows;
    bool picks_last;
    int part, parts; /* 0 or 1: one */
    const weft_value *variables;
} gpt_rows_options;
int gpt_most_parts(const gpt_shape *shape);
enum { GPT_MOST_CACHES = 2 * GPT_MOST_STAGES };
weft_value gpt_rows(const gpt_shape *shape, const gpt_rows_options *options, weft_graph *graph,
                    gpt_model *model);
typedef enum gpt_move { GPT_JOIN, GPT_CLEAR, GPT_EMPTY, GPT_WIPE, GPT_MOVES } gpt_move;
weft_value gpt_moved(const gpt_shape *shape, gpt_move move, weft_graph *graph, gpt_model *model);
int gpt_chunk_caches(const gpt_shape *shape, weft_graph *graph, weft_value *variables);

/* gpt_variables - all variables alone, into [gpt_n_variables(shape)]; gpt_loss_on - the loss of windows by these: of as many windows as shape says, in a scan's body too. Local. */
int gpt_n_variables(const gpt_shape *shape);
void gpt_variables(const gpt_shape *shape, weft_graph *graph, weft_value *variables);
typedef struct gpt_windows {
    weft_value tokens, targets;
    gpt_documents documents; /* without a mask */
} gpt_windows;
weft_value gpt_loss_on(const gpt_shape *shape, weft_graph *graph, const weft_value *variables,
                       const gpt_windows *windows, gpt_facts *facts);

/* gpt_accumulate - the loss of a batch and its gradients, micro-batch by micro-batch: numbers and random numbers of the batch
 * at once, in the memory of one part. Local.
 *
 * parts      how many; divides shape->batch
 * is_stored  each part's gradients go to where their variables are stored, and are added up there (ZeRO 2 and 3); else they
 *            are added up as they are, and go once
 * variables, gradients  [gpt_n_variables(shape)] out
 * returns the loss, and model's inputs; id 0, and no error of the graph: out of memory */
weft_value gpt_accumulate(const gpt_shape *shape, int64_t parts, bool is_stored, weft_graph *graph,
                          gpt_model *model, weft_value *variables, weft_value *gradients);

/* How many numbers the model's variables hold; a double, as sizes are the user's and may be absurd.
 */
double gpt_parameters(const gpt_shape *shape);

#endif
