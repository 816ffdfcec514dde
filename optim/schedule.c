/* schedule.c: learning rates as scalars of the graph, functions of the number of the update. */
#include <math.h>

#include "op.h"
#include "weft/ops.h"
#include "update.h"

static bool is_rate(weft_graph *graph, const char *schedule, double rate)
{
    if (isfinite(rate)) return true;
    weft_graph_fail(graph, "%s: a rate is %g; it is a finite number", schedule, rate);
    return false;
}

weft_value weft_constant_rate(weft_graph *graph, weft_dtype dtype, double rate)
{
    if (!is_rate(graph, "constant_rate", rate)) return weft_no_value(graph);
    return weft_constant(graph, dtype, WEFT_SCALAR, rate);
}

/* min(1, t / length), in f64: t may be large and the quotient small. */
static weft_value ramp(weft_graph *graph, double begin, double length)
{
    weft_value t = weft_step_number(graph);
    weft_value one = weft_constant(graph, WEFT_F64, WEFT_SCALAR, 1.0);
    return weft_minimum(weft_scale(weft_shift(t, -begin), 1.0 / length), one);
}

weft_value weft_warmup(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup)
{
    if (warmup < 0)
        return weft_graph_fail(graph, "warmup: %lld runs; it is at least 0", (long long)warmup);
    if (!is_rate(graph, "warmup", rate)) return weft_no_value(graph);
    if (warmup <= 1) return weft_constant_rate(graph, dtype, rate);
    return weft_cast(weft_scale(ramp(graph, 0.0, (double)warmup), rate), dtype);
}

/* Loshchilov and Hutter 2017, "SGDR", without restarts. */
weft_value weft_warmup_cosine(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup,
                              int64_t total, double floor)
{
    if (warmup < 0 || total <= warmup)
        return weft_graph_fail(graph,
                               "warmup_cosine: warm-up lasts %lld runs of %lld in total; it is at "
                               "least 0 and shorter than the total",
                               (long long)warmup, (long long)total);
    if (!is_rate(graph, "warmup_cosine", rate) || !is_rate(graph, "warmup_cosine", floor))
        return weft_no_value(graph);
    const double pi = 3.14159265358979323846;
    weft_value done = ramp(graph, (double)warmup, (double)(total - warmup));
    weft_value wave = weft_shift(weft_cos(weft_scale(done, pi)), 1.0); /* 2 at warmup, 0 at total */
    weft_value falling = weft_shift(weft_scale(wave, 0.5 * (rate - floor)), floor);
    if (warmup == 0) return weft_cast(falling, dtype);
    weft_value rising = weft_scale(ramp(graph, 0.0, (double)warmup), rate);
    weft_value end = weft_constant(graph, WEFT_F64, WEFT_SCALAR, (double)warmup);
    weft_value is_warm = weft_greater(weft_step_number(graph), end);
    return weft_cast(weft_where(is_warm, falling, rising), dtype);
}
