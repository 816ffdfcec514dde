/* capture: stretches of steps are recorded on the device (as CUDA graphs are), and each is started by one call from then on.
 * A run of a thousand kernels then costs the host a few calls.
 *
 * A stretch is the steps between two in which the host takes part. These are exchanges, which it advances, steps that
 * other ranks take part in, and kernels with a result that it reads. It has an end besides, so that whoever waits for
 * long sees the device go on. Except for the run's number, a run is as the run before, so the n-th stretch of one is
 * the n-th of the next. Where a scan may stop early that does not hold, and nothing is kept. Nor is a run with very
 * many steps, trips counted, since each would take memory. The first run in this process makes what is made when it
 * is first used; the second is kept. Where the device cannot keep a stretch, its steps are done one by one.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STRETCHES = 4096, /* a scan's exchanges end one in each trip */
    MOST_STEPS = 512,      /* of a stretch */
    MOST_STEPS_OF_ALL = 32768
};

typedef struct stretch {
    uint32_t begin, end; /* steps: its first, and the one that comes after it */
    weft_kept *kept;
    int64_t *trips; /* [n_scans + 1] when it is over */
    weft_usage measured;
} stretch;

struct weft_capturer {
    stretch *all;
    int n;
    bool is_whole; /* a run has been kept, to its end */
    bool is_off;
    char why[300]; /* nothing is kept; or what ends a stretch */
};

static size_t trips_bytes(const weft_rank *rank)
{
    return (rank->program->plan->graph->n_scans + 1) * sizeof *rank->trips;
}

/* What was kept may be under way: it is given back with the program. */
static void turn_off(weft_rank *rank, const char *why)
{
    rank->capturer->is_off = true;
    snprintf(rank->capturer->why, sizeof rank->capturer->why, "%s", why);
}

/* ---- which steps ------------------------------------------------------------------------------- */

static bool is_the_hosts(const weft_bound_step *bound)
{
    return bound->step->kind == WEFT_STEP_CONVERT || bound->shared != NULL || bound->kernel.waits;
}

/* Whether a stretch ends before step `s`: there the host waits for an exchange, or takes part. */
static bool is_over(const weft_rank *rank, uint32_t s)
{
    const weft_bound_step *bound = &rank->steps[s];
    return s >= rank->program->plan->n_steps || is_the_hosts(bound) ||
           (rank->n_under_way > 0 && bound->ends != 0);
}

static void say_who_ends(weft_rank *rank, uint32_t s)
{
    const weft_plan *plan = rank->program->plan;
    char at[120] = "";
    if (rank->capturer->why[0] != '\0' || s >= plan->n_steps) return;
    (void)weft_origin_print(&plan->graph->nodes[plan->steps[s].node], at, sizeof at);
    snprintf(rank->capturer->why, sizeof rank->capturer->why, "the host %s of %.120s",
             plan->steps[s].kind == WEFT_STEP_CONVERT ? "takes part in an exchange"
             : rank->steps[s].kernel.waits            ? "reads a number"
                                                      : "takes part in what ranks share",
             at);
}

/* Of a run in which no scan stops early, up to what may be kept. */
static int64_t count_steps(const weft_plan *plan)
{
    const weft_scan *scans = plan->graph->scans;
    int64_t n = 0, trips = 1;
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        const weft_step *step = &plan->steps[s];
        n += trips;
        if (n > MOST_STEPS_OF_ALL) break; /* trips are no more than that */
        if (step->kind == WEFT_STEP_BEGIN) trips *= scans[step->scan].trips;
        if (step->kind == WEFT_STEP_END) trips /= scans[step->scan].trips;
    }
    return n;
}

static weft_status look(weft_rank *rank, weft_error *error)
{
    const weft_plan *plan = rank->program->plan;
    rank->capturer = calloc(1, sizeof *rank->capturer);
    if (rank->capturer == NULL) return weft_fail_memory(error, sizeof *rank->capturer);
    if (rank->device->keep_begin == NULL) turn_off(rank, "the device keeps nothing");
    for (uint32_t s = 0; s < plan->n_steps && !rank->capturer->is_off; s++)
        if (plan->steps[s].kind == WEFT_STEP_GUARD)
            turn_off(rank, "the host reads whether a scan goes on");
    if (!rank->capturer->is_off && count_steps(plan) > MOST_STEPS_OF_ALL)
        turn_off(rank, "a run has more steps than are kept");
    return WEFT_OK;
}

/* ---- one of them -------------------------------------------------------------------------------- */

