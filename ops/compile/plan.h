/* plan.h: a program before it has memory: steps over placed tensors, the same list on every rank.
 *
 * The passes fill it in turn: expand and simplify make the graph, place decides where every tensor
 * lives and where it has to be converted, lower turns conversions into collectives, accumulate gives sums to the kernels
 * that make a summand, narrow takes casts from around kernels that round, fuse joins element ops, bundle joins small loops that do the same, order moves stores to where they
 * may happen, join makes one exchange of several, early moves steps to what they end, prefetch gathers for the trip after,
 * schedule lets exchanges go on while steps compute, memory lays the temporaries out (for one rank at a time, since boxes differ).
 */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include "ir.h"
#include "loop.h"
#include "registry.h"
#include "weft/collectives.h"
#include "weft/program.h"
#include "weft/research/plan.h"

typedef enum weft_home { WEFT_TEMPORARY, WEFT_INPUT_HOME, WEFT_VARIABLE_HOME } weft_home;

/* One tensor in one spec. A logical value may have several: its first one, and what it was
 * converted to. */
typedef struct weft_placed {
    uint32_t value; /* of the plan's graph */
    weft_type type;
    weft_spec spec;
    weft_home home;
    uint32_t shares;               /* the placed tensor whose memory this one uses; 0: its own */
    uint32_t next;                 /* another version of the same value; 0: none               */
    int32_t first_step, last_step; /* as in weft_planned_tensor: weft_plan_index     */
    uint32_t scan;                 /* in whose body it is there to be read; 0: everywhere         */
    uint32_t carried;              /* the scan from trip to trip of which it goes; 0: none        */
    uint8_t phase;                 /* of the step that makes it                                 */
    uint32_t stretch;              /* which of the runs of nodes of one phase makes it: place.c */
    bool is_output;                /* read after the run: lives to the end                       */
    const char *reason;            /* when partial: why                                          */
} weft_placed;

/* One element op of a loop: slots as in weft_loop. */
typedef struct weft_fused_op {
    uint32_t node;
    weft_loop_kind kind;
    int n_in, in[3];
    int n_out, out[2]; /* which results of the step they are; -1: none, it stays in the loop */
} weft_fused_op;

/* Any number of operands and results. Lists live in the plan's arena. */
typedef struct weft_step {
    weft_step_kind kind;
    uint8_t phase;
    uint8_t why;   /* weft_step_reason */
    uint32_t node; /* whose work it is; a conversion's: who asked for it */
    uint32_t scan; /* of graph->scans: in whose body it is, and which it begins or ends; 0: none */
    int n_in, n_out, n_links;
    const uint32_t *in, *out;   /* [n_in], [n_out] placed tensors */
    const weft_fused_op *links; /* [n_links] */
    /* A loop: the tensor over whose elements it goes, which need not be in memory, and how many of its last dims are a
     * row. A loop over several tensors has a segment for each, and its operands and results segment by segment. */
    int n_segments, n_row_dims;
    const uint32_t *space; /* [n_segments] */
    /* Of operand 0; the others go the same way from where they are to where their result is (weft_step_convert). */
    weft_convert_step convert;
    const char *reason;
    /* of an exchange that goes on: it is finished before this step; the number of steps: at the end; 0: at once */
    uint32_t until;
    bool
        is_ahead; /* it is done for the trip of its scan after this one, so not in the last (prefetch.c) */
} weft_step;

/* Of the links along an axis (links.c), in bytes through one of the usual speed. */
typedef struct weft_link_price {
    double byte, latency;
} weft_link_price;

/* When a step may begin (queues.c). */
typedef struct weft_timing {
    uint32_t queue; /* of plan->queues */
    uint32_t n_waits;
    const uint32_t
        *waits; /* [n_waits] steps of other queues, none of which another one's end implies */
} weft_timing;

/* The scratch of conversions, as one rank has them (scratch.c). */
typedef struct weft_known_moves weft_known_moves;

