/* conv.h: a product of two tensors, one of them read through windows, as conv.c has worked it out, for the two ways to do it.
 *
 * y[g, m, n] = sum over k of x[g, m, k] w[g, k, n], as in einsum, except that this x does not exist. Each direction
 * of space has one dim in x, and m and k have one of it each. Element i of m and element t of k go with element
 * (stride i + dilation t + offset) / over of x's dim.
 */
#ifndef WEFT_CONV_H
#define WEFT_CONV_H

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

typedef struct weft_conv weft_conv;
struct weft_conv {
    void (*run)(const weft_conv *c, weft_stream *stream); /* one of the ways */
    weft_stream *stream;
    weft_dtype dtype;
    const char *x, *w;
    char *y;
    int64_t y_count;
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

/* conv_tiles.c: tiles of x unfolded, by matrix products; false: the dims make no matrices, or too small ones. */
bool weft_conv_plan_tiles(weft_conv *c);
/* conv_direct.c: loops along y's last dim. Any dims and dtype that is computed with. */
void weft_conv_plan_direct(weft_conv *c);

#endif
