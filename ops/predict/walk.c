/* walk: a plan walked through on a clock of each kind of rank of each run, step by step, as the executor does it.
 *
 * - Work begins when the rank comes to it.
 * - An exchange begins when the last of its group has come to it and those before it on its queue that go the same way are over:
 *   a link takes bytes of both ways at once. Ranks that come earlier go on, until a step that needs it (weft_step.until).
 * - While an exchange goes on it takes its share of the rank's cores (weft_level.cpu), so work beside it takes longer.
 * - A scan's trips are walked through until two take equally long in all runs. The others are then alike, except the last, which leaves
 *   out the steps that are done ahead.
 *
 * Which exchanges are under way, and which are waited for next, is the same in all columns: that is found once for all of them.
 */
#include "walk.h"

#include "columns.h"

#include <math.h>
#include <string.h>

/* ---- queues -------------------------------------------------------------------------------------------- */

static const double *begins(const runs *r, uint32_t s)
{
    return r->begin + (size_t)r->t->steps[s].flight * (size_t)r->n;
}

static const double *ends(const runs *r, uint32_t s)
{
    return r->end + (size_t)r->t->steps[s].flight * (size_t)r->n;
}

static const meeting *meeting_of(const runs *r, uint32_t s)
{
    return &r->meetings[r->t->steps[s].meeting - 1];
}

static void take_head(const runs *r, queue_line *l, int k)
{
    const bool is_there = l->at[k] < l->n;
    const uint32_t s = is_there ? l->steps[l->at[k]] : 0;
    l->begin[k] = is_there ? begins(r, s)[k] : INFINITY;
    l->end[k] = is_there ? ends(r, s)[k] : INFINITY;
    l->cpu[k] = is_there ? meeting_of(r, s)->cpu[k] : 0;
}

/* Heads that are over make room for those behind them. */
static void bring_up(runs *r, queue_line *l)
{
    bool has_heads = false;
    for (int k = 0; k < r->n; k++) {
        while (l->end[k] <= r->now[k]) {
            l->at[k]++;
            take_head(r, l, k);
        }
        has_heads |= l->at[k] < l->n;
    }
    if (has_heads) return;
    l->is_live = false;
    l->n = 0;
    memset(l->at, 0, (size_t)r->n * sizeof *l->at);
    r->n_live--;
}

static void bring_all_up(runs *r)
{
    for (uint32_t q = 0; q < r->t->plan->n_queues; q++)
        if (r->lines[q].is_live && weft_columns_any(r->n, r->lines[q].end, r->now))
            bring_up(r, &r->lines[q]);
}

/* Exchanges that are over in all columns leave the list. */
static void make_room(runs *r, queue_line *l)
{
    uint32_t first = l->n;
    for (int k = 0; k < r->n; k++)
        first = l->at[k] < first ? l->at[k] : first;
    l->n -= first;
    memmove(l->steps, l->steps + first, l->n * sizeof *l->steps);
    for (int k = 0; k < r->n; k++)
        l->at[k] -= first;
}

static void line_up(runs *r, uint32_t s)
{
    queue_line *l = &r->lines[r->t->steps[s].queue];
    if (l->n == l->room && l->is_live) bring_up(r, l);
    if (l->n == l->room) make_room(r, l);
    l->steps[l->n++] = s;
    r->n_live += !l->is_live;
    l->is_live = true;
    for (int k = 0; k < r->n; k++)
        if (l->at[k] == l->n - 1) take_head(r, l, k);
}

/* ---- work ---------------------------------------------------------------------------------------------- */

/* What makes work longer is the exchanges' that take the cores meanwhile. */
static void charge(const runs *r, double from)
{
    double shares = 0;
    const double lost = fmin(r->taken[0], 1) * (r->now[0] - from);
    for (uint32_t q = 0; q < r->t->plan->n_queues; q++)
        if (r->lines[q].is_live && r->lines[q].begin[0] <= from) shares += r->lines[q].cpu[0];
    for (uint32_t q = 0; q < r->t->plan->n_queues && shares > 0; q++) {
        const queue_line *l = &r->lines[q];
        if (l->is_live && l->begin[0] <= from)
            r->notes->sums[l->steps[l->at[0]]].charged += lost * l->cpu[0] / shares;
    }
}

static void look_at_queues(runs *r)
{
    for (int k = 0; k < r->n; k++) {
        r->taken[k] = 0;
        r->until[k] = INFINITY;
    }
    for (uint32_t q = 0; q < r->t->plan->n_queues; q++) {
        const queue_line *l = &r->lines[q];
        if (l->is_live)
            weft_columns_look(r->n, r->now, l->begin, l->end, l->cpu, r->taken, r->until);
    }
}

