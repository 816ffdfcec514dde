/* ways.h (private): one op while choose decides it, and the ways that it compares. */
#ifndef WEFT_WAYS_H
#define WEFT_WAYS_H

#include "choose.h"

enum { WEFT_MAX_WAYS = WEFT_MAX_FACTORS + 2 * WEFT_MAX_IN + 3 };

typedef struct weft_choosing {
    const weft_choice_in *in;
    weft_choice *choice;
    weft_error *error;
    int n_axes;
    uint32_t axes_of[WEFT_MAX_FACTORS];
    bool is_shown; /* somebody looks at the decision: a policy, or who asked to have it kept */
    weft_decision decision; /* the axis under way; its flops: with the axes decided so far */
    weft_operand in_of[WEFT_MAX_IN], out_of[WEFT_MAX_OUT];
    weft_way ways[WEFT_MAX_WAYS], before[WEFT_MAX_AXES];
    int8_t before_need[WEFT_MAX_AXES][WEFT_MAX_IN], before_make[WEFT_MAX_AXES][WEFT_MAX_OUT];
    int8_t need[WEFT_MAX_WAYS][WEFT_MAX_IN], make[WEFT_MAX_WAYS][WEFT_MAX_OUT];
    int8_t factor[WEFT_MAX_WAYS]; /* of each way; -1: no cut */
} weft_choosing;

/* ways.c: of the axis under way, with their prices. */
void weft_list_ways(weft_choosing *c);
/* choose.c: of a way that cuts along factor f; -1: it cuts along none. */
weft_price weft_price_of(const weft_choosing *c, const weft_way *way, int f);

#endif
