/* judge_test: who is at fault, from views that were made up: every rule, what it says, and that
 * ranks which make the same calls are never accused, at whatever moments they are looked at.
 */
#include "watch/judge.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "test.h"

enum { WORLD = 7, DATA = 8, MOST = 8, PATIENCE = 10 };

static weft_rank_view views[MOST];
static weft_verdict verdict;

/* ---- made up --------------------------------------------------------------------------------- */

static weft_channel_view *channel_of(weft_rank_view *view, uint64_t key, int lowest)
{
    for (int i = 0; i < view->n_channels; i++)
        if (view->channels[i].key == key && view->channels[i].lowest == lowest)
            return &view->channels[i];
    weft_channel_view *made = &view->channels[view->n_channels++];
    *made = (weft_channel_view){.key = key, .lowest = lowest, .n_ranks = MOST};
    return made;
}

/* n ranks that have made 5 calls all together, and are between calls. */
static void make_views(int n)
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
static void wait_on(int rank, uint64_t key, int lowest, int n_ranks, double seconds)
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

static bool judged(int n)
{
    return weft_judge(views, n, PATIENCE, &verdict);
}

static void check_verdict(int n, int status, int rank)
{
    CHECK(judged(n));
    CHECK_EQ_INT(verdict.status, status);
    CHECK_EQ_INT(verdict.rank, rank);
    CHECK_TEXT(verdict.text, "Newest checkpoint: step 40.");
    CHECK_TEXT(verdict.text, "at step 41");
    CHECK(strlen(verdict.text) < sizeof verdict.text - 1);
}

/* "rank 2 (host node2, process 102)" */
static void check_names(int rank)
{
    char name[96];
    snprintf(name, sizeof name, "rank %d (host node%d, process %d)", rank, rank, 100 + rank);
    CHECK_TEXT(verdict.text, name);
}

/* ---- each rule ------------------------------------------------------------------------------- */

static void test_nothing_wrong_is_no_verdict(void)
{
    make_views(4);
    CHECK(!judged(4));
    CHECK_EQ_INT(verdict.status, 0);
    for (int i = 0; i < 4; i++)
        wait_on(i, WORLD, 0, 4, 9);
    CHECK(!judged(4));
    CHECK(!weft_judge(views, 0, PATIENCE, &verdict));
}

static void test_signal_comes_first(void)
{
    make_views(3);
    views[1].signal = SIGSEGV;
    views[2].presence = WEFT_GONE;
    wait_on(0, WORLD, 0, 3, 0.1);
    check_verdict(3, WEFT_ENDS_LOST, 1);
    check_names(1);
    CHECK_TEXT(verdict.text, "died of signal 11");
    CHECK_TEXT(verdict.text, "after call 5 of rank 1");
    CHECK_TEXT(verdict.text, "rank 0 waits for it in call 6");
}

static void test_gone_is_lost(void)
{
    make_views(4);
    views[3].presence = WEFT_GONE;
    wait_on(0, WORLD, 0, 4, 0);
    wait_on(1, WORLD, 0, 4, 0);
    check_verdict(4, WEFT_ENDS_LOST, 3);
    check_names(3);
    CHECK_TEXT(verdict.text, "ended without a word");
    CHECK_TEXT(verdict.text, "ranks 0, 1 wait for it, rank 0 in call 6");
}

