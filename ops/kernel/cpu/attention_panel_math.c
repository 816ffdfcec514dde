/* attention_panel_math.c: the softmax of a panel's query rows side by side; see attention_panels.h.
 *
 * Sums over a tile are floats, and then added up in double.
 */
#include "cpu/attention_panels.h"
#include "weft/extend/math.h"

#define PANEL_MATH(T, x, WIDTH)                                                                    \
    WEFT_INLINE void hide_##x(const weft_panel_state *state, const int w, T *s, int64_t from,      \
                              int64_t to)                                                          \
    {                                                                                              \
        int32_t first[WEFT_PANEL], end[WEFT_PANEL];                                                \
        memcpy(first, state->first, sizeof first);                                                 \
        memcpy(end, state->end, sizeof end);                                                       \
        for (int32_t j = (int32_t)from; j < to; j++)                                               \
            for (int i = 0; i < w; i++) {                                                          \
                const T score = s[j * w + i];                                                      \
                s[j * w + i] = ((j >= first[i]) & (j < end[i])) ? score : (T)-INFINITY;            \
            }                                                                                      \
    }                                                                                              \
    WEFT_INLINE void raise_##x(weft_panel_state *state, const int w, const T *s, int64_t n)        \
    {                                                                                              \
        T max[WEFT_PANEL];                                                                         \
        for (int i = 0; i < w; i++)                                                                \
            max[i] = (T)state->max[i];                                                             \
        for (int64_t j = 0; j < n; j++)                                                            \
            for (int i = 0; i < w; i++)                                                            \
                max[i] = s[j * w + i] > max[i] ? s[j * w + i] : max[i];                            \
        for (int i = 0; i < w; i++) {                                                              \
            const T before = (T)state->max[i], base = max[i] == (T)-INFINITY ? 0 : max[i];         \
            state->by[i] = before == max[i] ? 1 : (double)weft_exp_##x(before - base);             \
            state->max[i] = (double)max[i];                                                        \
            state->sum[i] *= state->by[i];                                                         \
            state->dot[i] *= state->by[i];                                                         \
        }                                                                                          \
    }                                                                                              \
    WEFT_INLINE void enter_##x(weft_panel_state *state, const int w, T *s, const T *dp, int64_t n) \
    {                                                                                              \
        T base[WEFT_PANEL], sum[WEFT_PANEL] = {0}, dot[WEFT_PANEL] = {0};                          \
        for (int i = 0; i < w; i++)                                                                \
            base[i] = state->max[i] == -(double)INFINITY ? 0 : (T)state->max[i];                   \
        for (int64_t j = 0; j < n; j++)                                                            \
            for (int i = 0; i < w; i++) {                                                          \
                const T e = weft_exp_##x(s[j * w + i] - base[i]);                                  \
                s[j * w + i] = e;                                                                  \
                sum[i] += e;                                                                       \
                if (dp != NULL) dot[i] += e * dp[j * w + i];                                       \
            }                                                                                      \
        for (int i = 0; i < w; i++) {                                                              \
            state->sum[i] += (double)sum[i];                                                       \
            state->dot[i] += (double)dot[i];                                                       \
        }                                                                                          \
    }                                                                                              \
    WEFT_INLINE void differentiate_##x(const weft_panel_state *state, const int w, T *s, T *dp,    \
                                       int64_t n, const bool is_entered)                           \
    {                                                                                              \
        T base[WEFT_PANEL], over[WEFT_PANEL], dot[WEFT_PANEL];                                     \
        for (int i = 0; i < w; i++) {                                                              \
            const double by = state->sum[i] == 0 ? 0 : 1 / state->sum[i];                          \
            base[i] = state->max[i] == -(double)INFINITY ? 0 : (T)state->max[i];                   \
            over[i] = (T)by;                                                                       \
            dot[i] = (T)(state->dot[i] * by);                                                      \
        }                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                            \
            for (int i = 0; i < w; i++) {                                                          \
                const T e = is_entered ? s[j * w + i] : weft_exp_##x(s[j * w + i] - base[i]);      \
                s[j * w + i] = e * over[i];                                                        \
                dp[j * w + i] = e * over[i] * (dp[j * w + i] - dot[i]);                            \
            }                                                                                      \
    }                                                                                              \
    WEFT_CLONES static void hides_##x(const weft_panel_state *state, int vectors, void *s,         \
                                      int64_t from, int64_t to)                                    \
    {                                                                                              \
        if (vectors == 1) hide_##x(state, WIDTH, s, from, to);                                     \
        if (vectors == 2) hide_##x(state, 2 * WIDTH, s, from, to);                                 \
        if (vectors == 3) hide_##x(state, 3 * WIDTH, s, from, to);                                 \
    }                                                                                              \
    WEFT_CLONES static void raises_##x(weft_panel_state *state, int vectors, const void *s,        \
                                       int64_t n)                                                  \
    {                                                                                              \
        if (vectors == 1) raise_##x(state, WIDTH, s, n);                                           \
        if (vectors == 2) raise_##x(state, 2 * WIDTH, s, n);                                       \
        if (vectors == 3) raise_##x(state, 3 * WIDTH, s, n);                                       \
    }                                                                                              \
    WEFT_CLONES static void enters_##x(weft_panel_state *state, int vectors, void *s,              \
                                       const void *dp, int64_t n)                                  \
    {                                                                                              \
        if (vectors == 1 && dp == NULL) enter_##x(state, WIDTH, s, NULL, n);                       \
        if (vectors == 2 && dp == NULL) enter_##x(state, 2 * WIDTH, s, NULL, n);                   \
        if (vectors == 3 && dp == NULL) enter_##x(state, 3 * WIDTH, s, NULL, n);                   \
        if (vectors == 1 && dp != NULL) enter_##x(state, WIDTH, s, dp, n);                         \
        if (vectors == 2 && dp != NULL) enter_##x(state, 2 * WIDTH, s, dp, n);                     \
        if (vectors == 3 && dp != NULL) enter_##x(state, 3 * WIDTH, s, dp, n);                     \
    }                                                                                              \
    WEFT_CLONES static void differentiates_##x(weft_panel_state *state, int vectors, void *s,      \
                                               void *dp, int64_t n, bool is_entered)               \
    {                                                                                              \
        if (vectors == 1 && is_entered) differentiate_##x(state, WIDTH, s, dp, n, true);           \
        if (vectors == 2 && is_entered) differentiate_##x(state, 2 * WIDTH, s, dp, n, true);       \
        if (vectors == 3 && is_entered) differentiate_##x(state, 3 * WIDTH, s, dp, n, true);       \
        if (vectors == 1 && !is_entered) differentiate_##x(state, WIDTH, s, dp, n, false);         \
        if (vectors == 2 && !is_entered) differentiate_##x(state, 2 * WIDTH, s, dp, n, false);     \
        if (vectors == 3 && !is_entered) differentiate_##x(state, 3 * WIDTH, s, dp, n, false);     \
    }

PANEL_MATH(float, f32, 16)
PANEL_MATH(double, f64, 8)

const weft_panel_math weft_panel_maths[WEFT_I32] = {
    {hides_f32, raises_f32, enters_f32, differentiates_f32},
    {hides_f64, raises_f64, enters_f64, differentiates_f64}};
