/* relay.h: acts on elements that follow each other, as one act: a relay. Its legs (weft/extend/relay.h) hand tiles on in
 * registers; what is left of a block and less than a tile goes through the ops' block functions.
 */
#ifndef WEFT_RELAY_H
#define WEFT_RELAY_H

#include "cpu/loop_prepared.h"

#include "weft/extend/relay.h"

enum { WEFT_MOST_LEGS = 64 };

typedef struct weft_relay_leg weft_relay_leg;
struct weft_relay_leg {
    weft_leg_run run;
    void (*rest)(const weft_relay_leg *leg, const weft_lane *lane, float *tile, int64_t done,
                 int64_t n);
    int ref;    /* what the leg reads or writes beside the tile; 0: nothing */
    int ahead;  /* of one that asks: so many elements; 0: a block              */
    int number; /* the op's */
    weft_leg_kind kind;
    weft_block block;
};

/* How legs are run by vectors of one width: those that are no op's, and all of them, tile by tile. */
typedef struct weft_relay_width {
    int64_t tile;                               /* elements */
    weft_leg_run load, store, stream, ask, end; /* stream: past the caches */
    void (*run)(const weft_leg *legs, int64_t n);
} weft_relay_width;

/* Which of an op's legs this processor runs. */
int weft_relay_width_index(void);
extern const weft_relay_width weft_relay_widths[WEFT_LEG_WIDTHS];

void weft_act_relay(const weft_space *, weft_lane *, const weft_act *);
/* What was streamed is in memory before what this thread writes next. */
void weft_relay_fence(void);
/* The `rest` of legs. */
void weft_rest_load(const weft_relay_leg *, const weft_lane *, float *, int64_t, int64_t);
void weft_rest_op(const weft_relay_leg *, const weft_lane *, float *, int64_t, int64_t);
void weft_rest_store(const weft_relay_leg *, const weft_lane *, float *, int64_t, int64_t);
void weft_rest_none(const weft_relay_leg *, const weft_lane *, float *, int64_t, int64_t);

#endif