static void test_many_waiters_are_counted(void)
{
    enum { N = 40 };
    static weft_rank_view many[N];
    make_views(1);
    for (int i = 0; i < N; i++) {
        many[i] = views[0];
        many[i].rank = i;
        if (i < N - 1) {
            many[i].is_waiting = true;
            many[i].call = (weft_channel_view){.key = WORLD, .sequence = 6, .n_ranks = N};
            many[i].channels[0].sequence = 6;
        }
    }
    many[N - 1].presence = WEFT_GONE;
    CHECK(weft_judge(many, N, PATIENCE, &verdict));
    CHECK_TEXT(verdict.text, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 31 more wait for it");
}

static void test_silent_process_is_stopped(void)
{
    make_views(3);
    views[2].presence = WEFT_SILENT;
    views[2].silent = PATIENCE - 0.1;
    CHECK(!judged(3));
    views[2].silent = PATIENCE + 0.1;
    check_verdict(3, WEFT_ENDS_HUNG, 2);
    check_names(2);
    CHECK_TEXT(verdict.text, "is stopped");
    CHECK(strstr(verdict.text, "The same goes for") == NULL);
}

static void test_silent_host_is_cut_off_with_all_its_ranks(void)
{
    make_views(5);
    for (int i = 2; i < 5; i++) {
        views[i].presence = WEFT_UNREACHABLE;
        views[i].silent = i == 2 ? PATIENCE + 1 : PATIENCE - 1; /* heard at different moments */
    }
    check_verdict(5, WEFT_ENDS_LOST, 2);
    check_names(2);
    CHECK_TEXT(verdict.text, "is cut off");
    CHECK_TEXT(verdict.text, "The same goes for ranks 3, 4.");
}

static void test_other_calls_are_a_mismatch_at_once(void)
{
    make_views(3);
    views[2].channels[0].past[5 % WEFT_PAST]++;
    check_verdict(3, WEFT_ENDS_MISMATCH, 2);
    check_names(0);
    check_names(2);
    CHECK_TEXT(verdict.text, "do not run the same calls");
    CHECK_TEXT(verdict.text, "after call 5 of rank 0");
    CHECK_TEXT(verdict.text, "after call 5 of rank 2");
}

/* Who sends a broadcast does not wait, and may be a few calls further when it comes out. */
static void test_other_calls_of_a_rank_that_went_on(void)
{
    make_views(3);
    for (int calls = 0; calls < WEFT_PAST; calls++) {
        wait_on(2, WORLD, 0, 3, 0);
        channel_of(&views[2], WORLD, 0)->past[6 % WEFT_PAST] = 1;
    }
    views[2].is_waiting = false;
    wait_on(0, WORLD, 0, 3, 0);
    check_verdict(3, WEFT_ENDS_MISMATCH, 2);
    check_names(0);
    check_names(2);
    channel_of(&views[2], WORLD, 0)->sequence++; /* too long ago to tell */
    CHECK(!judged(3));
}

/* Then it is asked what its call was, and answers once. */
static void test_what_is_long_ago_is_asked_for(void)
{
    make_views(3);
    wait_on(0, WORLD, 0, 3, PATIENCE / 2);
    CHECK_EQ_INT(weft_views_ask(views, 3).sequence, 0);
    channel_of(&views[2], WORLD, 0)->sequence = 6 + WEFT_PAST - 1;
    CHECK_EQ_INT(weft_views_ask(views, 3).sequence, 0); /* its own fingerprints go so far */
    channel_of(&views[2], WORLD, 0)->sequence = 6 + WEFT_PAST;
    const weft_recall asked = weft_views_ask(views, 3);
    CHECK(asked.key == WORLD && asked.lowest == 0 && asked.sequence == 6);
    views[2].recalled = asked;
    views[2].recalled.fingerprint = 6000; /* the same call */
    CHECK_EQ_INT(weft_views_ask(views, 3).sequence, 0);
    CHECK(!judged(3));
    views[2].recalled.fingerprint = 0; /* its record is gone */
    CHECK(!judged(3));
    views[2].recalled.fingerprint = 1;
    check_verdict(3, WEFT_ENDS_MISMATCH, 2);
    check_names(0);
    check_names(2);
    views[2].recalled.sequence = 5; /* an answer about another call says nothing of this one */
    CHECK(!judged(3));
    CHECK_EQ_INT(weft_views_ask(views, 3).sequence, 6);
}

/* Not only with rank 0, which may have no group with them. */
static void test_other_calls_in_a_group_without_rank_0(void)
{
    make_views(4);
    wait_on(2, DATA, 2, 2, 0.1);
    wait_on(3, DATA, 2, 2, 0.1);
    CHECK(!judged(4));
    channel_of(&views[3], DATA, 2)->past[1]++;
    check_verdict(4, WEFT_ENDS_MISMATCH, 3);
    check_names(2);
    check_names(3);
}

/* Two groups of one mesh axis have one key, and different lowest ranks. */
static void test_groups_of_one_axis_are_not_compared(void)
{
    make_views(4);
    for (int i = 0; i < 4; i++)
        wait_on(i, DATA, i / 2 * 2, 2, 0.1);
    channel_of(&views[3], DATA, 2)->past[1] = 99;
    channel_of(&views[2], DATA, 2)->past[1] = 99;
    CHECK(!judged(4));
}

static void test_left_while_others_wait(void)
{
    make_views(3);
    views[1].presence = WEFT_LEFT;
    CHECK(!judged(3)); /* nobody minds */
    wait_on(0, WORLD, 0, 3, 0.1);
    check_verdict(3, WEFT_ENDS_MISMATCH, 1);
    check_names(1);
    CHECK_TEXT(verdict.text, "has left the job");
    CHECK_TEXT(verdict.text, "rank 0 waits for it in call 6");
}

static void test_told_of_a_mismatch_and_awaited(void)
{
    make_views(4);
    views[1].has_failed = views[3].has_failed = 1;
    CHECK(!judged(4)); /* they go on to say it themselves */
    wait_on(0, WORLD, 0, 4, 0.5);
    CHECK(!judged(4));
    views[0].waiting = 1.1;
    check_verdict(4, WEFT_ENDS_MISMATCH, 1);
    check_names(1);
    check_names(3);
    CHECK_TEXT(verdict.text, "rank 0 waits for it");
}

static void test_circle_of_two(void)
{
    make_views(3);
    channel_of(&views[0], DATA, 0)->n_ranks = 3;
    channel_of(&views[1], DATA, 0)->n_ranks = 3;
    wait_on(0, WORLD, 0, 3, 0);
    wait_on(1, DATA, 0, 3, 0);
    CHECK(judged(3));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
    check_names(0);
    check_names(1);
    CHECK_TEXT(verdict.text, "in call 6 of channel 7");
    CHECK_TEXT(verdict.text, "in call 1 of channel 8");
    CHECK_TEXT(verdict.text, "in the same order");
}

static void test_circle_of_three_behind_a_chain(void)
{
    make_views(4);
    for (int i = 0; i < 3; i++) /* rank i is in the groups {i, i+1}, and waits in one of them */
        for (int k = 0; k < 3; k++)
            if (k == i || (k + 1) % 3 == i)
                channel_of(&views[i], (uint64_t)(20 + k), k)->n_ranks = 2;
    for (int i = 0; i < 3; i++)
        wait_on(i, (uint64_t)(20 + i), i, 2, 0);
    wait_on(3, WORLD, 0, 4, 0); /* waits for those in the circle, and is not in it */
    CHECK(judged(4));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
    CHECK(verdict.rank != 3);
    CHECK(strstr(verdict.text, "rank 3 (") == NULL);
}

static void make_idle(double waiting, double idle)
{
    make_views(3);
    wait_on(0, WORLD, 0, 3, waiting);
    wait_on(1, WORLD, 0, 3, waiting);
    views[2].idle = idle;
}

static void test_idle_hangs(void)
{
    make_idle(PATIENCE + 1, PATIENCE + 1);
    check_verdict(3, WEFT_ENDS_HUNG, 2);
    check_names(2);
    CHECK_TEXT(verdict.text, "hangs: for 11 s");
    CHECK_TEXT(verdict.text, "ranks 0, 1 wait for it");
    make_idle(PATIENCE - 1, PATIENCE + 1);
    CHECK(!judged(3));
    make_idle(PATIENCE + 1, PATIENCE - 1);
    CHECK(!judged(3));
    make_views(3);
    views[2].idle = 1e6; /* nobody waits for it */
    CHECK(!judged(3));
}

/* All have begun the call that 0 and 1 wait in; 2 went on to something else, and brings nothing on. */
static void make_at_rest(double stalled, double idle)
{
    make_views(3);
    for (int i = 0; i < 3; i++)
        wait_on(i, WORLD, 0, 3, stalled);
    for (int i = 0; i < 2; i++)
        views[i].stalled = stalled;
    views[2].is_waiting = false;
    views[2].idle = idle;
}

static void test_who_has_begun_a_call_and_rests_hangs(void)
{
    make_at_rest(PATIENCE + 1, PATIENCE + 1);
    check_verdict(3, WEFT_ENDS_HUNG, 2);
    CHECK_TEXT(verdict.text, "hangs: for 11 s");
    make_at_rest(PATIENCE - 1, PATIENCE + 1);
    CHECK(!judged(3));
    make_at_rest(PATIENCE + 1, 0);
    views[2].at_work = true;
    CHECK(!judged(3));
}

/* 0 waits for 1, which waits for 2, which does nothing. */
static void test_the_end_of_the_chain_is_at_fault(void)
{
    make_views(3);
    channel_of(&views[2], DATA, 1)->n_ranks = 2;
    wait_on(0, WORLD, 0, 3, PATIENCE + 1);
    wait_on(1, DATA, 1, 2, PATIENCE + 1);
    views[2].idle = PATIENCE + 1;
    CHECK(judged(3));
    CHECK_EQ_INT(verdict.rank, 2);
}

static void test_work_is_slow_and_no_verdict(void)
{
    char text[1024] = "";
    make_idle(1000, 0);
    views[2].at_work = true;
    CHECK(!judged(3));
    CHECK_EQ_INT(weft_judge_slow(views, 3, 60, text, sizeof text), 2);
    CHECK_TEXT(text, "rank 2 (host node2, process 102) is at work");
    CHECK_TEXT(text, "for 1000 s; the job goes on");
    snprintf(views[2].busy, sizeof views[2].busy, "reading the test set");
    CHECK_EQ_INT(weft_judge_slow(views, 3, 60, text, sizeof text), 2);
    CHECK_TEXT(text, "(reading the test set)");
    CHECK_EQ_INT(weft_judge_slow(views, 3, 2000, text, sizeof text), -1);
    views[2].at_work = false;
    CHECK_EQ_INT(weft_judge_slow(views, 3, 60, text, sizeof text), -1);
}

static void all_arrive(int64_t bytes, double stalled)
{
    make_views(3);
    for (int i = 0; i < 3; i++) {
        wait_on(i, WORLD, 0, 3, 1000);
        views[i].call_bytes = bytes;
        views[i].stalled = stalled;
    }
}

static void test_stalled_with_allowance_for_bytes(void)
{
    all_arrive(0, PATIENCE + 0.5);
    check_verdict(3, WEFT_ENDS_HUNG, 0);
    check_names(0);
    CHECK_TEXT(verdict.text, "where all ranks have arrived");
    all_arrive(0, PATIENCE - 0.5);
    CHECK(!judged(3)); /* has waited for long, but not since the last arrived */
    all_arrive(10000000, PATIENCE + 99);
    CHECK(!judged(3)); /* 10 MB may take 100 s more */
    all_arrive(10000000, PATIENCE + 101);
    CHECK(judged(3));
    views[1].is_waiting = false;
    views[1].at_work = true; /* has begun the call, and computes before it waits */
    CHECK(!judged(3));
}

/* Process 0 is all that the others know of. */
static void test_one_view_alone_is_not_everybody(void)
{
    all_arrive(0, PATIENCE + 0.5);
    CHECK(!judged(1));
    views[2].is_known = false;
    CHECK(!judged(3));
}

static void test_hold_begins_when_the_last_arrives(void)
{
    weft_hold holds[3] = {{0}};
    make_views(3);
    wait_on(0, WORLD, 0, 3, 100);
    wait_on(1, WORLD, 0, 3, 100);
    weft_judge_hold(views, 3, 1000, holds);
    CHECK(views[0].stalled == 0);
    weft_judge_hold(views, 3, 1050, holds);
    CHECK(views[0].stalled == 0);
    wait_on(2, WORLD, 0, 3, 0);
    weft_judge_hold(views, 3, 1060, holds);
    weft_judge_hold(views, 3, 1063, holds);
    CHECK(views[0].stalled == 3 && views[2].stalled == 3);
    views[0].n_begun++; /* another call of the same kind */
    weft_judge_hold(views, 3, 1070, holds);
    CHECK(views[0].stalled == 0 && views[2].stalled == 10);
    CHECK(judged(3));
    CHECK_EQ_INT(verdict.rank, 1);
}

/* Calls that were begun together are waited for one after the other: each wait is one of its own. */
static void test_hold_begins_anew_with_the_next_call_under_way(void)
{
    weft_hold holds[2] = {{0}};
    make_views(2);
    for (int r = 0; r < 2; r++)
        for (int calls = 0; calls < 2; calls++)
            wait_on(r, WORLD, 0, 2, 100);
    const uint64_t begun = views[0].n_begun;
    views[0].call.sequence--; /* of the two that both have begun, the first */
    weft_judge_hold(views, 2, 1000, holds);
    weft_judge_hold(views, 2, 1000 + PATIENCE / 2, holds);
    CHECK(views[0].stalled == PATIENCE / 2);
    views[0].call.sequence++;
    weft_judge_hold(views, 2, 1000 + PATIENCE, holds);
    CHECK(views[0].stalled == 0 && views[0].n_begun == begun);
    CHECK(views[1].stalled == PATIENCE);
}

static void test_infinite_patience_ends_only_what_cannot_go_on(void)
{
    make_idle(1e9, 1e9);
    CHECK(!weft_judge(views, 3, INFINITY, &verdict));
    all_arrive(0, 1e9);
    CHECK(!weft_judge(views, 3, INFINITY, &verdict));
    views[1].presence = WEFT_SILENT;
    views[1].silent = 1e9;
    CHECK(!weft_judge(views, 3, INFINITY, &verdict));
    views[1].channels[0].past[6 % WEFT_PAST]++;
    CHECK(weft_judge(views, 3, INFINITY, &verdict));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
}

static void test_unknown_ranks_are_not_judged(void)
{
    make_views(3);
    views[2] = (weft_rank_view){.presence = WEFT_GONE, .signal = SIGSEGV, .silent = 1e9};
    wait_on(0, WORLD, 0, 3, 1000);
    CHECK(!judged(3));
    views[2] = (weft_rank_view){.presence = WEFT_LEFT};
    CHECK(!judged(3));
}

static void test_no_checkpoint_is_said(void)
{
    make_views(2);
    views[0].saved = views[1].saved = -1;
    views[1].presence = WEFT_GONE;
    CHECK(judged(2));
    CHECK_TEXT(verdict.text, "There is no checkpoint yet.");
    views[0].saved = 7;
    CHECK(judged(2));
    CHECK_TEXT(verdict.text, "Newest checkpoint: step 7.");
}

/* Texts as long as they can be: the verdict is cut, not overrun. */
static void test_long_texts_are_cut(void)
{
    make_views(8);
    for (int i = 0; i < 8; i++) {
        memset(views[i].doing, 'd', sizeof views[i].doing - 1);
        memset(views[i].host, 'h', sizeof views[i].host - 1);
        views[i].has_failed = i > 0;
    }
    wait_on(0, WORLD, 0, 8, 1000);
    memset(views[0].doing, 'd', sizeof views[0].doing - 1);
    CHECK(judged(8));
    CHECK(strlen(verdict.text) < sizeof verdict.text);
}

/* ---- when it is over ------------------------------------------------------------------------- */

static void test_remains_name_who_was_behind(void)
{
    make_views(3);
    wait_on(0, WORLD, 0, 3, 0);
    wait_on(2, WORLD, 0, 3, 0);
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_LOST);
    CHECK_EQ_INT(verdict.rank, 1);
    check_names(1);
    CHECK_TEXT(verdict.text, "was behind when all ended");
    CHECK_TEXT(verdict.text, "ranks 0, 2 wait for it");
}

