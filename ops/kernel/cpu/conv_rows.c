/* conv_rows.c: how a convolution is tiles of runs (conv_runs.h): which dim has y's columns, which one runs go along.
 *
 * x is read where it lies: each row of a tile has its own address at each tap, outside of x that of zeros. Forward, runs go along the
 * channels; to the filter along a dim of places, and taps are rows. Each channel by itself, and the sums of pooling, have the
 * channels as columns. All cuts follow from shapes, but which rows and vectors a lane does at once: sums know nothing of those.
 * source  Dukhan 2019, "The Indirect Convolution Algorithm", for addresses in place of unfolding
 */
#include "cpu/conv_lane.h"
#include "cpu/gemm.h"

#include <string.h>

enum { X_BYTES = 512 << 10 /* of x that rows done at once read */, ITEMS = 64 };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void take_out(weft_conv_dims *dims, int d)
{
    dims->n--;
    memmove(dims->dim + d, dims->dim + d + 1, (size_t)(dims->n - d) * sizeof *dims->dim);
}

static void put_behind(weft_conv_dims *to, const weft_conv_dims *from)
{
    for (int d = 0; d < from->n; d++)
        to->dim[to->n++] = from->dim[d];
}

/* ---- windows ----------------------------------------------------------------------------------- */

/* What the elements of dims add to a place in window s, at least and at most. */
static void spread(const weft_conv_dims *dims, int s, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (int d = 0; d < dims->n; d++) {
        const weft_conv_dim *dim = &dims->dim[d];
        if (dim->window != s) continue;
        const int64_t most = dim->step * (dim->size - 1);
        *(most < 0 ? low : high) += most;
    }
}

static void make_plain(weft_conv *c, weft_conv_dims *dims, int s)
{
    for (int d = 0; d < dims->n; d++) {
        weft_conv_dim *dim = &dims->dim[d];
        if (dim->window > s)
            dim->window--;
        else if (dim->window == s) {
            dim->window = -1;
            dim->x = dim->step * c->window[s].stride;
        }
    }
}

/* A window that always has something there is strides. */
static void drop_windows(weft_conv *c)
{
    for (int s = c->n_windows - 1; s >= 0; s--) {
        int64_t m[2], k[2];
        spread(&c->m, s, &m[0], &m[1]);
        spread(&c->k, s, &k[0], &k[1]);
        if (c->window[s].over != 1 || c->first.at[s] + m[0] + k[0] < 0 ||
            c->first.at[s] + m[1] + k[1] >= c->window[s].size)
            continue;
        make_plain(c, &c->m, s);
        make_plain(c, &c->k, s);
        c->first.x += c->first.at[s] * c->window[s].stride;
        for (int k_ = s; k_ + 1 < c->n_windows; k_++) {
            c->window[k_] = c->window[k_ + 1];
            c->first.at[k_] = c->first.at[k_ + 1];
        }
        c->first.at[--c->n_windows] = 0;
    }
}

static int64_t count_places(const weft_conv_dims *dims)
{
    int64_t count = 1;
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window >= 0) count *= dims->dim[d].size;
    return count;
}

static bool sums_places(const weft_conv *c)
{
    const int64_t k = count_places(&c->k), m = count_places(&c->m);
    return k != m ? k > m : weft_conv_count(&c->k) > weft_conv_count(&c->m);
}

/* ---- columns ------------------------------------------------------------------------------------- */

static bool take_product(weft_conv *c)
{
    weft_conv_dims n = c->n;
    if (n.n == 0 || n.dim[n.n - 1].y != 1) return false;
    int first = n.n - 1;
    while (first > 0 && n.dim[first - 1].y == n.dim[first].y * n.dim[first].size &&
           n.dim[first - 1].w == n.dim[first].w * n.dim[first].size)
        first--;
    c->rows.kind = WEFT_RUN_PRODUCT;
    c->rows.w_by = n.dim[n.n - 1].w, c->rows.x_by = 0;
    c->rows.columns = 1;
    for (int d = first; d < n.n; d++)
        c->rows.columns *= n.dim[d].size;
    n.n = first;
    put_behind(&c->free, &n);
    return true;
}

