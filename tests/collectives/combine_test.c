/* combine: the monoids by hand-worked cases, their neutral states, and the numbers that are none. Then lists of
 * extreme numbers, cut into parts in any way, some of them empty: the combined result is that of the whole list, in
 * long double.
 */
#include "engine.h"
#include "test.h"
#include "weft/collectives.h"

#include <float.h>
#include <stdint.h>

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
        const int32_t i32 = (int32_t)numbers[c];
        char *to = (char *)memory + (size_t)c * weft_dtype_bytes(dtype);
        weft_dtype_put(dtype, to, 0, numbers[c]);
        if (dtype == WEFT_F32 && combine == WEFT_ARGMAX && c == 1) memcpy(to, &i32, 4);
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
            if (weft_combiner_of((weft_combine)combine, (weft_dtype)dtype) != NULL)
                check_identity((weft_combine)combine, (weft_dtype)dtype);
    int32_t state[2];
    weft_combine_identity(WEFT_ARGMAX, WEFT_F32, state, 2);
    CHECK_EQ_INT(state[1], -1);
    weft_combine_identity(WEFT_MIN, WEFT_I32, state, 2);
    CHECK_EQ_INT(state[0], INT32_MAX);
    weft_combine_identity(WEFT_ARGMAX, WEFT_I32, state, 2);
    CHECK(state[0] == INT32_MIN && state[1] == -1);
}

/* ---- extreme numbers in any parts -------------------------------------------------------------- */

enum { MOST = 9 };

typedef struct list { /* numbers, each of which a T can hold */
    int n;
    double x[MOST];
    bool has_nan, has_infinity;
    double top;          /* the largest, NaN above all */
    int at;              /* the first that is `top`    */
    long double largest; /* magnitude */
} list;

static uint64_t state_of_dice = 20;
static int roll(int n)
{
    state_of_dice = state_of_dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((state_of_dice >> 33) % (uint64_t)n);
}

static double any_number(weft_dtype dtype, int kind)
{
    const bool is_f32 = dtype == WEFT_F32;
    const double most = is_f32 ? (double)FLT_MAX : DBL_MAX;
    const double least = is_f32 ? (double)FLT_TRUE_MIN : DBL_TRUE_MIN;
    const double root = 0.9 * sqrt(most);
    const double ordinary[] = {0, 1, -1, 2.5, 1000, -3}, huge[] = {most, -most, most / 2, -1, 0};
    const double squares[] = {root, -root, 0, root / 2, 1};
    const double tiny[] = {least, -least, 3 * least, 0, sqrt(least)};
    const double none[] = {inf, -inf, -inf, 5, -7};
    const double mixed[] = {NAN, inf, -inf, most, least, 0};
    const double *const kinds[] = {ordinary, huge, squares, tiny, none, mixed};
    const double x = kinds[kind][roll(kind == 0 || kind == 5 ? 6 : 5)];
    return is_f32 ? (double)(float)x : x;
}

static list any_list(weft_dtype dtype)
{
    const int kind = roll(6);
    list l = {.n = 1 + roll(MOST), .top = -inf};
    for (int i = 0; i < l.n; i++) {
        const double x = l.x[i] = any_number(dtype, kind);
        l.has_nan = l.has_nan || isnan(x), l.has_infinity = l.has_infinity || isinf(x);
        if (i == 0 || x > l.top || (isnan(x) && !isnan(l.top))) l.top = x, l.at = i;
        if (isfinite(x)) l.largest = fmaxl(l.largest, fabsl((long double)x));
    }
    return l;
}

/* One element's state, by definition; element < 0: the neutral one. */
static void put_state(weft_combine combine, weft_dtype dtype, char *to, const list *l, int element)
{
    const int width = weft_combine_width(combine);
    weft_combine_identity(combine, dtype, to, width);
    if (element < 0) return;
    const double x = l->x[element];
    double numbers[3] = {x, 0, 0};
    if (combine == WEFT_LSE) numbers[1] = x == -inf ? 0 : x - x == 0 || x == inf ? 1 : x;
    if (combine == WEFT_ARGMAX) numbers[1] = element;
    if (combine == WEFT_MOMENTS) numbers[0] = 1, numbers[1] = x, numbers[2] = x - x;
    for (int c = 0; c < width; c++) {
        const float f32 = (float)numbers[c];
        const int32_t bits = element;
        const bool is_bits = combine == WEFT_ARGMAX && c == 1;
        if (dtype == WEFT_F64) memcpy(to + 8 * c, &numbers[c], 8);
        if (dtype == WEFT_F32) memcpy(to + 4 * c, is_bits ? (const void *)&bits : &f32, 4);
    }
}

