/* attention_panel.c: a panel of query rows in a lane's scratch, and its products; see attention_panels.h. */
#include "cpu/attention_panels.h"

#include <math.h>
#include <string.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t whole(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- scratch --------------------------------------------------------------------------------- */

enum { LEAST_HELD = 1024 };

static bool is_gradient(const weft_heads *h)
{
    return h->data[WEFT_DQ] != NULL;
}

int64_t weft_panel_rows_of(const weft_heads *h)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    const int64_t most = kernels->width * WEFT_PANEL_VECTORS,
                  n_panels = (h->n_query + most - 1) / most;
    return whole((h->n_query + n_panels - 1) / n_panels, kernels->width);
}

/* Elements of scratch: what is there once, and for each memory row that is held. */
static int64_t count_fixed(const weft_heads *h, int64_t width, int64_t features)
{
    const int64_t turned = h->n_feature * width, straight = width * features;
    return (is_gradient(h) ? 2 * turned + 3 * straight : turned + straight) +
           WEFT_PANEL_TILE * width;
}

static int64_t count_each(const weft_heads *h, int64_t width, int64_t features)
{
    return is_gradient(h) ? 4 * features + width : 2 * features;
}

/* Memory rows that are held at a time; 0: not even a tile of them. */
static int64_t count_held(const weft_heads *h, int64_t width, int64_t features)
{
    const int64_t bytes = (int64_t)h->bytes, left = WEFT_LANE_SCRATCH - 16 * VECTOR_BYTES -
                                                    count_fixed(h, width, features) * bytes;
    const int64_t fit = left > 0 ? left / (count_each(h, width, features) * bytes) : 0;
    const int64_t all = whole(h->n_memory, WEFT_PANEL_TILE), seen = width + h->back + h->ahead;
    const int64_t enough = whole(larger(2 * seen, LEAST_HELD), WEFT_PANEL_TILE); /* near by */
    const int64_t most = smaller(fit / WEFT_PANEL_TILE * WEFT_PANEL_TILE, all);
    return is_gradient(h) ? most : smaller(most, enough);
}

bool weft_panels_fit(const weft_heads *h)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    if (kernels == NULL || h->stream == NULL || h->n_memory == 0) return false;
    if (h->data[WEFT_BIAS] != NULL || h->data[WEFT_MASK] != NULL) return false;
    return count_held(h, weft_panel_rows_of(h), whole(h->n_feature, kernels->width)) > 0;
}

static char *take(char **scratch, int64_t bytes)
{
    char *taken = *scratch;
    *scratch += whole(bytes, VECTOR_BYTES);
    return taken;
}

void weft_panel_open(weft_panel *p, const weft_heads *h, char *scratch, ahead *next)
{
    const tile_kernels *kernels = weft_gemm_kernels(h->dtype);
    const int64_t bytes = (int64_t)h->bytes;
    const bool with_gradient = is_gradient(h);
    *p = (weft_panel){.h = h, .kernels = kernels, .width = weft_panel_rows_of(h), .held.head = -1};
    p->next = next;
    p->features = whole(h->n_feature, kernels->width);
    p->vectors = (int)(p->width / kernels->width);
    p->feature_vectors = (int)(p->features / kernels->width);
    p->most = count_held(h, p->width, p->features);
    for (int i = 0; i < (with_gradient ? 2 : 1); i++)
        p->turned[i] = take(&scratch, h->n_feature * p->width * bytes);
    for (int i = 0; i < 2 && with_gradient; i++)
        p->straight[i] = take(&scratch, p->width * p->features * bytes);
    p->own_sum = take(&scratch, p->width * p->features * bytes);
    p->s = take(&scratch, WEFT_PANEL_TILE * p->width * bytes);
    if (with_gradient) p->dp = take(&scratch, p->most * p->width * bytes);
    for (int i = 0; i < (with_gradient ? WEFT_HELD : 2); i++)
        p->room[i] = take(&scratch, p->most * p->features * bytes);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* n rows of a tensor from `first` on become [n, features], zeros after the last feature. */
static void copy_rows(const weft_panel *p, int tensor, int64_t head, int64_t first, int64_t n,
                      char *to)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, head, first);
    const side rows = {x.data, x.column, x.row, 0, 0};
    p->kernels->pack(&rows, (int)p->h->n_feature, (int)p->features, n, to);
}

