/* walk.h (private): the state of a walk through a plan, which timeline.c makes, draws.c repeats, sum_up.c reads, and forecast.c puts together. */
#ifndef WEFT_PREDICT_WALK_H
#define WEFT_PREDICT_WALK_H

#include "classes.h"
#include "clock.h"
#include "regions.h"

/* An exchange that a rank has under way. */
typedef struct under_way {
    uint32_t step, until; /* it has to be over before the step after `until` */
    double begin, end, cpu;
    double late;    /* weft_level.late_seconds */
    double crowded; /* weft_level.crowded_seconds where there are more ranks than cores, else 0 */
} under_way;

/* One kind of rank. */
typedef struct rank_clock {
    int rank;
    double now;              /* when what it computes goes on */
    double *over;            /* [n_queues] when the last exchange of each queue is over */
    under_way *flights;      /* [n_flights] in the order in which they began */
    uint32_t n_flights, due; /* due: the least `until` of these */
    double *seconds;         /* [n_steps] of each step once, undisturbed */
    double *usual;           /* [n_steps] the same without noise; NULL: nothing is drawn */
    double *spread;          /* [n_steps] how much longer its mean is, as a part; NULL: the same */
} rank_clock;

/* What is summed up over a run as the first kind of rank sees it, by step: numbers of all its times. */
typedef struct sums {
    double times, total;
    double waits, charged; /* for an exchange: until it is over; of the work beside it */
    double late;           /* of waits: until the last of the group has come */
    double queued;         /* between when it was come to and its begin */
    double elapsed;
} sums;

typedef struct timeline {
    const weft_plan *plan;
    weft_error *error;
    weft_clock clock;
    weft_classes classes;
    rank_clock *clocks;  /* [classes.n] */
    uint8_t *source;     /* [n_steps] weft_time_source */
    sums *sums;          /* [n_steps] */
    double besides;      /* seconds of a run besides its steps */
    double *begin, *end; /* [n_steps] of the first time; begin below 0: not yet */
    weft_regions regions;
} timeline;

/* The axes over which a step exchanges; 0: it does not. */
static inline uint32_t weft_axes_of(const weft_step *step)
{
    return step->kind == WEFT_STEP_CONVERT ? step->convert.axes : 0;
}

/* weft_walk_open - clocks for t->classes, with the seconds of all steps by t->clock; all lives in `arena`. Local. */
weft_status weft_walk_open(timeline *t, weft_arena *arena, const weft_predict_options *options);
/* weft_walk - the whole plan from time 0, by the clocks' seconds. Local. */
weft_status weft_walk(timeline *t);
/* weft_walk_seconds - of the run: when the last rank is at its end, and what is besides. Local; pure. */
double weft_walk_seconds(const timeline *t);
/* weft_walk_sum_up - what a walk has to tell. steps: [n_steps], or NULL. Local. */
weft_status weft_walk_sum_up(const timeline *t, const weft_predict_options *options,
                             weft_prediction *prediction, weft_predicted_step *steps);
/* weft_walk_draw - the quantiles of options.draws walks with noise. What the walk before had is lost. Local. */
weft_status weft_walk_draw(timeline *t, int draws, weft_prediction *prediction);

#endif
