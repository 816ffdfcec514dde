/* judge_test: who is at fault, from views that were made up: every rule, and what it says. */
#include "judge_views.h"

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
    CHECK_TEXT(verdict.text, "weft_read too: one may print what all have read");
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

/* Whether or not others wait, and however much of the processor its lanes use. */
static void test_a_rank_whose_lanes_wait_for_each_other_hangs(void)
{
    make_views(3);
    views[1].stuck = PATIENCE + 1;
    views[1].at_work = true;
    check_verdict(3, WEFT_ENDS_HUNG, 1);
    check_names(1);
    CHECK_TEXT(verdict.text, "hangs: for 11 s its lanes have waited for each other");
    views[1].stuck = PATIENCE - 1;
    CHECK(!judged(3));
    views[1].stuck_allowed = 2; /* it was told to end */
    CHECK(judged(3));
    views[1].stuck = 1;
    CHECK(!judged(3));
    make_idle(PATIENCE + 1, PATIENCE + 1);
    views[2].stuck = PATIENCE + 1;
    CHECK(judged(3));
    CHECK_TEXT(verdict.text, "its lanes");
    CHECK_TEXT(verdict.text, "wait for it");
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
    weft_judge_held holds[3] = {{0}};
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
    weft_judge_held holds[2] = {{0}};
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
    RUN(test_a_rank_whose_lanes_wait_for_each_other_hangs);
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
    return weft_test_report();
}
