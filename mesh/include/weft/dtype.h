/* dtype.h: the element types of tensors. */
#ifndef WEFT_DTYPE_H
#define WEFT_DTYPE_H

#include "weft/error.h"

WEFT_BEGIN

typedef enum weft_dtype { WEFT_F32 = 0, WEFT_F64 = 1, WEFT_I32 = 2, WEFT_DTYPES = 3 } weft_dtype;

/* Tables by dtype in structs from outside have room for dtypes to come. */
enum { WEFT_DTYPE_ROOM = 16 };

/* Local. Bytes of one element; its name: "f32", "f64", "i32". Of what is no dtype: 0 and "no dtype". */
WEFT_API size_t weft_dtype_bytes(weft_dtype dtype);
WEFT_API const char *weft_dtype_name(weft_dtype dtype);

WEFT_END

#endif
