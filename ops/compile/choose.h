/* choose.h: how the work of one op is cut over the mesh: the ways per axis, their prices, and which
 * of them is taken. */
#ifndef WEFT_CHOOSE_H
#define WEFT_CHOOSE_H

#include "passes.h"

/* By axis, filled up to a word with zeros. */
typedef int8_t weft_axis_states[8];
_Static_assert(sizeof(weft_axis_states) >= WEFT_MAX_AXES, "one for each axis");

/* One operand or result, as place knows it before it decides. States are weft_spec_state's: a dim,
 * WEFT_REPLICATED or WEFT_PARTIAL. */
typedef struct weft_holding {
    uint32_t value;
    /* operand: the state it is in */
    weft_axis_states now;
    /* where it goes when it must not be partial (lookahead.h: goal) */
    weft_axis_states finished;
    /* result: the part of the price of finishing it that it pays when it is a partial sum */
    double share[WEFT_MAX_AXES];
    uint8_t combine;   /* of the partial states in `now`          */
    bool is_free;      /* operand: comes in any state, for nothing */
    bool is_generated; /* and because it is made where it is needed */
    double bytes;      /* of the whole tensor                     */
    int readers;       /* operand: how many ops read it; they share the cost of finishing it */
} weft_holding;

typedef struct weft_choice_in {
    weft_plan *plan;
    uint32_t node;
    const weft_site *site;
    bool is_draft;               /* the policy is not asked, and nothing is kept */
    const weft_factors *factors; /* apart, as most of its rows are never written */
    weft_holding in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
} weft_choice_in;

/* The decision: per axis the state every operand needs and every result comes out in. */
typedef struct weft_choice {
    int8_t need[WEFT_MAX_IN][WEFT_MAX_AXES], make[WEFT_MAX_OUT][WEFT_MAX_AXES];
    int8_t factor[WEFT_MAX_AXES]; /* the direction the axis cuts; -1: none */
    uint8_t combine;              /* of partial results */
    double flops;                 /* of one rank */
} weft_choice;

/* weft_choose - the cheapest way, or the one the plan's policy picks, axis by axis in the mesh's
 * order. Local; pure, as the policy and the cost function are.
 *
 * Cost of a way = converting operands + converting results to where they go + work done more than
 * once, all in bytes through one rank's link. Ties: the direction in which the result goes, then
 * partial operands kept partial, then another direction, then everything whole, then a sum of partial
 * operands and others.
 * returns WEFT_USAGE for a policy that picks no way, and for a price that is none
 */
weft_status weft_choose(const weft_choice_in *in, weft_choice *choice, weft_error *error);

/* Whether somebody looks at the decision: a policy, or who asked to have it kept. Local. */
bool weft_is_shown(const weft_choice_in *in);

/* Whether a result of this dtype may come out as a partial sum. In 16 bits every rank's summand would be rounded, and what is
 * combined once more: the error would grow with the ranks. Only where nothing is added up is none made. Local. */
bool weft_may_be_partial(const weft_op *op, weft_dtype dtype);

/* Whether an op is linear in its operand i, so that this may be a partial sum while the others are whole. Where factors may be
 * infinite, what multiplies by another operand is not. Local. */
bool weft_is_linear_in(const weft_plan *plan, const weft_node *node, int i);

/* The name of a direction, which also orders its axes: the result's dim, else an operand's. */
const char *weft_factor_name(const weft_site *site, const weft_factor *factor);

#endif
