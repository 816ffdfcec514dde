/* random.c: random numbers of a run of elements, so many at a time that the arithmetic vectorises.
 *
 * Normal numbers are Box and Muller's (1958): two words make two independent ones, element i is the cosine (even) or the
 * sine (odd) of its pair. log, sin and cos are series written here: libm's have other last digits on other processors.
 * All arithmetic is exactly rounded, one operation at a time, so every instruction set gives the same bits.
 */
#include "random.h"

#include "weft/extend/math.h"

enum { most_blocks = WEFT_BLOCK / 4 + 1 }; /* a run may begin and end inside a block */

/* words[4 b + k]: word k of block first + b. The same rounds as weft_philox, block by block in
 * lockstep. */
WEFT_CLONES static void fill_blocks(weft_philox_key key, uint64_t first, int n_blocks,
                                    uint32_t *words)
{
    WEFT_IVDEP
    for (int b = 0; b < n_blocks; b++) {
        uint32_t block[4];
        weft_philox(key, first + (uint64_t)b, block);
        for (int k = 0; k < 4; k++)
            words[4 * b + k] = block[k];
    }
}

static int blocks_of(int64_t first, int64_t n)
{
    return (int)((first % 4 + n + 3) / 4);
}

void weft_random_fill(weft_philox_key key, int64_t n, const weft_block_env *env, uint32_t *words)
{
    uint32_t blocks[4 * most_blocks];
    if (env->stride != 1) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = env->index + i * env->stride;
            weft_philox(key, (uint64_t)at / 4, blocks);
            words[i] = blocks[at % 4];
        }
        return;
    }
    const int64_t before = env->index % 4; /* words of the first block that belong to nobody here */
    fill_blocks(key, (uint64_t)env->index / 4, blocks_of(env->index, n), blocks);
    memcpy(words, blocks + before, (size_t)n * sizeof *words);
}

/* ---- normal numbers -------------------------------------------------------------------------- */

/* A word as a number in [0, 1), as weft_philox_unit says; 24 bits, so a float holds it too. */
WEFT_INLINE double unit_of(uint32_t word)
{
    return (double)(int32_t)(word >> 8) * (1.0 / 16777216.0);
}

/* log x of a float x in (0, 1]: x = 2^n m with m around 1, and log m = 2 artanh s, s = (m - 1) / (m + 1),
 * |s| < 0.1716: eleven terms of the series leave out 1e-18 of it. */
WEFT_INLINE double log_of(float x)
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
WEFT_INLINE double sin_near(double a, double z)
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
WEFT_INLINE double cos_near(double z)
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

/* Pair k: the words that say its radius and its angle; the normal numbers of its even and its odd
 * element. The angle is cut into the nearest quarter of a turn, q, and what is left, exactly. */
WEFT_CLONES static void box_muller(int n, const uint32_t *radius, const uint32_t *angle,
                                   double *even, double *odd)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++) {
        const double r = sqrt(-2.0 * log_of((float)(1.0 - unit_of(radius[k]))));
        const double turns = unit_of(angle[k]);
        const double magic = 6755399441055744.0; /* 1.5 * 2^52: what is added to it is rounded */
        const double q = (4.0 * turns + magic) - magic; /* 0 to 4 */
        const double a = (turns - 0.25 * q) * 6.2831853071795865, z = a * a;
        const double s = r * sin_near(a, z), c = r * cos_near(z);
        const double x = ((q == 1.0) | (q == 3.0)) ? s : c;
        const double y = ((q == 1.0) | (q == 3.0)) ? c : s;
        even[k] = ((q == 1.0) | (q == 2.0)) ? -x : x;
        odd[k] = ((q == 2.0) | (q == 3.0)) ? -y : y;
    }
}

/* The pair of each element by itself. */
static void gauss_apart(weft_philox_key key, int64_t n, const weft_block_env *env, double *numbers)
{
    uint32_t radius[WEFT_BLOCK] = {0}, angle[WEFT_BLOCK] = {0}, block[4];
    double even[WEFT_BLOCK], odd[WEFT_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = env->index + i * env->stride;
        weft_philox(key, (uint64_t)at / 4, block);
        radius[i] = block[at % 4 / 2 * 2];
        angle[i] = block[at % 4 / 2 * 2 + 1];
    }
    box_muller((int)n, radius, angle, even, odd);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (env->index + i * env->stride) % 2 == 0 ? even[i] : odd[i];
}

void weft_random_gauss(weft_philox_key key, int64_t n, const weft_block_env *env, double *numbers)
{
    enum { most_pairs = 2 * most_blocks };
    uint32_t words[4 * most_blocks], radius[most_pairs], angle[most_pairs];
    double even[most_pairs], odd[most_pairs], both[2 * most_pairs];
    if (env->stride != 1) {
        gauss_apart(key, n, env, numbers);
        return;
    }
    const int n_pairs = 2 * blocks_of(env->index, n);
    fill_blocks(key, (uint64_t)env->index / 4, n_pairs / 2, words);
    for (int k = 0; k < n_pairs; k++) {
        radius[k] = words[2 * k];
        angle[k] = words[2 * k + 1];
    }
    box_muller(n_pairs, radius, angle, even, odd);
    for (int k = 0; k < n_pairs; k++) {
        both[2 * k] = even[k];
        both[2 * k + 1] = odd[k];
    }
    memcpy(numbers, both + env->index % 4, (size_t)n * sizeof *numbers);
}
