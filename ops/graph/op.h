/* op.h: the ops of the tree, and what only they may use. weft/extend/op.h has the table of an op. */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include "attributes.h"
#include "kernel.h"
#include "weft/extend/op.h"

/* What a kernel's op is in a loop over rows (loop.h): a reduction of the last dims of its operands, or what makes values
 * of its states. */
struct weft_row {
    weft_combine combine; /* of a reduction; what made the state that is finished */
    /* what is reduced is this element op of all its operands, which have equal dims. Then it is always a loop where it
     * reduces the last dims: its kernel adds in another order. NULL: its one operand */
    const weft_op *each;
    const weft_finish *finish; /* [WEFT_DTYPES] of the state; NULL: it is a reduction */
    /* of an element op, exp: where this op, sub, takes off elements both numbers of the finished state (`combine`) of their
     * rows, its results are what the reduction leaves of the elements, resumed (reduce_state.h) */
    const weft_op *resumes;
};

/* A variant in which an op can be written where its operands are split over axes, and what it costs the rank that has most to do.
 * Bytes are through its link. */
struct weft_variant {
    const char *name;
    void (*write)(weft_vjp *vjp,
                  const weft_variant *variant); /* fills out; NULL: the op stays as it is */
    uint32_t axes;                              /* over which it exchanges */
    int n_ranks;                                /* along these */
    weft_convert_kind kind;                     /* what is exchanged, mostly */
    char place[256];       /* where results are made, for `write`; "": anywhere */
    double before, beside; /* bytes while nothing, and while something is computed; results' too */
    double flops, last;    /* of these the last ones, when nothing is left to exchange */
    double copied;         /* bytes that are read and written more than by the op */
    double held;           /* bytes of others' operands that are there at once */
    int n_exchanges;
};
enum { WEFT_MAX_VARIANTS = 5 };

/* All ops, from op_list.inc: weft_op_add, ... and the table of them. */
#define WEFT_OP(name) extern const weft_op weft_op_##name;
#include "../op/op_list.inc"
#undef WEFT_OP
enum { WEFT_MAX_OPS = 128 };
extern const weft_op *const weft_ops[];
extern const int weft_n_ops;
/* weft_op_attributes - op->attributes, or what stands there for an element op; NULL: it has none. */
const weft_attributes *weft_op_attributes(const weft_op *op);

/* weft_emit without looking whether the op is known: for one that is not in the table of ops. */
weft_value weft_emit_own(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                         const void *attributes, size_t bytes);

/* ---- dtypes that are computed with in another (ops/graph/storage.c) --------------------------- */

/* From storage to what it is computed with (weft_dtype_computes), back, and what a number is there after both; NULL: of dtypes
 * that are computed with as they are stored. */
typedef struct weft_storage {
    weft_block widen, narrow;
    const weft_element *round;
    const char *widen_text, *narrow_text; /* their expressions */
} weft_storage;
extern const weft_storage weft_storages[WEFT_DTYPES];

/* How an element op goes from one dtype to another: by a block function that reads and makes these dtypes, each the one that
 * is stored or the one that is computed with. block NULL: a cast that leaves the number as it is. False: it is not defined. */
typedef struct weft_element_way {
    weft_block block;
    weft_dtype reads, makes;
    const char *text; /* the block's expression; NULL: it has none */
} weft_element_way;
bool weft_element_find(const weft_element *element, weft_dtype in, weft_dtype out,
                       weft_element_way *way);

/* ---- helpers for op files (ops/graph/op_help.c) ---------------------------------------------- */

const char *weft_graph_intern(weft_graph *graph, const char *name);

/* Element ops whose result's type is not their operand's: constant, iota, random_*, broadcast. The
 * executor reads the first member only. */
typedef struct weft_generator_attributes {
    weft_element_attributes element;
    weft_type type;
} weft_generator_attributes;
weft_status weft_infer_generator(weft_site *site, weft_error *error);
/* Of an op whose numbers are random, in a way that two numbers describe. */
weft_value weft_emit_random(weft_graph *graph, const weft_op *op, weft_dtype dtype,
                            weft_shape shape, double first, double second);

/* Reductions: what the kernel reads, and the result's dims (the state's: with WEFT_STATE_DIM last).
 */
