/* advise_text_test: the line of advice: the largest gain is told, with both times and the options; below 2 % nothing is; a slow rank, and
 * too little memory, have sentences of their own.
 */
#include "apps/advise_text.c" /* the programs' own; it is in no library */

#include "test.h"

enum { ROOM = 600 };

static app_advice advice_of(double now, double then)
{
    app_advice advice = {.plans = {.seconds = now, .fits = true, .n = then > 0},
                         .seconds = now,
                         .knows_seconds = true};
    advice.plans.best[0] = (weft_advised){.seconds = then, .options = "--zero 1"};
    return advice;
}

static void test_the_gain_is_told_with_both_times(void)
{
    char text[ROOM];
    const app_advice advice = advice_of(0.02, 0.015);
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "advice: with --zero 1 a step takes 15 ms in place of 20 ms, 25.0 % less");
}

static void test_small_gains_are_not_told(void)
{
    static const double then[] = {0, 0.0201, 0.02, 0.0197};
    char text[ROOM];
    for (size_t i = 0; i < sizeof then / sizeof *then; i++) {
        const app_advice advice = advice_of(0.02, then[i]);
        CHECK(!app_advice_text(&advice, text, sizeof text));
    }
}

static app_advice with_slow_rank(app_advice advice, double slow_seconds)
{
    advice.slow_rank = 3;
    advice.slow_by = 1.5;
    advice.even_seconds = advice.plans.seconds;
    advice.seconds = slow_seconds;
    return advice;
}

/* It comes first where it costs more than any option would spare. */
static void test_a_slow_rank(void)
{
    char text[ROOM];
    app_advice advice = with_slow_rank(advice_of(0.02, 0), 0.025);
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "rank 3 takes 1.5 times as long as the others; were it as fast, a step would "
                     "take 20 ms in place of 25 ms, 20.0 % less");
    advice = with_slow_rank(advice_of(0.02, 0.01), 0.025);
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "with --zero 1");
    advice = with_slow_rank(advice_of(0.02, 0), 0.0202);
    CHECK(!app_advice_text(&advice, text, sizeof text));
}

static void test_others_are_told_in_order(void)
{
    char text[ROOM];
    app_advice advice = advice_of(0.02, 0.01);
    advice.plans.n = 2;
    advice.plans.best[1] = (weft_advised){.seconds = 0.015, .options = "--micro 4"};
    app_advice_others(&advice, text, sizeof text);
    CHECK(strcmp(text,
                 "\n      10 ms  50.0 % less  --zero 1\n      15 ms  25.0 % less  --micro 4") == 0);
    advice.plans.n = 0;
    app_advice_others(&advice, text, sizeof text);
    CHECK(*text == '\0');
}

static void test_too_little_memory(void)
{
    char text[ROOM];
    app_advice advice = advice_of(0.02, 0.03);
    advice.plans.fits = false;
    advice.plans.bytes = (int64_t)4 << 30;
    advice.host_memory = (int64_t)2 << 30;
    advice.host_ranks = 1;
    advice.plans.best[0].bytes = (int64_t)1 << 30;
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "a rank needs 4.0 GiB and has 2.0 GiB; with --zero 1 it needs 1.0 GiB, and a "
                     "step takes 30 ms");
    advice.knows_seconds = false;
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "with --zero 1 it needs 1.0 GiB");
    CHECK(strstr(text, "a step takes") == NULL);
    advice.plans.n = 0;
    advice.plans.n_neighbours = 17;
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "has 2.0 GiB; take more ranks, or a smaller model or batch");
    advice.plans.smallest = (weft_advised){
        .bytes = (int64_t)3 << 30, .options = "--recompute", .choice = {.mesh = "data:2"}};
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text,
               "none of 17 other plans fits; with --recompute it needs least, 3.0 GiB: take more");
}

/* Each of them may fit, and all of them not. */
static void test_the_ranks_of_a_host_share_its_memory(void)
{
    char text[ROOM];
    app_advice advice = advice_of(0.02, 0.03);
    advice.plans.fits = false;
    advice.plans.bytes = (int64_t)1 << 30;
    advice.host_ranks = 4;
    advice.host_bytes = (int64_t)4 << 30;
    advice.host_memory = (int64_t)2 << 30;
    advice.plans.best[0].bytes = (int64_t)1 << 28;
    CHECK(app_advice_text(&advice, text, sizeof text));
    CHECK_TEXT(text, "the 4 ranks of a host need 4.0 GiB and it has 2.0 GiB, and a rank needs 1.0 "
                     "GiB; with --zero 1 it needs 0.2 GiB, and a step takes 30 ms");
}

int main(void)
{
    RUN(test_the_gain_is_told_with_both_times);
    RUN(test_small_gains_are_not_told);
    RUN(test_a_slow_rank);
    RUN(test_others_are_told_in_order);
    RUN(test_too_little_memory);
    RUN(test_the_ranks_of_a_host_share_its_memory);
    return weft_test_report();
}
