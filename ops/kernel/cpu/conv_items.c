/* conv_items.c: rows and columns of a convolution, done by tiles of runs.
 *
 * For some rows the addresses of their first elements are worked out once. Then come, in the order that keeps y in cache, blocks
 * of k and a few vectors of columns at a time. Of these w is packed, and all rows go past it.
 */
#include "cpu/conv.h"
#include "cpu/gemm_tile.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    MOST_BLOCK = 256,
    MOST_TILES = 160,
    ZERO_BYTES = 32 << 10,
    Y_BYTES = 256 << 10, /* of y that blocks of k are added to */
    PANEL_BYTES = WEFT_RUN_VECTORS * WEFT_RUN_BYTES,
    LEAST_REUSE = 4 /* tiles for which w is worth packing, if it is dense or need not be turned */
};

/* One tile's rows: addresses in x without k's part, and of y, and places in windows. */
typedef struct row_set {
    int64_t x[WEFT_RUN_ROWS], y[WEFT_RUN_ROWS];
    int64_t at[WEFT_CONV_WINDOWS][WEFT_RUN_ROWS];
    int64_t n;
    bool is_inside; /* at all of k */
} row_set;

typedef struct block {
    int64_t n;
    int64_t x[MOST_BLOCK], w[MOST_BLOCK]; /* bytes */
    int64_t first[MOST_BLOCK], k[MOST_BLOCK];
    int64_t at[WEFT_CONV_WINDOWS][MOST_BLOCK];
    const char *b[MOST_BLOCK];
} block;

/* Of a lane's scratch. */
typedef struct memory {
    char pad[WEFT_CONV_PAD_BYTES];
    row_set tiles[MOST_TILES];
    block block;
    const char *a[MOST_BLOCK][WEFT_RUN_ROWS], *b[MOST_BLOCK];
    int64_t k[MOST_BLOCK];
    char panel[MOST_BLOCK * PANEL_BYTES];
    char places[WEFT_RUN_ROWS][WEFT_RUN_BYTES]; /* of channels */
    char zeros[ZERO_BYTES], spare[WEFT_RUN_ROWS][PANEL_BYTES];
} memory;
_Static_assert(sizeof(memory) <= WEFT_LANE_SCRATCH, "scratch holds all");

/* What of y is done at once. */
typedef struct share {
    int64_t tile, n_tiles, vector, n_vectors;
    bool add;
} share;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- places, one after the other ----------------------------------------------------------------- */

typedef struct walk {
    const weft_conv_dims *dims;
    int64_t index[2 * WEFT_MAX_DIMS];
    weft_conv_place p;
} walk;

static void add(weft_conv_place *p, const weft_conv_dim *dim, int64_t n)
{
    p->x += n * dim->x, p->w += n * dim->w, p->y += n * dim->y;
    if (dim->window >= 0) p->at[dim->window] += n * dim->step;
}

static void begin_walk(walk *w, const weft_conv_dims *dims, const weft_conv_place *from,
                       int64_t index)
{
    w->dims = dims;
    w->p = *from;
    weft_conv_move(dims, index, &w->p);
    for (int d = dims->n - 1; d >= 0; d--) {
        w->index[d] = index % dims->dim[d].size;
        index /= dims->dim[d].size;
    }
}

