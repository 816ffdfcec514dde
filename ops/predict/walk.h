/* walk.h (private): a plan walked through by several runs at once.
 *
 * timeline.c finds what a walk reads of each step, walk.c goes through the steps, columns.c does the arithmetic. draws.c and prices.c
 * have many runs, which differ in the seconds of steps alone; sum_up.c reads what one run has noted; forecast.c puts a prediction
 * together. A walk takes no memory, compares no texts and looks nothing up.
 */
#ifndef WEFT_PREDICT_WALK_H
#define WEFT_PREDICT_WALK_H

#include "classes.h"
#include "clock.h"

/* What a walk reads of a step. */
typedef struct walked_step {
    uint32_t kind; /* among plan->likes.steps */
    uint32_t end;  /* of the begin of a scan: the step that ends it; else 0 */
    uint32_t
        meeting; /* of an exchange: among the timeline's meetings, + 1; 0: it exchanges nothing */
    uint32_t flight; /* of an exchange: its number among exchanges */
    uint32_t until;  /* of an exchange: it has to be over before the step after this one */
    uint32_t queue;
    bool is_ahead; /* the last trip leaves it out */
} walked_step;

/* What exchanges of a kind over the same axes have in common, for each kind of rank. */
typedef struct meeting {
    uint32_t axes;
    weft_convert_kind kind;
    int *first; /* [classes.n] the first kind of rank of its group */
    /* [classes.n] the part of a rank's cores that an exchange takes; weft_level.late_seconds; weft_level.crowded_seconds where there are
     * more ranks than cores, else 0 */
    double *cpu, *late, *crowded;
} meeting;

typedef struct timeline {
    const weft_plan *plan;
    weft_error *error;
    weft_clock clock;
    weft_classes classes;
    walked_step *steps;                    /* [n_steps] */
    meeting *meetings;                     /* [n_meetings] */
    uint32_t n_meetings, n_flights, depth; /* depth: of scans in scans */
    /* [likes.n_steps][classes.n] of a kind of step once, undisturbed; and how much longer its mean is, as a part */
    double *usual, *spread;
    uint8_t *ways;   /* [likes.n_steps][classes.n] of an exchange (weft_step_ways) */
    uint8_t *source; /* [likes.n_steps] weft_time_source, of the first kind of rank */
    double *
        wire_bytes; /* [likes.n_steps] of an exchange, as rank 0 counts them (weft_step_wire_bytes) */
    double besides; /* seconds of a run besides its steps */
} timeline;

/* What is summed up over a run as the first kind of rank sees it, by step: numbers of all its times. */
typedef struct sums {
    double times, total;
    double waits, charged; /* for an exchange: until it is over; of the work beside it */
    double late;           /* of waits: until the last of the group has come */
    double queued;         /* between when it was come to and its begin */
    double elapsed;
} sums;

/* What the first run notes besides when it is over. */
typedef struct notes {
    sums *sums;          /* [n_steps] */
    double *begin, *end; /* [n_steps] of the first time; begin below 0: not yet */
} notes;

/* The exchanges that have to be over behind a step, in the order in which they began: steps + 1; 0: there is none. */
typedef struct due {
    uint32_t first, last;
} due;

/* A queue's exchanges that are not over in all columns, one after the other: those that began ahead of it are over in a column by the time
 * that its head begins. */
typedef struct queue_line {
    uint32_t *steps; /* [n] */
    uint32_t n, room;
    uint32_t *at;              /* [columns] the head's place in `steps`; n: there is none */
    double *begin, *end, *cpu; /* [columns] the head's; infinity: there is none */
    bool is_live;              /* some column has a head */
} queue_line;

enum { WAYS = 2 }; /* bits of weft_step_ways */

/* A column is a kind of rank of a run: kind c of run i is column c * n_runs + i. */
typedef struct runs {
    const timeline *t;
    int n_runs, n; /* n: columns */
    /* the seconds of a step in each column: [n] out */
    void (*tempo)(struct runs *runs, uint32_t s, double *seconds);
    void *context;
    const notes *notes; /* NULL: nothing is noted */
    meeting *meetings;  /* [t->n_meetings] with cpu, late and crowded by column */
    double *now;        /* [n] when what it computes goes on */
    double *over;       /* [WAYS][n_queues][n] when the queue's last exchange of that way is over */
    double *begin, *end; /* [n_flights][n] of each exchange's last time */
    queue_line *lines;   /* [n_queues] */
    uint32_t n_live;     /* lines that are */
    due *due;            /* [n_steps] */
    uint32_t
        *next; /* [n_steps] of an exchange: the one that is waited for behind it, + 1; 0: none */
    uint32_t reached;                       /* all that are due behind earlier steps are over */
    double *seconds, *left, *taken, *until; /* [n] of the step that is walked */
    /* [depth] of the scans that are walked: all times, before and after the last trip and before the one ahead of it; and what
     * was noted before the last one */
    double **times;
    sums **before;
} runs;

/* The axes over which a step exchanges; 0: it does not. */
static inline uint32_t weft_axes_of(const weft_step *step)
{
    return step->kind == WEFT_STEP_CONVERT ? step->convert.axes : 0;
}

/* weft_walk_open - all of it, of t->plan, which is indexed, on a machine; in `arena`. Local. */
weft_status weft_walk_open(timeline *t, const weft_machine_model *model,
                           const weft_predict_options *options, weft_arena *arena);
/* The usual seconds of a step for the first kind of rank, and whence they are. */
static inline double weft_first_seconds(const timeline *t, uint32_t s)
{
    return t->usual[(size_t)t->steps[s].kind * (size_t)t->classes.n];
}

/* weft_notes_open - none yet; in `arena`. One walk writes them. Local. */
weft_status weft_notes_open(const timeline *t, weft_arena *arena, notes *to);
/* weft_runs_open - n_runs runs with the usual seconds; in `arena`. noted: of the first; NULL: nothing is noted. Local. */
weft_status weft_runs_open(runs *r, const timeline *t, int n_runs, const notes *noted,
                           weft_arena *arena);
/* As many runs as are walked at once best, of `most`. */
int weft_runs_at_once(const timeline *t, int most);
/* weft_walk - the whole plan from time 0. Local. */
void weft_walk(runs *r);
/* weft_walk_seconds - of a run: when its last rank is at its end, and what is besides. Local; pure. */
double weft_walk_seconds(const runs *r, int run);
/* weft_walk_sum_up - what a walk has noted. steps: [n_steps], or NULL. Local. */
void weft_walk_sum_up(const runs *r, const weft_predict_options *options,
                      weft_prediction *prediction, weft_predicted_step *steps);
/* weft_walk_draw - the quantiles of so many runs with noise. Local. */
weft_status weft_walk_draw(const timeline *t, int draws, weft_arena *arena,
                           weft_prediction *prediction);

#endif
