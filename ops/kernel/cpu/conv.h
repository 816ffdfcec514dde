/* conv.h: a product of two tensors, one of them read through windows, as conv.c has worked it out, for the two ways to do it.
 *
 * y[g, m, n] = sum over k of x[g, m, k] w[g, k, n], as in einsum, except that this x does not exist. Each direction
 * of space has one dim in x, and m and k have one of it each. Element i of m and element t of k go with element
 * (stride i + dilation t + offset) / over of x's dim.
 */
#ifndef WEFT_CONV_H
#define WEFT_CONV_H

#include "cpu/conv_runs.h"
#include "cpu/nest.h"

/* One dim of y or w, with its strides in all; in x none where it moves a window instead. */
typedef struct weft_conv_dim {
    int64_t size, x, w, y;
    int window;   /* -1: none */
    int64_t step; /* by which it moves it, times over */
} weft_conv_dim;

typedef struct weft_conv_dims {
    int n;
    weft_conv_dim dim[2 * WEFT_MAX_DIMS]; /* outermost first */
} weft_conv_dims;

/* Where an element is: offsets in the three, and places in the windows, times over. */
typedef struct weft_conv_place {
    int64_t x, w, y, at[WEFT_CONV_WINDOWS];
} weft_conv_place;

/* How conv_rows.c goes about it: y's columns are neighbours in memory, its rows the elements of m. */
typedef struct weft_conv_rows {
    weft_run_kind kind;
    bool is_to_filter;                     /* more places are summed over than come out */
    int64_t rows, vectors;                 /* of a tile: 8 by 3 or 6 by 4 at most */
    int64_t n_phases, columns, x_by, w_by; /* y's, from one to the next in x and in w */
    int64_t n_vectors;                     /* of columns */
    /* Of groups: columns are (group, feature), and of x (group, channel), as many of both. Strides of w, or to the filter of y */
    int64_t channels, by_group, by_channel, by_feature;
    /* Of items all rows of a vector are neighbours, else all vectors of some rows; an item may be all of those */
    bool is_by_vector;
    int64_t item;                /* vectors of an item */
    bool streams;                /* y goes past the caches */
    int64_t unit, n_units, most; /* rows' tiles of an item; of all; that are done at once */
    /* Runs go along one dim of k, in parts; the other dims are c->k. The dims of m behind the last that moves a window which
     * matters to all of a tile are `inner`: a tile has rows of one turn of those before */
    weft_conv_dim run;
    int64_t part, n_parts, n_runs, per_block, inner, n_tiles;
    int64_t low[WEFT_CONV_WINDOWS], high[WEFT_CONV_WINDOWS]; /* what k adds to places in windows */
    /* Few numbers at each place of x: a part of x with zeros around it is laid out for each item (forward), or for a part of k at
     * a time (to the filter). */
    bool is_padded;
    int64_t pad_x[WEFT_CONV_WINDOWS], pad_size[WEFT_CONV_WINDOWS]; /* strides; elements */
    int64_t pad_first[WEFT_CONV_WINDOWS]; /* the first place that is needed, beside c->first */
    int64_t pad_channels, pad_by;         /* at each place; from one to the next in x */
    int64_t pad_n;                        /* of the outermost dim, at once */
    weft_conv_dims pad_outer;             /* of k, to the filter: without a window */
} weft_conv_rows;

/* How conv_winograd.c goes about it: tiles of places of y, or to the filter of w, which are summed over. */
typedef struct weft_winograd weft_winograd;
typedef struct weft_conv_winograd {
    const weft_winograd *by; /* the size of tiles */
    bool is_to_filter;
    int window[2];                            /* the plane's, which tiles are of */
    int64_t places[2], tiles[2], by_place[2]; /* by window; in y, or to the filter in w */
    int64_t at[2];                            /* of the first tile in x */
    int64_t taps, by_tap[2], by_channel;      /* of tap 0, strides: in w, or to the filter in y */
    int64_t by_feature;                       /* in w */
    int64_t channels, features, n_tiles;
    weft_conv_dims outer, further; /* of tiles; taps beside the plane's */
    int64_t n_further;             /* taps */
    /* An item is `panel` features of a block of tiles, or to the filter of `rows` (further taps, channels) */
    int64_t panel, rows, n_blocks;
    int64_t block; /* tiles of one */
    int64_t held;  /* elements of k of a panel that are kept transformed: all, or some at a time */
} weft_conv_winograd;

