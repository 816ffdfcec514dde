/* storage: dtypes that are stored in one type and computed with in another: the blocks between the two, and which block
 * function does an element op on a dtype. See op.h.
 */
#include "op.h"

#include "element.h"
#include "weft/extend/half.h"

/* in[0], of T, to out, of R. */
#define BETWEEN(name, T, R, expression)                                                            \
    WEFT_TARGET_CLONES static void name(int64_t n, void *out, const void *const *in,               \
                                        const weft_block_env *env)                                 \
    {                                                                                              \
        R *out_ = out;                                                                             \
        const T *x_ = in[0];                                                                       \
        (void)env;                                                                                 \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = x_[i];                                                                     \
            out_[i] = (expression);                                                                \
        }                                                                                          \
    }
BETWEEN(widen_bf16, uint16_t, float, weft_f32_of_bf16(x))
BETWEEN(narrow_bf16, float, uint16_t, weft_bf16_of_f32(x))
BETWEEN(widen_f16, uint16_t, float, weft_f32_of_f16(x))
BETWEEN(narrow_f16, float, uint16_t, weft_f16_of_f32(x))
BETWEEN(widen_u8, uint8_t, int32_t, x)
BETWEEN(narrow_u8, int32_t, uint8_t, (uint8_t)x)

/* What goes on in a loop: rounded in f32, by legs too. */
#define ROUND(name, expression)                                                                    \
    WEFT_BLOCK_1(round_##name, float, float, expression)                                           \
    WEFT_LEGS(leg_##name, 0, WEFT_FROM_TILE, 0, expression)                                        \
    static const weft_relay relay_##name = {{[WEFT_LEG_ALONE] = WEFT_LEG_LIST(leg_##name)}};       \
    static const weft_element rounded_##name = {.size = sizeof(weft_element),                      \
                                                .block[WEFT_F32][WEFT_F32] = round_##name,         \
                                                .relay = &relay_##name,                            \
                                                .text[WEFT_F32][WEFT_F32] = #expression};
ROUND(bf16, weft_bf16_round(x))
ROUND(f16, weft_f16_round(x))
BETWEEN(round_u8, int32_t, int32_t, x & 255)
static const weft_element rounded_u8 = {.size = sizeof(weft_element),
                                        .block[WEFT_I32][WEFT_I32] = round_u8,
                                        .text[WEFT_I32][WEFT_I32] = "x & 255"};

const weft_storage weft_storages[WEFT_DTYPES] = {
    [WEFT_BF16] = {widen_bf16, narrow_bf16, &rounded_bf16, "weft_f32_of_bf16(x)",
                   "weft_bf16_of_f32(x)"},
    [WEFT_F16] = {widen_f16, narrow_f16, &rounded_f16, "weft_f32_of_f16(x)", "weft_f16_of_f32(x)"},
    [WEFT_U8] = {widen_u8, narrow_u8, &rounded_u8, "x", "(uint8_t)x"},
};

/* The expression of a block; of a table that is older than texts: NULL. */
static const char *text_of(const weft_element *element, weft_dtype in, weft_dtype out)
{
    return element->size >= sizeof *element ? element->text[in][out] : NULL;
}

bool weft_element_find(const weft_element *element, weft_dtype in, weft_dtype out,
                       weft_element_way *way)
{
    const weft_dtype wide_in = weft_dtype_computes(in), wide_out = weft_dtype_computes(out);
    const weft_dtype ways[][2] = {{in, out}, {wide_in, out}, {in, wide_out}, {wide_in, wide_out}};
    for (int k = 0; k < 4; k++) {
        *way = (weft_element_way){element->block[ways[k][0]][ways[k][1]], ways[k][0], ways[k][1],
                                  text_of(element, ways[k][0], ways[k][1])};
        if (way->block != NULL) return true;
    }
    return in != out && wide_in == wide_out; /* as it is: a cast between storages */
}
