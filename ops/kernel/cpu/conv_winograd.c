/* conv_winograd.c: convolutions of 3 x 3 taps, stride 1 and many channels, forward and to the data and to the filter, by 16 / 36 of
 * the products (conv_winograd_math.c).
 *
 * y is cut into tiles of 2 x 2 places, which 4 x 4 places of x make. Forward, a lane keeps the transformed filter of some features,
 * and tiles go past it, some at a time: they are transformed, multiplied as 16 matrices, and transformed back. To the filter, a lane
 * keeps the sums of some channels and features, and all tiles go past them. A tile is transformed anew for each panel of features:
 * that is cheaper than to share it, fits 2 MB a lane, and asks the plan for no memory. Sums go along k, or along tiles, in pieces of
 * one length, so bits depend on no panel or lane.
 * An element that is not finite makes a tile's others NaN; sums differ from the direct ones by rounding.
 */
#include "cpu/conv_winograd.h"

#include <string.h>

enum { W = WEFT_WINOGRAD_WIDTH, TILES = WEFT_WINOGRAD_TILES, SUMMED = WEFT_WINOGRAD_SUMMED };
/* Products lie a line of a cache more than their size apart: else all 16 would be on the same sets. */
enum {
    DATA = TILES * WEFT_WINOGRAD_DEPTH + W,
    RESULT = TILES * WEFT_WINOGRAD_PANEL + W,
    TAKEN = 16, /* of k, taps at once */
    FILTER = WEFT_WINOGRAD_FILTER / 4 + WEFT_WINOGRAD * W,
    SUM_DATA = SUMMED * WEFT_WINOGRAD_ROWS + W,
    SUM_RESULT = SUMMED * WEFT_WINOGRAD_PANEL + W,
    SUM_FILTER = WEFT_WINOGRAD_ROWS * WEFT_WINOGRAD_PANEL + W,
};

/* Of a lane's scratch, forward and to the data. */
typedef struct forward_lane {
    _Alignas(64) float filter[FILTER], data[WEFT_WINOGRAD * DATA], result[WEFT_WINOGRAD * RESULT];
    float taps[9 * TAKEN * WEFT_WINOGRAD_PANEL], zeros[WEFT_WINOGRAD_CHANNELS];
    weft_winograd_places at[TILES];
} forward_lane;

typedef struct filter_lane {
    _Alignas(64) float filter[WEFT_WINOGRAD * SUM_FILTER], data[WEFT_WINOGRAD * SUM_DATA],
        result[WEFT_WINOGRAD * SUM_RESULT];
    float zeros[WEFT_WINOGRAD_PANEL];
} filter_lane;
_Static_assert(sizeof(forward_lane) <= WEFT_LANE_SCRATCH, "scratch holds all");
_Static_assert(sizeof(filter_lane) <= WEFT_LANE_SCRATCH, "scratch holds all");
_Static_assert(WEFT_WINOGRAD_ROWS <= WEFT_WINOGRAD_PANEL, "zeros are as many as either");

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t pieces_of(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* ---- tiles ------------------------------------------------------------------------------------- */

/* Elements: of x from c->x on; of what has results, from `of` on. */
static void find(const weft_conv *c, int64_t index, const float *x, const float *zeros, float *of,
                 float *outside, weft_winograd_places *to)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t each = w->tiles[0] * w->tiles[1], in_image = index % each;
    const int64_t row = 2 * (in_image / w->tiles[1]), column = 2 * (in_image % w->tiles[1]);
    weft_conv_place p = {0};
    weft_conv_move(&w->outer, index / each, &p);
    const int64_t step = w->is_to_filter ? p.w : p.y;
    for (int k = 0; k < 4; k++) {
        const int64_t i = row + k / 2, j = column + k % 2;
        to->y[k] = i < w->places[0] && j < w->places[1]
                       ? of + step + i * w->by_place[0] + j * w->by_place[1]
                       : outside;
    }
    for (int k = 0; k < WEFT_WINOGRAD; k++) {
        const int64_t i = w->at[0] + row + k / WEFT_WINOGRAD_SIDE,
                      j = w->at[1] + column + k % WEFT_WINOGRAD_SIDE;
        const bool is_in = i >= 0 && i < c->window[0].size && j >= 0 && j < c->window[1].size;
        to->x[k] = is_in ? x + p.x + i * c->window[0].stride + j * c->window[1].stride : zeros;
    }
}

