/* conv_winograd.h: a convolution of 3 x 3 taps and stride 1 by Winograd's F(2 x 2, 3 x 3) or F(4 x 4, 3 x 3), as conv_winograd_plan.c
 * has planned it. */
#ifndef WEFT_CONV_WINOGRAD_H
#define WEFT_CONV_WINOGRAD_H

#include "cpu/conv.h"
#include "cpu/gemm_tile.h"

/* Of a tile, along each direction, at most. */
enum { WEFT_WINOGRAD_SIDE = 6, WEFT_WINOGRAD_RESULTS = 4 };
enum {
    WEFT_WINOGRAD_WIDTH = 16,         /* of a vector of f32 */
    WEFT_WINOGRAD_PANEL = 64,         /* features at most */
    WEFT_WINOGRAD_ROWS = 64,          /* channels of a filter's gradient at most */
    WEFT_WINOGRAD_FILTER = 1152 << 8, /* floats of a transformed panel at most */
    WEFT_WINOGRAD_CHANNELS = 1152     /* that are read from one place, at most */
};
/* Of tiles of 2 x 2 results and of 4 x 4: elements of k that are summed up in a register, tiles at once of places, and of sums over
 * places. All fit a lane's scratch. */
enum { WEFT_WINOGRAD_DEPTH_2 = 128, WEFT_WINOGRAD_TILES_2 = 48, WEFT_WINOGRAD_SUMMED_2 = 96 };
enum { WEFT_WINOGRAD_DEPTH_4 = 64, WEFT_WINOGRAD_TILES_4 = 40, WEFT_WINOGRAD_SUMMED_4 = 48 };

/* Places of a tile in x, and of its results: forward NULL where there is none. */
typedef struct weft_winograd_places {
    const float *x[WEFT_WINOGRAD_SIDE * WEFT_WINOGRAD_SIDE];
    float *y[WEFT_WINOGRAD_RESULTS * WEFT_WINOGRAD_RESULTS];
} weft_winograd_places;

/* One size of tiles. Transforms are of n elements, a multiple of a vector; element i of product j is at [j * apart + i]. */
struct weft_winograd {
    int results, side; /* of a tile of y, and of what of x makes it */
    bool is_rough;     /* sums err ten times as much as direct ones */
    int cycles;        /* that a vector's transform takes, as measured */
    int64_t depth, tiles, summed;
    void (*of_data)(const float *const *x, int64_t n, float *to, int64_t apart);
    void (*of_filter)(const float *const *taps, int64_t n, float *to, int64_t apart);
    void (*of_result)(const float *from, int64_t apart, int64_t n, float *const *y);
    /* Their transposes: of what comes to a result, and of what goes back to a filter. */
    void (*from_result)(const float *const *y, int64_t n, float *to, int64_t apart);
    void (*to_filter)(const float *from, int64_t apart, int64_t n, float *const *taps);
};
/* conv_winograd_math.c: none where there is no AVX-512. */
enum { WEFT_WINOGRADS = 2 };
extern const weft_winograd weft_winograds[WEFT_WINOGRADS];

static inline int64_t weft_winograd_pieces(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* Products of a tile. */
static inline int weft_winograd_products(const weft_conv_winograd *w)
{
    return w->by->side * w->by->side;
}

/* conv_winograd.c: as it was planned. */
void weft_winograd_run(const weft_conv *c, weft_stream *stream);

/* c = or += a b, c [rows, columns], b [k, columns] of whole vectors; element (i, l) of a is a[i * a_row + l * a_step]. */
typedef struct weft_winograd_product {
    const float *a, *b;
    float *c;
    int64_t rows, columns, k, a_row, a_step;
    bool add;
} weft_winograd_product;
void weft_winograd_multiply(const weft_winograd_product *p);

#endif
