/* gemv.c: a vector times a matrix, where nothing is read twice but the vector: it goes as fast as memory brings the matrix.
 *
 * A chunk of the results has its sums side by side in the first-level cache. Where results are neighbours in the
 * matrix, several rows of it at a time are added to them. Where summed elements are neighbours, several results at a
 * time are dots. Either way there are several short streams, and the processor does not prefetch enough by itself:
 * the next rows are prefetched to L2. bf16 and f16 are widened as they are read, and added up in f32; what is stored as f32 may
 * be rounded to bf16 as it is read.
 */
#include "cpu/gemv.h"

#include <string.h>

#include "weft/extend/target_clones.h"
#include "weft/extend/half.h"

enum { CHUNK = 2048, DEPTH = 2048, ROWS = 8, DOTS = 4, LINE = 16 /* elements */ };

/* A part of the matrix, and of the vector in what is computed in. */
typedef struct part {
    int64_t n, k, stride; /* elements from one row to the next */
    const void *w, *x;
    void *sum; /* [n], added to */
} part;

static inline void ask(const void *memory)
{
    __builtin_prefetch(memory, 0, 2);
}

/* Of ROWS rows of w, from w and from u = w + 4 stride, what they add to sum [i]. */
#define OF_ROWS(of, i)                                                                             \
    ((x0 * of(w[i]) + x1 * of(w[i + stride])) +                                                    \
     (x2 * of(w[i + 2 * stride]) + x3 * of(w[i + 3 * stride])) +                                   \
     ((x4 * of(u[i]) + x5 * of(u[i + stride])) +                                                   \
      (x6 * of(u[i + 2 * stride]) + x7 * of(u[i + 3 * stride]))))

/* To dots [.][j], of DOTS rows, what element l of each adds. */
#define ADD_DOTS(of, l, j)                                                                         \
    dots[0][j] += x[l] * of(w[0][l]), dots[1][j] += x[l] * of(w[1][l]),                            \
        dots[2][j] += x[l] * of(w[2][l]), dots[3][j] += x[l] * of(w[3][l]);

/* Of the vector, where it is stored otherwise than the matrix; it is read once for many results. */
static double element_of(const weft_vector_product *p, int64_t i)
{
    if (p->rounds_x) return (double)weft_bf16_round(((const float *)(const void *)p->x)[i]);
    return weft_dtype_get(p->reads, p->x, i);
}

