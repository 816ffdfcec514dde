/* judge: who is at fault, from what is known of all ranks.
 *
 * A rank that waits in a call waits for every rank of the call's group that has not begun as many calls on that
 * channel. Everything here follows from that relation. Views are taken at different moments, but a view's calls are
 * read before its counts, and counts only grow. So if a waits for b in one view and b for a in the other, both really
 * do, and will for ever. No time limit is needed to be sure of it, nor of two fingerprints that differ after equally
 * many calls. One that is far ahead is asked what its own was then (weft_views_ask): who sends a broadcast need not
 * wait for anybody.
 */
#include "judge_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A link that is merely slow: 100 kB/s is less than what 1 Mbit/s carries. */
static const double SLOWEST_BYTES_PER_S = 1e5;

/* When hosts have lost each other: mpirun has to find that out itself. One that is busy ending its processes when it does
 * waits for the lost host for a quarter of an hour (Open MPI 4.1.4). */
enum { LINGER_S = 4 };

/* ---- what takes patience ----------------------------------------------------------------------- */

static bool is_silent_too(const weft_bench *b, const weft_rank_view *view,
                          const weft_rank_view *about)
{
    return view != about && view->is_known && view->presence == about->presence &&
           view->silent >= b->patience / 2;
}

static void say_others_silent(const weft_bench *b, const weft_rank_view *view)
{
    bool has_others = false;
    for (int i = 0; i < b->n; i++)
        has_others |= is_silent_too(b, &b->views[i], view);
    if (!has_others) return;
    SAY(b, " The same goes for ");
    weft_say_ranks(b, is_silent_too, view);
    SAY(b, ".");
}

static bool find_silent(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        const bool is_stopped = view->presence == WEFT_SILENT;
        if (!view->is_known || (!is_stopped && view->presence != WEFT_UNREACHABLE) ||
            view->silent < b->patience)
            continue;
        weft_say_rank(b, view);
        SAY(b,
            is_stopped ? " is stopped: its host answers, but the process has not been heard for "
                         "%.0f s; it was "
                       : " is cut off: neither it nor its host has been heard for %.0f s; it was ",
            view->silent);
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ".");
        say_others_silent(b, view);
        SAY(b, is_stopped ? " SIGSTOP, a debugger or a machine out of memory does this."
                          : " Look at the host and its network.");
        b->verdict->linger = is_stopped ? 0 : LINGER_S;
        return weft_conclude(b, is_stopped ? WEFT_ENDS_HUNG : WEFT_ENDS_LOST, view);
    }
    return false;
}

static bool is_at_rest(const weft_bench *b, const weft_rank_view *view)
{
    return view->is_known && !view->is_waiting && !view->is_on_device && !view->at_work &&
           view->idle >= b->patience;
}

/* A device that goes on is at work for its rank. One that has done nothing for long hangs, whether or not others wait: its
 * rank does. */
static bool find_device(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || !view->is_on_device || view->device_allowed == 0 ||
            view->device_idle < fmax(view->device_allowed, b->patience))
            continue;
        weft_say_rank(b, view);
        SAY(b,
            " waits for a device that hangs: for %.0f s it has done nothing of what was put "
            "onto it; the rank is ",
            view->device_idle);
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ". Look at the device; where one kernel may take so long, say so with "
               "weft_watch_device_patience.");
        return weft_conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* A rank whose lanes all wait uses the processor, perhaps, and will never get on. */
static bool find_stuck(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        const double allowed = view->stuck_allowed > 0 ? view->stuck_allowed : b->patience;
        if (!view->is_known || view->stuck < fmin(allowed, b->patience)) continue;
        weft_say_rank(b, view);
        SAY(b, " hangs: for %.0f s its lanes have waited for each other; it is ", view->stuck);
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ". This is a fault of Weft's, or of a kernel from outside; with --lanes 1 it does "
               "not happen.");
        return weft_conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* What a call may take from when all have begun it. */
static double allowed_for(const weft_bench *b, const weft_rank_view *view)
{
    return b->patience + (double)view->call_bytes / SLOWEST_BYTES_PER_S;
}

