/* math.h: exp, log, tanh, erf and functions made of them that vectorise, and the macros that compile a loop for
 * several instruction sets.
 *
 * float: own polynomials, 1-2 ulp, branch-free, so a plain loop becomes SIMD without -ffast-math
 * (which would optimise the rounding trick below away). double: libm; correctness is what double is
 * for. source  Moshier, Cephes 2.8: expf, logf, tanhf, erff, erfcf (coefficients)
 */
#ifndef WEFT_EXTEND_MATH_H
#define WEFT_EXTEND_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "weft/extend/host_device.h"
#include "weft/extend/target_clones.h"

/* WEFT_SIMD(reduction(max : m)): before a loop that clang 14 cannot vectorise and would warn about:
 * max, min, exp. */
#ifdef __clang__
#define WEFT_SIMD(clause)
#else
#define WEFT_PRAGMA(text) _Pragma(#text)
#define WEFT_SIMD(clause) WEFT_PRAGMA(omp simd clause)
#endif
#ifdef __CUDACC__
#define WEFT_INLINE WEFT_HOST_DEVICE
#elif defined(__GNUC__)
#define WEFT_INLINE static inline __attribute__((always_inline))
#else
#define WEFT_INLINE static inline
#endif

WEFT_INLINE float weft_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
WEFT_INLINE uint32_t weft_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* exp: x = n ln2 + r, |r| <= ln2/2; exp(x) = 2^n p(r), p of degree 6 with the least greatest relative error (3e-9) and 1 + r
 * exactly. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum, *rounded, with `more` (even, so
 * that halves are rounded the same way) added to it. Gives one p, `one` a power of two. */
WEFT_INLINE float weft_exp_part_f32(float x, float one, float more, uint32_t *rounded)
{
    const float magic = 12582912.0f + more;
    const float sum = x * 1.44269504088896341f + magic;
    const float whole = sum - magic;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.3820661698e-3f * one;
    p = p * r + 8.3686746657e-3f * one;
    p = p * r + 4.1668266058e-2f * one;
    p = p * r + 1.6666521132e-1f * one;
    p = p * r + 4.9999994040e-1f * one;
    p = p * r + one;
    p = p * r + one;
    *rounded = weft_bits_of_float(sum);
    return p;
}

/* Of any x: n is added to the exponent of p. NaN stays NaN. Results below 2^-126 are 0: denormals are slow and nobody wants
 * them. */
WEFT_INLINE float weft_exp_f32(float x)
{
    const float least = -87.33654f, most = 88.72283f;
    uint32_t rounded;
    const float p = weft_exp_part_f32(x, 1.0f, 0.0f, &rounded);
    const float y = weft_float_of_bits(weft_bits_of_float(p) + (rounded << 23));
    const float low = x >= least ? y : 0.0f;
    return x <= most ? low : x * INFINITY; /* or NaN */
}

/* Of x <= 0, as where a maximum is taken off first: the same bits; -inf gives 0. n + 128 shifted are the bits of 2^(n+1), and a
 * product with p / 2 is NaN where x is. */
WEFT_INLINE float weft_exp_low_f32(float x)
{
    const float least = -87.33654f;
    uint32_t rounded;
    const float p = weft_exp_part_f32(x, 0.5f, 128.0f, &rounded);
    const float y = p * weft_float_of_bits(rounded << 23);
    return x < least ? 0.0f : y;
}

