/* calibrate.h: a machine measured, and written into a file. */
#ifndef WEFT_APPS_CALIBRATE_H
#define WEFT_APPS_CALIBRATE_H

#include "options.h"
#include "weft/research/predict.h"

/* Of programs that train: what they are about to do is measured in place of being done. */
#define APP_CALIBRATE_OPTIONS(group)                                                               \
    {"calibrate",                                                                                  \
     OPTION_TEXT,                                                                                  \
     "",                                                                                           \
     "FILE",                                                                                       \
     group,                                                                                        \
     "in place of training: measure this machine and the program's own kernels, for --machine "    \
     "FILE; a FILE that is there gets the kernels added"},                                         \
        {"calibrate-seconds",                                                                      \
         OPTION_COUNT,                                                                             \
         "60",                                                                                     \
         "N",                                                                                      \
         group,                                                                                    \
         "that --calibrate may take, about",                                                       \
         NULL,                                                                                     \
         1,                                                                                        \
         3600},                                                                                    \
    {                                                                                              \
        "noisy", OPTION_FLAG, "no", "", group,                                                     \
            "with --calibrate: write it even where something else disturbed the measuring"         \
    }

typedef struct app_calibration {
    const char *path, *name; /* name: of the machine; "" is "here" */
    /* whose kernels are measured besides: where the file is there, these alone are, and they are added to it; NULL: none */
    const weft_program *program;
    double seconds;
    bool noisy;
    bool adds; /* of the file that is there the faster figures are kept */
} app_calibration;

/* app_calibrate - measure this machine and write the file, whole or not at all; tells on stderr how far it is, and at the end what
 * there was no time for. Collective over the job. */
weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error);
/* app_calibrate_program - by the options above. Collective over the job. */
weft_status app_calibrate_program(const settings *s, const weft_world *world,
                                  const weft_program *program, weft_error *error);

#endif
