/* dtype.h: the element types of tensors.
 *
 * An element is *stored* as its dtype says and *computed with* in another where that one is too narrow: bf16 and f16
 * in f32, u8 in i32. Results are rounded to the nearest, ties to even; integers wrap around.
 */
#ifndef WEFT_DTYPE_H
#define WEFT_DTYPE_H

#include <stdbool.h>

#include "weft/error.h"

WEFT_BEGIN

typedef enum weft_dtype {
    WEFT_F32 = 0,
    WEFT_F64 = 1,
    WEFT_I32 = 2,
    WEFT_BF16 = 3, /* the upper half of an f32: its range, 8 bits of precision */
    WEFT_F16 = 4,  /* IEEE 754 binary16: up to 65504, 11 bits of precision     */
    WEFT_I64 = 5,
    WEFT_U8 = 6,
    WEFT_DTYPES = 7
} weft_dtype;

/* Tables by dtype in structs from outside have room for dtypes to come. */
enum { WEFT_DTYPE_ROOM = 16 };

/* Local. Bytes of one element; its name: "f32", "bf16", "u8". For an invalid dtype: 0 and "no dtype". */
WEFT_API size_t weft_dtype_bytes(weft_dtype dtype);
WEFT_API const char *weft_dtype_name(weft_dtype dtype);

/* Local. Has it fractions, and gradients? For an invalid dtype: false. */
WEFT_API bool weft_dtype_is_float(weft_dtype dtype);
/* Local. The dtype it is computed with: f32 for bf16 and f16, i32 for u8, itself for the others. For an invalid
 * dtype: itself. */
WEFT_API weft_dtype weft_dtype_computes(weft_dtype dtype);
/* Local. All names, as a sentence has them: "f32, f64, i32, bf16, f16, i64 and u8". */
WEFT_API const char *weft_dtype_names(void);
/* Local. The dtype of a name; WEFT_DTYPES: there is none. */
WEFT_API weft_dtype weft_dtype_find(const char *name);

/* weft_dtype_get, weft_dtype_put - element `index` of a buffer, as a double and rounded from one. Local.
 *
 * An i64 past 2^53 is rounded. To an integer: towards 0, kept in its range, a NaN is 0. Without a buffer or a valid
 * dtype: 0, and nothing is done. */
WEFT_API double weft_dtype_get(weft_dtype dtype, const void *data, int64_t index);
WEFT_API void weft_dtype_put(weft_dtype dtype, void *data, int64_t index, double number);

/* The precision of products of f32 numbers: f32; or operands rounded to 11 bits (tf32) or to 8 (bf16) on devices that
 * are faster so, and added up in f32 all the same. Products of other dtypes are computed as those dtypes say. */
typedef enum weft_precision {
    WEFT_PRECISION_F32 = 0,
    WEFT_PRECISION_TF32 = 1,
    WEFT_PRECISION_BF16 = 2,
    WEFT_PRECISIONS = 3
} weft_precision;
/* Local. Its name: "f32", "tf32", "bf16"; of what is none: "no precision". The precision of a name; WEFT_PRECISIONS: there is
 * none. */
WEFT_API const char *weft_precision_name(weft_precision precision);
WEFT_API weft_precision weft_precision_find(const char *name);

WEFT_END

#endif
