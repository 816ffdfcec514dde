/* program.h: a graph compiled for one mesh and one layout: run it, feed it, read it, explain it.
 *
 *     WEFT_TRY(weft_compile(mesh, layout, WEFT_VALUES(loss, update), NULL, &program, error));
 *     weft_plan_print(program, stdout);
 *     WEFT_TRY(weft_write(program, image, WEFT_F32, pixels, sizeof pixels, error));
 *     WEFT_TRY(weft_run(program, error));
 *     WEFT_TRY(weft_read_scalar(program, loss, &value, error));
 */
#ifndef WEFT_PROGRAM_H
#define WEFT_PROGRAM_H

#include <stdio.h>

#include "weft/graph.h"

WEFT_BEGIN

typedef struct weft_program weft_program; /* opaque */

typedef struct weft_policy weft_policy; /* how work is cut, and what a plan costs, */
typedef struct weft_cost weft_cost;     /* by functions of your own: weft/research/policy.h */

/* How fast a machine computes and exchanges: weft/research/predict.h */
typedef struct weft_machine_model weft_machine_model; /* opaque */

typedef struct weft_compile_options {
    bool strict; /* a rule that is skipped is an error */
    /* Variables of the same name are this program's own: same mesh, same dtype and dims in the same order, and the same
       box on every rank (the same layout gives that; on one rank every layout does). It must outlive the new one.
       NULL: none */
    weft_program *share;
    /* a pass ("unroll", "expand", "simplify", "cut_first", "join_parts", "fission", "place", "lower", "accumulate",
     * "elide_casts", "copy_casts", "fuse", "fuse_horizontal", "order", "bucket", "hoist", "prefetch", "views",
     * "schedule"): its result is printed to stderr; NULL: none */
    const char *dump;
    /* How work is cut, and what "cheap" means: weft/research/policy.h. NULL: the cheapest way, by the usual prices. */
    const weft_policy *policy;
    const weft_cost *cost;
    bool explain; /* keep the ways that were compared: weft_plan_decision_at, weft_plan_print */
    /* each exchange is finished before the next step, in place of going on while others compute */
    bool synchronous;
    /* Bytes a second through a rank's link, of all axes or of some, and perhaps what an exchange takes before its
     * first byte is there: "125MB+1ms", "data:125MB+1ms,model:10GB". It is stated and not measured, so that all
     * ranks, and a plan made elsewhere, come to the same. An axis without an entry, and NULL: 3GB+5us. Where `cost`
     * has a function for exchanges, or a latency, that counts */
    const char *link;
    /* what products of f32 may be computed with; 0: f32. The CPU has f32 alone */
    weft_precision precision;
    /* A scan of at most so many trips (weft/scan.h) is written down trip by trip; the body of one of more is compiled once. 0:
     * WEFT_UNROLL. Results are the same numbers */
    int64_t unroll;
    /* Factors may be infinite, and products are to be what they are on one rank: an infinity, or no number. So a sum
     * split over ranks is finished before it is multiplied by another tensor, or divided. Else its parts are, where
     * that sends less, and infinities of both signs can meet in what was one product: a matter of the layout, of
     * infinite factors alone */
    bool infinities;
    /* The machine that the plan is for: exchanges are begun, and operands brought, by its seconds. Several plans are made: by the
     * usual prices, by its links in place of `link` where that is not given, and in an order by its seconds. The one is taken that
     * is predicted to take least on it (weft_plan_pricing_at), and no more memory than a quarter above that by the usual prices. All
     * ranks give the same. Borrowed while weft_compile runs. NULL: usual prices alone */
    const weft_machine_model *machine;
} weft_compile_options;

enum { WEFT_UNROLL = 16 };

/* weft_compile - graph to program; variables get their initial values. Collective over the mesh.
 *
 * layout   borrowed during the call
 * values   at least one; what can be read afterwards, and updates to carry out. All of one graph, which must outlive
 *          the program
 * options  NULL for none
 * returns  the graph's first error; WEFT_USAGE for a layout that names an axis or dim that is not there;
 *          WEFT_MISMATCH when a rank compiled another program (says which)
 * With a mesh from weft_mesh_plan the program can be explained, not run.
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_compile(weft_mesh *mesh, const weft_layout *layout,
                                                  weft_values values,
                                                  const weft_compile_options *options,
                                                  weft_program **program, weft_error *error);
/* WEFT_USAGE, and *program stays as it is, while other programs share its variables, or while it is traced: destroy those, or
 * end the trace, first. Until then its mesh and its graph refuse to be destroyed. */