/* log: x = 2^n m, sqrt(1/2) <= m < sqrt(2). 0 gives -inf, below 0 NaN. */
WEFT_INLINE float weft_log_f32(float x)
{
    const int tiny = x < 1.17549435e-38f;
    const float scaled = tiny ? x * 8388608.0f : x;
    const uint32_t bits = weft_bits_of_float(scaled);
    const uint32_t shifted =
        bits - 0x3f3504f3u; /* so that the exponent field counts from sqrt(1/2) */
    const float n = (float)((int32_t)shifted >> 23) - (tiny ? 23.0f : 0.0f);
    const float m = weft_float_of_bits((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z - n * 2.12194440e-4f;
    y = y - 0.5f * z;
    y = m + y + n * 0.693359375f;
    y = x > 3.40282347e+38f ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x >= 0.0f ? y : NAN;
}

/* tanh: an odd polynomial where exp would cancel, else 1 - 2 / (exp(2|x|) + 1) with the sign of x.
 */
WEFT_INLINE float weft_tanh_f32(float x)
{
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near_zero = p * z * x + x;
    const float big = 1.0f - 2.0f / (weft_exp_f32(2.0f * fabsf(x)) + 1.0f);
    const float signed_big = x < 0.0f ? -big : big;
    return fabsf(x) < 0.625f ? near_zero : signed_big;
}

/* gelu, tanh form: x/2 (1 + tanh u) = x sigmoid(2u), 2u = 2 sqrt(2/pi) (x + 0.044715 x^3). Below 0 the left side cancels, the
 * right one does not. */
WEFT_INLINE float weft_gelu_f32(float x)
{
    const float u2 = 1.5957691216057308f * (x + 0.044715f * x * x * x);
    return x / (1.0f + weft_exp_f32(-u2));
}
/* d gelu / dx = s + x s (1 - s) d(2u)/dx. Past |x| = 10 s is 0 or 1; clamping keeps inf * 0 away.
 */
WEFT_INLINE float weft_gelu_slope_f32(float x)
{
    float c = x < -10.0f ? -10.0f : x;
    c = c > 10.0f ? 10.0f : c;
    const float u2 = 1.5957691216057308f * (c + 0.044715f * c * c * c);
    const float s = 1.0f / (1.0f + weft_exp_f32(-u2));
    return s + c * s * (1.0f - s) * 1.5957691216057308f * (1.0f + 0.134145f * c * c);
}

WEFT_INLINE float weft_sigmoid_f32(float x)
{
    return 1.0f / (1.0f + weft_exp_f32(-x));
}

/* expm1: as exp, with p - 1 in the place of p: 2^n (p - 1) + (2^n - 1), halved where 2^n has no float. */
WEFT_INLINE float weft_expm1_f32(float x)
{
    const float least = -17.4f, most = 88.72283f, magic = 12582912.0f + 126.0f;
    const float sum = x * 1.44269504088896341f + magic;
    const float whole = sum - magic;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.3820661698e-3f;
    p = p * r + 8.3686746657e-3f;
    p = p * r + 4.1668266058e-2f;
    p = p * r + 1.6666521132e-1f;
    p = p * r + 4.9999994040e-1f;
    p = p * r * r + r;
    const float half = weft_float_of_bits(weft_bits_of_float(sum) << 23);
    const float y = 2.0f * (half * p + (half - 0.5f));
    const float low = x < least ? -1.0f : y;
    return x > most ? INFINITY : low;
}

/* log1p: what 1 + x has lost of x is brought in by x / ((1 + x) - 1). source  Kahan */
WEFT_INLINE float weft_log1p_f32(float x)
{
    const float u = 1.0f + x;
    const float y = weft_log_f32(u) * (x / (u - 1.0f));
    const float near_zero = u == 1.0f ? x : y;
    return x > 3.40282347e+38f ? x : near_zero;
}

WEFT_INLINE float weft_softplus_f32(float x)
{
    return (x > 0.0f ? x : 0.0f) + weft_log1p_f32(weft_exp_f32(-fabsf(x)));
}

/* erf: an odd polynomial up to 1, else 1 - exp(-x^2) q(1/x^2)/x with the sign of x. */
WEFT_INLINE float weft_erf_f32(float x)
{
    const float z = x * x, a = fabsf(x), i = 1.0f / (a > 1.0f ? a : 1.0f), w = i * i;
    float p = 7.853861353153693e-5f;
    p = p * z - 8.010193625184903e-4f;
    p = p * z + 5.188327685732524e-3f;
    p = p * z - 2.685381193529856e-2f;
    p = p * z + 1.128358514861418e-1f;
    p = p * z - 3.761262582423300e-1f;
    p = p * z + 1.128379165726710e+0f;
    float q = 2.326819970068386e-2f;
    q = q * w - 1.387039388740657e-1f;
    q = q * w + 3.687424674597105e-1f;
    q = q * w - 5.824733027278666e-1f;
    q = q * w + 6.210004621745983e-1f;
    q = q * w - 4.944515323274145e-1f;
    q = q * w + 3.404879937665872e-1f;
    q = q * w - 2.741127028184656e-1f;
    q = q * w + 5.638259427386472e-1f;
    const float big = 1.0f - weft_exp_f32(-z) * i * q;
    const float signed_big = x < 0.0f ? -big : big;
    return a > 1.0f ? signed_big : x * p;
}

WEFT_INLINE double weft_exp_f64(double x)
{
    return exp(x);
}
WEFT_INLINE double weft_exp_low_f64(double x)
{
    return exp(x);
}
WEFT_INLINE double weft_log_f64(double x)
{
    return log(x);
}
WEFT_INLINE double weft_tanh_f64(double x)
{
    return tanh(x);
}
WEFT_INLINE double weft_gelu_f64(double x)
{
    const double u2 = 1.5957691216057308 * (x + 0.044715 * x * x * x);
    return x / (1.0 + exp(-u2));
}
WEFT_INLINE double weft_gelu_slope_f64(double x)
{
    const double c = x < -30.0 ? -30.0 : x > 30.0 ? 30.0 : x;
    const double u2 = 1.5957691216057308 * (c + 0.044715 * c * c * c);
    const double s = 1.0 / (1.0 + exp(-u2));
    return s + c * s * (1.0 - s) * 1.5957691216057308 * (1.0 + 0.134145 * c * c);
}

WEFT_INLINE double weft_sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
WEFT_INLINE double weft_expm1_f64(double x)
{
    return expm1(x);
}
WEFT_INLINE double weft_log1p_f64(double x)
{
    return log1p(x);
}
WEFT_INLINE double weft_softplus_f64(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}
WEFT_INLINE double weft_erf_f64(double x)
{
    return erf(x);
}

/* The inverse of erf: y with erf(y) = x, by quotients of polynomials: around the middle, beside it, and far out, in r
 * = sqrt(-log of the tail beyond y). Within 1e-15.  source  Wichura 1988, AS 241 */
WEFT_INLINE double weft_normal_middle(double q)
{
    const double r = 0.180625 - q * q;
    const double p =
        ((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r +
            45921.953931549871457) *
               r +
           13731.693765509461125) *
              r +
          1971.5909503065514427) *
             r +
         133.14166789178437745) *
            r +
        3.3871328727963666080;
    const double s =
        ((((((5226.4952788528545610 * r + 28729.085735721942674) * r + 39307.895800092710610) * r +
            21213.794301586595867) *
               r +
           5394.1960214247511077) *
              r +
          687.18700749205790830) *
             r +
         42.313330701600911252) *
            r +
        1.0;
    return q * p / s;
}
WEFT_INLINE double weft_normal_beside(double r)
{
    const double p = ((((((7.74545014278341407640e-4 * r + 0.0227238449892691845833) * r +
                          0.241780725177450611770) *
                             r +
                         1.27045825245236838258) *
                            r +
                        3.64784832476320460504) *
                           r +
                       5.76949722146069140550) *
                          r +
                      4.63033784615654529590) *
                         r +
                     1.42343711074968357734;
    const double s = ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                          0.0151986665636164571966) *
                             r +
                         0.148103976427480074590) *
                            r +
                        0.689767334985100004550) *
                           r +
                       1.67638483018380384940) *
                          r +
                      2.05319162663775882187) *
                         r +
                     1.0;
    return p / s;
}
WEFT_INLINE double weft_normal_far(double r)
{
    const double p = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
                          0.00124266094738807843860) *
                             r +
                         0.0265321895265761230930) *
                            r +
                        0.296560571828504891230) *
                           r +
                       1.78482653991729133580) *
                          r +
                      5.46378491116411436990) *
                         r +
                     6.65790464350110377720;
    const double s = ((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
                          1.84631831751005468180e-5) *
                             r +
                         7.86869131145613259100e-4) *
                            r +
                        0.0148753612908506148525) *
                           r +
                       0.136929880922735805310) *
                          r +
                      0.599832206555887937690) *
                         r +
                     1.0;
    return p / s;
}
WEFT_INLINE double weft_erfinv_f64(double x)
{
    const double root_half = 0.70710678118654752, q = 0.5 * x, beyond = 0.5 - fabs(q);
    if (fabs(q) <= 0.425) return weft_normal_middle(q) * root_half;
    if (!(beyond > 0.0)) return beyond == 0.0 ? x / beyond : sqrt(beyond); /* infinite; NaN */
    const double r = sqrt(-log(beyond));
    const double y = r <= 5.0 ? weft_normal_beside(r - 1.6) : weft_normal_far(r - 5.0);
    return (x < 0.0 ? -y : y) * root_half;
}

