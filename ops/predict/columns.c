/* columns: the arithmetic of a walk, on all columns at once. See columns.h. */
#include "columns.h"

#include "weft/extend/target_clones.h"
#include "weft/philox.h"

#include <math.h>

static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

WEFT_TARGET_CLONES static void add(int n, double *now, const double *seconds)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++)
        now[k] += seconds[k];
}

WEFT_TARGET_CLONES static void find_later(int n, double *begin, const double *now,
                                          const double *over)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++)
        begin[k] = now[k] > over[k] ? now[k] : over[k];
}

WEFT_TARGET_CLONES static void find_end(int n, double *end, const double *begin,
                                        const double *seconds)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++)
        end[k] = begin[k] + seconds[k];
}

WEFT_TARGET_CLONES static void await(int n, double *now, const double *begin, const double *end,
                                     const double *late, const double *crowded)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++) {
        const double wakes = begin[k] - now[k] > late[k] ? late[k] : 0;
        const double awake = end[k] + crowded[k] + wakes;
        now[k] = awake > now[k] ? awake : now[k];
    }
}

WEFT_TARGET_CLONES static void look(int n, const double *now, const double *begin,
                                    const double *end, const double *cpu, double *taken,
                                    double *until)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++) {
        const bool goes_on = begin[k] <= now[k];
        taken[k] += goes_on ? cpu[k] : 0;
        until[k] = lesser(until[k], goes_on ? end[k] : begin[k]);
    }
}

WEFT_TARGET_CLONES static bool work(int n, double *now, double *left, const double *taken,
                                    const double *until)
{
    int n_left = 0;
    WEFT_IVDEP
    for (int k = 0; k < n; k++) {
        const double rate = 1 - lesser(taken[k], 1);
        const double end = lesser(until[k], now[k] + left[k] / rate);
        const double later = left[k] - rate * (until[k] - now[k]);
        const bool works = left[k] > 0, is_done = !works || end < until[k];
        now[k] = works ? end : now[k];
        left[k] = is_done ? 0 : later;
        n_left += left[k] > 0;
    }
    return n_left > 0;
}

WEFT_TARGET_CLONES static bool any(int n, const double *end, const double *now)
{
    int found = 0;
    for (int k = 0; k < n; k++)
        found += end[k] <= now[k];
    return found > 0;
}

WEFT_TARGET_CLONES static void draw_units(int n, uint64_t seed, uint64_t counter,
                                          const uint32_t *stream, const uint32_t *draw,
                                          double *units)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++) {
        uint32_t words[4];
        weft_philox((weft_philox_key){seed, stream[k], draw[k]}, counter, words);
        for (int w = 0; w < 4; w++) /* 24 bits: a signed word has room for them */
            units[w * n + k] = (double)(int32_t)(words[w] >> 8) * (1.0 / 16777216.0);
    }
}

WEFT_TARGET_CLONES static void vary(int n, double *seconds, double usual, double twice,
                                    const double *units, const double *slower)
{
    WEFT_IVDEP
    for (int k = 0; k < n; k++)
        seconds[k] = usual * (1 + twice * units[k]) * slower[k];
}

/* Clones that are not static would be exported, whatever else is hidden. */
void weft_columns_add(int n, double *now, const double *seconds)
{
    add(n, now, seconds);
}

void weft_columns_later(int n, double *begin, const double *now, const double *over)
{
    find_later(n, begin, now, over);
}

void weft_columns_end(int n, double *end, const double *begin, const double *seconds)
{
    find_end(n, end, begin, seconds);
}

void weft_columns_await(int n, double *now, const double *begin, const double *end,
                        const double *late, const double *crowded)
{
    await(n, now, begin, end, late, crowded);
}

void weft_columns_look(int n, const double *now, const double *begin, const double *end,
                       const double *cpu, double *taken, double *until)
{
    look(n, now, begin, end, cpu, taken, until);
}

bool weft_columns_work(int n, double *now, double *left, const double *taken, const double *until)
{
    return work(n, now, left, taken, until);
}

bool weft_columns_any(int n, const double *end, const double *now)
{
    return any(n, end, now);
}

void weft_columns_draw(int n, uint64_t seed, uint64_t counter, const uint32_t *stream,
                       const uint32_t *draw, double *units)
{
    draw_units(n, seed, counter, stream, draw, units);
}

void weft_columns_vary(int n, double *seconds, double usual, double twice, const double *units,
                       const double *slower)
{
    vary(n, seconds, usual, twice, units, slower);
}
