/* relay.c: relays are run; see relay.h. */
#include "cpu/relay.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { LINE = 64, MOST_TILE = WEFT_TILE_VECTORS * 16 };

/* Legs that are no op's. Of the next block as much is asked for as the tile has lines; past the end in vain. `clean`: what
 * code of narrow vectors wants after wide ones; the compiler does not see that the last leg leaves them. */
#define LEGS_OF_RELAYS(bytes, isa, clean, past)                                                    \
    typedef float __attribute__((vector_size(bytes), aligned(4), may_alias)) loose_##bytes;        \
    enum { TILE_##bytes = WEFT_TILE_VECTORS * bytes / sizeof(float) };                             \
    isa static void load_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))                \
    {                                                                                              \
        const loose_##bytes *x = (const void *)((const float *)leg->data + at);                    \
        (void)v0, (void)v1, (void)v2, (void)v3, (void)v4, (void)v5, (void)v6, (void)v7;            \
        WEFT_GO_ON(bytes, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);                         \
    }                                                                                              \
    isa static void store_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))               \
    {                                                                                              \
        loose_##bytes *y = (void *)((float *)leg->data + at);                                      \
        y[0] = v0, y[1] = v1, y[2] = v2, y[3] = v3, y[4] = v4, y[5] = v5, y[6] = v6, y[7] = v7;    \
        WEFT_GO_ON(bytes, v0, v1, v2, v3, v4, v5, v6, v7);                                         \
    }                                                                                              \
    isa static void stream_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))              \
    {                                                                                              \
        char *y = (char *)((float *)leg->data + at);                                               \
        past(y, v0), past(y + bytes, v1), past(y + 2 * bytes, v2), past(y + 3 * bytes, v3);        \
        past(y + 4 * bytes, v4), past(y + 5 * bytes, v5), past(y + 6 * bytes, v6);                 \
        past(y + 7 * bytes, v7);                                                                   \
        WEFT_GO_ON(bytes, v0, v1, v2, v3, v4, v5, v6, v7);                                         \
    }                                                                                              \
    isa static void ask_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))                 \
    {                                                                                              \
        const char *next = (const char *)((const float *)leg->data + at);                          \
        for (int line = 0; line < WEFT_TILE_VECTORS * bytes / LINE; line++)                        \
            __builtin_prefetch(next + LINE * line);                                                \
        WEFT_GO_ON(bytes, v0, v1, v2, v3, v4, v5, v6, v7);                                         \
    }                                                                                              \
    isa static void end_##bytes(const weft_leg *leg, int64_t at, WEFT_TILE(bytes))                 \
    {                                                                                              \
        (void)leg, (void)at;                                                                       \
        (void)v0, (void)v1, (void)v2, (void)v3, (void)v4, (void)v5, (void)v6, (void)v7;            \
    }                                                                                              \
    isa static void run_##bytes(const weft_leg *leg, int64_t n)                                    \
    {                                                                                              \
        for (int64_t at = 0; at + (int64_t)TILE_##bytes <= n; at += TILE_##bytes) {                \
            const loose_##bytes *x = (const void *)((const float *)leg->data + at);                \
            WEFT_GO_ON(bytes, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);                     \
        }                                                                                          \
        clean;                                                                                     \
    }
#define RELAY_WIDTH(bytes)                                                                         \
    {                                                                                              \
        TILE_##bytes, (weft_leg_run)load_##bytes, (weft_leg_run)store_##bytes,                     \
            (weft_leg_run)stream_##bytes, (weft_leg_run)ask_##bytes, (weft_leg_run)end_##bytes,    \
            run_##bytes                                                                            \
    }

/* Past the caches; addresses are multiples of a vector. */
#ifdef __x86_64__
#define PAST_16(y, v) _mm_stream_ps((float *)(void *)(y), (__m128)(v))
#else
#define PAST_16(y, v) (*(loose_16 *)(void *)(y) = (v))
#endif
#define PAST_32(y, v) _mm256_stream_ps((float *)(void *)(y), (__m256)(v))
#define PAST_64(y, v) _mm512_stream_ps((float *)(void *)(y), (__m512)(v))

