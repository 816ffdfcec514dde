/* team_test: runs reach exactly the members called, also after these have gone to sleep. */
#include "mesh_internal.h"

#include <sched.h>
#include <unistd.h>

#include "test.h"

enum { N = 5 };

static void count(void *argument, int member)
{
    ((int *)argument)[member]++;
}

static void test_only_those_called_run(void)
{
    weft_error error = {0};
    weft_team *team;
    int counts[N] = {0};
    CHECK_OK(weft_team_create(N, weft_patience_for(false), &team, &error), error);
    for (int run = 0; run < 500; run++)
        for (int n_called = 1; n_called <= N; n_called++)
            weft_team_run(team, n_called, count, counts);
    for (int m = 0; m < N; m++)
        CHECK_EQ_INT(counts[m], 500 * (N - m));
    weft_team_destroy(&team);
    CHECK(team == NULL);
    weft_team_destroy(&team);
}

static void test_sleepers_wake(void)
{
    weft_error error = {0};
    weft_team *team;
    int counts[N] = {0};
    CHECK_OK(weft_team_create(N, weft_patience_for(true), &team, &error), error);
    for (int run = 0; run < 20; run++) {
        usleep(1000 * (run % 4));
        weft_team_run(team, N, count, counts);
    }
    for (int m = 0; m < N; m++)
        CHECK_EQ_INT(counts[m], 20);
    weft_team_destroy(&team);
}

static void late(void *argument, int member)
{
    if (member == 1) usleep(20000); /* longer than the caller's patience */
    ((int *)argument)[member]++;
}

static void test_the_caller_sleeps_until_the_last_is_done(void)
{
    weft_error error = {0};
    weft_team *team;
    int counts[2] = {0};
    CHECK_OK(weft_team_create(2, weft_patience_for(false), &team, &error), error);
    for (int run = 1; run <= 3; run++) {
        weft_team_run(team, 2, late, counts);
        CHECK_EQ_INT(counts[1], run);
    }
    weft_team_destroy(&team);
}

/* Which thread had each part, and how often it was done. */
typedef struct parts {
    _Atomic int done[2];
    uint64_t thread[2];
} parts;

static void do_part(void *argument, int member)
{
    parts *p = argument;
    p->thread[member] = weft_this_thread();
    p->done[member]++;
}

static void test_what_a_member_has_not_begun_the_caller_does(void)
{
    weft_error error = {0};
    weft_team *team;
    parts p = {0};
    int by_caller = 0;
    CHECK_OK(weft_team_create(2, weft_patience_for(false), &team, &error), error);
    for (int run = 1; run <= 200; run++) {
        if (run % 20 == 0)
            usleep(1000); /* who sleeps comes later than the caller is done with its own part */
        weft_team_share(team, 2, do_part, &p);
        CHECK_EQ_INT(p.done[0], run);
        CHECK_EQ_INT(p.done[1], run);
        CHECK(p.thread[0] == weft_this_thread());
        by_caller += p.thread[1] == p.thread[0];
    }
    CHECK(by_caller > 0);
    weft_team_destroy(&team);
}

/* It may be on the same cores afterwards, on one alone too. */
static void test_who_leaves_a_core_may_come_back(void)
{
    cpu_set_t before, after, one;
    CHECK_EQ_INT(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < 20; i++) {
        weft_sync_leave(i < 10 ? weft_sync_core() : i - 12); /* some that there are not */
        CHECK_EQ_INT(sched_getaffinity(0, sizeof after, &after), 0);
        CHECK(CPU_EQUAL(&before, &after));
    }
    const int core = weft_sync_core();
    if (core < 0) return;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    CHECK_EQ_INT(sched_setaffinity(0, sizeof one, &one), 0);
    weft_sync_leave(core);
    CHECK_EQ_INT(weft_sync_core(), core);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&one, &after));
    CHECK_EQ_INT(sched_setaffinity(0, sizeof before, &before), 0);
}

static void test_a_team_of_one_is_its_caller(void)
{
    weft_error error = {0};
    weft_team *team;
    int counts[1] = {0};
    CHECK_OK(weft_team_create(1, weft_patience_for(true), &team, &error), error);
    weft_team_run(team, 1, count, counts);
    CHECK_EQ_INT(counts[0], 1);
    weft_team_share(team, 1, count, counts);
    CHECK_EQ_INT(counts[0], 2);
    weft_team_destroy(&team);
}

int main(void)
{
    RUN(test_only_those_called_run);
    RUN(test_sleepers_wake);
    RUN(test_the_caller_sleeps_until_the_last_is_done);
    RUN(test_what_a_member_has_not_begun_the_caller_does);
    RUN(test_who_leaves_a_core_may_come_back);
    RUN(test_a_team_of_one_is_its_caller);
    return weft_test_report();
}
