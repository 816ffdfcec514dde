/* combine: the monoids by hand-worked cases, their neutral states, and the numbers that are none.
 */
#include "test.h"
#include "weft/collectives.h"

static const double inf = INFINITY;

static void test_sum_max_min_of_every_dtype(void)
{
    double d[] = {1, 5}, e[] = {3, 2};
    weft_combine_into(WEFT_SUM, WEFT_F64, d, e, 2);
    CHECK(d[0] == 4 && d[1] == 7);
    weft_combine_into(WEFT_MAX, WEFT_F64, d, e, 2);
    CHECK(d[0] == 4 && d[1] == 7);
    weft_combine_into(WEFT_MIN, WEFT_F64, d, e, 2);
    CHECK(d[0] == 3 && d[1] == 2);
    float f[] = {1, -5}, g[] = {0.5f, 2};
    weft_combine_into(WEFT_MAX, WEFT_F32, f, g, 2);
    CHECK(f[0] == 1 && f[1] == 2);
    int32_t i[] = {INT32_MAX, 3}, j[] = {1, -4};
    weft_combine_into(WEFT_SUM, WEFT_I32, i, j, 2);
    CHECK(i[0] == INT32_MIN && i[1] == -1); /* wraps */
    weft_combine_into(WEFT_MIN, WEFT_I32, i, j, 2);
    CHECK(i[0] == INT32_MIN && i[1] == -4);
}

static void test_nan_wins_a_max_and_a_min(void)
{
    float a[] = {NAN, 1, NAN}, b[] = {1, NAN, NAN};
    weft_combine_into(WEFT_MAX, WEFT_F32, a, b, 3);
    CHECK(isnan(a[0]) && isnan(a[1]) && isnan(a[2]));
    double c[] = {NAN, 1, inf}, d[] = {1, NAN, -inf};
    weft_combine_into(WEFT_MIN, WEFT_F64, c, d, 3);
    CHECK(isnan(c[0]) && isnan(c[1]) && c[2] == -inf);
}

static void test_lse_is_the_log_of_the_sum_of_exp(void)
{
    double a[] = {1, 2}, b[] = {3, 1.5};
    weft_combine_into(WEFT_LSE, WEFT_F64, a, b, 2);
    CHECK_CLOSE(a[0] + log(a[1]), log(2 * exp(1) + 1.5 * exp(3)), 1e-15);
    float c[] = {1000, 1}, d[] = {1000, 1};
    weft_combine_into(WEFT_LSE, WEFT_F32, c, d, 2);
    CHECK(c[0] == 1000 && c[1] == 2);
}

static void test_lse_of_rows_that_are_all_minus_infinity(void)
{
    double a[] = {-inf, 0, -inf, 3}, b[] = {-inf, 0, 2, 1};
    weft_combine_into(WEFT_LSE, WEFT_F64, a, b, 4);
    CHECK(a[0] == -inf && a[1] == 0);
    CHECK(a[2] == 2 && a[3] == 1);
}

static void test_argmax_ties_take_the_lower_index(void)
{
    double a[] = {5, 9, 5, 2, 1, 0}, b[] = {5, 4, 5, 7, 2, 8};
    weft_combine_into(WEFT_ARGMAX, WEFT_F64, a, b, 6);
    CHECK(a[1] == 4 && a[3] == 2 && a[4] == 2 && a[5] == 8);
    int32_t i[] = {INT32_MIN, -1}, j[] = {INT32_MIN, 3};
    weft_combine_into(WEFT_ARGMAX, WEFT_I32, i, j, 2);
    CHECK_EQ_INT(i[1], 3); /* a real element beats the neutral state, whatever its value */
    double nan[] = {1, 0}, last[] = {NAN, 5};
    weft_combine_into(WEFT_ARGMAX, WEFT_F64, nan, last, 2);
    CHECK(isnan(nan[0]) && nan[1] == 5);
}

