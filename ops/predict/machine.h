/* machine.h (private): what is known of a machine's speed, as its file says it (docs/prediction.md has the format).
 *
 * A *load* is how many ranks compute on a host at once, and with how many lanes each. Each measured load has rates by size, and
 * single kernels. Each kind of exchange has seconds by size, for a level and a number of ranks. The latency and the rate of its
 * level stand for an exchange without such points.
 */
#ifndef WEFT_PREDICT_MACHINE_H
#define WEFT_PREDICT_MACHINE_H

#include "weft/research/predict.h"
#include "workload.h"

#include <jansson.h>

/* Values at sizes, ascending; between two the logarithm is linear, and beyond the ends the end's counts. */
typedef struct weft_curve {
    int n;
    double *size, *value; /* [n] */
} weft_curve;

/* One kernel, or loop, or copy, as it was measured. */
typedef struct weft_sample {
    weft_workload work;
    double seconds, spread; /* spread: how much longer the mean of its times is, as a part */
    int n_seen;             /* how many steps it is the mean of; 0: read from a file */
} weft_sample;

typedef struct weft_load {
    int ranks, lanes;
    double step_seconds; /* of a step that does nothing */
    double run_seconds;  /* that a run takes besides its steps; 0: the file does not say */
    /* into a rank's inputs, while those of all ranks are written; 0: the file does not say, and it takes no time */
    double input_bytes_per_second;
    weft_curve flop_rate[WEFT_DTYPES]; /* a second, by flops; of none: f32's */
    weft_curve byte_rate;              /* a second, by bytes of all operands and results */
    double other_act;                  /* seconds an element of an act that is not named */
    int n_acts;
    weft_act *acts; /* [n_acts] `elements` is seconds for each */
    int n_samples;
    weft_sample *samples; /* [n_samples] */
} weft_load;

/* Where ranks meet: within a process, a host, or between hosts. */
typedef struct weft_level {
    const char *name;
    int ranks; /* neighbours of so many meet there; 0: all */
    double latency_seconds, bytes_per_second;
    double cpu; /* the part of a rank's computing that an exchange takes while it goes on: 0 to 1 */
    double
        late_seconds; /* that an exchange takes more where a rank comes late, besides how late it is */
    /* that it takes more where ranks have no core each: who has come early sleeps, and computes no sooner than a core is free */
    double crowded_seconds;
} weft_level;

/* Work and an exchange that go on at once, as they were measured. */
typedef struct weft_slow {
    const char *work; /* "product", "loop" */
    weft_convert_kind kind;
    int level;
    double cpu; /* of this work, as weft_level.cpu */
} weft_slow;

typedef struct weft_exchange_curve {
    weft_convert_kind kind;
    int level, ranks;   /* of a group */
    weft_curve seconds; /* by bytes of one rank's part, were it whole (weft_exchange.bytes) */
} weft_exchange_curve;

enum { WEFT_MAX_LEVELS = 8 };

struct weft_machine_model {
    weft_arena *arena;
    const char *name, *processor, *made; /* made: when it was measured, or from what it was made */
    const char
        *library; /* whose kernels were measured: weft_machine_library; "": the file does not say */
    int n_sources;
    const char **sources; /* [n_sources] of numbers that nobody measured */
    int cores;            /* of a host */
    double spread;        /* of the probes, as a part */
    int n_loads;
    weft_load *loads; /* [n_loads] ascending by ranks */
    int n_levels;
    weft_level levels[WEFT_MAX_LEVELS]; /* from the innermost */
    int n_exchanges;
    weft_exchange_curve *exchanges; /* [n_exchanges] */
    int n_slows;
    weft_slow *slows; /* [n_slows] */
};

/* machine.c: a value between those that are there; 0 of an empty curve. One that is proportional to size is kept so beyond the ends. */
double weft_curve_at(const weft_curve *curve, double size);
double weft_curve_along(const weft_curve *curve, double size);
/* The load that is nearest to `ranks` on a host: the last that has no more, else the first. */
const weft_load *weft_load_of(const weft_machine_model *model, int ranks);
/* By how much longer work takes where so many ranks of a host share what a load was measured with. The fastest of measured times is that
 * of a rank that has a core to itself, also where there were more ranks than cores. Pure. */
