/* schedule.c: learning rates as scalars of the graph, functions of the number of the update and of nothing else: a run that
 * goes on from a checkpoint has the rates that it would have had.
 *
 * All are computed in f64: t may be large, and quotients of it small.
 */
#include <math.h>
#include <string.h>

#include "op.h"
#include "update.h"
#include "weft/name.h"
#include "weft/ops.h"

enum { MOST_PERIODS = 64 };
static const double pi = 3.14159265358979323846, most_updates = 4294967296.0; /* 2^32 */

/* What a schedule is made with. */
typedef struct course {
    weft_graph *graph;
    const weft_schedule_options *o;
    double begin; /* the update at which warm-up is over */
} course;

/* ---- parts ----------------------------------------------------------------------------------- */

static weft_value number(const course *c, double x)
{
    return weft_constant(c->graph, WEFT_F64, WEFT_SCALAR, x);
}

static weft_value now(const course *c)
{
    return weft_step_number(c->graph);
}

/* min(1, (t - begin) / length) */
static weft_value ramp(const course *c, double begin, double length)
{
    weft_value t = now(c);
    weft_value one = number(c, 1.0);
    return weft_minimum(weft_scale(weft_shift(t, -begin), 1.0 / length), one);
}

/* From `high` at done = 0 to `low` at 1, as half a cosine. */
static weft_value wave(weft_value done, double high, double low)
{
    weft_value two = weft_shift(weft_cos(weft_scale(done, pi)), 1.0); /* 2 at 0, 0 at 1 */
    return weft_shift(weft_scale(two, 0.5 * (high - low)), low);
}

/* `before` until the update `t`, and from there on `x`. */
static weft_value from(const course *c, double t, double x, weft_value before)
{
    return weft_where(weft_greater_equal(now(c), number(c, t)), number(c, x), before);
}

/* `rising` through warm-up, then `falling`. */
static weft_value joined(const course *c, weft_value rising, weft_value falling)
{
    weft_value end = number(c, c->begin);
    return weft_where(weft_greater(now(c), end), falling, rising);
}

/* ---- schedules, from the end of warm-up on ---------------------------------------------------- */

static weft_value constant(const course *c)
{
    return number(c, c->o->rate);
}

static weft_value linear(const course *c)
{
    weft_value done = ramp(c, c->begin, (double)c->o->total - c->begin);
    return weft_shift(weft_scale(done, c->o->floor - c->o->rate), c->o->rate);
}

/* Vaswani et al. 2017, "Attention is all you need". */
static weft_value inverse_sqrt(const course *c)
{
    const double size = c->o->rate * sqrt(fmax(c->begin, 1.0));
    return weft_maximum(weft_scale(weft_rsqrt(now(c)), size), number(c, c->o->floor));
}

/* Loshchilov and Hutter 2017, "SGDR", without restarts... */
static weft_value cosine(const course *c)
{
    weft_value done = ramp(c, c->begin, (double)c->o->total - c->begin);
    return wave(done, c->o->rate, c->o->floor);
}

static double growth_of(const weft_schedule_options *o)
{
    return o->growth == 0.0 ? 1.0 : o->growth;
}

/* Where the periods that grow begin, but for the first. Returns how many there are, at most MOST_PERIODS + 1. */
static int periods_of(const weft_schedule_options *o, double begins[MOST_PERIODS + 1])
{
    const double end = o->total > 0 ? (double)o->total : most_updates;
    double length = (double)o->period, at = (double)o->warmup + length;
    int n = 0;
    for (; n <= MOST_PERIODS && at < end; at += length) {
        begins[n++] = at;
        length *= growth_of(o);
    }
    return n;
}

