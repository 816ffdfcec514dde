/* ir.h: the graph itself: nodes and values by 32-bit id. For ops/graph, ops/compile and autodiff
 * only. */
#ifndef WEFT_IR_H
#define WEFT_IR_H

#include "op.h"
#include "weft/arena.h"

/* The call of the program that asked for a node, or broke it. */
typedef struct weft_origin {
    const char *builder, *file; /* "layer_norm", "mlp.c" (no folder); NULL until weft_at */
    int line;
} weft_origin;

typedef struct weft_node {
    const weft_op *op;
    const uint32_t *in; /* value ids [n_in] */
    uint32_t out;       /* first result; the others follow */
    uint8_t n_in, n_out;
    uint8_t phase; /* for reports, for the order, and for ZeRO-3 (gather again) */
    const void *attributes;
    uint32_t attribute_bytes;
    uint32_t scan; /* of graph->scans, whose body it is in; 0: none */
    /* On the way back through a part that is computed again (weft_recompute_part): that visit's number. Nodes of other numbers are not
     * equal, whatever they compute. 0: on no such way */
    uint32_t again;
    /* weft_gradients has asked for it and been given it: a saved program needs no rule of its own then */
    bool has_gradient;
    bool repeats; /* it computes again what a node of the part has computed */
    /* [n_draws] of random numbers in bodies that stay (ops/compile/unroll.c): the scans in each trip of which they are others */
    uint32_t n_draws;
    const struct weft_draw *draws;
    weft_origin origin;
} weft_node;

/* A scan by whose trips random numbers differ. Their stream is that of the node, with the marks of all trips in it. */
typedef struct weft_draw {
    uint32_t scan;
    uint32_t level;   /* how many scans are between it and where the stream was drawn */
    bool is_reversed; /* it goes back through the trips of the scan that the stream was drawn in */
    /* a scan over a dim: the trip is where in the whole the elements are, and marks nothing */
    bool is_over;
} weft_draw;

typedef struct weft_tensor { /* a value, seen from inside */
    uint32_t node;
    weft_type type;
    const char *name;      /* NULL: none */
    const char *placement; /* weft_place text; NULL: by the rules */
    weft_origin placed_by; /* that call */
    uint32_t place_as;     /* weft_place_as; 0: none */
    uint32_t frozen; /* the value that stands for it in a frozen program (ops/saved); 0: it stays */
} weft_tensor;

/* Attributes of the op `variable` (and of `input`, of which only name counts). */
typedef struct weft_variable_attributes {
    const char *name;
    const char *rows; /* of several along its first dim: their names; NULL: it stands for itself */
    weft_initial initial;
    uint32_t owner; /* value id of the variable this is a slot of; 0: a parameter */
    weft_type type;
} weft_variable_attributes;

/* Of the ops scan_*, all of which belong to a scan; trip has no dim, carry, next and last only the scan, guard that and ends. */
typedef struct weft_scan_attributes {
    int64_t scan;
    bool ends;               /* guard: where it is 0, no trip comes after */
    bool is_reversed;        /* trip, each, stack: counted from the last trip to the first */
    weft_dim_attributes dim; /* each, stack */
} weft_scan_attributes;

/* A part of the graph that is done many times (weft/scan.h). The nodes of its body say so of themselves (weft_node.scan): they
 * need not be neighbours, since gradients stack what a body in a body has made, long after its end. The first is the trip. */
typedef struct weft_scan {
    uint32_t parent; /* the scan whose body it is in; 0: none */
    uint32_t trip;   /* value: the number of the trip */
    int64_t trips;
    uint32_t mirrors; /* the scan that this one goes through backwards, for gradients; 0: none */
    /* the scan whose trips this one makes again, with the same numbers; 0: none */
    uint32_t repeats;
    uint32_t random_begin, random_end; /* streams (begin, end] were drawn in its body */
    /* It goes over this dim, of which trip t has the elements t, t + trips, ... (weft_scan_begin_over); name NULL: over none */
    weft_dim_attributes over;
} weft_scan;

/* A part of the graph whose values gradients compute again (weft_recompute_begin): its nodes are neighbours. */
typedef struct weft_recompute_part {
    uint32_t parent;     /* the part that it is in; 0: none */
    uint32_t scan;       /* in whose body it begins and ends; 0: none */
    uint32_t begin, end; /* nodes; the first is its beginning's own. end UINT32_MAX: it is open */
} weft_recompute_part;

/* How far a graph had been built. */
typedef struct weft_graph_point {
    uint32_t n_nodes, n_random, n_scans, scan, n_parts, part;
} weft_graph_point;

/* optim's dynamic loss scaling: values of scalars, by id; scale 0: there is none. */
typedef struct weft_loss_scaling {
    uint32_t scale, good, updates; /* variables; good: updates since the scale was changed */
    uint32_t step;                 /* the number of the update that this run makes */
    int64_t growth;
    bool is_used;       /* by an optimizer */
    uint32_t is_finite; /* i32, of whether it updates anything in this run; 0: there is none yet */
} weft_loss_scaling;

