/* walk.h: one walk back over nodes, from seeded values to others. */
#ifndef WEFT_WALK_H
#define WEFT_WALK_H

#include "ir.h"

/* Scans that are gone through backwards: what they made in the trips they left, as the scans that mirror them see it. */
typedef struct weft_residuals {
    uint32_t n_values;
    uint32_t *stack; /* [n_values] a value of a body in all trips, outside; 0: it is made anew */
    uint32_t *now;   /* [n_values] in the trip that is gone through; 0: not yet */
} weft_residuals;

/* A part that is computed again, as a walk has come to it (recompute.c). */
typedef struct weft_visit weft_visit;

typedef struct weft_walk {
    weft_graph *graph;
    uint32_t first, end; /* nodes                                          */
    uint32_t n_values;   /* when the walk began: later values are gradients */
    bool *depends;       /* [n_values] on a value that is asked for         */
    uint32_t *gradient;  /* [n_values] value id so far; 0: none             */
    uint32_t *fresh;     /* [n_values] nodes from here on are of that gradient alone */
    uint32_t scan;       /* whose body is gone through, and those around it if it is not mirrored */
    uint32_t mirror;     /* the scan that goes through it; 0: it is the open one */
    /* for rows of a Jacobian, each in a trip of a scan that the program did not open */
    bool is_of_rows;
    weft_residuals *residuals; /* NULL: no scan is gone through             */
    weft_visit *visits; /* [n_parts] NULL: there are no parts, or nodes of none are gone through */
} weft_walk;

enum { WEFT_OF_ROWS = 1 << 8 }; /* a flag of weft_gradients_seeded, for jacobian.c */
void weft_walk_over(weft_walk *w);
/* Who reads a value, where gradients may flow: WEFT_IS_LEFT of what is carried, as the last trip leaves it. */
enum { WEFT_IS_READ = 1, WEFT_IS_LEFT = 2 };
/* From what is read to all that nodes [first, end) read for it, from trip to trip of scans. reaches  [graph->n_tensors] */
void weft_reach_back(const weft_graph *graph, uint32_t first, uint32_t end, uint8_t *reaches);
/* Add a contribution to a value's gradient, in the value's order of dims; nodes from `first` on were made for it alone. */
void weft_contribute(weft_walk *w, uint32_t value, weft_value part, uint32_t first);
static inline bool weft_flows(const weft_op *op) /* whether an op has a gradient by itself */
{
    return op->gradient != NULL || op->expand != NULL;
}

/* scan_gradient.c: through a scan in the body that is gone through: builds the one that mirrors it. */
void weft_back_through_scan(weft_walk *w, uint32_t scan);
/* A value of the body as the mirroring one finds it. */
weft_value weft_walk_sees(weft_walk *w, uint32_t value);

/* recompute.c: room for visits; false: no memory, which is the graph's error. */
bool weft_visits_open(weft_walk *w);
void weft_visits_close(weft_walk *w);
/* The number of the walk's visit to a part, whose nodes are copied when it comes there first; of part 0: 0. */
uint32_t weft_part_again(weft_walk *w, uint32_t part);
/* What the visit has made of a value of the part, or one around; of a scan in it; 0: it is not made again. */
uint32_t weft_part_copy(const weft_walk *w, uint32_t part, uint32_t value);
uint32_t weft_part_scan(const weft_walk *w, uint32_t part, uint32_t scan);
/* A value as the gradients of the nodes of a part find it: made anew, if it is the part's; of part 0: weft_walk_sees. */
weft_value weft_part_sees(weft_walk *w, uint32_t part, uint32_t value);

#endif
