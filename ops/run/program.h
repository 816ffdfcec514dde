/* program.h (private): a plan with memory: what every local rank does, pointers and all. */
#ifndef WEFT_RUN_PROGRAM_H
#define WEFT_RUN_PROGRAM_H

#include "barrier.h"
#include "plan.h"
#include "recorder.h"
#include "stamp.h"
#include "views.h"

typedef struct weft_rank weft_rank;

typedef struct weft_bound_step weft_bound_step;
/* How a step is bound to memory, and run. */
typedef weft_status (*weft_step_run)(weft_rank *rank, weft_bound_step *bound, weft_error *error);

/* A variable's memory that others use too: a step that cannot be shared out is done there by one rank, and by this one in
 * a copy, for the sake of its other results. */
typedef struct weft_aside weft_aside;
struct weft_aside {
    weft_aside *next;
    uint32_t variable; /* placed */
    void *memory, *copy;
    size_t bytes;
};

/* A step that writes what ranks hold in common: none begins before all have read what was there, and none
 * goes on before all is written. */
typedef struct weft_shared_write {
    weft_barrier *barrier;
    int channel;   /* where waits for other processes are recorded; -1: they are not */
    bool is_aside; /* one does it, on all ranks alike; else each does its part */
    bool gathers; /* each part is there, and is brought to its place, by this rank if it `brings` */
    bool brings;
    weft_aside *asides;
} weft_shared_write;

/* Memory that begins as zero, in 4 bytes. */
typedef struct weft_zeros {
    void *memory;
    int64_t count;
} weft_zeros;

/* What a step of each kind is bound to. */
typedef struct weft_bound_kernel {
    weft_launch launch;
    weft_call *call;
    bool
        is_shared; /* the call is that of other steps too: before each launch it gets this one's addresses */
    void (*release)(void *prepared); /* NULL: nothing to give back */
    bool waits;                      /* for the device */
} weft_bound_kernel;

typedef struct weft_bound_loop {
    void *prepared;
    void (*run)(void *prepared, uint64_t run, int64_t trip);
    void (*move)(void *prepared, int number, void *data);
    const weft_node *draws; /* in a scan's body: whose random numbers differ by trip; else NULL */
} weft_bound_loop;

typedef struct weft_bound_exchange {
    weft_flight *flight;
    weft_move_memory *moved; /* [step->n_in] */
    weft_move *move;
    weft_comm *comm;
    bool goes_on; /* the next step does not wait for it */
} weft_bound_exchange;

typedef struct weft_bound_copy {
    const void *from;
    void *to;
    int64_t bytes;
    const int64_t *trip; /* of the scan in each trip of which an element is copied; else 0 */
    int64_t from_moves, to_moves; /* by so many bytes a trip */
} weft_bound_copy;

/* An operand or a result that is elsewhere in each trip: from where it is in the first, by so many bytes a trip. */
typedef struct weft_bound_view {
    int number; /* of the operand; -1 - that of a result */
    char *first;
    int n_moves;
    struct {
        const int64_t *trip;
        int64_t bytes;
    } move[WEFT_MOST_MOVES];
} weft_bound_view;

/* The begin and the end of a region, and a guard. */
typedef struct weft_bound_fence {
    const weft_zeros *zeros; /* [step->n_out] begin: what begins as zero */
    const void *number;      /* guard: what it reads */
    uint32_t back;        /* end: where the next trip goes on; guard: the end of the scan; else 0 */
    bool is_off, is_last; /* guard: this trip does not go on; nor then does another after it */
} weft_bound_fence;

/* One step of one rank, ready to run. What every run needs comes first; of the parts by kind those of other kinds are 0. */
struct weft_bound_step {
    weft_step_run run;
    int64_t top_bytes; /* the highest byte of the arena that the step touches */
    uint32_t spot;     /* as the recorder names it */
    int traffic;       /* its kind among the rank's; -1: it makes none        */
    uint32_t ends;     /* step + 1 of an exchange that is finished before this one */
    uint32_t next_end; /* of an exchange: the next of that list */
    weft_bound_kernel kernel;
    weft_bound_loop loop;
    weft_bound_exchange exchange;
    weft_bound_copy copy;
    weft_bound_fence fence;
    void *scratch;
    int64_t scratch_bytes;
    const weft_bound_view *views; /* [n_views] those of its operands and results that move */
    int n_views;
    const weft_step *step;
    weft_loop_part part;             /* loop, copy: which of its work is this rank's */
    const weft_shared_write *shared; /* NULL: it concerns this rank alone */
};

/* What steps that do alike (likes.h) have in common on a rank. All 0: none of them is bound yet. */
typedef struct weft_bound_like {
    const weft_kernel *kernel; /* of kernel steps: which does them, their call, and its scratch */
    weft_call *call;
    int64_t scratch_bytes;
    const void *loop; /* of loops: the first that was bound */
} weft_bound_like;

/* capture.c: what the device has kept of a run, to do it again. */
typedef struct weft_capturer weft_capturer;

