/* Lines cumulated and put in order, against the definition, to the bit, on any number of lanes. Sizes lie about those where a kernel goes
 * another way: inner long or short, many lines or few, blocks or none.
 */
#include "kernel_views.h"

#include <limits.h>

extern const weft_kernel weft_kernel_cumsum, weft_kernel_cumprod, weft_kernel_cummax,
    weft_kernel_order;

static const weft_dtype wide[] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_I64};
static const int64_t sizes[][3] = {{1, 1, 1},    {1, 97, 1},  {1, 300, 1},  {3, 130, 1},
                                   {20, 210, 1}, {33, 50, 1}, {2, 100, 3},  {19, 40, 2},
                                   {1, 96, 4},   {2, 99, 40}, {1, 120, 300}};
enum { N_WIDE = sizeof wide / sizeof *wide, N_SIZES = sizeof sizes / sizeof *sizes };

static weft_shape shape_of(const int64_t *n)
{
    return (weft_shape){.n_dims = 3, .dims = {{"outer", n[0]}, {"along", n[1]}, {"inner", n[2]}}};
}

static weft_view whole(weft_dtype dtype, const weft_shape *shape)
{
    weft_view view = {0};
    for (int d = 0; d < shape->n_dims; d++)
        view_add(&view, (part){shape->dims[d].name, shape->dims[d].size, 0, shape->dims[d].size});
    view_take(&view, dtype);
    view_randomize(&view);
    return view;
}

/* With as much scratch as the kernel asks for, and no more. */
static void run(const weft_kernel *kernel, weft_call *call)
{
    const int64_t bytes = kernel->scratch ? kernel->scratch(call) : 0;
    call->scratch = bytes > 0 ? aligned_alloc(64, (size_t)((bytes + 63) / 64 * 64)) : NULL;
    run_on_lanes(kernel->launch, call);
    free(call->scratch);
    call->scratch = NULL;
}

/* ---- cumulated ------------------------------------------------------------------------------------ */

enum { SUM, PRODUCT, TOP, WAYS };

static double both_in_double(int way, double a, double b)
{
    if (way == TOP) return b > a || isnan(b) ? b : a;
    return way == SUM ? a + b : a * b;
}

/* In the dtype itself: f32 rounds once, and integers wrap around. */
static double both(int way, weft_dtype dtype, double a, double b)
{
    if (weft_dtype_is_float(dtype) || way == TOP) {
        const double y = both_in_double(way, a, b);
        return dtype == WEFT_F32 ? (double)(float)y : y;
    }
    const uint64_t x = (uint64_t)(int64_t)a, y = (uint64_t)(int64_t)b,
                   z = way == SUM ? x + y : x * y;
    return dtype == WEFT_I32 ? (double)(int32_t)(uint32_t)z : (double)(int64_t)z;
}

static double so_far(int way, weft_dtype dtype, double a, double b)
{
    return weft_dtype_is_float(dtype) ? both_in_double(way, a, b) : both(way, dtype, a, b);
}

static double rounded(weft_dtype dtype, double x)
{
    return dtype == WEFT_F32 ? (double)(float)x : x;
}

static double first_of(int way, weft_dtype dtype)
{
    if (way != TOP) return way == SUM ? 0 : 1;
    return weft_dtype_is_float(dtype) ? (double)-INFINITY
                                      : (double)(dtype == WEFT_I32 ? INT32_MIN : INT64_MIN);
}

/* One line, as the attributes say: blocks one after the other, what comes before each in `total`. */
static void check_line(int way, const weft_call *call, int64_t first, int64_t inner)
{
    const weft_cumulate_attributes *a = call->attributes;
    const weft_view *x = &call->in[0], *y = &call->out[0];
    const int64_t n = a->size, block = a->blocks > 0 ? (n + a->blocks - 1) / a->blocks : n;
    double sum = first_of(way, x->dtype), total = sum;
    bool is_right = true;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = first + (a->reverse ? n - 1 - k : k) * inner;
        if (k > 0 && k % block == 0) {
            total = so_far(way, x->dtype, total, rounded(x->dtype, sum));
            sum = first_of(way, x->dtype);
        }
        const double with = so_far(way, x->dtype, sum, view_get(x, at));
        const double own = rounded(x->dtype, a->exclusive ? sum : with);
        const double want = both(way, x->dtype, rounded(x->dtype, total), own);
        const double is = view_get(y, at);
        is_right = is_right && (is == want || (isnan(is) && isnan(want)));
        sum = with;
    }
    CHECK(is_right);
}

static void check_cumulated(int way, const int64_t *n, weft_dtype dtype, int how, bool has_nan)
{
    static const weft_kernel *const kernels[] = {&weft_kernel_cumsum, &weft_kernel_cumprod,
                                                 &weft_kernel_cummax};
    const weft_cumulate_attributes a = {"along", n[1], how % 2 == 1, how / 2 % 2 == 1,
                                        how / 4 == 1 ? 48 : 0};
    const weft_shape shape = shape_of(n);
    weft_call call = {.n_in = 1, .n_out = 1, .attributes = &a};
    call.in[0] = whole(dtype, &shape);
    call.out[0] = whole(dtype, &shape);
    if (has_nan) view_set(&call.in[0], weft_view_count(&call.in[0]) / 3, (double)NAN);
    run(kernels[way], &call);
    for (int64_t o = 0; o < n[0]; o++)
        for (int64_t i = 0; i < n[2]; i++)
            check_line(way, &call, o * n[1] * n[2] + i, n[2]);
    call_free(&call);
}

