/* flown.h (private): one kind of exchange at one size, flown again and again by all ranks, and timed. */
#ifndef WEFT_CALIBRATE_FLOWN_H
#define WEFT_CALIBRATE_FLOWN_H

#include "calibrate.h"

#include "weft/collectives.h"

typedef struct weft_flown weft_flown;
struct weft_flown {
    weft_mesh *mesh;
    weft_comms *comms;
    uint32_t axes;
    int n_host; /* ranks of a host */
    weft_shape shape;
    weft_convert_step step;
    int rounds;
    /* by each local rank, before a flight starts, and while it is under way; NULL: nothing */
    void (*before)(weft_flown *f, int rank), (*meanwhile)(weft_flown *f, int rank);
    void *context;      /* theirs */
    double *seconds;    /* [n_local] a flight from its start to its end */
    weft_error *errors; /* [n_local] */
};

weft_status weft_flown_open(weft_flown *f, weft_mesh *mesh, weft_comms *comms, uint32_t axes,
                            weft_error *error);
void weft_flown_close(weft_flown *f);
/* weft_flown_set - a kind, with so many columns for each rank. returns whether all ranks of a host have room */
bool weft_flown_set(weft_flown *f, weft_convert_kind kind, int64_t columns);
/* weft_flown_time - seconds of one: of a few tries the fastest, of all ranks the slowest. Collective over the mesh.
 *
 * rounds  of a try; 0: as many as are long enough for the clock */
weft_status weft_flown_time(weft_flown *f, int rounds, double *seconds, weft_error *error);
/* weft_flown_slowest - the largest that any rank has of numbers [n_local]. Collective over the mesh. */
weft_status weft_flown_slowest(weft_flown *f, const double *numbers, double *largest,
                               weft_error *error);
double weft_flown_now(void); /* seconds */

#endif
