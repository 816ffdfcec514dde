/* conv_winograd_math.c: the transforms of F(2 x 2, 3 x 3), and the products between them.
 *
 * In one direction two results of three taps g over four places d are
 *     A' [(G g) (B' d)],  G g = g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2,  B' d = d0 - d2, d1 + d2, d2 - d1, d1 - d3,
 *     A' m = m0 + m1 + m2, m1 - m2 - m3,
 * 4 products instead of 6; in both directions each transform goes along columns, then along rows: 16 instead of 36. All factors are
 * 1 and 1/2, so sums of small whole numbers stay exact. The gradient to the filter is G' [(A dy) (B' d)].
 * source  Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks"
 */
#include "cpu/conv_runs.h"
#include "cpu/conv_winograd.h"

enum { SIDE = WEFT_WINOGRAD_SIDE, WIDTH = WEFT_WINOGRAD_WIDTH };

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
TILE_INLINE TILE_TARGET void line_of_data(const vector *d, vector *to)
{
    to[0] = d[0] - d[2], to[1] = d[1] + d[2], to[2] = d[2] - d[1], to[3] = d[1] - d[3];
}

TILE_INLINE TILE_TARGET void line_of_filter(const vector *g, vector *to)
{
    const vector ends = (g[0] + g[2]) * 0.5f, middle = g[1] * 0.5f;
    to[0] = g[0], to[1] = ends + middle, to[2] = ends - middle, to[3] = g[2];
}

TILE_INLINE TILE_TARGET void line_of_result(const vector *m, vector *to)
{
    to[0] = m[0] + m[1] + m[2], to[1] = m[1] - m[2] - m[3];
}

TILE_INLINE TILE_TARGET void line_from_result(const vector *y, vector *to)
{
    to[0] = y[0], to[1] = y[0] + y[1], to[2] = y[0] - y[1], to[3] = -y[1];
}

TILE_INLINE TILE_TARGET void line_to_filter(const vector *m, vector *to)
{
    const vector sum = (m[1] + m[2]) * 0.5f;
    to[0] = m[0] + sum, to[1] = (m[1] - m[2]) * 0.5f, to[2] = sum + m[3];
}

/* [n_from, n_from] to [n_to, n_to]: columns, then rows. */
#define TRANSFORM(name, n_from, n_to)                                                              \
    TILE_INLINE TILE_TARGET void all_##name(vector(*from)[SIDE], vector(*to)[SIDE])                \
    {                                                                                              \
        vector rows[n_to][SIDE];                                                                   \
        WEFT_UNROLL(4)                                                                             \
        for (int j = 0; j < n_from; j++) {                                                         \
            vector column[SIDE], line[SIDE];                                                       \
            WEFT_UNROLL(4)                                                                         \
            for (int i = 0; i < n_from; i++)                                                       \
                column[i] = from[i][j];                                                            \
            line_##name(column, line);                                                             \
            WEFT_UNROLL(4)                                                                         \
            for (int i = 0; i < n_to; i++)                                                         \
                rows[i][j] = line[i];                                                              \
        }                                                                                          \
        WEFT_UNROLL(4)                                                                             \
        for (int i = 0; i < n_to; i++)                                                             \
            line_##name(rows[i], to[i]);                                                           \
    }
TRANSFORM(of_data, 4, 4)
TRANSFORM(of_filter, 3, 4)
TRANSFORM(of_result, 4, 2)
TRANSFORM(from_result, 2, 4)
TRANSFORM(to_filter, 4, 3)

/* A number of one place and its transform, vector by vector. AT(i, j): where it is read; PUT(i, j): where it is written. */
#define ALONG(name, n_from, n_to, AT, PUT)                                                         \
    for (int64_t e = 0; e < n; e += WIDTH) {                                                       \
        vector from_[SIDE][SIDE], to_[SIDE][SIDE];                                                 \
        WEFT_UNROLL(4)                                                                             \
        for (int i = 0; i < n_from; i++) {                                                         \
            WEFT_UNROLL(4)                                                                         \
            for (int j = 0; j < n_from; j++)                                                       \
                from_[i][j] = load((AT) + e);                                                      \
        }                                                                                          \
        all_##name(from_, to_);                                                                    \
        WEFT_UNROLL(4)                                                                             \
        for (int i = 0; i < n_to; i++) {                                                           \
            WEFT_UNROLL(4)                                                                         \
            for (int j = 0; j < n_to; j++)                                                         \
                store((PUT) + e, to_[i][j]);                                                       \
        }                                                                                          \
    }

TILE_TARGET void weft_winograd_data(const float *const *x, int64_t n, float *to, int64_t apart){
    ALONG(of_data, 4, 4, x[SIDE * i + j], to + (SIDE * i + j) * apart)}

TILE_TARGET
    void weft_winograd_filter(const float *taps, int64_t tap, int64_t n, float *to, int64_t apart){
        ALONG(of_filter, 3, 4, taps + (3 * i + j) * tap, to + (SIDE * i + j) * apart)}

/* A whole tile; else what is outside of y is not written. */
TILE_TARGET void weft_winograd_result(const float *from, int64_t apart, int64_t n, float *const *y)
{
    float spare[WEFT_WINOGRAD_PANEL];
    float *to[4];
    for (int k = 0; k < 4; k++)
        to[k] = y[k] != NULL ? y[k] : spare;
    ALONG(of_result, 4, 2, from + (SIDE * i + j) * apart, to[2 * i + j])
}

TILE_TARGET void weft_winograd_from_result(const float *const *y, int64_t n, float *to,
                                           int64_t apart){
    ALONG(from_result, 2, 4, y[2 * i + j], to + (SIDE * i + j) * apart)}

TILE_TARGET
    void weft_winograd_to_filter(const float *from, int64_t apart, int64_t n, float *const *taps)
{
    ALONG(to_filter, 4, 3, from + (SIDE * i + j) * apart, taps[3 * i + j])
}
#else
/* weft_conv_plan_winograd says no. */
void weft_winograd_data(const float *const *x, int64_t n, float *to, int64_t apart)
{
    (void)x, (void)n, (void)to, (void)apart;
}

void weft_winograd_filter(const float *taps, int64_t tap, int64_t n, float *to, int64_t apart)
{
    (void)taps, (void)tap, (void)n, (void)to, (void)apart;
}

void weft_winograd_result(const float *from, int64_t apart, int64_t n, float *const *y)
{
    (void)from, (void)apart, (void)n, (void)y;
}

void weft_winograd_from_result(const float *const *y, int64_t n, float *to, int64_t apart)
{
    (void)y, (void)n, (void)to, (void)apart;
}

void weft_winograd_to_filter(const float *from, int64_t apart, int64_t n, float *const *taps)
{
    (void)from, (void)apart, (void)n, (void)taps;
}
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