struct weft_graph {
    weft_arena *arena;
    uint64_t seed;
    weft_error error;
    bool error_has_origin; /* the sentence already says where */
    weft_node *nodes;      /* [n_nodes], node 0 is not used */
    uint32_t n_nodes, cap_nodes;
    weft_tensor *tensors; /* [n_tensors], value 0 is the invalid one */
    uint32_t n_tensors, cap_tensors;
    uint32_t n_random;
    weft_scan *scans; /* [n_scans], 0 is not used */
    uint32_t n_scans, cap_scans;
    uint32_t scan;              /* the innermost that is open; 0: none */
    weft_recompute_part *parts; /* [n_parts], 0 is not used; in the order of their beginnings */
    uint32_t n_parts, cap_parts;
    uint32_t part;  /* the innermost that is open; 0: none */
    uint32_t again; /* of nodes now being built */
    /* [homes_mask + 1] nodes of inputs and variables, by name; 0: free; NULL: none yet */
    uint32_t *homes;
    uint32_t n_homes, homes_mask;
    weft_graph_point built; /* nodes below this have their origin: their builders are over */
    uint32_t marked; /* the value that weft_place marked and weft_at has not come to; 0: none */
    /* by a builder that is there for it, which weft_built has not come to; 0: none */
    uint32_t handed_back;
    weft_phase phase;   /* of nodes now being built */
    int n_users;        /* programs of this graph that are there still */
    uint32_t place_as;  /* given to results whose dims equal that variable's; 0: none */
    uint32_t assign_if; /* i32: what is assigned now only is where it is not 0; 0: always */
    weft_loss_scaling loss_scale;
};

/* Ops the compiler itself must know, as every IR does: where values come from and where they stay.
 */
extern const weft_op weft_op_input, weft_op_variable, weft_op_assign, weft_op_group;
/* What the compiler makes of a value that is another one (same.h), where it must. */
extern const weft_op weft_op_copy;
/* A builder that is there to hand a value back returns it through this: weft_built leaves it as it is. */
weft_value weft_hand_back(weft_value value);

/* In a frozen program `fixed`, an earlier value of the same type, stands for `value`. */
void weft_stands_for(weft_value fixed, weft_value value);

/* ---- scans (scan.c) --------------------------------------------------------------------------- */

/* Whether what is in the body of `inner` is in that of `outer` too; 0 is no body, and holds all. */
bool weft_scan_holds(const weft_graph *graph, uint32_t outer, uint32_t inner);
/* Whether a node of `op`, made now, may read the value; if not, that is the graph's error. */
bool weft_scan_sees(weft_graph *graph, const weft_op *op, uint32_t value);
/* A scan in the body that is open now; 0: no memory, which is the graph's error. Its trip is the caller's to make. */
uint32_t weft_scan_open(weft_graph *graph, int64_t trips);
/* The innermost scan in whose body a random stream was drawn; 0: none. Its numbers are others in each of its trips, and the
 * same where a scan that mirrors it makes that trip. */
uint32_t weft_scan_of_stream(const weft_graph *graph, uint32_t stream);
/* The scan over a dim that `scan` is, or whose body it is in; 0: none. There random numbers are those of the whole dim. */
uint32_t weft_scan_over(const weft_graph *graph, uint32_t scan);
/* What tells one trip's random numbers from another's: it is xor-ed into a stream, for each scan around it. */
uint32_t weft_scan_mark(uint32_t level, int64_t trip);
/* What builders of scan_* share: a node with as much of the attributes as its op has; one of a dim, which may have any name; the
 * factors of those, which are never cut along that dim. */
weft_value weft_scan_emit(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                          weft_scan_attributes attributes);
weft_value weft_scan_emit_dim(const weft_op *op, weft_value x, weft_dim dim,
                              weft_scan_attributes attributes);
void weft_scan_factors(const weft_site *site, weft_factors *factors);
/* Builders of autodiff, for any scan, of which some count backwards. `dim`: of any name. */
weft_value weft_scan_trip_of(weft_graph *graph, uint32_t scan, bool is_reversed);
weft_value weft_scan_each_of(weft_value x, uint32_t scan, weft_dim dim, bool is_reversed);
weft_value weft_scan_stack_of(weft_value x, uint32_t scan, weft_dim dim, bool is_reversed);
static inline const weft_scan_attributes *weft_scan_of(const weft_node *node)
{
    return node->attributes;
}
static inline const weft_scan_attributes *weft_scan_of_site(const weft_site *site)
{
    return site->attributes;
}
/* What a carried value is in the next trip; 0: nobody has said it. */
uint32_t weft_scan_next_of(const weft_graph *graph, uint32_t carry);
/* The node of the open body that says which of its trips are made (scan_guard.c); and the one of a scan; 0: all are. */
weft_value weft_scan_guard(weft_value condition, bool ends);
uint32_t weft_scan_guard_of(const weft_graph *graph, uint32_t scan);
/* Whether an op is one of those that belong to a scan (scan_*). */
bool weft_is_of_scan(const weft_op *op);
/* Whether what is built now stands right behind a scan, in the body around it; if not, that is the error of `call`. */
bool weft_scan_is_outside(weft_graph *graph, const char *call, uint32_t scan);

