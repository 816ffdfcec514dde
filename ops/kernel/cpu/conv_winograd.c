/* conv_winograd.c: convolutions of 3 x 3 taps, stride 1 and many channels, forward and to the data and to the filter, by 16 / 36 of
 * the products, or 36 / 144 (conv_winograd_math.c). Of more dims of space two have such taps; those of the others are summed over in
 * the products, as more channels are, and to the filter they are more rows of it.
 *
 * y is cut into tiles of 2 x 2 places, which 4 x 4 places of x make. Where numbers are rounded to 16 bits anyway, tiles of 4 x 4 are
 * taken, whose sums err more. Forward, a lane keeps the transformed filter of some features, or transforms what it multiplies next.
 * Tiles go past it, some at a time: they are transformed, multiplied as matrices, and transformed back. To the filter, a lane keeps
 * the sums of some channels and features, and all tiles go past them. A tile is transformed anew for each panel of features:
 * that is cheaper than to share it, fits 2 MB a lane, and asks the plan for no memory. Sums go along k, or along tiles, in pieces of
 * one length, so bits depend on no panel or lane.
 * An element that is not finite makes a tile's others NaN; sums differ from the direct ones by rounding.
 */
#include "cpu/conv_winograd.h"

#include <string.h>

enum { W = WEFT_WINOGRAD_WIDTH, PANEL = WEFT_WINOGRAD_PANEL };
/* Floats of all products, of the size of tiles that needs most. */
#define LARGER(a, b) ((a) + 0 > (b) + 0 ? (a) + 0 : (b) + 0)
enum {
    TAKEN = 16, /* of k, taps at once */
    MOST_TILES = LARGER(WEFT_WINOGRAD_TILES_2, WEFT_WINOGRAD_TILES_4),
    FILTER = WEFT_WINOGRAD_FILTER + 36 * W,
    DATA = LARGER(16 * (WEFT_WINOGRAD_TILES_2 * WEFT_WINOGRAD_DEPTH_2 + W),
                  36 * (WEFT_WINOGRAD_TILES_4 * WEFT_WINOGRAD_DEPTH_4 + W)),
    RESULT =
        LARGER(16 * (WEFT_WINOGRAD_TILES_2 * PANEL + W), 36 * (WEFT_WINOGRAD_TILES_4 * PANEL + W)),
    SUM_DATA = LARGER(16 * (WEFT_WINOGRAD_SUMMED_2 * WEFT_WINOGRAD_ROWS + W),
                      36 * (WEFT_WINOGRAD_SUMMED_4 * WEFT_WINOGRAD_ROWS + W)),
    SUM_RESULT = LARGER(16 * (WEFT_WINOGRAD_SUMMED_2 * PANEL + W),
                        36 * (WEFT_WINOGRAD_SUMMED_4 * PANEL + W)),
    SUM_FILTER = 36 * (WEFT_WINOGRAD_ROWS * PANEL + W),
};

/* Where a tile of results begins: its row and column in the plane, and what other dims add. */
typedef struct tile_place {
    weft_conv_place outer;
    int64_t row, column;
} tile_place;

/* Of a lane's scratch, forward and to the data. */
typedef struct forward_lane {
    _Alignas(64) float filter[FILTER], data[DATA], result[RESULT];
    float taps[9 * TAKEN * PANEL], zeros[WEFT_WINOGRAD_CHANNELS];
    tile_place tiles[MOST_TILES];
    weft_winograd_places at[MOST_TILES];
} forward_lane;

typedef struct filter_lane {
    _Alignas(64) float filter[SUM_FILTER], data[SUM_DATA], result[SUM_RESULT];
    float zeros[PANEL];
} filter_lane;
_Static_assert(sizeof(forward_lane) <= WEFT_LANE_SCRATCH, "scratch holds all");
_Static_assert(sizeof(filter_lane) <= WEFT_LANE_SCRATCH, "scratch holds all");
_Static_assert(WEFT_WINOGRAD_ROWS <= WEFT_WINOGRAD_PANEL, "zeros are as many as either");

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From a product's [rows, columns] to the next: they lie a line of a cache more than their size apart, else all would be on the
 * same sets. */
static int64_t apart(int64_t rows, int64_t columns)
{
    return rows * columns + W;
}

static int64_t data_apart(const weft_conv_winograd *w)
{
    return apart(w->by->tiles, w->by->depth);
}

static int64_t result_apart(const weft_conv_winograd *w)
{
    return apart(w->by->tiles, PANEL);
}

/* ---- tiles ------------------------------------------------------------------------------------- */