WEFT_API weft_status weft_program_destroy(weft_program **program);

/* weft_run - one run: reads inputs and variables, carries out updates. Collective over the mesh. Allocates nothing. */
WEFT_API WEFT_MUST_CHECK weft_status weft_run(weft_program *program, weft_error *error);
/* weft_run_until - a run that a signal stops, if the program handles it (SIGINT, as Python does): its handler is called as ever, and all ranks
 * stop before the same step. Variables are as they were, the run does not count, and what it was to compute is not there; the program
 * runs again. Once a variable is being written a run goes to its end, and so it does where other processes have ranks, and while
 * another thread is in here. Collective over the mesh.
 *
 * weft_was_stopped - whether the last one was. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_run_until(weft_program *program, int signal,
                                                    weft_error *error);
WEFT_API bool weft_was_stopped(const weft_program *program);
/* Local. Runs done so far; the next one is number weft_runs + 1 (weft_run_number, dropout masks). */
WEFT_API int64_t weft_runs(const weft_program *program);
WEFT_API void weft_set_runs(weft_program *program, int64_t runs);

/* weft_write - set an input or variable from the whole tensor; every process passes the same. Local.
 * data [count of the whole tensor], row-major; dtype and bytes of the buffer must be exactly the value's. An input that
 * the program has no use for is checked and left alone. Of a variable, which processes of one host may hold in common, it is
 * collective over the mesh. */
WEFT_API WEFT_MUST_CHECK weft_status weft_write(weft_program *program, weft_value value,
                                                weft_dtype dtype, const void *data, int64_t bytes,
                                                weft_error *error);
/* weft_read - the whole tensor of a value given to weft_compile, an input or a variable, on every process; dtype and
 * bytes of the buffer must be exactly the value's. WEFT_USAGE for what no run has computed, or nobody written, yet.
 * Collective over the mesh. */
WEFT_API WEFT_MUST_CHECK weft_status weft_read(weft_program *program, weft_value value,
                                               weft_dtype dtype, void *data, int64_t bytes,
                                               weft_error *error);
/* The same for a scalar of any dtype. */
WEFT_API WEFT_MUST_CHECK weft_status weft_read_scalar(weft_program *program, weft_value value,
                                                      double *number, weft_error *error);
/* weft_print - one line about what weft_read would read, to `file`, by the rank that is the mesh's root alone; for looking into a net:
 *
 *     logits f32[batch:100, digit:10]: mean 0.0124, from -2.1 to 3.08; first 0.31 -1.2 0.07 0.5 1.1 -0.02 0.9 0.4 ...
 *
 * Mean, smallest and largest are of the numbers that are finite; how many are not is said. Collective over the mesh, and as the
 * processes of the world agree on memory for it, over these.
 * value    as of weft_read; what has no name (weft_name) is "a value"
 * cost     the whole value on every process */
WEFT_API WEFT_MUST_CHECK weft_status weft_print(weft_program *program, weft_value value, FILE *file,
                                                weft_error *error);

/* weft_local - the part of an input or variable that a local rank holds, for loaders and checkpoints. Local.
 * box      its place in the whole tensor
 * returns  memory to read and write between runs; NULL when empty or not this process's rank, and where the host does not
 *          see the device's memory (weft_write, weft_read serve there). Ranks of one process, and
 *          processes of one host, may hold a variable in common: it is the same memory then, to be written when all have
 *          come out of the run, with the same by all */
WEFT_API void *weft_local(weft_program *program, weft_value value, int rank, weft_box *box);
/* weft_box_of - the part of an input or variable that any rank of the mesh holds, here or elsewhere. Local. */
WEFT_API void weft_box_of(const weft_program *program, weft_value value, int rank, weft_box *box);
/* Whether a variable is optimizer state (weft_slot). Local. */
WEFT_API bool weft_is_slot(weft_value variable);
/* Canonical texts of what the program was compiled for. Borrowed. */
WEFT_API const char *weft_program_layout(const weft_program *program);
/* weft_program_digest - of the plan: equal on all ranks, and for equal graphs, meshes and layouts. Local. */
WEFT_API uint64_t weft_program_digest(const weft_program *program);
/* weft_find - by name what this program keeps: an input, a variable, a slot, or a value given to weft_compile that
 * weft_name has named. For weft_write, weft_read and weft_local. Local.
 *
 * returns the invalid value, and WEFT_USAGE with the nearest name, when there is none; and when two have the name
 */
