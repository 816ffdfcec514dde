/* predict.h: --machine: how long a step will take on a machine that is described by a file or a name. */
#ifndef WEFT_APPS_PREDICT_H
#define WEFT_APPS_PREDICT_H

#include "options.h"
#include "weft/research/predict.h"

#define APP_MACHINE_OPTION(group)                                                                  \
    {                                                                                              \
        "machine", OPTION_TEXT, "", "FILE", group,                                                 \
            "with the plan: how long a step takes on this machine: what weft calibrate wrote, or " \
            "a nominal one, as h100x8"                                                             \
    }

/* app_predict - print how long a run of `program` takes on the machine that --machine names, and on what; nothing where it names
 * none. Local. */
weft_status app_predict(const settings *s, const weft_program *program, weft_error *error);

#endif