/* 1 waits in a call that 0 has not begun, 0 in one that all have begun; 2 was stopped in the middle of that. */
static void test_remains_do_not_name_who_was_held_up(void)
{
    make_views(3);
    wait_on(0, WORLD, 0, 3, 0);
    wait_on(2, WORLD, 0, 3, 0);
    wait_on(1, WORLD, 0, 3, 0);
    wait_on(1, WORLD, 0, 3, 0);
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_EQ_INT(verdict.rank, 0);
    CHECK_TEXT(verdict.text, "was behind when all ended");
    views[2].silent = 2.5;
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_EQ_INT(verdict.rank, 2);
    CHECK_TEXT(verdict.text, "was heard last 2.5 s before all ended");
}

static void test_remains_name_who_was_silent_first(void)
{
    make_views(3);
    for (int i = 0; i < 3; i++)
        wait_on(i, WORLD, 0, 3, 0);
    views[2].silent = 0.3; /* a look is taken four times a second */
    views[1].silent = 2.5;
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_EQ_INT(verdict.rank, 1);
    CHECK_TEXT(verdict.text, "was heard last 2.5 s before all ended: it was at step 41, in call 6");
    views[1].silent = 0.5;
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_TEXT(verdict.text, "ended from outside");
}

static void test_remains_of_each_kind(void)
{
    make_views(2);
    CHECK(weft_judge_remains(views, 2, &verdict));
    CHECK_TEXT(verdict.text, "ended from outside");
    views[1].signal = SIGABRT;
    CHECK(weft_judge_remains(views, 2, &verdict));
    CHECK_TEXT(verdict.text, "died of signal 6");
    make_views(2);
    views[1].channels[0].past[5 % WEFT_PAST] = 1;
    CHECK(weft_judge_remains(views, 2, &verdict));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
    make_views(2);
    views[0].presence = views[1].presence = WEFT_LEFT;
    CHECK(!weft_judge_remains(views, 2, &verdict));
    views[1].presence = WEFT_PRESENT;
    wait_on(1, WORLD, 0, 2, 0);
    CHECK(weft_judge_remains(views, 2, &verdict));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
    CHECK_TEXT(verdict.text, "has left the job");
}