/* Where one rank's temporaries lie in its arena. */
typedef struct weft_memory {
    int64_t *offset;  /* [n_placed] bytes from the arena's begin; -1: not a temporary */
    int64_t *scratch; /* [n_steps] the same for a step's scratch                       */
    int64_t arena_bytes;
    int64_t peak_bytes[WEFT_PHASES]; /* most bytes alive at once, by phase */
    uint32_t fullest;                /* the first step at which as many are as anywhere */
    /* [n_packed] what was packed. A rank whose buffers are as large, and live as long, has the same places. */
    struct weft_buffer *const *buffers;
    uint32_t n_packed;
    const struct weft_memory *next; /* of a list of those of other ranks */
} weft_memory;

typedef struct weft_plan {
    weft_arena *arena;
    weft_graph *graph; /* expanded and simplified; uses the user's graph's arena for names */
    const weft_mesh *mesh;
    weft_layout *layout; /* a copy of its own */
    bool strict, is_explained, is_synchronous, has_infinities;
    int64_t unrolled;          /* scans of at most so many trips are written down trip by trip */
    const weft_policy *policy; /* while it is built; NULL: none */
    const char *policy_name;   /* NULL: none */
    weft_cost cost;            /* while it is built */
    weft_link_price links[WEFT_MAX_AXES];
    const char *link_text; /* as they were stated; NULL: the usual */
    weft_precision precision;
    const weft_graph *user; /* the graph it was made from; lives longer */
    uint32_t n_user_values;
    /* [n_user_values] user's value id -> value of `graph`; 0: not part of it */
    uint32_t *user_value;
    /* [graph->n_tensors] before place: 1 for an output; from then on the placed tensor of an input, variable or output;
     * 0: none */
    uint32_t *kept;
    weft_placed *placed; /* [n_placed], 0 is not used */
    uint32_t n_placed, cap_placed;
    weft_step *steps; /* [n_steps] */
    uint32_t n_steps, cap_steps;
    weft_planned_skip *skips; /* [n_skips] rules that were skipped */
    uint32_t n_skips, cap_skips;
    weft_planned_candidate candidates[WEFT_CANDIDATES]; /* what place compared */
    int n_candidates;
    weft_planned_form *forms; /* [n_forms] what expand compared */
    int n_forms;
    const weft_form **
        written; /* [graph->n_nodes] while it is expanded: as what a node is written; NULL: as it is */
    weft_known_moves *moves;  /* rank 0's; filled while it is built; before lower NULL */
    weft_decision *decisions; /* [n_decisions] when explained */
    uint32_t n_decisions, cap_decisions;
    weft_memory
        packed; /* rank 0's, once the order of steps is the last one; offset NULL: not known */
    const weft_memory *
        others; /* ranks' that are known besides, while a program lays out those here; NULL: none */
    /* By weft_plan_index, when all passes are done: */
    uint32_t *user_of;     /* [graph->n_tensors] the first user's value it stands for; 0: none */
    uint32_t *version;     /* [graph->n_tensors] its first placed tensor; 0: none              */
    weft_traffic *traffic; /* [n_traffic] the kinds of traffic there are; counts and bytes 0 */
    int n_traffic;
    weft_timing *timings; /* [n_steps] */
    double *flops;        /* [n_steps + 1] of rank 0: those of all steps before, each done once */
    /* [n_queues] the axes over which a queue exchanges; the first computes, and has none */
    uint32_t queues[1 << WEFT_MAX_AXES], n_queues;
} weft_plan;

/* ---- the passes ------------------------------------------------------------------------------ */

/* weft_plan_build - run all passes. Local; pure.
 * dump   a pass's name: what it made is printed to stderr; NULL: nothing */
weft_status weft_plan_build(weft_mesh *mesh, const weft_layout *layout, weft_values values,
                            const weft_compile_options *options, weft_plan **plan,
                            weft_error *error);
void weft_plan_destroy(weft_plan **plan);

