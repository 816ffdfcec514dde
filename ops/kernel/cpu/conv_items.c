/* conv_items.c: rows and columns of a convolution, done by tiles of runs.
 *
 * For some rows the addresses of their first elements are worked out once. Then come, in the order that keeps y in cache, blocks
 * of k and a few vectors of columns at a time. w is packed for these, and all rows go past it.
 */
#include "cpu/conv_lane.h"
#include "cpu/gemm_tile.h"
#include "cpu/relay.h"

#include <string.h>

#if defined(__x86_64__)
enum {
    Y_BYTES = 256 << 10, /* of y that blocks of k are added to */
    LEAST_REUSE =
        4 /* tiles for which w is worth packing, if it is not dense and need not be turned */
};

/* What of y is done at once. */
typedef struct share {
    int64_t tile, n_tiles, vector, n_vectors;
    bool add;
} share;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- columns ------------------------------------------------------------------------------------- */

/* Vectors from `vector` on that are done at once: as even as can be, and one that is not whole by itself. */
static int64_t count_vectors(const weft_conv *c, int width, int64_t vector, int64_t end)
{
    const int64_t whole = c->rows.columns / width;
    if (c->rows.kind != WEFT_RUN_PRODUCT && vector < whole && end > whole) end = whole;
    const int64_t n = end - vector, pieces = (n + c->rows.vectors - 1) / c->rows.vectors;
    return (n + pieces - 1) / pieces;
}

/* [taps, channels, columns] of groups. */
static void take_groups(const weft_conv *c, int64_t column, int columns, weft_run_tile *t,
                        weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    char *to = m->panel;
    for (int64_t i = 0; i < m->block.n; i++) {
        m->block.b[i] = to;
        for (int64_t l = 0; l < r->channels; l++)
            for (int64_t j = column; j < column + columns; j++, to += bytes)
                memcpy(to,
                       c->w + m->block.w[i] +
                           (j / r->channels * r->by_group + l * r->by_channel +
                            j % r->channels * r->by_feature) *
                               bytes,
                       (size_t)bytes);
    }
    t->b_step = 0;
}

/* w of a block and some columns, packed, or where it lies. */
static void take_w(const weft_conv *c, int64_t column, int columns, int vectors, int64_t n_tiles,
                   weft_run_tile *t, weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int bytes = (int)weft_dtype_bytes(c->dtype), width = WEFT_RUN_BYTES / bytes;
    const char *w = c->w + column * r->w_by * bytes;
    weft_conv_block *b = &m->block;
    if (r->kind == WEFT_RUN_GROUPS && !r->is_to_filter) {
        take_groups(c, column, columns, t, m);
        return;
    }
    const bool is_dense = r->run.w == columns || r->run.size == 1;
    if (r->kind != WEFT_RUN_PRODUCT ||
        (r->w_by == 1 && columns == vectors * width && (is_dense || n_tiles < LEAST_REUSE))) {
        t->b_step = r->run.w * bytes;
        for (int64_t i = 0; i < b->n; i++)
            b->b[i] = w + b->w[i];
        return;
    }
    const tile_kernels *kernels = weft_gemm_kernels(c->dtype);
    char *to = m->panel;
    t->b_step = vectors * WEFT_RUN_BYTES;
    for (int64_t i = 0; i < b->n; i++) {
        const side s = {.data = w + b->w[i], .step = r->w_by, .deep = r->run.w, .bytes = bytes};
        kernels->pack(&s, columns, vectors * width, b->k[i], to);
        b->b[i] = to;
        to += b->k[i] * t->b_step;
    }
}

static void run_tile(const weft_conv *c, const weft_conv_row_set *set, int64_t column,
                     weft_run_function work, weft_run_tile *t, weft_conv_lane *m)
{
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    char *to[WEFT_RUN_ROWS];
    for (int i = 0; i < WEFT_RUN_ROWS; i++)
        to[i] = (char *)(intptr_t)(set->y[i] + (i < set->n ? column * bytes : 0));
    t->c = to;
    weft_conv_point(c, set, t, m);
    work(t);
}

#define PUT_GROUPS(s, T)                                                                           \
    static void put_groups_##s(const weft_conv_rows *r, int64_t column, int64_t columns, bool add, \
                               char *const *from, char *to)                                        \
    {                                                                                              \
        for (int64_t l = 0; l < r->channels; l++)                                                  \
            for (int64_t j = 0; j < columns; j++) {                                                \
                const T new = ((const T *)(const void *)from[l])[j];                               \
                T *y = (T *)(void *)to + (column + j) / r->channels * r->by_group +                \
                       l * r->by_channel + (column + j) % r->channels * r->by_feature;             \
                *y = add ? *y + new : new;                                                         \
            }                                                                                      \
    }
PUT_GROUPS(f32, float)
PUT_GROUPS(f64, double)

