/* flows.h (private): what a graph says of the values between its kernels, whatever the layout: which of them have to be exchanged where
 * kernels are cut so or so, and what can go on meanwhile. flows.c has the argument.
 */
#ifndef WEFT_SEARCH_FLOWS_H
#define WEFT_SEARCH_FLOWS_H

#include "searching.h"

typedef struct flow {
    uint32_t from; /* the result of a kernel */
    double bytes,
        partial_bytes; /* of the smallest value on the way; and as long as it may be partial */
    bool may_be_partial;
} flow;

/* All flows to a value. */
typedef struct arrivals {
    int n;
    flow *list; /* [n] */
} arrivals;

/* What becomes of a kernel's result. */
typedef struct flow_source {
    uint32_t to;  /* the first operand that it flows to; 0: none */
    uint32_t of;  /* it is the gradient of that variable; 0: of none */
    bool is_lost; /* it has more flows than are known */
    double bytes, partial_bytes;
} flow_source;

/* An operand that some result flows to first. */
typedef struct flow_target {
    uint32_t source; /* the last of the results that come to it first; 0: it is none */
    uint32_t reader; /* the first node that reads it */
    /* the first beside which nothing of a chain goes on, if there is one: were it whole, no sum would be finished */
    uint32_t whole;
    int n_readers, n_chained;
    weft_search_toll_kind kind;
} flow_target;

typedef struct search_flows {
    const weft_plan *plan;
    const weft_graph *graph;
    weft_arena *arena;
    bool *computes;       /* [n_nodes] it is a kernel */
    bool *is_kernel;      /* [n_nodes] and one whose cuts its factors say */
    arrivals *arrivals;   /* [n_tensors] */
    flow_source *sources; /* [n_tensors] */
    flow_target *targets; /* [n_tensors] */
    uint32_t *variable;   /* [n_tensors] it is that variable, perhaps cast */
    uint32_t *next;       /* [n_tensors] of a carried value the node that says its next one */
    int *n_readers[WEFT_PHASES], *n_gradients; /* [n_tensors] of variables */
    uint8_t *order;                            /* [n_nodes] WEFT_WORK_* */
    uint64_t *ids;                             /* [n_nodes] of kernels (weft_workload.id) */
    bool *before, *behind;                     /* [n_nodes] of one event */
    double *from, *to; /* [n_nodes] ways from where it begins, and to its end */
} search_flows;

/* Of a whole value; and the node that makes it. */
double weft_flows_bytes(const search_flows *f, uint32_t value);
static inline uint32_t weft_flows_node(const search_flows *f, uint32_t value)
{
    return f->graph->tensors[value].node;
}

/* weft_flows_find - of a plan on one rank; it lives in `arena`, and points into the plan. NULL: no memory. Local; pure. */
search_flows *weft_flows_find(const weft_plan *plan, weft_arena *arena);
/* A part of a step's work, and when it is done (WEFT_WORK_*). */
enum { WEFT_SEARCH_PARTS = 3 };
typedef struct search_part {
    uint8_t order;
    double part;
} search_part;
/* weft_flows_order - a step in parts, which add up to 1; of a kernel one of them is all. Local; pure. */
void weft_flows_order(const search_flows *flows, const weft_step *step,
                      search_part parts[WEFT_SEARCH_PARTS]);
/* weft_flows_tolls - the ways and tolls of a kernel's work, whose terms are known. Local; pure. */
void weft_flows_tolls(const search_flows *flows, const weft_step *step, weft_search_dims *dims,
                      weft_search_work *work);

#endif
