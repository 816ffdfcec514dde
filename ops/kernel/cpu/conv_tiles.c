/* conv_tiles.c: a convolution as matrix products. A tile at a time of unfolded x, [m, k], is laid out in a lane's
 * scratch, where it stays in cache, and multiplied with a matrix of w. All of unfolded x, which is x as often as
 * there are taps, never exists.
 *
 * Tiles follow from shapes alone, and k is cut in the same pieces for all of them.
 * source  Chellapilla, Puri and Simard 2006 for unfolding; Chetlur et al. 2014, "cuDNN", for doing so tile by tile
 */
#include "cpu/conv.h"
#include "cpu/gemm.h"

#include <string.h>

enum {
    MOST_K = 256,
    MOST_M = 240,
    LEAST_M = 96,           /* w is packed once for each tile */
    TILE_BYTES = 512 << 10, /* of x unfolded; as much again of w, where its dims are no matrix */
    TASKS = 16,             /* as many tiles as leave no lane waiting for long, where m is large */
};
_Static_assert(WEFT_GEMM_SCRATCH + 2 * TILE_BYTES <= WEFT_LANE_SCRATCH, "scratch holds all");
_Static_assert(MOST_K *MOST_M * sizeof(double) <= TILE_BYTES, "a tile of doubles");

/* Places of some elements of m, of k or of n. */
typedef struct spots {
    int64_t n, first;
    int64_t x[MOST_K], at[WEFT_CONV_WINDOWS][MOST_K];
} spots;

static void find_spots(const weft_conv_dims *dims, const weft_conv_place *from, int64_t first,
                       int64_t n, spots *s)
{
    s->n = n, s->first = first;
    for (int64_t i = 0; i < n; i++) {
        weft_conv_place p = *from;
        weft_conv_move(dims, first + i, &p);
        s->x[i] = p.x;
        for (int k = 0; k < WEFT_CONV_WINDOWS; k++)
            s->at[k][i] = p.at[k];
    }
}

/* What is at element i of m and j of k; false: nothing, a zero. */
static bool find(const weft_conv *c, const spots *m, int64_t i, const spots *k, int64_t j,
                 int64_t *x)
{
    int64_t at[WEFT_CONV_WINDOWS] = {0};
    *x = m->x[i] + k->x[j];
    for (int s = 0; s < c->n_windows; s++)
        at[s] = m->at[s][i] + k->at[s][j];
    return weft_conv_is_in(c, at, x);
}

/* Elements from `index` on that one loop goes through: those of the last dim. Of a window with gaps each by itself. */
static int64_t run_from(const weft_conv *c, const weft_conv_dims *dims, const spots *s,
                        int64_t index)
{
    if (dims->n == 0) return 1;
    const weft_conv_dim *last = &dims->dim[dims->n - 1];
    if (last->window >= 0 && c->window[last->window].over != 1) return 1;
    const int64_t left = last->size - (s->first + index) % last->size;
    return left < s->n - index ? left : s->n - index;
}

static int64_t within(int64_t low, int64_t x, int64_t high)
{
    return x < low ? low : x < high ? x : high;
}

/* Of n elements of which the first is at `at` of window s, those in it: [*begin, *end). */
static void clip_slide(const weft_conv *c, int s, int64_t at, int64_t step, int64_t n,
                       int64_t *begin, int64_t *end)
{
    const int64_t size = c->window[s].size;
    const int64_t by = step < 0 ? -step : step, from = step < 0 ? size - 1 - at : at;
    *begin = within(0, from >= 0 ? 0 : (-from + by - 1) / by, n);
    *end = within(*begin, from >= size ? 0 : (size - 1 - from) / by + 1, n);
}