typedef struct weft_stop weft_stop;

struct weft_rank {
    struct weft_program *program;
    int rank;
    const weft_device *device;
    weft_stream *stream;
    weft_recorder *recorder; /* NULL: nothing is recorded */
    weft_memory layout;
    char *arena;
    /* [arena_bytes] scratch of exchanges, where the host does not see the arena; else NULL */
    char *staging;
    void **memory; /* [plan->n_placed] where each placed tensor is; NULL: empty or elsewhere */
    void *homes;   /* those of them that are this program's, in one piece */
    int64_t homes_bytes;
    /* homes and arena lie where other processes see them: they are the communicators' to give back */
    bool is_seen;
    weft_bound_step *steps; /* [plan->n_steps] */
    weft_bound_like *likes; /* [plan->likes.n_steps] */
    int64_t *trips;         /* [graph->n_scans + 1] of each scan, the trip that is made; [0] is 0 */
    uint32_t last_ends;     /* as bound_step.ends, of those that are finished at the end of a run */
    uint32_t n_under_way;   /* exchanges */
    weft_capturer *capturer; /* NULL: not yet looked at */
    weft_tracer *tracer;     /* NULL: nobody asks for its times */
    weft_usage measured;
    weft_traffic *traffic; /* [plan->n_traffic] of the last run */
    weft_error error;
};

struct weft_program {
    weft_plan *plan;
    const weft_graph *user; /* the graph it was compiled from */
    weft_mesh *mesh;
    weft_comms *comms;
    struct weft_program *share;
    int n_shared; /* programs that take variables from this one */
    int n_traces; /* that look at its runs */
    weft_arena *arena;
    weft_rank *ranks; /* [n_local] */
    uint64_t mark;    /* the same on all ranks, and of no other program: its calls are told by it */
    int n_local;
    /* [plan->n_placed] of a variable: the one of `share` that it is; 0: none. And the axes over which ranks hold it in
     * common; 0: each has its own */
    uint32_t *given, *common;
    /* [n_local] by their first rank, [sets of axes]; where others see them */
    weft_barrier *barriers;
    uint32_t seen;          /* the axes along which ranks see each other's memory */
    weft_shared_write *end; /* of a run, where processes hold something in common; else NULL */
    int64_t runs;
    bool has_run; /* what it computes has been computed */
    /* [plan->n_placed] inputs that the host has written, or was given memory of */
    bool *is_written;
    bool inputs_are_written;          /* all of them: nothing more to look at before a run */
    uint32_t n_variables, *variables; /* the user's values [n_variables] */
    uint64_t digest;                  /* of the plan, where several processes have one; else 0 */
    uint32_t first_store; /* the first step that writes a variable; n_steps: none does */
    struct weft_snapshot_guard *guard; /* variables must stay as they are; NULL: they need not */
    weft_stop *stop;                   /* stop.c; NULL: no run was stoppable yet */
    bool is_stoppable, was_stopped;    /* the run that is made; the last one */
};

static inline weft_rank *weft_rank_of(const weft_program *program, int rank)
{
    int at = rank - weft_mesh_first_local(program->mesh);
    return at >= 0 && at < program->n_local ? &program->ranks[at] : NULL;
}

static inline uint32_t weft_all_axes(const weft_program *program)
{
    return (1u << weft_mesh_n_axes(program->mesh)) - 1;
}

/* Of the rank's part of a placed tensor. */
static inline int64_t weft_rank_bytes(const weft_rank *rank, uint32_t placed)
{
    return rank->layout.sizes.bytes[rank->program->plan->likes.of_placed[placed]];
}

/* The addresses of a step's operands and results. */
static inline void weft_point_call(const weft_rank *rank, const weft_step *step, weft_call *call)
{
    for (int i = 0; i < step->n_in; i++)
        call->in[i].data = rank->memory[step->in[i]];
    for (int o = 0; o < step->n_out; o++)
        call->out[o].data = rank->memory[step->out[o]];
}

/* bind.c: turn the plan's steps into pointers, for one rank. Local; the groups must be prepared. */
weft_status weft_bind(weft_rank *rank, weft_error *error);
/* One step alone, that exchanges nothing. */
weft_status weft_bind_step(weft_rank *rank, uint32_t s, weft_error *error);
void weft_unbind(weft_rank *rank);
/* homes.c: what this program's variables are in the one whose variables it shares; memory that other processes see, for
 * all that is this rank's own (collective over the mesh); then, on each rank's own thread, what is its own; then, when all
 * have theirs, where everything is. */
weft_status weft_find_given(weft_program *program, weft_error *error);
weft_status weft_count_homes(weft_rank *rank, weft_error *error); /* rank->homes_bytes */
weft_status weft_take_seen(weft_program *program, weft_error *error);
weft_status weft_take_memory(weft_rank *rank, weft_error *error);
void weft_find_memory(weft_rank *rank);
void weft_give_memory(weft_rank *rank);
/* hear.c: one exchange of the group is free from now on, so that the next call takes no memory for it. */
weft_status weft_reserve_exchange(weft_comm *comm, weft_error *error);
/* hear.c: `bytes` of every rank, to all, where each process has one: *all [n_ranks], to be freed. Collective over the mesh. */
weft_status weft_hear_all(weft_program *program, const void *own, int64_t bytes, void **all,
                          weft_error *error);
