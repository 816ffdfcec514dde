/* predict.h: how long a run takes, before it runs.
 *
 *     WEFT_TRY(weft_machine_model_read("epyc.json", &model, error));           (weft calibrate writes one)
 *     WEFT_TRY(weft_plan_predict(program, model, NULL, &prediction, error));
 *     printf("%.1f ms, of which %.1f wait for exchanges\n", 1e3 * prediction.seconds, 1e3 * prediction.exposed_seconds);
 *
 * A machine model says how fast a machine computes and exchanges, in measured points. A prediction walks through the plan with a
 * clock for each queue of each kind of rank. A step begins after the steps it waits for. An exchange begins when the last rank of
 * its group has come to it. Exchanges may use the ranks' own cores; then computing takes longer meanwhile.
 *
 * All functions are Local. A prediction is a pure function of plan, model and options: the same bits everywhere.
 */
#ifndef WEFT_RESEARCH_PREDICT_H
#define WEFT_RESEARCH_PREDICT_H

#include "weft/research/plan.h"

WEFT_BEGIN

/* weft_machine_model_read - from a file, or of a nominal machine ("h100x8"; weft_machine_model_names).
 *
 * name     a path where there is a / or a point in it; else a nominal machine's name
 * model    own it: weft_machine_model_destroy
 * returns  WEFT_USAGE for a name that there is not (with the nearest), or a file that is no model, with the place and what
 *          should stand there; WEFT_IO where it cannot be read */
WEFT_API WEFT_MUST_CHECK weft_status weft_machine_model_read(const char *name,
                                                             weft_machine_model **model,
                                                             weft_error *error);
/* NULL, or what it points to, may be NULL. */
WEFT_API void weft_machine_model_destroy(weft_machine_model **model);
/* The names of the nominal machines, one by one; NULL past the end. */
WEFT_API const char *weft_machine_model_names(int index);
/* weft_machine_model_write - as a file: JSON, sorted, units in the names. returns WEFT_IO where it cannot be written. */
WEFT_API WEFT_MUST_CHECK weft_status weft_machine_model_write(const weft_machine_model *model,
                                                              FILE *file, weft_error *error);
/* Its own name, and the processor that it is of; "" without a model. Borrowed. */
WEFT_API const char *weft_machine_model_name(const weft_machine_model *model);
WEFT_API const char *weft_machine_model_processor(const weft_machine_model *model);
/* weft_machine_model_host_ranks - how many of n_ranks ranks are on each host: as many as its levels say, else all. 0 without a model. */
WEFT_API int weft_machine_model_host_ranks(const weft_machine_model *model, int n_ranks);
/* When it was measured, or from what it was made. */
WEFT_API const char *weft_machine_model_made(const weft_machine_model *model);

/* weft_machine_model_hash - equal for machines that say the same, whatever file they are from; 0 without a model, and where memory
 * is refused. */
WEFT_API uint64_t weft_machine_model_hash(const weft_machine_model *model);

/* weft_machine_model_differs - whether it was measured on another machine than this, or with other kernels, and the sentence that
 * says so. Of nominal machines, and of files that do not say with what they were measured, it says nothing.
 *
 * runs_here  what is predicted runs on this machine: its processor and its cores are compared too; else the kernels alone
 * text       [room] the sentence; may be NULL when room is 0 */
WEFT_API bool weft_machine_model_differs(const weft_machine_model *model, bool runs_here,
                                         char *text, size_t room);

/* weft_machine_model_merge - what two measurements of one machine say, in one: of each figure the faster one, since others on a
 * machine make times longer, and nothing makes them shorter.
 *
 * into     is changed; where this fails, it may have some of the other's figures
 * returns  WEFT_USAGE where processor, cores or levels differ */
WEFT_API WEFT_MUST_CHECK weft_status weft_machine_model_merge(weft_machine_model *into,
                                                              const weft_machine_model *from,
                                                              weft_error *error);

typedef struct weft_machine_rate {
    char what[72]; /* "2 x 1 lanes: products, f32, 2.68e+08 flops" */
    double value;
    const char *unit; /* "GFLOP/s" */
} weft_machine_rate;
/* weft_machine_model_rates - what it says, figure by figure.
 *
 * rates    [room] the first of them; may be NULL when room is 0
 * returns  how many there are */
WEFT_API int weft_machine_model_rates(const weft_machine_model *model, weft_machine_rate *rates,
                                      int room);

/* Whence seconds are. */
typedef enum weft_time_source {
    WEFT_TIME_MEASURED, /* this very kernel was measured, with these sizes */
    WEFT_TIME_SIMILAR,  /* the same kernel with other sizes */
    WEFT_TIME_RATES,    /* rates of arithmetic, memory and links alone */
    WEFT_TIME_SOURCES
} weft_time_source;
/* "measured"; "?" for no source */
WEFT_API const char *weft_time_source_name(weft_time_source source);

