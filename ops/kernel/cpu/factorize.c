/* factorize.c: Cholesky's and Gauss's factors of one matrix, and substitution; see factorize.h.
 *
 * LAPACK has the first two, where an OpenBLAS was built with it, by columns, and one matrix a call. BLAS is always there; with
 * it they are one block after the other: the block on the diagonal plainly, what is beside it by substitution, the rest by a
 * product.  source  Golub and van Loan, Matrix Computations, 3.2 and 4.2
 */
#include "cpu/factorize.h"

#include <cblas.h>
#include <math.h>

enum { STEP = 48 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* T: of the elements. B: as BLAS calls it. SQRT of one. */
#define FACTORIZE(T, B, SQRT)                                                                      \
    /* The dot products of rows of l are rounded once, as they are added up in double. */          \
    static bool positive_block_##T(int64_t k, int64_t n, T *a, int64_t lead)                       \
    {                                                                                              \
        for (int64_t i = 0; i < k; i++) {                                                          \
            for (int64_t j = 0; j <= i; j++) {                                                     \
                double sum = a[i * lead + j];                                                      \
                for (int64_t e = 0; e < j; e++)                                                    \
                    sum -= (double)a[i * lead + e] * (double)a[j * lead + e];                      \
                if (i == j && !(sum > 0)) return false;                                            \
                a[i * lead + j] = i == j ? SQRT((T)sum) : (T)(sum / (double)a[j * lead + j]);      \
            }                                                                                      \
            for (int64_t j = i + 1; j < n; j++)                                                    \
                a[i * lead + j] = 0;                                                               \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static bool positive_##T(int64_t n, void *data)                                                \
    {                                                                                              \
        const int lead = (int)n;                                                                   \
        for (int64_t at = 0; at < n; at += STEP) {                                                 \
            const int k = (int)least(STEP, n - at), below = (int)(n - at) - k;                     \
            T *const corner = (T *)data + at * n + at, *const panel = corner + k * n;              \
            if (!positive_block_##T(k, n - at, corner, n)) return false;                           \
            if (below == 0) continue;                                                              \
            cblas_##B##trsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,       \
                            below, k, 1, corner, lead, panel, lead);                               \
            cblas_##B##syrk(CblasRowMajor, CblasLower, CblasNoTrans, below, k, -1, panel, lead, 1, \
                            panel + k, lead);                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void swap_##T(int64_t n, T *a, T *b)                                                    \
    {                                                                                              \
        for (int64_t i = 0; i < n && a != b; i++) {                                                \
            const T kept = a[i];                                                                   \
            a[i] = b[i], b[i] = kept;                                                              \
        }                                                                                          \
    }                                                                                              \
    /* Columns [at, at + k) of rows [at, n); whole rows are swapped. */                            \
    static bool any_panel_##T(int64_t n, T *a, int64_t at, int64_t k, int32_t *swaps)              \
    {                                                                                              \
        for (int64_t c = at; c < at + k; c++) {                                                    \
            int64_t top = c;                                                                       \
            for (int64_t i = c + 1; i < n; i++)                                                    \
                if (fabs((double)a[i * n + c]) > fabs((double)a[top * n + c])) top = i;            \
            swaps[c] = (int32_t)top;                                                               \
            swap_##T(n, a + c * n, a + top * n);                                                   \
            const T pivot = a[c * n + c];                                                          \
            if (pivot == 0 || isnan(pivot)) return false;                                          \
            for (int64_t i = c + 1; i < n; i++) {                                                  \
                const T by = a[i * n + c] /= pivot;                                                \
                for (int64_t j = c + 1; j < at + k; j++)                                           \
                    a[i * n + j] -= by * a[c * n + j];                                             \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static bool any_##T(int64_t n, void *data, int32_t *swaps)                                     \
    {                                                                                              \
        const int lead = (int)n;                                                                   \
        for (int64_t at = 0; at < n; at += STEP) {                                                 \
            const int k = (int)least(STEP, n - at), rest = (int)(n - at) - k;                      \
            T *const corner = (T *)data + at * n + at, *const right = corner + k,                  \
                     *const below = corner + k * n;                                                \
            if (!any_panel_##T(n, data, at, k, swaps)) return false;                               \
            if (rest == 0) continue;                                                               \
            cblas_##B##trsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, k,      \
                            rest, 1, corner, lead, right, lead);                                   \
            cblas_##B##gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rest, rest, k, -1, below,   \
                            lead, right, lead, 1, below + k, lead);                                \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void substitute_##T(const weft_triangle_of *t, int64_t m, int64_t leading, void *x)     \
    {                                                                                              \
        cblas_##B##trsm(CblasRowMajor, CblasLeft, t->is_upper ? CblasUpper : CblasLower,           \
                        CblasNoTrans, t->has_ones ? CblasUnit : CblasNonUnit, (int)t->n, (int)m,   \
                        1, t->data, (int)t->n, x, (int)leading);                                   \
    }
FACTORIZE(float, s, sqrtf)
FACTORIZE(double, d, sqrt)

const weft_factorize_positive weft_factorize_positives[WEFT_DTYPES] = {
    [WEFT_F32] = positive_float, [WEFT_F64] = positive_double};
const weft_factorize_any weft_factorize_anys[WEFT_DTYPES] = {
    [WEFT_F32] = any_float, [WEFT_F64] = any_double};
const weft_substitute weft_substitutes[WEFT_DTYPES] = {
    [WEFT_F32] = substitute_float, [WEFT_F64] = substitute_double};
