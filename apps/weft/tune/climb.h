/* climb.h: the next training of a search that climbs: a step from the best training so far, by what those around it came to.
 *
 * A pattern search along one range after the other. On a range those trainings count that have the best one's values of all lists, and are at most
 * two steps away on this range and one on all others. Where such are on one side of the best, the step goes to the other side: as long as that
 * gains, the search goes on in that direction. Where they are on both sides, the best is enclosed, and the step goes halfway to the better
 * neighbour. Where there are none, the side is that of the best other trial of the rung before. A step is to twice a value of a :log range or to
 * half of it, and a tenth of another range. So nothing is compared but which result is the better: no scale of results, and no noise, has to be
 * known.
 */
#ifndef WEFT_APPS_TUNE_CLIMB_H
#define WEFT_APPS_TUNE_CLIMB_H

#include "search.h"

typedef struct climb_move {
    char values[SPACE_AXES][SPACE_TEXT];
    int from, toward; /* trials; toward -1: a whole step, else halfway */
} climb_move;

/* climb_next - where the next training is. Reads s->launch.space, s->trials, s->n, s->n_rungs and s->is_highest. Pure.
 *
 * ends [n]  trials that have been at the last rung, the best first, failed ones last
 * turn      which of the ranges is the first that is tried, modulo how many there are
 * returns   false: all steps from the best lead to trainings that are there, or nothing but lists varies */
bool climb_next(const search *s, const int *ends, int n, int turn, climb_move *move);
/* climb_find - the trial that has these values; -1: there is none. Pure. */
int climb_find(const search *s, char values[][SPACE_TEXT]);

#endif