typedef struct weft_predict_options {
    /* One rank that is slower than others: its work takes slow_by times as long. 0 and 1: none is */
    int slow_rank;
    double slow_by;
    int host_ranks; /* ranks of the mesh on each host; 0: as many as the model's levels say, else all */
    /* How often the run is drawn anew with the spreads of the machine's file, for quantiles: from 0 to 10,000; 200 are plenty */
    int draws;
    /* The stages of a pipeline are a dim of this name and size. Steps of forward and backward passes with such results do nothing of
     * use for the part pipe_idle of their time. NULL: there is no pipeline */
    const char *pipe_dim;
    int64_t pipe_size;
    double pipe_idle; /* from 0 to 1: (stages - 1) / (stages - 1 + micro-batches) */
} weft_predict_options;

/* A queue (weft_plan_queue_at), as rank 0 sees it. */
typedef struct weft_predicted_queue {
    /* of the one that computes: its work, with what exchanges take of the cores meanwhile; of others: their exchanges */
    double busy_seconds;
    /* of the one that computes: for exchanges. Of others: exchanges that the rank has come to wait for the last of their group, and
     * for those before them */
    double waiting_seconds;
    double exposed_seconds; /* what its exchanges make the run longer, late ranks included */
} weft_predicted_queue;
enum { WEFT_MAX_QUEUES = 1 << WEFT_MAX_AXES };

/* All exchanges along an axis, as rank 0 sees them. One over several axes counts for each. */
typedef struct weft_predicted_axis {
    double bytes; /* as weft_traffic has them */
    double seconds;
    double exposed_seconds; /* without waiting for late ranks: the rest is hidden */
} weft_predicted_axis;

/* One run, as rank 0 sees it; but `seconds`. */
typedef struct weft_prediction {
    double seconds; /* from the begin to the end of the last rank, and besides_seconds */
    double phase_seconds[WEFT_PHASES];
    double work_seconds; /* computing, as if nobody exchanged anything */
    double
        exchange_seconds; /* all exchanges, one after the other, from when the last of a group has come */
    double exposed_seconds; /* of these and of waiting for others: what makes the run longer */
    double late_seconds;    /* of that: waiting for ranks that come later */
    double source_seconds[WEFT_TIME_SOURCES]; /* of work and exchanges */
    int n_kinds; /* of ranks that were looked at: others are as one of these */
    int n_queues, n_axes;
    weft_predicted_queue queues[WEFT_MAX_QUEUES]; /* [n_queues] */
    weft_predicted_axis axes[WEFT_MAX_AXES];      /* [n_axes] of the mesh */
    double bubble_seconds; /* of a pipeline: what its stages do on nothing (options.pipe_dim) */
    /* with options.draws: half of the runs take no longer than the median, 95 of 100 no longer than slow_seconds; else 0 */
    double median_seconds, slow_seconds;
    /* of temporaries: of their one block, the most that are alive at once, and the first step at which they are */
    int64_t arena_bytes, peak_bytes;
    int fullest;
    /* of `seconds`, and of no phase: inputs written before the run, ranks woken for it, a number read after it */
    double besides_seconds;
} weft_prediction;

/* One step, all its times together, as rank 0 sees it. */
typedef struct weft_predicted_step {
    double seconds;         /* once, undisturbed */
    double begin, end;      /* of its first time, from the begin of the run */
    double total_seconds;   /* of all its times */
    double exposed_seconds; /* exchanges: what they make the run longer, of all times */
    weft_time_source source;
    double late_seconds; /* of these: waiting for ranks that come later */
    /* by how much it brings the rank forward, of all times, waiting included: all together they are rank 0's run */
    double elapsed_seconds;
    double times;        /* how often a run does it */
    int64_t alive_bytes; /* temporaries alive while it goes on */
} weft_predicted_step;

/* weft_predicted_hidden - the part of an exchange's time that makes the run no longer: 0 to 1; 0 of what takes no time. */
WEFT_API double weft_predicted_hidden(double seconds, double exposed_seconds);

/* weft_plan_predict - how long one run of a program takes.
 *
 * program   may be of a mesh without ranks (weft_mesh_plan)
 * options   NULL: none
 * returns   WEFT_USAGE for a rank that is not there, or a factor that is not above 0
 * cost      of a plan of 12,000 steps 4 ms for each kind of rank, and 9 ms for 200 draws; scans are walked through until their trips
 *           take equally long */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_predict(const weft_program *program,
                                                       const weft_machine_model *model,
                                                       const weft_predict_options *options,
                                                       weft_prediction *prediction,
                                                       weft_error *error);
/* weft_plan_predict_steps - the same with each step, by its number.
 *
 * steps  [weft_plan_n_steps(program)] out */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_predict_steps(const weft_program *program,
                                                             const weft_machine_model *model,
                                                             const weft_predict_options *options,
                                                             weft_prediction *prediction,
                                                             weft_predicted_step *steps,
                                                             weft_error *error);