/* ---- properties: ranks that go through a list of calls -----------------------------------------
 */

enum { CALLS = 24, GROUPS = 6, SAMPLES = 100000, CHANGED = 20000 };

static uint64_t state = 1;
static uint32_t random_below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

typedef struct call {
    int group, kind;
} call;

typedef struct job {
    int n;                    /* ranks */
    uint32_t members[GROUPS]; /* set of ranks */
    call list[MOST][CALLS + 1];
    int length[MOST];
} job;

/* Moment 2k: before call k. 2k + 1: in it. */
typedef struct moment {
    int at[MOST];
} moment;

static bool is_member(const job *j, int group, int rank)
{
    return j->members[group] >> rank & 1;
}

static job random_job(void)
{
    job j = {.n = 2 + (int)random_below(MOST - 1)};
    for (int g = 0; g < GROUPS; g++) {
        j.members[g] = g == 0 ? (1u << j.n) - 1 : 1 + random_below((1u << j.n) - 1);
        while (__builtin_popcount(j.members[g]) < 2)
            j.members[g] |= 1u << random_below((uint32_t)j.n);
    }
    for (int c = 0; c < CALLS; c++) {
        const call made = {(int)random_below(GROUPS), (int)random_below(4)};
        for (int r = 0; r < j.n; r++)
            if (is_member(&j, made.group, r)) j.list[r][j.length[r]++] = made;
    }
    return j;
}