static stretch *add(weft_rank *rank)
{
    weft_capturer *capturer = rank->capturer;
    if (capturer->n == MOST_STRETCHES) return NULL;
    stretch *all = realloc(capturer->all, (size_t)(capturer->n + 1) * sizeof *all);
    if (all == NULL) return NULL;
    capturer->all = all;
    all[capturer->n] = (stretch){.trips = malloc(trips_bytes(rank))};
    return all[capturer->n].trips != NULL ? &all[capturer->n++] : NULL;
}

static void add_measured(weft_usage *all, const weft_usage *some)
{
    all->n_steps += some->n_steps;
    all->n_kept += some->n_steps;
    if (some->arena_bytes > all->arena_bytes) all->arena_bytes = some->arena_bytes;
}

static void do_again(weft_rank *rank, const stretch *t)
{
    rank->device->keep_run(rank->stream, t->kept, (uint32_t)(rank->program->runs + 1));
    memcpy(rank->trips, t->trips, trips_bytes(rank));
    add_measured(&rank->measured, &t->measured);
}

/* Puts the steps of a stretch, from *s on; false: it is not kept, and nothing of them was done. */
static bool keep(weft_rank *rank, uint32_t *s)
{
    weft_error why = WEFT_NO_ERROR;
    stretch *t = add(rank);
    const weft_usage measured = rank->measured;
    if (t == NULL) {
        turn_off(rank, "there are too many stretches of steps");
        return false;
    }
    memcpy(t->trips, rank->trips, trips_bytes(rank)); /* until it is over: when it began */
    if (!rank->device->keep_begin(rank->stream, &why)) {
        turn_off(rank, why.message);
        return false;
    }
    weft_error failed = WEFT_NO_ERROR;
    uint32_t next = *s;
    int n = 0;
    rank->measured = (weft_usage){0};
    do /* what the first of them waits for is over */
        next = weft_do_step(rank, next, &failed);
    while (++n < MOST_STEPS && !is_over(rank, next) && failed.status == WEFT_OK);
    t->measured = rank->measured;
    rank->measured = measured;
    t->kept = rank->device->keep_end(rank->stream, failed.status == WEFT_OK ? &why : &failed);
    if (t->kept == NULL || failed.status != WEFT_OK) {
        memcpy(rank->trips, t->trips, trips_bytes(rank));
        turn_off(rank, failed.status != WEFT_OK ? failed.message : why.message);
        return false;
    }
    t->begin = *s, t->end = next;
    memcpy(t->trips, rank->trips, trips_bytes(rank));
    if (is_over(rank, next)) say_who_ends(rank, next);
    do_again(rank, t);
    *s = next;
    return true;
}

/* The k-th stretch, if it begins at *s. */
static bool is_done_again(weft_rank *rank, int k, uint32_t *s)
{
    const weft_capturer *capturer = rank->capturer;
    if (k >= capturer->n || capturer->all[k].begin != *s) return false;
    do_again(rank, &capturer->all[k]);
    *s = capturer->all[k].end;
    return true;
}

/* ---- a run -------------------------------------------------------------------------------------- */

bool weft_captures(weft_rank *rank)
{
    if (!rank->program->has_run || rank->device->keep_begin == NULL) return false;
    if (rank->capturer == NULL && look(rank, NULL) != WEFT_OK) return false;
    return !rank->capturer->is_off;
}

/* Of one step nothing is gained. */
static bool begins_stretch(const weft_rank *rank, uint32_t s)
{
    return !rank->capturer->is_off && !is_the_hosts(&rank->steps[s]) && !is_over(rank, s + 1);
}

bool weft_run_captured(weft_rank *rank)
{
    weft_capturer *capturer = rank->capturer;
    const uint32_t n_steps = rank->program->plan->n_steps;
    int k = 0;
    for (uint32_t s = 0; s < n_steps;) {
        if (!weft_before_step(rank, s)) return false;
        bool is_done = false; /* by a stretch, which may end where it began, some trips on */
        if (begins_stretch(rank, s))
            is_done = capturer->is_whole ? is_done_again(rank, k, &s) : keep(rank, &s);
        k += is_done;
        if (!is_done && !weft_run_step(rank, &s)) return false;
    }
    capturer->is_whole = !capturer->is_off;
    return true;
}

void weft_end_capturing(weft_rank *rank)
{
    weft_capturer *capturer = rank->capturer;
    if (capturer == NULL) return;
    for (int k = 0; k < capturer->n; k++) {
        rank->device->keep_drop(rank->stream, &capturer->all[k].kept);
        free(capturer->all[k].trips);
    }
    free(capturer->all);
    free(capturer);
    rank->capturer = NULL;
}

const char *weft_why_apart(const weft_rank *rank)
{
    return rank->capturer != NULL && rank->capturer->why[0] != '\0' ? rank->capturer->why : NULL;
}
