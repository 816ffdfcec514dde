/* reference_element.c: ops with results made element by element, random numbers among them. */
#include "reference_element.h"

#include <float.h>
#include <math.h>
#include <string.h>

ELEMENT_2(add, x + y)
ELEMENT_2(sub, x - y)
ELEMENT_2(mul, x *y)
ELEMENT_2(div, !weft_dtype_is_float(dtype) && y == 0 ? 0 : x / y) /* of integers: 0 */
ELEMENT_2(maximum, isnan(x) || isnan(y) ? x + y : fmaxl(x, y))
ELEMENT_2(minimum, isnan(x) || isnan(y) ? x + y : fminl(x, y))
ELEMENT_2(less, x < y)
ELEMENT_2(less_equal, x <= y)
ELEMENT_2(greater, x > y)
ELEMENT_2(greater_equal, x >= y)
ELEMENT_2(equal, x == y)
ELEMENT_2(not_equal, x != y)

ELEMENT_1(neg, -x)
ELEMENT_1(exp, expl(x))
ELEMENT_1(log, logl(x))
ELEMENT_1(sqrt, sqrtl(x))
ELEMENT_1(rsqrt, 1 / sqrtl(x))
ELEMENT_1(square, x *x)
ELEMENT_1(tanh, tanhl(x))
ELEMENT_1(sin, sinl(x))
ELEMENT_1(cos, cosl(x))
ELEMENT_1(relu, isnan(x) ? x : fmaxl(x, 0))
ELEMENT_1(scale, x *a)
ELEMENT_1(shift, x + a)
ELEMENT_1(stop_gradient, x)
ELEMENT_1(settle, x)
ELEMENT_1(same, x)
ELEMENT_1(copy, x)
ELEMENT_1(broadcast, x)
ELEMENT_1(transpose, x)

/* source  Hendrycks and Gimpel 2016, section 2: 0.5 x (1 + tanh[sqrt(2/pi) (x + 0.044715 x^3)]) */
static long double gelu_inner(long double x)
{
    return sqrtl(2 / acosl(-1)) * (x + 0.044715L * powl(x, 3));
}
ELEMENT_1(gelu, 0.5L * x * (1 + tanhl(gelu_inner(x))))
/* Its derivative by the product rule; d tanh u = du / cosh^2 u. */
static long double gelu_slope(long double x)
{
    if (fabsl(x) > 1000) return x > 0; /* what is left is less than any number */
    const long double inner = gelu_inner(x);
    return 0.5L * (1 + tanhl(inner)) +
           0.5L * x * sqrtl(2 / acosl(-1)) * (1 + 3 * 0.044715L * x * x) / powl(coshl(inner), 2);
}
ELEMENT_1(gelu_slope, gelu_slope(x))

void reference_where(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int taken = element_get(&call->in[0], &p) != 0 ? 1 : 2;
        element_put(&call->out[0], &p, element_get(&call->in[taken], &p));
    }
}

void reference_masked(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const bool is_taken = element_get(&call->in[0], &p) != 0;
        element_put(&call->out[0], &p, is_taken ? element_get(&call->in[1], &p) : 0);
    }
}

/* Into the range of an integer dtype, NaN to 0; the fraction is cut off as it is put. */
static long double into(weft_dtype dtype, long double x)
{
    static const long double range[WEFT_DTYPES][2] = {[WEFT_I32] = {-2147483648.0L, 2147483647.0L},
                                                      [WEFT_I64] = {-0x1p63L, 0x1p63L - 1},
                                                      [WEFT_U8] = {0, 255}};
    if (isnan(x)) return 0;
    return fmaxl(range[dtype][0], fminl(range[dtype][1], x));
}

void reference_cast(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        long double x = element_get(&call->in[0], &p);
        const bool is_to_integer = !weft_dtype_is_float(call->out[0].dtype);
        if (is_to_integer && weft_dtype_is_float(call->in[0].dtype))
            x = into(call->out[0].dtype, x);
        if (call->out[0].dtype == WEFT_F32) x = (float)(double)x;
        element_put(&call->out[0], &p, x);
    }
}

/* ---- out of nothing -------------------------------------------------------------------------- */

void reference_constant(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0]) element_put(&call->out[0], &p, call->with.a);
}

void reference_iota(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, point_at(&p, call->with.dim));
}

void reference_run_number(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0]) element_put(&call->out[0], &p, call->run);
}

void reference_one_hot(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, element_get(&call->in[0], &p) == point_at(&p, call->with.dim));
}

/* ---- random ---------------------------------------------------------------------------------- */

/* Philox4x32-10 as its authors define it: ten rounds of two 64-bit products, keys stepped in between.
 * source  Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3 */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4])
{
    uint32_t k[2] = {key[0], key[1]};
    memcpy(words, counter, 4 * sizeof *words);
    for (int round = 0; round < 10; round++) {
        const uint64_t left = 0xD2511F53ull * words[0], right = 0xCD9E8D57ull * words[2];
        const uint32_t next[4] = {(uint32_t)(right >> 32) ^ words[1] ^ k[0], (uint32_t)right,
                                  (uint32_t)(left >> 32) ^ words[3] ^ k[1], (uint32_t)left};
        memcpy(words, next, sizeof next);
        k[0] += 0x9E3779B9u; /* the golden ratio    */
        k[1] += 0xBB67AE85u; /* the root of 3, less 1 */
    }
}