LEGS_OF_RELAYS(16, , (void)0, PAST_16)
#ifdef WEFT_HAS_CLONES
LEGS_OF_RELAYS(32, __attribute__((target("arch=x86-64-v3"))), __builtin_ia32_vzeroupper(), PAST_32)
LEGS_OF_RELAYS(64, __attribute__((target("arch=x86-64-v4"))), __builtin_ia32_vzeroupper(), PAST_64)
const weft_relay_width weft_relay_widths[WEFT_LEG_WIDTHS] = {RELAY_WIDTH(16), RELAY_WIDTH(32),
                                                             RELAY_WIDTH(64)};
int weft_relay_width_index(void)
{
    return __builtin_cpu_supports("x86-64-v4") ? 2 : __builtin_cpu_supports("x86-64-v3") ? 1 : 0;
}
#else
const weft_relay_width weft_relay_widths[WEFT_LEG_WIDTHS] = {RELAY_WIDTH(16)};
int weft_relay_width_index(void)
{
    return 0;
}
#endif

void weft_relay_fence(void)
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

/* ---- less than a tile ------------------------------------------------------------------------ */

static float *begin_of(const weft_relay_leg *leg, const weft_lane *lane, int64_t done)
{
    return (float *)(void *)lane->at[leg->ref] + done;
}

void weft_rest_load(const weft_relay_leg *leg, const weft_lane *lane, float *tile, int64_t done,
                    int64_t n)
{
    memcpy(tile, begin_of(leg, lane, done), (size_t)n * sizeof *tile);
}

void weft_rest_store(const weft_relay_leg *leg, const weft_lane *lane, float *tile, int64_t done,
                     int64_t n)
{
    memcpy(begin_of(leg, lane, done), tile, (size_t)n * sizeof *tile);
}

void weft_rest_none(const weft_relay_leg *leg, const weft_lane *lane, float *tile, int64_t done,
                    int64_t n)
{
    (void)leg, (void)lane, (void)tile, (void)done, (void)n;
}

void weft_rest_op(const weft_relay_leg *leg, const weft_lane *lane, float *tile, int64_t done,
                  int64_t n)
{
    const bool is_first = leg->kind != WEFT_LEG_BLOCK_AND && leg->kind != WEFT_LEG_NUMBER_AND;
    const bool is_number = leg->kind == WEFT_LEG_AND_NUMBER || leg->kind == WEFT_LEG_NUMBER_AND;
    float numbers[MOST_TILE];
    const float *other = leg->ref == 0 ? NULL : begin_of(leg, lane, is_number ? 0 : done);
    for (int64_t i = 0; i < n && is_number; i++)
        numbers[i] = *other;
    if (is_number) other = numbers;
    const void *const x[3] = {is_first ? tile : other, is_first ? other : tile};
    leg->block(n, tile, x, &lane->env[leg->number]);
}

/* ---- an act ---------------------------------------------------------------------------------- */

/* Never read through, nor written: a pointer as others of legs are. */
static char *asked_by(const weft_space *s, const weft_lane *lane, const weft_relay_leg *leg)
{
    if (leg->ahead == 0 || s->refs[leg->ref].inner != NULL)
        return (char *)(uintptr_t)weft_lane_next(s, lane, leg->ref, sizeof(float));
    return lane->at[leg->ref] + leg->ahead * (int64_t)sizeof(float);
}

void weft_act_relay(const weft_space *s, weft_lane *lane, const weft_act *act)
{
    const weft_relay_width *width = act->width;
    const int64_t whole = lane->n / width->tile * width->tile;
    weft_leg legs[WEFT_MOST_LEGS];
    for (int k = 0; k < act->n_legs; k++) {
        const weft_relay_leg *leg = &act->legs[k];
        char *data = lane->at[leg->ref];
        if (leg->run == width->ask) data = asked_by(s, lane, leg);
        const bool is_loose = leg->run == width->stream && (uintptr_t)data % LINE != 0;
        legs[k] = (weft_leg){is_loose ? width->store : leg->run, data, &lane->env[leg->number]};
    }
    width->run(legs, whole);
    float tile[MOST_TILE];
    for (int k = 0; k < act->n_legs && whole < lane->n; k++)
        act->legs[k].rest(&act->legs[k], lane, tile, whole, lane->n - whole);
}