static void test_argmax_keeps_large_indices_in_f32(void)
{
    const int32_t low = (1 << 24) + 1, high = INT32_MAX; /* no float counts so far */
    float a[2] = {1}, b[2] = {2};
    memcpy(&a[1], &low, 4);
    memcpy(&b[1], &high, 4);
    weft_combine_into(WEFT_ARGMAX, WEFT_F32, a, b, 2);
    int32_t index;
    memcpy(&index, &a[1], 4);
    CHECK_EQ_INT(index, high);
    CHECK(a[0] == 2);
}

static void test_moments_of_parts_are_the_moments_of_the_whole(void)
{
    const double x[] = {1e6, 1e6 + 1, 1e6 + 2, 1e6 + 7, 1e6 - 3};
    double state[3] = {0}, one[3] = {1, 0, 0}, mean = 0, m2 = 0;
    for (int i = 0; i < 5; i++) {
        one[1] = x[i];
        weft_combine_into(WEFT_MOMENTS, WEFT_F64, state, one, 3);
        mean += x[i] / 5;
    }
    for (int i = 0; i < 5; i++)
        m2 += (x[i] - mean) * (x[i] - mean);
    CHECK(state[0] == 5);
    CHECK_CLOSE(state[1], mean, 1e-15);
    CHECK_CLOSE(state[2], m2, 1e-9);
}

/* Combining with the neutral state, from either side, changes no bit. */
static void check_identity(weft_combine combine, weft_dtype dtype)
{
    double memory[3] = {0}, neutral[3], before[3];
    const double numbers[3] = {3, 2, 1}; /* a legal state of every kind: index 2, count 3 */
    const int width = weft_combine_width(combine);
    for (int c = 0; c < width; c++) {
        const float f32 = (float)numbers[c];
        const int32_t i32 = (int32_t)numbers[c];
        const bool is_bits = dtype == WEFT_I32 || (combine == WEFT_ARGMAX && c == 1);
        char *to = (char *)memory + (size_t)c * weft_dtype_bytes(dtype);
        if (dtype == WEFT_F64) memcpy(to, &numbers[c], 8);
        if (dtype != WEFT_F64) memcpy(to, is_bits ? (const void *)&i32 : (const void *)&f32, 4);
    }
    memcpy(before, memory, sizeof memory);
    const size_t bytes = (size_t)width * weft_dtype_bytes(dtype);
    weft_combine_identity(combine, dtype, neutral, width);
    weft_combine_into(combine, dtype, memory, neutral, width);
    CHECK(memcmp(memory, before, bytes) == 0);
    weft_combine_into(combine, dtype, neutral, before, width);
    CHECK(memcmp(neutral, before, bytes) == 0);
}

static void test_the_identity_changes_nothing(void)
{
    for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
            if (dtype != WEFT_I32 || (combine != WEFT_LSE && combine != WEFT_MOMENTS))
                check_identity((weft_combine)combine, (weft_dtype)dtype);
    int32_t state[2];
    weft_combine_identity(WEFT_ARGMAX, WEFT_F32, state, 2);
    CHECK_EQ_INT(state[1], -1);
    weft_combine_identity(WEFT_MIN, WEFT_I32, state, 2);
    CHECK_EQ_INT(state[0], INT32_MAX);
    weft_combine_identity(WEFT_ARGMAX, WEFT_I32, state, 2);
    CHECK(state[0] == INT32_MIN && state[1] == -1);
}

int main(void)
{
    RUN(test_sum_max_min_of_every_dtype);
    RUN(test_nan_wins_a_max_and_a_min);
    RUN(test_lse_is_the_log_of_the_sum_of_exp);
    RUN(test_lse_of_rows_that_are_all_minus_infinity);
    RUN(test_argmax_ties_take_the_lower_index);
    RUN(test_argmax_keeps_large_indices_in_f32);
    RUN(test_moments_of_parts_are_the_moments_of_the_whole);
    RUN(test_the_identity_changes_nothing);
    return weft_test_report();
}