static void find_tile(const weft_conv *c, int64_t index, tile_place *t)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t each = w->tiles[0] * w->tiles[1], in_image = index % each;
    t->row = w->by->results * (in_image / w->tiles[1]);
    t->column = w->by->results * (in_image % w->tiles[1]);
    t->outer = c->first;
    weft_conv_move(&w->outer, index / each, &t->outer);
}

/* Of a tile's results, from `of` on. */
static void find_results(const weft_conv *c, const tile_place *t, float *of, float *outside,
                         weft_winograd_places *to)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t step = w->is_to_filter ? t->outer.w : t->outer.y;
    const int n = w->by->results;
    for (int k = 0, row = 0; row < n; row++)
        for (int column = 0; column < n; column++, k++) {
            const int64_t i = t->row + row, j = t->column + column;
            to->y[k] = i < w->places[0] && j < w->places[1]
                           ? of + step + i * w->by_place[0] + j * w->by_place[1]
                           : outside;
        }
}

static weft_conv_place find_tap(const weft_conv *c, int64_t tap)
{
    weft_conv_place p = {0};
    weft_conv_move(&c->winograd.further, tap, &p);
    return p;
}

/* Whether the windows beside the plane's have something there; its offset in x is added. */
static bool is_in_others(const weft_conv *c, const tile_place *t, const weft_conv_place *tap,
                         int64_t *x)
{
    const weft_conv_winograd *w = &c->winograd;
    for (int s = 0; s < c->n_windows; s++) {
        const int64_t at = t->outer.at[s] + tap->at[s];
        if (s == w->window[0] || s == w->window[1]) continue;
        if (at < 0 || at >= c->window[s].size) return false;
        *x += at * c->window[s].stride;
    }
    return true;
}

/* Of n x n numbers, as a constant: loops that are not unrolled take longer than the transform of few channels. */
TILE_INLINE void find_square(const weft_conv *c, const tile_place *t, const weft_conv_place *tap,
                             int n, const float *x, const float *zeros, weft_winograd_places *to)
{
    const weft_conv_winograd *w = &c->winograd;
    int64_t first = t->outer.x + tap->x, at[2][WEFT_WINOGRAD_SIDE];
    bool is_in[2][WEFT_WINOGRAD_SIDE];
    const bool is_in_all = is_in_others(c, t, tap, &first);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < n; i++) {
            const int64_t j = w->at[s] + (s == 0 ? t->row : t->column) + i;
            is_in[s][i] = is_in_all && j >= 0 && j < c->window[w->window[s]].size;
            at[s][i] = j * c->window[w->window[s]].stride;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            to->x[n * i + j] = is_in[0][i] && is_in[1][j] ? x + first + at[0][i] + at[1][j] : zeros;
}

/* Of what a tile reads at one of the further taps, from x on. */
static void find_data(const weft_conv *c, const tile_place *t, const weft_conv_place *tap,
                      const float *x, const float *zeros, weft_winograd_places *to)
{
    if (c->winograd.by->side == 4)
        find_square(c, t, tap, 4, x, zeros, to);
    else
        find_square(c, t, tap, WEFT_WINOGRAD_SIDE, x, zeros, to);
}

/* Asks memory for n channels of what a tile reads, before it is its turn; the first places of each line are the last tile's too. */
static void fetch_data(const weft_conv *c, const weft_winograd_places *of, int64_t n)
{
    const weft_winograd *by = c->winograd.by;
    for (int i = 0; i < by->side; i++)
        for (int j = by->side - by->results; j < by->side; j++)
            for (int64_t k = 0; k < n; k += W)
                __builtin_prefetch(of->x[by->side * i + j] + k);
}

/* ---- forward, and to the data -------------------------------------------------------------------- */

/* Columns of the filter that a lane does now. */
typedef struct panel {
    int64_t first, n;
} panel;

/* One further tap and some channels: nine taps of [depth][columns], which lie so, or are turned. Returns elements between channels. */
static int64_t find_taps(const weft_conv *c, const panel *of, int64_t l, int64_t depth,
                         float *memory, const float **taps)
{
    const weft_conv_winograd *w = &c->winograd;
    const weft_conv_place p = find_tap(c, l / w->channels);
    const int64_t first =
                      p.w + w->taps + l % w->channels * w->by_channel + of->first * w->by_feature,
                  bytes = sizeof(float);
    for (int t = 0; t < 9; t++) {
        const int64_t at = first + t / 3 * w->by_tap[0] + t % 3 * w->by_tap[1];
        const side s = {.data = c->w + at * bytes,
                        .step = w->by_feature,
                        .deep = w->by_channel,
                        .bytes = (int)bytes};
        taps[t] = (const float *)(const void *)s.data;
        if (w->by_feature == 1) continue;
        taps[t] = memory + t * TAKEN * of->n;
        weft_gemm_kernels(WEFT_F32)->pack(&s, (int)of->n, (int)of->n, depth,
                                          memory + t * TAKEN * of->n);
    }
    return w->by_feature == 1 ? w->by_channel : of->n;
}