/* ---- forward, and to the data -------------------------------------------------------------------- */

/* Features [first, first + n) of the filter, transformed: [16][channels][n]. */
static void take_filter(const weft_conv *c, int64_t first, int64_t n, forward_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    const tile_kernels *kernels = weft_gemm_kernels(WEFT_F32);
    const int64_t tap = TAKEN * n, bytes = sizeof(float);
    for (int64_t k = 0; k < w->channels; k += TAKEN) {
        const int64_t depth = smaller(TAKEN, w->channels - k);
        for (int t = 0; t < 9; t++) {
            const int64_t at = w->taps + t / 3 * w->by_tap[0] + t % 3 * w->by_tap[1] +
                               k * w->by_channel + first * w->by_feature;
            const side s = {.data = c->w + at * bytes,
                            .step = w->by_feature,
                            .deep = w->by_channel,
                            .bytes = (int)bytes};
            kernels->pack(&s, (int)n, (int)n, depth, m->taps + t * tap);
        }
        weft_winograd_filter(m->taps, tap, depth * n, m->filter + k * n, w->channels * n + W);
    }
}

/* Tiles [first, first + n) by the panel of columns that m has. */
static void run_tiles(const weft_conv *c, int64_t first, int64_t n, int64_t column, int64_t columns,
                      forward_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    for (int64_t i = 0; i < n; i++)
        find(c, first + i, (const float *)(const void *)c->x, m->zeros,
             (float *)(void *)c->y + column, NULL, &m->at[i]);
    for (int64_t k = 0; k < w->channels; k += WEFT_WINOGRAD_DEPTH) {
        const int64_t depth = smaller(WEFT_WINOGRAD_DEPTH, w->channels - k);
        for (int64_t i = 0; i < n; i++) {
            weft_winograd_data(m->at[i].x, depth, m->data + i * depth, DATA);
            for (int j = 0; j < WEFT_WINOGRAD; j++)
                m->at[i].x[j] += depth;
        }
        for (int j = 0; j < WEFT_WINOGRAD; j++)
            weft_winograd_multiply(&(weft_winograd_product){
                .a = m->data + j * DATA,
                .b = m->filter + j * (w->channels * columns + W) + k * columns,
                .c = m->result + j * RESULT,
                .rows = n,
                .columns = columns,
                .k = depth,
                .a_row = depth,
                .a_step = 1,
                .add = k > 0});
    }
    for (int64_t i = 0; i < n; i++)
        weft_winograd_result(m->result + i * columns, RESULT, columns, m->at[i].y);
}

static void run_forward_items(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    const weft_conv_winograd *w = &c->winograd;
    forward_lane *m = weft_stream_scratch(c->stream, lane);
    int64_t held = -1;
    memset(m->zeros, 0, sizeof m->zeros);
    while (weft_stream_take(c->stream, lane, INT64_MAX, &begin, &end))
        for (int64_t i = begin; i < end; i++) {
            const int64_t panel = i / w->n_blocks, at = i % w->n_blocks * TILES;
            const int64_t first = panel * w->panel, n = smaller(w->panel, w->features - first);
            if (panel != held) take_filter(c, first, n, m);
            held = panel;
            run_tiles(c, at, smaller(TILES, w->n_tiles - at), first, n, m);
            weft_stream_pause(c->stream, lane);
        }
}

/* ---- to the filter ------------------------------------------------------------------------------- */

