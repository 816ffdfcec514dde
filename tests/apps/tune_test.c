/* tune_test: weft tune on small trainings. The best part goes on. A search that was killed comes to the same results. Trials that crash are
 * counted. A trial goes on, on another mesh. Mistakes are told before anything is trained. */
#include "command.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "text_folder.h"

#define LEARN                                                                                      \
    " -- gpt train --data text.txt --layers 1 --width 8 --heads 2 --seq 8 --batch 8 --dropout 0 "  \
    "--quiet --steps "

static const command_result *tune(const char *arguments)
{
    static command_result r;
    char line[2048];
    snprintf(line, sizeof line, "cd %s && " WEFT_TEST_BIN "/weft tune %s 2>&1", folder, arguments);
    r = command_run_all(line);
    return &r;
}

static void check_status(const command_result *r, int status)
{
    weft_test_check(r->status == status, __FILE__, __LINE__, r->text);
}

/* The lines of results.jsonl, each without its seconds, sorted. */
static void results_of(const char *name, char text[1 << 16])
{
    char line[512];
    snprintf(line, sizeof line, "sed 's/,\"seconds\".*//; /^$/d' %s/%s/results.jsonl | sort",
             folder, name);
    const command_result r = command_run_all(line);
    snprintf(text, 1 << 16, "%s", r.text);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Nine, three, one: 4, 12 and 36 steps. */
static void test_the_best_third_goes_on(void)
{
    static char results[1 << 16];
    char line[256];
    const command_result *r =
        tune("--vary rate=1e-5..1e-1:log --trials 9 --halving 3 --run halved" LEARN "36");
    check_status(r, 0);
    CHECK_TEXT(r->text, "9 of 9 trials, 0 failed, 84 steps trained");
    CHECK_TEXT(r->text, "best: gpt train");
    results_of("halved", results);
    CHECK_EQ_INT(count(results, "\"rung\":0,\"step\":4"), 9);
    CHECK_EQ_INT(count(results, "\"rung\":1,\"step\":12"), 3);
    CHECK_EQ_INT(count(results, "\"rung\":2,\"step\":36"), 1);
    snprintf(line, sizeof line, "grep -c '<circle' %s/halved/tune.svg", folder);
    CHECK_EQ_INT(atoi(command_run_all(line).text), 9);
}

/* What has been trained in parts is what is trained at once. */
static void test_a_rung_is_the_beginning_of_the_training(void)
{
    char line[1024];
    check_status(tune("--vary rate=0.003 --trials 1 --run once" LEARN "36"), 0);
    check_status(
        tune("--vary 'rate=0.003|0.0001|0.00001' --search grid --halving 3 --run parts" LEARN "36"),
        0);
    snprintf(line, sizeof line,
             "cd %s && cut -d, -f1,2 once/trial_0000/metrics.jsonl >a && cut -d, -f1,2 "
             "parts/trial_0000/metrics.jsonl >b && cmp a b && wc -l <b",
             folder);
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 0);
    CHECK_EQ_INT(atoi(r.text), 36);
}

static void test_a_killed_search_goes_on(void)
{
    static char whole[1 << 16], again[1 << 16];
    const char *search = "--vary 'rate=1e-4..1e-2:log,width=8|16' --trials 6 --halving 2 ";
    char line[2048];
    snprintf(line, sizeof line, "%s --run whole" LEARN "24", search);
    check_status(tune(line), 0);
    for (int i = 1; i <= 4; i++) { /* cut off earlier and later */
        snprintf(line, sizeof line,
                 "cd %s && timeout -s KILL 0.%d " WEFT_TEST_BIN "/weft tune %s --run cut" LEARN
                 "24 >/dev/null 2>&1",
                 folder, 2 * i, search);
        (void)command_run_all(line);
    }
    snprintf(line, sizeof line, "%s --run cut" LEARN "24", search);
    check_status(tune(line), 0);
    results_of("whole", whole);
    results_of("cut", again);
    weft_test_check(strcmp(whole, again) == 0, __FILE__, __LINE__, again);
}

static void test_time_ends_a_search_that_goes_on(void)
{
    check_status(
        tune("--vary 'rate=1e-4|1e-3' --search grid --max-time 0.3s --run timed" LEARN "100000"),
        75);
    const command_result *r =
        tune("--vary 'rate=1e-4|1e-3' --search grid --max-time 0.3s --run timed" LEARN "100000");
    check_status(r, 75);
    CHECK_TEXT(r->text, "stopped early; the same command goes on");
}

/* Two beside each other with a rank each, then one with both cores: its checkpoint moves. */
static void test_trials_move_between_meshes(void)
{
    const command_result *r = tune(
        "--vary 'rate=1e-3|1e-2' --search grid --halving 2 --at-once 2 --ranks --run moved" LEARN
        "20");
    check_status(r, 0);
    CHECK_TEXT(r->text, "2 of 2 trials, 0 failed, 30 steps trained");
}

static void test_crashes_are_counted(void)
{
    const command_result *r = tune("--vary 'heads=2|3' --search grid --run crashed" LEARN "4");
    check_status(r, 0);
    CHECK_TEXT(r->text, "2 of 2 trials, 1 failed");
    CHECK_TEXT(r->text, "heads=3   failed with status 2: gpt: ");
    r = tune("--vary 'heads=3|5' --search grid --run all_crashed" LEARN "4");
    check_status(r, 2);
    CHECK_TEXT(r->text, "no trial came to anything; the first one said: gpt: ");
}

static void test_mistakes_are_told(void)
{
    static const char *const wrong[][2] = {
        {"--vary rate=1" LEARN "4 --json", ""},
        {"--vary 'rat=1|2' --run wrong" LEARN "4", "gpt has no option --rat; did you mean rate?"},
        {"--vary 'rate=1|2' --run wrong -- gtp train", "cannot be started"},
        {"--run wrong" LEARN "4", "there is nothing to vary"},
        {"--vary 'rate=1|2'", "Write it behind --"},
        {"--vary 'rate=1|2' --halving 2 --run wrong -- gpt train", "give the program --steps N"},
        {"--vary 'rate=1|2' --halving 1 --run wrong" LEARN "4", "2 is the least"},
        {"--vary rate=1e-3 --trials 1 --by accuracy --run wrong" LEARN "4",
         "have no such number; they have loss"},
        {"--vary 'rate=1|2' --search grd --run wrong" LEARN "4", "grid"},
        {"--vary 'rate=1|2' --trails 3 --run wrong" LEARN "4", "did you mean --trials?"},
        {"--vary 'rate=1|2' --run halved" LEARN "4", "has another search"},
    };
    for (size_t i = 1; i < sizeof wrong / sizeof *wrong; i++) {
        const command_result *r = tune(wrong[i][0]);
        check_status(r, 2);
        CHECK_TEXT(r->text, wrong[i][1]);
    }
}

int main(void)
{
    if (!text_folder_open("/tmp", "tune")) return 1;
    RUN(test_the_best_third_goes_on);
    RUN(test_a_rung_is_the_beginning_of_the_training);
    RUN(test_a_killed_search_goes_on);
    RUN(test_time_ends_a_search_that_goes_on);
    RUN(test_trials_move_between_meshes);
    RUN(test_crashes_are_counted);
    RUN(test_mistakes_are_told);
    text_folder_close();
    return weft_test_report();
}