static double number_of(weft_combine combine, weft_dtype dtype, const char *state, int c)
{
    double f64;
    float f32;
    int32_t bits;
    if (dtype == WEFT_F64) return memcpy(&f64, state + 8 * c, 8), f64;
    memcpy(&f32, state + 4 * c, 4), memcpy(&bits, state + 4 * c, 4);
    return combine == WEFT_ARGMAX && c == 1 ? bits : (double)f32;
}

/* All elements in their order, empty parts among them, joined two neighbours at a time wherever the dice say. */
static void join(weft_combine combine, weft_dtype dtype, const list *l, char result[24])
{
    char states[3 * MOST][24];
    int n = 0;
    const int width = weft_combine_width(combine);
    for (int i = 0; i < l->n; i++) {
        put_state(combine, dtype, states[n++], l, i);
        for (int empties = roll(3); empties > 0; empties--)
            put_state(combine, dtype, states[n++], l, -1);
    }
    for (; n > 1; n--) {
        const int i = roll(n - 1);
        weft_combine_into(combine, dtype, states[i], states[i + 1], width);
        memmove(states[i + 1], states[i + 2], (size_t)(n - i - 2) * sizeof states[0]);
    }
    memcpy(result, states[0], sizeof states[0]);
}

static bool near(double found, long double expected, long double within, double most)
{
    if (isnan(expected)) return isnan(found);
    if (expected > (long double)most) return (double)found == inf || expected < 1.001L * most;
    if (isinf(found))
        return isinf(expected) ? (found > 0) == (expected > 0) : expected > 0.999L * most;
    return fabsl((long double)found - expected) <= within;
}

static void check_list(weft_combine combine, weft_dtype dtype, const list *l)
{
    const long double epsilon = dtype == WEFT_F32 ? FLT_EPSILON : DBL_EPSILON;
    const double most = dtype == WEFT_F32 ? (double)FLT_MAX : DBL_MAX;
    const long double least = dtype == WEFT_F32 ? FLT_TRUE_MIN : DBL_TRUE_MIN;
    char state[24], text[300];
    join(combine, dtype, l, state);
    const double found[3] = {number_of(combine, dtype, state, 0),
                             number_of(combine, dtype, state, 1),
                             combine == WEFT_MOMENTS ? number_of(combine, dtype, state, 2) : 0};
    long double sum = 0, exps = 0, m2 = 0;
    for (int i = 0; i < l->n; i++) {
        sum += l->x[i];
        exps += l->x[i] == -inf ? 0 : l->x[i] == l->top ? 1 : expl((long double)l->x[i] - l->top);
    }
    const long double mean = sum / l->n;
    for (int i = 0; i < l->n; i++)
        m2 += (l->x[i] - mean) * (l->x[i] - mean);
    const long double lost = 8 * l->n * epsilon * l->largest;
    bool right = found[0] == l->top || (isnan(found[0]) && isnan(l->top));
    if (combine == WEFT_LSE) right = right && near(found[1], exps, l->n * 4 * epsilon, most);
    if (combine == WEFT_ARGMAX) right = right && found[1] == l->at;
    if (combine == WEFT_MOMENTS)
        right = found[0] == l->n && near(found[1], mean, lost + l->n * least, most) &&
                near(found[2], m2, 8 * l->n * epsilon * m2 + l->n * (lost * lost + least), most);
    snprintf(text, sizeof text,
             "%s of %s: of %g %g %g %g .. (%d) came (%.9g, %.9g, %.9g); mean %.9Lg, m2 %.9Lg, exps "
             "%.9Lg",
             weft_combine_name(combine), weft_dtype_name(dtype), l->x[0], l->x[1], l->x[2], l->x[3],
             l->n, found[0], found[1], found[2], mean, m2, exps);
    weft_test_check(right, __FILE__, __LINE__, text);
}

static void test_extreme_numbers_in_any_parts_are_those_of_the_whole(void)
{
    for (int i = 0; i < 20000; i++) {
        const weft_dtype dtype = i % 2 ? WEFT_F32 : WEFT_F64;
        const list l = any_list(dtype);
        check_list(WEFT_LSE, dtype, &l);
        check_list(WEFT_ARGMAX, dtype, &l);
        check_list(WEFT_MOMENTS, dtype, &l);
    }
}

static void test_what_does_not_combine_has_its_sentence(void)
{
    weft_error error = {0};
    CHECK_EQ_INT(weft_combine_check(WEFT_NOT_PARTIAL, WEFT_F32, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "there is nothing to combine");
    error = (weft_error){0};
    CHECK_EQ_INT(weft_combine_check(WEFT_LSE, WEFT_I32, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "partial results of kind lse are not defined for i32");
    CHECK_EQ_INT(weft_combine_check(WEFT_SUM, WEFT_I32, NULL), WEFT_OK);
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
    RUN(test_extreme_numbers_in_any_parts_are_those_of_the_whole);
    RUN(test_what_does_not_combine_has_its_sentence);
    return weft_test_report();
}
