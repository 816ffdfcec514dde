/* attention_panel.c: a panel of query rows in a lane's scratch, and its products; see attention_panels.h. */
#include "cpu/attention_panels.h"

#include <math.h>
#include <string.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t whole(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- scratch --------------------------------------------------------------------------------- */

static bool is_gradient(const weft_heads *h)
{
    return h->data[WEFT_DQ] != NULL;
}

int64_t weft_panel_rows(const weft_heads *h)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    const int64_t most = kernels->width * TILE_VECTORS, n_panels = (h->n_query + most - 1) / most;
    return whole((h->n_query + n_panels - 1) / n_panels, kernels->width);
}

/* Bytes of what is there once, with `n_scores` rows of scores; and of a memory row that is held. */
static int64_t panel_bytes(const weft_heads *h, int64_t width, int64_t features, int64_t n_scores)
{
    const int64_t n_each = is_gradient(h) ? 2 : 1;
    const int64_t operands = n_each * h->n_feature * width + (n_each - 1) * 2 * width * features;
    const int64_t scores = n_each * (n_scores + 2 * WEFT_SPARE) * width;
    return (operands + (width + TILE_ROWS) * features + scores) * (int64_t)h->bytes +
           16 * VECTOR_BYTES;
}

/* Memory rows that are held at a time; 0: not even a tile of them. */
static int64_t count_held(const weft_heads *h, int64_t width, int64_t features)
{
    const int64_t n_scores = is_gradient(h) ? 0 : WEFT_PANEL_TILE;
    const int64_t left = WEFT_LANE_SCRATCH - panel_bytes(h, width, features, n_scores);
    const int64_t row = (features + (is_gradient(h) ? 2 * width : 0)) * (int64_t)h->bytes;
    const int64_t fit = left > 0 ? left / row / WEFT_PANEL_TILE * WEFT_PANEL_TILE : 0;
    return smaller(fit, whole(h->n_memory, WEFT_PANEL_TILE));
}

bool weft_panels_fit(const weft_heads *h)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    if (kernels == NULL || h->stream == NULL || h->n_memory < TILE_ROWS) return false;
    if (h->data[WEFT_BIAS] != NULL || h->data[WEFT_MASK] != NULL) return false;
    return count_held(h, weft_panel_rows(h), whole(h->n_feature, kernels->width)) > 0;
}

static char *take(char **scratch, int64_t count, const weft_heads *h)
{
    char *taken = *scratch;
    *scratch += whole(count * (int64_t)h->bytes, VECTOR_BYTES);
    return taken;
}

static char *take_scores(weft_panel *p, char **scratch)
{
    char *rows = take(scratch, (p->n_scores + 2 * WEFT_SPARE) * p->width, p->h);
    memset(rows, 0, (size_t)(WEFT_SPARE * p->width) * p->h->bytes);
    return rows + (size_t)(WEFT_SPARE * p->width) * p->h->bytes;
}

void weft_panel_open(weft_panel *p, const weft_heads *h, char *scratch)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    *p = (weft_panel){.h = h, .kernels = kernels, .width = weft_panel_rows(h), .held_head = -1};
    p->features = whole(h->n_feature, kernels->width);
    p->vectors = (int)(p->width / kernels->width);
    p->feature_vectors = (int)(p->features / kernels->width);
    p->most = count_held(h, p->width, p->features);
    p->n_scores = is_gradient(h) ? p->most : WEFT_PANEL_TILE;
    p->turned[0] = take(&scratch, h->n_feature * p->width, h);
    p->sum = take(&scratch, p->width * p->features, h);
    p->rest = take(&scratch, TILE_ROWS * p->features, h);
    p->s = take_scores(p, &scratch);
    if (is_gradient(h)) {
        p->turned[1] = take(&scratch, h->n_feature * p->width, h);
        p->straight[0] = take(&scratch, p->width * p->features, h);
        p->straight[1] = take(&scratch, p->width * p->features, h);
        p->dp = take_scores(p, &scratch);
    }
    p->held = scratch;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* n rows of a tensor from `first` on become [n, features], zeros after the last feature. */
