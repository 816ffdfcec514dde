/* op.h: the description of an op: one weft_op, the table that Weft's own ops are.
 *
 *     static const weft_op softsign = {sizeof softsign, "softsign", 1, .infer = weft_infer_same,
 *                                      .factors = weft_factors_pass, .gradient = gradient, .element = &element};
 *     WEFT_TRY(weft_extend_op(&softsign, error));                       once in a process, before the first use
 *     weft_value y = weft_emit_element(&softsign, &x, 1, 0.0, 0.0);     what its builder does
 *
 * Everything an op says it says about a *site*: one application, seen as the types of its operands and results and its
 * attributes, without the graph around it. docs/extending.md shows a whole op; docs/adding-an-op.md explains every field.
 *
 * All Local. Sites, factors and vjps are made by Weft and handed to an op's functions: they grow at their ends from version
 * to version. Names inside them belong to the graph. Errors in an op's functions are sentences without the op's name, which
 * is put before them.
 */
#ifndef WEFT_EXTEND_OP_H
#define WEFT_EXTEND_OP_H

#include <stdio.h>

#include "weft/extend/kernel.h"
#include "weft/graph.h"

WEFT_BEGIN

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
    /* The part of operand i that goes with a block of factor f; lead 0: its own block. Then the factor's length is
     * the lead, the size of the dim that results, and operands without a window, have along it (weft_factor_show) */
    weft_window window[WEFT_MAX_FACTORS][WEFT_MAX_IN];
} weft_factors;

/* Arguments and results of a gradient rule. */
typedef struct weft_vjp {
    const weft_site *site;
    weft_graph *graph;
    weft_value in[WEFT_MAX_IN], out[WEFT_MAX_OUT];
    weft_value dout[WEFT_MAX_OUT]; /* id 0: this result does not matter */
    bool wanted[WEFT_MAX_IN];      /* whether din[i] is asked for       */
    /* to fill, with in[i]'s dims in in[i]'s order; id 0: no gradient */
    weft_value din[WEFT_MAX_IN];
} weft_vjp;

/* ---- attributes: what an op must know beside its operands ------------------------------------ */

/* The type of a field of attributes. The kind follows from its C type. */
typedef struct weft_field_kind {
    size_t bytes;
    bool (*take)(weft_graph *graph, void *to,
                 const void *from); /* `to` is zeroed; false: no memory */
    void (*print)(const void *field, FILE *file);
} weft_field_kind;
WEFT_API extern const weft_field_kind weft_field_name;
WEFT_API extern const weft_field_kind weft_field_number;
WEFT_API extern const weft_field_kind weft_field_bool;
WEFT_API extern const weft_field_kind weft_field_int;
WEFT_API extern const weft_field_kind weft_field_unsigned;
WEFT_API extern const weft_field_kind weft_field_int64;
WEFT_API extern const weft_field_kind weft_field_shape;
WEFT_API extern const weft_field_kind weft_field_initial;

typedef struct weft_field {
    /* as C writes it: "slice.begin"; printed without what stands before the last point */
    const char *name;
    size_t offset;
    const weft_field_kind *kind;
} weft_field;

/* A struct of attributes is described field by field:
 *
 *     typedef struct clamp_attributes { double low, high; } clamp_attributes;
 *     static const weft_field fields[] = {WEFT_FIELD(clamp_attributes, low), WEFT_FIELD(clamp_attributes, high)};
 *     static const weft_attributes described = WEFT_ATTRIBUTES(clamp_attributes, fields);
 *
 * A field that is not named here does not exist: weft_emit takes the named ones over into zeroed memory, with names
 * interned, and leaves all else zero. So equal attributes are equal bytes, and what a kernel can see is what
 * the graph prints and the ranks compare. C11: enumerations are ints or unsigned ints to a compiler. */