static void work(runs *r)
{
    bool goes_on = r->n_live > 0;
    if (!goes_on) weft_columns_add(r->n, r->now, r->seconds);
    if (goes_on) memcpy(r->left, r->seconds, (size_t)r->n * sizeof *r->left);
    while (goes_on) {
        const double from = r->now[0];
        bring_all_up(r);
        look_at_queues(r);
        goes_on = weft_columns_work(r->n, r->now, r->left, r->taken, r->until);
        if (r->notes && r->taken[0] > 0) charge(r, from);
    }
}

/* ---- waiting for exchanges ------------------------------------------------------------------------------- */

static void note_waiting(const runs *r, uint32_t s, double came)
{
    sums *of = &r->notes->sums[s];
    if (r->now[0] <= came) return;
    of->waits += r->now[0] - came;
    of->late += fmax(0, begins(r, s)[0] - came);
}

static void await(runs *r, uint32_t s)
{
    const double came = r->now[0];
    const meeting *m = meeting_of(r, s);
    weft_columns_await(r->n, r->now, begins(r, s), ends(r, s), m->late, m->crowded);
    if (r->notes) note_waiting(r, s, came);
}

/* Exchanges that have to be over before step `s`, in the order in which they are waited for, and began. */
static void finish(runs *r, uint32_t s)
{
    for (; r->reached < s; r->reached++) {
        due *d = &r->due[r->reached];
        for (uint32_t e = d->first; e; e = r->next[e - 1])
            await(r, e - 1);
        *d = (due){0, 0};
    }
}

static void put_under_way(runs *r, uint32_t s)
{
    due *d = &r->due[r->t->steps[s].until];
    if (d->first)
        r->next[d->last - 1] = s + 1;
    else
        d->first = s + 1;
    d->last = s + 1;
    r->next[s] = 0;
}

/* ---- one step of all ------------------------------------------------------------------------------------- */

/* The most of each group is that of all its members. */
static void share(const runs *r, const int *first, double *of)
{
    const int n_runs = r->n_runs;
    for (int c = 0; c < r->t->classes.n; c++)
        for (int i = 0; i < n_runs && first[c] != c; i++)
            of[first[c] * n_runs + i] = fmax(of[first[c] * n_runs + i], of[c * n_runs + i]);
    for (int c = 0; c < r->t->classes.n; c++)
        for (int i = 0; i < n_runs && first[c] != c; i++)
            of[c * n_runs + i] = of[first[c] * n_runs + i];
}

/* When the last exchange of a kind of rank is over that went this way; NULL: this one does not. */
static double *over_of(const runs *r, uint32_t s, int way, int c)
{
    const walked_step *step = &r->t->steps[s];
    const size_t kind = (size_t)step->kind * (size_t)r->t->classes.n + (size_t)c,
                 queue = (size_t)way * r->t->plan->n_queues + step->queue;
    if (!(r->t->ways[kind] >> way & 1)) return NULL;
    return r->over + queue * (size_t)r->n + (size_t)(c * r->n_runs);
}

static void wait_for_queue(const runs *r, uint32_t s, double *begin)
{
    memcpy(begin, r->now, (size_t)r->n * sizeof *begin);
    for (int c = 0; c < r->t->classes.n; c++)
        for (int way = 0; way < WAYS; way++) {
            double *own = begin + (size_t)(c * r->n_runs);
            const double *over = over_of(r, s, way, c);
            if (over) weft_columns_later(r->n_runs, own, own, over);
        }
}

static void hold_queue(const runs *r, uint32_t s, const double *end)
{
    for (int c = 0; c < r->t->classes.n; c++)
        for (int way = 0; way < WAYS; way++) {
            double *over = over_of(r, s, way, c);
            if (over) memcpy(over, end + (size_t)(c * r->n_runs), (size_t)r->n_runs * sizeof *over);
        }
}

/* It begins when the last of the group has come to it, and its queue is free; the longest of them counts. */
static void exchange(runs *r, uint32_t s)
{
    const walked_step *step = &r->t->steps[s];
    const size_t at = (size_t)step->flight * (size_t)r->n;
    double *begin = r->begin + at, *end = r->end + at;
    wait_for_queue(r, s, begin);
    if (r->t->classes.n > 1) {
        share(r, meeting_of(r, s)->first, begin);
        share(r, meeting_of(r, s)->first, r->seconds);
    }
    weft_columns_end(r->n, end, begin, r->seconds);
    hold_queue(r, s, end);
    if (r->notes) r->notes->sums[s].queued += begin[0] - r->now[0];
    put_under_way(r, s);
    if (step->until > s) line_up(r, s);
    finish(r, s + 1);
}

static void note_times(const runs *r, uint32_t s, double seconds, double before, double start)
{
    const walked_step *step = &r->t->steps[s];
    const bool goes_on = step->meeting && step->until > s;
    const notes *to = r->notes;
    to->sums[s].total += seconds;
    to->sums[s].times += 1;
    to->sums[s].elapsed += r->now[0] - before;
    if (to->begin[s] >= 0) return;
    to->begin[s] = goes_on ? begins(r, s)[0] : step->meeting ? r->now[0] - seconds : start;
    to->end[s] = goes_on ? ends(r, s)[0] : r->now[0];
}