/* Who waits brings on all calls that it has begun, and so does who computes. One of the group of a rank's call that has
 * begun it, and does neither. */
static const weft_rank_view *at_rest_with(const weft_bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n && view->stalled >= allowed_for(b, view); i++) {
        const weft_rank_view *other = &b->views[i];
        if (is_at_rest(b, other) &&
            weft_view_channel(other, view->call.key, view->call.lowest) != NULL)
            return other;
    }
    return NULL;
}

static bool find_idle(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting || b->views[i].waiting < b->patience) continue;
        const weft_rank_view *view = weft_end_of_chain(b, &b->views[i], &is_circle);
        if (is_circle) continue;
        if (view->is_waiting) view = at_rest_with(b, view);
        if (view == NULL || !is_at_rest(b, view)) continue;
        weft_say_rank(b, view);
        SAY(b,
            " hangs: for %.0f s it has neither computed, nor waited for a rank, nor used a disk; "
            "it is ",
            view->idle);
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ". Code that may be quiet for long can say so with weft_watch_busy.");
        return weft_conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* Whether all ranks of the group that it waits with are among the views: every process but 0 sees
 * process 0 alone. */
static bool sees_all(const weft_bench *b, const weft_rank_view *view)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += b->views[i].is_known &&
             weft_view_channel(&b->views[i], view->call.key, view->call.lowest) != NULL;
    return n >= view->call.n_ranks;
}

/* Everybody is there, and still it does not end. A rank at work may have begun the call and not yet
 * come to wait for it. */
static bool find_stalled(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->views[i].at_work || b->views[i].is_on_device) return false;
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || !view->is_waiting || view->stalled < allowed_for(b, view) ||
            weft_awaited_by(b, view) || !sees_all(b, view))
            continue;
        weft_say_rank(b, view);
        SAY(b, " does not get on: for %.0f s it has been ", view->stalled);
        weft_say_place(b, view);
        SAY(b, ", where all ranks have arrived. The network between them, or MPI, does not move.");
        return weft_conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* The call that a rank waits in: it may wait for several that it has begun, one after another. */
static uint64_t call_of(const weft_rank_view *view)
{
    return view->n_begun ^ view->call.key ^ view->call.sequence << 32;
}

void weft_judge_hold(weft_rank_view *views, int n, double now, weft_judge_held *holds)
{
    const weft_bench b = {.views = views, .n = n};
    for (int i = 0; i < n; i++) {
        const bool is_held = views[i].is_waiting && weft_awaited_by(&b, &views[i]) == NULL;
        if (!is_held || holds[i].call != call_of(&views[i]))
            holds[i] = (weft_judge_held){is_held ? call_of(&views[i]) : 0, now};
        views[i].stalled = now - holds[i].since;
    }
}

bool weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict)
{
    static bool (*const rules[])(const weft_bench *) = {
        weft_find_signalled, weft_find_dead,   find_silent,      weft_find_diverged,
        weft_find_left,      weft_find_failed, weft_find_circle, find_stuck,
        find_device,         find_idle,        find_stalled};
    *verdict = (weft_verdict){.rank = -1};
    const weft_bench b = {views, n, patience, verdict};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](&b)) return true;
    return false;
}

int weft_judge_slow(const weft_rank_view *views, int n, double patience, char *text, size_t bytes)
{
    weft_verdict words = {.rank = -1};
    const weft_bench b = {views, n, patience, &words};
    for (int i = 0; i < n; i++) {
        bool is_circle;
        if (!views[i].is_waiting || views[i].waiting < patience) continue;
        const weft_rank_view *view = weft_end_of_chain(&b, &views[i], &is_circle);
        if (view == &views[i] || is_circle || (!view->at_work && !view->is_on_device)) continue;
        const char *remark = view->is_on_device ? "on its device" : view->busy;
        weft_say_rank(&b, view);
        SAY(&b,
            " is at work%s%s%s, and others have been waiting for it for %.0f s; the job goes on",
            remark[0] ? " (" : "", remark, remark[0] ? ")" : "", views[i].waiting);
        weft_say_waiters(&b, view);
        snprintf(text, bytes, "%s", words.text);
        return view->rank;
    }
    return -1;
}
