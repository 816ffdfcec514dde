/* Products of bf16 against three nested loops in f64: every edge of their tiles, odd depths, strides, results of f32 and of
 * bf16, numbers that are none, and the same bits however they are cut.
 *
 * A product of two bf16 is exact in f32. A sum in f32 is off by a few ulps of the sum of magnitudes. A result of bf16 is the
 * f32 rounded, to the bit. Denormals count as themselves or as 0.
 */
#include "cpu/gemm.h"
#include "kernel_views.h"
#include "weft/extend/half.h"

static void *scratch;

typedef struct matrix {
    weft_matrix at;
    int64_t rows, columns;
} matrix;

/* Of its own memory, exactly so large. */
static matrix matrix_of(size_t bytes, int64_t rows, int64_t columns, bool is_turned)
{
    matrix x = {.rows = rows, .columns = columns};
    x.at.row = is_turned ? 1 : columns, x.at.column = is_turned ? rows : 1;
    x.at.data = malloc((size_t)(rows * columns) * bytes);
    if (x.at.data == NULL) exit(2);
    memset(x.at.data, 0xFF, (size_t)(rows * columns) * bytes); /* NaNs */
    return x;
}

static matrix random_matrix(int64_t rows, int64_t columns, bool is_turned)
{
    matrix x = matrix_of(sizeof(uint16_t), rows, columns, is_turned);
    for (int64_t i = 0; i < rows * columns; i++)
        ((uint16_t *)x.at.data)[i] = weft_bf16_of_f32((float)random_unit());
    return x;
}

static uint16_t *half_at(const matrix *x, int64_t i, int64_t j)
{
    return (uint16_t *)x->at.data + i * x->at.row + j * x->at.column;
}

static double get(const matrix *x, int64_t i, int64_t j)
{
    return (double)weft_f32_of_bf16(*half_at(x, i, j));
}

static float *sum_at(const matrix *x, int64_t i, int64_t j)
{
    return (float *)x->at.data + i * x->at.row + j * x->at.column;
}

static weft_product product_of(const matrix *a, const matrix *b, const matrix *c)
{
    return (weft_product){.dtype = WEFT_F32,
                          .reads = WEFT_BF16,
                          .m = c->rows,
                          .n = c->columns,
                          .k = a->columns,
                          .alpha = 1,
                          .a = a->at,
                          .b = b->at,
                          .c = c->at};
}

/* The most by which an element of c is off, in parts of what is summed up in magnitude. */
static double distance(const weft_product *p, const matrix *a, const matrix *b, const matrix *c,
                       const matrix *before)
{
    double worst = 0;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            double sum = p->beta == 0 ? 0 : (double)*sum_at(before, i, j), magnitude = fabs(sum);
            for (int64_t l = 0; l < a->columns; l++) {
                const double one = p->alpha * get(a, i, l) * get(b, l, j);
                sum += one, magnitude += fabs(one);
            }
            const double off = fabs(sum - (double)*sum_at(c, i, j)) / (magnitude + 1e-30);
            if (!(off <= worst)) worst = off;
        }
    return worst;
}

/* What c is, as bf16, without another word to c where all is one depth, as so much always is. */
enum { ONE_DEPTH = 256 };
static void check_narrow(weft_product p, const matrix *c, const matrix *before, int turned)
{
    matrix narrow = matrix_of(sizeof(uint16_t), c->rows, c->columns, turned & 4),
           spare = matrix_of(sizeof(float), c->rows, c->columns, turned & 4);
    int64_t n_wrong = 0;
    memcpy(spare.at.data, before->at.data, (size_t)(c->rows * c->columns) * sizeof(float));
    p.c = spare.at, p.narrow = narrow.at;
    weft_gemm(&p, scratch);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++)
            n_wrong += *half_at(&narrow, i, j) != weft_bf16_of_f32(*sum_at(c, i, j));
    CHECK_EQ_INT(n_wrong, 0);
    const size_t bytes = (size_t)(c->rows * c->columns) * sizeof(float);
    if (p.k <= ONE_DEPTH) CHECK(memcmp(spare.at.data, before->at.data, bytes) == 0);
    free(narrow.at.data), free(spare.at.data);
}

static void check_product(int64_t m, int64_t n, int64_t k, int turned)
{
    matrix a = random_matrix(m, k, turned & 1), b = random_matrix(k, n, turned & 2),
           c = matrix_of(sizeof(float), m, n, turned & 4),
           before = matrix_of(sizeof(float), m, n, turned & 4);
    weft_product p = product_of(&a, &b, &c);
    p.alpha = turned & 8 ? -0.75 : 1, p.beta = turned & 16 ? 1 : 0;
    for (int64_t i = 0; i < m * n && p.beta != 0; i++)
        ((float *)before.at.data)[i] = (float)random_unit();
    memcpy(c.at.data, before.at.data, (size_t)(m * n) * sizeof(float));
    weft_gemm(&p, scratch);
    const double worst = distance(&p, &a, &b, &c, &before);
    if (!CHECK(worst <= 4e-6))
        printf("%lld x %lld x %lld, form %d: off by %g\n", (long long)m, (long long)n, (long long)k,
               turned, worst);
    check_narrow(p, &c, &before, turned);
    free(a.at.data), free(b.at.data), free(c.at.data), free(before.at.data);
}