static int find_last(const weft_conv_dims *dims)
{
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].y == 1 && dims->dim[d].window < 0 && dims->dim[d].x == 1) return d;
    return -1;
}

static bool take_channels(weft_conv *c)
{
    enum { LEAST = 4 };
    weft_conv_dims *of = &c->free;
    int d = find_last(of);
    if (d >= 0 && of->dim[d].w != 1) return false;
    c->rows.kind = d >= 0 ? WEFT_RUN_EACH : WEFT_RUN_SCALED;
    if (d < 0) d = find_last(of = &c->m);
    if (d < 0 || of->dim[d].size < LEAST || weft_conv_count(&c->n) > 1) return false;
    c->rows.columns = of->dim[d].size;
    c->rows.x_by = 1, c->rows.w_by = of == &c->free;
    take_out(of, d);
    return true;
}

static int find_dim(const weft_conv_dims *dims, int64_t size, int64_t x)
{
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window < 0 && dims->dim[d].x == x &&
            (size == 0 || dims->dim[d].size == size))
            return d;
    return -1;
}

/* Groups of as many channels as features, which are neighbours in x and in y, or to the filter in w. */
static bool take_groups(weft_conv *c)
{
    const int64_t width = WEFT_RUN_BYTES / (int64_t)weft_dtype_bytes(c->dtype);
    const bool is_to_filter = c->rows.is_to_filter;
    if (c->n.n != 1) return false;
    const weft_conv_dim feature = c->n.dim[0];
    weft_conv_dims *of = is_to_filter ? &c->m : &c->k;
    const int64_t size = feature.size;
    const int channel = find_dim(of, size, 1), group = find_dim(&c->free, 0, size);
    if (channel < 0 || group < 0 || size >= width || (size & (size - 1)) != 0) return false;
    const weft_conv_dim g = c->free.dim[group], k = of->dim[channel];
    if (g.size * size % width != 0 || (is_to_filter ? feature.w : feature.y) != 1 ||
        (is_to_filter ? g.w : g.y) != size)
        return false;
    weft_conv_rows *r = &c->rows;
    r->kind = WEFT_RUN_GROUPS;
    r->columns = g.size * size, r->channels = size;
    r->x_by = r->w_by = 1;
    r->by_group = is_to_filter ? g.y : g.w;
    r->by_channel = is_to_filter ? k.y : k.w;
    r->by_feature = is_to_filter ? feature.y : feature.w;
    take_out(&c->free, group);
    take_out(of, channel);
    c->n.n = 0;
    return true;
}

static void choose_tile(weft_conv *c)
{
    weft_conv_rows *r = &c->rows;
    const int64_t width = WEFT_RUN_BYTES / (int64_t)weft_dtype_bytes(c->dtype);
    r->n_vectors = (r->columns + width - 1) / width;
    const bool is_wide = r->n_vectors % 4 == 0 || r->n_vectors > 9;
    r->rows = is_wide ? 6 : 8;
    r->vectors = is_wide ? 4 : 3;
    if (r->kind != WEFT_RUN_GROUPS) return;
    r->rows = r->is_to_filter ? 1 : 6;
    r->vectors = 2;
}

/* ---- runs ---------------------------------------------------------------------------------------- */

static void merge(weft_conv_dims *dims)
{
    for (int d = dims->n - 2; d >= 0; d--) {
        weft_conv_dim *outer = &dims->dim[d], *inner = &dims->dim[d + 1];
        if (outer->window >= 0 || inner->window >= 0 || outer->x != inner->x * inner->size ||
            outer->w != inner->w * inner->size || outer->y != inner->y * inner->size)
            continue;
        inner->size *= outer->size;
        take_out(dims, d);
    }
}

/* The last dim to the filter, or where x is read by strides alone; else the one with most elements among those that move no
 * window; -1: none. */
static int find_run(const weft_conv *c)
{
    if (c->rows.kind == WEFT_RUN_GROUPS && !c->rows.is_to_filter) return -1;
    int best = c->rows.is_to_filter || c->n_windows == 0 ? c->k.n - 1 : -1;
    if (best < 0)
        for (int d = 0; d < c->k.n; d++)
            if (c->k.dim[d].window < 0 && (best < 0 || c->k.dim[d].size > c->k.dim[best].size))
                best = d;
    return best;
}