/* Channels [row, row + rows) and features [column, column + columns). */
static void run_filter_part(const weft_conv *c, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, int lane, filter_lane *m)
{
    const weft_conv_winograd *w = &c->winograd;
    const float *x = (const float *)(const void *)c->x + row;
    float *of = (float *)(uintptr_t)c->w + column; /* nobody writes there */
    for (int64_t done = 0; done < w->n_tiles; done += SUMMED) {
        const int64_t n = smaller(SUMMED, w->n_tiles - done);
        for (int64_t i = 0; i < n; i++) {
            weft_winograd_places at;
            find(c, done + i, x, m->zeros, of, m->zeros, &at);
            weft_winograd_data(at.x, rows, m->data + i * rows, SUM_DATA);
            weft_winograd_from_result((const float *const *)at.y, columns, m->result + i * columns,
                                      SUM_RESULT);
        }
        for (int j = 0; j < WEFT_WINOGRAD; j++)
            weft_winograd_multiply(&(weft_winograd_product){.a = m->data + j * SUM_DATA,
                                                            .b = m->result + j * SUM_RESULT,
                                                            .c = m->filter + j * SUM_FILTER,
                                                            .rows = rows,
                                                            .columns = columns,
                                                            .k = n,
                                                            .a_row = 1,
                                                            .a_step = rows,
                                                            .add = done > 0});
        weft_stream_pause(c->stream, lane);
    }
    for (int64_t i = 0; i < rows; i++) {
        float *taps[9];
        for (int t = 0; t < 9; t++)
            taps[t] = (float *)(void *)c->y + w->taps + t / 3 * w->by_tap[0] +
                      t % 3 * w->by_tap[1] + (row + i) * w->by_channel + column;
        weft_winograd_to_filter(m->filter + i * columns, SUM_FILTER, columns, taps);
    }
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
            run_filter_part(c, row, smaller(w->rows, w->channels - row), column,
                            smaller(w->panel, w->features - column), lane, m);
        }
}

static void run(const weft_conv *c, weft_stream *stream)
{
    const weft_conv_winograd *w = &c->winograd;
    const int64_t items = w->n_blocks * pieces_of(w->features, w->panel);
    weft_parallel_whole(stream, items, 1, w->is_to_filter ? run_filter_items : run_forward_items,
                        (void *)(uintptr_t)c);
}

/* ---- which it is --------------------------------------------------------------------------------- */

/* The windows' dims by window, others behind each other; false: a window has not just one. */
static bool sort(const weft_conv_dims *dims, weft_conv_dim *of_window, weft_conv_dims *others)
{
    int n[2] = {0};
    others->n = 0;
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window >= 0) {
            of_window[dims->dim[d].window] = dims->dim[d];
            n[dims->dim[d].window]++;
        } else
            others->dim[others->n++] = dims->dim[d];
    return n[0] == 1 && n[1] == 1;
}

/* Taps that go backwards are the same from the other end. */
static void take_taps(const weft_conv *c, const weft_conv_dim *taps, weft_conv_winograd *w)
{
    w->taps = 0;
    for (int s = 0; s < 2; s++) {
        const int64_t by = w->is_to_filter ? taps[s].y : taps[s].w;
        w->at[s] = c->first.at[s] + (taps[s].step < 0 ? -2 : 0);
        w->by_tap[s] = taps[s].step < 0 ? -by : by;
        w->taps += taps[s].step < 0 ? 2 * by : 0;
    }
}

static bool is_three(const weft_conv_dim *taps)
{
    for (int s = 0; s < 2; s++)
        if (taps[s].size != 3 || (taps[s].step != 1 && taps[s].step != -1)) return false;
    return true;
}

