/* gemm_kernels.c: the inner loops of products (gemm_tile.inc) for each element type, what is done to an operand before it is
 * packed for them, and which of them this processor has.
 */
#include "cpu/gemm_tile.h"

#include <string.h>

#include "weft/extend/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

typedef float floats __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef uint32_t pairs __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t pairs_8 __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint16_t halves
    __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(uint16_t)), may_alias));
typedef uint16_t halves_8
    __attribute__((vector_size(VECTOR_BYTES / 4), aligned(sizeof(uint16_t)), may_alias));

/* bf16 in the upper halves, as weft_bf16_of_f32. */
TILE_INLINE TILE_TARGET pairs round_floats(floats x)
{
    const pairs bits = (pairs)x, rounded = bits + 0x7FFFu + (bits >> 16 & 1u),
                is_nan = (pairs)(x != x);
    return (rounded & ~is_nan) | ((bits | 0x400000u) & is_nan);
}

TILE_INLINE TILE_TARGET void narrow_floats(uint16_t *to, floats x)
{
    *(halves *)to = __builtin_convertvector(round_floats(x) >> 16, halves);
}

/* Elements of two rows side by side, those of the first below. */
TILE_INLINE TILE_TARGET pairs pair_rows(const uint16_t *at, int64_t deep)
{
    return __builtin_convertvector(*(const halves *)(const void *)at, pairs) |
           __builtin_convertvector(*(const halves *)(const void *)(at + deep), pairs) << 16;
}

TILE_INLINE TILE_TARGET pairs_8 pair_rows_8(const uint16_t *at, int64_t deep)
{
    return __builtin_convertvector(*(const halves_8 *)(const void *)at, pairs_8) |
           __builtin_convertvector(*(const halves_8 *)(const void *)(at + deep), pairs_8) << 16;
}

TILE_INLINE uint32_t pair_of(const uint16_t *at, int64_t deep, int64_t n)
{
    return (uint32_t)at[0] | (n > 1 ? (uint32_t)at[deep] << 16 : 0);
}

#define STORED                 float
#define ELEMENT                float
#define EACH                   1
#define SUM                    float
#define TILE(name)             JOIN(name, f32)
#define LOW                    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH                   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define INSTRUCTIONS           TILE_TARGET
#define ADDED(sum, row, a)     ((sum) + (row) * (a))
#define NARROW(to, sums)       narrow_floats(to, (floats)(sums))
#define JOINED(at, deep, n)    (*(at))
#define LEVEL_VECTOR(at, deep) (*(const vector_f32 *)(const void *)(at))
#define LEVEL_EIGHT(at, deep)  (*(const eight_f32 *)(const void *)(at))
#include "cpu/gemm_tile.inc"

#define STORED                 double
#define ELEMENT                double
#define EACH                   1
#define SUM                    double
#define TILE(name)             JOIN(name, f64)
#define LOW                    0, 8, 1, 9, 2, 10, 3, 11
#define HIGH                   4, 12, 5, 13, 6, 14, 7, 15
#define INSTRUCTIONS           TILE_TARGET
#define ADDED(sum, row, a)     ((sum) + (row) * (a))
#define NARROW(to, sums)       (void)(to), (void)(sums) /* f64 is not stored as bf16 */
#define JOINED(at, deep, n)    (*(at))
#define LEVEL_VECTOR(at, deep) (*(const vector_f64 *)(const void *)(at))
#define LEVEL_EIGHT(at, deep)  (*(const eight_f64 *)(const void *)(at))
#include "cpu/gemm_tile.inc"

/* Pairs of bf16, which the processor multiplies and adds up in f32 by one instruction. */
#define PAIR_TARGET                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))
#define STORED       uint16_t
#define ELEMENT      uint32_t
#define EACH         2
#define SUM          float
#define TILE(name)   JOIN(name, bf16)
#define LOW          0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define INSTRUCTIONS PAIR_TARGET
#define ADDED(sum, row, a)                                                                         \
    ((sums_bf16)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)(row),                                   \
                                 (__m512bh)_mm512_set1_epi32((int32_t)(a))))
#define NARROW(to, sums)       narrow_floats(to, (floats)(sums))
#define JOINED(at, deep, n)    pair_of(at, deep, n)
#define LEVEL_VECTOR(at, deep) ((vector_bf16)pair_rows(at, deep))
#define LEVEL_EIGHT(at, deep)  ((eight_bf16)pair_rows_8(at, deep))
#include "cpu/gemm_tile.inc"

/* ---- before packing ------------------------------------------------------------------------------ */

static TILE_TARGET void widen_bf16(int64_t n, const void *from, void *to)
{
    const uint16_t *x = from;
    float *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = weft_f32_of_bf16(x[i]);
}

