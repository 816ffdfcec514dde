/* plan.h (private): a program before it has memory: steps over placed tensors, the same list on every rank.
 *
 * The passes of ops/compile fill it in. This room computes its kernels, costs and memory for them, for the report and for the
 * run. Memory is laid out for one rank at a time, since boxes differ.
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
    weft_box box;  /* rank 0's: weft_plan_place finds it */
    int64_t bytes; /* of it                              */
    weft_home home;
    uint32_t shares; /* the placed tensor whose memory this one uses; 0: its own */
    /* the node by which it is a part of that, or lies there in another shape (views.h); 0: it lies as that does */
    uint32_t through;
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

/* What a conversion step does; the specs are those of its operands and results (weft_step_convert). */
typedef struct weft_step_conversion {
    weft_convert_kind kind;
    uint32_t axes;   /* as in weft_convert_step */
    bool is_lowered; /* to one step of those that carry it out */
} weft_step_conversion;

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
    /* A loop: the tensor over whose elements it goes, which need not be in memory, and which of its dims are a row: bit d for
     * dim d. A loop over several tensors has a segment for each, and its operands and results segment by segment. */
    int n_segments;
    unsigned row_dims;
    const uint32_t *space; /* [n_segments] */
    weft_step_conversion convert;
    const char *reason;
    /* of an exchange that goes on: it is finished before this step; the number of steps: at the end; 0: at once */
    uint32_t until;
    /* it is done for the trip of its scan after this one, so not in the last (prefetch.c) */
    bool is_ahead;
} weft_step;

/* Bytes a second through a link of the usual speed: WEFT_FLOPS_PER_BYTE and WEFT_LATENCY are of it. */
#define WEFT_USUAL_LINK 3e9

/* Of the links along an axis (links.c), in bytes through one of the usual speed. */
typedef struct weft_link_price {
    double byte, latency;
} weft_link_price;

/* When a step may begin (queues.c). */
typedef struct weft_timing {
    uint32_t queue; /* of plan->queues */
    uint32_t n_waits;
    /* [n_waits] steps of other queues, none of which another one's end implies */
    const uint32_t *waits;
} weft_timing;

/* The scratch of conversions, as one rank has them (scratch.c). */
typedef struct weft_known_moves weft_known_moves;

/* Tensors that lie alike, and steps that do the same to such tensors (likes.h). Each kind is numbered, and has a first. */
typedef struct weft_likes {
    uint32_t n_placed, n_steps;     /* kinds; 0: they are not known yet */
    uint32_t *of_placed, *of_step;  /* [plan->n_placed], [plan->n_steps] the kind of each */
    const uint32_t *placed, *steps; /* [n_placed], [n_steps] the first of each kind */
    uint32_t *n_of_step;            /* [n_steps] how many steps are of each */
} weft_likes;

/* What a rank has of each kind. */
typedef struct weft_sizes {
    int64_t *bytes;   /* [likes.n_placed] of its box; NULL: they are not known */
    int64_t *scratch; /* [likes.n_steps] behind them */
} weft_sizes;

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
    weft_sizes sizes;
    const struct weft_memory *next; /* of a list of those of other ranks */
} weft_memory;

/* What is needed while it is built alone: how it was asked for, and what passes keep for each other. */
typedef struct weft_building {
    bool strict, is_explained, is_synchronous, has_infinities;
    int64_t unrolled;          /* scans of at most so many trips are written down trip by trip */
    const weft_policy *policy; /* NULL: none */
    weft_cost cost;
    const weft_machine_model *machine; /* by whose seconds steps are ordered; NULL: by prices */
    const weft_variant **written; /* [graph->n_nodes] as what a node is expanded; NULL: as it is */
    weft_known_moves *moves;      /* rank 0's; before lower NULL */
    struct weft_trial *trials;    /* arenas that passes have compared (trials.h) */
    uint32_t cap_placed, cap_steps, cap_skips, cap_decisions; /* room in the lists below */
} weft_building;

