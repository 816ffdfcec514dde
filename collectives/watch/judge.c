/* judge: who is at fault, from what is known of all ranks.
 *
 * A rank that waits in a call waits for every rank of the call's group that has not begun as many
 * calls on that channel. Everything here follows from that relation. Views are taken at different
 * moments, but a view's calls are read before its counts, and counts only grow: so if a waits for b
 * in one view and b for a in the other, both really do, and will for ever. No time limit is needed
 * to be sure of it, nor of two fingerprints that differ after equally many calls. One that is far ahead is asked what its
 * own was then (weft_views_ask): who sends a broadcast need not wait for anybody.
 */
#include "judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A link that is merely slow: 100 kB/s is less than what 1 Mbit/s carries. */
static const double SLOWEST_BYTES_PER_S = 1e5;
/* What a program needs to come out of its work and say itself what was wrong. */
static const double SPEAKING_S = 1;

/* When hosts have lost each other: mpirun has to find that out itself. One that is busy ending its processes when it does
 * waits for the lost host for a quarter of an hour (Open MPI 4.1.4). */
enum { LINGER_S = 4 };

typedef struct bench {
    const weft_rank_view *views;
    int n;
    double patience;
    weft_verdict *verdict;
} bench;

/* ---- words ----------------------------------------------------------------------------------- */

static void add(char *text, size_t bytes, const char *format, ...) WEFT_FORMAT(3, 4);
static void add(char *text, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

#define SAY(b, ...) add((b)->verdict->text, sizeof(b)->verdict->text, __VA_ARGS__)

static void say_rank(const bench *b, const weft_rank_view *view)
{
    SAY(b, "rank %d (host %s, process %d)", view->rank, view->host, view->pid);
}

static void say_place(const bench *b, const weft_rank_view *view)
{
    if (view->run > 0) SAY(b, "at step %lld, ", (long long)view->run);
    SAY(b, "%s", view->doing);
}

typedef bool (*claim)(const bench *b, const weft_rank_view *view, const weft_rank_view *about);

/* "ranks 0, 2 and 5 more" of all that the claim holds for. Returns how many. */
static int say_ranks(const bench *b, claim holds, const weft_rank_view *about)
{
    enum { SHOWN = 8 };
    int n = 0, said = 0;
    for (int i = 0; i < b->n; i++)
        n += holds(b, &b->views[i], about);
    SAY(b, n == 1 ? "rank" : "ranks");
    for (int i = 0; i < b->n && said < SHOWN; i++)
        if (holds(b, &b->views[i], about)) SAY(b, "%s %d", said++ > 0 ? "," : "", b->views[i].rank);
    if (n > said) SAY(b, " and %d more", n - said);
    return n;
}

static void say_saved(const bench *b)
{
    int64_t saved = -1;
    for (int i = 0; i < b->n; i++)
        if (b->views[i].is_known && b->views[i].saved > saved) saved = b->views[i].saved;
    if (saved >= 0)
        SAY(b, " Newest checkpoint: step %lld.", (long long)saved);
    else
        SAY(b, " There is no checkpoint yet.");
}

static bool conclude(const bench *b, int status, const weft_rank_view *at_fault)
{
    b->verdict->status = status;
    b->verdict->rank = at_fault->rank;
    say_saved(b);
    return true;
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

static bool waits_for(const weft_rank_view *waiter, const weft_rank_view *other)
{
    if (!waiter->is_waiting || waiter == other || !other->is_known) return false;
    const weft_channel_view *its = weft_view_channel(other, waiter->call.key, waiter->call.lowest);
    return its != NULL && its->sequence < waiter->call.sequence;
}

static bool waits_for_it(const bench *b, const weft_rank_view *view, const weft_rank_view *about)
{
    (void)b;
    return waits_for(view, about);
}

static const weft_rank_view *waiter_of(const bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n; i++)
        if (waits_for(&b->views[i], view)) return &b->views[i];
    return NULL;
}

static const weft_rank_view *awaited_by(const bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n; i++)
        if (waits_for(view, &b->views[i])) return &b->views[i];
    return NULL;
}

