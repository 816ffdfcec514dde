/* random_specs.h: random meshes, shapes and specs, uneven and empty boxes among them, the same in
 * every run. */
#ifndef WEFT_RANDOM_SPECS_H
#define WEFT_RANDOM_SPECS_H

#include "weft/layout.h"

#include "test.h"

enum { MAX_ELEMENTS = 8 * 8 * 8 * 8 };

static const char *const dim_names[] = {"i", "j", "k", "l"};
static uint64_t random_state = 42;

static inline int pick(int n) /* 0 .. n - 1 */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

static inline weft_mesh *random_mesh(void)
{
    static const char axis_names[] = "abcd";
    char text[64] = "";
    int n_axes = 1 + pick(4);
    for (int a = 0, at = 0; a < n_axes; a++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%c:%d", a > 0 ? "," : "",
                       axis_names[a], 1 + pick(n_axes > 3 ? 3 : 4));
    weft_error error = {0};
    weft_mesh *mesh;
    CHECK_OK(weft_mesh_plan(text, &mesh, &error), error);
    return mesh;
}

static inline weft_shape random_shape(void)
{
    weft_shape shape = {.n_dims = pick(5)};
    for (int d = 0; d < shape.n_dims; d++)
        shape.dims[d] = (weft_dim){dim_names[d], pick(20) == 0 ? 0 : 1 + pick(7)};
    return shape;
}

/* Axes in random order, each to a random dim or none, or (over one in `partial_one_in`) partial. */
static inline weft_spec random_spec(const weft_mesh *mesh, const weft_shape *shape,
                                    int partial_one_in)
{
    weft_spec spec = {0};
    int n = weft_mesh_n_axes(mesh), order[WEFT_MAX_AXES] = {0};
    for (int a = 0; a < n; a++) {
        int other = pick(a + 1);
        order[a] = order[other];
        order[other] = a;
    }
    for (int i = 0; i < n; i++) {
        if (partial_one_in > 0 && pick(partial_one_in) == 0) {
            spec.partial |= (uint8_t)(1u << order[i]);
            spec.combine = WEFT_SUM;
        } else if (shape->n_dims > 0 && pick(4) > 0) {
            int d = pick(shape->n_dims);
            spec.split[d][spec.n_split[d]++] = (int8_t)order[i];
        }
    }
    return spec;
}

/* Any window, also far outside, wider than several boxes, of slopes above and below 1. */
static inline weft_window random_window(int64_t size)
{
    const int64_t low = pick(25) - 12, high = low + (pick(3) == 0 ? pick(12) : pick(3));
    const int steep = 1 + pick(3);
    weft_window window = {.lead = 1 + pick(12), .low = low, .high = high, .stride = 1, .over = 1};
    if (pick(2) == 0) window.lead = size > 0 ? size : 1;
    if (pick(3) == 0) window.stride = steep;
    if (pick(3) == 0) window.over = 1 + pick(3);
    if (pick(5) == 0) window.stride = -window.stride;
    return window;
}

/* Most dims that are split, seen through windows. */
static inline void add_windows(weft_spec *spec, const weft_shape *shape)
{
    for (int d = 0; d < shape->n_dims; d++)
        if (spec->n_split[d] > 0 && pick(4) > 0)
            spec->window[d] = random_window(shape->dims[d].size);
}

/* Row-major place of a point in the whole tensor. */
static inline int64_t place_of(const weft_shape *shape, const int64_t *at)
{
    int64_t place = 0;
    for (int d = 0; d < shape->n_dims; d++)
        place = place * shape->dims[d].size + at[d];
    return place;
}

/* Add one to counts [elements] at every point of `box`. */
static inline void count_box(const weft_shape *shape, const weft_box *box, int *counts)
{
    int64_t at[WEFT_MAX_DIMS];
    if (weft_box_count(box, shape->n_dims) == 0) return;
    for (int d = 0; d < shape->n_dims; d++)
        at[d] = box->begin[d];
    for (int d = 0; d >= 0;) {
        counts[place_of(shape, at)]++;
        for (d = shape->n_dims - 1; d >= 0; d--) {
            if (++at[d] < box->end[d]) break;
            at[d] = box->begin[d];
        }
    }
}

/* The product of the sizes of those axes. */
static inline int ranks_along(const weft_mesh *mesh, uint32_t axes)
{
    return weft_mesh_group(mesh, axes, 0, NULL, NULL);
}

#endif