/* n rows of a tensor from `first` on become, or are added, those of [n, features] times by[i]; by NULL: 1. */
static void store_rows(const weft_panel *p, int tensor, int64_t head, int64_t first, int64_t n,
                       const char *from, const double *by, bool add)
{
    const weft_row_math *math = &weft_row_maths[p->h->dtype];
    const weft_matrix to = weft_heads_matrix(p->h, tensor, head, first);
    const size_t bytes = p->h->bytes;
    const int64_t n_feature = p->h->n_feature;
    for (int64_t i = 0; i < n; i++) {
        char *row = (char *)to.data + (size_t)(i * to.row) * bytes;
        const char *x = from + (size_t)(i * p->features) * bytes;
        if (add)
            math->add_to(row, to.column, x, n_feature);
        else if (to.column == 1 && by == NULL)
            memcpy(row, x, (size_t)n_feature * bytes);
        else
            math->store(row, to.column, x, n_feature, by == NULL ? 1 : by[i]);
    }
}

/* The panel's rows of a tensor become [feature, width], zeros after the last row. */
static void turn_rows(const weft_panel *p, int tensor, char *to)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, p->head, p->begin);
    const side columns = {x.data, x.row, x.column, 0, 0};
    p->kernels->pack(&columns, (int)p->n_rows, (int)p->width, p->h->n_feature, to);
}

/* Can products take a tensor's rows where they lie? */
static bool lies_well(const weft_panel *p, int tensor, int64_t n_rows)
{
    return p->h->column[tensor] == 1 && p->h->n_feature == p->features && n_rows % TILE_ROWS == 0;
}

/* Panels that see more than can be held would each copy all of it. */
static bool is_held_in_place(const weft_panel *p)
{
    return !is_gradient(p->h) && p->seen[1] - p->seen[0] > p->most &&
           lies_well(p, WEFT_K, p->h->n_memory) && lies_well(p, WEFT_V, p->h->n_memory);
}

static void hold_rows(weft_panel *p, int i, int64_t n)
{
    const int tensor = i == 0 ? WEFT_K : WEFT_V;
    const size_t row = (size_t)p->features * p->h->bytes;
    copy_rows(p, tensor, p->held.head, p->held.first, n, p->room[i]);
    memset(p->room[i] + (size_t)n * row, 0, (size_t)(p->held.n - n) * row);
}

void weft_panel_hold(weft_panel *p, int64_t head, int64_t first, int64_t end)
{
    weft_held *held = &p->held;
    if (held->head >= 0 && held->head / p->h->n_grouped == head / p->h->n_grouped &&
        held->first <= first && end <= held->first + held->n)
        return;
    const bool in_place = is_held_in_place(p);
    if (in_place) first = 0;
    const int64_t left = p->h->n_memory - first, n = in_place ? left : smaller(p->most, left);
    *held = (weft_held){.head = head, .first = first, .n = whole(n, TILE_ROWS)};
    for (int i = 0; i < WEFT_HELD; i++)
        held->rows[i] = p->room[i], held->step[i] = p->features;
    for (int i = 0; i < 2; i++) {
        const weft_matrix x = weft_heads_matrix(p->h, i == 0 ? WEFT_K : WEFT_V, head, first);
        if (in_place)
            held->rows[i] = x.data, held->step[i] = x.row;
        else
            hold_rows(p, i, n);
    }
}

/* n rows of a tensor from `first` on, in as many steps as the panel has tiles. */
static ahead rows_ahead(const weft_panel *p, int tensor, int64_t head, int64_t first, int64_t n)
{
    const weft_matrix x = weft_heads_matrix(p->h, tensor, head, first);
    const int64_t bytes = (int64_t)p->h->bytes, n_tiles = (p->seen[1] - p->seen[0]) / TILE_ROWS;
    const int64_t lines = whole(p->h->n_feature * bytes, 64) / 64;
    if (x.column != 1) n = 0;
    return (ahead){.at = x.data,
                   .stride = x.row * bytes,
                   .rows = n,
                   .lines = (int)lines,
                   .share = n > 0 ? (int)(lines * n / n_tiles + 1) : 0};
}

void weft_panel_expect(weft_panel *p, int64_t head, int64_t begin)
{
    const weft_heads *h = p->h;
    const bool is_there = head < h->n_heads && begin < h->n_query;
    ahead *next = p->next;
    p->expects = p->seen[1] - p->seen[0] >= WEFT_PANEL_TILE;
    if (!p->expects) return;
    for (int i = 0; i < WEFT_PANEL_AHEAD; i++)
        next[i] = (ahead){.rows = 0};
    next[0] = rows_ahead(p, is_gradient(h) ? WEFT_DQ : WEFT_O, p->head, p->begin, p->n_rows);
    if (!is_there) return;
    const int64_t n = smaller(p->width, h->n_query - begin);
    next[1] = rows_ahead(p, WEFT_Q, head, begin, n);
    if (is_gradient(h)) next[2] = rows_ahead(p, WEFT_O, head, begin, n);
    if (head / h->n_grouped == p->head / h->n_grouped) return;
    next[3] = rows_ahead(p, WEFT_K, head, 0, smaller(p->most, h->n_memory));
    next[4] = rows_ahead(p, WEFT_V, head, 0, smaller(p->most, h->n_memory));
}

