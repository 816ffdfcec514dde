/* clamp.h: counts in shapes, specs and boxes, clamped to the arrays they count.
 *
 * These are plain structs that anybody may fill. Everything in this room reads them through these functions: an impossible
 * count reads as 0, and nothing is read past an array's end.
 */
#ifndef WEFT_LAYOUT_CLAMP_H
#define WEFT_LAYOUT_CLAMP_H

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

/* No size is as large as that (graphs end at 2^40), and blocks of it are counted without overflow. */
static inline int64_t weft_size_of(const weft_shape *shape, int d)
{
    const int64_t size = shape->dims[d].size, most = INT64_MAX / 2;
    return size < 0 ? 0 : size < most ? size : most;
}

/* How many axes split dim d. */
static inline int weft_splits_of(const weft_spec *spec, int d)
{
    return weft_within(spec->n_split[d], WEFT_MAX_AXES);
}

/* The window through which axes split dim d; NULL: they split the dim itself, or nothing does. */
static inline const weft_window *weft_window_of(const weft_spec *spec, int d)
{
    const weft_window *window = &spec->window[d];
    const bool is_there = window->lead != 0 && weft_splits_of(spec, d) > 0;
    return is_there && weft_window_is_valid(window) ? window : NULL;
}

#endif
