/* conv_winograd_math.c: the transforms of F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3), and the products between them.
 *
 * In one direction two results of three taps g over four places d are
 *     A' [(G g) (B' d)],  G g = g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2,  B' d = d0 - d2, d1 + d2, d2 - d1, d1 - d3,
 *     A' m = m0 + m1 + m2, m1 - m2 - m3,
 * 4 products instead of 6; in both directions each transform goes along columns, then along rows: 16 instead of 36. All factors are
 * 1 and 1/2, so sums of small whole numbers stay exact. Four results over six places have 6 products instead of 12, and factors from
 * 1/24 to 8. The gradient to the filter is G' [(A dy) (B' d)].
 * source  Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks"
 */
#include "cpu/conv_runs.h"
#include "cpu/conv_winograd.h"

enum { SIDE = WEFT_WINOGRAD_SIDE, RESULTS = WEFT_WINOGRAD_RESULTS, WIDTH = WEFT_WINOGRAD_WIDTH };

#if defined(__x86_64__)
typedef float vector __attribute__((vector_size(64), aligned(4), may_alias));

TILE_INLINE TILE_TARGET vector load(const float *from)
{
    return *(const vector *)(const void *)from;
}

TILE_INLINE TILE_TARGET void store(float *to, vector x)
{
    *(vector *)(void *)to = x;
}

/* Each goes from one line of numbers to another. */
TILE_INLINE TILE_TARGET void data_of_2(const vector *d, vector *to)
{
    to[0] = d[0] - d[2], to[1] = d[1] + d[2], to[2] = d[2] - d[1], to[3] = d[1] - d[3];
}

TILE_INLINE TILE_TARGET void filter_of_2(const vector *g, vector *to)
{
    const vector ends = (g[0] + g[2]) * 0.5f, middle = g[1] * 0.5f;
    to[0] = g[0], to[1] = ends + middle, to[2] = ends - middle, to[3] = g[2];
}

TILE_INLINE TILE_TARGET void result_of_2(const vector *m, vector *to)
{
    to[0] = m[0] + m[1] + m[2], to[1] = m[1] - m[2] - m[3];
}

TILE_INLINE TILE_TARGET void from_result_of_2(const vector *y, vector *to)
{
    to[0] = y[0], to[1] = y[0] + y[1], to[2] = y[0] - y[1], to[3] = -y[1];
}

TILE_INLINE TILE_TARGET void to_filter_of_2(const vector *m, vector *to)
{
    const vector sum = (m[1] + m[2]) * 0.5f;
    to[0] = m[0] + sum, to[1] = (m[1] - m[2]) * 0.5f, to[2] = sum + m[3];
}

TILE_INLINE TILE_TARGET void data_of_4(const vector *d, vector *to)
{
    const vector even = d[4] - d[2] * 4.0f, odd = d[3] - d[1] * 4.0f, wide = d[4] - d[2],
                 apart = (d[3] - d[1]) * 2.0f;
    to[0] = (d[0] - d[2]) * 4.0f + wide, to[5] = d[5] - d[3] - apart * 2.0f;
    to[1] = even + odd, to[2] = even - odd, to[3] = wide + apart, to[4] = wide - apart;
}

TILE_INLINE TILE_TARGET void filter_of_4(const vector *g, vector *to)
{
    const vector near = (g[0] + g[2]) * (-1.0f / 6.0f), middle = g[1] * (1.0f / 6.0f),
                 far = g[0] * (1.0f / 24.0f) + g[2] * (1.0f / 6.0f), half = middle * 0.5f;
    to[0] = g[0] * 0.25f, to[5] = g[2];
    to[1] = near - middle, to[2] = near + middle, to[3] = far + half, to[4] = far - half;
}

TILE_INLINE TILE_TARGET void result_of_4(const vector *m, vector *to)
{
    const vector sum = m[1] + m[2], apart = m[1] - m[2], sum_2 = m[3] + m[4], apart_2 = m[3] - m[4];
    to[0] = m[0] + sum + sum_2, to[1] = apart + apart_2 * 2.0f;
    to[2] = sum + sum_2 * 4.0f, to[3] = apart + apart_2 * 8.0f + m[5];
}