#define GEMV(s, T, R, of)                                                                          \
    /* w [k, n] */                                                                                 \
    WEFT_TARGET_CLONES static void add_rows_##s(const part *p)                                     \
    {                                                                                              \
        const int64_t n = p->n, stride = p->stride;                                                \
        const R *x = p->x;                                                                         \
        const T *w = p->w;                                                                         \
        R *sum = p->sum;                                                                           \
        int64_t k = p->k, i;                                                                       \
        for (; k >= ROWS; k -= ROWS, x += ROWS, w += ROWS * stride) {                              \
            const R x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];                                    \
            const R x4 = x[4], x5 = x[5], x6 = x[6], x7 = x[7];                                    \
            const T *u = w + 4 * stride;                                                           \
            for (i = 0; i + LINE <= n; i += LINE) {                                                \
                for (int r = 0; r < ROWS; r++)                                                     \
                    ask(w + (ROWS + r) * stride + i);                                              \
                WEFT_IVDEP                                                                         \
                for (int64_t j = i; j < i + LINE; j++)                                             \
                    sum[j] += OF_ROWS(of, j);                                                      \
            }                                                                                      \
            for (; i < n; i++)                                                                     \
                sum[i] += OF_ROWS(of, i);                                                          \
        }                                                                                          \
        for (; k > 0; k--, x++, w += stride) {                                                     \
            const R x0 = x[0];                                                                     \
            WEFT_IVDEP                                                                             \
            for (i = 0; i < n; i++)                                                                \
                sum[i] += x0 * of(w[i]);                                                           \
        }                                                                                          \
    }                                                                                              \
    /* w [n, k]; of fewer than DOTS results the last one is done again */                          \
    WEFT_TARGET_CLONES static void add_dots_##s(const part *p)                                     \
    {                                                                                              \
        const int64_t k = p->k, last = p->n - 1;                                                   \
        const R *x = p->x;                                                                         \
        R *sum = p->sum;                                                                           \
        for (int64_t i = 0; i < p->n; i += DOTS) {                                                 \
            const T *w[DOTS];                                                                      \
            R dots[DOTS][LINE] = {{0}};                                                            \
            int64_t l;                                                                             \
            for (int d = 0; d < DOTS; d++)                                                         \
                w[d] = (const T *)p->w + (i + d < last ? i + d : last) * p->stride;                \
            for (l = 0; l + LINE <= k; l += LINE) {                                                \
                for (int d = 0; d < DOTS; d++)                                                     \
                    ask(w[d] + DOTS * p->stride + l);                                              \
                for (int j = 0; j < LINE; j++)                                                     \
                    ADD_DOTS(of, l + j, j)                                                         \
            }                                                                                      \
            for (int j = 0; l + j < k; j++)                                                        \
                ADD_DOTS(of, l + j, j)                                                             \
            for (int d = 0; d < DOTS && i + d <= last; d++)                                        \
                for (int j = 0; j < LINE; j++)                                                     \
                    sum[i + d] += dots[d][j];                                                      \
        }                                                                                          \
    }                                                                                              \
    static void add_chunk_##s(const weft_vector_product *p, int64_t first, int64_t n)              \
    {                                                                                              \
        const bool is_level = p->along_n == 1;                                                     \
        R sum[CHUNK], x[DEPTH], *y = (R *)(void *)p->y + first * p->y_step;                        \
        const bool is_mixed = p->rounds_x != p->rounds_w;                                          \
        const T *from = (const T *)(const void *)p->x, *w = (const T *)(const void *)p->w;         \
        memset(sum, 0, (size_t)n * sizeof *sum);                                                   \
        for (int64_t l = 0; l < p->k; l += DEPTH) {                                                \
            const int64_t k = p->k - l < DEPTH ? p->k - l : DEPTH;                                 \
            for (int64_t i = 0; i < k; i++)                                                        \
                x[i] = is_mixed ? (R)element_of(p, (l + i) * p->x_step)                            \
                                : of(from[(l + i) * p->x_step]);                                   \
            const part all = {.n = n,                                                              \
                              .k = k,                                                              \
                              .stride = is_level ? p->along_k : p->along_n,                        \
                              .w = w + first * p->along_n + l * p->along_k,                        \
                              .x = x,                                                              \
                              .sum = sum};                                                         \
            (is_level ? add_rows_##s : add_dots_##s)(&all);                                        \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * p->y_step] = p->adds ? y[i * p->y_step] + sum[i] : sum[i];                       \
    }
#define SAME(x) (x)
GEMV(f32, float, float, SAME)
GEMV(f64, double, double, SAME)
GEMV(bf16, uint16_t, float, weft_f32_of_bf16)
GEMV(f16, uint16_t, float, weft_f32_of_f16)
GEMV(rounded, float, float, weft_bf16_round)

typedef void (*chunk)(const weft_vector_product *p, int64_t first, int64_t n);
static const chunk chunks[WEFT_DTYPES] = {[WEFT_F32] = add_chunk_f32,
                                          [WEFT_F64] = add_chunk_f64,
                                          [WEFT_BF16] = add_chunk_bf16,
                                          [WEFT_F16] = add_chunk_f16};

void weft_gemv(const weft_vector_product *p, int64_t begin, int64_t end)
{
    const chunk add = p->rounds_w ? add_chunk_rounded : chunks[p->reads];
    for (int64_t i = begin; i < end; i += CHUNK)
        add(p, i, end - i < CHUNK ? end - i : CHUNK);
}
