/* attention_panels.c: attention and its gradient, panel by panel of query rows, by kernels of ours.
 *
 * The mathematics are those of attention.c and attention_grad.c; attention_panels.h says how they lie. A task is a panel,
 * in the gradient the heads that have memory rows in common, so that dk and dv are added up by one lane, in one order.
 */
#include "cpu/attention_panels.h"

#include <string.h>

static int64_t count_panels(const weft_heads *h)
{
    return (h->n_query + weft_panel_rows_of(h) - 1) / weft_panel_rows_of(h);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static char *row_at(const weft_panel *p, char *s, int64_t row)
{
    return s + (size_t)(row * p->width) * p->h->bytes;
}

static void enter_panel(weft_panel *p, int64_t head, int64_t panel)
{
    const int64_t begin = panel * p->width;
    weft_panel_enter(p, head, begin, smaller(p->width, p->h->n_query - begin));
}

/* ---- attention ------------------------------------------------------------------------------- */

static void correct_sum(const weft_panel *p, const double *by)
{
    for (int64_t i = 0; i < p->n_rows; i++)
        if (by[i] != 1)
            weft_row_maths[p->h->dtype].multiply(p->sum + (size_t)(i * p->features) * p->h->bytes,
                                                 p->features, by[i]);
}

/* Scores of memory rows [first, end), which begin at s, raise the max. */
static void raise_rows(weft_panel *p, int64_t first, int64_t end, char *s)
{
    weft_panel_part part;
    for (int64_t row = first; row < end; row += part.n) {
        char *at = row_at(p, s, row - first);
        part = weft_panel_part_at(p, row, end);
        weft_panel_scores(p, &part, 0, p->h->scale, at);
        if (!part.is_whole) weft_panel_hide(p, &part, at);
        weft_panel_maths[p->h->dtype].raise(&part, &p->rows, at, p->width);
    }
}

static void attend_tile(weft_panel *p, int64_t first, int64_t end)
{
    const weft_panel_math *math = &weft_panel_maths[p->h->dtype];
    const bool is_begun = first > p->seen[0];
    double by[WEFT_PANEL];
    weft_panel_part part;
    raise_rows(p, first, end, p->s);
    math->settle(&p->state, &p->rows, p->vectors, by);
    for (int64_t row = first; row < end; row += part.n) {
        part = weft_panel_part_at(p, row, end);
        math->enter(&part, &p->state, &p->rows, row_at(p, p->s, row - first), p->width);
    }
    if (is_begun) correct_sum(p, by);
    weft_panel_sum(p, p->s, 1, first, end, 1, is_begun);
}

static void attend(weft_panel *p)
{
    double by[WEFT_PANEL];
    for (int64_t first = p->seen[0], end; first < p->seen[1]; first = end) {
        end = smaller(first / WEFT_PANEL_TILE * WEFT_PANEL_TILE + WEFT_PANEL_TILE, p->seen[1]);
        weft_panel_hold(p, p->head, first, end);
        attend_tile(p, first, end);
    }
    if (p->seen[0] >= p->seen[1]) memset(p->sum, 0, (size_t)(p->width * p->features) * p->h->bytes);
    for (int64_t i = 0; i < p->n_rows; i++) {
        by[i] = p->state.sum[i] == 0 ? 0 : 1 / p->state.sum[i];
        weft_heads_keep(p->h, p->head, p->begin + i, p->state.max[i], p->state.sum[i]);
    }
    weft_panel_store(p, WEFT_O, by, false);
}

/* Panels are shared out as the first and the last of a head, the second and the last but one, so that those that see
 * little stand beside those that see much. Number k of those of a share [begin, end) of n in their own order, so that
 * memory rows are held once. */
static int64_t panel_of_share(int64_t k, int64_t begin, int64_t end, int64_t n)
{
    const int64_t n_firsts = (end + 1) / 2 - (begin + 1) / 2;
    if (k < n_firsts) return (begin + 1) / 2 + k;
    return n - end / 2 + (k - n_firsts);
}

static void attend_head(weft_panel *p, int64_t head, int64_t begin, int64_t end)
{
    const int64_t n = count_panels(p->h);
    for (int64_t k = 0; k < end - begin; k++) {
        enter_panel(p, head, panel_of_share(k, begin, end, n));
        weft_panel_load(p);
        if (k + 1 < end - begin)
            weft_panel_expect(p, head, panel_of_share(k + 1, begin, end, n) * p->width);
        else
            weft_panel_expect(p, head + 1, 0);
        attend(p);
    }
}

static void attend_panels(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    const int64_t n = count_panels(h);
    ahead next[WEFT_PANEL_AHEAD] = {0};
    weft_panel p;
    weft_panel_open(&p, h, weft_stream_scratch(h->stream, lane), next);
    for (int64_t stop; begin < end; begin = stop) {
        const int64_t first = begin / n * n;
        stop = smaller(first + n, end);
        attend_head(&p, begin / n, begin - first, stop - first);
    }
}

bool weft_attention_panels(const weft_heads *h)
{
    if (!weft_panels_fit(h)) return false;
    weft_parallel(h->stream, h->n_heads * count_panels(h), 1, attend_panels, (void *)(uintptr_t)h);
    return true;
}

/* ---- its gradient ---------------------------------------------------------------------------- */

/* S^T = scale (Q K^T)^T and dP^T = (dO V^T)^T */
static void compute_part(weft_panel *p, const weft_panel_part *part, char *s, char *dp)
{
    weft_panel_scores(p, part, 0, p->h->scale, s);
    weft_panel_scores(p, part, 1, 1, dp);
    if (!part->is_whole) weft_panel_hide(p, part, s);
}

/* dk += scale dS^T Q, dv += P^T dO, sum = or += scale dS K */
static void add_rows(weft_panel *p, int64_t first, int64_t end, bool is_begun)
{
    weft_panel_part part;
    for (int64_t row = first; row < end; row += part.n) {
        char *dp = row_at(p, p->dp, row - p->held.first);
        part = weft_panel_part_at(p, row, smaller(end, row + TILE_ROWS));
        compute_part(p, &part, p->s, dp);
        weft_panel_maths[p->h->dtype].differentiate(&part, &p->rows, p->s, dp, p->width);
        weft_panel_add(p, &part, dp, 0, 2, p->h->scale);
        weft_panel_add(p, &part, p->s, 1, 3, 1);
    }
    weft_panel_sum(p, row_at(p, p->dp, first - p->held.first), 0, first, end, p->h->scale,
                   is_begun);
}

/* A panel, with those of its memory rows [first, end) that are held. */
static void differentiate(weft_panel *p, int64_t first, int64_t end)
{
    const bool is_begun = first > p->seen[0], in_place = weft_panel_sum_in_place(p);
    add_rows(p, first, end, is_begun && in_place);
    if (!in_place) weft_panel_store(p, WEFT_DQ, NULL, is_begun);
}

static void clear_dq(weft_panel *p)
{
    memset(p->own_sum, 0, (size_t)(p->width * p->features) * p->h->bytes);
    weft_panel_store(p, WEFT_DQ, NULL, false);
}

/* All panels of a head, with the memory rows that are held. */
static void walk_panels(weft_panel *p, int64_t head)
{
    const weft_held *held = &p->held;
    const int64_t n = count_panels(p->h);
    for (int64_t i = 0; i < n; i++) {
        enter_panel(p, head, i);
        const int64_t first = p->seen[0] > held->first ? p->seen[0] : held->first,
                      end = smaller(p->seen[1], held->first + held->n);
        if (held->first == 0 && p->seen[0] >= p->seen[1]) clear_dq(p);
        if (first >= end) continue;
        weft_panel_load(p);
        weft_panel_expect(p, i + 1 < n ? head : head + 1, i + 1 < n ? (i + 1) * p->width : 0);
        differentiate(p, first, end);
    }
}

static void differentiate_head(weft_panel *p, int64_t head)
{
    const int64_t n = p->h->n_memory;
    for (int64_t first = 0; first < n; first += p->most) {
        weft_panel_hold(p, head, first, smaller(first + p->most, n));
        weft_panel_clear(p);
        walk_panels(p, head);
        weft_panel_release(p, head % p->h->n_grouped > 0);
    }
}

static void differentiate_heads(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    ahead next[WEFT_PANEL_AHEAD] = {0};
    weft_panel p;
    weft_panel_open(&p, h, weft_stream_scratch(h->stream, lane), next);
    for (int64_t head = begin * h->n_grouped; head < end * h->n_grouped; head++)
        differentiate_head(&p, head);
}

bool weft_attention_grad_panels(const weft_heads *h)
{
    if (!weft_panels_fit(h)) return false;
    weft_parallel(h->stream, h->n_heads / h->n_grouped, 1, differentiate_heads,
                  (void *)(uintptr_t)h);
    return true;
}