#define WEFT_FIELD(type, member)                                                                   \
    {                                                                                              \
#member, offsetof(type, member),                                                              \
     _Generic(((type *)0)->member,                                                                 \
         const char *: &weft_field_name,                                                           \
         double: &weft_field_number,                                                               \
         bool: &weft_field_bool,                                                                   \
         int: &weft_field_int,                                                                     \
         unsigned: &weft_field_unsigned,                                                           \
         int64_t: &weft_field_int64,                                                               \
         weft_shape: &weft_field_shape,                                                            \
         weft_initial: &weft_field_initial)    \
    }

typedef struct weft_attributes {
    size_t bytes;
    int n_fields;
    const weft_field *fields; /* [n_fields], in the struct's order */
} weft_attributes;
#define WEFT_ATTRIBUTES(type, fields)                                                              \
    {                                                                                              \
        sizeof(type), (int)(sizeof fields / sizeof fields[0]), fields                              \
    }

/* Of structs that several ops share: weft_dim_attributes, weft_number_attributes, weft_element_attributes. */
WEFT_API extern const weft_attributes weft_attributes_dim;
WEFT_API extern const weft_attributes weft_attributes_number;
WEFT_API extern const weft_attributes weft_attributes_element;

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct weft_row weft_row;         /* opaque */
typedef struct weft_variant weft_variant; /* op.h of ops/graph */

struct weft_op {
    size_t size; /* sizeof(weft_op), as its author's compiler saw it; Weft's own leave it 0 */
    const char *name;
    /* of what it computes: ranks whose versions differ are refused; Weft's own: 0 */
    uint32_t version;
    /* The fields of its attributes. NULL: it has none; for an element op: weft_element_attributes. */
    const weft_attributes *attributes;
    /* Fill n_out and out[] from in[], n_in and the attributes; or say in one sentence why not
     * (without "op at file:line: ", which is put before it). */
    weft_status (*infer)(weft_site *site, weft_error *error);
    /* Fill factors, which are empty: by weft_factors_by_name and other helpers, or from n_factors = 0 by
     * weft_factor_new. */
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
    /* assign, group: the result is a token that names an update and has no elements; who takes such operands. Of Weft's own
     * ops alone */
    bool makes_token, takes_tokens;
    const weft_element *element; /* element by element; then it has no kernel */
    /* For an element op without operands: whether the result is all zeros, which are a partial sum of zero as they
     * are. NULL: it is not */
    bool (*is_zero)(const weft_site *site);
    /* what it is in a loop over rows, beside its kernel; NULL: no part of one. Of Weft's own ops alone */
    const weft_row *row;
    /* An element op, add: what is done by it to the op's one result and to another value can be done by the op's kernel,
     * which begins with that value and writes over it (weft_call.accumulates). NULL: nothing. Of Weft's own ops alone */
    const weft_op *accumulates;
    /* Nothing is added up: an element of a result comes of one element at most of the operands that may be partial.
     * So where one rank alone has something, the result's partial sums are exact in any dtype. An op without it has
     * partial sums of 16 bits nowhere: those would be rounded on every rank */
    bool selects;
    /* The same elements in another dtype: they lie where operand 0 does, whatever the names of the result want, as one that
     * needed no other dtype would. So a value that is rounded goes to where its readers need it as it would unrounded */
    bool recodes;
    /* Of scans (weft/scan.h): it is in no body, wherever it is made; it reads values of bodies from outside; it is no update,
     * though it makes a token. Of Weft's own ops alone */
    bool is_outside, reads_bodies, carries_on;
    /* Whether what expand makes takes the op's place here, though it has a kernel: where operands lie so that simpler ops send
     * less than the kernel would be sent. in [n_in]: where names want them, on the mesh. NULL: nowhere. Of Weft's own ops alone */
    bool (*is_apart)(const weft_site *site, const weft_spec *in, const weft_mesh *mesh);
    /* The variants in which it can be written where its operands are split so, with what each costs: at most WEFT_MAX_VARIANTS; the
     * first is the op itself. The compiler takes the cheapest. Returns how many; 0: there is nothing to choose. placed: bit i:
     * where operand i is the program has said itself. Of Weft's own ops alone */
    int (*variants)(const weft_site *site, const weft_spec *in, uint32_t placed,
                    const weft_mesh *mesh, weft_variant *variants);
};