/* Exchanges of one kind that one op of a call of the program asks for, for one reason, in one phase, over the same axes: those of all
 * layers. */
typedef struct weft_priced_exchange {
    int first, n_steps; /* the first of their steps, and how many there are */
    double times;       /* how often a run does them */
    double seconds;     /* that they take, as rank 0 sees it, hidden ones included */
    /* by how many seconds the run is shorter where they take no time, which is more or less than what is waited for them: others wait
     * behind them, and ranks that come late are still met. It is the slowest rank's run */
    double price;
} weft_priced_exchange;

/* weft_plan_prices - what exchanges really cost, the dearest first.
 *
 * options  NULL: none; `draws` is not looked at
 * prices   [room] out: the first of them; may be NULL when room is 0
 * n        out: how many there are
 * returns  as weft_plan_predict
 * cost     that of a prediction, and for each group a walk through the plan, sixteen at once */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_prices(const weft_program *program,
                                                      const weft_machine_model *model,
                                                      const weft_predict_options *options,
                                                      weft_priced_exchange *prices, int room,
                                                      int *n, weft_error *error);

/* weft_predict_print - the prediction as text: the whole, by phase, queue, axis; what takes longest, and whence that is known; memory
 * from step to step. weft_predict_json - the plan as of weft_plan_json, and in its "prediction" all of it, step by step.
 *
 * is_whole  each exchange besides, with what of it is hidden
 * returns   as weft_plan_predict; WEFT_IO where it cannot be written */
WEFT_API WEFT_MUST_CHECK weft_status weft_predict_print(const weft_program *program,
                                                        const weft_machine_model *model,
                                                        const weft_predict_options *options,
                                                        bool is_whole, FILE *file,
                                                        weft_error *error);
WEFT_API WEFT_MUST_CHECK weft_status weft_predict_json(const weft_program *program,
                                                       const weft_machine_model *model,
                                                       const weft_predict_options *options,
                                                       FILE *file, weft_error *error);

/* weft_plan_measure - how long each step that computes takes here, done as `rank` of the program would do it in a run.
 * Exchanges are left out. All ranks of `host` do so at once, each with its own memory and lanes.
 *
 * program  of any mesh, with ranks or without
 * host     all its ranks are of this process
 * rounds   from 1 to 1,000, after one that is not counted. Variables begin with their initial values. Inputs are made: of floats a
 *          wave, ids are drawn below the size of the dim that they are ids of; scalars, and integers that are no ids, are zeros
 * seconds  [weft_plan_n_steps(program)] out: of each step the mean of its fastest quarter, and of the ranks; 0 of steps
 *          that compute nothing
 * spread   [the same] out: how much longer the mean of all rounds is, as a part of that; NULL: not asked for
 * returns  WEFT_USAGE where so many ranks need more memory than is free
 * cost     rounds + 1 times what the rank computes */
WEFT_API WEFT_MUST_CHECK weft_status weft_plan_measure(const weft_program *program, int rank,
                                                       weft_mesh *host, int rounds, double *seconds,
                                                       double *spread, weft_error *error);

/* ---- measuring a machine --------------------------------------------------------------------------- */

typedef struct weft_calibrate_options {
    const char *name; /* of the model; NULL: "here" */
    /* Whose kernels are measured besides: of one rank of each kind. They may be of meshes without ranks */
    const weft_program *const *programs;
    int n_programs;
    double
        seconds; /* that it may take, about; 0: 60. It leaves out the least informative parts first */
    bool noisy; /* what something else on the machine has disturbed is taken all the same */
    /* what the programs' kernels are added to, of what it has already the faster: nothing else is measured; NULL: all is measured.
     * Processes may lack it that the root has; their model is then not whole */
    const weft_machine_model *base;
    /* told what is measured next, and which part of the time is over; NULL: nobody */
    void (*progress)(void *context, const char *what, double part);
    /* told at the end what there was no time for, and how many of them; NULL: nobody */
    void (*left_out)(void *context, const char *what, int n);
    void *context;
} weft_calibrate_options;

/* weft_calibrate - a model of this machine, and of the links between the processes of the job. Collective over the job.
 *
 * world    one process: ranks are threads; 1, 2, 4, ... up to its cores are measured. Several: as many a host as were started
 * options  NULL: none
 * model    own it
 * returns  WEFT_USAGE for a machine that is too noisy, and for a clock that leaps
 * cost     a minute; memory for a few hundred MiB. weft_lanes_choose is 0 afterwards */
WEFT_API WEFT_MUST_CHECK weft_status weft_calibrate(const weft_world *world,
                                                    const weft_calibrate_options *options,
                                                    weft_machine_model **model, weft_error *error);

WEFT_END

#endif
