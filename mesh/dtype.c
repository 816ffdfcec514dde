/* dtype: the table of element types. */
#include "weft/dtype.h"

#include <stdint.h>
#include <string.h>

#include "weft/extend/half.h"

/* One element, as a double. */
typedef double (*getter)(const void *data, int64_t i);
typedef void (*putter)(void *data, int64_t i, double x);

/* Kept in [low, high]; `high` is as a double no integer of the type's where it is 2^63: then it is the first past the end. */
#define KEPT(T, x, low, high, most)                                                                \
    ((x) != (x) ? 0 : (x) <= (low) ? (T)(low) : (x) >= (high) ? (T)(most) : (T)(x))
#define ACCESS(name, T, number, rounded)                                                           \
    static double get_##name(const void *data, int64_t i)                                          \
    {                                                                                              \
        const T x = ((const T *)data)[i];                                                          \
        return (double)(number);                                                                   \
    }                                                                                              \
    static void put_##name(void *data, int64_t i, double x)                                        \
    {                                                                                              \
        ((T *)data)[i] = (rounded);                                                                \
    }
ACCESS(f32, float, x, (float)x)
ACCESS(f64, double, x, x)
ACCESS(i32, int32_t, x, KEPT(int32_t, x, -0x1p31, 0x1p31, INT32_MAX))
ACCESS(bf16, uint16_t, weft_f32_of_bf16(x), weft_bf16_of_f64(x))
ACCESS(f16, uint16_t, weft_f32_of_f16(x), weft_f16_of_f64(x))
ACCESS(i64, int64_t, x, KEPT(int64_t, x, -0x1p63, 0x1p63, INT64_MAX))
ACCESS(u8, uint8_t, x, KEPT(uint8_t, x, 0.0, 255.0, 255))

static const struct {
    const char *name;
    size_t bytes;
    bool is_float;
    weft_dtype computes;
    getter get;
    putter put;
} dtypes[WEFT_DTYPES] = {
    [WEFT_F32] = {"f32", 4, true, WEFT_F32, get_f32, put_f32},
    [WEFT_F64] = {"f64", 8, true, WEFT_F64, get_f64, put_f64},
    [WEFT_I32] = {"i32", 4, false, WEFT_I32, get_i32, put_i32},
    [WEFT_BF16] = {"bf16", 2, true, WEFT_F32, get_bf16, put_bf16},
    [WEFT_F16] = {"f16", 2, true, WEFT_F32, get_f16, put_f16},
    [WEFT_I64] = {"i64", 8, false, WEFT_I64, get_i64, put_i64},
    [WEFT_U8] = {"u8", 1, false, WEFT_I32, get_u8, put_u8},
};

size_t weft_dtype_bytes(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *weft_dtype_name(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES ? dtypes[dtype].name : "no dtype";
}

bool weft_dtype_is_float(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES && dtypes[dtype].is_float;
}

weft_dtype weft_dtype_computes(weft_dtype dtype)
{
    return (unsigned)dtype < WEFT_DTYPES ? dtypes[dtype].computes : dtype;
}

const char *weft_dtype_names(void)
{
    return "f32, f64, i32, bf16, f16, i64 and u8";
}

weft_dtype weft_dtype_find(const char *name)
{
    int at = 0;
    while (at < WEFT_DTYPES && (name == NULL || strcmp(dtypes[at].name, name) != 0))
        at++;
    return (weft_dtype)at;
}

double weft_dtype_get(weft_dtype dtype, const void *data, int64_t index)
{
    const bool is_there = (unsigned)dtype < WEFT_DTYPES && data != NULL && index >= 0;
    return is_there ? dtypes[dtype].get(data, index) : 0;
}

void weft_dtype_put(weft_dtype dtype, void *data, int64_t index, double number)
{
    if ((unsigned)dtype < WEFT_DTYPES && data != NULL && index >= 0)
        dtypes[dtype].put(data, index, number);
}

/* ---- precision of products ------------------------------------------------------------------- */

static const char *const precisions[WEFT_PRECISIONS] = {
    [WEFT_PRECISION_F32] = "f32", [WEFT_PRECISION_TF32] = "tf32", [WEFT_PRECISION_BF16] = "bf16"};

const char *weft_precision_name(weft_precision precision)
{
    return (unsigned)precision < WEFT_PRECISIONS ? precisions[precision] : "no precision";
}

weft_precision weft_precision_find(const char *name)
{
    int at = 0;
    while (at < WEFT_PRECISIONS && (name == NULL || strcmp(precisions[at], name) != 0))
        at++;
    return (weft_precision)at;
}