/* Elements [begin, end) of (further taps, channels), transformed: [products][k][columns]. */
static void take_filter(const weft_conv *c, const panel *of, int64_t begin, int64_t end,
                        forward_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    const float *taps[9];
    for (int64_t l = begin, depth; l < end; l += depth) {
        depth = smaller(smaller(TAKEN, w->channels - l % w->channels), end - l);
        const int64_t by = find_taps(c, of, l, depth, m->taps, taps);
        for (int64_t i = 0; i < depth; i++) {
            w->by->of_filter(taps, of->n, m->filter + (l - begin + i) * of->n,
                             apart(w->held, of->n));
            for (int t = 0; t < 9; t++)
                taps[t] += by;
        }
    }
}

/* What is summed up in a register: some of the channels at one further tap, or all of them at some taps. */
typedef struct piece {
    int64_t tap, n_taps, channel, channels; /* at each of these taps */
} piece;

static piece piece_at(const weft_conv_winograd *w, int64_t done)
{
    piece p = {.tap = done / w->channels, .n_taps = 1, .channel = done % w->channels};
    p.channels = smaller(w->by->depth, w->channels - p.channel);
    if (p.channels == w->channels)
        p.n_taps = smaller(w->by->depth / w->channels, w->n_further - p.tap);
    return p;
}

/* n tiles of x, transformed: [products][n][taps, channels] of the piece. */
static void take_data(const weft_conv *c, int64_t n, const piece *p, forward_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    const float *x = (const float *)(const void *)c->x;
    const int64_t depth = p->n_taps * p->channels;
    for (int64_t t = 0; t < p->n_taps; t++) {
        const weft_conv_place tap = find_tap(c, p->tap + t);
        for (int64_t i = 0; i < n && p->channel == 0; i++)
            find_data(c, &m->tiles[i], &tap, x, m->zeros, &m->at[i]);
        for (int64_t i = 0; i < n; i++) {
            if (i + 1 < n) fetch_data(c, &m->at[i + 1], p->channels);
            w->by->of_data(m->at[i].x, p->channels, m->data + i * depth + t * p->channels,
                           data_apart(w));
            for (int j = 0; j < weft_winograd_products(w); j++)
                m->at[i].x[j] += p->channels;
        }
    }
}

/* Tiles [first, first + n) by a panel, of which m has all of k, or what is multiplied next. */
static void run_tiles(const weft_conv *c, int64_t first, int64_t n, const panel *of,
                      forward_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t all = w->n_further * w->channels;
    for (int64_t i = 0; i < n; i++)
        find_tile(c, first + i, &m->tiles[i]);
    for (int64_t done = 0, depth; done < all; done += depth) {
        const piece p = piece_at(w, done);
        depth = p.n_taps * p.channels;
        take_data(c, n, &p, m);
        if (w->held < all) take_filter(c, of, done, done + depth, m);
        const float *filter = m->filter + (w->held < all ? 0 : done) * of->n;
        for (int j = 0; j < weft_winograd_products(w); j++)
            weft_winograd_multiply(&(weft_winograd_product){.a = m->data + j * data_apart(w),
                                                            .b = filter + j * apart(w->held, of->n),
                                                            .c = m->result + j * result_apart(w),
                                                            .rows = n,
                                                            .columns = of->n,
                                                            .k = depth,
                                                            .a_row = depth,
                                                            .a_step = 1,
                                                            .add = done > 0});
    }
    for (int64_t i = 0; i < n; i++) {
        find_results(c, &m->tiles[i], (float *)(void *)c->y + of->first, NULL, &m->at[i]);
        w->by->of_result(m->result + i * of->n, result_apart(w), of->n, m->at[i].y);
    }
}