/* One tap of the filter: all channels of some groups. */
static void run_to_groups(const weft_conv *c, const weft_conv_row_set *set, int64_t column,
                          weft_run_function work, weft_run_tile *t, weft_conv_lane *m)
{
    char *to[WEFT_RUN_ROWS], *y = (char *)(intptr_t)set->y[0];
    for (int i = 0; i < WEFT_RUN_ROWS; i++)
        to[i] = m->spare[i];
    t->c = to;
    weft_conv_point(c, set, t, m);
    const bool adds = t->add;
    t->add = false;
    work(t);
    t->add = adds;
    (c->dtype == WEFT_F32 ? put_groups_f32 : put_groups_f64)(&c->rows, column, t->columns, adds, to,
                                                             y);
}

/* Where a vector of x has channel l of the group of each column. */
static void find_places(const weft_conv *c, weft_conv_lane *m)
{
    const int64_t n = c->rows.channels;
    for (int l = 0; l < n; l++)
        for (int i = 0; i < WEFT_RUN_BYTES / (int)weft_dtype_bytes(c->dtype); i++)
            if (c->dtype == WEFT_F32)
                ((int32_t *)(void *)m->places[l])[i] = (int32_t)(i / n * n + l);
            else
                ((int64_t *)(void *)m->places[l])[i] = i / n * n + l;
}

static weft_run_function function_of(const weft_conv *c, const weft_run_kernels *kernels,
                                     int64_t rows, int64_t n_vectors, bool is_part)
{
    static const int of_rows[WEFT_RUN_ROWS + 1] = {0, 0, 1, 2, 2, 3, 3, 4, 4};
    const weft_conv_rows *r = &c->rows;
    if (r->kind == WEFT_RUN_GROUPS && r->is_to_filter)
        return kernels->to_groups[r->channels / 4][n_vectors - 1];
    if (r->kind == WEFT_RUN_GROUPS) return kernels->groups[of_rows[rows]][n_vectors - 1];
    return is_part ? kernels->part[r->kind][of_rows[rows]]
                   : kernels->whole[r->kind][of_rows[rows]][n_vectors - 1];
}

/* All tiles by one block and some vectors. */
static void run_tiles(const weft_conv *c, const share *of, int64_t vector, int64_t n_vectors,
                      bool adds, weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const weft_run_kernels *kernels = weft_run_kernels_of(c->dtype);
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype), column = vector * kernels->width;
    const int columns = (int)smaller(n_vectors * kernels->width, r->columns - column);
    weft_run_tile t = {.a_step = r->run.x * bytes,
                       .columns = columns,
                       .add = adds,
                       .streams = r->streams,
                       .channels = r->channels,
                       .places = m->places[0]};
    if (r->run.window >= 0) t.a_step = r->run.step * c->window[r->run.window].stride * bytes;
    const bool is_part = r->kind != WEFT_RUN_PRODUCT && columns < kernels->width;
    take_w(c, column, columns, (int)n_vectors, of->n_tiles, &t, m);
    for (int64_t i = 0; i < m->block.n; i++)
        m->block.x[i] += column * r->x_by * bytes;
    const bool is_to_groups = r->kind == WEFT_RUN_GROUPS && r->is_to_filter;
    for (int64_t i = 0; i < of->n_tiles; i++) {
        const weft_conv_row_set *set = &m->tiles[i];
        (is_to_groups ? run_to_groups : run_tile)(
            c, set, column, function_of(c, kernels, set->n, n_vectors, is_part), &t, m);
    }
    for (int64_t i = 0; i < m->block.n; i++)
        m->block.x[i] -= column * r->x_by * bytes;
}

static void run_some(const weft_conv *c, const weft_conv_place *p, const share *of, int lane,
                     weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int width = weft_run_kernels_of(c->dtype)->width;
    const int64_t end = of->vector + of->n_vectors,
                  most = Y_BYTES / (of->n_tiles * r->rows * WEFT_RUN_BYTES);
    const int64_t at_once = most > r->vectors ? most : r->vectors;
    weft_conv_find_rows(c, p, of->tile, of->n_tiles, m);
    for (int64_t first = of->vector; first < end; first += at_once) {
        const int64_t stop = smaller(end, first + at_once);
        for (int64_t run = 0; run == 0 || run < r->n_runs; run += r->per_block) {
            weft_conv_find_runs(c, run, p->w, &m->block);
            for (int64_t v = first, n; v < stop; v += n) {
                n = count_vectors(c, width, v, stop);
                run_tiles(c, of, v, n, of->add || run > 0, m);
            }
            weft_stream_pause(c->stream, lane);
        }
    }
}

/* As many tiles at a time as have addresses. */
static void run_part(const weft_conv *c, const weft_conv_place *p, const share *of, int lane,
                     weft_conv_lane *m)
{
    share some = *of;
    const int64_t end = of->tile + of->n_tiles;
    for (; some.tile < end; some.tile += some.n_tiles) {
        some.n_tiles = smaller(WEFT_CONV_TILES, end - some.tile);
        run_some(c, p, &some, lane, m);
    }
}

