/* plan.h: the plan of a program as data: every step, every tensor in every place it lives, every decision with its
 * prices, every rule that was skipped, and what it will cost.
 *
 *     weft_compile_options options = {.explain = true};                 (a mesh from weft_mesh_plan will do)
 *     WEFT_TRY(weft_compile(mesh, layout, values, &options, &program, error));
 *     for (int s = 0; s < weft_plan_n_steps(program); s++) {
 *         WEFT_TRY(weft_plan_step_at(program, s, 0, &step, error));
 *         printf("%s at %s:%d moves %lld bytes: %s\n", step.op, step.file, step.line, step.wire_bytes, step.reason);
 *     }
 *     WEFT_TRY(weft_plan_cost(program, 0, NULL, &cost, error));
 *
 * Everything is Local and works for any rank of the mesh, here or elsewhere. Memory behind the structs' pointers is
 * borrowed and lives as long as the program. weft_plan_print and weft_plan_json are written from this alone. The
 * structs grow at their ends from version to version.
 */
#ifndef WEFT_RESEARCH_PLAN_H
#define WEFT_RESEARCH_PLAN_H

#include "weft/program.h"
#include "weft/research/policy.h"

WEFT_BEGIN

/* The layout that the program was compiled for. NULL for a program that is NULL. */
WEFT_API const weft_layout *weft_plan_layout(const weft_program *program);
/* The name of the policy that decided; NULL: none was given. */
WEFT_API const char *weft_plan_policy(const weft_program *program);
/* The speed of links as it was stated (weft_compile_options.link); NULL: it was not. */
WEFT_API const char *weft_plan_link(const weft_program *program);

/* ---- tensors --------------------------------------------------------------------------------- */

typedef enum weft_tensor_kind {
    WEFT_TENSOR_TEMPORARY, /* in the arena, from one step to another */
    WEFT_TENSOR_INPUT,     /* these three keep their memory from run to run */
    WEFT_TENSOR_PARAMETER,
    WEFT_TENSOR_SLOT,
    WEFT_TENSOR_KINDS
} weft_tensor_kind;
/* "temporary"; "?" for no kind */
WEFT_API const char *weft_tensor_kind_name(weft_tensor_kind kind);

/* One value in one place. A value that is needed in several places is several of these, with one `value`. */
typedef struct weft_planned_tensor {
    uint32_t id;     /* from 1 */
    uint32_t value;  /* the logical tensor that this is a version of */
    uint32_t next;   /* the id of its next version; 0: the last      */
    weft_value user; /* the value of the user's graph that it stands for; id 0: made by compiling */
    const char *name; /* NULL: none */
    uint32_t node;    /* the op that makes the value... */
    const char *op;   /* ... its name: an inner one where a builder is made of several ...  */
    const char *builder,
        *file; /* ... and the call in the program: "layer_norm", "mlp.c"; NULL: not known */
    int line;
    weft_phase phase; /* of the step that makes this version */
    weft_tensor_kind kind;
    bool is_output; /* given to weft_compile: can be read after a run */
    weft_dtype dtype;
    const weft_shape *shape; /* of the whole tensor */
    weft_spec spec;          /* where this version lives */
    weft_spec wanted;        /* the compute spec: where names want the value */
    weft_spec storage;       /* where it is kept between runs; of a temporary: `wanted` */
    weft_box box;            /* the rank's part */
    int64_t bytes;           /* of that part */
    uint32_t shares;         /* the tensor whose memory this one uses; 0: its own */
    int first_step,
        last_step; /* the steps that make it and use it last, also under other ids that share its memory;
                                  outputs, inputs and variables live to the last step, the latter two from -1 */
} weft_planned_tensor;

/* Tensors have the numbers 1 to weft_plan_n_tensors. A tensor that became part of a loop has no step: it is never in
 * memory, and both its steps are -1. */
