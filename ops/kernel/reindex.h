/* reindex.h: which elements of y[o] = x[(stride o + offset) / over] are elements of x: a run with steps in both. For the op and
 * for the kernels of all devices.
 */
#ifndef WEFT_REINDEX_H
#define WEFT_REINDEX_H

#include "weft/extend/kernel.h"

/* y[to + i to_step] = x[from + i from_step], i < count; to_step is above 0. */
typedef struct weft_reindex_run {
    int64_t count, to, to_step, from, from_step;
} weft_reindex_run;

static inline int64_t weft_reindex_common(int64_t a, int64_t b)
{
    for (a = a < 0 ? -a : a; b != 0;) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static inline int64_t weft_reindex_floor(int64_t x, int64_t by) /* by above 0 */
{
    return x / by - (x % by < 0);
}

/* Of elements [begin, end) of y those that are one of [low, high) of x. */
static inline weft_reindex_run weft_reindex_between(const weft_reindex_attributes *r, int64_t begin,
                                                    int64_t end, int64_t low, int64_t high)
{
    weft_reindex_run run = {.count = 0};
    const int64_t common = weft_reindex_common(r->stride, r->over);
    if (begin >= end || low >= high) return run;
    run.to = begin;
    run.to_step = r->over / common, run.from_step = r->stride / common;
    while (run.to < end && run.to - begin < run.to_step && /* a residue that repeats */
           (r->stride * run.to + r->offset) % r->over != 0)
        run.to++;
    if (run.to >= end || run.to - begin >= run.to_step) return run;
    run.from = (r->stride * run.to + r->offset) / r->over;
    /* i of which from + i from_step is in [low, high), mirrored where from falls */
    const int64_t step = run.from_step < 0 ? -run.from_step : run.from_step;
    const int64_t at = run.from_step < 0 ? -run.from : run.from;
    const int64_t least = run.from_step < 0 ? 1 - high : low;
    const int64_t past = run.from_step < 0 ? 1 - low : high;
    int64_t first = -weft_reindex_floor(at - least, step);
    int64_t last = weft_reindex_floor(past - 1 - at, step);
    if (first < 0) first = 0;
    if (last > (end - 1 - run.to) / run.to_step) last = (end - 1 - run.to) / run.to_step;
    if (last < first) return run;
    run.count = last - first + 1;
    run.to += first * run.to_step;
    run.from += first * run.from_step;
    return run;
}

/* Whether any of [0, to_size) has a tap that is an element of x, tap t `apart` elements of offset behind the one before: strides
 * may step over all that there are. */
static inline bool weft_reindex_reaches(weft_reindex_attributes r, int64_t taps, int64_t apart)
{
    for (int64_t t = 0; t < taps; t++, r.offset += apart)
        if (weft_reindex_between(&r, 0, r.to_size, 0, r.size).count > 0) return true;
    return false;
}

#endif