#define UNFOLD(s, T)                                                                               \
    static void put_##s(T *to, const T *x, int64_t step, int64_t n)                                \
    {                                                                                              \
        if (step == 1)                                                                             \
            memcpy(to, x, (size_t)n * sizeof *to);                                                 \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = x[i * step];                                                               \
    }                                                                                              \
    /* n elements from j on, in the window that the last dim of `fast` moves */                    \
    static void slide_##s(const weft_conv *c, const spots *slow, int64_t i, const spots *fast,     \
                          int64_t j, const weft_conv_dim *last, int64_t n, T *to)                  \
    {                                                                                              \
        const int window = last->window;                                                           \
        const int64_t stride = c->window[window].stride;                                           \
        int64_t at[WEFT_CONV_WINDOWS] = {0}, x = slow->x[i] + fast->x[j], begin, end;              \
        for (int k = 0; k < c->n_windows; k++)                                                     \
            at[k] = k == window ? 0 : slow->at[k][i] + fast->at[k][j];                             \
        const int64_t first = slow->at[window][i] + fast->at[window][j];                           \
        clip_slide(c, window, first, last->step, n, &begin, &end);                                 \
        if (!weft_conv_is_in(c, at, &x)) begin = end = n;                                          \
        memset(to, 0, (size_t)begin * sizeof *to);                                                 \
        if (begin < end)                                                                           \
            put_##s(to + begin,                                                                    \
                    (const T *)(const void *)c->x + x + (first + begin * last->step) * stride,     \
                    last->step * stride, end - begin);                                             \
        memset(to + end, 0, (size_t)(n - end) * sizeof *to);                                       \
    }                                                                                              \
    /* tile [slow, fast]; dims: fast's */                                                          \
    static void unfold_##s(const weft_conv *c, const spots *slow, const spots *fast,               \
                           const weft_conv_dims *dims, void *tile)                                 \
    {                                                                                              \
        const weft_conv_dim *last = &dims->dim[dims->n > 0 ? dims->n - 1 : 0];                     \
        const bool slides = last->window >= 0 && c->window[last->window].over == 1;                \
        for (int64_t i = 0; i < slow->n; i++) {                                                    \
            T *to = (T *)tile + i * fast->n;                                                       \
            for (int64_t j = 0, n; j < fast->n; j += n) {                                          \
                int64_t x;                                                                         \
                n = run_from(c, dims, fast, j);                                                    \
                if (slides)                                                                        \
                    slide_##s(c, slow, i, fast, j, last, n, to + j);                               \
                else if (find(c, slow, i, fast, j, &x))                                            \
                    put_##s(to + j, (const T *)(const void *)c->x + x, last->x, n);                \
                else                                                                               \
                    memset(to + j, 0, (size_t)n * sizeof *to);                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* w [k, n] */                                                                                 \
    static void take_w_##s(const weft_conv *c, const weft_conv_place *from, int64_t k,             \
                           int64_t n_k, int64_t n, int64_t n_n, void *tile)                        \
    {                                                                                              \
        int64_t of_n[TILE_BYTES / MOST_K / sizeof(T)];                                             \
        for (int64_t i = 0; i < n_n; i++) {                                                        \
            weft_conv_place p = {0};                                                               \
            weft_conv_move(&c->n, n + i, &p);                                                      \
            of_n[i] = p.w;                                                                         \
        }                                                                                          \
        for (int64_t j = 0; j < n_k; j++) {                                                        \
            weft_conv_place p = *from;                                                             \
            weft_conv_move(&c->k, k + j, &p);                                                      \
            const T *w = (const T *)(const void *)c->w + p.w;                                      \
            T *to = (T *)tile + j * n_n;                                                           \
            for (int64_t i = 0; i < n_n; i++)                                                      \
                to[i] = w[of_n[i]];                                                                \
        }                                                                                          \
    }
UNFOLD(f32, float)
UNFOLD(f64, double)

typedef struct ways {
    void (*unfold)(const weft_conv *c, const spots *slow, const spots *fast,
                   const weft_conv_dims *dims, void *tile);
    void (*take_w)(const weft_conv *c, const weft_conv_place *from, int64_t k, int64_t n_k,
                   int64_t n, int64_t n_n, void *tile);
} ways;
static const ways all_ways[WEFT_DTYPES] = {
    [WEFT_F32] = {unfold_f32, take_w_f32}, [WEFT_F64] = {unfold_f64, take_w_f64}};

/* ---- products -------------------------------------------------------------------------------- */

/* By strides, when neighbouring dims are one loop. */
static int64_t last_stride(const weft_conv_dims *dims, bool of_w)
{
    if (dims->n == 0) return 1;
    const weft_conv_dim *last = &dims->dim[dims->n - 1];
    return of_w ? last->w : last->y;
}

static weft_matrix matrix_of_w(const weft_conv *c, const weft_conv_place *p, int64_t k, int64_t n_k,
                               int64_t n, int64_t n_n, char *memory)
{
    const size_t bytes = weft_dtype_bytes(c->dtype);
    if (!c->is_w_matrix) {
        all_ways[c->dtype].take_w(c, p, k, n_k, n, n_n, memory);
        return (weft_matrix){memory, n_n, 1};
    }
    const int64_t by_k = last_stride(&c->k, true), by_n = last_stride(&c->n, true);
    weft_conv_place at = *p;
    weft_conv_move(&c->k, k, &at);
    return (weft_matrix){(char *)(uintptr_t)c->w + (size_t)(at.w + n * by_n) * bytes, by_k, by_n};
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements [m, m + n_m) by [n, n + n_n) of y at p. */
static void run_tile(const weft_conv *c, const weft_conv_place *p, int64_t m, int64_t n, int lane)
{
    char *scratch = weft_stream_scratch(c->stream, lane), *tile = scratch + WEFT_GEMM_SCRATCH;
    const int64_t count = weft_conv_count(&c->k);
    const int64_t by_m = last_stride(&c->m, false), by_n = last_stride(&c->n, false);
    const size_t bytes = weft_dtype_bytes(c->dtype);
    weft_product one = {.dtype = c->dtype,
                        .reads = c->dtype,
                        .m = smaller(c->tile_m, weft_conv_count(&c->m) - m),
                        .n = smaller(c->tile_n, weft_conv_count(&c->n) - n),
                        .alpha = 1,
                        .c = {c->y + (size_t)(p->y + m * by_m + n * by_n) * bytes, by_m, by_n},
                        .stream = c->stream,
                        .lane = lane};
    spots of_m, of_k;
    find_spots(&c->m, p, m, one.m, &of_m);
    for (int64_t k = 0; k < count; k += one.k) {
        const int64_t left = c->loop_k - k % c->loop_k;
        one.k = smaller(c->tile_k, left);
        one.beta = k > 0;
        find_spots(&c->k, &(weft_conv_place){0}, k, one.k, &of_k);
        if (c->is_by_k)
            all_ways[c->dtype].unfold(c, &of_m, &of_k, &c->k, tile);
        else
            all_ways[c->dtype].unfold(c, &of_k, &of_m, &c->m, tile);
        one.a = c->is_by_k ? (weft_matrix){tile, one.k, 1} : (weft_matrix){tile, 1, one.m};
        one.b = matrix_of_w(c, p, k, one.k, n, one.n, tile + TILE_BYTES);
        if (weft_gemm_has(c->dtype))
            weft_gemm(&one, scratch);
        else
            weft_multiply(&one);
    }
}

static void run_tiles(void *argument, int64_t begin, int64_t end, int lane)
{
    const weft_conv *c = argument;
    for (int64_t i = begin; i < end; i++) {
        weft_conv_place p = c->first;
        const int64_t of_one = c->n_m * c->n_n;
        weft_conv_move(&c->free, i / of_one, &p);
        run_tile(c, &p, i % of_one / c->n_n * c->tile_m, i % c->n_n * c->tile_n, lane);
    }
}

static void run(const weft_conv *c, weft_stream *stream)
{
    const int64_t work = c->tile_m * c->tile_n * weft_conv_count(&c->k) / 16;
    weft_parallel(stream, weft_conv_count(&c->free) * c->n_m * c->n_n, weft_grain(work), run_tiles,
                  (void *)(uintptr_t)c);
}

/* ---- matrices -------------------------------------------------------------------------------- */

static bool is_one_loop(const weft_conv_dims *dims, int first, int n, bool of_w)
{
    for (int d = first; d + 1 < first + n; d++) {
        const weft_conv_dim *outer = &dims->dim[d], *inner = &dims->dim[d + 1];
        if ((of_w ? outer->w : outer->y) != (of_w ? inner->w : inner->y) * inner->size)
            return false;
    }
    return true;
}

/* Of neighbours that are one loop in y those with most elements; the others are free. */
static void keep_one_loop(weft_conv_dims *dims, weft_conv_dims *free)
{
    int best = 0, n_best = dims->n < 1 ? dims->n : 1;
    int64_t most = 0;
    for (int d = 0; d < dims->n; d++)
        for (int n = 1; d + n <= dims->n; n++) {
            weft_conv_dims some = {.n = n};
            memcpy(some.dim, dims->dim + d, (size_t)n * sizeof *some.dim);
            if (!is_one_loop(dims, d, n, false) || weft_conv_count(&some) <= most) continue;
            most = weft_conv_count(&some), best = d, n_best = n;
        }
    weft_conv_dims kept = {.n = n_best};
    memcpy(kept.dim, dims->dim + best, (size_t)n_best * sizeof *kept.dim);
    for (int d = 0; d < dims->n; d++)
        if (d < best || d >= best + n_best) free->dim[free->n++] = dims->dim[d];
    *dims = kept;
}

static int64_t rounded(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static void cut(weft_conv *c)
{
    const int64_t m = weft_conv_count(&c->m), n = weft_conv_count(&c->n), k = c->loop_k,
                  pieces = (k + MOST_K - 1) / MOST_K;
    const int64_t most_n = TILE_BYTES / MOST_K / (int64_t)weft_dtype_bytes(c->dtype);
    c->tile_n = c->is_w_matrix ? n : smaller(n, most_n / WEFT_GEMM_COLUMNS * WEFT_GEMM_COLUMNS);
    c->n_n = (n + c->tile_n - 1) / c->tile_n;
    c->tile_k = smaller(rounded((k + pieces - 1) / pieces, 8), MOST_K);
    c->tile_m = rounded(m * weft_conv_count(&c->free) * c->n_n / TASKS + 1, WEFT_GEMM_COLUMNS);
    c->tile_m = c->tile_m < LEAST_M ? LEAST_M : smaller(c->tile_m, MOST_M);
    c->n_m = (m + c->tile_m - 1) / c->tile_m;
}

/* Elements of k, from its last on, that are one loop in w. */
static int64_t loop_of_k(const weft_conv_dims *k)
{
    weft_conv_dims last = {.n = 0};
    for (int d = k->n - 1; d >= 0 && is_one_loop(k, d, k->n - d, true); d--) {
        last.n = k->n - d;
        memcpy(last.dim, k->dim + d, (size_t)last.n * sizeof *last.dim);
    }
    return weft_conv_count(&last);
}

/* As many elements of the last dim as are neighbours in x, too. */
static int64_t neighbours(const weft_conv *c, const weft_conv_dims *dims)
{
    const weft_conv_dim *last = &dims->dim[dims->n - 1];
    if (last->window < 0) return last->x == 1 ? last->size : 1;
    const bool is_dense =
        c->window[last->window].over == 1 && last->step * c->window[last->window].stride == 1;
    return is_dense ? last->size : 1;
}

bool weft_conv_plan_tiles(weft_conv *c)
{
    enum { LEAST_SIDE = 4, LEAST_WORK = 4096, LEAST_LOOP = 48 };
    weft_conv t = *c;
    if (all_ways[c->dtype].unfold == NULL || c->stream == NULL) return false;
    keep_one_loop(&t.m, &t.free);
    keep_one_loop(&t.n, &t.free);
    const int64_t m = weft_conv_count(&t.m), n = weft_conv_count(&t.n), k = weft_conv_count(&t.k);
    if (m < LEAST_SIDE || n < 2 || k < LEAST_SIDE || m * n * k < LEAST_WORK) return false;
    if (last_stride(&t.m, false) != 1 && last_stride(&t.n, false) != 1) return false;
    const int64_t by_k = last_stride(&t.k, true), by_n = last_stride(&t.n, true);
    t.loop_k = loop_of_k(&t.k);
    t.is_w_matrix = t.loop_k >= smaller(k, LEAST_LOOP) && is_one_loop(&t.n, 0, t.n.n, true) &&
                    weft_matrix_fits(t.loop_k, n, by_k, by_n);
    if (!t.is_w_matrix) t.loop_k = k;
    t.is_by_k = neighbours(&t, &t.k) >= neighbours(&t, &t.m);
    cut(&t);
    *c = t;
    c->run = run;
    return true;
}