static void test_what_is_cumulated_has_the_bits_of_its_blocks(void)
{
    for (int s = 0; s < N_SIZES; s++)
        for (int d = 0; d < N_WIDE; d++)
            for (int how = 0; how < 8; how++)
                for (int way = 0; way < WAYS; way++) {
                    const bool is_wide =
                        wide[d] == WEFT_I64 && way == PRODUCT; /* no double has it */
                    if (is_wide) continue;
                    check_cumulated(way, sizes[s], wide[d], how, false);
                    if (weft_dtype_is_float(wide[d]))
                        check_cumulated(way, sizes[s], wide[d], how, true);
                }
}

/* ---- in order ------------------------------------------------------------------------------------- */

static struct {
    const weft_view *x;
    int64_t first, inner;
    bool descending;
} sorted;

/* A NaN above all numbers; of equal ones the lower index first, both ways. */
static int compare(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    const double x = view_get(sorted.x, sorted.first + i * sorted.inner);
    const double y = view_get(sorted.x, sorted.first + k * sorted.inner);
    const int more = isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
    if (more != 0) return sorted.descending ? -more : more;
    return (i > k) - (i < k);
}

static void check_row(const weft_call *call, int64_t row)
{
    const weft_order_attributes *a = call->attributes;
    const weft_view *x = &call->in[0];
    const int64_t inner = weft_view_size(x, 2), outer = row / inner, at = row % inner;
    int32_t *order = malloc((size_t)a->size * sizeof *order);
    if (!CHECK(order != NULL)) return;
    for (int64_t i = 0; i < a->size; i++)
        order[i] = (int32_t)i;
    sorted.x = x, sorted.inner = inner, sorted.descending = a->descending;
    sorted.first = outer * a->size * inner + at;
    qsort(order, (size_t)a->size, sizeof *order, compare);
    bool is_right = true;
    for (int64_t k = 0; k < a->count; k++)
        is_right =
            is_right &&
            order[k] == ((const int32_t *)call->out[0].data)[(outer * a->count + k) * inner + at];
    CHECK(is_right);
    free(order);
}

/* What rows are made of: numbers, some few of them, a slope either way, and a half that is NaN, of either sign. */
enum { RANDOM, TIES, RISING, FALLING, NANS, KINDS };

static void fill(weft_view *x, int kind)
{
    const int64_t n = weft_view_count(x);
    for (int64_t i = 0; i < n; i++) {
        if (kind == TIES) view_set(x, i, random_below(3) - 1);
        if (kind == TIES && random_below(4) == 0 && weft_dtype_is_float(x->dtype))
            view_set(x, i, -0.0);
        if (kind == RISING || kind == FALLING) view_set(x, i, (double)(kind == RISING ? i : n - i));
        if (kind == NANS && random_below(2) == 0 && weft_dtype_is_float(x->dtype))
            view_set(x, i, random_below(2) == 0 ? (double)NAN : -(double)NAN);
    }
    if (kind == RANDOM && x->dtype == WEFT_I32)
        view_set(x, 0, INT32_MIN), view_set(x, n - 1, INT32_MAX);
}

static void check_order(const int64_t *n, int64_t count, weft_dtype dtype, int kind,
                        bool descending)
{
    const weft_order_attributes a = {"along", "best", n[1], count, descending};
    const weft_shape shape = shape_of(n), out = shape_of((const int64_t[]){n[0], count, n[2]});
    weft_call call = {.n_in = 1, .n_out = 1, .attributes = &a};
    call.in[0] = whole(dtype, &shape);
    call.out[0] = whole(WEFT_I32, &out);
    fill(&call.in[0], kind);
    run(&weft_kernel_order, &call);
    for (int64_t row = 0; row < n[0] * n[2]; row++)
        check_row(&call, row);
    call_free(&call);
}

static void test_the_first_of_each_row_are_in_order(void)
{
    static const int64_t rows[][3] = {{1, 1, 1},   {3, 16, 1},   {2, 17, 3},   {9, 128, 1},
                                      {2, 129, 2}, {3, 1300, 1}, {1, 2600, 2}, {1, 12000, 1}};
    static const int64_t counts[] = {1, 3, 8, 40, 500, INT64_MAX};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int d = 0; d < N_WIDE; d++)
                for (int kind = 0; kind < KINDS; kind++) {
                    const int64_t n = rows[r][1], count = counts[c] < n ? counts[c] : n;
                    check_order(rows[r], count, wide[d], kind, (r + c) % 2 == 0);
                    if (n < 1000) check_order(rows[r], count, wide[d], kind, (r + c) % 2 == 1);
                }
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_what_is_cumulated_has_the_bits_of_its_blocks);
    RUN(test_the_first_of_each_row_are_in_order);
    streams_close();
    return weft_test_report();
}