static void say_waiters(const bench *b, const weft_rank_view *view)
{
    const weft_rank_view *first = waiter_of(b, view);
    if (first == NULL) return;
    SAY(b, "; ");
    const int n = say_ranks(b, waits_for_it, view);
    if (n == 1)
        SAY(b, " waits for it %s", first->doing);
    else
        SAY(b, " wait for it, rank %d %s", first->rank, first->doing);
}

/* ---- what can be wrong, the surest first ------------------------------------------------------
 */

static bool find_signalled(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->signal == 0) continue;
        say_rank(b, view);
        SAY(b, " died of signal %d (%s); it was last known to be ", view->signal,
            strsignal(view->signal));
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ".");
        return conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

static bool find_dead(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence != WEFT_GONE) continue;
        say_rank(b, view);
        SAY(b, " has ended without a word; it was last known to be ");
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ". Something outside killed it: a user, the batch system, or the kernel when memory "
               "ran out.");
        return conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

static bool is_silent_too(const bench *b, const weft_rank_view *view, const weft_rank_view *about)
{
    return view != about && view->is_known && view->presence == about->presence &&
           view->silent >= b->patience / 2;
}

static void say_others_silent(const bench *b, const weft_rank_view *view)
{
    bool has_others = false;
    for (int i = 0; i < b->n; i++)
        has_others |= is_silent_too(b, &b->views[i], view);
    if (!has_others) return;
    SAY(b, " The same goes for ");
    say_ranks(b, is_silent_too, view);
    SAY(b, ".");
}

static bool find_silent(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        const bool is_stopped = view->presence == WEFT_SILENT;
        if (!view->is_known || (!is_stopped && view->presence != WEFT_UNREACHABLE) ||
            view->silent < b->patience)
            continue;
        say_rank(b, view);
        SAY(b,
            is_stopped ? " is stopped: its host answers, but the process has not been heard for "
                         "%.0f s; it was "
                       : " is cut off: neither it nor its host has been heard for %.0f s; it was ",
            view->silent);
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ".");
        say_others_silent(b, view);
        SAY(b, is_stopped ? " SIGSTOP, a debugger or a machine out of memory does this."
                          : " Look at the host and its network.");
        b->verdict->linger = is_stopped ? 0 : LINGER_S;
        return conclude(b, is_stopped ? WEFT_ENDS_HUNG : WEFT_ENDS_LOST, view);
    }
    return false;
}

/* With rank 0, and, where one of both waits, with all: others move on, and are met again. */
static bool find_diverged(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known) continue;
        for (int k = 0; k < i; k++) {
            const weft_rank_view *other = &b->views[k];
            const bool is_met = k == 0 || view->is_waiting || other->is_waiting;
            if (!is_met || !other->is_known || !weft_views_differ(view, other)) continue;
            say_rank(b, other);
            SAY(b, " and ");
            say_rank(b, view);
            SAY(b, " do not run the same calls: rank %d is ", other->rank);
            say_place(b, other);
            SAY(b, "; rank %d is ", view->rank);
            say_place(b, view);
            SAY(b, ". No data went between calls that differ.");
            return conclude(b, WEFT_ENDS_MISMATCH, view);
        }
    }
    return false;
}

static bool find_left(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence != WEFT_LEFT || !waiter_of(b, view)) continue;
        say_rank(b, view);
        SAY(b, " has left the job ");
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ". All ranks must make the same calls; look at what made this one end before the "
               "others.");
        return conclude(b, WEFT_ENDS_MISMATCH, view);
    }
    return false;
}

static bool fails_too(const bench *b, const weft_rank_view *view, const weft_rank_view *about)
{
    (void)b;
    return view != about && view->is_known && view->has_failed;
}

/* A rank that was told of calls that differ returns from its work with an error. Where ranks are
 * threads, those in other groups do not know of it and wait: the program cannot come to say what is
 * wrong. */
