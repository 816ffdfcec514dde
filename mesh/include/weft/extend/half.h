/* half.h: numbers of 16 bits as they are stored: bf16 and f16, to and from f32.
 *
 *     const float x = weft_f32_of_bf16(bits);
 *     const uint16_t bits = weft_bf16_of_f32(x);
 *
 * To 16 bits is rounded to the nearest, ties to even; what is too large becomes infinite, a NaN stays one. No branches, so loops
 * of them become vectors.
 */
#ifndef WEFT_EXTEND_HALF_H
#define WEFT_EXTEND_HALF_H

#include <stdint.h>
#include <string.h>

#include "weft/extend/host_device.h"

WEFT_HOST_DEVICE uint32_t weft_bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

WEFT_HOST_DEVICE float weft_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- bf16: the upper half of an f32 ---------------------------------------------------------- */

WEFT_HOST_DEVICE float weft_f32_of_bf16(uint16_t bits)
{
    return weft_f32_of_bits((uint32_t)bits << 16);
}

WEFT_HOST_DEVICE uint16_t weft_bf16_of_f32(float x)
{
    const uint32_t bits = weft_bits_of_f32(x);
    const uint32_t rounded = bits + 0x7FFFu + (bits >> 16 & 1u); /* carries into the exponent */
    return (uint16_t)((x != x ? bits | 0x400000u : rounded) >> 16);
}

/* The same number in f32, for later ops in f32. */
WEFT_HOST_DEVICE float weft_bf16_round(float x)
{
    const uint32_t bits = weft_bits_of_f32(x);
    const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
    return x != x ? x : weft_f32_of_bits(rounded);
}

/* ---- f16: a sign, 5 bits of exponent, 10 of fraction ----------------------------------------- */

WEFT_HOST_DEVICE float weft_f32_of_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7FFFu;
    const uint32_t normal = (rest << 13) + (112u << 23), odd = (rest << 13) | 0x7F800000u;
    const uint32_t small = weft_bits_of_f32((float)(int32_t)rest * 0x1p-24f);
    return weft_f32_of_bits(sign | (rest >= 0x7C00u ? odd : rest < 0x400u ? small : normal));
}

/* Below the least normal f16 (2^-14) an addition of 1/2 leaves the fraction rounded in the last bits. */
WEFT_HOST_DEVICE uint16_t weft_f16_of_f32(float x)
{
    const uint32_t bits = weft_bits_of_f32(x), sign = bits >> 16 & 0x8000u,
                   rest = bits & 0x7FFFFFFFu;
    const uint32_t normal = (rest - (112u << 23) + 0xFFFu + (rest >> 13 & 1u)) >> 13;
    const uint32_t small = weft_bits_of_f32(weft_f32_of_bits(rest) + 0.5f) - 0x3F000000u;
    const uint32_t finite = rest < (113u << 23) ? small : normal;
    const uint32_t odd = rest > 0x7F800000u ? 0x7E00u : 0x7C00u;
    return (uint16_t)(sign | (rest >= 0x477FF000u ? odd : finite));
}

WEFT_HOST_DEVICE float weft_f16_round(float x)
{
    return weft_f32_of_f16(weft_f16_of_f32(x));
}

/* ---- from double ----------------------------------------------------------------------------- */

/* The f32 next to x towards 0, its last bit set where that is not x itself: rounding it to fewer bits is rounding x.
 * source  Boldo, Melquiond 2008, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
 * odd" */
WEFT_HOST_DEVICE float weft_f32_odd(double x)
{
    const float near = (float)x;
    const uint32_t bits = weft_bits_of_f32(near);
    const double back = (double)near;
    const int exact = back == x || x != x;
    const int past = x > 0 ? back > x : back < x;
    return weft_f32_of_bits(exact ? bits : (bits - (uint32_t)past) | 1u);
}

WEFT_HOST_DEVICE uint16_t weft_bf16_of_f64(double x)
{
    return weft_bf16_of_f32(weft_f32_odd(x));
}

WEFT_HOST_DEVICE uint16_t weft_f16_of_f64(double x)
{
    return weft_f16_of_f32(weft_f32_odd(x));
}

#endif