/* How many calls a rank has begun in a group, and the fingerprint of them. */
static weft_channel_view progress(const job *j, int rank, int at, int group)
{
    weft_channel_view c = {.key = (uint64_t)(group + 1),
                           .lowest = __builtin_ctz(j->members[group]),
                           .n_ranks = __builtin_popcount(j->members[group])};
    uint64_t fingerprint = 17;
    for (int i = 0; 2 * i < at; i++) {
        if (j->list[rank][i].group != group) continue;
        c.sequence++;
        fingerprint = (fingerprint ^ (uint64_t)j->list[rank][i].kind) * 0x9e3779b97f4a7c15u;
        c.past[c.sequence % WEFT_PAST] = fingerprint;
    }
    return c;
}

static weft_rank_view view_at(const job *j, int rank, int at)
{
    weft_rank_view v = {
        .is_known = 1, .rank = rank, .n_begun = (uint64_t)(at + 1) / 2, .saved = -1};
    for (int g = 0; g < GROUPS; g++)
        if (is_member(j, g, rank)) v.channels[v.n_channels++] = progress(j, rank, at, g);
    v.is_waiting = at % 2;
    if (v.is_waiting) v.call = progress(j, rank, at, j->list[rank][at / 2].group);
    if (at == 2 * j->length[rank]) v.presence = WEFT_LEFT;
    snprintf(v.doing, sizeof v.doing, "at moment %d", at);
    return v;
}

