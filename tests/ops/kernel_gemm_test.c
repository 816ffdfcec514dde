/* Our own matrix product against three nested loops: every edge of its tiles, strides, and the same bits however it is
 * cut. */
#include "cpu/gemm.h"
#include "kernel_views.h"

static void *scratch;

/* A matrix of its own memory, exactly so large. */
typedef struct matrix {
    weft_matrix at;
    weft_dtype dtype;
    int64_t rows, columns;
} matrix;

static double get(const matrix *x, int64_t i, int64_t j)
{
    const int64_t at = i * x->at.row + j * x->at.column;
    return x->dtype == WEFT_F32 ? (double)((const float *)x->at.data)[at]
                                : ((const double *)x->at.data)[at];
}

static void set(matrix *x, int64_t i, int64_t j, double value)
{
    const int64_t at = i * x->at.row + j * x->at.column;
    if (x->dtype == WEFT_F32)
        ((float *)x->at.data)[at] = (float)value;
    else
        ((double *)x->at.data)[at] = value;
}

static matrix matrix_of(weft_dtype dtype, int64_t rows, int64_t columns, bool is_turned)
{
    matrix x = {.dtype = dtype, .rows = rows, .columns = columns};
    x.at.row = is_turned ? 1 : columns, x.at.column = is_turned ? rows : 1;
    x.at.data = malloc((size_t)(rows * columns) * weft_dtype_bytes(dtype));
    if (x.at.data == NULL) exit(2);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            set(&x, i, j, random_unit());
    return x;
}

static weft_product product_of(const matrix *a, const matrix *b, const matrix *c)
{
    return (weft_product){.dtype = a->dtype,
                          .m = c->rows,
                          .n = c->columns,
                          .k = a->columns,
                          .alpha = 1,
                          .a = a->at,
                          .b = b->at,
                          .c = c->at};
}

static void check_product(weft_dtype dtype, int64_t m, int64_t n, int64_t k, int turned)
{
    matrix a = matrix_of(dtype, m, k, turned & 1), b = matrix_of(dtype, k, n, turned & 2),
           c = matrix_of(dtype, m, n, turned & 4), before = matrix_of(dtype, m, n, turned & 4);
    weft_product p = product_of(&a, &b, &c);
    p.alpha = turned & 8 ? -0.75 : 1, p.beta = turned & 16 ? 1 : 0;
    for (int64_t i = 0; i < m; i++) /* with beta 0 it is not read */
        for (int64_t j = 0; j < n; j++)
            set(&c, i, j, p.beta == 0 ? NAN : get(&before, i, j));
    weft_gemm(&p, scratch);
    double worst = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += get(&a, i, l) * get(&b, l, j);
            sum = p.alpha * sum + (p.beta == 0 ? 0 : get(&before, i, j));
            worst = fmax(worst, fabs(sum - get(&c, i, j)));
        }
    if (!CHECK(worst <= (dtype == WEFT_F32 ? 2e-5 : 1e-13) * (double)(k + 1)))
        printf("%lld x %lld x %lld, form %d: off by %g\n", (long long)m, (long long)n, (long long)k,
               turned, worst);
    free(a.at.data), free(b.at.data), free(c.at.data), free(before.at.data);
}

static void test_every_edge_of_a_tile(void)
{
    for (int dtype = 0; dtype < WEFT_I32; dtype++)
        for (int64_t m = 1; m <= 10; m++)
            for (int64_t n = 1; n <= 100; n += n < 20 ? 1 : 7)
                check_product((weft_dtype)dtype, m, n, 1 + random_below(40), random_below(32));
}

static void test_depths_and_blocks(void)
{
    const int64_t sizes[] = {1, 7, 95, 96, 97, 191, 192, 193, 209, 385, 1009, 1030};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < weft_test_cases(150); i++)
        check_product((weft_dtype)(i % 2), sizes[random_below(i % 3 ? 8 : N)],
                      sizes[random_below(i % 3 ? N : 8)], sizes[random_below(N)], random_below(32));
}

static void test_the_same_bits_however_it_is_cut(void)
{
    for (int i = 0; i < weft_test_cases(120); i++) {
        /* Whole vectors, of which a few panels take rows as they lie, or any columns. */
        const weft_dtype dtype = (weft_dtype)(i % 2);
        const int64_t m = 1 + random_below(300), k = 1 + random_below(500),
                      n = i % 3 ? 1 + random_below(300) : 16 * (1 + random_below(10));
        matrix a = matrix_of(dtype, m, k, random_below(2)), b = matrix_of(dtype, k, n, i & 2),
               whole = matrix_of(dtype, m, n, false), cut = matrix_of(dtype, m, n, false);
        weft_product p = product_of(&a, &b, &whole);
        p.alpha = 0.3;
        weft_gemm(&p, scratch);
        p.c = cut.at;
        const int64_t bytes = (int64_t)weft_dtype_bytes(dtype);
        const int64_t at_m = random_below((int)m + 1), at_n = random_below((int)n + 1);
        for (int quarter = 0; quarter < 4; quarter++) {
            weft_product q = p;
            const int64_t first_m = quarter & 1 ? at_m : 0, first_n = quarter & 2 ? at_n : 0;
            q.m = quarter & 1 ? m - at_m : at_m, q.n = quarter & 2 ? n - at_n : at_n;
            q.a.data = (char *)p.a.data + first_m * p.a.row * bytes;
            q.b.data = (char *)p.b.data + first_n * p.b.column * bytes;
            q.c.data = (char *)p.c.data + (first_m * p.c.row + first_n) * bytes;
            if (q.m > 0 && q.n > 0) weft_gemm(&q, scratch);
        }
        CHECK(memcmp(whole.at.data, cut.at.data, (size_t)(m * n * bytes)) == 0);
        free(a.at.data), free(b.at.data), free(whole.at.data), free(cut.at.data);
    }
}

int main(void)
{
    if (!weft_gemm_has(WEFT_F32)) {
        weft_test_skip("this processor has no AVX-512");
        return weft_test_report();
    }
    scratch = aligned_alloc(64, WEFT_LANE_SCRATCH);
    if (scratch == NULL) return 2;
    RUN(test_every_edge_of_a_tile);
    RUN(test_depths_and_blocks);
    RUN(test_the_same_bits_however_it_is_cut);
    free(scratch);
    return weft_test_report();
}
