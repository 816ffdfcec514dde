/* lookahead.h: what becomes of a value after the op that makes it: where its readers need it, and into which sum it goes. */
#ifndef WEFT_LOOKAHEAD_H
#define WEFT_LOOKAHEAD_H

#include "choose.h"

/* What is believed of the future. */
typedef struct weft_outlook {
    bool readers; /* a value goes where all of its readers ask for it; else where names want it */
    /* what is made goes where it is asked for, for nothing: what is kept in memory stays where it is */
    bool held;
    bool sums; /* a partial result pays its share of the sum it joins; else it is finished alone */
} weft_outlook;

typedef struct weft_lookahead {
    /* Of the graph: */
    struct weft_sites *sites;
    const bool *is_output;           /* [n_tensors] read after the run */
    weft_spec *wanted;               /* [n_tensors] where names want the value */
    weft_axis_states *wanted_states; /* [n_tensors] the same by axis */
    double *bytes;                   /* [n_tensors] of all of it */
    bool *is_generated;              /* [n_tensors] weft_is_generated */
    /* [n_tensors] the result of its only reader, which can take it partial; 0: none */
    uint32_t *joins;
    uint8_t *can_be_partial;            /* [n_tensors] bit a: a sum over axis a may leave it so */
    uint16_t (*addends)[WEFT_MAX_AXES]; /* [n_tensors] that can be partial, itself counted as one */
    /* Of an outlook: */
    int8_t (*asked)[WEFT_MAX_AXES]; /* [n_tensors] the states that its readers need */
    /* [n_tensors] where it goes when it may not stay partial: its placement, or what all of its readers ask for, or
     * where names want it */
    weft_spec *goal;
    weft_axis_states
        *finished; /* [n_tensors] the same by axis; before it is known, what names want */
    /* [n_tensors] per axis, the part of the price of finishing it at its goal that it pays for itself when it comes out
     * partial */
    double (*share)[WEFT_MAX_AXES];
    uint8_t *lasts; /* [n_tensors] bit a: will be partial over axis a, whatever else is added */
} weft_lookahead;

/* weft_lookahead_begin - what of the graph does not depend on an outlook.
 *
 * sites      borrowed
 * is_output  [n_tensors] borrowed
 * readers    [n_tensors] how many operands of ops a value is
 * Arrays live in the plan's arena. Local; pure. */
weft_status weft_lookahead_begin(weft_plan *plan, struct weft_sites *sites, const bool *is_output,
                                 const int *readers, weft_lookahead *ahead, weft_error *error);

/* weft_lookahead_run - read the graph from its end, before anything is decided. Local; pure. */
weft_status weft_lookahead_run(weft_plan *plan, weft_outlook outlook, weft_lookahead *ahead,
                               weft_error *error);
/* weft_ahead_anew - nothing has been placed yet. */
void weft_ahead_anew(const weft_plan *plan, weft_lookahead *ahead);
/* weft_ahead_fingerprint - of all that placing asks of an outlook. Local; pure. */
uint64_t weft_ahead_fingerprint(const weft_plan *plan, const weft_lookahead *ahead);

/* What is known of a value beside where it is: fills all of `holding` but `now`, `combine` and `readers`. */
void weft_lookahead_of(const weft_plan *plan, const weft_lookahead *ahead, uint32_t value,
                       weft_holding *holding);

/* weft_lookahead_made - a value came out as `spec`: the sum that it goes into will be partial. */
void weft_lookahead_made(weft_lookahead *ahead, uint32_t value, const weft_spec *spec);

/* A value that is made in whatever spec is needed, each time, and never converted. */
bool weft_is_generated(const weft_plan *plan, uint32_t value);

/* The same states with the axes of each dim in the layout's order. */
void weft_spec_of_states(const weft_plan *plan, const weft_shape *shape, const int8_t *states,
                         weft_spec *spec);

#endif
