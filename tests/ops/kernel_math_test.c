/* math.h against libm in double: the float polynomials are right to a few ulp, and at the edges. */
#include "weft/extend/math.h"
#include "tests/test.h"

#include <float.h>

static void sweep(float (*f)(float), double (*g)(double), float low, float high, double bound)
{
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        const float x = low + (high - low) * (float)i / 200000.0f;
        const double want = g(x);
        /* relative, except near a zero of the function: there against the smallest normal of
         * interest */
        const double error = fabs((double)f(x) - want) / fmax(fabs(want), 1e-37);
        if (error > worst) worst = error;
    }
    if (!CHECK(worst <= bound)) printf("worst relative error %g on [%g, %g]\n", worst, low, high);
}

static void test_exp_is_within_two_ulp(void)
{
    sweep(weft_exp_f32, exp, -87.3f, 88.7f, 1.2e-7);
    sweep(weft_exp_f32, exp, -1.0f, 1.0f, 1.2e-7);
    sweep(weft_exp_low_f32, exp, -87.3f, 0.0f, 1.2e-7);
}
static void test_exp_of_what_is_not_above_zero_is_exp(void)
{
    for (int i = 0; i <= 200000; i++) {
        const float x = -90.0f * (float)i / 200000.0f;
        CHECK(weft_exp_low_f32(x) == weft_exp_f32(x));
    }
    CHECK(weft_exp_low_f32(0.0f) == 1.0f);
    CHECK(weft_exp_low_f32(-INFINITY) == 0.0f && weft_exp_low_f32(-FLT_MAX) == 0.0f);
    CHECK(weft_exp_low_f32(-87.33654f) >= FLT_MIN && weft_exp_low_f32(-87.34f) == 0.0f);
    CHECK(weft_exp_low_f64(-1.0) == exp(-1.0));
    for (uint32_t bits = 0x7f800001; bits < 0x7fffffff;
         bits += 4099) /* whatever else is in a NaN */
        CHECK(isnan(weft_exp_low_f32(weft_float_of_bits(bits))) &&
              isnan(weft_exp_low_f32(weft_float_of_bits(bits | 0x80000000))));
}
static void test_exp_at_the_edges(void)
{
    CHECK(weft_exp_f32(0.0f) == 1.0f);
    CHECK(weft_exp_f32(-INFINITY) == 0.0f);
    CHECK(weft_exp_f32(-1e9f) == 0.0f);
    CHECK(weft_exp_f32(INFINITY) == INFINITY);
    CHECK(weft_exp_f32(89.5f) == INFINITY);
    CHECK(isfinite(weft_exp_f32(88.72f)));
    CHECK(isnan(weft_exp_f32(NAN)));
}
static void test_log_is_within_two_ulp(void)
{
    sweep(weft_log_f32, log, 1.5f, 1e6f, 2.5e-7);
    sweep(weft_log_f32, log, 1e-30f, 0.7f, 2.5e-7);
    CHECK(fabs((double)weft_log_f32(1.0001f) - log(1.0001f)) < 1e-10);
    CHECK_CLOSE(weft_log_f32(1e-42f), log((double)1e-42f), 2.5e-7);
}
static void test_log_at_the_edges(void)
{
    CHECK(weft_log_f32(1.0f) == 0.0f);
    CHECK(weft_log_f32(0.0f) == -INFINITY);
    CHECK(weft_log_f32(INFINITY) == INFINITY);
    CHECK(isnan(weft_log_f32(-1.0f)));
    CHECK(isnan(weft_log_f32(NAN)));
    CHECK_CLOSE(weft_log_f32(FLT_MAX), log((double)FLT_MAX), 2.5e-7);
}
static void test_tanh_is_within_three_ulp(void)
{
    sweep(weft_tanh_f32, tanh, -12.0f, 12.0f, 3.5e-7);
    sweep(weft_tanh_f32, tanh, -1e-3f, 1e-3f, 3.5e-7);
    CHECK(weft_tanh_f32(INFINITY) == 1.0f && weft_tanh_f32(-INFINITY) == -1.0f);
    CHECK(isnan(weft_tanh_f32(NAN)));
}
static void test_gelu_and_its_slope(void)
{
    sweep(weft_gelu_f32, weft_gelu_f64, -2.0f, 20.0f, 1.2e-6);
    sweep(weft_gelu_f32, weft_gelu_f64, -9.0f, -2.0f, 2e-5); /* of numbers that are all but 0 */
    for (int i = -800; i <= 800; i++) {
        const double x = i * 0.01, h = 1e-6;
        CHECK(fabs((double)weft_gelu_f32((float)x) - weft_gelu_f64((float)x)) < 1e-6);
        const double slope = (weft_gelu_f64(x + h) - weft_gelu_f64(x - h)) / (2 * h);
        CHECK(fabs(weft_gelu_slope_f64(x) - slope) < 1e-8);
        CHECK(fabs((double)weft_gelu_slope_f32((float)x) - weft_gelu_slope_f64((float)x)) < 2e-6);
    }
    CHECK(weft_gelu_f32(1e20f) == 1e20f && weft_gelu_f32(-1e20f) == 0.0f);
    CHECK(weft_gelu_slope_f32(1e20f) == 1.0f && weft_gelu_slope_f64(1e200) == 1.0);
    CHECK(fabsf(weft_gelu_slope_f32(-1e20f)) < 1e-6f);
}
static void test_sigmoid_and_softplus(void)
{
    sweep(weft_sigmoid_f32, weft_sigmoid_f64, -80.0f, 30.0f, 3e-7);
    sweep(weft_softplus_f32, weft_softplus_f64, -80.0f, 30.0f, 4e-7);
    CHECK(weft_sigmoid_f32(INFINITY) == 1.0f && weft_sigmoid_f32(-INFINITY) == 0.0f);
    CHECK(weft_softplus_f32(INFINITY) == INFINITY && weft_softplus_f32(-INFINITY) == 0.0f);
    CHECK(isnan(weft_sigmoid_f32(NAN)) && isnan(weft_softplus_f32(NAN)));
}
static void test_erf_is_within_three_ulp(void)
{
    sweep(weft_erf_f32, erf, -6.0f, 6.0f, 2.5e-7);
    sweep(weft_erf_f32, erf, -1e-3f, 1e-3f, 2.5e-7);
    CHECK(weft_erf_f32(INFINITY) == 1.0f && weft_erf_f32(-INFINITY) == -1.0f);
    CHECK(isnan(weft_erf_f32(NAN)));
}
static void test_expm1_and_log1p_are_exact_near_zero(void)
{
    sweep(weft_expm1_f32, expm1, -20.0f, 88.7f, 3e-7);
    sweep(weft_expm1_f32, expm1, -1.0f, 1.0f, 3e-7);
    sweep(weft_expm1_f32, expm1, -1e-5f, 1e-5f, 2e-7);
    sweep(weft_log1p_f32, log1p, -0.999f, 1e6f, 4e-7);
    sweep(weft_log1p_f32, log1p, -1.0f + 1e-4f, 1.0f, 4e-7);
    sweep(weft_log1p_f32, log1p, -1e-5f, 1e-5f, 2e-7);
    CHECK(weft_expm1_f32(INFINITY) == INFINITY && weft_expm1_f32(-INFINITY) == -1.0f);
    CHECK(weft_log1p_f32(INFINITY) == INFINITY && weft_log1p_f32(-1.0f) == -INFINITY);
    CHECK(isnan(weft_log1p_f32(-1.5f)) && isnan(weft_log1p_f32(NAN)) && isnan(weft_expm1_f32(NAN)));
}
static void test_division_that_rounds_down(void)
{
    for (int x = -7; x <= 7; x++)
        for (int y = -3; y <= 3; y++) {
            if (y == 0) continue;
            CHECK_EQ_INT(weft_floor_div_i64(x, y), (int64_t)floor((double)x / y));
            CHECK(weft_floor_div_f64(x, y) == floor((double)x / y));
            CHECK_EQ_INT(weft_mod_i64(x, y), x - y * weft_floor_div_i64(x, y));
            CHECK(weft_mod_f64(x, y) == (double)weft_mod_i64(x, y));
        }
    CHECK_EQ_INT(weft_floor_div_i64(5, 0), 0);
    CHECK_EQ_INT(weft_mod_i64(5, 0), 0);
    CHECK_EQ_INT(weft_floor_div_i64(INT64_MIN, -1), INT64_MIN); /* wraps around */
    CHECK_EQ_INT(weft_mod_i64(INT64_MIN, -1), 0);
    CHECK(weft_floor_div_f64(1.0, 0.0) == (double)INFINITY && isnan(weft_mod_f64(1.0, 0.0)));
    CHECK(weft_floor_div_f64(1e300, 1e-10) == (double)INFINITY);
}

int main(void)
{
    RUN(test_exp_is_within_two_ulp);
    RUN(test_exp_of_what_is_not_above_zero_is_exp);
    RUN(test_exp_at_the_edges);
    RUN(test_log_is_within_two_ulp);
    RUN(test_log_at_the_edges);
    RUN(test_tanh_is_within_three_ulp);
    RUN(test_gelu_and_its_slope);
    RUN(test_sigmoid_and_softplus);
    RUN(test_erf_is_within_three_ulp);
    RUN(test_expm1_and_log1p_are_exact_near_zero);
    RUN(test_division_that_rounds_down);
    return weft_test_report();
}
