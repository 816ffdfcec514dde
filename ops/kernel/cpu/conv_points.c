/* conv_points.c: where the rows of a convolution's tiles begin in x, run by run, and which are outside of it. */
#include "cpu/conv_lane.h"
#include "cpu/gemm_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

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

/* Elements of the last dim from the place at hand on: 1 where there is no dim. */
static int64_t count_left(const walk *w)
{
    const int last = w->dims->n - 1;
    return last < 0 ? 1 : w->dims->dim[last].size - w->index[last];
}

/* n places on, at most to the end of the last dim. */
static void go_on(walk *w, int64_t n)
{
    for (int d = w->dims->n - 1; d >= 0; d--, n = 1) {
        const weft_conv_dim *dim = &w->dims->dim[d];
        add(&w->p, dim, n);
        w->index[d] += n;
        if (w->index[d] < dim->size) return;
        add(&w->p, dim, -dim->size);
        w->index[d] = 0;
    }
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* What a row adds to the one before it, along the last dim: bytes of x and of y, and places in windows; 0 to 7 times. */
typedef struct row_steps {
    __m512i x, y, at[WEFT_CONV_WINDOWS];
    int64_t last[WEFT_CONV_WINDOWS]; /* places, once */
} row_steps;

static TILE_TARGET __m512i times(int64_t step)
{
    return _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(step));
}

static TILE_TARGET void find_steps(const weft_conv *c, row_steps *steps)
{
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    const weft_conv_dim none = {.window = -1}, *last = c->m.n > 0 ? &c->m.dim[c->m.n - 1] : &none;
    int64_t x = last->x;
    for (int s = 0; s < c->n_windows; s++) {
        steps->last[s] = s == last->window ? last->step : 0;
        steps->at[s] = times(steps->last[s]);
        x += steps->last[s] * c->window[s].stride;
    }
    steps->x = times(x * bytes), steps->y = times(last->y * bytes);
}

/* Whether rows of windows at `at` to at + along have something at all of k. */
static bool is_inside(const weft_conv *c, int s, int64_t at, int64_t along)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t run = s == r->run.window ? r->run.step * (r->run.size - 1) : 0;
    return at + smaller(along, 0) + r->low[s] + smaller(run, 0) >= 0 &&
           at + (along > 0 ? along : 0) + r->high[s] + (run > 0 ? run : 0) < c->window[s].size;
}

/* Rows [i, i + n) of a tile, from p on along the last dim. */
static TILE_TARGET void find_stretch(const weft_conv *c, const weft_conv_place *p,
                                     const row_steps *steps, int64_t i, int64_t n,
                                     weft_conv_row_set *t)
{
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype);
    const __mmask8 some = (__mmask8)((1u << n) - 1);
    int64_t x = p->x;
    for (int s = 0; s < c->n_windows; s++) {
        const int64_t at = p->at[s];
        _mm512_mask_storeu_epi64(&t->at[s][i], some,
                                 _mm512_add_epi64(_mm512_set1_epi64(at), steps->at[s]));
        x += at * c->window[s].stride;
        t->is_inside = t->is_inside && is_inside(c, s, at, (n - 1) * steps->last[s]);
    }
    const __m512i first_x = _mm512_set1_epi64((int64_t)(intptr_t)c->x + x * bytes),
                  first_y = _mm512_set1_epi64((int64_t)(intptr_t)c->y + p->y * bytes);
    _mm512_mask_storeu_epi64(&t->x[i], some, _mm512_add_epi64(first_x, steps->x));
    _mm512_mask_storeu_epi64(&t->y[i], some, _mm512_add_epi64(first_y, steps->y));
}

/* Rows behind the last read what is there, and are written to where nobody reads. */
static TILE_TARGET void fill_set(const weft_conv *c, weft_conv_row_set *set, weft_conv_lane *m)
{
    const __mmask8 rest = (__mmask8)(0xffu << set->n);
    const __m512i spare = _mm512_add_epi64(_mm512_set1_epi64((int64_t)(intptr_t)m->spare[0]),
                                           times((int64_t)sizeof m->spare[0]));
    _mm512_mask_storeu_epi64(set->x, rest, _mm512_set1_epi64(set->x[0]));
    _mm512_mask_storeu_epi64(set->y, rest, spare);
    for (int s = 0; s < c->n_windows; s++)
        _mm512_mask_storeu_epi64(set->at[s], rest, _mm512_set1_epi64(set->at[s][0]));
}

TILE_TARGET void weft_conv_find_rows(const weft_conv *c, const weft_conv_place *p, int64_t first,
                                     int64_t n, weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t of_inner = (r->inner + r->rows - 1) / r->rows;
    row_steps steps;
    walk w;
    find_steps(c, &steps);
    begin_walk(&w, &c->m, p, first / of_inner * r->inner + first % of_inner * r->rows);
    for (int64_t t = 0; t < n; t++) {
        weft_conv_row_set *set = &m->tiles[t];
        set->n = smaller(r->rows, r->inner - (first + t) % of_inner * r->rows);
        set->is_inside = true;
        for (int64_t i = 0, some; i < set->n; i += some) {
            some = smaller(set->n - i, count_left(&w));
            find_stretch(c, &w.p, &steps, i, some, set);
            go_on(&w, some);
        }
        fill_set(c, set, m);
    }
}

/* ---- runs ---------------------------------------------------------------------------------------- */

void weft_conv_find_runs(const weft_conv *c, int64_t first, int64_t w_first, weft_conv_block *b)
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
        go_on(&w, 1);
    }
}

/* The same addresses in all runs. */
static TILE_TARGET void point_inside(const weft_conv_row_set *t, const weft_conv_block *b,
                                     weft_conv_lane *m)
{
    const __m512i x = _mm512_loadu_si512(t->x);
    for (int64_t i = 0; i < b->n; i++)
        _mm512_storeu_si512(m->a[i], _mm512_add_epi64(x, _mm512_set1_epi64(b->x[i])));
}

/* Which rows have something in window s at run i. */
static TILE_TARGET __mmask8 look(const weft_conv *c, int s, const weft_conv_row_set *t,
                                 const weft_conv_block *b, int64_t i)
{
    const __m512i at =
        _mm512_add_epi64(_mm512_loadu_si512(t->at[s]), _mm512_set1_epi64(b->at[s][i]));
    return _mm512_cmplt_epu64_mask(at, _mm512_set1_epi64(c->window[s].size));
}

/* Of the elements of a run those in the window that it moves: [*begin, *end). */
static void clip(const weft_conv *c, const weft_conv_row_set *t, int64_t *begin, int64_t *end)
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
static TILE_TARGET int64_t point_some(const weft_conv *c, const weft_conv_row_set *t,
                                      const weft_run_tile *of, weft_conv_lane *m)
{
    const weft_conv_block *b = &m->block;
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

void weft_conv_point(const weft_conv *c, const weft_conv_row_set *set, weft_run_tile *t,
                     weft_conv_lane *m)
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
#endif