void weft_panel_clear(const weft_panel *p)
{
    for (int i = 2; i < WEFT_HELD; i++)
        memset(p->held.rows[i], 0, (size_t)(p->held.n * p->features) * p->h->bytes);
}

void weft_panel_release(const weft_panel *p, bool add)
{
    const weft_held *held = &p->held;
    const int64_t n = smaller(held->n, p->h->n_memory - held->first);
    store_rows(p, WEFT_DK, held->head, held->first, n, held->rows[2], NULL, add);
    store_rows(p, WEFT_DV, held->head, held->first, n, held->rows[3], NULL, add);
}

bool weft_panel_sum_in_place(weft_panel *p)
{
    if (!lies_well(p, WEFT_DQ, p->n_rows)) return false;
    const weft_matrix to = weft_heads_matrix(p->h, WEFT_DQ, p->head, p->begin);
    p->sum = to.data, p->sum_step = to.row;
    return true;
}

static void clear_state(weft_panel *p)
{
    for (int i = 0; i < WEFT_PANEL; i++)
        p->state.max[i] = -(double)INFINITY, p->state.sum[i] = 0;
    weft_panel_maths[p->h->dtype].resume(&p->state, &p->rows, p->vectors);
}

static void load_kept(weft_panel *p)
{
    weft_row_kept kept[WEFT_PANEL];
    double mean[WEFT_PANEL];
    for (int64_t i = 0; i < p->n_rows; i++) {
        kept[i] = weft_heads_kept(p->h, p->head, p->begin + i);
        mean[i] = weft_heads_mean(p->h, p->head, p->begin + i);
    }
    weft_panel_maths[p->h->dtype].keep(kept, mean, &p->rows, p->n_rows);
}

void weft_panel_load(weft_panel *p)
{
    p->sum = p->own_sum, p->sum_step = p->features;
    static const int tensors[2] = {WEFT_Q, WEFT_O};
    for (int i = 0; i < 2 && p->turned[i] != NULL; i++)
        turn_rows(p, tensors[i], p->turned[i]);
    for (int i = 0; i < 2 && p->straight[i] != NULL; i++)
        copy_rows(p, tensors[i], p->head, p->begin, p->n_rows, p->straight[i]);
    if (is_gradient(p->h))
        load_kept(p);
    else
        clear_state(p);
}

