/* choose.h: how the work of one op is cut over the mesh: candidates per axis, and the cheapest of
 * them. */
#ifndef WEFT_CHOOSE_H
#define WEFT_CHOOSE_H

#include "plan.h"

/* One operand or result, as place knows it before it decides. States are weft_spec_state's: a dim,
 * WEFT_REPLICATED or WEFT_PARTIAL. */
typedef struct weft_holding {
    int8_t now[WEFT_MAX_AXES];      /* operand: the state it is in                               */
    int8_t finished[WEFT_MAX_AXES]; /* operand: where it goes when it must not be partial;
                                       result: where the names want it                           */
    uint8_t combine;                /* of the partial states in `now`                            */
    double bytes;                   /* of the whole tensor                                       */
    int readers; /* operand: how many ops read it; they share the cost of finishing it */
} weft_holding;

typedef struct weft_choice_in {
    const weft_plan *plan;
    const weft_site *site;
    weft_factors factors;
    weft_holding in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
} weft_choice_in;

/* The decision: per axis the state every operand needs and every result comes out in. */
typedef struct weft_choice {
    int8_t need[WEFT_MAX_IN][WEFT_MAX_AXES], make[WEFT_MAX_OUT][WEFT_MAX_AXES];
    int8_t factor[WEFT_MAX_AXES]; /* the direction the axis cuts; -1: none */
    uint8_t combine;              /* of partial results */
} weft_choice;

/* weft_choose - the cheapest way, axis by axis in the mesh's order. Local; pure.
 *
 * Cost of a candidate = converting operands + converting results to where the names want them +
 * work done more than once, all in bytes through one rank's link. Ties: the direction that the
 * names want for the result, then partial operands kept partial, then another direction, then
 * everything whole.
 */
void weft_choose(const weft_choice_in *in, weft_choice *choice);

#endif
