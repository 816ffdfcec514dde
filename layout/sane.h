/* sane.h: shapes, specs and boxes are plain structs that anybody may fill: what of one can be looked at.
 *
 * Everything in this room that takes one reads it through these, so that a count that is none reads as an empty one,
 * and nothing is read past an array's end.
 */
#ifndef WEFT_LAYOUT_SANE_H
#define WEFT_LAYOUT_SANE_H

#include "weft/layout.h"

static inline int weft_within(int n, int most)
{
    return n < 0 ? 0 : n < most ? n : most;
}

/* How many dims there are to look at. */
static inline int weft_dims_of(const weft_shape *shape)
{
    return shape == NULL ? 0 : weft_within(shape->n_dims, WEFT_MAX_DIMS);
}

static inline const char *weft_dim_name(const weft_shape *shape, int d)
{
    return shape->dims[d].name == NULL ? "" : shape->dims[d].name;
}

/* How many axes split dim d. */
static inline int weft_splits_of(const weft_spec *spec, int d)
{
    return weft_within(spec->n_split[d], WEFT_MAX_AXES);
}

#endif