static void copy_rows(const weft_panel *p, int tensor, int64_t first, int64_t n, char *to)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, p->head, first);
    const side rows = {x.data, x.column, x.row, 0, 0};
    p->kernels->pack(&rows, (int)p->h->n_feature, (int)p->features, n, to);
}

/* The panel's rows of a tensor become [feature, width], zeros after the last row. */
static void turn_rows(const weft_panel *p, int tensor, char *to)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, p->head, p->begin);
    const side columns = {x.data, x.row, x.column, 0, 0};
    p->kernels->pack(&columns, (int)p->n_rows, (int)p->width, p->h->n_feature, to);
}

void weft_panel_enter(weft_panel *p, int64_t head, int64_t begin, int64_t n_rows)
{
    static const int tensors[2] = {WEFT_Q, WEFT_O};
    int64_t last[2];
    p->head = head, p->begin = begin, p->n_rows = n_rows;
    weft_heads_seen(p->h, begin, p->seen);
    weft_heads_seen(p->h, begin + n_rows - 1, last);
    p->seen[1] = last[1];
    for (int i = 0; i < 2 && p->turned[i] != NULL; i++)
        turn_rows(p, tensors[i], p->turned[i]);
    for (int i = 0; i < 2 && p->straight[i] != NULL; i++)
        copy_rows(p, tensors[i], begin, n_rows, p->straight[i]);
    for (int i = 0; i < WEFT_PANEL; i++) {
        p->state.max[i] = -(double)INFINITY;
        p->state.sum[i] = p->state.dot[i] = 0;
    }
}

const char *weft_panel_hold(weft_panel *p, int tensor, int64_t first)
{
    const int64_t begin = first / p->most * p->most, left = p->h->n_memory - begin;
    if (p->held_head != p->head || p->held_first != begin)
        copy_rows(p, tensor, begin, smaller(left, p->most), p->held);
    p->held_head = p->head, p->held_first = begin;
    return p->held + (size_t)((first - begin) * p->features) * p->h->bytes;
}

void weft_panel_hide(weft_panel *p, char *s, int64_t first, int64_t n)
{
    const weft_panel_math *math = &weft_panel_maths[p->h->dtype];
    int64_t begins[2], ends[2];
    weft_heads_seen(p->h, p->begin, begins);
    weft_heads_seen(p->h, p->begin + p->n_rows - 1, ends);
    const int64_t from = weft_clamp(begins[1] - first, n), to = weft_clamp(ends[0] - first, n);
    if (from == n && to == 0) return; /* everybody sees all of it */
    const weft_tile tile = {p->head, p->begin, p->n_rows, first, n};
    for (int64_t i = 0; i < p->width; i++) {
        int64_t seen[2] = {0, n};
        if (i < p->n_rows) weft_tile_seen(p->h, &tile, i, seen);
        p->state.first[i] = (int32_t)seen[0], p->state.end[i] = (int32_t)seen[1];
    }
    math->hide(&p->state, p->vectors, s, 0, to);
    math->hide(&p->state, p->vectors, s, from, n);
}

/* ---- products -------------------------------------------------------------------------------- */

/* So many of what is left that nothing too narrow stays for the end. */
static int next_vectors(int left)
{
    return left == TILE_VECTORS + 1 ? 2 : left < TILE_VECTORS ? left : TILE_VECTORS;
}

/* One tile's rows by all vectors of b and c. */
static void multiply(const weft_panel *p, loose_tile t, int vectors)
{
    for (int n; vectors > 0; vectors -= n) {
        n = next_vectors(vectors);
        p->kernels->loose[n - 1](&t);
        t.b = (const char *)t.b + n * VECTOR_BYTES;
        t.c = (char *)t.c + n * VECTOR_BYTES;
    }
}