double weft_load_crowd(const weft_machine_model *model, const weft_load *load, int host_ranks);
/* The level at which a group whose members are up to `span` ranks apart meets. */
int weft_level_of(const weft_machine_model *model, int first_rank, int last_rank);

/* machine_read.c, machine_write.c */
weft_status weft_machine_model_parse(const char *text, size_t bytes, const char *path,
                                     weft_machine_model **model, weft_error *error);
/* The same again, in memory of its own: written and read, so that it fails as a file with these figures would. */
weft_status weft_machine_model_copy(const weft_machine_model *model, weft_machine_model **copy,
                                    weft_error *error);
json_t *weft_machine_model_json(const weft_machine_model *model);

/* machine_here.c: what the kernels of this process are: "weft 0.1.0, OpenBLAS 0.3.21 SkylakeX". In static memory. */
const char *weft_machine_library(void);

/* machine_make.c: room for a list of n entries that may become longer there. */
int weft_machine_room(int n);
/* A model put together: a load stands behind those with fewer ranks, samples of one id become their mean. Names are copied. */
weft_status weft_machine_model_make(const char *name, const char *processor, const char *made,
                                    int cores, weft_machine_model **model, weft_error *error);
weft_status weft_machine_add_load(weft_machine_model *model, int ranks, int lanes, weft_load **load,
                                  weft_error *error);
weft_status weft_curve_add(weft_arena *arena, weft_curve *curve, double size, double value,
                           weft_error *error);
weft_status weft_machine_add_act(weft_machine_model *model, weft_load *load, const char *op,
                                 double seconds, weft_error *error);
weft_status weft_machine_add_sample(weft_machine_model *model, weft_load *load,
                                    const weft_workload *work, double seconds, double spread,
                                    weft_error *error);
weft_status weft_machine_add_slow(weft_machine_model *model, const weft_slow *slow,
                                  weft_error *error);
weft_status weft_machine_add_level(weft_machine_model *model, const weft_level *level,
                                   weft_error *error);
weft_status weft_machine_add_exchange(weft_machine_model *model, weft_convert_kind kind, int level,
                                      int ranks, weft_exchange_curve **exchange, weft_error *error);

/* rates.c: the sample of this very workload; NULL: it was not measured. */
weft_sample *weft_load_sample(const weft_load *load, const weft_workload *work);
/* What of a sample is the same, whatever is compared with it: sizes in octaves, and the logarithm of how many times as long it takes as
 * rates say. */
typedef struct weft_mark {
    double flops, acts, sizes[WEFT_WORK_SIZES], factor;
} weft_mark;
/* weft_marks_make - of all samples of a load as they are now. marks: [n_samples] in `arena`. Local. */
weft_status weft_marks_make(const weft_load *load, weft_arena *arena, weft_mark **marks,
                            weft_error *error);
/* Seconds of a workload where so many ranks of a host do the like at once. It names no source for what takes no time.
 * marks: of the load; NULL: samples of other sizes do not count. */
double weft_work_seconds(const weft_load *load, const weft_mark *marks, const weft_workload *work,
                         weft_time_source *source);
/* How far apart the quartiles of its time are, as a part of it: of the very kernel where it was measured, else 0. */
double weft_work_spread(const weft_load *load, const weft_workload *work);
/* Where the ranks of a group meet: how many of them within each level, the one that is asked for too, and the first level at which all
 * do. */
typedef struct weft_meeting {
    int level;
    double near[WEFT_MAX_LEVELS]; /* [n_levels] */
} weft_meeting;
/* Seconds of an exchange, of `bytes` and `link_bytes` as weft_exchange has them. What was measured counts for its level, however many of
 * a group were near each other. By rates a ring exchanges within the nearest level first, so through a farther link comes
 * only what those near have together. */
double weft_exchange_seconds(const weft_machine_model *model, const weft_meeting *meeting,
                             const weft_exchange *exchange, weft_time_source *source);

/* What an exchange of a kind takes of a rank's computing, of all work that was measured beside it the mean; else its level's. */
double weft_exchange_share(const weft_machine_model *model, int level, weft_convert_kind kind);

#endif
