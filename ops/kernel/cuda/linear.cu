/* linear: cholesky, triangular_solve and solve of many small matrices: a block for each matrix, column by column, or a thread for each
 * column of a substitution. Where there is no answer it is NaNs, as on the host.
 *
 * source  Golub and van Loan, Matrix Computations, 3.1, 3.4, 4.2
 */
#include "mesh/cuda/kernel_source.h"

#include "linear.h"

#define LINEAR(T, suffix, SQRT, ABS)                                                               \
    KERNEL(cholesky_##suffix, cuda_squares)                                                        \
    {                                                                                              \
        const int64_t n = work.n;                                                                  \
        for (int64_t m = BLOCK; m < work.batch; m += BLOCKS) {                                     \
            const T *a = (const T *)GLOBAL(work.a) + m * n * n;                                    \
            T *l = (T *)GLOBAL(work.x) + m * n * n;                                                \
            int is_positive = 1;                                                                   \
            for (int64_t k = IN_BLOCK; k < n * n; k += BLOCK_THREADS)                              \
                l[k] = k % n <= k / n ? a[k] : (T)0;                                               \
            for (int64_t c = 0; c < n && is_positive; c++) {                                       \
                SYNC();                                                                            \
                const T pivot = l[c * n + c], root = SQRT(pivot);                                  \
                is_positive = pivot > 0;                                                           \
                SYNC();                                                                            \
                for (int64_t i = c + IN_BLOCK; i < n && is_positive; i += BLOCK_THREADS)           \
                    l[i * n + c] = i == c ? root : l[i * n + c] / root;                            \
                SYNC();                                                                            \
                const int64_t left = n - c - 1;                                                    \
                for (int64_t k = IN_BLOCK; k < left * left && is_positive; k += BLOCK_THREADS) {   \
                    const int64_t i = c + 1 + k / left, j = c + 1 + k % left;                      \
                    if (j <= i) l[i * n + j] -= l[i * n + c] * l[j * n + c];                       \
                }                                                                                  \
            }                                                                                      \
            SYNC();                                                                                \
            for (int64_t k = IN_BLOCK; k < n * n && !is_positive; k += BLOCK_THREADS)              \
                l[k] = k % n <= k / n ? (T)NAN : (T)0;                                             \
            SYNC();                                                                                \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* x [n] becomes the y of which t y = x; elements of x are `step` apart. */                    \
    DEVICE void substitute_##suffix(const T *t, int64_t n, int is_upper, T *x, int64_t step)       \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const int64_t i = is_upper ? n - 1 - k : k;                                            \
            const int64_t begin = is_upper ? i + 1 : 0, end = is_upper ? n : i;                    \
            T sum = x[i * step];                                                                   \
            for (int64_t j = begin; j < end; j++)                                                  \
                sum -= t[i * n + j] * x[j * step];                                                 \
            x[i * step] = sum / t[i * n + i];                                                      \
        }                                                                                          \
    }                                                                                              \
    KERNEL(triangular_solve_##suffix, cuda_squares)                                                \
    {                                                                                              \
        const int64_t n = work.n, columns = work.columns;                                          \
        for (int64_t k = THREAD; k < work.batch * columns; k += THREADS) {                         \
            const int64_t m = k / columns, at = m * n * columns + k % columns;                     \
            const T *t = (const T *)GLOBAL(work.a) + m * n * n;                                    \
            const T *b = (const T *)GLOBAL(work.b) + at;                                           \
            T *x = (T *)GLOBAL(work.x) + at;                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i * columns] = b[i * columns];                                                   \
            substitute_##suffix(t, n, work.is_upper, x, columns);                                  \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* The first of the rows from c on whose number in column c is the largest; all threads call it. */ \
    DEVICE int64_t pivot_row_##suffix(const T *a, int64_t n, int64_t c)                            \
    {                                                                                              \
        SHARED T most[KERNEL_THREADS];                                                             \
        SHARED int64_t row[KERNEL_THREADS];                                                        \
        most[IN_BLOCK] = -1, row[IN_BLOCK] = c;                                                    \
        for (int64_t i = c + IN_BLOCK; i < n; i += BLOCK_THREADS) {                                \
            const T size = ABS(a[i * n + c]);                                                      \
            if (size > most[IN_BLOCK]) most[IN_BLOCK] = size, row[IN_BLOCK] = i;                   \
        }                                                                                          \
        SYNC();                                                                                    \
        int best = 0;                                                                              \
        for (int k = 1; k < BLOCK_THREADS; k++)                                                    \
            if (most[k] > most[best] || (most[k] == most[best] && row[k] < row[best])) best = k;   \
        const int64_t found = row[best];                                                           \
        SYNC();                                                                                    \
        return found;                                                                              \
    }                                                                                              \
    DEVICE void swap_##suffix(T *x, int64_t a, int64_t b, int64_t columns)                         \
    {                                                                                              \
        for (int64_t j = IN_BLOCK; j < columns && a != b; j += BLOCK_THREADS) {                    \
            const T kept = x[a * columns + j];                                                     \
            x[a * columns + j] = x[b * columns + j], x[b * columns + j] = kept;                    \
        }                                                                                          \
    }                                                                                              \
    KERNEL(solve_##suffix, cuda_squares)                                                           \
    {                                                                                              \
        const int64_t n = work.n, columns = work.columns;                                          \
        for (int64_t m = BLOCK; m < work.batch; m += BLOCKS) {                                     \
            const T *from = (const T *)GLOBAL(work.a) + m * n * n;                                 \
            const T *b = (const T *)GLOBAL(work.b) + m * n * columns;                              \
            T *a = (T *)GLOBAL(work.work) + m * n * n, *x = (T *)GLOBAL(work.x) + m * n * columns; \
            int is_regular = 1;                                                                    \
            for (int64_t k = IN_BLOCK; k < n * n; k += BLOCK_THREADS)                              \
                a[k] = from[k];                                                                    \
            for (int64_t k = IN_BLOCK; k < n * columns; k += BLOCK_THREADS)                        \
                x[k] = b[k];                                                                       \
            for (int64_t c = 0; c < n && is_regular; c++) {                                        \
                SYNC();                                                                            \
                const int64_t top = pivot_row_##suffix(a, n, c);                                   \
                swap_##suffix(a, c, top, n);                                                       \
                swap_##suffix(x, c, top, columns);                                                 \
                SYNC();                                                                            \
                const T pivot = a[c * n + c];                                                      \
                is_regular = pivot != 0 && pivot == pivot;                                         \
                const int64_t left = n - c - 1, width = left + columns;                            \
                for (int64_t k = IN_BLOCK; k < left * width && is_regular; k += BLOCK_THREADS) {   \
                    const int64_t i = c + 1 + k / width, j = k % width;                            \
                    const T by = a[i * n + c] / pivot;                                             \
                    if (j < left)                                                                  \
                        a[i * n + c + 1 + j] -= by * a[c * n + c + 1 + j];                         \
                    else                                                                           \
                        x[i * columns + j - left] -= by * x[c * columns + j - left];               \
                }                                                                                  \
            }                                                                                      \
            SYNC();                                                                                \
            for (int64_t j = IN_BLOCK; j < columns && is_regular; j += BLOCK_THREADS)              \
                substitute_##suffix(a, n, 1, x + j, columns);                                      \
            for (int64_t k = IN_BLOCK; k < n * columns && !is_regular; k += BLOCK_THREADS)         \
                x[k] = (T)NAN;                                                                     \
            SYNC();                                                                                \
        }                                                                                          \
    }
LINEAR(float, f32, sqrtf, fabsf)
LINEAR(double, f64, sqrt, fabs)
