/* matrix.c: from strides to the BLAS call that fits: dot, gemv or gemm, with transposes; see
 * matrix.h. */
#include "cpu/matrix.h"

#include <cblas.h>
#include <limits.h>

/* A matrix as row-major BLAS wants it: [rows, columns] with unit columns, or its transpose. */
typedef struct operand {
    CBLAS_TRANSPOSE trans;
    int leading;
} operand;

static int larger(int64_t a, int64_t b)
{
    return (int)(a > b ? a : b);
}

bool weft_matrix_fits(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    if (rows > INT_MAX || columns > INT_MAX || row > INT_MAX || column > INT_MAX) return false;
    return rows == 1 || columns == 1 || row == 1 || column == 1;
}

static operand as_operand(const weft_matrix *x, int64_t rows, int64_t columns)
{
    const bool plain = columns == 1 ? rows > 1 || x->row != 1 : x->column == 1;
    if (plain) return (operand){CblasNoTrans, rows == 1 ? (int)columns : larger(x->row, columns)};
    return (operand){CblasTrans, columns == 1 ? (int)rows : larger(x->column, rows)};
}

static void dot(const weft_product *p)
{
    const int k = (int)p->k, step_a = (int)p->a.column, step_b = (int)p->b.row;
    if (p->dtype == WEFT_F32) {
        float *c = p->c.data;
        const float sum = (float)p->alpha * cblas_sdot(k, p->a.data, step_a, p->b.data, step_b);
        *c = p->beta == 0 ? sum : (float)p->beta * *c + sum;
    } else {
        double *c = p->c.data;
        const double sum = p->alpha * cblas_ddot(k, p->a.data, step_a, p->b.data, step_b);
        *c = p->beta == 0 ? sum : p->beta * *c + sum;
    }
}

/* A vector and where its elements are. */
typedef struct vector {
    void *data;
    int64_t step;
} vector;

/* y [n] = alpha X [n, k] x [k] + beta y. BLAS may multiply y by a beta of 0, so y is cleared here.
 */
static void gemv(const weft_product *p, const weft_matrix *matrix, int64_t n, vector x, vector y)
{
    const operand o = as_operand(matrix, n, p->k);
    const bool trans = o.trans == CblasTrans;
    const int rows = (int)(trans ? p->k : n), columns = (int)(trans ? n : p->k);
    const double beta = p->beta == 0 ? 1 : p->beta;
    if (p->dtype == WEFT_F32) {
        for (int64_t i = 0; p->beta == 0 && i < n; i++)
            ((float *)y.data)[i * y.step] = 0;
        cblas_sgemv(CblasRowMajor, o.trans, rows, columns, (float)p->alpha, matrix->data, o.leading,
                    x.data, (int)x.step, (float)beta, y.data, (int)y.step);
    } else {
        for (int64_t i = 0; p->beta == 0 && i < n; i++)
            ((double *)y.data)[i * y.step] = 0;
        cblas_dgemv(CblasRowMajor, o.trans, rows, columns, p->alpha, matrix->data, o.leading,
                    x.data, (int)x.step, beta, y.data, (int)y.step);
    }
}

static void gemm(const weft_product *p)
{
    const operand a = as_operand(&p->a, p->m, p->k), b = as_operand(&p->b, p->k, p->n);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, leading = larger(p->c.row, n);
    if (p->dtype == WEFT_F32)
        cblas_sgemm(CblasRowMajor, a.trans, b.trans, m, n, k, (float)p->alpha, p->a.data, a.leading,
                    p->b.data, b.leading, (float)p->beta, p->c.data, leading);
    else
        cblas_dgemm(CblasRowMajor, a.trans, b.trans, m, n, k, p->alpha, p->a.data, a.leading,
                    p->b.data, b.leading, p->beta, p->c.data, leading);
}

static weft_matrix transposed(weft_matrix x)
{
    return (weft_matrix){x.data, x.column, x.row};
}

void weft_multiply(const weft_product *p)
{
    if (p->m == 1 && p->n == 1) {
        dot(p);
    } else if (p->n == 1) {
        gemv(p, &p->a, p->m, (vector){p->b.data, p->b.row}, (vector){p->c.data, p->c.row});
    } else if (p->m == 1) {
        const weft_matrix b = transposed(p->b);
        gemv(p, &b, p->n, (vector){p->a.data, p->a.column}, (vector){p->c.data, p->c.column});
    } else if (p->c.column == 1) {
        gemm(p);
    } else { /* c^T = b^T a^T */
        weft_product t = *p;
        t.m = p->n, t.n = p->m;
        t.a = transposed(p->b), t.b = transposed(p->a), t.c = transposed(p->c);
        gemm(&t);
    }
}