WEFT_API weft_value weft_find(const weft_program *program, const char *name, weft_error *error);
/* Inputs by name, for datasets: the invalid value when there is none. */
WEFT_API weft_value weft_find_input(const weft_program *program, const char *name);
/* Variables in creation order. index from 0; the invalid value past the end. Named by weft_name_of. */
WEFT_API weft_value weft_variable_at(const weft_program *program, int index);
WEFT_API const char *weft_name_of(weft_value value);
WEFT_API weft_mesh *weft_program_mesh(const weft_program *program);
/* Why each process of this host holds copies of its own of what they could hold in common: the system refused memory that all
 * see (weft_comms_apart). "": it did not. */
WEFT_API const char *weft_program_apart(const weft_program *program);

/* ---- the plan -------------------------------------------------------------------------------- */

typedef struct weft_usage {
    int64_t variable_bytes; /* parameters */
    int64_t slot_bytes;     /* optimizer state */
    int64_t input_bytes;
    int64_t peak_bytes[3]; /* temporaries at their highest in forward, backward, update */
    int64_t arena_bytes;   /* the one block they are laid out in */
    int64_t total_bytes;   /* variables + slots + inputs + arena */
    double flops;
    int n_steps;
    /* temporaries that forward passes leave to backward passes, all in all. With parts that are computed again
     * (weft_recompute_begin): how many more it would leave without them, and the flops that they cost, of `flops` */
    int64_t kept_bytes, spared_bytes;
    double again_flops;
    /* measured: steps, of n_steps, that the device did as parts of kept ones of an earlier run; and the step with the
     * host's part, which ends them, or why nothing is kept: NULL, or lives as long as the program */
    int n_kept;
    const char *why_apart;
} weft_usage;

/* weft_plan_usage - the needs of one run of `rank`, before it ever runs. They count all trips of a scan, where
 * weft_scan_while and weft_scan_if may make fewer. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_usage(const weft_program *program, int rank,
                                                     weft_usage *usage, weft_error *error);
/* weft_measured_usage - what the last run of a local rank really did: the steps, and the highest byte of the arena
 * touched (arena_bytes). All 0 for another rank. Local. */
WEFT_API void weft_measured_usage(const weft_program *program, int rank, weft_usage *usage);

/* The traffic of one rank over one set of axes with one collective in one run. */
typedef struct weft_traffic {
    uint32_t axes;
    weft_convert_kind kind;
    int64_t count, bytes; /* bytes as weft_convert_bytes defines them */
} weft_traffic;

/* weft_plan_traffic - what one run moves, as planned; weft_measured_traffic - as it was sent in the last run of a local
 * rank (counts 0 before the first, and for another rank). Both have the same entries in the same order. Local.
 *
 * traffic  [room] the first of them; may be NULL when room is 0
 * returns  how many there are; 0 when the program is NULL, or there is no such rank */
WEFT_API int weft_plan_traffic(const weft_program *program, int rank, weft_traffic *traffic,
                               int room);
WEFT_API int weft_measured_traffic(const weft_program *program, int rank, weft_traffic *traffic,
                                   int room);

/* The plan as text or JSON: every variable with dims, spec, storage spec, box and bytes; memory by phase;
 * flops; traffic; every collective with its value, its reason and its place. The JSON has every tensor and every step
 * besides, and with options.explain every decision. As rank 0 (the fullest) sees it. Local. weft/research/plan.h has it
 * as data, of any rank. */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_print(const weft_program *program, FILE *file,
                                                     weft_error *error);
/* weft_plan_summary - of that text what fits a screen: memory, work, traffic, and how many the rest are. Local. */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_summary(const weft_program *program, FILE *file,
                                                       weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_json(const weft_program *program, FILE *file,
                                                    weft_error *error);

WEFT_END

#endif
