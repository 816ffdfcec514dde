/* timeline: a plan walked through on a clock of each kind of rank, step by step, as the executor does it.
 *
 * - Work begins when the rank comes to it.
 * - An exchange begins when the last of its group has come to it and the one before it on its queue is over. Ranks that come
 *   earlier go on, until a step that needs it (weft_step.until).
 * - While an exchange goes on it takes its share of the rank's cores (weft_level.cpu), so work beside it takes longer.
 * - A scan's trips are walked through until two take equally long. The others are then alike, except the last, which leaves out
 *   the steps that are done ahead.
 */
#include "walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps that do the same to tensors that lie alike take equally long: one of each kind is looked up. */
static void find_kinds(timeline *t, int rank, weft_step_time *kinds)
{
    const weft_likes *likes = &t->plan->likes;
    for (uint32_t k = 0; k < likes->n_steps; k++)
        kinds[k] = weft_clock_step(&t->clock, &t->plan->steps[likes->steps[k]], rank);
}

static void find_seconds(timeline *t, const weft_predict_options *options, weft_step_time *kinds)
{
    for (int c = 0; c < t->classes.n; c++) {
        rank_clock *clock = &t->clocks[c];
        clock->rank = weft_class_rank(t->plan, &t->classes, c);
        const bool is_slow = options->slow_by > 0 && clock->rank == options->slow_rank;
        find_kinds(t, clock->rank, kinds);
        for (uint32_t s = 0; s < t->plan->n_steps; s++) {
            const weft_step_time time = kinds[t->plan->likes.of_step[s]];
            clock->seconds[s] = time.seconds;
            if (is_slow && weft_axes_of(&t->plan->steps[s]) == 0)
                clock->seconds[s] *= options->slow_by;
            if (clock->usual) clock->usual[s] = clock->seconds[s];
            if (clock->spread) clock->spread[s] = time.spread;
            if (c == 0) t->source[s] = (uint8_t)time.source;
        }
        t->besides = fmax(t->besides, weft_clock_besides(&t->clock, clock->rank));
    }
}

/* ---- one rank ------------------------------------------------------------------------------------------ */

/* The part of a rank's cores that exchanges take at `now`, and until when that stays so. */
static double taken_at(const rank_clock *clock, double now, double *until)
{
    double taken = 0;
    *until = INFINITY;
    for (uint32_t f = 0; f < clock->n_flights; f++) {
        const under_way *flight = &clock->flights[f];
        if (flight->begin > now)
            *until = fmin(*until, flight->begin);
        else if (flight->end > now) {
            *until = fmin(*until, flight->end);
            taken += flight->cpu;
        }
    }
    return fmin(taken, 1);
}

/* What makes work longer is the exchanges' that take the cores meanwhile. */
static void charge(timeline *t, const rank_clock *clock, double from, double to)
{
    double shares = 0, until;
    if (clock != t->clocks) return;
    const double lost = taken_at(clock, from, &until) * (to - from);
    for (uint32_t f = 0; f < clock->n_flights; f++)
        if (clock->flights[f].begin <= from && clock->flights[f].end > from)
            shares += clock->flights[f].cpu;
    for (uint32_t f = 0; f < clock->n_flights && shares > 0; f++)
        if (clock->flights[f].begin <= from && clock->flights[f].end > from)
            t->sums[clock->flights[f].step].charged += lost * clock->flights[f].cpu / shares;
}

static void work(timeline *t, rank_clock *clock, double seconds)
{
    while (seconds > 0) {
        double until;
        const double rate = 1 - taken_at(clock, clock->now, &until);
        const double end = rate > 0 ? fmin(until, clock->now + seconds / rate) : until;
        charge(t, clock, clock->now, end);
        seconds = end < until ? 0 : seconds - rate * (until - clock->now);
        clock->now = end;
    }
}

/* A rank does not go on before an exchange is over; one that has waited for others longer than it takes to wake is not awake at
 * once. Where ranks share cores, one of them always sleeps. */
