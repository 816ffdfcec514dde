/* random_math.h: one random number, for the host and every device: a function of (key, element index) alone.
 *
 * random.c makes many at a time, of these. Normal numbers are Box and Muller's (1958): two words make two independent ones,
 * element i is the cosine (even) or the sine (odd) of its pair. log, sin and cos are series written here: libm's have other
 * last digits on other processors. All arithmetic is exactly rounded, one operation at a time, where no product and sum become
 * one operation.
 */
#ifndef WEFT_RANDOM_MATH_H
#define WEFT_RANDOM_MATH_H

#include <math.h>

#include "weft/extend/env.h"
#include "weft/extend/math.h"
#include "weft/philox.h"

WEFT_INLINE weft_philox_key weft_random_key(const weft_block_env *env)
{
    const uint32_t marks = (uint32_t)(env->step >> 32);
    const weft_philox_key key = {env->seed, env->random ^ marks, (uint32_t)env->step};
    return key;
}

/* A word as a number in [0, 1), as weft_philox_unit says; 24 bits, so a float holds it too. */
WEFT_INLINE double weft_random_unit(uint32_t word)
{
    return (double)(int32_t)(word >> 8) * (1.0 / 16777216.0);
}

/* log x of a float x in (0, 1]: x = 2^n m with m around 1, and log m = 2 artanh s, s = (m - 1) / (m + 1),
 * |s| < 0.1716: eleven terms of the series leave out 1e-18 of it. */
WEFT_INLINE double weft_random_log(float x)
{
    const uint32_t shifted = weft_bits_of_float(x) - 0x3f3504f3u; /* counts from sqrt(1/2) */
    const double n = (double)((int32_t)shifted >> 23);
    const double f = (double)weft_float_of_bits((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    const double s = f / (2.0 + f), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return n * 0.69314718055994531 + 2.0 * (s + s * (z * p));
}

/* sin and cos of an angle of at most an eighth of a turn either way: Taylor, to a^17 and a^16. */
WEFT_INLINE double weft_random_sin(double a, double z)
{
    double p = 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return a + a * (z * p);
}
WEFT_INLINE double weft_random_cos(double z)
{
    double p = 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    p = p * z - 0.5;
    return 1.0 + z * p;
}

/* The words that say the radius and the angle of a pair; the normal numbers of its even and its odd element. The angle is cut
 * into the nearest quarter of a turn, q, and what is left, exactly. */
WEFT_INLINE void weft_random_pair(uint32_t radius, uint32_t angle, double *even, double *odd)
{
    const double r = sqrt(-2.0 * weft_random_log((float)(1.0 - weft_random_unit(radius))));
    const double turns = weft_random_unit(angle);
    const double magic = 6755399441055744.0;        /* 1.5 * 2^52: what is added to it is rounded */
    const double q = (4.0 * turns + magic) - magic; /* 0 to 4 */
    const double a = (turns - 0.25 * q) * 6.2831853071795865, z = a * a;
    const double s = r * weft_random_sin(a, z), c = r * weft_random_cos(z);
    const double x = ((q == 1.0) | (q == 3.0)) ? s : c;
    const double y = ((q == 1.0) | (q == 3.0)) ? c : s;
    *even = ((q == 1.0) | (q == 2.0)) ? -x : x;
    *odd = ((q == 2.0) | (q == 3.0)) ? -y : y;
}

/* ---- of one element, by itself ----------------------------------------------------------------- */

/* Its word of the block that it is in. */
WEFT_INLINE uint32_t weft_random_word(const weft_block_env *env, int64_t at)
{
    uint32_t words[4];
    weft_philox(weft_random_key(env), (uint64_t)at / 4, words);
    return words[at % 4];
}

WEFT_INLINE double weft_random_normal_at(const weft_block_env *env, int64_t at)
{
    uint32_t words[4];
    double even, odd;
    weft_philox(weft_random_key(env), (uint64_t)at / 4, words);
    weft_random_pair(words[at % 4 / 2 * 2], words[at % 4 / 2 * 2 + 1], &even, &odd);
    return at % 2 == 0 ? even : odd;
}

#endif
