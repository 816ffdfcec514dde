/* numbers: one table of the types of numbers that safetensors files have.
 *
 * source  https://github.com/huggingface/safetensors, "Dtype"
 */
#include "numbers.h"

#include <stddef.h>
#include <string.h>

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
CONVERT(of_i8, int8_t, int32_t, true, x[i])
CONVERT(of_i16, int16_t, int32_t, true, x[i])
CONVERT(of_u16, uint16_t, int32_t, true, x[i])
CONVERT(of_u32, uint32_t, int64_t, true, x[i])
CONVERT(of_u64, uint64_t, int64_t, x[i] <= INT64_MAX, (int64_t)x[i])

static const number_type types[] = {
    {"F32", "f32", 4, WEFT_F32, NULL},
    {"F64", "f64", 8, WEFT_F64, NULL},
    {"I32", "i32", 4, WEFT_I32, NULL},
    {"F16", "f16", 2, WEFT_F16, NULL},
    {"BF16", "bf16", 2, WEFT_BF16, NULL},
    {"I8", "i8", 1, WEFT_I32, of_i8},
    {"U8", "u8", 1, WEFT_U8, NULL},
    {"I16", "i16", 2, WEFT_I32, of_i16},
    {"U16", "u16", 2, WEFT_I32, of_u16},
    {"U32", "u32", 4, WEFT_I64, of_u32},
    {"I64", "i64", 8, WEFT_I64, NULL},
    {"U64", "u64", 8, WEFT_I64, of_u64},
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
