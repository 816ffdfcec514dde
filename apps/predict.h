/* predict.h: --machine: how long a step will take on a machine that is described by a file or a name. */
#ifndef WEFT_APPS_PREDICT_H
#define WEFT_APPS_PREDICT_H

#include "options.h"
#include "weft/research/predict.h"

#define APP_MACHINE_OPTION(group)                                                                  \
    {                                                                                              \
        "machine", OPTION_TEXT, "", "FILE", group,                                                 \
            "plan for this machine, and say how long a step takes on it, before it runs and "      \
            "beside a run: what weft calibrate wrote, or a nominal one, as h100x8"                 \
    }

#define APP_SLOW_OPTION(group)                                                                     \
    {                                                                                              \
        "slow", OPTION_TEXT, "", "RANK:X", group,                                                  \
            "with --machine: one rank that takes X times as long, as 3:1.3"                        \
    }

/* app_predict_check - whether --machine names a machine, and --slow a rank and a factor. Local. */
weft_status app_predict_check(const settings *s, weft_error *error);
/* app_machine - the machine that --machine names, to plan for; NULL where it names none, or one that --calibrate is to write. Own it:
 * weft_machine_model_destroy. Collective over the job, as a file may be missing on one host; Local for a mesh without ranks. */
weft_status app_machine(const settings *s, const weft_mesh *mesh, weft_machine_model **model,
                        weft_error *error);

/* app_predict_slow - whether --slow names a rank: which, and by what, into options. Local. */
bool app_predict_slow(const settings *s, weft_predict_options *options);

/* Of a pipeline: the dim of its stages, how many these are, and the part of its time that each works on nothing. {0}: there is none. */
typedef struct app_pipe {
    const char *dim;
    int64_t stages;
    double idle;
} app_pipe;

/* app_predict - print how long a run of `program` takes on the machine that --machine names, and on what; nothing where it names
 * none. is_whole: each exchange besides. Local. */
weft_status app_predict(const settings *s, const weft_program *program, const app_pipe *pipe,
                        bool is_whole, weft_error *error);
/* app_predict_json - the plan as JSON, with what --machine makes of it. Local. */
weft_status app_predict_json(const settings *s, const weft_program *program, const app_pipe *pipe,
                             FILE *file, weft_error *error);

/* A run beside what was predicted of it. */
enum { APP_COMPARED = 20 }; /* steps, the first of which is left out */
typedef struct app_comparison {
    char machine[80];
    double predicted;           /* seconds of a step; 0: --machine names none */
    weft_predicted_step *steps; /* of the program; NULL: --machine names none */
    double measured[APP_COMPARED];
    int n;
    double since;   /* app_seconds */
    char told[300]; /* once, when there are enough; "" before and after */
} app_comparison;

/* app_comparison_open - what --machine says of a run of `program`. Local. */
weft_status app_comparison_open(app_comparison *comparison, const settings *s,
                                const weft_program *program, weft_error *error);
/* app_comparison_begin, app_comparison_end - around each step. Local. */
void app_comparison_begin(app_comparison *comparison);
void app_comparison_end(app_comparison *comparison);
/* app_comparison_tell - whether `text` [room] has what there is to say: once. Local. */
bool app_comparison_tell(app_comparison *comparison, char *text, size_t room);
void app_comparison_close(app_comparison *comparison);

#endif