/* ---- items --------------------------------------------------------------------------------------- */

/* Rows of some elements of y's outermost dim. */
static void run_padded(const weft_conv *c, const weft_conv_place *p, int64_t unit, share of,
                       int lane, weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t first = unit * r->pad_n;
    weft_conv padded;
    weft_conv_pad(c, &c->m, p, first, smaller(r->pad_n, c->m.dim[0].size - first), m->pad, &padded);
    of.tile = 0, of.n_tiles = padded.rows.n_tiles;
    run_part(&padded, &padded.first, &of, lane, m);
}

/* Some rows of the filter: all of k, some elements of its outermost dim at a time. */
static void run_padded_to_filter(const weft_conv *c, const weft_conv_place *p, share of, int lane,
                                 weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t outer = weft_conv_count(&r->pad_outer), size = c->k.dim[0].size;
    for (int64_t o = 0; o < outer; o++) {
        weft_conv_place q = *p;
        weft_conv_move(&r->pad_outer, o, &q);
        for (int64_t first = 0; first < size; first += r->pad_n) {
            weft_conv padded;
            weft_conv_pad(c, &c->k, &q, first, smaller(r->pad_n, size - first), m->pad, &padded);
            of.add = o > 0 || first > 0;
            run_part(&padded, &padded.first, &of, lane, m);
        }
    }
}

static void run_share(const weft_conv *c, const weft_conv_place *p, int64_t unit, share of,
                      int lane, weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    of.n_tiles = smaller(of.n_tiles, r->n_tiles - of.tile);
    if (r->is_padded && r->is_to_filter)
        run_padded_to_filter(c, p, of, lane, m);
    else if (r->is_padded)
        run_padded(c, p, unit, of, lane, m);
    else
        run_part(c, p, &of, lane, m);
}

/* All phases one after the other: they write the same lines of y. */
static void run_units(const weft_conv *c, int64_t free, int64_t unit, int64_t n_units,
                      int64_t vector, int64_t n_vectors, int lane)
{
    const weft_conv_rows *r = &c->rows;
    weft_conv_lane *m = weft_stream_scratch(c->stream, lane);
    const share of = {.tile = unit * r->unit,
                      .n_tiles = n_units * r->unit,
                      .vector = vector,
                      .n_vectors = n_vectors};
    for (int64_t i = 0; i < r->n_phases; i++) {
        weft_conv phase;
        if (r->n_phases > 1) weft_conv_take_phase(c, i, &phase);
        const weft_conv *one = r->n_phases > 1 ? &phase : c;
        weft_conv_place p = one->first;
        weft_conv_move(&c->free, free, &p);
        run_share(one, &p, unit, of, lane, m);
    }
}

/* Items i up to `end` that are done at once, of [slow, fast] ones; fast ones are all there, or one slow one is begun. */
static int64_t at_once(int64_t i, int64_t end, int64_t fast, int64_t most_slow, int64_t slow)
{
    const int64_t left = end - i;
    if (i % fast != 0 || left < fast) return smaller(left, fast - i % fast);
    return smaller(smaller(left / fast, most_slow), slow - i / fast % slow) * fast;
}

static void run_range(const weft_conv *c, int64_t begin, int64_t end, int lane)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t slow = r->is_by_vector ? r->n_vectors : r->n_units,
                  fast = r->is_by_vector ? r->n_units : r->n_vectors;
    for (int64_t i = begin, n; i < end; i += n) {
        n = at_once(i, end, fast, r->is_by_vector ? slow : r->most, slow);
        const int64_t free = i / (slow * fast), first = i / fast % slow, second = i % fast,
                      n_slow = n < fast ? 1 : n / fast, n_fast = n < fast ? n : fast;
        if (r->is_by_vector)
            run_units(c, free, second, n_fast, first, n_slow, lane);
        else
            run_units(c, free, first, n_slow, second, n_fast, lane);
    }
}

void weft_conv_run_items(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    const weft_conv_rows *r = &c->rows;
    weft_conv_lane *m = weft_stream_scratch(c->stream, lane);
    memset(m->zeros, 0, sizeof m->zeros);
    memset(m->spare, 0, sizeof m->spare);
    find_places(c, m);
    (void)begin, (void)end;
    const int64_t most =
        r->is_to_filter || r->is_by_vector ? INT64_MAX : r->most * r->n_vectors / r->item;
    while (weft_stream_take(c->stream, lane, most, &begin, &end))
        run_range(c, begin * r->item, end * r->item, lane);
    if (r->streams) weft_relay_fence();
}
#else
void weft_conv_run_items(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)argument, (void)begin, (void)end, (void)lane;
}
#endif