WEFT_API int weft_plan_n_tensors(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_tensor_at(const weft_program *program, uint32_t id,
                                                         int rank, weft_planned_tensor *tensor,
                                                         weft_error *error);
/* weft_plan_tensor_of - the first version of a value of the user's graph; 0: the program does not compute it. Others
 * follow by `next`. */
WEFT_API uint32_t weft_plan_tensor_of(const weft_program *program, weft_value value);
/* weft_plan_offsets - where a rank's temporaries lie in its arena.
 *
 * offsets  [room] by id, 0 is not used: bytes from the arena's begin; -1: not in the arena
 * room     at least weft_plan_n_tensors + 1
 * cost     packs the rank's memory anew: once a rank, not once a tensor */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_offsets(const weft_program *program, int rank,
                                                       int64_t *offsets, int room,
                                                       weft_error *error);

/* ---- steps ----------------------------------------------------------------------------------- */

typedef enum weft_step_kind {
    WEFT_STEP_KERNEL, /* one op's kernel                               */
    WEFT_STEP_LOOP,   /* element ops and reductions of rows in one pass: see weft_plan_link_at */
    WEFT_STEP_CONVERT, /* one conversion step, of in[i] to out[i]: several small ones may be one exchange */
    WEFT_STEP_COPY, /* copy in[0] to out[0]; a variable's is a store; of scan_each and scan_stack: the trip's element */
    WEFT_STEP_BEGIN, /* the steps between this and its end are done `trips` times: a scan's body
                      * (weft/scan.h); with a guard in it, a stack is a result, and begins with
                      * zeros */
    WEFT_STEP_GUARD, /* the rest of the trip is done where in[0], a number, is not 0; and trips after it, of scan_while */
    WEFT_STEP_END,
    WEFT_STEPS
} weft_step_kind;
WEFT_API const char *weft_step_kind_name(weft_step_kind kind); /* "kernel"; "?" for no kind */

/* Why a step is there. */
typedef enum weft_step_reason {
    WEFT_BECAUSE_OP,      /* it is the op's own work                                        */
    WEFT_BECAUSE_PARTIAL, /* a partial result has to be finished; the text says whence it is */
    WEFT_BECAUSE_OPERAND, /* an op needs its operand elsewhere                              */
    WEFT_BECAUSE_OUTPUT,  /* it is read after the run where its names want it               */
    WEFT_BECAUSE_STORE,   /* a variable gets its new value                                  */
    WEFT_BECAUSE_OLD,     /* a variable's old value is needed beside the new one            */
    WEFT_REASONS
} weft_step_reason;
/* "operand"; "?" for no reason */
WEFT_API const char *weft_step_reason_name(weft_step_reason reason);

typedef struct weft_planned_step {
    int index; /* from 0: the order of execution, on every rank */
    weft_step_kind kind;
    weft_phase phase;
    /* the op whose work it is; of a conversion: who asked, or whose partial result it is */
    uint32_t node;
    const char *op;             /* its name, and as in weft_planned_tensor the call: */
    const char *builder, *file; /* NULL: not known */
    int line;
    weft_step_reason why;
    const char *reason; /* the same as a text */
    int n_in, n_out;
    const uint32_t *in, *out;     /* [n_in], [n_out] ids of tensors */
    weft_convert_kind collective; /* convert: which; WEFT_SLICE and WEFT_COUNT_ONCE are local */
    uint32_t axes; /* convert: bit a: the ranks along axis a exchange; 0: nobody does */
    int n_links;   /* loop: its element ops */
    double flops;  /* of the rank */
    /* convert: of all its tensors, as the rank counts them (weft_convert_bytes) */
    int64_t wire_bytes;
    int64_t in_bytes, out_bytes; /* the rank's parts of all operands and of all results */
    int64_t scratch_bytes;
    const char *kernel; /* kernel: the one that does the work; else NULL */
    int n_kernels;      /* kernel: how many could have done it           */
    /* loop: how many tensors it goes over, each with its own part of `in` and `out`, in turn; and how many of its
     * dims are a row that is gone through at once, reductions and what follows them included */
    int n_segments, n_row_dims;
    /* convert: how many steps after it are done while it goes on, and their flops: it is finished before step
     * index + n_beside + 1. A place, not a prediction: how much of it is hidden is a matter of the link */
    int n_beside;
    double beside_flops;
    int queue; /* as in weft_plan_queue_at */
    /* [n_waits] steps of other queues that are over before it begins; those that these, and the steps before it on its
     * queue, have waited for are not named again */
    int n_waits;
    const uint32_t *waits;
    /* how often a run does it: more than once in the bodies of scans. Amounts are of once */
    double trips;
    /* it is done for the trip after the one in which it stands, so the last leaves it out, and the first has its own in front
     * of the scan */
    bool is_ahead;
} weft_planned_step;

WEFT_API int weft_plan_n_steps(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_step_at(const weft_program *program, int index,
                                                       int rank, weft_planned_step *step,
                                                       weft_error *error);

/* A queue does its steps in the order of their numbers, one after the other. Queues run beside each other, except for
 * the waits of their steps: one computes, and one for each set of axes exchanges over them. */
typedef struct weft_planned_queue {
    int index;     /* from 0 */
    uint32_t axes; /* over which it exchanges; 0: it computes. The first does, and no other */
    int n_steps;
    double flops;       /* of the rank */
    int64_t wire_bytes; /* as the rank counts them */
    /* exchanges that go on while something is computed, their bytes, and the flops that are computed while any does */
    int n_beside;
    int64_t beside_bytes;
    double beside_flops;
} weft_planned_queue;

WEFT_API int weft_plan_n_queues(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_queue_at(const weft_program *program, int index,
                                                        int rank, weft_planned_queue *queue,
                                                        weft_error *error);

/* One element op of a loop. */
typedef struct weft_planned_link {
    uint32_t node;
    const char *op, *builder, *file;
    int line;
    int n_in;
    /* [n_in] i < step.n_in / step.n_segments: operand i of a segment; above are the results of all links in turn */
    const int *in;
    int n_out;
    /* [n_out] which results of the step they are, from 0; -1: none, it stays in the loop */
    const int *out;
} weft_planned_link;
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_link_at(const weft_program *program, int step,
                                                       int index, weft_planned_link *link,
                                                       weft_error *error);

/* ---- rules and decisions --------------------------------------------------------------------- */

/* A rule that could not have an axis, because an earlier rule splits another dim of that tensor over it. */
typedef struct weft_planned_skip {
    uint32_t value;   /* as in weft_planned_tensor */
    const char *name; /* of the value */
    const weft_shape *shape;
    const char *dim; /* of the rule */
    int axis;
    const char *taken_by; /* the dim that has it */
} weft_planned_skip;

/* Of values with a name. */
WEFT_API int weft_plan_n_skipped(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_skipped_at(const weft_program *program, int index,
                                                          weft_planned_skip *skip,
                                                          weft_error *error);

/* weft_plan_decision_at - for every op and axis the ways that were compared, with their prices, and which was picked:
 * in the order in which they were decided. Kept only when the program was compiled with options.explain; else there are
 * none. NULL past the end. */
WEFT_API int weft_plan_n_decisions(const weft_program *program);
WEFT_API const weft_decision *weft_plan_decision_at(const weft_program *program, int index);

/* ---- candidates ---------------------------------------------------------------------------------- */

/* Op by op, the cheapest way depends on two things that are known only at the end: where the readers of a result will
 * need it, and whether a partial result goes on into a sum that is finished once. So the whole program is placed several
 * times, each time as if this or that were so, and the cheapest candidate becomes the plan. */
enum { WEFT_CANDIDATES = 5 };
typedef struct weft_planned_candidate {
    /* "names": every result goes where its names want it, and is finished there. "sums": partial results share the
     * price of finishing the sum they go into. "readers": results go where all of their readers ask for them.
     * "readers and sums": both. "what is held": both, and readers ask as if what others make came to them for nothing, so that
     * inputs and variables stay where they are: tokens go to experts, and not their weights to tokens */
    const char *name;
    double exchange, work, total; /* as in weft_planned_cost, of rank 0, before steps are joined */
    double link_bytes;            /* of all exchanges, before the cost function prices them      */
    int64_t wire_bytes;
    int64_t peak_bytes; /* most bytes of temporaries alive at once, before steps are joined */
    int n_exchanges;
    /* false: sends more bytes than the first, or by a hundredth more over a link or into memory, and is not taken whatever
     * its price */
    bool is_allowed;
    bool is_taken;
} weft_planned_candidate;

/* "names" is the first, then "readers and sums", and where that is not allowed, either alone. None on one rank. */
WEFT_API int weft_plan_n_candidates(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_candidate_at(const weft_program *program, int index,
                                                            weft_planned_candidate *candidate,
                                                            weft_error *error);

/* Some ops can be written in several variants where their operands are split: attention of split rows gathers keys and
 * values, or is a ring. The variants of an op, with the gradient that reads its results, stand one after the other; the
 * cheapest is taken. */
typedef struct weft_planned_variant {
    const char *op, *builder, *file; /* the place in the program */
    int line;
    weft_phase phase;
    const char *axes; /* "seq", "a+b": over which operands are split and variants exchange */
    const char *name; /* "gathered", "ring", "balanced ring" */
    /* in bytes through a link, of the rank that has most to do: exchanges, work, latencies */
    double price;
    double before_bytes,
        beside_bytes;  /* exchanged while nothing is computed, and while something is */
    double held_bytes; /* of others' operands and their gradients, at once */
    int n_exchanges;
    int n_compared; /* it and those of the same op behind it */
    bool is_taken;
} weft_planned_variant;

WEFT_API int weft_plan_n_variants(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_variant_at(const weft_program *program, int index,
                                                          weft_planned_variant *variant,
                                                          weft_error *error);

/* A plan for a machine (weft_compile_options.machine) is one of several, made by other prices each. The one that is predicted to be
 * the quickest is taken. */
enum { WEFT_PRICINGS = 4 };
typedef struct weft_planned_pricing {
    const char *name; /* "usual prices", "its links", "its seconds", "its links and seconds" */
    double seconds;   /* that a run is predicted to take */
    int64_t arena_bytes;
    bool is_allowed; /* false: it takes a quarter more memory than the first, or more */
    bool is_taken;
} weft_planned_pricing;

/* The machine's name; NULL: the plan is for none, and there are no pricings. One alone where ranks exchange nothing. */
WEFT_API const char *weft_plan_machine(const weft_program *program);
WEFT_API int weft_plan_n_pricings(const weft_program *program);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_pricing_at(const weft_program *program, int index,
                                                          weft_planned_pricing *pricing,
                                                          weft_error *error);

/* ---- what it costs --------------------------------------------------------------------------- */

/* One run of one rank, in bytes through its link. A prediction to compare plans by: exchanges and work one after the
 * other, memory traffic and latency not counted, unless the cost function counts them. */
typedef struct weft_planned_cost {
    double exchange, work, total;
    double link_bytes; /* of all exchanges, before the cost function prices them */
    double flops;
} weft_planned_cost;

/* cost  borrowed during the call; NULL: the default one. A program that was compiled by a cost function does not
 *       remember it: hand it in again */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_cost(const weft_program *program, int rank,
                                                    const weft_cost *cost,
                                                    weft_planned_cost *planned, weft_error *error);

WEFT_END

#endif