static void run_forward_items(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    const weft_conv_winograd *w = &c->winograd;
    const int64_t all = w->n_further * w->channels;
    forward_lane *m = weft_stream_scratch(c->stream, lane);
    int64_t has = -1;
    memset(m->zeros, 0, sizeof m->zeros);
    while (weft_stream_take(c->stream, lane, INT64_MAX, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const int64_t at = i % w->n_blocks * w->block, first = i / w->n_blocks * w->panel;
            const panel of = {first, smaller(w->panel, w->features - first)};
            if (first != has && w->held == all) take_filter(c, &of, 0, all, m);
            has = first;
            run_tiles(c, at, smaller(w->block, w->n_tiles - at), &of, m);
            weft_stream_pause(c->stream, lane);
        }
}

/* ---- to the filter ------------------------------------------------------------------------------- */

/* Rows of one further tap, which are neighbours in x. */
typedef struct stretch {
    weft_conv_place tap;
    int64_t channel, n;
} stretch;
enum { STRETCHES = WEFT_WINOGRAD_ROWS / W };

/* Of rows [row, row + rows); returns how many. */
static int cut_rows(const weft_conv *c, int64_t row, int64_t rows, stretch *to)
{
    const int64_t channels = c->winograd.channels;
    int count = 0;
    for (int64_t i = 0; i < rows; i += to[count++].n) {
        const int64_t channel = (row + i) % channels;
        to[count] = (stretch){find_tap(c, (row + i) / channels), channel,
                              smaller(rows - i, channels - channel)};
    }
    return count;
}

/* A tile of x, transformed. */
static void take_rows(const weft_conv *c, const tile_place *t, const stretch *of, int count,
                      float *to, const float *zeros)
{
    const float *x = (const float *)(const void *)c->x;
    const weft_winograd *by = c->winograd.by;
    for (int i = 0; i < count; to += of[i++].n) {
        weft_winograd_places at;
        find_data(c, t, &of[i].tap, x + of[i].channel, zeros, &at);
        by->of_data(at.x, of[i].n, to, apart(by->summed, WEFT_WINOGRAD_ROWS));
    }
}

static void put_rows(const weft_conv *c, int64_t row, int64_t rows, int64_t column, int64_t columns,
                     const filter_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    for (int64_t i = 0; i < rows; i++) {
        float *taps[9];
        const weft_conv_place p = find_tap(c, (row + i) / w->channels);
        for (int t = 0; t < 9; t++)
            taps[t] = (float *)(void *)c->y + p.y + w->taps + t / 3 * w->by_tap[0] +
                      t % 3 * w->by_tap[1] + (row + i) % w->channels * w->by_channel + column;
        w->by->to_filter(m->filter + i * columns, apart(WEFT_WINOGRAD_ROWS, PANEL), columns, taps);
    }
}

/* Rows [row, row + rows) of (further taps, channels) and features [column, column + columns). */
static void run_filter_part(const weft_conv *c, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, int lane, filter_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    float *of = (float *)(uintptr_t)c->w + column; /* nobody writes there */
    const int64_t summed = w->by->summed, data = apart(summed, WEFT_WINOGRAD_ROWS),
                  result = apart(summed, PANEL), sums = apart(WEFT_WINOGRAD_ROWS, PANEL);
    stretch stretches[STRETCHES];
    const int count = cut_rows(c, row, rows, stretches);
    for (int64_t done = 0; done < w->n_tiles; done += summed) {
        const int64_t n = smaller(summed, w->n_tiles - done);
        for (int64_t i = 0; i < n; i++) {
            weft_winograd_places at;
            tile_place at_tile;
            find_tile(c, done + i, &at_tile);
            take_rows(c, &at_tile, stretches, count, m->data + i * rows, m->zeros);
            find_results(c, &at_tile, of, m->zeros, &at);
            w->by->from_result((const float *const *)at.y, columns, m->result + i * columns,
                               result);
        }
        for (int j = 0; j < weft_winograd_products(w); j++)
            weft_winograd_multiply(&(weft_winograd_product){.a = m->data + j * data,
                                                            .b = m->result + j * result,
                                                            .c = m->filter + j * sums,
                                                            .rows = rows,
                                                            .columns = columns,
                                                            .k = n,
                                                            .a_row = 1,
                                                            .a_step = rows,
                                                            .add = done > 0});
        weft_stream_pause(c->stream, lane);
    }
    put_rows(c, row, rows, column, columns, m);
}

static void run_filter_items(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    const weft_conv_winograd *w = &c->winograd;
    filter_lane *m = weft_stream_scratch(c->stream, lane);
    memset(m->zeros, 0, sizeof m->zeros);
    while (weft_stream_take(c->stream, lane, INT64_MAX, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const int64_t row = i % w->n_blocks * w->rows, column = i / w->n_blocks * w->panel;
            run_filter_part(c, row, smaller(w->rows, w->n_further * w->channels - row), column,
                            smaller(w->panel, w->features - column), lane, m);
        }
}

void weft_winograd_run(const weft_conv *c, weft_stream *stream)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t items = w->n_blocks * weft_winograd_pieces(w->features, w->panel);
    weft_parallel_whole(stream, items, 1, w->is_to_filter ? run_filter_items : run_forward_items,
                        (void *)(uintptr_t)c);
}
