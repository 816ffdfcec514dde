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

static void find_row(const weft_conv *c, const weft_conv_place *p, int i, int64_t bytes,
                     weft_conv_row_set *t)
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

void weft_conv_find_rows(const weft_conv *c, const weft_conv_place *p, int64_t first, int64_t n,
                         weft_conv_lane *m)
{
    const weft_conv_rows *r = &c->rows;
    const int64_t bytes = (int64_t)weft_dtype_bytes(c->dtype),
                  of_inner = (r->inner + r->rows - 1) / r->rows;
    walk w;
    begin_walk(&w, &c->m, p, first / of_inner * r->inner + first % of_inner * r->rows);
    for (int64_t t = 0; t < n; t++) {
        weft_conv_row_set *set = &m->tiles[t];
        set->n = smaller(r->rows, r->inner - (first + t) % of_inner * r->rows);
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
        go_on(&w);
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
