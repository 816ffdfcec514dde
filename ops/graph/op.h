/* op.h: the op table: what an op has to say about itself. One op, one file in ops/op, one weft_op.
 *
 * Everything an op says it says about a *site*: one application, seen as the types of its operands
 * and results and its attributes, without the graph around it.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include "attributes.h"
#include "kernel.h"
#include "weft/graph.h"

typedef struct weft_op weft_op;

typedef struct weft_type {
    weft_dtype dtype;
    /* dim names are interned in the graph's arena: equal names are equal pointers */
    weft_shape shape;
} weft_type;

typedef struct weft_site {
    const weft_op *op;
    const void *attributes;
    int n_in, n_out;
    weft_type in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
    const char *in_name[WEFT_MAX_IN]; /* for sentences; NULL: none */
} weft_site;

/* One way in which the work of an op can be cut: a direction that runs through its operands and
 * results. in[i], out[i]: which dim of operand i or result i it is; -1: it has none along it. Cut
 * along it, an operand that has the direction is split there, one that has none is whole on every
 * rank; a result that has it comes out split, a result that has none comes out partial with
 * `combine`. A direction that no factor names cannot be cut: those dims are whole. */
enum { WEFT_MAX_FACTORS = 2 * WEFT_MAX_DIMS };
typedef struct weft_factor {
    int8_t in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
    uint8_t combine; /* weft_combine for results without it; WEFT_NOT_PARTIAL: every result must
                        have it */
    bool even;       /* only axes whose product divides the sizes (blocks of merged dims line up) */
} weft_factor;
typedef struct weft_factors {
    int n_factors;
    weft_factor factors[WEFT_MAX_FACTORS];
} weft_factors;

/* What a gradient rule gets and gives. */
typedef struct weft_vjp {
    const weft_site *site;
    weft_graph *graph;
    weft_value in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
    weft_value dout[WEFT_MAX_OUT]; /* id 0: this result does not matter */
    bool wanted[WEFT_MAX_IN];      /* whether din[i] is asked for       */
    /* to fill, with in[i]'s dims in in[i]'s order; id 0: no gradient */
    weft_value din[WEFT_MAX_IN];
} weft_vjp;

struct weft_op {
    const char *name;
    /* What its attributes are made of. NULL: it has none; of an element op: weft_element_attributes. */
    const weft_attributes *attributes;
    /* Fill n_out and out[] from in[], n_in and the attributes; or say in one sentence why not
     * (without "op at file:line: ", which is put before it). */
    weft_status (*infer)(weft_site *site, weft_error *error);
    void (*factors)(const weft_site *site, weft_factors *factors);
    /* Operands that may be partial sums: `linear`: any one of them, the others whole on that axis;
     * `additive`: all of them together. The results are then partial sums too. Bit i: operand i. */
    uint8_t linear, additive;
    void (*gradient)(weft_vjp *vjp); /* NULL: no gradient flows (comparisons, indices)   */
    /* Other values made of simpler ops that equal this site's results: in, out as in weft_vjp
     * (fills out). Used in place of a missing gradient, and where `expands` of the op itself. */
    void (*expand)(weft_vjp *vjp);
    /* The compiler puts what expand made in its place, on every device, so that graphs, digests and random streams are
     * the same on all: it has no kernel. */
    bool expands;
    double (*flops)(const weft_site *site); /* of the whole site, with global sizes, or of a local
                                               one; NULL: one per result element */
    /* assign, group: the result is a token that names an update and has no elements; who takes such operands */
    bool makes_token, takes_tokens;
    const weft_element *element; /* element by element; then it has no kernel */
};

/* All ops, from op_list.inc: weft_op_add, ... and the table of them. */
#define WEFT_OP(name) extern const weft_op weft_op_##name;
#include "../op/op_list.inc"
#undef WEFT_OP
enum { WEFT_MAX_OPS = 128 };
extern const weft_op *const weft_ops[];
extern const int weft_n_ops;
/* weft_op_attributes - op->attributes, or what stands there for an element op; NULL: it has none. */
const weft_attributes *weft_op_attributes(const weft_op *op);

/* ---- building nodes (ops/graph) -------------------------------------------------------------- */

/* weft_emit - append one application of `op`; returns its first result (the others have the next
 * ids).
 *
 * attributes  the struct that op->attributes describes, of `bytes`; NULL and 0 for an op that has none. Copied field by
 *             field, names interned (attributes.h).
 */
weft_value weft_emit(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                     const void *attributes, size_t bytes);
const char *weft_graph_intern(weft_graph *graph, const char *name);
weft_value weft_no_value(weft_graph *graph); /* id 0 */
weft_value weft_result(weft_value first,
                       int index); /* result `index` of the node whose first result is `first` */
uint32_t weft_graph_next_random(weft_graph *graph); /* a fresh Philox stream */
weft_status weft_graph_status(const weft_graph *graph);
/* Record the first error of a builder that emits nothing. Returns the invalid value. */
weft_value weft_graph_fail(weft_graph *graph, const char *format, ...) WEFT_FORMAT(2, 3);

/* ---- helpers for op files (ops/graph/op_help.c) ---------------------------------------------- */

/* infer: result 0 has operand 0's type / the union of all operands' dims (broadcast by name) and
 * operand 0's dtype. Both check that dims of one name have one size and that no operand is invalid.
 */
