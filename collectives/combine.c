/* combine.c: the monoids of partial results: identity and combination, by kind and dtype.
 *
 * A state is `width` numbers. argmax keeps its index as a number in double, as the bits of an int32
 * in float, so that indices past 2^24 stay exact.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "combine_states.h"
#include "weft/extend/target_clones.h"

/* The mathematics is in combine_list.inc and combine_states.h, which other devices compile too. `out` is a or b, or neither. */
#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    WEFT_TARGET_CLONES static void kind##_##suffix(void *out_, const void *a_, const void *b_,     \
                                                   int64_t n_states)                               \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *as = a_, *bs = b_;                                                                \
        WEFT_IVDEP                                                                                 \
        for (int64_t i = 0; i < n_states; i++) {                                                   \
            const T a = as[i], b = bs[i];                                                          \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void no_##kind##_##suffix(void *into_, int64_t n_states)                                \
    {                                                                                              \
        T *into = into_;                                                                           \
        for (int64_t i = 0; i < n_states; i++)                                                     \
            into[i] = (identity);                                                                  \
    }
#define COMBINE_STATES(kind, suffix, T, width)                                                     \
    static void kind##_##suffix(void *out, const void *a, const void *b, int64_t n_states)         \
    {                                                                                              \
        for (int64_t i = 0; i < width * n_states; i += width)                                      \
            weft_##kind##_state_##suffix((T *)out + i, (const T *)a + i, (const T *)b + i);        \
    }                                                                                              \
    static void no_##kind##_##suffix(void *into, int64_t n_states)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < width * n_states; i += width)                                      \
            weft_##kind##_empty_##suffix((T *)into + i);                                           \
    }
#include "combine_list.inc"
#undef COMBINE_EACH
#undef COMBINE_STATES

#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    [COMBINE_##kind][COMBINE_##suffix] = kind##_##suffix,
#define COMBINE_STATES(kind, suffix, T, width) [COMBINE_##kind][COMBINE_##suffix] = kind##_##suffix,
static const weft_combiner combiners[WEFT_COMBINES][WEFT_DTYPES] = {
#include "combine_list.inc"
};
#undef COMBINE_EACH
#undef COMBINE_STATES
#define COMBINE_EACH(kind, suffix, T, expression, identity)                                        \
    [COMBINE_##kind][COMBINE_##suffix] = no_##kind##_##suffix,
#define COMBINE_STATES(kind, suffix, T, width)                                                     \
    [COMBINE_##kind][COMBINE_##suffix] = no_##kind##_##suffix,
static const weft_identity identities[WEFT_COMBINES][WEFT_DTYPES] = {
#include "combine_list.inc"
};
#undef COMBINE_EACH
#undef COMBINE_STATES

weft_combiner weft_combiner_of(weft_combine combine, weft_dtype dtype)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if ((unsigned)dtype >= WEFT_DTYPES) return NULL;
    if (rule != NULL) return rule->combine[dtype];
    return (unsigned)combine < WEFT_COMBINES ? combiners[combine][dtype] : NULL;
}

static weft_identity identity_of(weft_combine combine, weft_dtype dtype)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if ((unsigned)dtype >= WEFT_DTYPES) return NULL;
    if (rule != NULL) return rule->identity[dtype];
    return (unsigned)combine < WEFT_COMBINES ? identities[combine][dtype] : NULL;
}

weft_combining weft_combining_of(weft_combine combine, weft_dtype dtype)
{
    if (weft_combiner_of(combine, dtype) == NULL) return (weft_combining){0};
    return (weft_combining){.combine = (int)combine,
                            .dtype = (int)dtype,
                            .width = weft_combine_width(combine),
                            .element = (int64_t)weft_dtype_bytes(dtype),
                            .host = weft_combiner_of(combine, dtype),
                            .identity = identity_of(combine, dtype)};
}

weft_status weft_combine_check(weft_combine combine, weft_dtype dtype, weft_error *error)
{
    if (weft_combiner_of(combine, dtype)) return WEFT_OK;
    if (combine == WEFT_NOT_PARTIAL)
        return weft_fail(
            error, WEFT_USAGE,
            "there is nothing to combine: WEFT_NOT_PARTIAL says that a value is whole; "
            "pass how parts combine, such as WEFT_SUM");
    return weft_fail(error, WEFT_USAGE,
                     "partial results of kind %s are not defined for %s; use a float dtype",
                     weft_combine_name(combine), weft_dtype_name(dtype));
}

uint64_t weft_combine_digest(weft_combine combine)
{
    const weft_combine_rule *rule = weft_combine_outside(combine);
    if (rule == NULL) return 0;
    const int32_t facts[] = {rule->width, rule->is_sum};
    return weft_digest(weft_digest(0, rule->name, strlen(rule->name)), facts, sizeof facts);
}

void weft_combines_print(char *text, size_t bytes)
{
    size_t used = 0;
    snprintf(text, bytes, "none");
    for (int k = WEFT_COMBINES; weft_combine_is_known((weft_combine)k) && used < bytes; k++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                 weft_combine_name((weft_combine)k));
}

void weft_combine_into(weft_combine combine, weft_dtype dtype, void *into, const void *with,
                       int64_t count)
{
    const weft_combiner rule = weft_combiner_of(combine, dtype);
    if (rule != NULL && into != NULL && with != NULL && count > 0)
        rule(into, into, with, count / weft_combine_width(combine));
}

void weft_combine_identity(weft_combine combine, weft_dtype dtype, void *into, int64_t count)
{
    const weft_identity rule = identity_of(combine, dtype);
    if (rule != NULL && into != NULL && count > 0) rule(into, count / weft_combine_width(combine));
}