static void cut_runs(weft_conv_rows *r, int64_t n_others)
{
    const int64_t size = r->run.size, pieces = (size + WEFT_CONV_BLOCK - 1) / WEFT_CONV_BLOCK;
    r->part = r->n_parts = r->per_block = 1;
    r->n_runs = 0;
    if (size == 0 || n_others == 0) return;
    r->part =
        pieces == 1 ? size : smaller(WEFT_CONV_BLOCK, ((size + pieces - 1) / pieces + 7) / 8 * 8);
    r->n_parts = (size + r->part - 1) / r->part;
    r->n_runs = n_others * r->n_parts;
    const int64_t of_run = r->part * (r->channels > 0 ? r->channels : 1);
    const int64_t most = WEFT_CONV_BLOCK / of_run > 1 ? WEFT_CONV_BLOCK / of_run : 1;
    const int64_t n_blocks = (r->n_runs + most - 1) / most;
    r->per_block = (r->n_runs + n_blocks - 1) / n_blocks;
}

void weft_conv_settle(weft_conv *c)
{
    weft_conv_rows *r = &c->rows;
    merge(&c->k);
    const int run = find_run(c);
    r->run = (weft_conv_dim){.size = 1, .window = -1};
    if (run >= 0) {
        r->run = c->k.dim[run];
        take_out(&c->k, run);
    }
    for (int s = 0; s < c->n_windows; s++)
        spread(&c->k, s, &r->low[s], &r->high[s]);
    cut_runs(r, weft_conv_count(&c->k));
    r->inner = 1;
    for (int d = c->m.n - 1; d >= 0 && (r->run.window < 0 || c->m.dim[d].window < 0); d--)
        r->inner *= c->m.dim[d].size;
    r->n_tiles = 0;
    if (r->inner > 0)
        r->n_tiles = weft_conv_count(&c->m) / r->inner * ((r->inner + r->rows - 1) / r->rows);
}

/* Rows outside of x read zeros along a run. */
static bool fits_runs(const weft_conv *c)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    return r->run.window >= 0 || c->n_windows == 0 ||
           (r->run.x >= 0 &&
            r->part * r->run.x * bytes <= WEFT_CONV_ZEROS - WEFT_RUN_VECTORS * WEFT_RUN_BYTES);
}

/* Phases may have runs along other dims, and so tiles of fewer rows: as many as any of them has. */
static bool settle_phases(weft_conv *c)
{
    weft_conv_rows *r = &c->rows;
    r->n_phases = weft_conv_count_phases(c);
    if (r->n_phases == 1) {
        weft_conv_settle(c);
        return fits_runs(c);
    }
    r->n_tiles = 0;
    for (int64_t i = 0; i < r->n_phases; i++) {
        weft_conv phase;
        weft_conv_take_phase(c, i, &phase);
        if (!fits_runs(&phase)) return false;
        if (phase.rows.n_tiles > r->n_tiles) r->n_tiles = phase.rows.n_tiles;
    }
    r->part = weft_conv_count(&c->k) / r->n_phases + 1;
    r->n_runs = 1;
    return true;
}

/* ---- items --------------------------------------------------------------------------------------- */

/* What one element of y is the sum of, before runs are cut. */
static int64_t count_summed(const weft_conv *c)
{
    const weft_conv_rows *r = &c->rows;
    return weft_conv_count(&c->k) * (r->run.size > 0 ? r->run.size : 1) *
           (r->channels > 0 ? r->channels : 1);
}

/* Where memory is what is waited for, rows are found once for all of their vectors, if there are rows enough for all lanes. */
static bool has_whole_items(const weft_conv *c)
{
    const weft_conv_rows *r = &c->rows;
    return r->kind != WEFT_RUN_PRODUCT && !r->is_to_filter &&
           r->n_tiles * weft_conv_count(&c->free) >= ITEMS;
}