static void go_on(walk *w)
{
    for (int d = w->dims->n - 1; d >= 0; d--) {
        const weft_conv_dim *dim = &w->dims->dim[d];
        add(&w->p, dim, 1);
        if (++w->index[d] < dim->size) return;
        add(&w->p, dim, -dim->size);
        w->index[d] = 0;
    }
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static void find_row(const weft_conv *c, const weft_conv_place *p, int i, int64_t bytes, row_set *t)
{
    const weft_conv_rows *r = &c->rows;
    int64_t x = p->x;
    for (int s = 0; s < c->n_windows; s++) {
        const int64_t at = p->at[s];
        t->at[s][i] = at;
        x += at * c->window[s].stride;
        const int64_t along = s == r->run.window ? r->run.step * (r->run.size - 1) : 0;
        t->is_inside = t->is_inside && at + r->low[s] + smaller(along, 0) >= 0 &&
                       at + r->high[s] + (along > 0 ? along : 0) < c->window[s].size;
    }
    t->x[i] = (int64_t)(intptr_t)c->x + x * bytes;
    t->y[i] = (int64_t)(intptr_t)c->y + p->y * bytes;
}

static void find_rows(const weft_conv *c, const weft_conv_place *p, const share *of, memory *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype),
                  of_inner = (r->inner + r->rows - 1) / r->rows;
    walk w;
    begin_walk(&w, &c->m, p, of->tile / of_inner * r->inner + of->tile % of_inner * r->rows);
    for (int64_t t = 0; t < of->n_tiles; t++) {
        row_set *set = &m->tiles[t];
        set->n = smaller(r->rows, r->inner - (of->tile + t) % of_inner * r->rows);
        set->is_inside = true;
        for (int i = 0; i < set->n; i++, go_on(&w))
            find_row(c, &w.p, i, bytes, set);
        for (int i = (int)set->n; i < WEFT_RUN_ROWS; i++) { /* any that is there */
            set->x[i] = set->x[0];
            set->y[i] = (int64_t)(intptr_t)m->spare[i];
            for (int s = 0; s < c->n_windows; s++)
                set->at[s][i] = set->at[s][0];
        }
    }
}

/* ---- runs ---------------------------------------------------------------------------------------- */

static void find_runs(const weft_conv *c, int64_t first, int64_t w_first, block *b)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    walk w;
    b->n = smaller(r->per_block, r->n_runs - first);
    if (b->n == 0) return; /* a phase without taps: zeros */
    begin_walk(&w, &c->k, &(weft_conv_place){.w = w_first}, first / r->n_parts);
    for (int64_t i = 0, part = first % r->n_parts; i < b->n; i++) {
        weft_conv_place p = w.p;
        b->first[i] = part * r->part;
        b->k[i] = smaller(r->part, r->run.size - b->first[i]);
        add(&p, &r->run, b->first[i]);
        for (int s = 0; s < c->n_windows; s++) {
            b->at[s][i] = p.at[s];
            p.x += p.at[s] * c->window[s].stride;
        }
        b->x[i] = p.x * bytes;
        b->w[i] = p.w * bytes;
        if (++part < r->n_parts) continue;
        part = 0;
        go_on(&w);
    }
}

/* The same addresses in all runs. */
static TILE_TARGET void point_inside(const row_set *t, const block *b, memory *m)
{
    const __m512i x = _mm512_loadu_si512(t->x);
    for (int64_t i = 0; i < b->n; i++)
        _mm512_storeu_si512(m->a[i], _mm512_add_epi64(x, _mm512_set1_epi64(b->x[i])));
}

/* Which rows have something in window s at run i. */
static TILE_TARGET __mmask8 look(const weft_conv *c, int s, const row_set *t, const block *b,
                                 int64_t i)
{
    const __m512i at =
        _mm512_add_epi64(_mm512_loadu_si512(t->at[s]), _mm512_set1_epi64(b->at[s][i]));
    return _mm512_cmplt_epu64_mask(at, _mm512_set1_epi64(c->window[s].size));
}

/* Of the elements of a run those in the window that it moves: [*begin, *end). */
static void clip(const weft_conv *c, const row_set *t, int64_t *begin, int64_t *end)
{
    const weft_conv_dim *run = &c->rows.run;
    *begin = 0, *end = run->size;
    if (run->window < 0 || run->size == 0) return;
    const int64_t size = c->window[run->window].size, at = t->at[run->window][0];
    const int64_t by = run->step < 0 ? -run->step : run->step,
                  from = run->step < 0 ? size - 1 - at : at;
    if (from < 0) *begin = (-from + by - 1) / by;
    *end = from >= size ? 0 : smaller(*end, (size - 1 - from) / by + 1);
}

