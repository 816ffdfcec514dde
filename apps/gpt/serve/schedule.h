/* schedule.h: which text goes on when: requests join slots and leave them between ticks. Of the root alone.
 *
 *     gpt_schedule_plan(&schedule);                 what the next tick does, into the engine's
 *     WEFT_TRY(gpt_engine_run(engine, error));
 *     gpt_schedule_take(&schedule);                 what came of it
 *
 * A tick is a token for each text, and one thing besides: a chunk of a prompt through a part of the layers, or a window that is
 * moved. So a long prompt delays others by half a chunk a token. Where no text goes on, a chunk goes through all parts.
 */
#ifndef WEFT_APPS_GPT_SCHEDULE_H
#define WEFT_APPS_GPT_SCHEDULE_H

#include "engine.h"
#include "facts.h"

typedef struct gpt_slot {
    gpt_request *request; /* NULL: it may be taken */
    bool goes_on;         /* its window is there: each tick is a token */
    bool is_used;         /* a text's rows are in its window */
    bool is_wrong;        /* and they may be no numbers */
    int32_t place;        /* of its last token, which goes through next */
} gpt_slot;

typedef struct gpt_schedule {
    gpt_engine *engine; /* borrowed, as the following */
    serve_queue *queue;
    gpt_facts_served *facts;
    gpt_slot *slots;      /* [slots] */
    gpt_request *reading; /* whose input goes through in chunks; NULL: none */
    int slot;             /* that it will have; -1: none */
    int n_chunk;          /* tokens of it that go through */
    int part;             /* of the layers, to which they have come */
    bool is_dirty;        /* the chunk's window is to be emptied */
    int joins;            /* the slot that the chunk's window becomes; -1: none */
    double *weights;      /* [n_words] */
    double begun;         /* of the tick */
} gpt_schedule;

weft_status gpt_schedule_open(gpt_schedule *schedule, gpt_engine *engine, serve_queue *queue,
                              gpt_facts_served *facts, weft_error *error);
/* gpt_schedule_close - what still goes on ends with the sentence. */
void gpt_schedule_close(gpt_schedule *schedule, const char *sentence);
/* gpt_schedule_plan - returns whether there is something to do. Under the lock. gpt_schedule_take - takes the lock. */
bool gpt_schedule_plan(gpt_schedule *schedule);
void gpt_schedule_take(gpt_schedule *schedule);
/* Whether nothing goes on and nothing waits. Under the lock. */
bool gpt_schedule_is_idle(const gpt_schedule *schedule);

#endif