typedef weft_status (*weft_pass)(weft_plan *plan, weft_error *error);
weft_status weft_pass_unroll(weft_plan *plan, weft_error *error);
weft_status weft_pass_expand(weft_plan *plan, weft_error *error);
weft_status weft_pass_simplify(weft_plan *plan, weft_error *error);
weft_status weft_pass_place(weft_plan *plan, weft_error *error);
weft_status weft_pass_lower(weft_plan *plan, weft_error *error);
weft_status weft_pass_accumulate(weft_plan *plan, weft_error *error);
weft_status weft_pass_elide_casts(weft_plan *plan, weft_error *error);
weft_status weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error);
weft_status weft_pass_order(weft_plan *plan, weft_error *error);
weft_status weft_pass_bucket(weft_plan *plan, weft_error *error);
weft_status weft_pass_hoist(weft_plan *plan, weft_error *error);
weft_status weft_pass_prefetch(weft_plan *plan, weft_error *error);
weft_status weft_pass_schedule(weft_plan *plan, weft_error *error);

/* weft_plan_memory - lay out one rank's temporaries. memory's arrays live in `arena`, or as long as the plan. Local;
 * pure. */
weft_status weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                             weft_memory *memory, weft_error *error);
/* weft_plan_memory_of - rank 0's if these were the plan's steps. */
weft_status weft_plan_memory_of(const weft_plan *plan, weft_step *steps, uint32_t n_steps,
                                weft_arena *arena, weft_memory *memory, weft_error *error);
/* weft_memory_copy - into the plan's arena. */
weft_status weft_memory_copy(const weft_plan *plan, const weft_memory *memory, weft_memory *copy,
                             weft_error *error);
/* weft_plan_arena - its bytes alone, and the most that is alive in it at once. */
weft_status weft_plan_arena(const weft_plan *plan, weft_step *steps, uint32_t n_steps,
                            int64_t *bytes, int64_t *alive, weft_error *error);

/* ---- what passes share ----------------------------------------------------------------------- */

/* Append; return 0 (placed) or NULL when out of memory. Pointers into the arrays move when they
 * grow. */
uint32_t weft_plan_place(weft_plan *plan, const weft_placed *placed);
/* The step's lists are copied into the plan's arena: the caller's may be on the stack. */
weft_step *weft_plan_step(weft_plan *plan, const weft_step *step);
weft_planned_skip *weft_plan_skip(weft_plan *plan);
weft_decision *weft_plan_decision(weft_plan *plan);

int64_t weft_placed_bytes(const weft_plan *plan, uint32_t placed, int rank); /* of the rank's box */
void weft_placed_view(const weft_plan *plan, uint32_t placed, int rank,
                      weft_view *view); /* data NULL */
/* The placed tensor that owns the memory of this one. */
uint32_t weft_placed_owner(const weft_plan *plan, uint32_t placed);
/* Has a kernel step an operand more than its op: the sum so far? */
static inline bool weft_step_accumulates(const weft_plan *plan, const weft_step *step)
{
    return step->kind == WEFT_STEP_KERNEL && step->n_in > plan->graph->nodes[step->node].n_in;
}
/* A kernel step's call on a rank, as it is before there is memory: data, stream, prepared and scratch are NULL. */
void weft_step_call(const weft_plan *plan, const weft_step *step, int rank, weft_call *call);
/* The kernel that does it; WEFT_USAGE, with the place in the program, when there is none. */
weft_status weft_step_kernel(const weft_plan *plan, const weft_step *step, const weft_call *call,
                             weft_kernel_choice *choice, weft_error *error);
weft_status weft_kernel_scratch(const char *op, const weft_kernel *kernel, const weft_call *call,
                                int64_t *bytes, weft_error *error);
/* Scratch bytes of a step on a rank: of conversions, and of kernels that ask for some. */
weft_status weft_step_scratch(const weft_plan *plan, const weft_step *step, int rank,
                              int64_t *bytes, weft_error *error);
/* The same, kept for all steps that move alike: in `moves`, of its rank, which lives as long as its arena. */
weft_status weft_known_moves_open(weft_arena *arena, int rank, weft_known_moves **moves,
                                  weft_error *error);
weft_status weft_keep_scratch(weft_known_moves *moves, const weft_plan *plan, const weft_step *step,
                              int64_t *bytes, weft_error *error);
