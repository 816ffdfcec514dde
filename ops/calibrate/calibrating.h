/* calibrating.h (private): a calibration under way. */
#ifndef WEFT_CALIBRATE_CALIBRATING_H
#define WEFT_CALIBRATE_CALIBRATING_H

#include "calibrate.h"

enum { WEFT_CALIBRATE_RANKS = 64, WEFT_CALIBRATE_LEFT = 16, WEFT_CALIBRATE_LOADS = 32 };

typedef struct calibrating {
    const weft_calibrate_options *options;
    weft_machine_model *model;
    weft_error *error;
    weft_world alone; /* this process */
    weft_mesh *host;  /* the ranks of the load that is measured */
    weft_load *load;
    double begin, budget; /* seconds, of this pass */
    int pass, n_passes;
    const weft_subject *subject; /* that is measured */
    int64_t cold_bytes; /* of other things that a rank goes through before each round; 0: none */
    double probed;      /* seconds of the probe */
    /* of each load the fastest of all passes, and the next; 0: none yet */
    double probes[WEFT_CALIBRATE_LOADS][2];
    bool is_one; /* process, whose threads are all ranks */
    bool adds;   /* to a model that is there: kernels of programs alone */
    int n_left;
    struct {
        const char *what;
        int n;
    } left[WEFT_CALIBRATE_LEFT]; /* [n_left] what there was no time for */
} calibrating;

/* calibrating.c: the part of this pass that is over; what is measured next; what there is no time for. */
double weft_calibrating_part(const calibrating *c);
void weft_calibrating_tell(const calibrating *c, const char *what);
void weft_calibrating_leave(calibrating *c, const char *what);

/* runs.c: what a run of the load's ranks takes besides its steps. mesh: of the load's ranks, each with a rank's lanes; c->host: those
 * that are of this process. Collective over the job. */
weft_status weft_calibrate_runs(calibrating *c, weft_mesh *mesh);

/* levels.c: exchanges of 2, 4, ... threads, up to twice as many as there are cores; of the job's processes. Collective over the
 * job. */
weft_status weft_calibrate_threads(calibrating *c, int cores);
weft_status weft_calibrate_processes(calibrating *c, const weft_world *world);

#endif