/* In vectors by the processor's own instruction. */
static TILE_TARGET void widen_f16(int64_t n, const void *from, void *to)
{
    const uint16_t *x = from;
    float *y = to;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i))));
    for (; i < n; i++)
        y[i] = weft_f32_of_f16(x[i]);
}

static TILE_TARGET void round_bf16(int64_t n, const void *from, void *to)
{
    const float *x = from;
    float *y = to;
    for (int64_t i = 0; i < n; i++)
        y[i] = weft_bf16_round(x[i]);
}

static TILE_TARGET void narrow_bf16(int64_t n, const void *from, void *to)
{
    const float *x = from;
    uint16_t *y = to;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        narrow_floats(y + i, (floats)_mm512_loadu_ps(x + i));
    for (; i < n; i++)
        y[i] = weft_bf16_of_f32(x[i]);
}

/* n, a multiple of a vector, by k of f32, where those of one l are neighbours, rounded and packed as pairs at once. */
static TILE_TARGET void pack_wide(const side *s, int n, int64_t k, void *memory)
{
    enum { WIDTH = VECTOR_BYTES / sizeof(float) };
    const float *from = (const float *)(const void *)s->data;
    pairs *to = memory;
    for (int64_t l = 0; l < k; l += 2, from += 2 * s->deep)
        for (int i = 0; i < n; i += WIDTH) {
            const float *at = from + i;
            const floats below = (floats)_mm512_loadu_ps(at),
                         above = l + 1 < k ? (floats)_mm512_loadu_ps(at + s->deep) : (floats){0};
            __builtin_prefetch(at + LINES_AHEAD * s->deep);
            __builtin_prefetch(at + (LINES_AHEAD + 1) * s->deep);
            *to++ = round_floats(below) >> 16 | (round_floats(above) & 0xFFFF0000u);
        }
}

static tile_convert convert_of(bool is_paired, weft_dtype reads, bool is_wide)
{
    if (is_paired) return is_wide ? narrow_bf16 : NULL;
    if (is_wide) return reads == WEFT_BF16 ? round_bf16 : NULL;
    return reads == WEFT_BF16 ? widen_bf16 : reads == WEFT_F16 ? widen_f16 : NULL;
}

/* ---- which there are ------------------------------------------------------------------------------- */

static const tile_kernels *const kernels[WEFT_DTYPES] = {
    [WEFT_F32] = &kernels_f32, [WEFT_F64] = &kernels_f64};

/* Zen does as many of its products of pairs as of f32 in a second; Intel's processors, half as many or fewer: there f32 is no
 * slower. By the processor alone, so that every run has the same bits. */
static const tile_kernels *pair_kernels(weft_dtype reads)
{
    const bool is_fast = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
    return reads == WEFT_BF16 && is_fast ? &kernels_bf16 : NULL;
}

bool weft_gemm_has(weft_dtype dtype)
{
    return kernels[dtype] != NULL && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
static tile_pack_wide wide_packer(weft_dtype reads)
{
    return pair_kernels(reads) != NULL ? pack_wide : NULL;
}
#else
static tile_pack_wide wide_packer(weft_dtype reads)
{
    (void)reads;
    return NULL;
}

static const tile_kernels *const kernels[WEFT_DTYPES];

static const tile_kernels *pair_kernels(weft_dtype reads)
{
    (void)reads;
    return NULL;
}

static tile_convert convert_of(bool is_paired, weft_dtype reads, bool is_wide)
{
    (void)is_paired, (void)reads, (void)is_wide;
    return NULL;
}

bool weft_gemm_has(weft_dtype dtype)
{
    (void)dtype;
    return false;
}
#endif

const tile_kernels *weft_gemm_kernels(weft_dtype dtype)
{
    return weft_gemm_has(dtype) ? kernels[dtype] : NULL;
}

bool weft_gemm_has_pairs(void)
{
    return weft_gemm_has(WEFT_F32) && pair_kernels(WEFT_BF16) != NULL;
}

const tile_kernels *weft_gemm_kernels_for(weft_dtype reads)
{
    const tile_kernels *paired = pair_kernels(reads);
    return paired != NULL ? paired : kernels[weft_dtype_computes(reads)];
}

tile_pack_wide weft_gemm_pack_wide(weft_dtype reads, weft_dtype stored)
{
    return stored == WEFT_F32 ? wide_packer(reads) : NULL;
}

tile_convert weft_gemm_convert(weft_dtype reads, weft_dtype stored)
{
    return convert_of(pair_kernels(reads) != NULL, reads, stored == WEFT_F32);
}