typedef struct weft_plan {
    weft_arena *arena;
    /* how many plans have the arena, the graph and the layout (weft_plan_fork); NULL: this one alone */
    uint32_t *n_sharing;
    weft_graph *graph; /* expanded and simplified; uses the user's graph's arena for names */
    const weft_mesh *mesh;
    weft_layout *layout; /* a copy of its own */
    weft_building build;
    const char *policy_name; /* NULL: none */
    weft_link_price links[WEFT_MAX_AXES];
    const char *link_text;    /* as they were stated; NULL: the usual */
    const char *machine_name; /* of the machine that it is for; NULL: none */
    uint64_t machine_hash;
    weft_planned_pricing pricings[WEFT_PRICINGS]; /* what was compared for it */
    int n_pricings;
    weft_precision precision;
    const weft_graph *user; /* the graph it was made from; lives longer */
    uint32_t n_user_values;
    /* [n_user_values] user's value id -> value of `graph`; 0: not part of it */
    uint32_t *user_value;
    /* [graph->n_tensors] before place: 1 for an output; from then on the placed tensor of an input, variable or output;
     * 0: none */
    uint32_t *kept;
    weft_placed *placed; /* [n_placed], 0 is not used */
    uint32_t n_placed;
    weft_step *steps; /* [n_steps] */
    uint32_t n_steps;
    weft_planned_skip *skips; /* [n_skips] rules that were skipped */
    uint32_t n_skips;
    weft_planned_candidate candidates[WEFT_CANDIDATES]; /* what place compared */
    int n_candidates;
    weft_planned_variant *variants; /* [n_variants] what expand compared */
    int n_variants;
    weft_decision *decisions; /* [n_decisions] when explained */
    uint32_t n_decisions;
    /* rank 0's, once the order of steps is the last one; offset NULL: not known */
    weft_memory packed;
    /* ranks' that are known besides, while a program lays out those here; NULL: none */
    const weft_memory *others;
    /* By weft_plan_index, when all passes are done: */
    weft_likes likes;
    uint32_t *user_of;     /* [graph->n_tensors] the first user's value it stands for; 0: none */
    uint32_t *version;     /* [graph->n_tensors] its first placed tensor; 0: none              */
    weft_traffic *traffic; /* [n_traffic] the kinds of traffic there are; counts and bytes 0 */
    int n_traffic;
    weft_timing *timings; /* [n_steps] */
    double *flops;        /* [n_steps + 1] of rank 0: those of all steps before, each done once */
    /* [n_queues] the axes over which a queue exchanges; the first computes, and has none */
    uint32_t queues[1 << WEFT_MAX_AXES], n_queues;
} weft_plan;

/* destroy.c */
void weft_plan_destroy(weft_plan **plan);
/* weft_plan_fork - the same plan once more, before its last passes: these may order the steps of both otherwise. What passes before
 * them made is of both, and lives as long as either. NULL: no memory. */
weft_plan *weft_plan_fork(weft_plan *plan);

/* ---- plan.c: lists, and what can be read off a step or a placed tensor -------------------------- */

/* Append; return 0 (placed) or NULL when out of memory. Pointers into the arrays move when they
 * grow. */
/* box: rank 0's; NULL: it is found. */
uint32_t weft_plan_place(weft_plan *plan, const weft_placed *placed, const weft_box *box);
/* The step's lists are copied into the plan's arena: the caller's may be on the stack. */
weft_step *weft_plan_step(weft_plan *plan, const weft_step *step);
weft_planned_skip *weft_plan_skip(weft_plan *plan);
weft_decision *weft_plan_decision(weft_plan *plan);

int64_t weft_placed_bytes(const weft_plan *plan, uint32_t placed, int rank); /* of the rank's box */
/* What they take of an arena. Rank 0's are no fewer than another's. */
int64_t weft_placed_room(const weft_plan *plan, uint32_t placed, int rank);
void weft_placed_view(const weft_plan *plan, uint32_t placed, int rank,
                      weft_view *view); /* data NULL */
/* The placed tensor that owns the memory of this one. */
uint32_t weft_placed_owner(const weft_plan *plan, uint32_t placed);
/* Do the first n dims of both have the same names in the same order, and the same boxes on every rank? */
bool weft_same_dims(const weft_plan *plan, uint32_t a, uint32_t b, int n);
/* The same of dim i of a and dim j of b. */
bool weft_same_dim(const weft_plan *plan, uint32_t a, int i, uint32_t b, int j);
/* Do two tensors lie in memory in the same way, so that one may be written over the other, element by element? */
bool weft_lie_alike(const weft_plan *plan, uint32_t a, uint32_t b);
/* The op that a link applies: its node's, or what that reduces of its operands. */
const weft_op *weft_link_op(const weft_plan *plan, const weft_fused_op *link);
/* The flops of a step's node with one rank's sizes; and those of them that repeat others in the backward pass. */
double weft_step_flops(const weft_plan *plan, const weft_step *step, int rank);
double weft_step_again_flops(const weft_plan *plan, const weft_step *step, int rank);
/* Has a kernel step an operand more than its op: the sum so far? */
static inline bool weft_step_accumulates(const weft_plan *plan, const weft_step *step)
{
    return step->kind == WEFT_STEP_KERNEL && step->n_in > plan->graph->nodes[step->node].n_in;
}
/* The last step during which step `s` goes on: itself, but for exchanges. */
static inline uint32_t weft_step_end(const weft_step *step, uint32_t s)
{
    return step->kind == WEFT_STEP_CONVERT && step->until > s ? step->until - 1 : s;
}
void weft_plan_dump(const weft_plan *plan, FILE *file);
/* Equal on all ranks that run the same program. */
uint64_t weft_plan_digest(const weft_plan *plan);

/* ---- kernels.c: which kernel does a step -------------------------------------------------------- */