/* Runs that have something for any row; the rows that have not read zeros. Returns how many. */
static TILE_TARGET int64_t point_some(const weft_conv *c, const row_set *t, const weft_run_tile *of,
                                      memory *m)
{
    const block *b = &m->block;
    const __m512i zeros = _mm512_set1_epi64((int64_t)(intptr_t)m->zeros);
    int64_t n = 0, begin, end;
    clip(c, t, &begin, &end);
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t from = begin > b->first[i] ? begin - b->first[i] : 0,
                      to = smaller(end - b->first[i], b->k[i]);
        const __m512i x = _mm512_add_epi64(_mm512_loadu_si512(t->x),
                                           _mm512_set1_epi64(b->x[i] + from * of->a_step));
        __mmask8 has = from < to ? 0xff : 0;
        for (int s = 0; s < c->n_windows; s++)
            if (s != c->rows.run.window) has &= look(c, s, t, b, i);
        if (has == 0) continue;
        _mm512_storeu_si512(m->a[n], _mm512_mask_blend_epi64(has, zeros, x));
        m->b[n] = b->b[i] + from * of->b_step;
        m->k[n++] = to - from;
    }
    return n;
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
                        memory *m)
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
                   weft_run_tile *t, memory *m)
{
    const weft_conv_rows *r = &c->rows;
    const int bytes = (int)weft_dtype_bytes(c->dtype), width = WEFT_RUN_BYTES / bytes;
    const char *w = c->w + column * r->w_by * bytes;
    block *b = &m->block;
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

static void point(const weft_conv *c, const row_set *set, weft_run_tile *t, memory *m)
{
    t->a = (const char *const(*)[WEFT_RUN_ROWS])m->a;
    t->b = m->block.b, t->k = m->block.k, t->n = m->block.n;
    if (set->is_inside) {
        point_inside(set, &m->block, m);
    } else {
        t->n = point_some(c, set, t, m);
        t->b = m->b, t->k = m->k;
    }
}

static void run_tile(const weft_conv *c, const row_set *set, int64_t column, weft_run_function work,
                     weft_run_tile *t, memory *m)
{
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    char *to[WEFT_RUN_ROWS];
    for (int i = 0; i < WEFT_RUN_ROWS; i++)
        to[i] = (char *)(intptr_t)(set->y[i] + (i < set->n ? column * bytes : 0));
    t->c = to;
    point(c, set, t, m);
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
static void run_to_groups(const weft_conv *c, const row_set *set, int64_t column,
                          weft_run_function work, weft_run_tile *t, memory *m)
{
    char *to[WEFT_RUN_ROWS], *y = (char *)(intptr_t)set->y[0];
    for (int i = 0; i < WEFT_RUN_ROWS; i++)
        to[i] = m->spare[i];
    t->c = to;
    point(c, set, t, m);
    const bool adds = t->add;
    t->add = false;
    work(t);
    t->add = adds;
    (c->dtype == WEFT_F32 ? put_groups_f32 : put_groups_f64)(&c->rows, column, t->columns, adds, to,
                                                             y);
}

/* Where a vector of x has channel l of the group of each column. */
static void find_places(const weft_conv *c, memory *m)
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
                      bool adds, memory *m)
{
    const weft_conv_rows *r = &c->rows;
    const weft_run_kernels *kernels = weft_run_kernels_of(c->dtype);
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype), column = vector * kernels->width;
    const int columns = (int)smaller(n_vectors * kernels->width, r->columns - column);
    weft_run_tile t = {.a_step = r->run.x * bytes,
                       .columns = columns,
                       .add = adds,
                       .channels = r->channels,
                       .places = m->places[0]};
    if (r->run.window >= 0) t.a_step = r->run.step * c->window[r->run.window].stride * bytes;
    const bool is_part = r->kind != WEFT_RUN_PRODUCT && columns < kernels->width;
    take_w(c, column, columns, (int)n_vectors, of->n_tiles, &t, m);
    for (int64_t i = 0; i < m->block.n; i++)
        m->block.x[i] += column * r->x_by * bytes;
    const bool is_to_groups = r->kind == WEFT_RUN_GROUPS && r->is_to_filter;
    for (int64_t i = 0; i < of->n_tiles; i++) {
        const row_set *set = &m->tiles[i];
        (is_to_groups ? run_to_groups : run_tile)(
            c, set, column, function_of(c, kernels, set->n, n_vectors, is_part), &t, m);
    }
    for (int64_t i = 0; i < m->block.n; i++)
        m->block.x[i] -= column * r->x_by * bytes;
}