void weft_panel_scores(const weft_panel *p, int tensor, int64_t first, int64_t n,
                       const char *turned, double alpha, char *to)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, p->head, first);
    const int64_t bytes = (int64_t)p->h->bytes;
    loose_tile t = {.k = p->h->n_feature,
                    .a_row = x.row,
                    .a_step = x.column,
                    .b = turned,
                    .b_step = p->width,
                    .leading = p->width,
                    .alpha = alpha};
    for (int64_t i = 0; i < n; i += TILE_ROWS) {
        /* the last tile has rows of the one before it too; where there are none, rows of the tensor that follow */
        const int64_t row = i + TILE_ROWS <= n        ? i
                            : n - TILE_ROWS >= -first ? n - TILE_ROWS
                                                      : -first;
        t.a = (const char *)x.data + row * x.row * bytes;
        t.c = to + row * p->width * bytes;
        multiply(p, t, p->vectors);
    }
}

void weft_panel_sum(const weft_panel *p, const char *s, const char *b, int64_t n, double alpha,
                    bool add)
{
    const size_t bytes = p->h->bytes;
    loose_tile t = {.k = n,
                    .a_row = 1,
                    .a_step = p->width,
                    .b = b,
                    .b_step = p->features,
                    .leading = p->features,
                    .add = add,
                    .alpha = alpha};
    for (int64_t i = 0; i < p->n_rows; i += TILE_ROWS) {
        t.a = s + (size_t)i * bytes;
        t.c = p->sum + (size_t)(i * p->features) * bytes;
        multiply(p, t, p->feature_vectors);
    }
}

void weft_panel_clear(const weft_panel *p, int tensor)
{
    const weft_row_math *math = &weft_row_maths[p->h->dtype];
    const weft_matrix to = weft_heads_matrix(p->h, tensor, p->head, 0);
    memset(p->rest, 0, (size_t)p->features * p->h->bytes);
    for (int64_t i = 0; i < p->h->n_memory; i++)
        math->store((char *)to.data + (size_t)(i * to.row) * p->h->bytes, to.column, p->rest,
                    p->h->n_feature, 1);
}

void weft_panel_add(const weft_panel *p, const char *s, const char *b, int tensor, int64_t first,
                    int64_t n, double alpha)
{
    const weft_row_math *math = &weft_row_maths[p->h->dtype];
    const weft_matrix c = weft_heads_matrix(p->h, tensor, p->head, first);
    const size_t bytes = p->h->bytes;
    const bool is_plain = c.column == 1 && p->features == p->h->n_feature;
    loose_tile t = {.k = p->n_rows,
                    .a_row = p->width,
                    .a_step = 1,
                    .b = b,
                    .b_step = p->features,
                    .alpha = alpha};
    for (int64_t i = 0; i < n; i += TILE_ROWS) {
        char *row = (char *)c.data + (size_t)(i * c.row) * bytes;
        t.add = is_plain && i + TILE_ROWS <= n;
        t.a = s + (size_t)(i * p->width) * bytes;
        t.c = t.add ? row : p->rest;
        t.leading = t.add ? c.row : p->features;
        multiply(p, t, p->feature_vectors);
        for (int64_t j = 0; j < smaller(TILE_ROWS, n - i) && !t.add; j++)
            math->add_to(row + (size_t)(j * c.row) * bytes, c.column,
                         p->rest + (size_t)(j * p->features) * bytes, p->h->n_feature);
    }
}

void weft_panel_store(const weft_panel *p, int tensor, const double *by)
{
    const weft_row_math *math = &weft_row_maths[p->h->dtype];
    const weft_matrix to = weft_heads_matrix(p->h, tensor, p->head, p->begin);
    const size_t bytes = p->h->bytes;
    for (int64_t i = 0; i < p->n_rows; i++)
        math->store((char *)to.data + (size_t)(i * to.row) * bytes, to.column,
                    p->sum + (size_t)(i * p->features) * bytes, p->h->n_feature, by[i]);
}