/* Dims, strides and sizes; false: it is another convolution. */
static bool take_dims(const weft_conv *c, weft_conv_winograd *w)
{
    weft_conv_dim m[2], k[2];
    weft_conv_dims of_m, of_k;
    if (c->n_windows != 2 || c->window[0].over != 1 || c->window[1].over != 1 || c->n.n != 1 ||
        c->free.n > 0 || !sort(&c->m, m, &of_m) || !sort(&c->k, k, &of_k))
        return false;
    w->is_to_filter = !is_three(k);
    const weft_conv_dim *taps = w->is_to_filter ? m : k, *places = w->is_to_filter ? k : m;
    const weft_conv_dims *channel = w->is_to_filter ? &of_m : &of_k;
    if (!is_three(taps) || places[0].step != 1 || places[1].step != 1 || channel->n != 1 ||
        channel->dim[0].x != 1 || c->n.dim[0].y != 1)
        return false;
    w->outer = w->is_to_filter ? of_k : of_m;
    w->n_tiles = weft_conv_count(&w->outer);
    for (int s = 0; s < 2; s++) {
        w->places[s] = places[s].size;
        w->by_place[s] = w->is_to_filter ? places[s].w : places[s].y;
        w->tiles[s] = (places[s].size + 1) / 2;
        w->n_tiles *= w->tiles[s];
    }
    w->channels = channel->dim[0].size, w->features = c->n.dim[0].size;
    w->by_channel = w->is_to_filter ? channel->dim[0].y : channel->dim[0].w;
    w->by_feature = c->n.dim[0].w;
    if (w->channels % W != 0 || w->features % W != 0) return false;
    take_taps(c, taps, w);
    return w->is_to_filter ? w->by_feature == 1 : w->channels <= WEFT_WINOGRAD_CHANNELS;
}

/* Columns of as many vectors, in the fewest panels of `most`. */
static int64_t even(int64_t n, int64_t most)
{
    return pieces_of(pieces_of(n, W), pieces_of(n, most)) * W;
}

/* Cycles of a vector: a product is one, a transform of 16 numbers, as measured, some 50. */
static bool pays(const weft_conv_winograd *w)
{
    enum { OF_TRANSFORM = 50, LEAST = 1 << 14 };
    const double tiles = (double)w->n_tiles, channels = (double)w->channels / W,
                 features = (double)w->features / W,
                 places = (double)(w->places[0] * w->places[1]) * tiles /
                          (double)(w->tiles[0] * w->tiles[1]);
    const double direct = 9 * places * channels * features * W;
    const double products = WEFT_WINOGRAD * tiles * channels * features * W,
                 again_x = (double)pieces_of(w->features, w->panel),
                 again_y = w->is_to_filter ? (double)pieces_of(w->channels, w->rows) : 1,
                 transforms = OF_TRANSFORM * (tiles * (channels * again_x + features * again_y) +
                                              channels * W * features);
    return direct >= LEAST && products + transforms < 0.8 * direct;
}

/* Sums do not know how many there are, so lanes may have as many as they can share evenly. */
static void cut_filter(const weft_conv *c, weft_conv_winograd *w)
{
    const int64_t least = 2 * weft_stream_lanes(c->stream);
    while (w->n_blocks * pieces_of(w->features, w->panel) < least &&
           (w->rows > W || w->panel > 2 * W)) {
        if (w->rows >= w->panel && w->rows > W)
            w->rows = even(w->rows, w->rows - 1);
        else
            w->panel = even(w->panel, w->panel - 1);
        w->n_blocks = pieces_of(w->channels, w->rows);
    }
}

bool weft_conv_plan_winograd(weft_conv *c)
{
    weft_conv_winograd w = {0};
    if (c->dtype != WEFT_F32 || weft_run_kernels_of(c->dtype) == NULL || c->stream == NULL ||
        !take_dims(c, &w))
        return false;
    const int64_t fits = WEFT_WINOGRAD_FILTER / (WEFT_WINOGRAD * 4) / w.channels / W * W;
    w.panel =
        even(w.features, w.is_to_filter ? WEFT_WINOGRAD_PANEL : smaller(WEFT_WINOGRAD_PANEL, fits));
    w.rows = even(w.channels, WEFT_WINOGRAD_ROWS);
    w.n_blocks = w.is_to_filter ? pieces_of(w.channels, w.rows) : pieces_of(w.n_tiles, TILES);
    if (!pays(&w)) return false;
    if (w.is_to_filter) cut_filter(c, &w);
    c->winograd = w;
    c->run = run;
    return true;
}
