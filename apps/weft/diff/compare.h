/* compare.h: two sides, step by step: what got dearer or cheaper, and why. */
#ifndef WEFT_APPS_DIFF_COMPARE_H
#define WEFT_APPS_DIFF_COMPARE_H

#include "side.h"

/* Steps of one call that do the same: of both sides. */
typedef struct diff_pair {
    diff_step of[2]; /* sums of their numbers; the texts of the first one */
    int n_steps[2];  /* 0: this side has none */
    double cost[2];  /* in the unit of the comparison */
    char why[400];
} diff_pair;

typedef struct diff_comparison {
    bool in_seconds; /* else in bytes through links: a side does not know seconds */
    int n;
    diff_pair *pairs; /* [n] those that differ most first */
} diff_comparison;

/* diff_compare - own it: diff_comparison_close. Texts are those of the sides. Local. */
weft_status diff_compare(const diff_side sides[2], diff_comparison *comparison, weft_error *error);
void diff_comparison_close(diff_comparison *comparison);
/* By how much the second is dearer. Local; pure. */
double diff_more(const diff_pair *pair);

#endif