/* ... and with them, each period `growth` times as long as that before. */
static weft_value cosine_restarts(const course *c)
{
    const double growth = growth_of(c->o);
    double begins[MOST_PERIODS + 1], length = (double)c->o->period;
    weft_value gone = weft_shift(now(c), -c->begin), long_ = number(c, length);
    if (growth == 1.0) gone = weft_mod(gone, long_);
    const int n = growth == 1.0 ? 0 : periods_of(c->o, begins);
    weft_value begin = number(c, 0.0);
    for (int i = 0; i < n; i++) {
        begin = from(c, begins[i], begins[i] - c->begin, begin);
        long_ = from(c, begins[i], length *= growth, long_);
    }
    return wave(weft_div(weft_sub(gone, begin), long_), c->o->rate, c->o->floor);
}

/* Smith and Topin 2018, "Super-convergence": up and down, each half a cosine. */
static weft_value one_cycle(const course *c)
{
    weft_value rising = wave(ramp(c, 0.0, c->begin), c->o->rate / 25.0, c->o->rate);
    return joined(c, rising, cosine(c));
}

static weft_value piecewise(const course *c)
{
    weft_value rate = number(c, c->o->rate);
    for (int i = 0; i < c->o->pieces.n_pieces; i++) {
        const weft_rate_piece *piece = &c->o->pieces.pieces[i];
        rate = from(c, (double)piece->from, c->o->rate * piece->scale, rate);
    }
    return rate;
}

/* ---- what options may be ---------------------------------------------------------------------- */

static weft_status check_total(const char *name, const weft_schedule_options *o, weft_error *error)
{
    if (o->total > o->warmup) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: warm-up lasts %lld runs of %lld in total; it is at least 0 and shorter "
                     "than the total",
                     name, (long long)o->warmup, (long long)o->total);
}

static weft_status check_periods(const char *name, const weft_schedule_options *o,
                                 weft_error *error)
{
    double begins[MOST_PERIODS + 1];
    if (o->period < 1)
        return weft_fail(error, WEFT_USAGE, "%s: its period is %lld runs; it is at least 1", name,
                         (long long)o->period);
    if (!(growth_of(o) >= 1.0 && isfinite(o->growth)))
        return weft_fail(error, WEFT_USAGE, "%s: its periods grow by %g; that is at least 1", name,
                         o->growth);
    if (growth_of(o) == 1.0 || periods_of(o, begins) <= MOST_PERIODS) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "%s: a period of %lld runs that grows by %g gives more than %d restarts; take "
                     "a longer one, a larger growth, or say the total",
                     name, (long long)o->period, o->growth, MOST_PERIODS);
}

static weft_status check_pieces(const char *name, const weft_schedule_options *o, weft_error *error)
{
    const weft_rate_piece *pieces = o->pieces.pieces;
    if (pieces == NULL || o->pieces.n_pieces < 1)
        return weft_fail(error, WEFT_USAGE,
                         "%s: there are no pieces; say from which run on the rate is what part of "
                         "its highest",
                         name);
    for (int i = 0; i < o->pieces.n_pieces; i++) {
        if (!isfinite(pieces[i].scale))
            return weft_fail(error, WEFT_USAGE, "%s: piece %d is %g times the rate; it is a number",
                             name, i, pieces[i].scale);
        if (i > 0 && pieces[i].from <= pieces[i - 1].from)
            return weft_fail(error, WEFT_USAGE,
                             "%s: piece %d begins at run %lld and the one before at %lld; list "
                             "them in order",
                             name, i, (long long)pieces[i].from, (long long)pieces[i - 1].from);
    }
    return WEFT_OK;
}

/* ---- the table -------------------------------------------------------------------------------- */

typedef struct schedule {
    const char *name;
    weft_value (*rate)(const course *c);
    weft_status (*check)(const char *name, const weft_schedule_options *o, weft_error *error);
    double rising; /* it rises by itself: through this part of the total, if no warm-up is said */
} schedule;