static void await(timeline *t, rank_clock *clock, const under_way *flight)
{
    const bool sleeps = flight->begin - clock->now > flight->late;
    const double end = flight->end + flight->crowded + (sleeps ? flight->late : 0),
                 waits = end - clock->now;
    if (waits <= 0) return;
    if (clock == t->clocks) {
        t->sums[flight->step].waits += waits;
        t->sums[flight->step].late += fmax(0, flight->begin - clock->now);
    }
    clock->now = end;
}

/* Exchanges that have to be over before step `s`. */
static void finish(timeline *t, rank_clock *clock, uint32_t s)
{
    uint32_t kept = 0, due = UINT32_MAX;
    if (clock->due >= s) return;
    for (uint32_t f = 0; f < clock->n_flights; f++) {
        const under_way flight = clock->flights[f];
        if (flight.until < s) {
            await(t, clock, &flight);
            continue;
        }
        clock->flights[kept++] = flight;
        if (flight.until < due) due = flight.until;
    }
    clock->n_flights = kept;
    clock->due = due;
}

/* ---- one step of all ------------------------------------------------------------------------------------- */

/* When the last of the group has come to it, and its queue is free. */
static double exchange_begin(const timeline *t, int c, uint32_t axes, uint32_t queue)
{
    const int first = weft_class_first(&t->classes, c, axes);
    double begin = 0;
    for (int m = 0; m < t->classes.n; m++) {
        const rank_clock *member = &t->clocks[m];
        if (weft_class_first(&t->classes, m, axes) == first)
            begin = fmax(begin, fmax(member->now, member->over[queue]));
    }
    return begin;
}

static double exchange_seconds(const timeline *t, int c, uint32_t axes, uint32_t s)
{
    const int first = weft_class_first(&t->classes, c, axes);
    double seconds = 0;
    for (int m = 0; m < t->classes.n; m++)
        if (weft_class_first(&t->classes, m, axes) == first)
            seconds = fmax(seconds, t->clocks[m].seconds[s]);
    return seconds;
}

/* All begin before any goes on: when a group begins depends on when its members came. */
static void exchange(timeline *t, uint32_t s)
{
    const uint32_t axes = t->plan->steps[s].convert.axes, queue = t->plan->timings[s].queue;
    const uint32_t until = weft_step_end(&t->plan->steps[s], s);
    const bool is_crowded = t->clock.host_ranks > t->clock.model->cores;
    for (int c = 0; c < t->classes.n; c++) {
        rank_clock *clock = &t->clocks[c];
        const double begin = exchange_begin(t, c, axes, queue);
        const int level = weft_clock_level(&t->clock, clock->rank, axes);
        const weft_level *of = &t->clock.model->levels[level];
        const double cpu =
            weft_exchange_share(t->clock.model, level, t->plan->steps[s].convert.kind);
        if (c == 0) t->sums[s].queued += begin - clock->now;
        clock->flights[clock->n_flights++] =
            (under_way){.step = s,
                        .until = until,
                        .begin = begin,
                        .end = begin + exchange_seconds(t, c, axes, s),
                        .cpu = cpu,
                        .late = of->late_seconds,
                        .crowded = is_crowded ? of->crowded_seconds : 0};
        if (until < clock->due) clock->due = until;
    }
    for (int c = 0; c < t->classes.n; c++) {
        rank_clock *clock = &t->clocks[c];
        clock->over[queue] = clock->flights[clock->n_flights - 1].end;
        finish(t, clock, s + 1);
    }
}

static void keep_times(timeline *t, uint32_t s, double before)
{
    const rank_clock *first = &t->clocks[0];
    const bool is_exchange = weft_axes_of(&t->plan->steps[s]) != 0;
    const under_way *flight =
        is_exchange && first->n_flights ? &first->flights[first->n_flights - 1] : NULL;
    const bool goes_on = flight && flight->step == s;
    t->sums[s].total += first->seconds[s];
    t->sums[s].times += 1;
    if (t->begin[s] >= 0) return;
    t->begin[s] = goes_on ? flight->begin : is_exchange ? first->now - first->seconds[s] : before;
    t->end[s] = goes_on ? flight->end : first->now;
}