/* The site of a step's node with one rank's sizes: for flops. */
double weft_step_flops(const weft_plan *plan, const weft_step *step, int rank);
/* The same of steps [begin, end) of a plan that is done: of rank 0 without going through them. */
double weft_flops_between(const weft_plan *plan, uint32_t begin, uint32_t end, int rank);
/* Of these, those of nodes that repeat others on the way back. */
double weft_step_again_flops(const weft_plan *plan, const weft_step *step, int rank);
/* weft_ask_policy - where the policy wants values: placements of the plan's graph from then on. */
weft_status weft_ask_policy(weft_plan *plan, weft_error *error);
/* weft_find_skipped - fill plan->skips; WEFT_USAGE for the first when the plan is strict. */
weft_status weft_find_skipped(weft_plan *plan, weft_error *error);
/* weft_plan_index - what is looked up in a plan that is done: user's values, versions, lifetimes,
 * kinds of traffic, queues. */
weft_status weft_plan_index(weft_plan *plan, weft_error *error);
weft_status weft_find_queues(weft_plan *plan, weft_error *error);
/* The kind of traffic that a step makes, in plan->traffic; -1: it makes none. */
int weft_step_traffic(const weft_plan *plan, const weft_step *step);
/* Prices by a cost function, all bytes through one rank's link. */
double weft_exchange_price(const weft_plan *plan, const weft_cost *cost,
                           const weft_exchange *exchange);
double weft_work_price(const weft_cost *cost, double flops);
/* What a step costs that exchanges nothing, on rank 0: reading and writing memory, or computing, whatever takes longer. */
double weft_step_work(const weft_plan *plan, const weft_step *step);
/* What a conversion step exchanges, as `rank` sees it; false: it exchanges nothing. */
bool weft_convert_exchange(const weft_mesh *mesh, const weft_type *type,
                           const weft_convert_step *convert, int rank, weft_exchange *exchange);
bool weft_step_exchange(const weft_plan *plan, const weft_step *step, int rank,
                        weft_exchange *exchange);
/* What begins with every exchange over these axes, as a price. */
double weft_latency_price(const weft_plan *plan, uint32_t axes);
/* The same, whatever is said of links: what is joined is decided by it, since a latency that is long goes by beside work,
 * unless all waits for one exchange at the end. */
double weft_usual_latency(const weft_cost *cost);
/* weft_read_links - the text of weft_compile_options.link; NULL or empty: the usual. weft_link_over - the slowest. */
weft_status weft_read_links(weft_plan *plan, const char *text, weft_error *error);
weft_link_price weft_link_over(const weft_plan *plan, uint32_t axes);
/* What a conversion step does to operand k. */
weft_convert_step weft_step_convert(const weft_plan *plan, const weft_step *step, int k);
/* The last step during which step `s` goes on: itself, but for exchanges. */
static inline uint32_t weft_step_end(const weft_step *step, uint32_t s)
{
    return step->kind == WEFT_STEP_CONVERT && step->until > s ? step->until - 1 : s;
}
/* The bytes that a conversion step puts on the wire, as `rank` counts them (weft_convert_bytes). */
int64_t weft_step_wire_bytes(const weft_plan *plan, const weft_step *step, int rank);
/* A conversion step made ready for a rank; the caller destroys it. */
weft_status weft_step_move(const weft_plan *plan, const weft_step *step, int rank, weft_move **move,
                           weft_error *error);
/* The op that a link applies: its node's, or what that reduces of its operands. */
const weft_op *weft_link_op(const weft_plan *plan, const weft_fused_op *link);
/* Do the first n dims of both have the same names in the same order, and the same boxes on every rank? */
bool weft_same_dims(const weft_plan *plan, uint32_t a, uint32_t b, int n);
/* Do two tensors lie in memory in the same way, so that one may be written over the other, element by element? */
bool weft_lie_alike(const weft_plan *plan, uint32_t a, uint32_t b);
void weft_plan_dump(const weft_plan *plan, FILE *file);
/* Equal on all ranks that run the same program. */
uint64_t weft_plan_digest(const weft_plan *plan);
/* The spec that names give a value: its placement, else the storage of the variable it is placed
 * as, else the rules. */
weft_status weft_wanted_spec(const weft_plan *plan, uint32_t value, weft_spec *spec,
                             weft_error *error);
/* Where a variable keeps its elements between runs. */
weft_status weft_home_spec(const weft_plan *plan, uint32_t variable, weft_spec *spec,
                           weft_error *error);

#endif