/* memory_check.c: whether what all ranks are about to take is free. Collective over the mesh. */
weft_status weft_check_memory(weft_program *program, weft_error *error);
/* shared_variables.c: which variables ranks hold in common; the rank in whose memory one lies; the steps that write them, bound
 * between _begin and _end; _leave: this rank has failed, and will not meet the others. */
weft_status weft_find_common(weft_program *program, weft_error *error);
weft_status weft_open_barriers(weft_program *program, weft_error *error);
weft_status weft_end_shared(weft_rank *rank, weft_error *error);
void weft_barrier_at_end(weft_rank *rank);
/* walk.c: exchanges that have been started are over, whatever comes of them. */
void weft_finish_started(weft_rank *rank);
int weft_holder_of(const weft_program *program, uint32_t placed, int rank);
/* The first of those that differ from a rank along these axes only. */
int weft_first_along(const weft_mesh *mesh, uint32_t axes, int rank);
static inline bool weft_has_others(const weft_program *program)
{
    return program->n_local < weft_mesh_n_ranks(program->mesh);
}
weft_status weft_shared_variables_begin(weft_rank *rank, weft_bound_step *bound, weft_error *error);
void weft_shared_variables_end(weft_rank *rank, weft_bound_step *bound);
void weft_shared_variables_leave(weft_program *program);
void weft_shared_variables_close(weft_program *program);
weft_status weft_run_shared(weft_rank *rank, weft_bound_step *bound, weft_error *error);
/* bind_kernel.c */
weft_status weft_bind_kernel(weft_rank *rank, weft_bound_step *bound, weft_error *error);
void weft_unbind_kernel(weft_bound_step *bound);
/* Whether there is a kernel for every step, for a plan that no rank is going to run: as rank 0 would see it. */
weft_status weft_check_kernels(const weft_plan *plan, weft_error *error);
/* bind_loop.c */
weft_status weft_bind_loop(weft_rank *rank, weft_bound_step *bound, weft_error *error);
/* initial.c: the initial values of one variable's box, in the device's memory, which is zero as it is. */
weft_status weft_initialize(const weft_variable_attributes *variable, uint64_t seed,
                            const weft_view *view, const weft_device *device, weft_stream *stream,
                            weft_error *error);
/* solo.c: weft_plan_measure, where before each round all lanes of a rank go through so many bytes of other things, together. Arguments
 * are not looked at. */
weft_status weft_plan_measure_cold(const weft_program *program, int rank, weft_mesh *host,
                                   int rounds, int64_t others_bytes, double *seconds,
                                   double *spread, weft_error *error);
/* drawn.c: numbers into inputs that nobody has written, for a rank whose steps are timed. In its own memory, and on its thread. */
weft_status weft_draw_inputs(weft_rank *rank, weft_error *error);
/* step.c: how a step of each kind is run. An exchange counted, as it is run. Exchanges under way brought on; one brought to its end, and
 * all in a list (weft_bound_step.ends). */
extern const weft_step_run weft_runners[WEFT_STEPS];
void weft_count_moved(weft_rank *rank, const weft_bound_step *bound);
void weft_bring_on(void *rank);
weft_status weft_finish_exchange(weft_rank *rank, weft_bound_step *bound, weft_error *error);
weft_status weft_finish_exchanges(weft_rank *rank, uint32_t ends, weft_error *error);
/* stamp.c: an exchange of a traced rank brought to its end. */
weft_status weft_trace_finish(weft_rank *rank, weft_bound_step *bound, weft_error *error);
/* walk.c: before a step: what it waits for ends, and what is under way goes on; then step *s, and *s is the one that comes after it.
 * false: it failed, and the rank has given up. Step s alone: returns the one that comes after it. A rank that gives up starts nothing
 * more; what it has started the others count on, so that is brought to its end. */
bool weft_before_step(weft_rank *rank, uint32_t s);
bool weft_run_step(weft_rank *rank, uint32_t *s);
uint32_t weft_do_step(weft_rank *rank, uint32_t s, weft_error *error);
void weft_give_up(weft_rank *rank);
/* capture.c: whether this run is kept, or done again as it was; it; what is kept given back; why nothing is kept, or which step ended a
 * stretch first: NULL: nothing of the kind. */
bool weft_captures(weft_rank *rank);
bool weft_run_captured(weft_rank *rank);
void weft_end_capturing(weft_rank *rank);
const char *weft_why_apart(const weft_rank *rank);
/* values.c: the placed tensor that keeps a user's value; 0: it is not kept. */
uint32_t weft_home_of(const weft_program *program, weft_value value);

#endif