/* A kernel step's call on a rank, as it is before there is memory: data, stream, prepared and scratch are NULL. */
void weft_step_call(const weft_plan *plan, const weft_step *step, int rank, weft_call *call);
/* The kernel that does it; WEFT_USAGE, with the place in the program, when there is none. */
weft_status weft_step_kernel(const weft_plan *plan, const weft_step *step, const weft_call *call,
                             weft_kernel_choice *choice, weft_error *error);
weft_status weft_kernel_scratch(const char *op, const weft_kernel *kernel, const weft_call *call,
                                int64_t *bytes, weft_error *error);

/* ---- links.c: what the links of the machine cost ------------------------------------------------ */

/* weft_read_links - the text of weft_compile_options.link; NULL or empty: the usual. weft_link_over - the slowest. */
weft_status weft_read_links(weft_plan *plan, const char *text, weft_error *error);
weft_link_price weft_link_over(const weft_plan *plan, uint32_t axes);

/* ---- cost.c: the cost model. Prices are in bytes through one rank's link ------------------------- */

double weft_exchange_price(const weft_plan *plan, const weft_cost *cost,
                           const weft_exchange *exchange);
double weft_work_price(const weft_cost *cost, double flops);
/* What a step costs that exchanges nothing, on rank 0: reading and writing memory, or computing, whatever takes longer. */
double weft_step_work(const weft_plan *plan, const weft_step *step);
/* The latency of an exchange over these axes, as a price. */
double weft_latency_price(const weft_plan *plan, uint32_t axes);
/* The default latency, whatever the links; bucketing uses it. A long latency passes beside work, unless all waits for one
 * exchange at the end. */
double weft_usual_latency(const weft_cost *cost);
/* What a conversion step does to operand k. */
weft_convert_step weft_step_convert(const weft_plan *plan, const weft_step *step, int k);
/* What a conversion step exchanges, as `rank` sees it; false: it exchanges nothing. */
bool weft_convert_exchange(const weft_mesh *mesh, const weft_type *type,
                           const weft_convert_step *convert, int rank, weft_exchange *exchange);
bool weft_step_exchange(const weft_plan *plan, const weft_step *step, int rank,
                        weft_exchange *exchange);
/* The bytes that a conversion step puts on the wire, as `rank` counts them (weft_convert_bytes). */
int64_t weft_step_wire_bytes(const weft_plan *plan, const weft_step *step, int rank);
/* Which ways its bytes go at `rank`: bits; a link takes bytes of both ways at once. */
enum { WEFT_SENDS = 1, WEFT_RECEIVES = 2 };
uint8_t weft_step_ways(const weft_plan *plan, const weft_step *step, int rank);
/* A conversion step made ready for a rank; the caller destroys it. */
weft_status weft_step_move(const weft_plan *plan, const weft_step *step, int rank, weft_move **move,
                           weft_error *error);

/* ---- scratch.c: memory that a step needs while it runs ------------------------------------------ */

/* Scratch bytes of a step on a rank: of conversions, and of kernels that ask for some. */
weft_status weft_step_scratch(const weft_plan *plan, const weft_step *step, int rank,
                              int64_t *bytes, weft_error *error);
/* The same, kept for all steps that move alike: in `moves`, of its rank, which lives as long as its arena. */
weft_status weft_known_moves_open(weft_arena *arena, int rank, weft_known_moves **moves,
                                  weft_error *error);
weft_status weft_keep_scratch(weft_known_moves *moves, const weft_plan *plan, const weft_step *step,
                              int64_t *bytes, weft_error *error);

/* ---- memory.c: where temporaries lie ------------------------------------------------------------ */

/* weft_plan_memory - lay out one rank's temporaries. memory's arrays live in `arena`, or as long as the plan. Local;
 * pure. */
weft_status weft_plan_memory(const weft_plan *plan, int rank, weft_arena *arena,
                             weft_memory *memory, weft_error *error);
/* weft_plan_buffers - of rank 0, if these were the plan's steps: how large they are and how long they live, but not where they
 * lie. */
weft_status weft_plan_buffers(const weft_plan *plan, weft_step *steps, uint32_t n_steps,
                              weft_arena *arena, weft_memory *memory, weft_error *error);
/* weft_keep_memory - lay out rank 0's, once the order of steps is the last one: plan->packed. Trials stay. */
weft_status weft_keep_memory(weft_plan *plan, weft_error *error);

/* ---- index.c, queues.c: what is looked up in a plan that is done -------------------------------- */

/* weft_plan_index - the user's values, versions, lifetimes, kinds of traffic, queues. */
weft_status weft_plan_index(weft_plan *plan, weft_error *error);
weft_status weft_find_queues(weft_plan *plan, weft_error *error);
/* The kind of traffic that a step makes, in plan->traffic; -1: it makes none. */
int weft_step_traffic(const weft_plan *plan, const weft_step *step);
/* The flops of steps [begin, end): those of rank 0 without going through them. */
double weft_flops_between(const weft_plan *plan, uint32_t begin, uint32_t end, int rank);

#endif
