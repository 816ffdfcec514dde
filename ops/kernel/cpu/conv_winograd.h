/* conv_winograd.h: a convolution of 3 x 3 taps and stride 1 by Winograd's F(2 x 2, 3 x 3), as conv_winograd.c has planned it. */
#ifndef WEFT_CONV_WINOGRAD_H
#define WEFT_CONV_WINOGRAD_H

#include "cpu/conv.h"
#include "cpu/gemm_tile.h"

enum { WEFT_WINOGRAD = 16 /* products of a tile: 4 x 4 places of x */, WEFT_WINOGRAD_SIDE = 4 };
/* Vectors of f32. Elements of k that are summed up in a register, tiles at once of places and of sums over places. */
enum {
    WEFT_WINOGRAD_WIDTH = 16,
    WEFT_WINOGRAD_DEPTH = 128,
    WEFT_WINOGRAD_TILES = 48,
    WEFT_WINOGRAD_SUMMED = 96,
    WEFT_WINOGRAD_PANEL = 64,          /* features at most */
    WEFT_WINOGRAD_ROWS = 64,           /* channels of a filter's gradient at most */
    WEFT_WINOGRAD_FILTER = 1408 << 10, /* bytes of a transformed panel at most */
    WEFT_WINOGRAD_CHANNELS = WEFT_WINOGRAD_FILTER / (WEFT_WINOGRAD * WEFT_WINOGRAD_WIDTH * 4)
};

/* Places of a tile in x, and of its results: forward NULL where there is none. */
typedef struct weft_winograd_places {
    const float *x[WEFT_WINOGRAD];
    float *y[4];
} weft_winograd_places;

/* conv_winograd_math.c: the transforms, of n elements, a multiple of a vector. Element i of product j is at [j * apart + i]. */
void weft_winograd_data(const float *const *x, int64_t n, float *to, int64_t apart);
void weft_winograd_filter(const float *taps, int64_t tap, int64_t n, float *to, int64_t apart);
void weft_winograd_result(const float *from, int64_t apart, int64_t n, float *const *y);
/* Their transposes: of what comes to a result, and of what goes back to a filter. */
void weft_winograd_from_result(const float *const *y, int64_t n, float *to, int64_t apart);
void weft_winograd_to_filter(const float *from, int64_t apart, int64_t n, float *const *taps);

/* c = or += a b, c [rows, columns], b [k, columns] of whole vectors; element (i, l) of a is a[i * a_row + l * a_step]. */
typedef struct weft_winograd_product {
    const float *a, *b;
    float *c;
    int64_t rows, columns, k, a_row, a_step;
    bool add;
} weft_winograd_product;
void weft_winograd_multiply(const weft_winograd_product *p);

#endif
