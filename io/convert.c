/* convert: numbers of a source in the dtype that a program's input has. */
#include "chain.h"

#include <string.h>

bool weft_converts(weft_dtype from, weft_dtype to)
{
    return weft_dtype_is_float(to) || !weft_dtype_is_float(from);
}

static const struct {
    int64_t low, high;
} ranges[WEFT_DTYPES] = {[WEFT_I32] = {INT32_MIN, INT32_MAX},
                         [WEFT_I64] = {INT64_MIN, INT64_MAX},
                         [WEFT_U8] = {0, UINT8_MAX}};

static int64_t integer_at(weft_dtype dtype, const void *numbers, int64_t i)
{
    if (dtype == WEFT_I64) return ((const int64_t *)numbers)[i];
    if (dtype == WEFT_I32) return ((const int32_t *)numbers)[i];
    return ((const uint8_t *)numbers)[i];
}

static void put_integer(weft_dtype dtype, void *numbers, int64_t i, int64_t number)
{
    if (dtype == WEFT_I64)
        ((int64_t *)numbers)[i] = number;
    else if (dtype == WEFT_I32)
        ((int32_t *)numbers)[i] = (int32_t)number;
    else
        ((uint8_t *)numbers)[i] = (uint8_t)number;
}

static weft_status integers(weft_dtype from, const void *numbers, weft_dtype dtype, void *to,
                            int64_t n, weft_error *error)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = integer_at(from, numbers, i);
        if (number < ranges[dtype].low || number > ranges[dtype].high)
            return weft_fail(error, WEFT_USAGE,
                             "a number of the data is %lld, and %s holds %lld to %lld; give the "
                             "input a wider dtype",
                             (long long)number, weft_dtype_name(dtype),
                             (long long)ranges[dtype].low, (long long)ranges[dtype].high);
        put_integer(dtype, to, i, number);
    }
    return WEFT_OK;
}

enum { PART = 256 };

/* Of a part, in memory of its own: where both end at one place a number is never written past those that wait to be read. */
static weft_status convert_part(weft_dtype from, const void *numbers, weft_dtype dtype, void *to,
                                int64_t n, weft_error *error)
{
    int64_t room[PART]; /* the widest there are */
    memcpy(room, numbers, (size_t)n * weft_dtype_bytes(from));
    if (!weft_dtype_is_float(dtype)) return integers(from, room, dtype, to, n, error);
    for (int64_t i = 0; i < n; i++)
        weft_dtype_put(dtype, to, i, weft_dtype_get(from, room, i));
    return WEFT_OK;
}

weft_status weft_convert(weft_dtype from, const void *numbers, weft_dtype dtype, void *to,
                         int64_t n, weft_error *error)
{
    for (int64_t at = 0; at < n; at += PART)
        WEFT_TRY(convert_part(from, (const char *)numbers + (size_t)at * weft_dtype_bytes(from),
                              dtype, (char *)to + (size_t)at * weft_dtype_bytes(dtype),
                              n - at < PART ? n - at : PART, error));
    return WEFT_OK;
}