/* Whether a rank can end the call that it is in: all have begun it. Kind 0 is a broadcast from the
 * lowest: who sends needs nobody, who receives needs the sender. */
static bool can_go_on(const job *j, const moment *m, int rank)
{
    const int at = m->at[rank];
    if (at % 2 == 0) return at < 2 * j->length[rank];
    const call own = j->list[rank][at / 2];
    const weft_channel_view c = progress(j, rank, at, own.group);
    if (own.kind == 0 && rank == c.lowest) return true;
    for (int r = 0; r < j->n; r++) {
        if (!is_member(j, own.group, r)) continue;
        if (own.kind == 0 && r != c.lowest) continue; /* waits for the sender alone */
        if (progress(j, r, m->at[r], own.group).sequence < c.sequence) return false;
    }
    return true;
}

/* One rank takes one step. False: none can. */
static bool advance(const job *j, moment *m)
{
    int order = (int)random_below((uint32_t)j->n);
    for (int i = 0; i < j->n; i++) {
        const int rank = (order + i) % j->n;
        if (!can_go_on(j, m, rank)) continue;
        m->at[rank]++;
        return true;
    }
    return false;
}

/* Views of some ranks are from earlier: of any moment, not only of the last second. */
static void test_same_calls_are_never_accused(void)
{
    int n_verdicts = 0, n_samples = 0, n_waiting = 0;
    while (n_samples < SAMPLES) {
        const job j = random_job();
        moment m = {{0}};
        for (int r = 0; r < j.n; r++)
            views[r] = view_at(&j, r, 0);
        do {
            for (int r = 0; r < j.n; r++)
                if (random_below(4) == 0) views[r] = view_at(&j, r, m.at[r]);
            n_verdicts += weft_judge(views, j.n, INFINITY, &verdict);
            for (int r = 0; r < j.n; r++)
                n_waiting += views[r].is_waiting;
            n_samples++;
        } while (advance(&j, &m));
        for (int r = 0; r < j.n; r++) /* the list is one that ends */
            if (m.at[r] != 2 * j.length[r]) CHECK(false);
    }
    CHECK_EQ_INT(n_verdicts, 0);
    CHECK(n_waiting > n_samples / 4);
    printf("%d samples, %d verdicts\n", n_samples, n_verdicts);
}