TILE_INLINE TILE_TARGET void from_result_of_4(const vector *y, vector *to)
{
    const vector even = y[0] + y[2], odd = y[1] + y[3], even_2 = y[0] + y[2] * 4.0f,
                 odd_2 = (y[1] + y[3] * 4.0f) * 2.0f;
    to[0] = y[0], to[5] = y[3];
    to[1] = even + odd, to[2] = even - odd, to[3] = even_2 + odd_2, to[4] = even_2 - odd_2;
}

TILE_INLINE TILE_TARGET void to_filter_of_4(const vector *m, vector *to)
{
    const vector near = (m[1] + m[2]) * (-1.0f / 6.0f), far = m[3] + m[4];
    to[0] = m[0] * 0.25f + near + far * (1.0f / 24.0f);
    to[1] = (m[2] - m[1]) * (1.0f / 6.0f) + (m[3] - m[4]) * (1.0f / 12.0f);
    to[2] = near + far * (1.0f / 6.0f) + m[5];
}

/* [n_from, n_from] to [n_to, n_to]: columns, then rows. */
#define TRANSFORM(name, n_from, n_to)                                                              \
    TILE_INLINE TILE_TARGET void all_##name(vector(*from)[SIDE], vector(*to)[SIDE])                \
    {                                                                                              \
        vector rows[n_to][SIDE];                                                                   \
        WEFT_UNROLL(8)                                                                             \
        for (int j = 0; j < n_from; j++) {                                                         \
            vector column[SIDE], line[SIDE];                                                       \
            WEFT_UNROLL(8)                                                                         \
            for (int i = 0; i < n_from; i++)                                                       \
                column[i] = from[i][j];                                                            \
            name(column, line);                                                                    \
            WEFT_UNROLL(8)                                                                         \
            for (int i = 0; i < n_to; i++)                                                         \
                rows[i][j] = line[i];                                                              \
        }                                                                                          \
        WEFT_UNROLL(8)                                                                             \
        for (int i = 0; i < n_to; i++)                                                             \
            name(rows[i], to[i]);                                                                  \
    }
