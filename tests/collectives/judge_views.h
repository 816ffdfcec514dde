/* judge_views.h: made-up views of ranks, for tests of the verdict. */
#ifndef JUDGE_VIEWS_H
#define JUDGE_VIEWS_H

#include "watch/judge.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "test.h"

enum { WORLD = 7, DATA = 8, MOST = 8, PATIENCE = 10 };

static weft_rank_view views[MOST];
static weft_verdict verdict;

static inline weft_channel_view *channel_of(weft_rank_view *view, uint64_t key, int lowest)
{
    for (int i = 0; i < view->n_channels; i++)
        if (view->channels[i].key == key && view->channels[i].lowest == lowest)
            return &view->channels[i];
    weft_channel_view *made = &view->channels[view->n_channels++];
    *made = (weft_channel_view){.key = key, .lowest = lowest, .n_ranks = MOST};
    return made;
}

/* n ranks that have made 5 calls all together, and are between calls. */
static inline void make_views(int n)
{
    memset(views, 0, sizeof views);
    for (int i = 0; i < n; i++) {
        weft_rank_view *v = &views[i];
        *v = (weft_rank_view){.is_known = 1, .rank = i, .pid = 100 + i, .run = 41, .saved = 40};
        snprintf(v->host, sizeof v->host, "node%d", i);
        snprintf(v->doing, sizeof v->doing, "after call %d of rank %d", 5, i);
        v->n_begun = 5;
        *channel_of(v, WORLD, 0) = (weft_channel_view){
            .key = WORLD, .sequence = 5, .past = {44, 55, 22, 33}, .n_ranks = n};
    }
}

/* The rank begins its next call on a channel and waits. */
static inline void wait_on(int rank, uint64_t key, int lowest, int n_ranks, double seconds)
{
    weft_rank_view *v = &views[rank];
    weft_channel_view *c = channel_of(v, key, lowest);
    c->n_ranks = n_ranks;
    c->sequence++;
    c->past[c->sequence % WEFT_PAST] = c->sequence * 1000;
    v->n_begun++;
    v->is_waiting = true;
    v->waiting = seconds;
    v->call = *c;
    snprintf(v->doing, sizeof v->doing, "in call %d of channel %d", (int)c->sequence, (int)key);
}

static inline bool judged(int n)
{
    return weft_judge(views, n, PATIENCE, &verdict);
}

static inline void check_verdict(int n, int status, int rank)
{
    CHECK(judged(n));
    CHECK_EQ_INT(verdict.status, status);
    CHECK_EQ_INT(verdict.rank, rank);
    CHECK_TEXT(verdict.text, "Newest checkpoint: step 40.");
    CHECK_TEXT(verdict.text, "at step 41");
    CHECK(strlen(verdict.text) < sizeof verdict.text - 1);
}

/* "rank 2 (host node2, process 102)" */
static inline void check_names(int rank)
{
    char name[96];
    snprintf(name, sizeof name, "rank %d (host node%d, process %d)", rank, rank, 100 + rank);
    CHECK_TEXT(verdict.text, name);
}

#endif
