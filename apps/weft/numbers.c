/* numbers: one table of the types of numbers that safetensors files have.
 *
 * source  https://github.com/huggingface/safetensors, "Dtype"; IEEE 754-2019, 3.6, for binary16
 */
#include "numbers.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Sign, 5 bits of exponent, 10 of fraction; every one of them is a number of f32. */
static float f32_of_f16(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits >> 15 ? -1.0F : 1.0F;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)fraction, -24);
    return sign * ldexpf((float)(fraction + 1024), exponent - 25);
}

/* The upper half of an f32. */
static float f32_of_bf16(uint16_t bits)
{
    const uint32_t whole = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &whole, sizeof number);
    return number;
}

/* Numbers of a file begin anywhere in memory that malloc gave, so each is aligned to its own size. */
#define CONVERT(name, from_type, to_type, fits, number)                                            \
    static int64_t name(void *to, const void *from, int64_t count)                                 \
    {                                                                                              \
        const from_type *x = from;                                                                 \
        to_type *y = to;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            if (!(fits)) return i;                                                                 \
            y[i] = (number);                                                                       \
        }                                                                                          \
        return count;                                                                              \
    }
CONVERT(of_f16, uint16_t, float, true, f32_of_f16(x[i]))
CONVERT(of_bf16, uint16_t, float, true, f32_of_bf16(x[i]))
CONVERT(of_i8, int8_t, int32_t, true, x[i])
CONVERT(of_u8, uint8_t, int32_t, true, x[i])
CONVERT(of_i16, int16_t, int32_t, true, x[i])
CONVERT(of_u16, uint16_t, int32_t, true, x[i])
CONVERT(of_u32, uint32_t, int32_t, x[i] <= INT32_MAX, (int32_t)x[i])
CONVERT(of_i64, int64_t, int32_t, x[i] >= INT32_MIN && x[i] <= INT32_MAX, (int32_t)x[i])
CONVERT(of_u64, uint64_t, int32_t, x[i] <= INT32_MAX, (int32_t)x[i])

static const number_type types[] = {
    {"F32", "f32", 4, WEFT_F32, NULL},
    {"F64", "f64", 8, WEFT_F64, NULL},
    {"I32", "i32", 4, WEFT_I32, NULL},
    {"F16", "f16", 2, WEFT_F32, of_f16},
    {"BF16", "bf16", 2, WEFT_F32, of_bf16},
    {"I8", "i8", 1, WEFT_I32, of_i8},
    {"U8", "u8", 1, WEFT_I32, of_u8},
    {"I16", "i16", 2, WEFT_I32, of_i16},
    {"U16", "u16", 2, WEFT_I32, of_u16},
    {"U32", "u32", 4, WEFT_I32, of_u32},
    {"I64", "i64", 8, WEFT_I32, of_i64},
    {"U64", "u64", 8, WEFT_I32, of_u64},
    {"BOOL", "bool", 1, WEFT_DTYPES, NULL},
    {"F8_E4M3", "f8_e4m3", 1, WEFT_DTYPES, NULL},
    {"F8_E5M2", "f8_e5m2", 1, WEFT_DTYPES, NULL},
};

const number_type *number_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}