static void test_every_edge_of_a_tile(void)
{
    for (int64_t m = 1; m <= 10; m++)
        for (int64_t n = 1; n <= 100; n += n < 20 ? 1 : 7)
            check_product(m, n, 1 + random_below(40), random_below(32));
}

static void test_depths_and_blocks(void)
{
    const int64_t sizes[] = {1, 7, 48, 63, 96, 97, 193, 767, 768, 769, 1009, 1601};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < weft_test_cases(100); i++)
        check_product(sizes[random_below(i % 3 ? 7 : N)], sizes[random_below(i % 3 ? N : 7)],
                      sizes[random_below(N)], random_below(32));
}

static void test_the_same_bits_however_it_is_cut(void)
{
    for (int i = 0; i < weft_test_cases(100); i++) {
        const int64_t m = 1 + random_below(200), k = 1 + random_below(1000),
                      n = i % 3 ? 1 + random_below(200) : 16 * (1 + random_below(10));
        matrix a = random_matrix(m, k, random_below(2)), b = random_matrix(k, n, i & 2),
               whole = matrix_of(sizeof(float), m, n, false),
               cut = matrix_of(sizeof(float), m, n, false);
        weft_product p = product_of(&a, &b, &whole);
        p.alpha = 0.3;
        weft_gemm(&p, scratch);
        p.c = cut.at;
        const int64_t at_m = random_below((int)m + 1), at_n = random_below((int)n + 1);
        for (int quarter = 0; quarter < 4; quarter++) {
            weft_product q = p;
            const int64_t first_m = quarter & 1 ? at_m : 0, first_n = quarter & 2 ? at_n : 0;
            q.m = quarter & 1 ? m - at_m : at_m, q.n = quarter & 2 ? n - at_n : at_n;
            q.a.data = (uint16_t *)p.a.data + first_m * p.a.row;
            q.b.data = (uint16_t *)p.b.data + first_n * p.b.column;
            q.c.data = (float *)p.c.data + first_m * p.c.row + first_n;
            if (q.m > 0 && q.n > 0) weft_gemm(&q, scratch);
        }
        CHECK(memcmp(whole.at.data, cut.at.data, (size_t)(m * n) * sizeof(float)) == 0);
        free(a.at.data), free(b.at.data), free(whole.at.data), free(cut.at.data);
    }
}

/* One row of `count` numbers times a column of ones, and its bf16. */
static void sum_of(const float *numbers, int64_t count, float *sum, uint16_t *narrow)
{
    enum { N = 16 };
    matrix a = matrix_of(sizeof(uint16_t), 8, count, false),
           b = matrix_of(sizeof(uint16_t), count, N, false),
           c = matrix_of(sizeof(float), 8, N, false), to = matrix_of(sizeof(uint16_t), 8, N, false);
    for (int64_t l = 0; l < count; l++) {
        for (int64_t i = 0; i < 8; i++)
            *half_at(&a, i, l) = weft_bf16_of_f32(numbers[l]);
        for (int64_t j = 0; j < N; j++)
            *half_at(&b, l, j) = weft_bf16_of_f32(1);
    }
    weft_product p = product_of(&a, &b, &c);
    weft_gemm(&p, scratch);
    p.narrow = to.at;
    weft_gemm(&p, scratch);
    *sum = *sum_at(&c, 7, N - 1), *narrow = *half_at(&to, 7, N - 1);
    free(a.at.data), free(b.at.data), free(c.at.data), free(to.at.data);
}

static void test_infinite_and_no_numbers_stay(void)
{
    float sum;
    uint16_t narrow;
    sum_of((float[]){1, INFINITY, 2}, 3, &sum, &narrow);
    CHECK(isinf(sum) && sum > 0 && isinf(weft_f32_of_bf16(narrow)));
    sum_of((float[]){1, INFINITY, -INFINITY, 2}, 4, &sum, &narrow);
    CHECK(isnan(sum) && isnan(weft_f32_of_bf16(narrow)));
    sum_of((float[]){NAN, 2}, 2, &sum, &narrow);
    CHECK(isnan(sum) && isnan(weft_f32_of_bf16(narrow)));
    sum_of((float[]){3e38f, 3e38f, 3e38f}, 3, &sum, &narrow);
    CHECK(isinf(sum) && isinf(weft_f32_of_bf16(narrow)));
}

static void test_denormals_count_or_are_zero(void)
{
    const float small = 0x1p-130f; /* of bf16, and below its least normal */
    float sum;
    uint16_t narrow;
    sum_of((float[]){small, small, small, small}, 4, &sum, &narrow);
    CHECK(weft_gemm_has_pairs() ? sum == 0 : sum == 4 * small);
    sum_of((float[]){small, 1, small}, 3, &sum, &narrow);
    CHECK(sum == 1 && narrow == weft_bf16_of_f32(1));
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
    RUN(test_infinite_and_no_numbers_stay);
    RUN(test_denormals_count_or_are_zero);
    free(scratch);
    return weft_test_report();
}
