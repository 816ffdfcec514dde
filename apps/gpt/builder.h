/* builder.h: a model while it is being written down: what its parts need, and what keeps keys and values (kv_cache.c). */
#ifndef WEFT_APPS_GPT_BUILDER_H
#define WEFT_APPS_GPT_BUILDER_H

#include <string.h>

#include "documents.h"
#include "model.h"

enum { GPT_BLOCK_VARIABLES = 20 };

/* What the parts need while the model is being written down. */
typedef struct builder {
    const gpt_shape *shape;
    gpt_model *m;
    weft_graph *graph;
    int layer;        /* of its stage, of the block under construction; -1 outside */
    int n_variables;  /* asked for so far */
    int turn, first;  /* how often blocks were built; the first of their variables */
    weft_value table; /* of tokens */
    bool packs;       /* windows have documents, as inputs */
    gpt_documents documents, held[2]; /* held: of all ticks of a turn, what is in stages */
    int n_block; /* variables of the block under construction; handed out so far */
    weft_value block[GPT_BLOCK_VARIABLES];
    weft_graph *declares; /* of gpt_variables: where they are made besides; NULL: nowhere */
    weft_value *declared;
    /* of gpt_context, gpt_next and gpt_rows: keys and values, here of the block under construction */
    int part, parts; /* of the layers those that are built, of gpt_rows; parts 0: all */
    bool keeps;
    const char *cached; /* how names of these begin */
    weft_kv_cache cache;
} builder;

/* One in front of all dims. */
static inline weft_shape led_by(weft_dim first, const weft_shape *dims)
{
    weft_shape all = {.n_dims = dims->n_dims + 1, .dims = {first}};
    memcpy(all.dims + 1, dims->dims, (size_t)dims->n_dims * sizeof *dims->dims);
    return all;
}

/* Of activations. */
static inline weft_dtype dtype_of(const gpt_shape *shape)
{
    const bool is_half = shape->computes == WEFT_BF16 || shape->computes == WEFT_F16;
    return is_half ? shape->computes : shape->dtype;
}

/* gpt_layers_of - how many blocks are written down: of a stage; without stages, all; one, through whose weights a scan goes.
 * gpt_set_dims - a model without values. gpt_scores - of tokens, as its parts tell. Local. */
int64_t gpt_layers_of(const gpt_shape *shape);
void gpt_set_dims(const gpt_shape *shape, gpt_model *m);
weft_value gpt_scores(builder *b, weft_value tokens);

/* gpt_cache_open - of the block under construction, or of all that it stands for, which are returned. gpt_cache_close - they
 * become what the block has made. Nothing where none are kept. Local. */
weft_kv_rows gpt_cache_open(builder *b);
void gpt_cache_close(builder *b, const weft_kv_rows *all);
/* gpt_cache_move, gpt_cache_list - what gpt_moved and gpt_chunk_caches are. Local. */
void gpt_cache_move(builder *b, gpt_move move);
int gpt_cache_list(builder *b, weft_value *variables);

#endif