static bool find_failed(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i], *waiter = waiter_of(b, view);
        if (!view->is_known || !view->has_failed || !waiter || waiter->waiting < SPEAKING_S)
            continue;
        say_rank(b, view);
        SAY(b, " has found ranks that do not run the same calls: it is ");
        say_place(b, view);
        for (int k = 0; k < b->n; k++)
            if (fails_too(b, &b->views[k], view))
                SAY(b, "; "), say_rank(b, &b->views[k]), SAY(b, " is "), say_place(b, &b->views[k]);
        say_waiters(b, view);
        SAY(b, ". No data went between calls that differ.");
        return conclude(b, WEFT_ENDS_MISMATCH, view);
    }
    return false;
}

/* The rank at the end of the chain of waiting that begins at `view`; *is_circle: it leads back. */
static const weft_rank_view *end_of_chain(const bench *b, const weft_rank_view *view,
                                          bool *is_circle)
{
    const weft_rank_view *at = view;
    *is_circle = false;
    for (int steps = 0; steps <= b->n; steps++) {
        const weft_rank_view *next = awaited_by(b, at);
        if (next == NULL) return at;
        at = next;
    }
    *is_circle = true;
    return at;
}

static bool find_circle(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting) continue;
        const weft_rank_view *at = end_of_chain(b, &b->views[i], &is_circle);
        if (!is_circle) continue;
        const weft_rank_view *next = awaited_by(b, at);
        say_rank(b, at);
        SAY(b, " waits for rank %d ", next->rank);
        say_place(b, at);
        SAY(b, ", and ");
        say_rank(b, next);
        SAY(b, " waits for rank %d ", awaited_by(b, next)->rank);
        say_place(b, next);
        SAY(b, ". They do not run the same calls in the same order.");
        return conclude(b, WEFT_ENDS_MISMATCH, at);
    }
    return false;
}

static bool is_at_rest(const bench *b, const weft_rank_view *view)
{
    return view->is_known && !view->is_waiting && !view->at_work && view->idle >= b->patience;
}

/* What a call may take from when all have begun it. */
static double allowed_for(const bench *b, const weft_rank_view *view)
{
    return b->patience + (double)view->call_bytes / SLOWEST_BYTES_PER_S;
}

/* Who waits brings on all calls that it has begun, and so does who computes. One of the group of a rank's call that has
 * begun it, and does neither. */
static const weft_rank_view *at_rest_with(const bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n && view->stalled >= allowed_for(b, view); i++) {
        const weft_rank_view *other = &b->views[i];
        if (is_at_rest(b, other) &&
            weft_view_channel(other, view->call.key, view->call.lowest) != NULL)
            return other;
    }
    return NULL;
}

static bool find_idle(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting || b->views[i].waiting < b->patience) continue;
        const weft_rank_view *view = end_of_chain(b, &b->views[i], &is_circle);
        if (is_circle) continue;
        if (view->is_waiting) view = at_rest_with(b, view);
        if (view == NULL || !is_at_rest(b, view)) continue;
        say_rank(b, view);
        SAY(b,
            " hangs: for %.0f s it has neither computed, nor waited for a rank, nor used a disk; "
            "it is ",
            view->idle);
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ". Code that may be quiet for long can say so with weft_watch_busy.");
        return conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* Whether all ranks of the group that it waits with are among the views: every process but 0 sees
 * process 0 alone. */
static bool sees_all(const bench *b, const weft_rank_view *view)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += b->views[i].is_known &&
             weft_view_channel(&b->views[i], view->call.key, view->call.lowest) != NULL;
    return n >= view->call.n_ranks;
}

/* Everybody is there, and still it does not end. A rank at work may have begun the call and not yet
 * come to wait for it. */
static bool find_stalled(const bench *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->views[i].at_work) return false;
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || !view->is_waiting || view->stalled < allowed_for(b, view) ||
            awaited_by(b, view) || !sees_all(b, view))
            continue;
        say_rank(b, view);
        SAY(b, " does not get on: for %.0f s it has been ", view->stalled);
        say_place(b, view);
        SAY(b, ", where all ranks have arrived. The network between them, or MPI, does not move.");
        return conclude(b, WEFT_ENDS_HUNG, view);
    }
    return false;
}