typedef struct weft_conv weft_conv;
struct weft_conv {
    void (*run)(const weft_conv *c, weft_stream *stream); /* one of the ways */
    weft_stream *stream;
    weft_dtype dtype;
    bool is_half; /* as the attributes say */
    const char *x, *w;
    char *y;
    int64_t x_count, y_count;
    int n_windows;
    struct { /* of x's box */
        int64_t over, size, stride;
    } window[WEFT_CONV_WINDOWS];
    weft_conv_place first; /* of element 0 of everything */
    weft_conv_dims free, m, n, k;
    /* tiles of matrices: how many elements of m and n each has, and of k at a time */
    int64_t tile_m, tile_n, tile_k, n_m, n_n;
    int64_t loop_k;   /* elements of k in one stretch: pieces do not cross its ends */
    bool is_w_matrix; /* w is read where it lies, by strides, a stretch of k at a time */
    bool is_by_k;     /* neighbours along k lie together in x, else those along m */
    weft_conv_rows rows;
    weft_conv_winograd winograd;
};

int64_t weft_conv_count(const weft_conv_dims *dims);
/* Element `index`, row-major, added to a place. */
void weft_conv_move(const weft_conv_dims *dims, int64_t index, weft_conv_place *place);
/* Whether the windows have something there; its offset in x is added. */
static inline bool weft_conv_is_in(const weft_conv *c, const int64_t *at, int64_t *x)
{
    for (int s = 0; s < c->n_windows; s++) {
        int64_t j = at[s];
        if (c->window[s].over != 1) {
            if (j % c->window[s].over != 0) return false;
            j /= c->window[s].over;
        }
        if (j < 0 || j >= c->window[s].size) return false;
        *x += j * c->window[s].stride;
    }
    return true;
}

/* conv_winograd.c: 3 x 3 taps of stride 1 in two dims, and many channels, in f32, by fewer products; false: it is another one, or that would not
 * pay, or there is no AVX-512. */
bool weft_conv_plan_winograd(weft_conv *c);
/* conv_rows.c: tiles of runs, x read where it lies; false: no processor with AVX-512, y's columns do not lie together, or all is
 * tiny. */
bool weft_conv_plan_rows(weft_conv *c);
/* What of it follows from the dims. */
void weft_conv_settle(weft_conv *c);
/* conv_phase.c: windows with gaps make so many convolutions without; some number above WEFT_CONV_PHASES: too many. */
int64_t weft_conv_count_phases(const weft_conv *c);
enum { WEFT_CONV_PHASES = 4096 };
/* One of them, settled. */
void weft_conv_take_phase(const weft_conv *c, int64_t phase, weft_conv *of);
/* conv_items.c: the items [begin, end) of weft_parallel_whole. */
void weft_conv_run_items(void *argument, int64_t begin, int64_t end, int lane);
/* conv_pad.c: whether there is so little at each place of x that it is padded; if so, how. */
bool weft_conv_plan_pad(weft_conv *c);
/* Elements [first, first + n) of the outermost dim that has a window, of `of` (c->m, or c->k), with p at element 0: x's part, laid
 * out in `pad`, and the sum as one without windows. */
void weft_conv_pad(const weft_conv *c, const weft_conv_dims *of, const weft_conv_place *p,
                   int64_t first, int64_t n, void *pad, weft_conv *padded);
enum { WEFT_CONV_PAD_BYTES = 512 << 10 };
/* conv_tiles.c: tiles of x unfolded, by matrix products; false: the dims make no matrices, or too small ones. */
bool weft_conv_plan_tiles(weft_conv *c);
/* conv_direct.c: loops along y's last dim. Any dims and dtype that is computed with. */
void weft_conv_plan_direct(weft_conv *c);

#endif