#define WEFT_STATE_DIM "~"
typedef struct weft_reduced_attributes {
    weft_reduce_attributes reduce;
    weft_shape out;
} weft_reduced_attributes;
weft_status weft_infer_reduce(weft_site *site, weft_error *error);
/* The state's dims without the last: one result, or two. */
weft_status weft_infer_finish(weft_site *site, weft_error *error);
weft_status weft_infer_finish_pair(weft_site *site, weft_error *error);
void weft_factors_reduce(const weft_site *site, weft_factors *factors);

/* Ops of one named dim: fill, check and intern weft_dim_attributes. */
bool weft_graph_dim(weft_graph *graph, const char *op, weft_dim dim,
                    weft_dim_attributes *attributes);
/* The same dim under a name nobody else uses, where one tensor would need it twice. */
weft_dim weft_dim_beside(weft_graph *graph, weft_dim dim);
/* Whether ranks can share so many blocks of dim `dim`, which stand where it does: some axis that splits it divides them. */
bool weft_shares_blocks(const weft_spec *spec, int dim, int64_t blocks, const weft_mesh *mesh);
/* Inputs and variables: named, typed, with a first value. */
weft_value weft_emit_home(weft_graph *graph, const weft_op *op, const char *name, weft_dtype dtype,
                          const weft_shape *shape, weft_initial initial);

/* Those of any kind: slots have an owner, stacks of variables the names of their rows. */
weft_value weft_emit_home_of(weft_graph *graph, const weft_op *op, const char *name, weft_type type,
                             weft_initial initial, uint32_t owner, const char *rows);

/* How many values a user's list has: 0 when it is no list. */
int weft_values_given(weft_values values);

/* ---- builders for gradients and for other builders (ops/op) ---------------------------------- */

/* x in the dtype that it is computed with. What has no kernel for 16 bits is done on that, and cast back. */
weft_value weft_wide(weft_value x);

/* What a softmax of x, f32 or f64, over dim divides by (ops/op/normalizer.c). Subtract one after the other,
 * (x - maximum) - log_sum, for their sum may have no digits left of log_sum. Gradients take the maximum for a constant: right in
 * (x - maximum), log_sum, and maximum + log_sum, and in what is made of these. */
typedef struct weft_normalizer {
    weft_value maximum, log_sum;
} weft_normalizer;
weft_normalizer weft_normalizer_of(weft_value x, weft_dim dim);

/* The order turned round: -x; of integers what all bits turned round are: the least one has no opposite. */
weft_value weft_opposite(weft_value x);
/* What the op says, or one for each element of its first result. */
double weft_site_flops(const weft_site *site);
/* Whether x is a float; if not, that is the graph's error. */
bool weft_takes_float(weft_value x, const char *builder);
/* Whether the dtype has the number, or a float one near it; if not, that is the graph's error (ops/op/constant.c). What an
 * integer cannot be is never cut to one that it can. */
bool weft_holds(weft_graph *graph, const char *what, weft_dtype dtype, double number);
/* One reduction to some dims of x in any order: weft_sum, weft_max. */
weft_value weft_emit_reduce_to(const weft_op *op, weft_combine combine, weft_shape out,
                               weft_value x);
/* The state of a reduction over one dim. */
weft_value weft_emit_state(const weft_op *op, weft_combine combine, const char *dim, weft_value x);
/* mean and 1 / sqrt(variance + epsilon) over dim: weft_result(.., 0) and (.., 1). */
weft_value weft_norm_stats(weft_value x, weft_dim dim, double epsilon);
/* y, which others made of x: (x - mean) r, or x r without a mean (mean.id 0), with r over some of x's dims one over their deviation;
 * gradients are read off y (ops/op/normalized.c). */
weft_value weft_normalized(weft_value y, weft_value x, weft_value r, weft_value mean);
/* What layers ask for: layer_norm and rms_norm with another epsilon than 1e-5; gelu itself, x Phi(x), which its tanh form is near. */
weft_value weft_layer_norm_by(weft_value x, weft_value gain, weft_value bias, weft_dim dim,
                              double epsilon);
weft_value weft_rms_norm_by(weft_value x, weft_value gain, weft_dim dim, double epsilon);
weft_value weft_gelu_erf(weft_value x);

#endif
