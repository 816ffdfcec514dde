/* dtype: the table of element types. */
#include "weft/dtype.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[WEFT_DTYPES] = {
    [WEFT_F32] = {"f32", 4},
    [WEFT_F64] = {"f64", 8},
    [WEFT_I32] = {"i32", 4},
};

size_t weft_dtype_bytes(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *weft_dtype_name(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES ? dtypes[dtype].name : "no dtype";
}
