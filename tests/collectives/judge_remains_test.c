/* judge_remains_test: who was at fault in a job that is over. */
#include "judge_views.h"

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

int main(void)
{
    RUN(test_remains_name_who_was_behind);
    RUN(test_remains_do_not_name_who_was_held_up);
    RUN(test_remains_name_who_was_silent_first);
    RUN(test_remains_of_each_kind);
    return weft_test_report();
}
