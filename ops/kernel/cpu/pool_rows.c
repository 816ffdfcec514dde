/* pool_rows.c: pool_rows.inc for any processor, and for those with AVX-512. The numbers are the same. */
#include "cpu/pool_rows.h"

#include <math.h>
#include <string.h>

#include "cpu/gemm_tile.h"

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c)  JOIN_(a, b, c)

#define ROW_TARGET
#define ROW_STREAM(at, v)  memcpy(at, &(v), sizeof(v))
#define ROW_OF(name, type) JOIN(name, type, plain)
#include "cpu/pool_types.inc"
static const weft_pool_rows *const plain[WEFT_DTYPES] = {[WEFT_F32] = &rows_f32_plain,
                                                         [WEFT_F64] = &rows_f64_plain,
                                                         [WEFT_I32] = &rows_i32_plain,
                                                         [WEFT_I64] = &rows_i64_plain};

#if defined(__x86_64__)
#include <immintrin.h>

#define ROW_TARGET         TILE_TARGET
#define ROW_STREAM(at, v)  _mm512_stream_si512((__m512i *)(void *)(at), (__m512i)(v))
#define ROW_OF(name, type) JOIN(name, type, avx512)
#include "cpu/pool_types.inc"
static const weft_pool_rows *const wide[WEFT_DTYPES] = {[WEFT_F32] = &rows_f32_avx512,
                                                        [WEFT_F64] = &rows_f64_avx512,
                                                        [WEFT_I32] = &rows_i32_avx512,
                                                        [WEFT_I64] = &rows_i64_avx512};
#else
static const weft_pool_rows *const wide[WEFT_DTYPES];
#endif

const weft_pool_rows *weft_pool_rows_of(weft_dtype dtype)
{
    return weft_gemm_has(WEFT_F32) ? wide[dtype] : plain[dtype];
}
