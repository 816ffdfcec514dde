/* calibrating: how far a calibration is, and what there was no time for. */
#include "calibrating.h"
#include "sync.h"

#include <math.h>
#include <string.h>

double weft_calibrating_part(const calibrating *c)
{
    return fmin(1, (weft_sync_seconds() - c->begin) / c->budget);
}

void weft_calibrating_tell(const calibrating *c, const char *what)
{
    const double part = (c->pass + weft_calibrating_part(c)) / c->n_passes;
    if (c->options->progress) c->options->progress(c->options->context, what, part);
}

/* What there is no time for. */
void weft_calibrating_leave(calibrating *c, const char *what)
{
    int l = 0;
    while (l < c->n_left && strcmp(c->left[l].what, what) != 0)
        l++;
    if (l == WEFT_CALIBRATE_LEFT) return;
    if (l == c->n_left) c->left[c->n_left++].what = what;
    c->left[l].n++;
}