static void cut_items(weft_conv *c, int64_t x_count)
{
    weft_conv_rows *r = &c->rows;
    if (r->is_padded && !r->is_to_filter) {
        r->most = r->unit = r->item = 1;
        return; /* n_units: of conv_pad.c */
    }
    const int64_t n_free = weft_conv_count(&c->free);
    r->item = has_whole_items(c) ? r->n_vectors : 1;
    const int64_t of_free = n_free * r->n_vectors / r->item;
    const int64_t units = smaller(r->n_tiles, (ITEMS + of_free - 1) / of_free);
    r->unit = smaller((r->n_tiles + units - 1) / units, WEFT_CONV_TILES / 4);
    r->n_units = (r->n_tiles + r->unit - 1) / r->unit;
    const int64_t rows = weft_conv_count(&c->m) / r->n_phases * weft_conv_count(&c->free) + 1;
    const int64_t of_x = x_count * (int64_t)weft_dtype_bytes(c->dtype) * r->rows / rows + 1;
    const int64_t tiles =
        r->is_to_filter ? WEFT_CONV_TILES : smaller(WEFT_CONV_TILES, X_BYTES / of_x);
    r->most = tiles > r->unit ? tiles / r->unit : 1;
    if (r->kind != WEFT_RUN_PRODUCT && !r->is_to_filter)
        r->most = smaller(r->most, r->item > 1 ? 2 : 1); /* it is memory that they wait for */
    r->is_by_vector = r->is_to_filter ? r->kind != WEFT_RUN_PRODUCT
                                      : r->item == 1 && r->columns * count_summed(c) >
                                                            x_count; /* w is read once */
}

/* y is large, its rows begin with a line of a cache, and each is written once: what is summed is one block. */
static bool is_streamed(const weft_conv *c)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype), line = WEFT_RUN_BYTES / bytes;
    if (r->is_to_filter || c->y_count * bytes < WEFT_STREAMED || r->columns % line != 0 ||
        (uintptr_t)c->y % WEFT_RUN_BYTES != 0 || count_summed(c) > WEFT_CONV_BLOCK)
        return false;
    bool is_aligned = true;
    for (int d = 0; d < c->m.n; d++)
        is_aligned = is_aligned && c->m.dim[d].y % line == 0;
    for (int d = 0; d < c->free.n; d++)
        is_aligned = is_aligned && c->free.dim[d].y % line == 0;
    return is_aligned;
}

static void run(const weft_conv *c, weft_stream *stream)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t items = weft_conv_count(&c->free) * r->n_units * r->n_vectors / r->item;
    const int64_t work = weft_conv_count(&c->m) / r->n_units * r->n_runs * r->part;
    weft_parallel_whole(stream, items, weft_grain(work), weft_conv_run_items, (void *)(uintptr_t)c);
}

bool weft_conv_plan_rows(weft_conv *c)
{
    enum { LEAST_WORK = 4096 };
    weft_conv t = *c;
    if (weft_run_kernels_of(c->dtype) == NULL || c->stream == NULL) return false;
    if (weft_conv_count_phases(c) > WEFT_CONV_PHASES) return false;
    drop_windows(&t);
    if (weft_conv_count(&t.m) * weft_conv_count(&t.n) * weft_conv_count(&t.k) *
            weft_conv_count(&t.free) <
        LEAST_WORK)
        return false;
    t.rows.is_to_filter = sums_places(&t);
    if (!take_groups(&t) && !take_product(&t) && !take_channels(&t)) return false;
    t.n.n = 0;
    choose_tile(&t);
    t.rows.n_phases = 1;
    t.rows.is_padded = weft_conv_plan_pad(&t);
    if (!t.rows.is_padded && !settle_phases(&t)) return false;
    if (t.rows.is_padded) {
        t.rows.inner = weft_conv_count(&t.m);
        t.rows.n_tiles = (t.rows.inner + t.rows.rows - 1) / t.rows.rows;
        t.rows.part = weft_conv_count(&t.k);
        t.rows.n_runs = 1;
    }
    cut_items(&t, t.x_count);
    t.rows.streams = is_streamed(&t);
    *c = t;
    c->run = run;
    return true;
}
