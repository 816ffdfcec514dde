/* engine.h: the programs behind gpt serve, and what one tick of theirs does, on all ranks alike.
 *
 *     WEFT_TRY(gpt_engine_open(&engine, setup, &options, error));
 *     ... the root fills engine.tick ...
 *     WEFT_TRY(gpt_engine_run(&engine, error));       all ranks; the root's tick counts
 *     ... engine.slot_logits, engine.chunk_logits ...
 *     gpt_engine_close(&engine);
 *
 * Texts are in slots: each is a window with keys and values of its own, and one program goes on with all of them by a token each.
 * A prompt goes through another program, a chunk of tokens at a time, in a window beside them that becomes a slot's when the
 * prompt is over. Programs have one shape each, so what a text's numbers are does not depend on what is in the other slots.
 */
#ifndef WEFT_APPS_GPT_ENGINE_H
#define WEFT_APPS_GPT_ENGINE_H

#include "../../serve/told.h"
#include "../setup.h"

typedef enum gpt_does {
    GPT_EMPTIES = 1,  /* slot `emptied` is empty again */
    GPT_WIPES = 2,    /* and so, though its numbers are none; it takes long */
    GPT_JOINS = 4,    /* the chunk's window becomes that of slot `joined`, which is empty */
    GPT_CLEARS = 8,   /* the chunk's window is empty again */
    GPT_DECODES = 16, /* each slot goes on by a token */
    GPT_READS = 32,   /* a chunk goes through parts of the layers */
    GPT_LOOKS = 64,   /* the last of them, and `normed` is wanted of it */
    GPT_ENDS = 128    /* it was the last tick */
} gpt_does;

/* In this order it is done. What is not there has place -1. */
typedef struct gpt_tick {
    int32_t *does, *emptied, *joined;
    int32_t *part, *end;                /* of the layers those from one part to before the other */
    int32_t *last;                      /* of the chunk's tokens the one whose scores are wanted */
    int32_t *slot_tokens, *slot_places; /* [slots] */
    int32_t *chunk_tokens, *chunk_places; /* [chunk] */
} gpt_tick;

/* So many parts of the layers have a program each. While texts go on, a tick takes a chunk through one. */
enum { GPT_MOST_READS = 2 };

typedef struct gpt_engine_options {
    int64_t slots, chunk;
} gpt_engine_options;

typedef struct gpt_part {
    weft_graph *graph;
    gpt_model model;
    weft_program *program;
} gpt_part;

typedef struct gpt_engine {
    gpt_setup *setup; /* borrowed */
    gpt_engine_options options;
    gpt_shape shape; /* of the slots */
    gpt_part decode, reads[GPT_MOST_READS], moves[GPT_MOVES];
    int n_reads;
    serve_told ranks;
    gpt_tick tick;
    int32_t *told; /* the tick, as it is sent */
    int64_t n_told;
    weft_dtype dtype, normed_dtype;
    void *slot_logits;  /* [slots, vocab] of dtype, after GPT_DECODES */
    void *chunk_logits; /* [vocab], after the last part of GPT_READS */
    void *normed;       /* [chunk, width] of normed_dtype, after GPT_LOOKS */
    void *between;      /* [chunk, width]: what the last part that was run has left to the next */
} gpt_engine;

/* gpt_engine_open - the programs, the checkpoint's weights in them. Collective over the job. returns besides: WEFT_USAGE for a model that
 * has no step */
weft_status gpt_engine_open(gpt_engine *engine, gpt_setup *setup, const gpt_engine_options *options,
                            weft_error *error);
/* gpt_engine_forget - a tick in which nothing is done. Local. */
void gpt_engine_forget(gpt_engine *engine);
/* gpt_engine_run - the root's tick. Collective over the job. */
weft_status gpt_engine_run(gpt_engine *engine, weft_error *error);
void gpt_engine_close(gpt_engine *engine);

#endif
