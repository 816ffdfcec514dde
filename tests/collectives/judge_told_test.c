/* judge_told_test: calls that tell their ranks themselves that they differ (weft_recorder_tells): the program is the one to
 * speak, and the watch speaks for it when nobody is told for long.
 */
#include "judge_views.h"

/* The rank has been told of its last call on a channel, and begins anew (weft_recorder_settle). */
static void settle(int rank, uint64_t key, int lowest)
{
    weft_channel_view *c = channel_of(&views[rank], key, lowest);
    c->past[c->sequence % WEFT_PAST] = 0;
    views[rank].has_failed = true;
}

static void differ(int rank, uint64_t key, int lowest)
{
    weft_channel_view *c = channel_of(&views[rank], key, lowest);
    c->past[c->sequence % WEFT_PAST] ^= 1;
    views[rank].call = *c;
}

/* Ranks 0 and 1 are in other calls of a group of three, and rank 2 has not come. */
static void make_other_calls(double seconds)
{
    make_views(3);
    for (int r = 0; r < 3; r++)
        channel_of(&views[r], WORLD, 0)->tells = true;
    wait_on(0, WORLD, 0, 3, seconds);
    wait_on(1, WORLD, 0, 3, seconds);
    differ(1, WORLD, 0);
    views[2].at_work = true;
}

static void test_calls_that_tell_are_left_to_do_so(void)
{
    make_other_calls(PATIENCE - 1);
    CHECK(!judged(3));
    for (int r = 0; r < 3; r++)
        channel_of(&views[r], WORLD, 0)->tells = false;
    check_verdict(3, WEFT_ENDS_MISMATCH, 1);
}

static void test_who_is_not_told_for_long_is_spoken_for(void)
{
    make_other_calls(PATIENCE + 1);
    check_verdict(3, WEFT_ENDS_MISMATCH, 1);
    CHECK_TEXT(verdict.text, "do not run the same calls");
}

static void test_a_job_that_is_over_is_spoken_for(void)
{
    make_other_calls(0);
    CHECK(weft_judge_remains(views, 3, &verdict));
    CHECK_EQ_INT(verdict.status, WEFT_ENDS_MISMATCH);
}

/* Rank 1 has been told, and leaves; of rank 0, which is held up, the same call is known from before. */
static void test_views_from_before_and_after_are_not_compared(void)
{
    make_other_calls(PATIENCE + 1);
    settle(1, WORLD, 0);
    CHECK(!judged(3));
    wait_on(1, WORLD, 0, 3, PATIENCE + 1);
    wait_on(2, WORLD, 0, 3, 0);
    CHECK(!judged(3));
}

/* Rank 0 has been told, and computes before it goes on; the others, which were told too, wait for it as for any other. */
static void test_who_was_told_too_waits_as_for_any_other(void)
{
    make_other_calls(0);
    wait_on(2, WORLD, 0, 3, 0);
    for (int r = 0; r < 3; r++)
        settle(r, WORLD, 0);
    views[0].is_waiting = false;
    views[0].at_work = true;
    views[1].has_failed = views[2].has_failed = false;
    wait_on(1, WORLD, 0, 3, 30);
    wait_on(2, WORLD, 0, 3, 30);
    CHECK(!judged(3));
    wait_on(2, DATA, 0, 2, 30); /* in a group that was told of nothing */
    channel_of(&views[0], DATA, 0);
    channel_of(&views[2], WORLD, 0)->key = WORLD + 1;
    check_verdict(3, WEFT_ENDS_MISMATCH, 0);
    CHECK_TEXT(verdict.text, "has found ranks that do not run the same calls");
}

int main(void)
{
    RUN(test_calls_that_tell_are_left_to_do_so);
    RUN(test_who_is_not_told_for_long_is_spoken_for);
    RUN(test_a_job_that_is_over_is_spoken_for);
    RUN(test_views_from_before_and_after_are_not_compared);
    RUN(test_who_was_told_too_waits_as_for_any_other);
    return weft_test_report();
}
