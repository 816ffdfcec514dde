/* documents.h: windows of several documents, as weft_chain_pack makes them: which places attend to each other, where in its document each
 * stands, and how many targets there are.
 */
#ifndef WEFT_APPS_GPT_DOCUMENTS_H
#define WEFT_APPS_GPT_DOCUMENTS_H

#include "pipe.h"
#include "weft/layers.h"
#include "weft/ops.h"

typedef struct gpt_documents {
    weft_value segments, positions; /* inputs: i32 [batch, seq]; id 0: windows are of one text */
    weft_value mask;                /* i32 [batch, seq, key]: 1 where both are of one document */
    weft_value
        count; /* targets that are none, -1, left out: what the loss is a mean of; id 0: all */
} gpt_documents;

/* gpt_documents_open - the inputs "segments" and "positions"; gpt_documents_see - the mask of segments. Local. */
gpt_documents gpt_documents_open(weft_graph *graph, weft_dim batch, weft_dim seq);
void gpt_documents_see(gpt_documents *documents);
/* gpt_documents_count - how many of targets are some, times share; of no documents it stays unset. Local. */
void gpt_documents_count(gpt_documents *documents, weft_value targets, weft_dtype dtype,
                         double share);
/* In stages: gpt_documents_entering - what enters in each tick, as gpt_pipe_feed has tokens. gpt_documents_held - what stages hold in each
 * tick of a turn. gpt_documents_of_tick - in the scan's body: of it that of this tick, with its mask. Without documents all are empty. Local. */
gpt_documents gpt_documents_entering(const gpt_documents *documents, const gpt_pipe *pipe);
gpt_documents gpt_documents_held(const gpt_documents *documents, const gpt_pipe *pipe, int turn);
gpt_documents gpt_documents_of_tick(const gpt_documents *held);
/* gpt_documents_attend - what a block is told of them. Local. */
void gpt_documents_attend(const gpt_documents *documents, weft_transformer_options *options);
/* gpt_documents_mean - of losses: over those that have a target. Local. */
weft_value gpt_documents_mean(const gpt_documents *documents, weft_value losses);

#endif