/* ---- building nodes -------------------------------------------------------------------------- */

/* weft_emit - append one application of `op`; returns its first result (the others have the next
 * ids). An op from outside must have been registered.
 *
 * graph       NULL: the operands'
 * in          [n_in] at most WEFT_MAX_IN; invalid ones are the graph's error
 * attributes  the struct that op->attributes describes, of `bytes`; NULL and 0 for an op that has none. Copied field by
 *             field, names interned.
 */
WEFT_API weft_value weft_emit(weft_graph *graph, const weft_op *op, const weft_value *in, int n_in,
                              const void *attributes, size_t bytes);
/* weft_emit_element - of an element op, with two numbers that its expression sees. `graph` is the operands'. */
WEFT_API weft_value weft_emit_element(const weft_op *op, const weft_value *in, int n_in, double n0,
                                      double n1);
/* weft_emit_dim - for an op of one named dim, with weft_dim_attributes. */
WEFT_API weft_value weft_emit_dim(const weft_op *op, const weft_value *in, int n_in, weft_dim dim);
/* weft_result - result `index` of the node whose first result is `first`; the invalid value if it has not so many. */
WEFT_API weft_value weft_result(weft_value first, int index);
/* weft_no_value - what a builder returns that failed: id 0. */
WEFT_API weft_value weft_no_value(weft_graph *graph);
/* weft_graph_fail - record the first error of a builder that emits nothing; returns the invalid value. */
WEFT_API weft_value weft_graph_fail(weft_graph *graph, const char *format, ...) WEFT_FORMAT(2, 3);
/* weft_graph_status - of weft_graph_error. */
WEFT_API weft_status weft_graph_status(const weft_graph *graph);
/* weft_graph_next_random - a fresh Philox stream of the graph, for weft_element_attributes.random; 0 without a graph. */
WEFT_API uint32_t weft_graph_next_random(weft_graph *graph);
/* weft_graph_shape - a user's shape checked and interned, as attributes hold it (unused bytes zero); false: the
 * graph's error, which begins with `op`. */
WEFT_API bool weft_graph_shape(weft_graph *graph, const char *op, const weft_shape *from,
                               weft_shape *to);

/* weft_state_dim - the dim of a state of `combine`, last in the result of an op whose states have more than one number: no
 * layout can name it, so nothing splits it. A builder puts it into its attributes. Without a graph: no name. */
WEFT_API weft_dim weft_state_dim(weft_graph *graph, weft_combine combine);

/* ---- for infer ------------------------------------------------------------------------------- */

/* Result 0 has operand 0's type / the union of all operands' dims (broadcast by name) and operand 0's dtype / the same
 * with an i32 result (comparisons). They check that dims of one name have one size, and that an element op has a block
 * function for the dtypes. */
WEFT_API weft_status weft_infer_same(weft_site *site, weft_error *error);
WEFT_API weft_status weft_infer_broadcast(weft_site *site, weft_error *error);
WEFT_API weft_status weft_infer_compare(weft_site *site, weft_error *error);
/* The dims of a broadcast by name alone. */
WEFT_API weft_status weft_broadcast_shape(const weft_site *site, weft_shape *shape,
                                          weft_error *error);

/* Dims of one name have one size in all operands / all operands have one dtype / an operand is float / i32 / has dim
 * `dim`, of `size` (-1: any), else the nearest name / what a user gave as a dtype is one. */
WEFT_API weft_status weft_check_dims(const weft_site *site, weft_error *error);
WEFT_API weft_status weft_check_same_dtype(const weft_site *site, weft_error *error);
WEFT_API weft_status weft_check_float(const weft_site *site, int operand, weft_error *error);
WEFT_API weft_status weft_check_ids(const weft_site *site, int operand, weft_error *error);
WEFT_API weft_status weft_check_dim(const weft_site *site, int operand, const char *dim,
                                    int64_t size, weft_error *error);
WEFT_API weft_status weft_check_dtype(weft_dtype dtype, weft_error *error);
/* An operand's name, or "the first operand"; "no operand" for none. */
WEFT_API const char *weft_site_name(const weft_site *site, int operand);