void weft_panel_store(const weft_panel *p, int tensor, const double *by, bool add)
{
    store_rows(p, tensor, p->head, p->begin, p->n_rows, p->own_sum, by, add);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

/* Whole tiles of rows that query rows [begin, begin + n) see any of; where they see nothing, none. */
static void find_seen(const weft_heads *h, int64_t begin, int64_t n, int64_t seen[2])
{
    int64_t last[2];
    weft_heads_seen(h, begin, seen);
    weft_heads_seen(h, begin + n - 1, last);
    const bool is_any = seen[0] < last[1];
    seen[0] = is_any ? seen[0] / TILE_ROWS * TILE_ROWS : 0;
    seen[1] = is_any ? whole(last[1], TILE_ROWS) : 0;
}

void weft_panel_enter(weft_panel *p, int64_t head, int64_t begin, int64_t n_rows)
{
    int64_t of_first[2], of_last[2];
    p->head = head, p->begin = begin, p->n_rows = n_rows;
    find_seen(p->h, begin, n_rows, p->seen);
    weft_heads_seen(p->h, begin, of_first);
    weft_heads_seen(p->h, begin + n_rows - 1, of_last);
    p->whole[0] = whole(of_last[0], TILE_ROWS);
    p->whole[1] = of_first[1] / TILE_ROWS * TILE_ROWS;
}

/* A tile of rows: those of the panel that see any of them are contiguous. */
static weft_panel_part tile_part(const weft_panel *p, int64_t first)
{
    const weft_heads *h = p->h;
    const int64_t origin = h->first_query + p->begin - h->first_memory, end = first + TILE_ROWS;
    const int64_t from = larger(first - h->ahead - origin, 0),
                  to = smaller(end - 1 + h->back - origin, p->n_rows - 1);
    weft_panel_part part = {.first = first, .n = TILE_ROWS};
    if (from > to || first >= h->n_memory) return part;
    part.from = (int)(from / p->kernels->width);
    part.vectors = (int)(to / p->kernels->width) + 1 - part.from;
    int64_t begins[2], ends[2]; /* what the first of the vectors' rows sees, and the last */
    const int64_t last = smaller((part.from + part.vectors) * p->kernels->width, p->n_rows) - 1;
    weft_heads_seen(h, p->begin + part.from * p->kernels->width, begins);
    weft_heads_seen(h, p->begin + last, ends);
    part.is_whole = begins[1] >= end && ends[0] <= first;
    return part;
}

weft_panel_part weft_panel_part_at(const weft_panel *p, int64_t first, int64_t end)
{
    if (first >= p->whole[0] && first < p->whole[1])
        return (weft_panel_part){.first = first,
                                 .n = smaller(end, p->whole[1]) - first,
                                 .vectors =
                                     (int)whole(p->n_rows, p->kernels->width) / p->kernels->width,
                                 .is_whole = true};
    weft_panel_part part = tile_part(p, first);
    for (int64_t next = first + TILE_ROWS; next < end; next += TILE_ROWS) {
        const weft_panel_part more = tile_part(p, next);
        if (more.from != part.from || more.vectors != part.vectors ||
            more.is_whole != part.is_whole)
            break;
        part.n += TILE_ROWS;
    }
    return part;
}

void weft_panel_hide(const weft_panel *p, const weft_panel_part *part, char *s)
{
    int32_t first[WEFT_PANEL], end[WEFT_PANEL];
    const int64_t begin = (int64_t)part->from * p->kernels->width,
                  n = (int64_t)part->vectors * p->kernels->width;
    const weft_tile seen_by = {p->head, p->begin + begin, n, part->first, part->n};
    for (int64_t i = 0; i < n; i++) {
        int64_t seen[2] = {0, part->n};
        if (begin + i < p->n_rows) weft_tile_seen(p->h, &seen_by, i, seen);
        first[i] = (int32_t)seen[0], end[i] = (int32_t)seen[1];
    }
    weft_panel_maths[p->h->dtype].hide(part, first, end, s, p->width);
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

static char *held_row(const weft_panel *p, int held, int64_t row)
{
    return p->held.rows[held] + (size_t)((row - p->held.first) * p->held.step[held]) * p->h->bytes;
}

void weft_panel_scores(const weft_panel *p, const weft_panel_part *part, int held, double alpha,
                       char *to)
{
    const int64_t from = (int64_t)part->from * VECTOR_BYTES;
    loose_tile t = {.k = p->h->n_feature,
                    .a_row = p->held.step[held],
                    .a_step = 1,
                    .b = p->turned[held] + from,
                    .b_step = p->width,
                    .leading = p->width,
                    .alpha = alpha};
    for (int64_t i = 0; i < part->n; i += TILE_ROWS) {
        t.a = held_row(p, held, part->first + i);
        t.c = to + (size_t)(i * p->width) * p->h->bytes + from;
        for (int k = 0; k < WEFT_PANEL_AHEAD && p->expects; k++)
            fetch_ahead(&p->next[k]);
        multiply(p, t, part->vectors);
    }
}

void weft_panel_sum(const weft_panel *p, const char *s, int held, int64_t first, int64_t end,
                    double alpha, bool is_begun)
{
    const size_t bytes = p->h->bytes;
    loose_tile t = {.a_row = 1,
                    .a_step = p->width,
                    .b_step = p->held.step[held],
                    .leading = p->sum_step,
                    .alpha = alpha};
    for (int64_t i = 0; i < p->n_rows; i += TILE_ROWS) {
        int64_t seen[2];
        find_seen(p->h, p->begin + i, smaller(TILE_ROWS, p->n_rows - i), seen);
        const int64_t from = larger(seen[0], first), to = smaller(seen[1], end);
        t.k = to - from;
        t.add = is_begun && seen[0] < first;
        t.c = p->sum + (size_t)(i * p->sum_step) * bytes;
        if (t.k <= 0) {
            for (int64_t row = 0; row < TILE_ROWS && !is_begun; row++)
                memset((char *)t.c + (size_t)(row * p->sum_step) * bytes, 0,
                       (size_t)p->features * bytes);
            continue;
        }
        t.a = s + (size_t)((from - first) * p->width + i) * bytes;
        t.b = held_row(p, held, from);
        multiply(p, t, p->feature_vectors);
    }
}

void weft_panel_add(const weft_panel *p, const weft_panel_part *part, const char *s, int straight,
                    int held, double alpha)
{
    const size_t bytes = p->h->bytes;
    const int64_t from = (int64_t)part->from * p->kernels->width;
    loose_tile t = {.k = smaller((int64_t)part->vectors * p->kernels->width, p->n_rows - from),
                    .a_row = p->width,
                    .a_step = 1,
                    .b = p->straight[straight] + (size_t)(from * p->features) * bytes,
                    .b_step = p->features,
                    .leading = p->features,
                    .add = true,
                    .alpha = alpha};
    for (int64_t i = 0; i < part->n; i += TILE_ROWS) {
        t.a = s + (size_t)(i * p->width + from) * bytes;
        t.c = held_row(p, held, part->first + i);
        multiply(p, t, p->feature_vectors);
    }
}
