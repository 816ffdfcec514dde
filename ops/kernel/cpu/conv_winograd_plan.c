/* conv_winograd_plan.c: which convolutions conv_winograd.c does, by which size of tiles, and how the work is cut. Sizes of tiles round
 * differently, so no lane has a say in them.
 */
#include "cpu/conv_winograd.h"

enum { W = WEFT_WINOGRAD_WIDTH, PANEL = WEFT_WINOGRAD_PANEL };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The one dim that moves a window; NULL: there is none, or more. */
static const weft_conv_dim *find_dim(const weft_conv_dims *dims, int window)
{
    const weft_conv_dim *found = NULL;
    for (int d = 0; d < dims->n; d++) {
        if (dims->dim[d].window != window) continue;
        if (found != NULL) return NULL;
        found = &dims->dim[d];
    }
    return found;
}

/* Takes the last two windows that have 3 taps side by side; false: there are no two. */
static bool take_plane(const weft_conv *c, const weft_conv_dims *of_taps,
                       const weft_conv_dims *of_places, weft_conv_dim *taps, weft_conv_dim *places,
                       weft_conv_winograd *w)
{
    int missing = 2;
    for (int s = c->n_windows - 1; s >= 0 && missing > 0; s--) {
        const weft_conv_dim *t = find_dim(of_taps, s), *p = find_dim(of_places, s);
        if (t == NULL || p == NULL || t->size != 3 || (t->step != 1 && t->step != -1) ||
            p->step != 1)
            continue;
        missing--;
        w->window[missing] = s, taps[missing] = *t, places[missing] = *p;
    }
    return missing == 0;
}

/* Dims that move neither of the plane's windows. */
static weft_conv_dims others(const weft_conv_dims *dims, const weft_conv_winograd *w)
{
    weft_conv_dims rest = {.n = 0};
    for (int d = 0; d < dims->n; d++)
        if (dims->dim[d].window != w->window[0] && dims->dim[d].window != w->window[1])
            rest.dim[rest.n++] = dims->dim[d];
    return rest;
}

/* Channels lie together in x; what else is summed, or of the filter, is further taps. */
static bool take_channels(const weft_conv_dims *of_taps, weft_conv_winograd *w)
{
    const weft_conv_dims rest = others(of_taps, w);
    w->further.n = 0;
    w->channels = 0;
    for (int d = 0; d < rest.n; d++) {
        const weft_conv_dim *dim = &rest.dim[d];
        if (dim->window >= 0 || dim->x != 1 || w->channels > 0) {
            w->further.dim[w->further.n++] = *dim;
            continue;
        }
        w->channels = dim->size;
        w->by_channel = w->is_to_filter ? dim->y : dim->w;
    }
    w->n_further = weft_conv_count(&w->further);
    return w->channels > 0;
}

/* Taps that go backwards are the same from the other end. */
static void take_taps(const weft_conv *c, const weft_conv_dim *taps, weft_conv_winograd *w)
{
    w->taps = 0;
    for (int s = 0; s < 2; s++) {
        const int64_t by = w->is_to_filter ? taps[s].y : taps[s].w;
        w->at[s] = c->first.at[w->window[s]] + (taps[s].step < 0 ? -2 : 0);
        w->by_tap[s] = taps[s].step < 0 ? -by : by;
        w->taps += taps[s].step < 0 ? 2 * by : 0;
    }
}

static void take_tiles(const weft_conv_dim *places, weft_conv_winograd *w)
{
    w->n_tiles = weft_conv_count(&w->outer);
    for (int s = 0; s < 2; s++) {
        w->places[s] = places[s].size;
        w->by_place[s] = w->is_to_filter ? places[s].w : places[s].y;
        w->tiles[s] = weft_winograd_pieces(places[s].size, w->by->results);
        w->n_tiles *= w->tiles[s];
    }
}

/* Dims, strides and sizes; false: it is another convolution. */
static bool take_dims(const weft_conv *c, weft_conv_winograd *w)
{
    weft_conv_dim taps[2], places[2];
    for (int s = 0; s < c->n_windows; s++)
        if (c->window[s].over != 1) return false;
    if (c->n.n != 1 || c->free.n > 0 || c->n.dim[0].y != 1) return false;
    w->is_to_filter = !take_plane(c, &c->k, &c->m, taps, places, w);
    if (w->is_to_filter && !take_plane(c, &c->m, &c->k, taps, places, w)) return false;
    if (!take_channels(w->is_to_filter ? &c->m : &c->k, w)) return false;
    w->outer = others(w->is_to_filter ? &c->k : &c->m, w);
    w->features = c->n.dim[0].size;
    w->by_feature = c->n.dim[0].w;
    if (w->channels % W != 0 || w->features % W != 0) return false;
    take_tiles(places, w);
    take_taps(c, taps, w);
    return !w->is_to_filter || w->by_feature == 1;
}

