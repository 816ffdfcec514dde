/* conv_pad.c: parts of x laid out with zeros around, where there is little at each place, as the 3 colours of a picture.
 *
 * A run then goes through neighbouring taps and all channels of each, and no row is ever outside. A part stays in cache: some
 * elements of the outermost dim of space at a time.
 */
#include "cpu/conv.h"

#include <string.h>

enum { MOST_BYTES = 128, MOST_ROWS = 1024 /* at once, if it may be */ };

/* The dims of windows in `of`, outermost first: [n], by window; false: one of them has two, or none. */
static bool find_windows(const weft_conv *c, const weft_conv_dims *of, int *which)
{
    int n = 0;
    bool has[WEFT_CONV_WINDOWS] = {false};
    for (int d = 0; d < of->n; d++) {
        const int s = of->dim[d].window;
        if (s < 0) continue;
        if (has[s]) return false;
        has[s] = true;
        which[n++] = d;
    }
    return n == c->n_windows;
}

static const weft_conv_dim *find_window(const weft_conv_dims *dims, int s)
{
    static const weft_conv_dim none = {.size = 1};
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window == s) return &dims->dim[d];
    return &none;
}

static int64_t spread_of(const weft_conv_dim *dim, int64_t n)
{
    const int64_t most = dim->step * (n - 1);
    return most < 0 ? -most : most;
}

static int64_t low_of(const weft_conv_dim *dim, int64_t n)
{
    const int64_t most = dim->step * (n - 1);
    return most < 0 ? most : 0;
}

/* One dim of what a tap has at each place, at most. */
static bool find_channels(weft_conv_rows *r, const weft_conv_dims *taps)
{
    int n = 0;
    r->pad_channels = r->pad_by = 1;
    for (int d = 0; d < taps->n; d++) {
        if (taps->dim[d].window >= 0) continue;
        r->pad_channels = taps->dim[d].size, r->pad_by = taps->dim[d].x;
        n++;
    }
    return n <= 1;
}

/* Strides and sizes, with n elements of the outermost dim; returns elements of all. */
static int64_t lay_out(weft_conv *c, const weft_conv_dims *places, const weft_conv_dims *taps,
                       const int *which, int64_t n)
{
    weft_conv_rows *r = &c->rows;
    int64_t stride = r->pad_channels;
    for (int i = c->n_windows - 1; i >= 0; i--) {
        const weft_conv_dim *dim = &places->dim[which[i]];
        const int s = dim->window;
        const weft_conv_dim *tap = find_window(taps, s);
        r->pad_first[s] = low_of(dim, i == 0 ? n : dim->size) + low_of(tap, tap->size);
        r->pad_size[s] = spread_of(dim, i == 0 ? n : dim->size) + spread_of(tap, tap->size) + 1;
        r->pad_x[s] = stride;
        stride *= r->pad_size[s];
    }
    return stride;
}

static void move_plain(weft_conv_dims *from, weft_conv_dims *to)
{
    int kept = 0;
    for (int d = 0; d < from->n; d++)
        if (from->dim[d].window >= 0)
            from->dim[kept++] = from->dim[d];
        else
            to->dim[to->n++] = from->dim[d];
    from->n = kept;
}

bool weft_conv_plan_pad(weft_conv *c)
{
    weft_conv t = *c;
    weft_conv_rows *r = &t.rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    weft_conv_dims *places = r->is_to_filter ? &t.k : &t.m, *taps = r->is_to_filter ? &t.m : &t.k;
    int which[WEFT_CONV_WINDOWS];
    if (t.n_windows == 0 || r->kind != WEFT_RUN_PRODUCT) return false;
    for (int s = 0; s < t.n_windows; s++)
        if (t.window[s].over != 1) return false;
    if (!find_channels(r, taps) || r->pad_channels * bytes >= MOST_BYTES) return false;
    r->pad_outer.n = 0;
    move_plain(places, r->is_to_filter ? &r->pad_outer : &t.free);
    if (!find_windows(&t, places, which)) return false;
    const int64_t outer = places->dim[which[0]].size, inner = weft_conv_count(places) / outer;
    int64_t n = outer;
    while (n > 1 && (n * inner > MOST_ROWS ||
                     lay_out(&t, places, taps, which, n) * bytes > WEFT_CONV_PAD_BYTES / 2))
        n = (n + 1) / 2;
    if (lay_out(&t, places, taps, which, n) * bytes > WEFT_CONV_PAD_BYTES) return false;
    r->pad_n = n;
    r->n_units = (outer + n - 1) / n;
    *c = t;
    return true;
}

