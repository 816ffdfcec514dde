/* attention_panel_math.c: the softmax of a panel's query rows side by side; see attention_panels.h.
 *
 * Sums over a part are of the scores' type, and then added up in double.
 */
#include "cpu/attention_panels.h"
#include "weft/extend/math.h"

#define PANEL_MATH(T, x, WIDTH)                                                                    \
    WEFT_INLINE void hide_##x(const int w, int64_t n, const int32_t *first, const int32_t *end,    \
                              T *s, int64_t width)                                                 \
    {                                                                                              \
        int32_t begins[WEFT_PANEL], ends[WEFT_PANEL];                                              \
        memcpy(begins, first, sizeof(int32_t) * (size_t)w);                                        \
        memcpy(ends, end, sizeof(int32_t) * (size_t)w);                                            \
        for (int32_t j = 0; j < n; j++, s += width)                                                \
            for (int i = 0; i < w; i++)                                                            \
                s[i] = ((j >= begins[i]) & (j < ends[i])) ? s[i] : (T)-INFINITY;                   \
    }                                                                                              \
    WEFT_INLINE void raise_##x(const int w, int64_t n, T *to, const T *s, int64_t width)           \
    {                                                                                              \
        T max[WEFT_PANEL];                                                                         \
        memcpy(max, to, sizeof(T) * (size_t)w);                                                    \
        for (int64_t j = 0; j < n; j++, s += width)                                                \
            for (int i = 0; i < w; i++)                                                            \
                max[i] = s[i] > max[i] ? s[i] : max[i];                                            \
        memcpy(to, max, sizeof(T) * (size_t)w);                                                    \
    }                                                                                              \
    WEFT_INLINE void enter_##x(const int w, int64_t n, weft_panel_state *state, int64_t from,      \
                               const T *base_of, T *s, int64_t width)                              \
    {                                                                                              \
        T base[WEFT_PANEL], sum[WEFT_PANEL] = {0};                                                 \
        memcpy(base, base_of, sizeof(T) * (size_t)w);                                              \
        for (int64_t j = 0; j < n; j++, s += width)                                                \
            for (int i = 0; i < w; i++) {                                                          \
                const T e = weft_exp_low_##x(s[i] - base[i]);                                      \
                s[i] = e;                                                                          \
                sum[i] += e;                                                                       \
            }                                                                                      \
        for (int i = 0; i < w; i++)                                                                \
            state->sum[from + i] += (double)sum[i];                                                \
    }                                                                                              \
    WEFT_INLINE void differentiate_##x(const int w, int64_t n, const T *base_of, const T *over_of, \
                                       const T *mean_of, T *s, T *dp, int64_t width)               \
    {                                                                                              \
        T base[WEFT_PANEL], over[WEFT_PANEL], mean[WEFT_PANEL];                                    \
        memcpy(base, base_of, sizeof(T) * (size_t)w);                                              \
        memcpy(over, over_of, sizeof(T) * (size_t)w);                                              \
        memcpy(mean, mean_of, sizeof(T) * (size_t)w);                                              \
        for (int64_t j = 0; j < n; j++, s += width, dp += width)                                   \
            for (int i = 0; i < w; i++) {                                                          \
                s[i] = weft_exp_low_##x(s[i] - base[i]) * over[i];                                 \
                dp[i] = s[i] * (dp[i] - mean[i]);                                                  \
            }                                                                                      \
    }                                                                                              \
    WEFT_TARGET_CLONES static void hides_##x(const weft_panel_part *part, const int32_t *first,    \
                                             const int32_t *end, void *scores, int64_t width)      \
    {                                                                                              \
        T *s = (T *)scores + part->from * WIDTH;                                                   \
        if (part->vectors == 1) hide_##x(WIDTH, part->n, first, end, s, width);                    \
        if (part->vectors == 2) hide_##x(2 * WIDTH, part->n, first, end, s, width);                \
        if (part->vectors == 3) hide_##x(3 * WIDTH, part->n, first, end, s, width);                \
        if (part->vectors == 4) hide_##x(4 * WIDTH, part->n, first, end, s, width);                \
    }                                                                                              \
    static void resume_##x(const weft_panel_state *state, weft_panel_rows *rows, int vectors)      \
    {                                                                                              \
        for (int i = 0; i < vectors * WIDTH; i++)                                                  \
            ((T *)(void *)rows->max)[i] = (T)state->max[i];                                        \
    }                                                                                              \
    WEFT_TARGET_CLONES static void raises_##x(const weft_panel_part *part, weft_panel_rows *rows,  \
                                              const void *scores, int64_t width)                   \
    {                                                                                              \
        const T *s = (const T *)scores + part->from * WIDTH;                                       \
        T *max = (T *)(void *)rows->max + part->from * WIDTH;                                      \
        if (part->vectors == 1) raise_##x(WIDTH, part->n, max, s, width);                          \
        if (part->vectors == 2) raise_##x(2 * WIDTH, part->n, max, s, width);                      \
        if (part->vectors == 3) raise_##x(3 * WIDTH, part->n, max, s, width);                      \
        if (part->vectors == 4) raise_##x(4 * WIDTH, part->n, max, s, width);                      \
    }                                                                                              \
    WEFT_TARGET_CLONES static void settles_##x(weft_panel_state *state, weft_panel_rows *rows,     \
                                               int vectors, double *by)                            \
    {                                                                                              \
        const T *max = (const T *)(const void *)rows->max;                                         \
        T *base = (T *)(void *)rows->base, factor[WEFT_PANEL];                                     \
        for (int i = 0; i < vectors * WIDTH; i++) {                                                \
            const T before = (T)state->max[i];                                                     \
            base[i] = max[i] == (T)-INFINITY ? 0 : max[i];                                         \
            const T e = weft_exp_low_##x(before - base[i]);                                        \
            factor[i] = before == max[i] ? 1 : e;                                                  \
        }                                                                                          \
        for (int i = 0; i < vectors * WIDTH; i++) {                                                \
            by[i] = (double)factor[i];                                                             \
            state->max[i] = (double)max[i];                                                        \
            state->sum[i] *= by[i];                                                                \
        }                                                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void enters_##x(                                                     \
        const weft_panel_part *part, weft_panel_state *state, const weft_panel_rows *rows,         \
        void *scores, int64_t width)                                                               \
    {                                                                                              \
        const int64_t from = part->from * WIDTH;                                                   \
        T *s = (T *)scores + from;                                                                 \
        const T *base = (const T *)(const void *)rows->base + from;                                \
        if (part->vectors == 1) enter_##x(WIDTH, part->n, state, from, base, s, width);            \
        if (part->vectors == 2) enter_##x(2 * WIDTH, part->n, state, from, base, s, width);        \
        if (part->vectors == 3) enter_##x(3 * WIDTH, part->n, state, from, base, s, width);        \
        if (part->vectors == 4) enter_##x(4 * WIDTH, part->n, state, from, base, s, width);        \
    }                                                                                              \
    static void keeps_##x(const weft_row_kept *kept, const double *means, weft_panel_rows *rows,   \
                          int64_t n)                                                               \
    {                                                                                              \
        T *base = (T *)(void *)rows->base, *over = (T *)(void *)rows->over,                        \
          *mean = (T *)(void *)rows->mean;                                                         \
        for (int64_t i = 0; i < WEFT_PANEL; i++) {                                                 \
            base[i] = i < n ? (T)kept[i].base : 0;                                                 \
            over[i] = i < n ? (T)kept[i].over : 0;                                                 \
            mean[i] = i < n ? (T)means[i] : 0;                                                     \
        }                                                                                          \
    }                                                                                              \
    WEFT_TARGET_CLONES static void differentiates_##x(const weft_panel_part *part,                 \
                                                      const weft_panel_rows *rows, void *scores,   \
                                                      void *gradient, int64_t width)               \
    {                                                                                              \
        const int64_t from = part->from * WIDTH, n = part->n;                                      \
        T *s = (T *)scores + from, *dp = (T *)gradient + from;                                     \
        const T *base = (const T *)(const void *)rows->base + from,                                \
                *over = (const T *)(const void *)rows->over + from,                                \
                *mean = (const T *)(const void *)rows->mean + from;                                \
        if (part->vectors == 1) differentiate_##x(WIDTH, n, base, over, mean, s, dp, width);       \
        if (part->vectors == 2) differentiate_##x(2 * WIDTH, n, base, over, mean, s, dp, width);   \
        if (part->vectors == 3) differentiate_##x(3 * WIDTH, n, base, over, mean, s, dp, width);   \
        if (part->vectors == 4) differentiate_##x(4 * WIDTH, n, base, over, mean, s, dp, width);   \
    }

PANEL_MATH(float, f32, 16)
PANEL_MATH(double, f64, 8)

#define PANEL_TABLE(x)                                                                             \
    {                                                                                              \
        hides_##x, resume_##x, raises_##x, settles_##x, enters_##x, keeps_##x, differentiates_##x  \
    }
const weft_panel_math weft_panel_maths[WEFT_I32] = {PANEL_TABLE(f32), PANEL_TABLE(f64)};