static void take_step(runs *r, uint32_t s)
{
    const double before = r->now[0];
    finish(r, s);
    const double start = r->now[0];
    r->tempo(r, s, r->seconds);
    const double seconds = r->seconds[0];
    if (r->t->steps[s].meeting)
        exchange(r, s);
    else
        work(r);
    if (r->notes) note_times(r, s, seconds, before, start);
}

/* ---- scans ----------------------------------------------------------------------------------------------- */

/* All clocks, to see whether a trip was like the one before. */
static size_t n_times(const runs *r)
{
    return (size_t)r->n * (1 + WAYS * r->t->plan->n_queues);
}

static void read_times(const runs *r, double *times)
{
    const size_t n = (size_t)r->n;
    memcpy(times, r->now, n * sizeof *times);
    memcpy(times + n, r->over, WAYS * r->t->plan->n_queues * n * sizeof *times);
}

/* A queue that nothing was put on stands still. An exchange from before the trips that is not over yet changes them as it ends. */
static bool are_steady(runs *r, const double *last, const double *now, const double *before)
{
    const size_t n = n_times(r);
    bring_all_up(r);
    if (r->n_live > 0) return false;
    for (size_t i = 0; i < n; i++) {
        const double step = now[i] - last[i], was = last[i] - before[i];
        if (fabs(step - was) > 1e-9 * fmax(step, was)) return false;
    }
    return true;
}

static void jump(runs *r, const double *last, const double *now, double trips)
{
    const size_t n = (size_t)r->n;
    for (size_t k = 0; k < n; k++)
        r->now[k] += trips * (now[k] - last[k]);
    for (size_t k = 0; k < WAYS * r->t->plan->n_queues * n; k++)
        r->over[k] += trips * (now[n + k] - last[n + k]);
}

static void repeat_sums(const runs *r, const sums *before, uint32_t from, uint32_t to, double trips)
{
    for (uint32_t s = from; s < to; s++) {
        sums *now = &r->notes->sums[s];
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

static void walk(runs *r, uint32_t from, uint32_t to, bool is_last, uint32_t depth);

/* A trip, which is between the fences of a scan. What began in it is over before the next one. */
static void walk_trip(runs *r, uint32_t from, uint32_t to, bool is_last, uint32_t depth)
{
    const sums *noted = r->notes ? r->notes->sums + from : NULL;
    if (noted) memcpy(r->before[depth], noted, (to - from) * sizeof *noted);
    r->reached = from;
    walk(r, from, to, is_last, depth + 1);
    finish(r, to);
}

static void walk_trips(runs *r, uint32_t from, uint32_t to, int64_t trips, uint32_t depth)
{
    const size_t n = n_times(r);
    double *now = r->times[depth], *last = now + n, *earlier = last + n;
    read_times(r, now);
    for (int64_t trip = 0; trip < trips; trip++) {
        memcpy(earlier, last, n * sizeof *last);
        memcpy(last, now, n * sizeof *now);
        walk_trip(r, from, to, trip == trips - 1, depth);
        read_times(r, now);
        const int64_t left = trips - trip - 2; /* the last is walked through */
        if (trip < 2 || left < 1 || !are_steady(r, last, now, earlier)) continue;
        jump(r, last, now, (double)left);
        if (r->notes) repeat_sums(r, r->before[depth], from, to, (double)left);
        read_times(r, now);
        trip += left;
    }
}

static void walk(runs *r, uint32_t from, uint32_t to, bool is_last, uint32_t depth)
{
    const weft_plan *plan = r->t->plan;
    for (uint32_t s = from; s < to; s++) {
        const walked_step *step = &r->t->steps[s];
        if (is_last && step->is_ahead) continue;
        take_step(r, s);
        if (step->end == 0) continue;
        walk_trips(r, s + 1, step->end, plan->graph->scans[plan->steps[s].scan].trips, depth);
        s = step->end;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------- */

static void reset(runs *r)
{
    const size_t n = (size_t)r->n;
    for (uint32_t q = 0; q < r->t->plan->n_queues; q++) {
        queue_line *l = &r->lines[q];
        l->n = 0;
        l->is_live = false;
        memset(l->at, 0, n * sizeof *l->at);
    }
    memset(r->now, 0, n * sizeof *r->now);
    memset(r->over, 0, WAYS * r->t->plan->n_queues * n * sizeof *r->over);
    r->n_live = r->reached = 0;
}

void weft_walk(runs *r)
{
    reset(r);
    walk(r, 0, r->t->plan->n_steps, false, 0);
    finish(r, r->t->plan->n_steps);
}

double weft_walk_seconds(const runs *r, int run)
{
    double seconds = 0;
    for (int c = 0; c < r->t->classes.n; c++)
        seconds = fmax(seconds, r->now[c * r->n_runs + run]);
    return seconds + r->t->besides;
}
