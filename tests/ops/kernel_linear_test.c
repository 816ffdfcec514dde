/* kernel_linear_test: factors multiplied again are the matrix, and solutions put in give the right-hand side, at sizes of one
 * block and of several; of one lane and of two the same bits. */
#include "kernel_views.h"

extern const weft_kernel weft_kernel_solve;

static const int64_t sizes[] = {1, 2, 47, 48, 49, 130};
enum { N_SIZES = sizeof sizes / sizeof *sizes, BATCH = 3 };
static const double within[WEFT_DTYPES] = {[WEFT_F32] = 2e-5, [WEFT_F64] = 1e-12};
static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64};

static weft_square_attributes sides(int64_t n)
{
    return (weft_square_attributes){"row", "column", n};
}

/* Two of three matrices; columns 1 to 5 of 7. */
static weft_call call_of(weft_dtype dtype, int64_t n, int64_t begin, const char *into)
{
    const part batch = {"batch", BATCH, begin, BATCH}, row = {"row", n, 0, n},
               column = {"column", n, 0, n}, rest = {"rest", 7, 1, 5};
    weft_call call = {.n_in = into ? 2 : 1, .n_out = 1};
    call.in[0] = view_of(dtype, 3, (part[]){batch, row, column});
    if (into) call.in[1] = view_of(dtype, 3, (part[]){batch, row, rest});
    call.out[0] = into ? view_of(dtype, 3, (part[]){batch, column, rest})
                       : view_of(dtype, 3, (part[]){batch, row, column});
    return call;
}

static double at(const weft_view *x, int64_t number, int64_t i, int64_t j)
{
    const int64_t of[] = {number, i, j};
    return view_get(x, view_index(x, of));
}

/* n on the diagonal, which `by` rows below is where it should be; with the products of rows it is positive. */
static void add_diagonal(weft_view *a, int64_t n, int64_t by)
{
    for (int64_t number = 0; number < weft_view_size(a, 0); number++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t of[] = {number, (i + by) % n, i}, k = view_index(a, of);
            view_set(a, k, view_get(a, k) + (double)n);
        }
}
static void make_symmetric(weft_view *a, int64_t n)
{
    for (int64_t number = 0; number < weft_view_size(a, 0); number++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) {
                const int64_t of[] = {number, j, i};
                view_set(a, view_index(a, of), at(a, number, i, j));
            }
}

/* The largest of |a b - c|: sums over k from 0 on, of elements of a that are kept by triangle: 1 the upper, -1 the lower, 0 all. */
static double off(const weft_view *a, const weft_view *b, const weft_view *c, int triangle,
                  bool is_squared)
{
    const int64_t n = weft_view_size(a, 1), m = weft_view_size(c, 2);
    double worst = 0;
    for (int64_t number = 0; number < weft_view_size(a, 0); number++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) {
                double sum = -at(c, number, i, j);
                for (int64_t k = 0; k < n; k++)
                    if ((k - i) * triangle >= 0)
                        sum += at(a, number, i, k) *
                               (is_squared ? at(b, number, j, k) : at(b, number, k, j));
                if (!(fabs(sum) <= worst)) worst = fabs(sum);
            }
    return worst;
}

static void each_size(void (*check)(weft_dtype dtype, int64_t n, int64_t begin))
{
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < N_SIZES; i++)
            for (int64_t begin = 0; begin <= BATCH; begin += 1)
                check(dtypes[d], sizes[i], begin);
}

static void check_cholesky(weft_dtype dtype, int64_t n, int64_t begin)
{
    weft_call call = call_of(dtype, n, begin, NULL);
    const weft_square_attributes a = sides(n);
    call.attributes = &a;
    add_diagonal(&call.in[0], n, 0);
    make_symmetric(&call.in[0], n);
    run_on_lanes(weft_cholesky_cpu, &call);
    CHECK(off(&call.out[0], &call.out[0], &call.in[0], -1, true) <= within[dtype] * (double)n);
    for (int64_t number = 0; number < weft_view_size(&call.out[0], 0); number++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++)
                CHECK(at(&call.out[0], number, i, j) == 0);
    call_free(&call);
}
static void test_factors_multiplied_are_the_matrix(void)
{
    each_size(check_cholesky);
}

static void test_what_is_not_positive_gives_nan_alone(void)
{
    for (int i = 2; i < N_SIZES; i++)
        for (int64_t where = 0; where < sizes[i]; where += sizes[i] - 1) {
            weft_call call = call_of(WEFT_F64, sizes[i], 0, NULL);
            const weft_square_attributes a = sides(sizes[i]);
            const int64_t of[] = {1, where, where};
            call.attributes = &a;
            add_diagonal(&call.in[0], sizes[i], 0);
            make_symmetric(&call.in[0], sizes[i]);
            view_set(&call.in[0], view_index(&call.in[0], of), -1.0);
            run_on_lanes(weft_cholesky_cpu, &call);
            for (int64_t number = 0; number < BATCH; number++)
                for (int64_t r = 0; r < sizes[i]; r++)
                    CHECK(isnan(at(&call.out[0], number, r, 0)) == (number == 1));
            call_free(&call);
        }
}

static void check_triangle(weft_dtype dtype, int64_t n, int64_t begin)
{
    for (int is_upper = 0; is_upper < 2; is_upper++) {
        weft_call call = call_of(dtype, n, begin, "column");
        const weft_triangle_attributes a = {sides(n), is_upper != 0};
        call.attributes = &a;
        add_diagonal(&call.in[0], n, 0);
        run_on_lanes(weft_triangular_solve_cpu, &call);
        CHECK(off(&call.in[0], &call.out[0], &call.in[1], is_upper ? 1 : -1, false) <=
              within[dtype]);
        call_free(&call);
    }
}
static void test_substitution_gives_the_right_hand_side(void)
{
    each_size(check_triangle);
}

static void check_solve(weft_dtype dtype, int64_t n, int64_t begin)
{
    weft_call call = call_of(dtype, n, begin, "column");
    const weft_square_attributes a = sides(n);
    call.attributes = &a;
    add_diagonal(&call.in[0], n, n / 2); /* pivots are to be looked for */
    const int64_t bytes = weft_kernel_solve.scratch(&call);
    CHECK(bytes > 0 || begin == BATCH);
    call.scratch = malloc((size_t)bytes + 1);
    run_on_lanes(weft_solve_cpu, &call);
    CHECK(off(&call.in[0], &call.out[0], &call.in[1], 0, false) <= within[dtype]);
    free(call.scratch);
    call_free(&call);
}
static void test_elimination_gives_the_right_hand_side(void)
{
    each_size(check_solve);
}

int main(void)
{
    if (streams_open()) {
        RUN(test_factors_multiplied_are_the_matrix);
        RUN(test_what_is_not_positive_gives_nan_alone);
        RUN(test_substitution_gives_the_right_hand_side);
        RUN(test_elimination_gives_the_right_hand_side);
    }
    streams_close();
    return weft_test_report();
}
