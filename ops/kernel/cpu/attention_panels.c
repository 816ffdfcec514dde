/* attention_panels.c: attention and its gradient, panel by panel of query rows, by kernels of ours.
 *
 * The mathematics are those of attention.c and attention_grad.c; attention_panels.h says how they lie. A task is a panel,
 * in the gradient a head, so that dk and dv are added up by one lane, in one order.
 */
#include "cpu/attention_panels.h"

static int64_t count_panels(const weft_heads *h)
{
    return (h->n_query + weft_panel_rows(h) - 1) / weft_panel_rows(h);
}

/* Memory rows from `first` on that do not go past a multiple of `most`, or what is seen. */
static int64_t count_rows(const weft_panel *p, int64_t first, int64_t most)
{
    const int64_t end = (first / most + 1) * most;
    return (end < p->seen[1] ? end : p->seen[1]) - first;
}

static void enter_panel(weft_panel *p, int64_t head, int64_t panel)
{
    const int64_t begin = panel * p->width, left = p->h->n_query - begin;
    weft_panel_enter(p, head, begin, left < p->width ? left : p->width);
}

/* ---- attention ------------------------------------------------------------------------------- */

static void correct_sum(const weft_panel *p)
{
    for (int64_t i = 0; i < p->n_rows; i++)
        if (p->state.by[i] != 1)
            weft_row_maths[p->h->dtype].multiply(p->sum + (size_t)(i * p->features) * p->h->bytes,
                                                 p->features, p->state.by[i]);
}

static void attend(weft_panel *p)
{
    const weft_heads *h = p->h;
    double by[WEFT_PANEL];
    for (int64_t first = p->seen[0], n; first < p->seen[1]; first += n) {
        n = count_rows(p, first, WEFT_PANEL_TILE);
        weft_panel_scores(p, WEFT_K, first, n, p->turned[0], h->scale, p->s);
        weft_panel_hide(p, p->s, first, n);
        weft_panel_maths[h->dtype].raise(&p->state, p->vectors, p->s, n);
        weft_panel_maths[h->dtype].enter(&p->state, p->vectors, p->s, NULL, n);
        if (first > p->seen[0]) correct_sum(p);
        weft_panel_sum(p, p->s, weft_panel_hold(p, WEFT_V, first), n, 1, first > p->seen[0]);
    }
    if (p->seen[0] >= p->seen[1]) memset(p->sum, 0, (size_t)(p->width * p->features) * h->bytes);
    for (int64_t i = 0; i < p->n_rows; i++)
        by[i] = p->state.sum[i] == 0 ? 0 : 1 / p->state.sum[i];
    weft_panel_store(p, WEFT_O, by);
}

static void attend_panels(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    const int64_t n_panels = count_panels(h);
    weft_panel p;
    weft_panel_open(&p, h, weft_stream_scratch(h->stream, lane));
    for (int64_t i = begin; i < end; i++) {
        enter_panel(&p, i / n_panels, i % n_panels);
        attend(&p);
    }
}

bool weft_attention_panels(const weft_heads *h)
{
    if (!weft_panels_fit(h)) return false;
    weft_parallel(h->stream, h->n_heads * count_panels(h), 1, attend_panels, (void *)(uintptr_t)h);
    return true;
}

/* ---- its gradient ---------------------------------------------------------------------------- */

/* Where a tile of S^T or dP^T is among those of the rows that are held with it. */
static char *tile_at(const weft_panel *p, char *s, int64_t first)
{
    const int64_t begin = first - first % p->most;
    return s +
           (size_t)((first - (begin > p->seen[0] ? begin : p->seen[0])) * p->width) * p->h->bytes;
}

/* Tiles of [first, end): S^T = scale (Q K^T)^T, which raises the max. */
static void raise_tiles(weft_panel *p, int64_t first, int64_t end)
{
    for (int64_t n; first < end; first += n) {
        char *s = tile_at(p, p->s, first);
        n = count_rows(p, first, WEFT_PANEL_TILE);
        weft_panel_scores(p, WEFT_K, first, n, p->turned[0], p->h->scale, s);
        weft_panel_hide(p, s, first, n);
        weft_panel_maths[p->h->dtype].raise(&p->state, p->vectors, s, n);
    }
}

/* dP^T = (dO V^T)^T, and both enter the sums. */
static void enter_tiles(weft_panel *p, int64_t first, int64_t end)
{
    for (int64_t n; first < end; first += n) {
        char *s = tile_at(p, p->s, first), *dp = tile_at(p, p->dp, first);
        n = count_rows(p, first, WEFT_PANEL_TILE);
        weft_panel_scores(p, WEFT_V, first, n, p->turned[1], 1, dp);
        weft_panel_maths[p->h->dtype].enter(&p->state, p->vectors, s, dp, n);
    }
}

/* dq = or += scale dS K, dk += scale dS^T Q, dv += P^T dO */
static void add_tiles(weft_panel *p, int64_t first, int64_t end, bool is_entered)
{
    const weft_heads *h = p->h;
    for (int64_t n; first < end; first += n) {
        char *s = tile_at(p, p->s, first), *dp = tile_at(p, p->dp, first);
        n = count_rows(p, first, WEFT_PANEL_TILE);
        if (!is_entered) {
            weft_panel_scores(p, WEFT_K, first, n, p->turned[0], h->scale, s);
            weft_panel_scores(p, WEFT_V, first, n, p->turned[1], 1, dp);
            weft_panel_hide(p, s, first, n);
        }
        weft_panel_maths[h->dtype].differentiate(&p->state, p->vectors, s, dp, n, is_entered);
        weft_panel_sum(p, dp, weft_panel_hold(p, WEFT_K, first), n, h->scale, first > p->seen[0]);
        weft_panel_add(p, dp, p->straight[0], WEFT_DK, first, n, h->scale);
        weft_panel_add(p, s, p->straight[1], WEFT_DV, first, n, 1);
    }
}

static void differentiate(weft_panel *p)
{
    const bool is_once = count_rows(p, p->seen[0], p->most) >= p->seen[1] - p->seen[0];
    double by[WEFT_PANEL];
    for (int64_t first = p->seen[0], n; first < p->seen[1]; first += n) {
        n = count_rows(p, first, p->most);
        raise_tiles(p, first, first + n);
        enter_tiles(p, first, first + n);
    }
    add_tiles(p, p->seen[0], p->seen[1], is_once);
    if (p->seen[0] >= p->seen[1]) memset(p->sum, 0, (size_t)(p->width * p->features) * p->h->bytes);
    for (int64_t i = 0; i < p->n_rows; i++)
        by[i] = 1;
    weft_panel_store(p, WEFT_DQ, by);
}

static void clear_rows(const weft_panel *p)
{
    weft_panel_clear(p, WEFT_DK);
    weft_panel_clear(p, WEFT_DV);
}

static void differentiate_heads(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_heads *h = argument;
    const int64_t n_panels = count_panels(h);
    weft_panel p;
    weft_panel_open(&p, h, weft_stream_scratch(h->stream, lane));
    for (int64_t head = begin; head < end; head++)
        for (int64_t i = 0; i < n_panels; i++) {
            enter_panel(&p, head, i);
            if (i == 0) clear_rows(&p);
            differentiate(&p);
        }
}

bool weft_attention_grad_panels(const weft_heads *h)
{
    if (!weft_panels_fit(h)) return false;
    weft_parallel(h->stream, h->n_heads, 1, differentiate_heads, (void *)(uintptr_t)h);
    return true;
}