/* ---- one rank's list altered -------------------------------------------------------------------
 */

static void skip(job *j, int rank, int at)
{
    j->length[rank]--;
    for (int i = at; i < j->length[rank]; i++)
        j->list[rank][i] = j->list[rank][i + 1];
}

static void extra(job *j, int rank, int at)
{
    for (int i = j->length[rank]; i > at; i--)
        j->list[rank][i] = j->list[rank][i - 1];
    j->length[rank]++;
}

static void swap(job *j, int rank, int at)
{
    const int next = at + 1 < j->length[rank] ? at + 1 : at;
    const call kept = j->list[rank][at];
    j->list[rank][at] = j->list[rank][next];
    j->list[rank][next] = kept;
}

static void other_kind(job *j, int rank, int at)
{
    j->list[rank][at].kind ^= 1 + (int)random_below(3);
}

/* Calls that differ get nothing from each other: as far as the first, all goes well; from there on
 * a rank that is in a call of another fingerprint stays. */
static bool gets_data(const job *j, const moment *m, int rank)
{
    const int at = m->at[rank];
    if (at % 2 == 0) return true;
    const int group = j->list[rank][at / 2].group;
    const weft_channel_view own = progress(j, rank, at, group);
    for (int r = 0; r < j->n; r++) {
        if (!is_member(j, group, r)) continue;
        for (int k = 0; k <= m->at[r]; k++) {
            const weft_channel_view its = progress(j, r, k, group);
            if (its.sequence == own.sequence && weft_channels_differ(&its, &own)) return false;
        }
    }
    return true;
}

static void run_as_far_as_it_goes(const job *j, moment *m)
{
    bool has_moved = true;
    while (has_moved) {
        has_moved = false;
        for (int r = 0; r < j->n; r++) {
            if (!can_go_on(j, m, r) || !gets_data(j, m, r)) continue;
            m->at[r]++;
            has_moved = true;
        }
    }
}

static bool is_same_list(const job *a, const job *b, int rank)
{
    if (a->length[rank] != b->length[rank]) return false;
    for (int i = 0; i < a->length[rank]; i++)
        if (a->list[rank][i].group != b->list[rank][i].group ||
            a->list[rank][i].kind != b->list[rank][i].kind)
            return false;
    return true;
}