/* ---- for factors ----------------------------------------------------------------------------- */

/* One per dim name, matching by name in all operands and results; `combine` for names that a result lacks. The plain case
 * of almost every op. */
WEFT_API void weft_factors_by_name(const weft_site *site, weft_combine combine,
                                   weft_factors *factors);
/* Element ops: by name, nothing reduced. */
WEFT_API void weft_factors_pass(const weft_site *site, weft_factors *factors);
/* One per dim of the one operand, which is the result's at the same place, whatever it is called there; `dim` of the operand is
 * seen through a window (weft_factor_show); both NULL: none is. */
WEFT_API void weft_factors_by_place(const weft_site *site, const char *dim,
                                    const weft_window *window, weft_factors *factors);
/* Take the direction of dim `name` out again: it must be whole. */
WEFT_API void weft_factors_whole(const weft_site *site, const char *name, weft_factors *factors);
/* A factor that runs through nothing yet, for those built by hand; NULL when there are WEFT_MAX_FACTORS. */
WEFT_API weft_factor *weft_factor_new(weft_factors *factors, weft_combine combine);

/* weft_factor_show - the last factor's operand `operand`, which has the direction, is read through a window: when the
 * work is cut, a rank gets the elements that go with its block of the lead. One that shows just that block is
 * none. */
WEFT_API void weft_factor_show(const weft_site *site, weft_factors *factors, int operand,
                               const weft_window *window);

/* ---- for gradients and builders -------------------------------------------------------------- */

/* weft_sum_to - x summed over the dims that `like` lacks, in like's dim order. */
WEFT_API weft_value weft_sum_to(weft_value x, weft_value like);
/* Elements of a shape as a number that does not overflow, for flops. */
WEFT_API double weft_count_of(const weft_shape *shape);
WEFT_API weft_shape weft_shape_without(const weft_shape *shape, const char *name);
/* The same names, in any order / in the same order. */
WEFT_API bool weft_shape_same_dims(const weft_shape *a, const weft_shape *b);
WEFT_API bool weft_shape_same_order(const weft_shape *a, const weft_shape *b);

/* ---- from outside ---------------------------------------------------------------------------- */

/* weft_extend_op - make an op known: from then on weft_emit takes it.
 *
 * Any thread, any time before its first use; for the rest of the process. Every process of a job registers the same
 * ops: name, version and attributes are compared before the first run, and a process that lacks one fails when it
 * builds its graph.
 * op      its address is how weft_emit knows it: the struct stays where it is, unchanged. It is copied up to op->size: what
 *         a newer Weft knows more of is 0, and what this one does not know must be.
 * refused a name that is none or that an op has already; without size, infer or factors; `expands` without `expand`;
 *         `makes_token` or `takes_tokens`; more than WEFT_MAX_OUTSIDE_OPS
 */
enum { WEFT_MAX_OUTSIDE_OPS = 256 };
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_op(const weft_op *op, weft_error *error);

/* weft_extend_kernel - one more kernel for an op, Weft's own or from outside. Programs compiled from then on choose among
 * the more. Any thread, any time; for the rest of the process. Priorities above 0 come before Weft's own.
 *
 * kernel  copied, up to kernel->size, as above
 * refused an op that there is not, or one that is done element by element or expands; no name, launch, dtype or device;
 *         release without prepare; one that could not be told from another of the op (device and name the same) or chosen
 *         between (device, a dtype and priority the same)
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_kernel(const char *op, const weft_kernel *kernel,
                                                        weft_error *error);

/* weft_extend_loops - what runs loops of element ops on one more kind of device. Any thread, before the first program is
 * compiled for that device; for the rest of the process.
 *
 * driver  copied, up to driver->size, as above
 * refused a device that there is not, or on which something runs loops already; no bind or run
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_loops(const weft_loop_driver *driver,
                                                       weft_error *error);

/* Element op files: WEFT_ELEMENT_1(x < 0 ? 0 : x) defines block functions and their table
 * `element`; see element.h. */

WEFT_END

#endif
