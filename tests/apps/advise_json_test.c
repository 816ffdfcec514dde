/* advise_json_test: what would help as data: what spares 2 % or more, the largest gain first, a slow rank at its place among the changes;
 * what does not fit into memory; what a run was spent on.
 */
#include "apps/advise_json.c" /* the programs' own; they are in no library */
#include "apps/advise_text.c"
#include "apps/json.c"
#include "apps/spent.c"

#include "test.h"

static double now;
double app_seconds(void)
{
    return now;
}

void app_search_command(const app_search *search, const weft_choice *choice, char *text,
                        size_t room)
{
    snprintf(text, room, "%s --mesh %s", search->command, choice->mesh);
}

static const app_search search = {.command = "train"};

/* A step of 20 ms, and two changes. */
static app_advice advice_of(double first, double second)
{
    app_advice advice = {.plans = {.seconds = 0.02,
                                   .work_seconds = 0.015,
                                   .exposed_seconds = 0.005,
                                   .fits = true,
                                   .n = 2},
                         .seconds = 0.02,
                         .host_ranks = 1,
                         .knows_seconds = true};
    advice.plans.best[0] = (weft_advised){.seconds = first,
                                          .work_seconds = 0.016,
                                          .exposed_seconds = 0.001,
                                          .options = "--zero 1",
                                          .choice = {.mesh = "data:2"}};
    advice.plans.best[1] =
        (weft_advised){.seconds = second, .options = "--micro 4", .choice = {.mesh = "data:4"}};
    return advice;
}

static const char *text_at(const json_t *list, size_t i, const char *name)
{
    const char *text = json_string_value(json_object_get(json_array_get(list, i), name));
    return text ? text : "(none)";
}

static double number_at(const json_t *list, size_t i, const char *name)
{
    return json_number_value(json_object_get(json_array_get(list, i), name));
}

static void test_changes_have_gain_command_and_reason(void)
{
    const app_advice advice = advice_of(0.017, 0.0197);
    json_t *list = app_advice_json(&search, &advice, NULL);
    CHECK_EQ_INT((long long)json_array_size(list), 1); /* 1.5 % is not worth a word */
    CHECK_TEXT(text_at(list, 0, "what"), "--zero 1");
    CHECK_TEXT(text_at(list, 0, "of"), "step");
    CHECK_TEXT(text_at(list, 0, "command"), "train --mesh data:2");
    CHECK_TEXT(text_at(list, 0, "reason"),
               "computing takes 1 ms more, waiting for exchanges takes 4 ms less");
    CHECK_CLOSE(number_at(list, 0, "gain_seconds"), 0.003, 1e-15);
    CHECK_CLOSE(number_at(list, 0, "gain_share"), 0.15, 1e-12);
    json_decref(list);
}

static void test_a_slow_rank_stands_at_its_place(void)
{
    app_advice advice = advice_of(0.01, 0.018); /* spares 50 % and 10 %; the slow rank costs 20 % */
    advice.slow_rank = 3;
    advice.slow_by = 1.5;
    advice.seconds = 0.025;
    advice.even_seconds = 0.02;
    json_t *list = app_advice_json(&search, &advice, NULL);
    CHECK_EQ_INT((long long)json_array_size(list), 3);
    CHECK_TEXT(text_at(list, 0, "what"), "--zero 1");
    CHECK_TEXT(text_at(list, 1, "what"), "give the part of rank 3 to another host");
    CHECK(json_is_null(json_object_get(json_array_get(list, 1), "command")));
    CHECK_CLOSE(number_at(list, 1, "gain_seconds"), 0.005, 1e-15);
    CHECK_TEXT(text_at(list, 2, "what"), "--micro 4");
    json_decref(list);
}

static void test_too_little_memory(void)
{
    app_advice advice = advice_of(0.03, 0.04);
    advice.plans.fits = false;
    advice.plans.n = 1;
    advice.plans.bytes = (int64_t)4 << 30;
    advice.host_memory = (int64_t)2 << 30;
    advice.plans.best[0].bytes = (int64_t)1 << 30;
    json_t *list = app_advice_json(&search, &advice, NULL);
    CHECK_EQ_INT((long long)json_array_size(list), 1);
    CHECK_TEXT(text_at(list, 0, "what"), "--zero 1");
    CHECK_TEXT(text_at(list, 0, "reason"),
               "a rank needs 4.0 GiB and has 2.0 GiB; with this it needs 1.0 GiB");
    CHECK_CLOSE(number_at(list, 0, "gain_seconds"), -0.01, 1e-15); /* it takes longer, and fits */
    json_decref(list);
    advice.knows_seconds = false;
    advice.plans.n = 0;
    list = app_advice_json(&search, &advice, NULL);
    CHECK_TEXT(text_at(list, 0, "what"), "take more ranks, or a smaller model or batch");
    CHECK(json_is_null(json_object_get(json_array_get(list, 0), "gain_seconds")));
    CHECK(json_is_null(json_object_get(json_array_get(list, 0), "command")));
    json_decref(list);
}

static void test_what_a_run_was_spent_on(void)
{
    app_spent spent = {.seconds = {[APP_ON_STEPS] = 80, [APP_ON_INPUT] = 15, [APP_ON_SAVES] = 5}};
    const app_advice advice = {.plans = {.fits = true}, .knows_seconds = true, .seconds = 0.02};
    json_t *list = app_advice_json(&search, &advice, &spent);
    CHECK_EQ_INT((long long)json_array_size(list), 2);
    CHECK_TEXT(text_at(list, 0, "what"), "waiting for input");
    CHECK_TEXT(text_at(list, 0, "of"), "run");
    CHECK_CLOSE(number_at(list, 0, "gain_seconds"), 15, 0);
    CHECK_CLOSE(number_at(list, 1, "gain_share"), 0.05, 1e-15);
    CHECK_TEXT(text_at(list, 1, "reason"), "--save-every");
    json_decref(list);
}

int main(void)
{
    RUN(test_changes_have_gain_command_and_reason);
    RUN(test_a_slow_rank_stands_at_its_place);
    RUN(test_too_little_memory);
    RUN(test_what_a_run_was_spent_on);
    return weft_test_report();
}