/* ---- laid out ------------------------------------------------------------------------------------ */

#define PUT(s, T)                                                                                  \
    static void put_##s(char *to, const char *x, const weft_conv_rows *r, int64_t x_step,          \
                        int64_t n)                                                                 \
    {                                                                                              \
        T *put = (T *)(void *)to;                                                                  \
        const T *from = (const T *)(const void *)x;                                                \
        if (r->pad_by == 1 && x_step == r->pad_channels) {                                         \
            memcpy(put, from, (size_t)(n * x_step) * sizeof *put);                                 \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < r->pad_channels; j++)                                          \
                put[i * r->pad_channels + j] = from[i * x_step + j * r->pad_by];                   \
    }
PUT(f32, float)
PUT(f64, double)

static void put(const weft_conv *c, char *to, const char *x, int64_t x_step, int64_t n)
{
    if (c->dtype == WEFT_F32)
        put_f32(to, x, &c->rows, x_step, n);
    else
        put_f64(to, x, &c->rows, x_step, n);
}

/* Places [at, at + size) of window s, the innermost; the others have x, if at all. */
static void put_line(const weft_conv *c, int s, int64_t at, bool is_in, int64_t x, char *to)
{
    const int64_t size = c->rows.pad_size[s], have = c->window[s].size;
    const size_t bytes = weft_dtype_bytes(c->dtype), of_one = (size_t)c->rows.pad_channels * bytes;
    int64_t begin = at < 0 ? -at : 0, end = have - at < size ? have - at : size;
    if (!is_in || begin >= size || end <= begin) begin = end = size;
    memset(to, 0, (size_t)begin * of_one);
    if (begin < end)
        put(c, to + (size_t)begin * of_one,
            c->x + (x + (at + begin) * c->window[s].stride) * (int64_t)bytes, c->window[s].stride,
            end - begin);
    memset(to + (size_t)end * of_one, 0, (size_t)(size - end) * of_one);
}

static void put_all(const weft_conv *c, const weft_conv_dims *places, const int64_t *at, int i,
                    int64_t n, bool is_in, int64_t x, char *to)
{
    const int s = places->dim[i].window;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    if (i == places->n - 1) {
        put_line(c, s, at[s], is_in, x, to);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        const int64_t there = at[s] + j;
        put_all(c, places, at, i + 1, c->rows.pad_size[places->dim[i + 1].window],
                is_in && there >= 0 && there < c->window[s].size, x + there * c->window[s].stride,
                to + j * c->rows.pad_x[s] * bytes);
    }
}

static void make_plain(const weft_conv_rows *r, weft_conv_dims *dims)
{
    for (int d = 0; d < dims->n; d++) {
        weft_conv_dim *dim = &dims->dim[d];
        dim->x = dim->window >= 0 ? dim->step * r->pad_x[dim->window] : 1;
        dim->window = -1;
    }
}

void weft_conv_pad(const weft_conv *c, const weft_conv_dims *of, const weft_conv_place *p,
                   int64_t first, int64_t n, void *pad, weft_conv *padded)
{
    const weft_conv_rows *r = &c->rows;
    const weft_conv_dim *outer = &of->dim[0];
    const weft_conv_dims *taps = r->is_to_filter ? &c->m : &c->k;
    const weft_conv_dim *tap = find_window(taps, outer->window);
    int64_t at[WEFT_CONV_WINDOWS], size = spread_of(outer, n) + spread_of(tap, tap->size) + 1;
    *padded = *c;
    padded->first = (weft_conv_place){.w = p->w + first * outer->w, .y = p->y + first * outer->y};
    for (int s = 0; s < c->n_windows; s++) {
        at[s] = p->at[s] + r->pad_first[s];
        padded->first.x -= r->pad_first[s] * r->pad_x[s];
    }
    /* n is perhaps smaller than that for which the first place was found */
    const int64_t low = low_of(outer, n) + low_of(tap, tap->size);
    padded->first.x += (r->pad_first[outer->window] - low) * r->pad_x[outer->window];
    at[outer->window] = p->at[outer->window] + first * outer->step + low;
    put_all(c, of, at, 0, of->n == 1 ? 1 : size, true, p->x, pad);
    padded->x = pad;
    padded->n_windows = 0;
    make_plain(r, &padded->m);
    make_plain(r, &padded->k);
    (of == &c->m ? &padded->m : &padded->k)->dim[0].size = n;
    weft_conv_settle(padded);
}
