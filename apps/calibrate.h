/* calibrate.h: a machine measured, and written into a file. */
#ifndef WEFT_APPS_CALIBRATE_H
#define WEFT_APPS_CALIBRATE_H

#include "weft/research/predict.h"

typedef struct app_calibration {
    const char *path, *name; /* name: of the machine; "" is "here" */
    const weft_program
        *program; /* whose kernels are measured and put to the file, if it is there; NULL: none */
    double seconds;
    bool noisy;
    bool adds; /* of the file that is there the faster figures are kept */
} app_calibration;

/* app_calibrate - measure this machine and write the file, whole or not at all; tells on stderr how far it is. Collective over the
 * job. */
weft_status app_calibrate(const weft_world *world, const app_calibration *calibration,
                          weft_error *error);

#endif
