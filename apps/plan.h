/* plan.h: --dry-run: the plan of a training step in place of the training, for every program that trains. */
#ifndef WEFT_APPS_PLAN_H
#define WEFT_APPS_PLAN_H

#include "calibrate.h"
#include "held.h"
#include "json.h"
#include "predict.h"
#include "weft/collectives.h"

#define APP_PLAN_OPTIONS(group)                                                                    \
    {"dry-run", OPTION_FLAG,                                                                       \
     "no",      "[=all]",                                                                          \
     group,     "print the plan of a step; needs no ranks; all: each tensor and each exchange",    \
     "all"},                                                                                       \
        APP_SLOW_OPTION(group), APP_CALIBRATE_OPTIONS(group),                                      \
        {"json", OPTION_FLAG, "no", "", group, "the plan as JSON"},                                \
    {                                                                                              \
        "explain", OPTION_FLAG, "no", "", group,                                                   \
            "with the plan: the ways that were compared for every op and axis, and their prices"   \
    }

/* In front of a training: its plan stays beside what it measures. */
#define APP_KEEP_PLAN_OPTION(group)                                                                \
    {                                                                                              \
        "keep-plan", OPTION_FLAG, "no", "", group,                                                 \
            "write the plan into the folder of --run, as plan.json: some MB; weft report shows it" \
    }

/* app_only_plans - whether a plan is made in place of a training: it is printed, or its kernels are measured. Local; pure. */
bool app_only_plans(const settings *s);
/* app_plan_check - whether options that are about the plan come with --dry-run, and name a machine. Local. */
weft_status app_plan_check(const settings *s, weft_error *error);
/* What is told of a plan besides. */
typedef struct app_plan_asked {
    app_pipe pipe; /* of a pipeline, else {0} */
    /* for --json: what would help, a list, or NULL. Own it. On the root alone, after --calibrate */
    weft_status (*advise)(void *context, json_t **list, weft_error *error);
    void *context;
    const app_held *held; /* compiled beside it; NULL: none */
} app_plan_asked;

/* app_plan - of a program on a mesh without ranks: what --calibrate measures, then by the root and for --dry-run the plan, and how long --machine takes
 * for it. Collective over the job where --calibrate is given. */
weft_status app_plan(const settings *s, const weft_world *world, const weft_program *program,
                     const app_plan_asked *asked, weft_error *error);
/* app_plan_keep - for --keep-plan: plan.json in the folder of --run, which is there; by the root alone. Local. */
weft_status app_plan_keep(const settings *s, const weft_program *program, const app_pipe *pipe,
                          weft_error *error);

#endif
