/* fission.h: what leaves the body of a scan (fission.c): what is known of the graph, what is done before, and what behind. */
#ifndef WEFT_FISSION_H
#define WEFT_FISSION_H

#include "regions.h"
#include "rewrite.h"

/* The trips' dim of what is taken out, and whether its elements go from the last trip to the first. */
typedef struct weft_trips {
    weft_dim dim; /* name NULL: not known yet */
    bool is_reversed;
} weft_trips;

/* Whether, and how, a body's value can be made before its scan. */
typedef struct weft_lift {
    bool can;
    weft_trips trips; /* dim.name NULL: it is the same in all of them */
    double bytes;     /* of a trip, that are then kept */
    uint32_t lifted;  /* value of the new graph, with the trips' dim first; 0: not yet */
} weft_lift;

typedef struct weft_fission {
    weft_rewrite rewrite;
    uint32_t *n_readers; /* [n_tensors] live nodes that read it as ops read */
    uint32_t *stack;     /* [n_tensors] a live node that stacks it; 0: none */
    uint32_t *next; /* [n_tensors] of what is carried: the node that says its next value; 0: none */
    weft_lift *lift; /* [n_tensors] of those in bodies */
    bool *is_before; /* [n_nodes] a product that is done before its scan */
    bool *is_behind; /* [n_nodes] a last, or a stack, that is made behind its scan */
    bool *
        is_turned; /* [n_nodes] a product that stays, whose fixed operand is put in order before its scan */
    uint32_t *turned;        /* [n_nodes] that operand, in the new graph */
    double *seen;            /* [n_scans] bytes of a trip that are kept for all anyway */
    double *before, *behind; /* [n_scans] that would be kept for what is done there */
    bool *is_recurrent;      /* [n_scans] a trip depends on the one before, by more than sums */
    bool *is_left;           /* [n_scans] nothing is taken from it */
} weft_fission;

static inline const weft_node *weft_maker_of(const weft_fission *f, uint32_t value)
{
    return weft_node_of(f->rewrite.from, value);
}
static inline bool weft_is_in(const weft_fission *f, uint32_t value, uint32_t scan)
{
    return weft_scan_holds(f->rewrite.from, scan, weft_maker_of(f, value)->scan);
}
double weft_fission_bytes(const weft_fission *f, uint32_t value);
/* The product's operand that is the same in all trips; -1: it is no product, or none is, or both are. */
int weft_fixed_operand(const weft_fission *f, const weft_node *node);
/* Without more memory always. Else where trips depend on each other, a trip's part is no larger than what is spared in each, and
 * all of them, `kept` by now, are not beyond `most` times what the scan keeps anyway. */
bool weft_has_room(weft_fission *f, const weft_node *node, double more, double spared, int most,
                   double *kept);

/* ---- fission_before.c ------------------------------------------------------------------------ */

weft_trips weft_trips_of_node(const weft_node *node);
/* Whether its numbers are others in each trip, whatever its operands are. */
bool weft_is_random(const weft_node *node);
/* The site of a node with the dim more, first in those operands that have it and in the results; false: the op does not do each
 * element of it by itself. */
bool weft_site_with_dim(const weft_fission *f, const weft_node *node, weft_dim dim, const bool *has,
                        weft_site *site);
/* What a trip sees, or has stacked, of a tensor of the new graph, by the name that all go by. */
weft_value weft_whole_of(weft_graph *to, uint32_t value, weft_trips own, weft_trips all);
/* Whether it is the same in all trips, and can be had outside. A value that can be lifted, in the new graph. */
bool weft_is_fixed(const weft_fission *f, uint32_t value, uint32_t scan);
weft_value weft_lift_value(weft_fission *f, uint32_t value, uint32_t scan, weft_trips all);

/* In the order of nodes: can its results be made before the scan? Then, when all are known: is it a product that is? */
void weft_look_whether_it_lifts(weft_fission *f, const weft_node *node);
void weft_look_before(weft_fission *f, const weft_node *node);
/* Of a product that stays: does its fixed operand lie otherwise than a trip reads it? */
void weft_look_at_order(weft_fission *f, const weft_node *node);
/* In the new graph: what is done before a scan, where it begins; and a trip's element of it; and a product of what is in order. */
void weft_make_before(weft_fission *f, uint32_t scan);
weft_value weft_see_before(weft_fission *f, const weft_node *node);
weft_value weft_multiply_turned(weft_fission *f, const weft_node *node);

/* ---- fission_behind.c ------------------------------------------------------------------------ */

/* The summand of a carried sum that nobody else reads; 0: it is none. */
uint32_t weft_summand_of(const weft_fission *f, uint32_t carry);
void weft_look_at_last(weft_fission *f, uint32_t id);
void weft_look_at_stack(weft_fission *f, uint32_t id);
weft_value weft_make_last(weft_fission *f, const weft_node *last);
weft_value weft_make_stack(weft_fission *f, const weft_node *stack);

#endif
