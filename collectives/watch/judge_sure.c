/* judge_sure: what can never go on, whatever the moments at which views were taken (judge.c says why). */
#include "judge_parts.h"

#include <string.h>

bool weft_find_signalled(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->signal == 0) continue;
        weft_say_rank(b, view);
        SAY(b, " died of signal %d (%s); it was last known to be ", view->signal,
            strsignal(view->signal));
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ".");
        return weft_conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

bool weft_find_dead(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence != WEFT_GONE) continue;
        weft_say_rank(b, view);
        SAY(b, " has ended without a word; it was last known to be ");
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ". Something outside killed it: a user, the batch system, or the kernel when memory "
               "ran out.");
        return weft_conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

/* Calls that tell their ranks that they differ do so when all have come: that may take as long as a call may. Until then the
 * program is the one to speak, which may know what to do about it. */
static bool is_untold(const weft_bench *b, const weft_rank_view *a, const weft_rank_view *other)
{
    return b->is_over || (a->is_waiting && a->waiting >= b->patience) ||
           (other->is_waiting && other->waiting >= b->patience);
}

/* With rank 0, and, where one of both waits, with all: others move on, and are met again. */
bool weft_find_diverged(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known) continue;
        for (int k = 0; k < i; k++) {
            const weft_rank_view *other = &b->views[k];
            const bool is_met = k == 0 || view->is_waiting || other->is_waiting;
            if (!is_met || !other->is_known ||
                !weft_views_differ(view, other, is_untold(b, view, other)))
                continue;
            weft_say_rank(b, other);
            SAY(b, " and ");
            weft_say_rank(b, view);
            SAY(b, " do not run the same calls: rank %d is ", other->rank);
            weft_say_place(b, other);
            SAY(b, "; rank %d is ", view->rank);
            weft_say_place(b, view);
            SAY(b, ". No data went between calls that differ. All ranks make the same calls, "
                   "weft_read "
                   "too: one may print what all have read.");
            return weft_conclude(b, WEFT_ENDS_MISMATCH, view);
        }
    }
    return false;
}

bool weft_find_left(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence != WEFT_LEFT || !weft_waiter_of(b, view)) continue;
        weft_say_rank(b, view);
        SAY(b, " has left the job ");
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b,
            ". All ranks must make the same calls, weft_read too, of which one may print what all "
            "have read; look at what made this one end before the others.");
        return weft_conclude(b, WEFT_ENDS_MISMATCH, view);
    }
    return false;
}

static bool fails_too(const weft_bench *b, const weft_rank_view *view, const weft_rank_view *about)
{
    (void)b;
    return view != about && view->is_known && view->has_failed;
}

/* One that waits for a rank, and was not told what that one was. */
static const weft_rank_view *untold_waiter_of(const weft_bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n; i++)
        if (weft_waits_for(&b->views[i], view) && !weft_views_were_told(view, &b->views[i]))
            return &b->views[i];
    return NULL;
}

/* A rank that was told of calls that differ returns from its work with an error. Where ranks are
 * threads, those in other groups do not know of it and wait: the program cannot come to say what is
 * wrong. Those of its group were told too: they are where it may still come to. */
bool weft_find_failed(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || !view->has_failed) continue;
        const weft_rank_view *waiter = untold_waiter_of(b, view);
        if (waiter == NULL || waiter->waiting < WEFT_SPEAKING_S) continue;
        weft_say_rank(b, view);
        SAY(b, " has found ranks that do not run the same calls: it is ");
        weft_say_place(b, view);
        for (int k = 0; k < b->n; k++)
            if (fails_too(b, &b->views[k], view))
                SAY(b, "; "), weft_say_rank(b, &b->views[k]), SAY(b, " is "),
                    weft_say_place(b, &b->views[k]);
        weft_say_waiters(b, view);
        SAY(b, ". No data went between calls that differ.");
        return weft_conclude(b, WEFT_ENDS_MISMATCH, view);
    }
    return false;
}

bool weft_find_circle(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting) continue;
        const weft_rank_view *at = weft_end_of_chain(b, &b->views[i], &is_circle);
        if (!is_circle) continue;
        const weft_rank_view *next = weft_awaited_by(b, at);
        weft_say_rank(b, at);
        SAY(b, " waits for rank %d ", next->rank);
        weft_say_place(b, at);
        SAY(b, ", and ");
        weft_say_rank(b, next);
        SAY(b, " waits for rank %d ", weft_awaited_by(b, next)->rank);
        weft_say_place(b, next);
        SAY(b, ". They do not run the same calls in the same order.");
        return weft_conclude(b, WEFT_ENDS_MISMATCH, at);
    }
    return false;
}
