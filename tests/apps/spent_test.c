/* spent_test: a training is told what its time was spent on beside its steps, with the option that spares it: planted times, no clock. */
#include "apps/spent.c" /* the programs' own; it is in no library */

#include "test.h"

static double now;
double app_seconds(void)
{
    return now;
}

enum { ROOM = 1000 };

/* Laps are added by hand. */
static app_spent spent_on(app_spending what, double seconds, double steps)
{
    app_spent spent = {0};
    spent.seconds[APP_ON_STEPS] = steps;
    spent.seconds[what] += seconds;
    return spent;
}

static void test_a_healthy_run_is_told_nothing(void)
{
    char text[ROOM];
    for (int what = APP_ON_STEPS; what < APP_SPENDINGS; what++) {
        const app_spent spent = spent_on((app_spending)what, 1.9, 98.1);
        CHECK(!app_spent_tell(&spent, text, sizeof text) && *text == '\0');
    }
}

static void test_what_takes_time_is_told_with_what_helps(void)
{
    static const struct {
        app_spending what;
        const char *sentence, *option;
    } cases[] = {
        {APP_ON_INPUT, "waiting for input took 10 s, 10.0 % of the run", "--lanes"},
        {APP_ON_SAVES, "waiting for checkpoints took 10 s, 10.0 % of the run", "--save-every"},
        {APP_ON_LOOKS, "held out took 10 s, 10.0 % of the run", "--eval-every"},
        {APP_ON_CHECKS, "what ranks hold took 10 s, 10.0 % of the run", "--check-replicas"},
        {APP_ON_REST, "work between steps took 10 s, 10.0 % of the run", "--metrics"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[ROOM];
        const app_spent spent = spent_on(cases[i].what, 10, 90);
        CHECK(app_spent_tell(&spent, text, sizeof text));
        CHECK_TEXT(text, cases[i].sentence);
        CHECK_TEXT(text, cases[i].option);
        CHECK(strchr(text, '\n') == NULL);
    }
}

/* Of input it is told which ranks waited; where no records are, nothing is. */
static void test_ranks_that_wait_for_input_are_told(void)
{
    char text[ROOM];
    app_spent spent = spent_on(APP_ON_INPUT, 10, 90);
    snprintf(spent.input, sizeof spent.input, " (rank 1 on host read for 9 s, rank 0 for 1 s)");
    CHECK(app_spent_tell(&spent, text, sizeof text));
    CHECK_TEXT(text, "10.0 % of the run (rank 1 on host read for 9 s, rank 0 for 1 s): the next");
    spent.seconds[APP_ON_SAVES] = 20;
    CHECK(app_spent_tell(&spent, text, sizeof text));
    CHECK_TEXT(text, "waiting for checkpoints took 20 s, 16.7 % of the run: a larger");
    app_spent_ranks(&spent, "/nowhere");
    CHECK(spent.input[0] == '\0');
}

static void test_the_largest_comes_first(void)
{
    char text[ROOM];
    app_spent spent = spent_on(APP_ON_SAVES, 30, 50);
    spent.seconds[APP_ON_INPUT] = 18;
    spent.seconds[APP_ON_REST] = 1.9;
    CHECK(app_spent_tell(&spent, text, sizeof text));
    CHECK(strncmp(text, "waiting for checkpoints", 23) == 0);
    const char *second = strchr(text, '\n');
    CHECK(second && strncmp(second + 1, "waiting for input", 17) == 0);
    CHECK(second && strchr(second + 1, '\n') == NULL);
}

static void test_a_short_run_says_nothing_of_itself(void)
{
    char text[ROOM];
    const app_spent spent = spent_on(APP_ON_INPUT, 2, 2.9);
    CHECK(!app_spent_tell(&spent, text, sizeof text));
}

/* Sentences for room that is too small are cut, and nothing is written beyond. */
static void test_room_is_kept(void)
{
    char text[ROOM];
    app_spent spent = spent_on(APP_ON_SAVES, 30, 50);
    spent.seconds[APP_ON_INPUT] = 18;
    for (size_t room = 1; room < 300; room += 7) {
        memset(text, 'x', sizeof text);
        (void)app_spent_tell(&spent, text, room);
        CHECK(memchr(text, '\0', room) != NULL && text[room] == 'x');
    }
}

static void test_laps_go_to_what_they_were_spent_on(void)
{
    app_spent spent;
    now = 1000;
    app_spent_begin(&spent);
    for (int i = 0; i < 4 * APP_SPENDINGS; i++) {
        now += 1 << i % APP_SPENDINGS;
        app_spent_lap(&spent, (app_spending)(i % APP_SPENDINGS));
    }
    for (int what = 0; what < APP_SPENDINGS; what++)
        CHECK_CLOSE(spent.seconds[what], 4 << what, 1e-9);
}

int main(void)
{
    RUN(test_a_healthy_run_is_told_nothing);
    RUN(test_what_takes_time_is_told_with_what_helps);
    RUN(test_ranks_that_wait_for_input_are_told);
    RUN(test_the_largest_comes_first);
    RUN(test_a_short_run_says_nothing_of_itself);
    RUN(test_room_is_kept);
    RUN(test_laps_go_to_what_they_were_spent_on);
    return weft_test_report();
}