#define TRANSFORMS(results, side)                                                                  \
    TRANSFORM(data_of_##results, side, side)                                                       \
    TRANSFORM(filter_of_##results, 3, side)                                                        \
    TRANSFORM(result_of_##results, side, results)                                                  \
    TRANSFORM(from_result_of_##results, results, side)                                             \
    TRANSFORM(to_filter_of_##results, side, 3)
TRANSFORMS(2, 4)
TRANSFORMS(4, 6)

/* A number of one place and its transform, vector by vector. AT(i, j): where it is read; PUT(i, j): where it is written. */
#define ALONG(name, n_from, n_to, AT, PUT)                                                         \
    for (int64_t e = 0; e < n; e += WIDTH) {                                                       \
        vector from_[SIDE][SIDE], to_[SIDE][SIDE];                                                 \
        WEFT_UNROLL(8)                                                                             \
        for (int i = 0; i < n_from; i++) {                                                         \
            WEFT_UNROLL(8)                                                                         \
            for (int j = 0; j < n_from; j++)                                                       \
                from_[i][j] = load((AT) + e);                                                      \
        }                                                                                          \
        all_##name(from_, to_);                                                                    \
        WEFT_UNROLL(8)                                                                             \
        for (int i = 0; i < n_to; i++) {                                                           \
            WEFT_UNROLL(8)                                                                         \
            for (int j = 0; j < n_to; j++)                                                         \
                store((PUT) + e, to_[i][j]);                                                       \
        }                                                                                          \
    }

/* Of results what is outside of y is not written. */
#define OF_SIZE(results, side)                                                                     \
    static TILE_TARGET void take_data_##results(const float *const *x, int64_t n, float *to,       \
                                                int64_t apart)                                     \
    {                                                                                              \
        ALONG(data_of_##results, side, side, x[side * i + j], to + (side * i + j) * apart)         \
    }                                                                                              \
    static TILE_TARGET void take_filter_##results(const float *const *taps, int64_t n, float *to,  \
                                                  int64_t apart)                                   \
    {                                                                                              \
        ALONG(filter_of_##results, 3, side, taps[3 * i + j], to + (side * i + j) * apart)          \
    }                                                                                              \
    static TILE_TARGET void give_result_##results(const float *from, int64_t apart, int64_t n,     \
                                                  float *const *y)                                 \
    {                                                                                              \
        float spare[WEFT_WINOGRAD_PANEL];                                                          \
        float *to[RESULTS * RESULTS];                                                              \
        for (int k = 0; k < results * results; k++)                                                \
            to[k] = y[k] != NULL ? y[k] : spare;                                                   \
        ALONG(result_of_##results, side, results, from + (side * i + j) * apart,                   \
              to[results * i + j])                                                                 \
    }                                                                                              \
    static TILE_TARGET void take_result_##results(const float *const *y, int64_t n, float *to,     \
                                                  int64_t apart)                                   \
    {                                                                                              \
        ALONG(from_result_of_##results, results, side, y[results * i + j],                         \
              to + (side * i + j) * apart)                                                         \
    }                                                                                              \
    static TILE_TARGET void give_filter_##results(const float *from, int64_t apart, int64_t n,     \
                                                  float *const *taps)                              \
    {                                                                                              \
        ALONG(to_filter_of_##results, side, 3, from + (side * i + j) * apart, taps[3 * i + j])     \
    }
OF_SIZE(2, 4)
OF_SIZE(4, 6)

#define SIZES(results)                                                                             \
    .depth = WEFT_WINOGRAD_DEPTH_##results, .tiles = WEFT_WINOGRAD_TILES_##results,                \
    .summed = WEFT_WINOGRAD_SUMMED_##results
#define FUNCTIONS(results)                                                                         \
    .of_data = take_data_##results, .of_filter = take_filter_##results,                            \
    .of_result = give_result_##results, .from_result = take_result_##results,                      \
    .to_filter = give_filter_##results
const weft_winograd weft_winograds[WEFT_WINOGRADS] = {
    {.results = 2, .side = 4, .cycles = 50, SIZES(2), FUNCTIONS(2)},
    {.results = 4, .side = 6, .is_rough = true, .cycles = 130, SIZES(4), FUNCTIONS(4)},
};
#else
/* weft_conv_plan_winograd says no before. */
const weft_winograd weft_winograds[WEFT_WINOGRADS];
#endif

/* Tiles of 6 rows by 4 vectors, or 8 by fewer, and smaller ones for the rest. */
void weft_winograd_multiply(const weft_winograd_product *p)
{
    static const int sizes[WEFT_RUN_SIZES] = {1, 2, 4, 6, 8};
    const weft_run_kernels *kernels = weft_run_kernels_of(WEFT_F32);
    const int vectors = (int)(p->columns / WIDTH), most = vectors == WEFT_RUN_VECTORS ? 3 : 4;
    const char *a[1][WEFT_RUN_ROWS], *const b = (const char *)p->b;
    char *to[WEFT_RUN_ROWS];
    weft_run_tile t = {.n = 1,
                       .a = a,
                       .b = &b,
                       .k = &p->k,
                       .a_step = p->a_step * (int64_t)sizeof *p->a,
                       .b_step = p->columns * (int64_t)sizeof *p->b,
                       .c = to,
                       .columns = (int)p->columns,
                       .add = p->add};
    int size = most;
    for (int64_t i = 0; i < p->rows; i += sizes[size]) {
        while (sizes[size] > p->rows - i)
            size--;
        for (int r = 0; r < sizes[size]; r++) {
            a[0][r] = (const char *)(p->a + (i + r) * p->a_row);
            to[r] = (char *)(p->c + (i + r) * p->columns);
        }
        kernels->whole[WEFT_RUN_PRODUCT][size][vectors - 1](&t);
    }
}