/* ---- parts that are computed again (part.c) --------------------------------------------------- */

/* A part of the open body begins with the node that comes next; false: no memory, which is the graph's error. */
bool weft_part_open(weft_graph *graph);
/* The innermost part that a node is in, with no scan between the two; 0: none. */
uint32_t weft_part_of(const weft_graph *graph, uint32_t node);
/* The same of the node with which a scan begins, as one of the body around. */
uint32_t weft_part_of_scan(const weft_graph *graph, uint32_t scan);
/* "recompute_begin at mlp.c:41" */
int weft_part_print(const weft_graph *graph, uint32_t part, char *text, size_t bytes);
/* Whether no part is open but those around the body of `scan`; if one is, that is the error of `call`. */
bool weft_part_is_closed(weft_graph *graph, const char *call, uint32_t scan);

/* Whether it is one of its graph's values: not the invalid one, and none past the end. */
static inline bool weft_is_value(weft_value value)
{
    return value.graph != NULL && value.id != 0 && value.id < value.graph->n_tensors;
}
/* The variable of this name; id 0: there is none, and no error. */
weft_value weft_variable_called(weft_graph *graph, const char *name);
/* The slot of a variable called `name` ("m"); NULL: there is none. */
const weft_node *weft_slot_called(weft_value variable, const char *name);

/* Whether a variable stands for several, along its first dim. */
bool weft_has_rows(weft_value variable);

static inline const weft_node *weft_node_of(const weft_graph *graph, uint32_t value)
{
    return &graph->nodes[graph->tensors[value].node];
}
/* The variable that a slot belongs to; 0: it is no slot. */
static inline uint32_t weft_owner_of(const weft_graph *graph, uint32_t value)
{
    const weft_node *node = weft_node_of(graph, value);
    return node->op != &weft_op_variable
               ? 0
               : ((const weft_variable_attributes *)node->attributes)->owner;
}
void weft_site_of(const weft_graph *graph, const weft_node *node, weft_site *site);

/* A program looks its values up in the graph it was compiled from: until release, that refuses to be destroyed. */
void weft_graph_keep(const weft_graph *graph);
void weft_graph_release(const weft_graph *graph);

/* "layer_norm at mlp.c:41": the builder that the program called, which may have made nodes of other ops. */
int weft_origin_print(const weft_node *node, char *text, size_t bytes);
/* "%12", as values are called in a graph that is printed. Plans are printed to be compared, every one: without a format to
 * be read, as is a number by itself. */
void weft_id_print(uint32_t id, FILE *file);
void weft_decimal_print(int64_t number, FILE *file);
/* The first error's sentence begins with this from now on, in place of the op's name; nothing where it has one. */
void weft_graph_error_at(weft_graph *graph, const weft_origin *origin);
/* The graph as text, a node a line, with everything that says what it computes; with_origins: and where in the program
 * each node was asked for. For weft_compile_options.dump and for the digest. */
void weft_graph_print(const weft_graph *graph, bool with_origins, FILE *file);

/* clear.c: go back to an earlier point: what was built since is forgotten. For builders that make many nodes, when they
 * fail. */
weft_graph_point weft_graph_here(const weft_graph *graph);
void weft_graph_rewind(weft_graph *graph, weft_graph_point to);

/* find.c: the one value called `name` among those that `has` says yes to (NULL: all); else the invalid value and a
 * sentence with the nearest name, which begins with `call`. */
typedef struct weft_search {
    const char *call, *who, *verb; /* "weft_find", "this program", "keeps" */
    const char *if_left_out;       /* what to do when the name is there and `has` says no */
    weft_graph *graph;
    bool (*has)(const void *context, weft_value value);
    const void *context;
} weft_search;
weft_value weft_search_name(const weft_search *search, const char *name, weft_error *error);

enum { WEFT_MOST_VALUES = 1 << 20 }; /* of a list */
/* find.c: whether all of a user's list are values of this graph; if not, that is its error, which begins with `call`. */
bool weft_graph_takes(weft_graph *graph, const char *call, const char *list, weft_values values);

/* copy.c: an empty graph that takes its names from the arena of `like`. */
weft_graph *weft_graph_like(const weft_graph *like);
void weft_graph_like_destroy(weft_graph **graph);

/* A copy of a node into another graph (for passes): operands already translated. Returns its first
 * result id there. */
uint32_t weft_node_copy(weft_graph *to, const weft_graph *from, const weft_node *node,
                        const uint32_t *in);

#endif
