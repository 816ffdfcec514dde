/* space.h: what a search varies: options of a program, each with the values that it may have.
 *
 *     rate=1e-4..1e-1:log,batch=32|64|128,optimizer=adamw|lion
 *
 * A range of two whole numbers has whole numbers alone. The n trials of a search at random have points of a sequence
 * that fills the space evenly (Roberts' R sequence), begun where the seed says. Along each axis they are moved to equal distances, and keep
 * their order. So are those on a range that have the same values of all lists: a sliced Latin hypercube. So no part of a range is left out, of
 * no value of a list. The same for every start. A grid has every value of lists, and so many points of a range.
 */
#ifndef WEFT_APPS_TUNE_SPACE_H
#define WEFT_APPS_TUNE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/error.h"

enum { SPACE_AXES = 16, SPACE_VALUES = 32, SPACE_TEXT = 64 };

typedef struct space_axis {
    char name[SPACE_TEXT];
    int n; /* of a list; 0: a range */
    char values[SPACE_VALUES][SPACE_TEXT];
    double low, high;
    bool is_log, is_whole;
} space_axis;

typedef struct space {
    int n;
    space_axis axes[SPACE_AXES];
} space;

/* space_read - returns WEFT_USAGE with the place that is wrong. Pure. */
weft_status space_read(const char *text, space *s, weft_error *error);
/* space_trials - how many points a grid has; at most INT32_MAX. Pure. */
int64_t space_trials(const space *s, int points);
/* space_at_random - where the points of a search at random are. Pure.
 *
 * n        points
 * shares   [n, s->n] where each is on each axis, from 0 to below 1
 * returns  WEFT_MEMORY
 * cost     n log n for each axis */
weft_status space_at_random(const space *s, uint64_t seed, int n, double *shares,
                            weft_error *error);
/* space_is_sliced - whether both lists and ranges vary. Pure. */
bool space_is_sliced(const space *s);
/* space_value - what stands there on an axis, as an option has it. Pure. */
void space_value(const space_axis *axis, double share, char value[SPACE_TEXT]);
/* space_on_grid - the value of axis a in a trial of a grid, as an option has it. Pure. */
void space_on_grid(const space *s, int points, int trial, int a, char value[SPACE_TEXT]);
/* space_draw - a number from 0 to below 1 that depends on what it is drawn for alone: the same for every start. Pure. */
double space_draw(uint64_t seed, uint64_t which);
/* space_near - a value near this one: of a :log range up to half more or a third less, of another range up to a tenth of it up or down,
 * of a list the same, the one before or the one behind; never outside. draw from 0 to below 1. Pure. */
void space_near(const space_axis *axis, const char *value, double draw, char near[SPACE_TEXT]);
/* space_between - the value halfway between two: of a :log range by their logarithms, of whole numbers the nearest one, of a list the first of
 * the two. Pure. */
void space_between(const space_axis *axis, const char *x, const char *y, char between[SPACE_TEXT]);
/* space_step - a value above or below another: twice or half of it on a :log range, else a tenth of the range on; at most an end. A whole number
 * moves by one at least. Of a list the value itself. Pure. */
void space_step(const space_axis *axis, const char *value, bool is_up, char to[SPACE_TEXT]);
/* space_place - where on the axis a value is, from 0 to 1: for a picture. Pure. */
double space_place(const space_axis *axis, const char *value);

#endif