weft_status weft_infer_same(weft_site *site, weft_error *error);
weft_status weft_infer_broadcast(weft_site *site, weft_error *error);
/* The check alone: dims of one name have one size in all operands. */
weft_status weft_check_dims(const weft_site *site, weft_error *error);
/* Dtypes: operands [first, last] all float / all equal. */
weft_status weft_check_float(const weft_site *site, int operand, weft_error *error);
/* What a user gave as a dtype is one. */
weft_status weft_check_dtype(weft_dtype dtype, weft_error *error);
weft_status weft_check_same_dtype(const weft_site *site, weft_error *error);

/* factors: one per dim name, matching by name in all operands and results; `combine` for names that
 * a result lacks. The plain case of almost every op. */
void weft_factors_by_name(const weft_site *site, weft_combine combine, weft_factors *factors);
/* Take the direction of dim `name` out again: it must be whole. */
void weft_factors_whole(const weft_site *site, const char *name, weft_factors *factors);
/* Element ops: by name, nothing reduced. */
void weft_factors_pass(const weft_site *site, weft_factors *factors);

/* More checks: operand has dim `dim`, of `size` (-1: any), else the nearest name / operand is i32.
 */
weft_status weft_check_dim(const weft_site *site, int operand, const char *dim, int64_t size,
                           weft_error *error);
weft_status weft_check_ids(const weft_site *site, int operand, weft_error *error);
const char *weft_site_name(const weft_site *site,
                           int operand); /* its name, or "the first operand" */

/* infer's parts: the dims of a broadcast by name; the same with i32 results (comparisons). */
weft_status weft_broadcast_shape(const weft_site *site, weft_shape *shape, weft_error *error);
weft_status weft_infer_compare(weft_site *site, weft_error *error);

/* Element ops whose result's type is not their operand's: constant, iota, random_*, broadcast. The
 * executor reads the first member only. */
typedef struct weft_generator_attributes {
    weft_element_attributes element;
    weft_type type;
} weft_generator_attributes;
weft_status weft_infer_generator(weft_site *site, weft_error *error);

/* Reductions: what the kernel reads, and the result's dims (the state's: with WEFT_STATE_DIM last).
 */
#define WEFT_STATE_DIM "~"
typedef struct weft_reduced_attributes {
    weft_reduce_attributes reduce;
    weft_shape out;
} weft_reduced_attributes;
weft_status weft_infer_reduce(weft_site *site, weft_error *error);
weft_status weft_infer_finish(weft_site *site,
                              weft_error *error); /* the state's dims without the last */
void weft_factors_reduce(const weft_site *site, weft_factors *factors);

/* A factor that runs through nothing yet, for those built by hand. */
weft_factor *weft_factor_new(weft_factors *factors, weft_combine combine);

/* Emit an element op; `graph` is the operands'. */
weft_value weft_emit_element(const weft_op *op, const weft_value *in, int n_in, double n0,
                             double n1);

/* Ops of one named dim: fill, check and intern weft_dim_attributes; and emit with them. */
bool weft_graph_dim(weft_graph *graph, const char *op, weft_dim dim,
                    weft_dim_attributes *attributes);
weft_value weft_emit_dim(const weft_op *op, const weft_value *in, int n_in, weft_dim dim);
/* The same dim under a name nobody else uses, where one tensor would need it twice. */
weft_dim weft_dim_beside(weft_graph *graph, weft_dim dim);
/* Inputs and variables: named, typed, with a first value. */
weft_value weft_emit_home(weft_graph *graph, const weft_op *op, const char *name, weft_dtype dtype,
                          const weft_shape *shape, weft_initial initial);

/* How many values a user's list has: 0 when it is no list. */
int weft_values_given(weft_values values);
double weft_count_of(const weft_shape *shape);
weft_shape weft_shape_without(const weft_shape *shape, const char *name);
bool weft_shape_same_dims(const weft_shape *a,
                          const weft_shape *b); /* the same names in any order */
bool weft_shape_same_order(const weft_shape *a,
                           const weft_shape *b); /* the same names in the same order */
/* What every shape must be: few enough dims, each once, sizes 1 to 2^40. */
/* A user's shape checked and interned, as attributes hold it (unused bytes zero); false: the
 * graph's error, which begins with `op`. */
bool weft_graph_shape(weft_graph *graph, const char *op, const weft_shape *from, weft_shape *to);

/* ---- builders for gradients and for other builders (ops/op) ---------------------------------- */

/* x summed over the dims that `like` lacks, in like's dim order. */
weft_value weft_sum_to(weft_value x, weft_value like);
/* One reduction to some dims of x in any order: weft_sum, weft_max. */
weft_value weft_emit_reduce_to(const weft_op *op, weft_combine combine, weft_shape out,
                               weft_value x);
/* The state of a reduction over one dim. */
weft_value weft_emit_state(const weft_op *op, weft_combine combine, const char *dim, weft_value x);
/* mean and 1 / sqrt(variance + epsilon) over dim: weft_result(.., 0) and (.., 1). */
weft_value weft_norm_stats(weft_value x, weft_dim dim, double epsilon);
/* zeros like x but with dim `to` for x's dim `from`, which stands in it from `begin` on. */
weft_value weft_unslice(weft_value x, weft_dim from, int64_t begin, weft_dim to);

/* Element op files: WEFT_ELEMENT_1(x < 0 ? 0 : x) defines block functions and their table
 * `element`; see element.h. */

#endif
