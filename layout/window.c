/* window: what of a dim goes with a block of another one, through which work is cut.
 *
 * With element i of the lead go all j for which stride i + low <= over j <= stride i + high. So with the interval [b, e) go
 *
 *     [ceil((min(stride b, stride (e-1)) + low) / over), floor((max(stride b, stride (e-1)) + high) / over) + 1)
 *
 * as far as the dim has them. A convolution's operand has slope `stride`, the one of its gradient slope 1 / stride: with
 * `over` both are windows.
 */
#include "clamp.h"

/* Ends of windows, and products of strides and leads, stay below 2^60: sums below 2^62. */
static const int64_t most_offset = (int64_t)1 << 60;

bool weft_window_is_valid(const weft_window *window)
{
    if (window == NULL) return false;
    if (window->lead == 0) return true;
    const int32_t stride = window->stride, over = window->over;
    return window->lead > 0 && window->lead <= WEFT_MAX_LEAD && over >= 1 &&
           over <= WEFT_MAX_STRIDE && stride != 0 && stride >= -WEFT_MAX_STRIDE &&
           stride <= WEFT_MAX_STRIDE && window->low <= window->high &&
           window->low >= -most_offset && window->high <= most_offset;
}

bool weft_window_equal(const weft_window *a, const weft_window *b)
{
    if (a == NULL || b == NULL) return a == b;
    if (a->lead == 0 || b->lead == 0) return a->lead == b->lead;
    return a->lead == b->lead && a->low == b->low && a->high == b->high && a->stride == b->stride &&
           a->over == b->over;
}

static int64_t floor_of(int64_t number, int64_t over)
{
    return number / over - (number % over < 0);
}

static int64_t clip(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at < size ? at : size;
}

void weft_window_image(const weft_window *window, int64_t size, int64_t *begin, int64_t *end)
{
    if (begin == NULL || end == NULL) return;
    if (size < 0) size = 0;
    int64_t first = *begin, past = *end;
    if (window != NULL && window->lead != 0 && weft_window_is_valid(window)) {
        first = clip(first, window->lead), past = clip(past, window->lead);
        const int64_t one = window->stride * first, other = window->stride * (past - 1);
        const bool is_empty = past <= first;
        first = -floor_of(-((one < other ? one : other) + window->low), window->over);
        past = floor_of((one < other ? other : one) + window->high, window->over) + 1;
        if (is_empty) past = first;
    }
    *begin = clip(first, size);
    *end = clip(past, size);
    if (*end < *begin) *end = *begin;
}

/* The next coordinates that differ along `axes` alone; false: those were the last. */
static bool go_on_along(const weft_mesh *mesh, uint32_t axes, int *at)
{
    for (int a = weft_mesh_n_axes(mesh) - 1; a >= 0; a--) {
        if (!(axes >> a & 1)) continue;
        if (++at[a] < weft_mesh_axis_size(mesh, a)) return true;
        at[a] = 0;
    }
    return false;
}

bool weft_window_is_within(const weft_spec *spec, const weft_mesh *mesh, const weft_shape *shape,
                           int dim)
{
    if (spec == NULL || mesh == NULL || dim < 0 || dim >= weft_dims_of(shape)) return true;
    if (weft_window_of(spec, dim) == NULL) return true;
    weft_spec shown = {.n_split = {0}}, whole;
    uint32_t axes = 0;
    shown.n_split[dim] = spec->n_split[dim];
    for (int i = 0; i < weft_splits_of(spec, dim); i++) {
        shown.split[dim][i] = spec->split[dim][i];
        if (spec->split[dim][i] >= 0) axes |= 1u << spec->split[dim][i] % WEFT_MAX_AXES;
    }
    whole = shown;
    shown.window[dim] = spec->window[dim];
    int at[WEFT_MAX_AXES] = {0};
    do { /* of the ranks that differ in other axes only, one */
        const int rank = weft_mesh_rank(mesh, at);
        weft_box seen, held;
        weft_spec_box(&shown, mesh, shape, rank, &seen);
        weft_spec_box(&whole, mesh, shape, rank, &held);
        if (seen.begin[dim] == seen.end[dim]) continue;
        if (seen.begin[dim] < held.begin[dim] || seen.end[dim] > held.end[dim]) return false;
    } while (go_on_along(mesh, axes, at));
    return true;
}

/* Block `index` of `n` of [0, length). */
static void block_of(int64_t length, int64_t index, int64_t n, int64_t *begin, int64_t *end)
{
    const int64_t block = length / n + (length % n != 0);
    *begin = clip(index * block, length);
    *end = clip(*begin + block, length);
}

static int64_t lacking(const weft_window *window, int64_t size, int64_t index, int64_t n)
{
    int64_t begin, end, held, held_end;
    block_of(window->lead, index, n, &begin, &end);
    block_of(size, index, n, &held, &held_end);
    weft_window_image(window, size, &begin, &end);
    const int64_t first = begin > held ? begin : held, last = end < held_end ? end : held_end;
    return end - begin - (last > first ? last - first : 0);
}

double weft_border_cost(const weft_window *window, int64_t size, int n, double bytes)
{
    if (window == NULL || window->lead == 0 || !weft_window_is_valid(window)) return 0;
    if (n < 2 || size < 1) return 0;
    const int64_t places[] = {0, 1, n - 2, n - 1}, most_size = WEFT_MAX_LEAD;
    int64_t most = 0;
    if (size > most_size) size = most_size;
    for (int i = 0; i < 4; i++) {
        const int64_t its = lacking(window, size, places[i], n);
        if (its > most) most = its;
    }
    return bytes * (double)most / (double)size;
}