/* The call that a rank waits in: it may wait for several that it has begun, one after another. */
static uint64_t call_of(const weft_rank_view *view)
{
    return view->n_begun ^ view->call.key ^ view->call.sequence << 32;
}

void weft_judge_hold(weft_rank_view *views, int n, double now, weft_hold *holds)
{
    const bench b = {views, n, 0, NULL};
    for (int i = 0; i < n; i++) {
        const bool is_held = views[i].is_waiting && awaited_by(&b, &views[i]) == NULL;
        if (!is_held || holds[i].call != call_of(&views[i]))
            holds[i] = (weft_hold){is_held ? call_of(&views[i]) : 0, now};
        views[i].stalled = now - holds[i].since;
    }
}

bool weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict)
{
    static bool (*const rules[])(const bench *) = {find_signalled, find_dead, find_silent,
                                                   find_diverged,  find_left, find_failed,
                                                   find_circle,    find_idle, find_stalled};
    *verdict = (weft_verdict){.rank = -1};
    const bench b = {views, n, patience, verdict};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](&b)) return true;
    return false;
}

/* ---- when it is over ------------------------------------------------------------------------- */

/* The rank that others were waiting for, and that waited for nobody. It may itself have been in a call that all had begun:
 * then somebody else may have held it up there. */
static bool find_end(const bench *b, bool is_waiting)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting) continue;
        const weft_rank_view *view = end_of_chain(b, &b->views[i], &is_circle);
        if (view == &b->views[i] || is_circle || !!view->is_waiting != is_waiting) continue;
        say_rank(b, view);
        SAY(b, " was behind when all ended: it was ");
        say_place(b, view);
        say_waiters(b, view);
        SAY(b, ".");
        return conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

static bool find_behind(const bench *b)
{
    return find_end(b, false);
}

static bool find_behind_in_call(const bench *b)
{
    return find_end(b, true);
}

/* All had begun the call that they were in, but one was heard last well before the others: stopped in the middle, perhaps. */
static bool find_first_silent(const bench *b)
{
    const weft_rank_view *first = NULL;
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (view->is_known && view->presence != WEFT_LEFT && view->silent > SPEAKING_S &&
            (first == NULL || view->silent > first->silent))
            first = view;
    }
    if (first == NULL) return false;
    say_rank(b, first);
    SAY(b, " was heard last %.1f s before all ended: it was ", first->silent);
    say_place(b, first);
    SAY(b, ".");
    return conclude(b, WEFT_ENDS_LOST, first);
}

static bool find_cut_short(const bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence == WEFT_LEFT) continue;
        SAY(b,
            "The job was ended from outside, or by one of its processes: no rank was waiting for "
            "another. ");
        say_rank(b, view);
        SAY(b, " was ");
        say_place(b, view);
        SAY(b, ".");
        return conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

bool weft_judge_remains(const weft_rank_view *views, int n, weft_verdict *verdict)
{
    static bool (*const rules[])(const bench *) = {
        find_signalled, find_diverged,     find_left,           find_circle,
        find_behind,    find_first_silent, find_behind_in_call, find_cut_short};
    *verdict = (weft_verdict){.rank = -1};
    const bench b = {views, n, INFINITY, verdict};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](&b)) return true;
    return false;
}

int weft_judge_slow(const weft_rank_view *views, int n, double patience, char *text, size_t bytes)
{
    weft_verdict words = {.rank = -1};
    const bench b = {views, n, patience, &words};
    for (int i = 0; i < n; i++) {
        bool is_circle;
        if (!views[i].is_waiting || views[i].waiting < patience) continue;
        const weft_rank_view *view = end_of_chain(&b, &views[i], &is_circle);
        if (view == &views[i] || is_circle || !view->at_work) continue;
        say_rank(&b, view);
        SAY(&b,
            " is at work%s%s%s, and others have been waiting for it for %.0f s; the job goes on",
            view->busy[0] ? " (" : "", view->busy, view->busy[0] ? ")" : "", views[i].waiting);
        say_waiters(&b, view);
        snprintf(text, bytes, "%s", words.text);
        return view->rank;
    }
    return -1;
}
