/* judge_remains: who was at fault in a job that is over. */
#include "judge_parts.h"

#include <math.h>

/* The rank that others were waiting for, and that waited for nobody. It may itself have been in a call that all had begun:
 * then somebody else may have held it up there. */
static bool find_end(const weft_bench *b, bool is_waiting)
{
    for (int i = 0; i < b->n; i++) {
        bool is_circle;
        if (!b->views[i].is_waiting) continue;
        const weft_rank_view *view = weft_end_of_chain(b, &b->views[i], &is_circle);
        if (view == &b->views[i] || is_circle || !!view->is_waiting != is_waiting) continue;
        weft_say_rank(b, view);
        SAY(b, " was behind when all ended: it was ");
        weft_say_place(b, view);
        weft_say_waiters(b, view);
        SAY(b, ".");
        return weft_conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

static bool find_behind(const weft_bench *b)
{
    return find_end(b, false);
}

static bool find_behind_in_call(const weft_bench *b)
{
    return find_end(b, true);
}

/* All had begun the call that they were in, but one was heard last well before the others: stopped in the middle, perhaps. */
static bool find_first_silent(const weft_bench *b)
{
    const weft_rank_view *first = NULL;
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (view->is_known && view->presence != WEFT_LEFT && view->silent > WEFT_SPEAKING_S &&
            (first == NULL || view->silent > first->silent))
            first = view;
    }
    if (first == NULL) return false;
    weft_say_rank(b, first);
    SAY(b, " was heard last %.1f s before all ended: it was ", first->silent);
    weft_say_place(b, first);
    SAY(b, ".");
    return weft_conclude(b, WEFT_ENDS_LOST, first);
}

static bool find_cut_short(const weft_bench *b)
{
    for (int i = 0; i < b->n; i++) {
        const weft_rank_view *view = &b->views[i];
        if (!view->is_known || view->presence == WEFT_LEFT) continue;
        SAY(b,
            "The job was ended from outside, or by one of its processes: no rank was waiting for "
            "another. ");
        weft_say_rank(b, view);
        SAY(b, " was ");
        weft_say_place(b, view);
        SAY(b, ".");
        return weft_conclude(b, WEFT_ENDS_LOST, view);
    }
    return false;
}

bool weft_judge_remains(const weft_rank_view *views, int n, weft_verdict *verdict)
{
    static bool (*const rules[])(const weft_bench *) = {
        weft_find_signalled, weft_find_diverged, weft_find_left,      weft_find_circle,
        find_behind,         find_first_silent,  find_behind_in_call, find_cut_short};
    *verdict = (weft_verdict){.rank = -1};
    const weft_bench b = {views, n, INFINITY, verdict, .is_over = true};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](&b)) return true;
    return false;
}