static void take_step(timeline *t, uint32_t s)
{
    const rank_clock *first = &t->clocks[0];
    const double before = first->now;
    for (int c = 0; c < t->classes.n; c++)
        finish(t, &t->clocks[c], s);
    const double start = first->now;
    if (weft_axes_of(&t->plan->steps[s]) != 0)
        exchange(t, s);
    else
        for (int c = 0; c < t->classes.n; c++)
            work(t, &t->clocks[c], t->clocks[c].seconds[s]);
    keep_times(t, s, start);
    t->sums[s].elapsed += first->now - before;
}

/* ---- scans ----------------------------------------------------------------------------------------------- */

/* All clocks, to see whether a trip was like the one before. */
static size_t n_times(const timeline *t)
{
    return (size_t)t->classes.n * (1 + t->plan->n_queues);
}

static void read_times(const timeline *t, double *times)
{
    for (int c = 0; c < t->classes.n; c++) {
        *times++ = t->clocks[c].now;
        for (uint32_t q = 0; q < t->plan->n_queues; q++)
            *times++ = t->clocks[c].over[q];
    }
}

/* A queue that nothing was put on stands still. */
static bool are_steady(const double *last, const double *now, const double *before, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double step = now[i] - last[i], was = last[i] - before[i];
        if (fabs(step - was) > 1e-9 * fmax(step, was)) return false;
    }
    return true;
}

static void jump(timeline *t, const double *last, const double *now, double trips)
{
    for (int c = 0; c < t->classes.n; c++) {
        rank_clock *clock = &t->clocks[c];
        const double by = trips * (*now++ - *last++);
        clock->now += by;
        for (uint32_t q = 0; q < t->plan->n_queues; q++)
            clock->over[q] += trips * (*now++ - *last++);
        for (uint32_t f = 0; f < clock->n_flights; f++)
            clock->flights[f].begin += by, clock->flights[f].end += by;
    }
}

static void repeat_sums(timeline *t, const sums *before, uint32_t from, uint32_t to, double trips)
{
    for (uint32_t s = from; s < to; s++) {
        sums *now = &t->sums[s];
        const sums *was = &before[s - from];
        now->times += trips * (now->times - was->times);
        now->total += trips * (now->total - was->total);
        now->waits += trips * (now->waits - was->waits);
        now->charged += trips * (now->charged - was->charged);
        now->late += trips * (now->late - was->late);
        now->queued += trips * (now->queued - was->queued);
        now->elapsed += trips * (now->elapsed - was->elapsed);
    }
}

static weft_status walk(timeline *t, uint32_t from, uint32_t to, bool is_last);

static bool is_left_out(const timeline *t, uint32_t s, bool is_last)
{
    return is_last && t->plan->steps[s].is_ahead;
}

/* The body of a scan, which is between its fences, once for each trip; `trips` is above 0. */
static weft_status walk_trips(timeline *t, uint32_t from, uint32_t to, int64_t trips, double *times,
                              sums *before)
{
    const size_t n = n_times(t);
    double *now = times, *last = times + n, *earlier = times + 2 * n;
    read_times(t, now);
    for (int64_t trip = 0; trip < trips; trip++) {
        memcpy(earlier, last, n * sizeof *last);
        memcpy(last, now, n * sizeof *now);
        memcpy(before, t->sums + from, (to - from) * sizeof *before);
        WEFT_TRY(walk(t, from, to, trip == trips - 1));
        read_times(t, now);
        const int64_t left = trips - trip - 2; /* the last is walked through */
        if (trip < 2 || left < 1 || !are_steady(last, now, earlier, n)) continue;
        jump(t, last, now, (double)left);
        repeat_sums(t, before, from, to, (double)left);
        read_times(t, now);
        trip += left;
    }
    return WEFT_OK;
}

static weft_status walk_scan(timeline *t, uint32_t begin, uint32_t end)
{
    const int64_t trips = t->plan->graph->scans[t->plan->steps[begin].scan].trips;
    double *times = calloc(3 * n_times(t), sizeof *times);
    sums *before = calloc(end - begin, sizeof *before);
    weft_status status =
        times && before ? WEFT_OK : weft_fail_memory(t->error, (end - begin) * sizeof *before);
    if (status == WEFT_OK && trips > 0)
        status = walk_trips(t, begin + 1, end, trips, times, before);
    free(times);
    free(before);
    return status;
}

