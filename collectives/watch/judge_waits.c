/* judge_waits: who waits for whom (judge.c says why that is enough). */
#include "judge_parts.h"

bool weft_waits_for(const weft_rank_view *waiter, const weft_rank_view *other)
{
    if (!waiter->is_waiting || waiter == other || !other->is_known) return false;
    const weft_channel_view *its = weft_view_channel(other, waiter->call.key, waiter->call.lowest);
    return its != NULL && its->sequence < waiter->call.sequence;
}

static bool waits_for_it(const weft_bench *b, const weft_rank_view *view,
                         const weft_rank_view *about)
{
    (void)b;
    return weft_waits_for(view, about);
}

const weft_rank_view *weft_waiter_of(const weft_bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n; i++)
        if (weft_waits_for(&b->views[i], view)) return &b->views[i];
    return NULL;
}

const weft_rank_view *weft_awaited_by(const weft_bench *b, const weft_rank_view *view)
{
    for (int i = 0; i < b->n; i++)
        if (weft_waits_for(view, &b->views[i])) return &b->views[i];
    return NULL;
}

void weft_say_waiters(const weft_bench *b, const weft_rank_view *view)
{
    const weft_rank_view *first = weft_waiter_of(b, view);
    if (first == NULL) return;
    SAY(b, "; ");
    const int n = weft_say_ranks(b, waits_for_it, view);
    if (n == 1)
        SAY(b, " waits for it %s", first->doing);
    else
        SAY(b, " wait for it, rank %d %s", first->rank, first->doing);
}

const weft_rank_view *weft_end_of_chain(const weft_bench *b, const weft_rank_view *view,
                                        bool *is_circle)
{
    const weft_rank_view *at = view;
    *is_circle = false;
    for (int steps = 0; steps <= b->n; steps++) {
        const weft_rank_view *next = weft_awaited_by(b, at);
        if (next == NULL) return at;
        at = next;
    }
    *is_circle = true;
    return at;
}
