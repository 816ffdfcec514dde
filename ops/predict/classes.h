/* classes.h (private): which ranks a prediction looks at: one of each kind.
 *
 * Along an axis all blocks are alike, except the last ones of a size that does not divide. So the first, a middle and the last
 * coordinate of each axis are enough, and one where all blocks are alike. The chosen coordinates make a mesh of their own, whose
 * groups stand for the groups of the mesh.
 */
#ifndef WEFT_PREDICT_CLASSES_H
#define WEFT_PREDICT_CLASSES_H

#include "plan.h"

enum { WEFT_AXIS_KINDS = 4 }; /* the first, a middle one, the last, and a slow rank's */

typedef struct weft_classes {
    int n_axes, n; /* n: the product of n_along: kinds of ranks */
    int n_along[WEFT_MAX_AXES];
    int along[WEFT_MAX_AXES][WEFT_AXIS_KINDS]; /* coordinates, ascending */
} weft_classes;

/* weft_find_classes - slow: a rank that is unlike the others; -1: none is. Local; pure. */
void weft_find_classes(const weft_plan *plan, int slow, weft_classes *classes);
/* The rank of the mesh that class `c` is. */
int weft_class_rank(const weft_plan *plan, const weft_classes *classes, int c);
/* The first class of the group of `c` over `axes`: the one whose coordinates along them are the first. */
int weft_class_first(const weft_classes *classes, int c, uint32_t axes);

#endif