/* Number `word` of block `block` of this call's stream, in [0, 1): the key is the seed; the counter is the block, the
 * stream, the run. */
static double unit(const reference_call *call, int64_t block, int word)
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), call->with.stream,
                                 call->run};
    const uint32_t key[2] = {(uint32_t)call->seed, (uint32_t)(call->seed >> 32)};
    uint32_t words[4];
    philox(counter, key, words);
    return floor(words[word] / 256.0) / 16777216.0;
}

void reference_random_uniform(const reference_call *call)
{
    const double low = call->with.a, high = call->with.b;
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        element_put(&call->out[0], &p, low + (high - low) * unit(call, i / 4, (int)(i % 4)));
    }
}

/* Elements 2k and 2k + 1 are the two normal numbers that Box and Muller make of uniform 2k and 2k + 1. */
void reference_random_normal(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        const int first = (int)(i % 4) & 2;
        const long double u = unit(call, i / 4, first), v = unit(call, i / 4, first + 1);
        const long double angle = 2 * acosl(-1) * v;
        const long double z = sqrtl(-2 * logl(1 - u)) * (i % 2 == 0 ? cosl(angle) : sinl(angle));
        element_put(&call->out[0], &p, call->with.a + call->with.b * z);
    }
}

/* Of element i, in (0, 1): the uniform number of this stream, and 48 bits in all with that of the next. */
static long double fraction(const reference_call *call, int64_t i)
{
    reference_call next = *call;
    next.with.stream++;
    const double high = unit(call, i / 4, (int)(i % 4)), low = unit(&next, i / 4, (int)(i % 4));
    return high + low * 0x1p-24L + 0x1p-49L;
}

void reference_random_int(const reference_call *call)
{
    const long double low = call->with.a, n = call->with.b - call->with.a;
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        element_put(&call->out[0], &p, low + floorl(n * fraction(call, i)));
    }
}

void reference_random_bernoulli(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        element_put(&call->out[0], &p, unit(call, i / 4, (int)(i % 4)) < call->with.a);
    }
}

void reference_random_bernoulli_of(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        const long double probability = element_get(&call->in[0], &p);
        element_put(&call->out[0], &p, unit(call, i / 4, (int)(i % 4)) < probability);
    }
}

/* The z below which `share` of a normal distribution lies, by halving. */
static long double normal_below(long double share)
{
    long double low = -20, high = 20;
    for (int step = 0; step < 90; step++) {
        const long double z = (low + high) / 2;
        *(erfcl(-z / sqrtl(2)) / 2 < share ? &low : &high) = z;
    }
    return low;
}

void reference_random_truncated_normal(const reference_call *call)
{
    const long double first = erfcl(sqrtl(2)) / 2; /* beyond two deviations */
    REFERENCE_EACH(p, &call->out[0])
    {
        const long double u = fraction(call, element_index(&call->out[0], &p));
        const long double z = normal_below(first + u * (1 - 2 * first));
        element_put(&call->out[0], &p, call->with.a + call->with.b * z);
    }
}

void reference_random_gumbel(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    element_put(&call->out[0], &p, -logl(-logl(fraction(call, element_index(&call->out[0], &p)))));
}

void reference_random_categorical(const reference_call *call)
{
    const reference_tensor *x = &call->in[0];
    REFERENCE_EACH(row, &call->out[0])
    {
        long double best = -HUGE_VALL, top = -HUGE_VALL;
        REFERENCE_EACH_IN(p, &row, x) top = fmaxl(top, element_get(x, &p));
        REFERENCE_EACH_IN(p, &row, x)
        {
            const long double noise = -logl(-logl(fraction(call, element_index(x, &p)))),
                              log_share = element_get(x, &p) - top + noise;
            if (log_share <= best) continue;
            best = log_share;
            element_put(&call->out[0], &row, point_at(&p, call->with.dim));
        }
    }
}

void reference_dropout(const reference_call *call)
{
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = element_index(&call->out[0], &p);
        const bool kept = unit(call, i / 4, (int)(i % 4)) >= call->with.a;
        const long double x = element_get(&call->in[0], &p);
        element_put(&call->out[0], &p, kept ? x / (1 - (long double)call->with.a) : 0);
    }
}

/* Drawn of the dims c and a of the case, in that order. */
void reference_dropout_over(const reference_call *call)
{
    const int64_t n = tensor_size(&call->in[0], "a");
    REFERENCE_EACH(p, &call->out[0])
    {
        const int64_t i = point_at(&p, "c") * n + point_at(&p, "a");
        const bool kept = unit(call, i / 4, (int)(i % 4)) >= call->with.a;
        const long double x = element_get(&call->in[0], &p);
        element_put(&call->out[0], &p, kept ? x / (1 - (long double)call->with.a) : 0);
    }
}