/* x^y (log x)^k, k from 1 on: 0 where the power is, and at 0^0. */
WEFT_INLINE double weft_pow_log_f64(double x, double y, double k)
{
    const double power = pow(x, y);
    if (power == 0.0 || (x == 0.0 && y == 0.0)) return 0.0;
    return power * pow(log(x), k);
}

/* Division that rounds down, and what it leaves, which has the sign of y. Of floats as of doubles: they are exact there. */
WEFT_INLINE double weft_mod_f64(double x, double y)
{
    const double left = fmod(x, y);
    return left != 0.0 && (left < 0.0) != (y < 0.0) ? left + y : left;
}
WEFT_INLINE double weft_floor_div_f64(double x, double y)
{
    if (x - x == 0.0 && y == y && y - y != 0.0) /* by what is infinite */
        return x != 0.0 && (x < 0.0) != (y < 0.0) ? -1.0 : 0.0;
    const double quotient = x / y, whole = rint((x - weft_mod_f64(x, y)) / y);
    return fabs(quotient) < 4503599627370496.0 ? whole
                                               : quotient; /* 2^52: whole already, or no number */
}
WEFT_INLINE int64_t weft_floor_div_i64(int64_t x, int64_t y)
{
    if (y == 0 || y == -1) return y == 0 ? 0 : (int64_t)(0u - (uint64_t)x);
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
WEFT_INLINE int64_t weft_mod_i64(int64_t x, int64_t y)
{
    return y == 0 ? 0 : (int64_t)((uint64_t)x - (uint64_t)weft_floor_div_i64(x, y) * (uint64_t)y);
}

#endif