static weft_status walk(timeline *t, uint32_t from, uint32_t to, bool is_last)
{
    for (uint32_t s = from; s < to; s++) {
        const weft_step *step = &t->plan->steps[s];
        if (is_left_out(t, s, is_last)) continue;
        take_step(t, s);
        if (step->kind != WEFT_STEP_BEGIN) continue;
        const uint32_t end = t->regions.end[step->scan];
        WEFT_TRY(walk_scan(t, s, end));
        s = end;
    }
    return WEFT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------- */

static void reset(timeline *t)
{
    const size_t n = t->plan->n_steps;
    memset(t->sums, 0, n * sizeof *t->sums);
    for (size_t s = 0; s < n; s++)
        t->begin[s] = -1;
    for (int c = 0; c < t->classes.n; c++) {
        rank_clock *clock = &t->clocks[c];
        clock->now = 0;
        clock->n_flights = 0;
        clock->due = UINT32_MAX;
        memset(clock->over, 0, t->plan->n_queues * sizeof *clock->over);
    }
}

weft_status weft_walk(timeline *t)
{
    reset(t);
    WEFT_TRY(walk(t, 0, t->plan->n_steps, false));
    for (int c = 0; c < t->classes.n; c++)
        finish(t, &t->clocks[c], UINT32_MAX);
    return WEFT_OK;
}

double weft_walk_seconds(const timeline *t)
{
    double seconds = 0;
    for (int c = 0; c < t->classes.n; c++)
        seconds = fmax(seconds, t->clocks[c].now);
    return seconds + t->besides;
}

static weft_status open_noise(timeline *t, weft_arena *arena, rank_clock *clock)
{
    const size_t bytes = (t->plan->n_steps + 1) * sizeof *clock->usual;
    clock->usual = weft_arena_take(arena, bytes);
    clock->spread = weft_arena_take(arena, bytes);
    return clock->usual && clock->spread ? WEFT_OK : weft_fail_memory(t->error, bytes);
}

static weft_status open_clock(timeline *t, weft_arena *arena, rank_clock *clock)
{
    const size_t n = t->plan->n_steps + 1;
    clock->over = weft_arena_take(arena, t->plan->n_queues * sizeof *clock->over);
    clock->flights = weft_arena_take(arena, n * sizeof *clock->flights);
    clock->seconds = weft_arena_take(arena, n * sizeof *clock->seconds);
    const bool is_there = clock->over && clock->flights && clock->seconds;
    return is_there ? WEFT_OK : weft_fail_memory(t->error, n * sizeof *clock->flights);
}

weft_status weft_walk_open(timeline *t, weft_arena *arena, const weft_predict_options *options)
{
    const size_t n = t->plan->n_steps + 1;
    t->clocks = weft_arena_take(arena, (size_t)t->classes.n * sizeof *t->clocks);
    t->source = weft_arena_take(arena, n);
    t->sums = weft_arena_take(arena, n * sizeof *t->sums);
    t->begin = weft_arena_take(arena, n * sizeof *t->begin);
    t->end = weft_arena_take(arena, n * sizeof *t->end);
    if (!t->clocks || !t->source || !t->sums || !t->begin || !t->end)
        return weft_fail_memory(t->error, n * sizeof *t->sums);
    for (int c = 0; c < t->classes.n; c++) {
        WEFT_TRY(open_clock(t, arena, &t->clocks[c]));
        if (options->draws > 0) WEFT_TRY(open_noise(t, arena, &t->clocks[c]));
    }
    WEFT_TRY(weft_find_regions(t->plan, arena, &t->regions, t->error));
    weft_step_time *kinds = weft_arena_take(arena, (t->plan->likes.n_steps + 1) * sizeof *kinds);
    if (!kinds) return weft_fail_memory(t->error, n * sizeof *kinds);
    find_seconds(t, options, kinds);
    return WEFT_OK;
}
