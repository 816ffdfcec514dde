/* pipe.h: layers in stages. A batch goes through in micro-batches, one behind the other: in each tick all stages do
 * their layers on what they hold, and what they made goes on by one stage. Stages are a dim; a layout says which rank
 * has which stage.
 */
#ifndef WEFT_APPS_GPT_PIPE_H
#define WEFT_APPS_GPT_PIPE_H

#include "weft/ops.h"

typedef struct gpt_pipe {
    weft_dim stage; /* how many stages; its name is that of the dims below, whatever their size */
    int64_t micro;  /* micro-batches of a batch */
    /* 1, or 2: a micro-batch goes in two halves, in turn: while one is computed, the other goes on to the next stage.
     * micro x turns divides the batch */
    int64_t turns;
} gpt_pipe;

/* What all stages make of what they hold, [stage, batch, seq, ..], of the same dims; built once a turn. */
typedef weft_value (*gpt_stages)(void *argument, weft_value held);

/* gpt_pipe_feed - the tokens that enter, tick by tick: [batch, seq] to [tick: micro + stages - 1, stage:1, batch / micro, seq],
 * of two turns [turn:2, tick, stage:1, batch / micro / 2, seq]; those of the last ticks, in which nothing new enters, are 0.
 * gpt_pipe_through - x of these, [.., embed], through all stages: [stage: micro x turns, batch, seq, embed]. What is done with it
 * afterwards is shared by the ranks that share the stages, as it has a dim of that name.
 * gpt_pipe_dealt - targets, [batch, seq], as that has its rows.
 * gpt_pipe_beside - [batch, seq] of what stages hold in each tick: [tick, stage, batch / micro, seq], of two turns [turn:2, tick, ..];
 * where a stage holds nothing, 0. All Local. */
weft_value gpt_pipe_feed(const gpt_pipe *pipe, weft_value tokens);
weft_value gpt_pipe_through(const gpt_pipe *pipe, weft_value x, gpt_stages stages, void *argument);
weft_value gpt_pipe_beside(const gpt_pipe *pipe, weft_value x);
weft_value gpt_pipe_dealt(const gpt_pipe *pipe, weft_value targets);

#endif