static const schedule schedules[] = {
    {"constant", constant, NULL, 0.0},
    {"linear", linear, check_total, 0.0},
    {"inverse_sqrt", inverse_sqrt, NULL, 0.0},
    {"cosine", cosine, check_total, 0.0},
    {"cosine_restarts", cosine_restarts, check_periods, 0.0},
    {"one_cycle", one_cycle, check_total, 0.3},
    {"piecewise", piecewise, check_pieces, 0.0},
};
enum { N_SCHEDULES = sizeof schedules / sizeof schedules[0] };

const char *weft_schedule_name(int index)
{
    return index >= 0 && index < N_SCHEDULES ? schedules[index].name : NULL;
}

static const schedule *find(const char *name, weft_error *error)
{
    const char *names[N_SCHEDULES];
    for (int i = 0; i < N_SCHEDULES; i++) {
        if (strcmp(name, schedules[i].name) == 0) return &schedules[i];
        names[i] = schedules[i].name;
    }
    (void)!weft_fail_unknown("schedule", name, names, N_SCHEDULES, error);
    return NULL;
}

weft_status weft_schedule_check(const char *name, const weft_schedule_options *o, weft_error *error)
{
    WEFT_TRY(weft_check_given(name != NULL, __func__, "name", error));
    WEFT_TRY(weft_check_given(o != NULL, __func__, "options", error));
    const schedule *s = find(name, error);
    if (s == NULL) return WEFT_USAGE;
    const double bad = isfinite(o->rate) ? o->floor : o->rate;
    if (!isfinite(bad))
        return weft_fail(error, WEFT_USAGE, "%s: a rate is %g; it is a finite number", name, bad);
    if (o->warmup < 0)
        return weft_fail(error, WEFT_USAGE, "%s: warm-up lasts %lld runs; it is at least 0", name,
                         (long long)o->warmup);
    return s->check == NULL ? WEFT_OK : s->check(name, o, error);
}

/* With warm-up in front, unless it rises by itself. */
static weft_value whole(const schedule *s, const course *c)
{
    weft_value falling = s->rate(c);
    if (s->rising > 0.0 || c->begin == 0.0) return falling;
    return joined(c, weft_scale(ramp(c, 0.0, c->begin), c->o->rate), falling);
}

/* "builder: constant: a rate is nan": weft_at puts the place behind the builder. */
static weft_value scheduled(const char *builder, weft_graph *graph, weft_dtype dtype,
                            const char *name, const weft_schedule_options *options)
{
    weft_error error = {WEFT_OK, -1, ""};
    if (weft_schedule_check(name, options, &error) != WEFT_OK)
        return weft_graph_fail(graph, "%s: %s", builder, error.message);
    const schedule *s = find(name, NULL);
    const double rising = floor(s->rising * (double)options->total);
    const double begin = options->warmup > 0 ? (double)options->warmup : rising;
    return weft_cast(whole(s, &(course){graph, options, begin}), dtype);
}

weft_value weft_schedule_rate(weft_graph *graph, weft_dtype dtype, const char *schedule_,
                              const weft_schedule_options *options)
{
    return scheduled("schedule_rate", graph, dtype, schedule_, options);
}

weft_value weft_constant_rate(weft_graph *graph, weft_dtype dtype, double rate)
{
    if (!isfinite(rate))
        return weft_graph_fail(graph, "constant_rate: a rate is %g; it is a finite number", rate);
    return weft_constant(graph, dtype, WEFT_SCALAR, rate);
}

weft_value weft_warmup(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup)
{
    const weft_schedule_options options = {.rate = rate, .warmup = warmup == 1 ? 0 : warmup};
    return scheduled("warmup", graph, dtype, "constant", &options);
}

weft_value weft_warmup_cosine(weft_graph *graph, weft_dtype dtype, double rate, int64_t warmup,
                              int64_t total, double floor)
{
    const weft_schedule_options options = {
        .rate = rate, .warmup = warmup, .total = total, .floor = floor};
    return scheduled("warmup_cosine", graph, dtype, "cosine", &options);
}