static void run_part(const weft_conv *c, const weft_conv_place *p, const share *of, int lane,
                     memory *m)
{
    const weft_conv_rows *r = &c->rows;
    const int width = weft_run_kernels_of(c->dtype)->width;
    const int64_t end = of->vector + of->n_vectors,
                  most = Y_BYTES / (of->n_tiles * r->rows * WEFT_RUN_BYTES);
    const int64_t at_once = most > r->vectors ? most : r->vectors;
    find_rows(c, p, of, m);
    for (int64_t first = of->vector; first < end; first += at_once) {
        const int64_t stop = smaller(end, first + at_once);
        for (int64_t run = 0; run == 0 || run < r->n_runs; run += r->per_block) {
            find_runs(c, run, p->w, &m->block);
            for (int64_t v = first, n; v < stop; v += n) {
                n = count_vectors(c, width, v, stop);
                run_tiles(c, of, v, n, of->add || run > 0, m);
            }
            weft_stream_pause(c->stream, lane);
        }
    }
}

/* ---- items --------------------------------------------------------------------------------------- */

/* Rows of some elements of y's outermost dim. */
static void run_padded(const weft_conv *c, const weft_conv_place *p, int64_t unit, share of,
                       int lane, memory *m)
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
                                 memory *m)
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

/* Units of tiles, of one phase and one element of `free`. */
static void run_units(const weft_conv *c, int64_t free, int64_t unit, int64_t n_units,
                      int64_t vector, int64_t n_vectors, int lane)
{
    const int64_t n_free = weft_conv_count(&c->free);
    memory *m = weft_stream_scratch(c->stream, lane);
    share of = {.tile = unit * c->rows.unit, .vector = vector, .n_vectors = n_vectors};
    weft_conv phase;
    if (c->rows.n_phases > 1) {
        weft_conv_take_phase(c, free / n_free, &phase);
        c = &phase;
    }
    weft_conv_place p = c->first;
    of.n_tiles = smaller(n_units * c->rows.unit, c->rows.n_tiles - of.tile);
    weft_conv_move(&c->free, free % n_free, &p);
    if (c->rows.is_padded && c->rows.is_to_filter)
        run_padded_to_filter(c, &p, of, lane, m);
    else if (c->rows.is_padded)
        run_padded(c, &p, unit, of, lane, m);
    else if (of.n_tiles > 0)
        run_part(c, &p, &of, lane, m);
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
    memory *m = weft_stream_scratch(c->stream, lane);
    memset(m->zeros, 0, sizeof m->zeros);
    memset(m->spare, 0, sizeof m->spare);
    find_places(c, m);
    (void)begin, (void)end;
    const int64_t most = c->rows.is_to_filter ? INT64_MAX : c->rows.most * c->rows.n_vectors;
    while (weft_stream_take(c->stream, lane, most, &begin, &end))
        run_range(c, begin, end, lane);
}
#else
void weft_conv_run_items(void *argument, int64_t begin, int64_t end, int lane)
{
    (void)argument, (void)begin, (void)end, (void)lane;
}
#endif
