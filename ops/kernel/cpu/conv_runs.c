/* conv_runs.c: conv_runs.inc for f32 and f64. */
#include "cpu/conv_runs.h"

#include <string.h>

#include "cpu/gemm_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define JOIN_(a, b)        a##_##b
#define JOIN(a, b)         JOIN_(a, b)
#define ELEMENT            float
#define RUN(name)          JOIN(name, f32)
#define LOAD_PART(n, from) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), from)
#define PLACES             __m512i
#define LOAD_PLACES(from)  _mm512_loadu_si512(from)
#define PERMUTE(places, x) _mm512_permutexvar_ps(places, (__m512)(x))
#include "cpu/conv_runs.inc"
#undef ELEMENT
#undef RUN
#undef LOAD_PART
#undef PERMUTE
#define ELEMENT            double
#define RUN(name)          JOIN(name, f64)
#define LOAD_PART(n, from) _mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), from)
#define PERMUTE(places, x) _mm512_permutexvar_pd(places, (__m512d)(x))
#include "cpu/conv_runs.inc"

static const weft_run_kernels *const kernels[WEFT_DTYPES] = {
    [WEFT_F32] = &kernels_f32, [WEFT_F64] = &kernels_f64};
#else
static const weft_run_kernels *const kernels[WEFT_DTYPES];
#endif

const weft_run_kernels *weft_run_kernels_of(weft_dtype dtype)
{
    return weft_gemm_has(dtype) ? kernels[dtype] : NULL;
}