/* Columns of as many vectors, in the fewest panels of `most`. */
static int64_t even(int64_t n, int64_t most)
{
    return weft_winograd_pieces(weft_winograd_pieces(n, W), weft_winograd_pieces(n, most)) * W;
}

/* Cycles of a lane's vectors: of a product one. They do not count how lanes share the work: sizes of tiles round differently. */
static double cost_of(const weft_conv_winograd *w)
{
    const int64_t rows = w->n_further * w->channels;
    const double tiles = (double)w->n_tiles, channels = (double)rows / W,
                 features = (double)w->features / W;
    const double products = weft_winograd_products(w) * tiles * channels * features * W,
                 again_x = (double)weft_winograd_pieces(w->features, w->panel),
                 again_y = w->is_to_filter ? (double)weft_winograd_pieces(rows, w->rows) : 1,
                 again_w = w->is_to_filter || w->held == rows
                               ? 1
                               : (double)weft_winograd_pieces(w->n_tiles, w->by->tiles),
                 transforms = w->by->cycles * (tiles * (channels * again_x + features * again_y) +
                                               channels * W * features * again_w);
    return products + transforms;
}

static double direct_cost_of(const weft_conv_winograd *w)
{
    const double places = (double)(w->places[0] * w->places[1]) * (double)w->n_tiles /
                          (double)(w->tiles[0] * w->tiles[1]);
    return 9 * places * (double)(w->n_further * w->channels * w->features) / W;
}

/* Sums do not know how many there are, so lanes may have as many as they can share evenly. */
static void cut_filter(const weft_conv *c, weft_conv_winograd *w)
{
    const int64_t least = 2 * weft_stream_lanes(c->stream);
    while (w->n_blocks * weft_winograd_pieces(w->features, w->panel) < least &&
           (w->rows > W || w->panel > 2 * W)) {
        if (w->rows >= w->panel && w->rows > W)
            w->rows = even(w->rows, w->rows - 1);
        else
            w->panel = even(w->panel, w->panel - 1);
        w->n_blocks = weft_winograd_pieces(w->n_further * w->channels, w->rows);
    }
}

/* As even blocks of tiles as can be, and some for each lane. */
static void cut_tiles(const weft_conv *c, weft_conv_winograd *w)
{
    enum { LEAST = 6 /* rows of a product; of fewer vectors it has 8 */ };
    const int64_t rows = w->panel < PANEL ? 8 : LEAST,
                  panels = weft_winograd_pieces(w->features, w->panel),
                  wanted = smaller(weft_winograd_pieces(2 * weft_stream_lanes(c->stream), panels),
                                   weft_winograd_pieces(w->n_tiles, LEAST)),
                  n = weft_winograd_pieces(w->n_tiles, w->by->tiles);
    const int64_t block = weft_winograd_pieces(w->n_tiles, n > wanted ? n : wanted);
    w->block = smaller(weft_winograd_pieces(block, rows) * rows, w->by->tiles);
    w->n_blocks = weft_winograd_pieces(w->n_tiles, w->block);
}

/* By tiles of one size, of whose filter a panel has `held` elements of k; false: it is another convolution, or there is no room. */
static bool plan_by(const weft_conv *c, const weft_winograd *by, bool holds, weft_conv_winograd *w)
{
    *w = (weft_conv_winograd){.by = by};
    if ((by->is_rough && !c->is_half) || !take_dims(c, w)) return false;
    const int64_t all = w->n_further * w->channels;
    w->held = holds ? all : smaller(all, by->depth);
    const int64_t fits =
        smaller(PANEL, WEFT_WINOGRAD_FILTER / weft_winograd_products(w) / w->held / W * W);
    if (!w->is_to_filter && (fits == 0 || w->channels > WEFT_WINOGRAD_CHANNELS)) return false;
    w->panel = even(w->features, w->is_to_filter ? PANEL : fits);
    w->rows = even(all, WEFT_WINOGRAD_ROWS);
    w->n_blocks = weft_winograd_pieces(all, w->rows);
    if (w->is_to_filter) return holds;
    cut_tiles(c, w);
    return true;
}

bool weft_conv_plan_winograd(weft_conv *c)
{
    enum { LEAST = 1 << 14 };
    weft_conv_winograd w, best = {0};
    double cost = 0;
    if (c->dtype != WEFT_F32 || weft_run_kernels_of(c->dtype) == NULL || c->stream == NULL)
        return false;
    for (int i = 0; i < 2 * WEFT_WINOGRADS; i++) {
        if (!plan_by(c, &weft_winograds[i / 2], i % 2 == 0, &w)) continue;
        const double its = cost_of(&w), direct = direct_cost_of(&w);
        if (direct < LEAST || its >= 0.8 * direct || (best.by != NULL && its >= cost)) continue;
        best = w, cost = its;
    }
    if (best.by == NULL) return false;
    if (best.is_to_filter) cut_filter(c, &best);
    c->winograd = best;
    c->run = weft_winograd_run;
    return true;
}