/* All came to the end of their lists: the groups have seen the same calls, or one more of a sender
 * that nobody answers and that nothing comes after. weft_calls_check finds that. */
static bool have_all_ended(const job *j, const moment *m)
{
    for (int r = 0; r < j->n; r++)
        if (m->at[r] < 2 * j->length[r]) return false;
    return true;
}

static bool have_groups_seen_the_same(const job *j, const moment *m)
{
    for (int g = 0; g < GROUPS; g++) {
        const int lowest = __builtin_ctz(j->members[g]);
        const weft_channel_view first = progress(j, lowest, m->at[lowest], g);
        for (int r = 0; r < j->n; r++) {
            if (!is_member(j, g, r)) continue;
            const weft_channel_view its = progress(j, r, m->at[r], g);
            if (weft_channels_differ(&its, &first)) return false;
        }
    }
    return true;
}

static void test_altered_calls_are_always_found(void)
{
    static void (*const alter[])(job *, int, int) = {skip, extra, swap, other_kind};
    int n_harmless = 0, n_missed = 0, n_other = 0, n_tried = 0;
    while (n_tried < CHANGED) {
        job j = random_job();
        const job before = j;
        moment m = {{0}};
        const int rank = (int)random_below((uint32_t)j.n);
        if (j.length[rank] < 2) continue;
        alter[n_tried % 4](&j, rank, (int)random_below((uint32_t)j.length[rank]));
        if (is_same_list(&before, &j, rank)) continue;
        run_as_far_as_it_goes(&j, &m);
        n_tried++;
        for (int r = 0; r < j.n; r++)
            views[r] = view_at(&j, r, m.at[r]);
        const bool is_found = weft_judge(views, j.n, INFINITY, &verdict);
        if (have_all_ended(&j, &m) && have_groups_seen_the_same(&j, &m)) {
            n_harmless++;
            n_other += is_found;
            continue;
        }
        if (!is_found)
            n_missed++;
        else
            n_other += verdict.status != WEFT_ENDS_MISMATCH;
    }
    CHECK_EQ_INT(n_missed, 0);
    CHECK_EQ_INT(n_other, 0);
    CHECK(n_harmless < n_tried / 4);
    printf("%d altered, %d of them without effect, %d not found\n", n_tried, n_harmless, n_missed);
}

int main(void)
{
    RUN(test_nothing_wrong_is_no_verdict);
    RUN(test_signal_comes_first);
    RUN(test_gone_is_lost);
    RUN(test_many_waiters_are_counted);
    RUN(test_silent_process_is_stopped);
    RUN(test_silent_host_is_cut_off_with_all_its_ranks);
    RUN(test_other_calls_are_a_mismatch_at_once);
    RUN(test_other_calls_of_a_rank_that_went_on);
    RUN(test_what_is_long_ago_is_asked_for);
    RUN(test_other_calls_in_a_group_without_rank_0);
    RUN(test_groups_of_one_axis_are_not_compared);
    RUN(test_left_while_others_wait);
    RUN(test_told_of_a_mismatch_and_awaited);
    RUN(test_circle_of_two);
    RUN(test_circle_of_three_behind_a_chain);
    RUN(test_idle_hangs);
    RUN(test_who_has_begun_a_call_and_rests_hangs);
    RUN(test_the_end_of_the_chain_is_at_fault);
    RUN(test_work_is_slow_and_no_verdict);
    RUN(test_stalled_with_allowance_for_bytes);
    RUN(test_one_view_alone_is_not_everybody);
    RUN(test_hold_begins_when_the_last_arrives);
    RUN(test_hold_begins_anew_with_the_next_call_under_way);
    RUN(test_infinite_patience_ends_only_what_cannot_go_on);
    RUN(test_unknown_ranks_are_not_judged);
    RUN(test_no_checkpoint_is_said);
    RUN(test_long_texts_are_cut);
    RUN(test_remains_name_who_was_behind);
    RUN(test_remains_do_not_name_who_was_held_up);
    RUN(test_remains_name_who_was_silent_first);
    RUN(test_remains_of_each_kind);
    RUN(test_same_calls_are_never_accused);
    RUN(test_altered_calls_are_always_found);
    return weft_test_report();
}
