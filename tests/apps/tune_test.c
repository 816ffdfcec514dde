/* tune_test: weft tune on small trainings. The better part goes on. A search that was killed comes to the same results. Trials that crash are
 * counted. A trial goes on, on another mesh. Mistakes are told before anything is trained. */
#include "command.h"

#include <jansson.h>
#include <math.h>
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

/* Nine, four, two: 4, 12 and 36 steps. */
static void test_the_better_part_goes_on(void)
{
    static char results[1 << 16];
    char line[256];
    const command_result *r =
        tune("--vary rate=1e-5..1e-1:log --trials 9 --halving 3 --run halved" LEARN "36");
    check_status(r, 0);
    CHECK_TEXT(r->text, "9 of 9 trials, 0 failed, 116 steps trained");
    CHECK_TEXT(r->text, "best: gpt train");
    results_of("halved", results);
    CHECK_EQ_INT(count(results, "\"rung\":0,\"step\":4"), 9);
    CHECK_EQ_INT(count(results, "\"rung\":1,\"step\":12"), 4);
    CHECK_EQ_INT(count(results, "\"rung\":2,\"step\":36"), 2);
    snprintf(line, sizeof line, "grep -c '<circle' %s/halved/tune.svg", folder);
    CHECK_EQ_INT(atoi(command_run_all(line).text), 9);
}

/* Twelve trials, of which three go on, and two steps from the best of those. Each new rate is twice or half of one that was trained to the end,
 * or halfway between two. */
static void test_the_last_climb(void)
{
    static char first[1 << 16], again[1 << 16];
    const char *search = "--vary rate=1e-5..1e-1:log --trials 12 --halving 8 --climb 2 ";
    char line[1024];
    snprintf(line, sizeof line, "%s--run climbed" LEARN "32", search);
    const command_result *r = tune(line);
    check_status(r, 0);
    CHECK_TEXT(r->text, "14 of 14 trials, 0 failed, 196 steps trained");
    CHECK_EQ_INT(count(r->text, "   halfway from ") + count(r->text, "   a step from "), 2);
    results_of("climbed", first);
    CHECK_EQ_INT(count(first, "\"rung\":0,\"step\":4"), 12);
    CHECK_EQ_INT(count(first, "\"rung\":1,\"step\":32"), 5);
    /* Started again, with the results of a search that was cut off before its last training, and before the last two. */
    for (int cut = 12; cut < 14; cut++) {
        snprintf(line, sizeof line,
                 "cd %s && rm -rf climbed_cut && cp -r climbed climbed_cut && sed -i "
                 "'/\"trial\":1[%c3],/d' climbed_cut/results.jsonl && rm -r "
                 "climbed_cut/trial_001[%c3]*",
                 folder, '0' + cut - 10, '0' + cut - 10);
        CHECK_EQ_INT(command_run_all(line).status, 0);
        for (int i = 0; i < 2; i++) { /* the second time everything is there */
            snprintf(line, sizeof line, "%s--run climbed_cut" LEARN "32", search);
            r = tune(line);
            check_status(r, 0);
            CHECK_TEXT(r->text, "14 of 14 trials, 0 failed, 196 steps trained");
            results_of("climbed_cut", again);
            CHECK(strcmp(first, again) == 0);
        }
    }
}

/* A point of whole numbers that an earlier rung has goes on from there; where all neighbours are there, the climb ends. */
static void test_whole_numbers_climb(void)
{
    const char *search =
        "--vary width=8..10 --search grid --points 3 --halving 4 --climb 5 --run "
        "whole_numbers -- gpt train --data text.txt --layers 1 --heads 1 --seq 8 --batch 8 "
        "--quiet --steps 8";
    static char first[1 << 16], again[1 << 16];
    char line[512];
    const command_result *r = tune(search);
    check_status(r, 0);
    CHECK_TEXT(r->text, "3 of 3 trials, 0 failed");
    results_of("whole_numbers", first);
    CHECK(count(first, "\"rung\":1,\"step\":8") >= 2);
    snprintf(line, sizeof line, "sed -i '$d' %s/whole_numbers/results.jsonl", folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    check_status(tune(search), 0);
    results_of("whole_numbers", again);
    CHECK(strcmp(first, again) == 0);
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
    const char *search =
        "--vary 'rate=1e-4..1e-2:log,width=8|16' --trials 6 --halving 2 --climb 2 ";
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

/* ---- populations --------------------------------------------------------------------------------- */

/* What --json says of a search that is done. */
static json_t *json_of(const char *arguments)
{
    char line[2048];
    snprintf(line, sizeof line, "--json %s", arguments);
    const command_result *r = tune(line);
    check_status(r, 0);
    json_t *json = json_loads(r->text, 0, NULL);
    if (!CHECK(json != NULL)) printf("%s\n", r->text);
    return json;
}

static const json_t *trial_of(const json_t *all, int number)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(all, "trials"), i,
                       one) if (json_integer_value(json_object_get(one, "trial")) ==
                                number) return one;
    return NULL;
}

static const json_t *round_of(const json_t *all, int trial, int k)
{
    return json_array_get(json_object_get(trial_of(all, trial), "rounds"), (size_t)k);
}

static double result_of(const json_t *all, int trial, int k)
{
    return json_number_value(json_object_get(round_of(all, trial, k), "result"));
}

/* How many did better than a trial after a round. */
static int place_of(const json_t *all, int n, int trial, int k)
{
    int place = 0;
    for (int t = 0; t < n; t++)
        place += result_of(all, t, k) < result_of(all, trial, k);
    return place;
}

static double loss_at(const char *run, int step)
{
    char line[512];
    snprintf(line, sizeof line,
             "sed -n 's/.*\"step\":%d,.*\"loss\":\\([^,}]*\\).*/\\1/p' %s/%s/metrics.jsonl", step,
             folder, run);
    return atof(command_run_all(line).text);
}

#define MEMBERS "--vary rate=1e-5..3e-1:log --search population --trials 8 --rounds 3 "

enum { MEMBERS_N = 8, MEMBERS_ROUNDS = 3, MEMBERS_STEPS = 8 };

static double rate_of(const json_t *all, int trial, int k)
{
    const json_t *settings = json_object_get(round_of(all, trial, k), "settings");
    const char *rate = json_string_value(json_object_get(settings, "rate"));
    return rate ? atof(rate) : 0;
}

/* Of whom a trial goes on in a round; -1: of itself. */
static int parent_of(const json_t *all, int trial, int k)
{
    const json_t *from = json_object_get(round_of(all, trial, k), "from");
    return json_is_integer(from) ? (int)json_integer_value(from) : -1;
}

/* The loss of the first step of a round, in the folder that the trial has in it. */
static double first_loss(const json_t *all, int trial, int k)
{
    char run[60];
    int life = k;
    while (life > 0 && parent_of(all, trial, life) < 0)
        life--;
    if (life > 0)
        snprintf(run, sizeof run, "members/trial_%04d_r%02d", trial, life);
    else
        snprintf(run, sizeof run, "members/trial_%04d", trial);
    return loss_at(run, MEMBERS_STEPS * k + 1);
}

static void check_moved(const json_t *all, int trial, int k, int parent)
{
    const double rate = rate_of(all, trial, k), before = rate_of(all, parent, k - 1);
    const double loss = first_loss(all, trial, k);
    CHECK(place_of(all, MEMBERS_N, parent, k - 1) < MEMBERS_N / 4);
    CHECK(rate > 0.66 * before && rate < 1.51 * before && rate != before);
    CHECK(loss > 0 && loss == first_loss(all, parent, k));
}

/* The worst quarter, and no other, goes on from the best quarter. Its weights are the other's: the loss of the next step, of the same
 * sample, is to the bit what the other's is. Its rate is up to half more or a third less. */
static void test_the_worst_go_on_from_the_best(void)
{
    check_status(tune(MEMBERS "--run members" LEARN "24"), 0);
    json_t *all = json_of(MEMBERS "--run members" LEARN "24");
    int moved = 0;
    for (int t = 0; t < MEMBERS_N; t++)
        for (int k = 1; k < MEMBERS_ROUNDS; k++) {
            const int parent = parent_of(all, t, k);
            const bool is_worst = place_of(all, MEMBERS_N, t, k - 1) >= MEMBERS_N - MEMBERS_N / 4;
            CHECK((parent >= 0) == is_worst);
            CHECK_EQ_INT(json_integer_value(json_object_get(round_of(all, t, k), "step")),
                         MEMBERS_STEPS * (k + 1));
            if (parent >= 0) check_moved(all, t, k, parent);
            moved += parent >= 0;
        }
    CHECK_EQ_INT(moved, (MEMBERS_ROUNDS - 1) * (MEMBERS_N / 4));
    json_decref(all);
}

/* What a kill in the middle of a move leaves beside the members' folders is no checkpoint. */
static void test_a_killed_population_goes_on(void)
{
    static char whole[1 << 16], again[1 << 16];
    char line[2048];
    results_of("members", whole);
    snprintf(
        line, sizeof line,
        "cd %s && for t in 0 1 2 3 4 5 6 7; do d=cut_members/trial_000${t}_r01.new/ckpt; mkdir "
        "-p $d/step_00000099 && echo junk >$d/step_00000099/junk; done",
        folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    for (int i = 1; i <= 5; i++) { /* cut off earlier and later */
        snprintf(line, sizeof line,
                 "cd %s && timeout -s KILL 0.%d " WEFT_TEST_BIN "/weft tune " MEMBERS
                 "--run cut_members" LEARN "24 >/dev/null 2>&1",
                 folder, 2 * i - 1);
        (void)command_run_all(line);
    }
    check_status(tune(MEMBERS "--run cut_members" LEARN "24"), 0);
    results_of("cut_members", again);
    weft_test_check(strcmp(whole, again) == 0, __FILE__, __LINE__, again);
    json_t *a = json_of(MEMBERS "--run members" LEARN "24"),
           *b = json_of(MEMBERS "--run cut_members" LEARN "24");
    for (int t = 0; t < MEMBERS_N; t++)
        CHECK(json_equal(json_object_get(trial_of(a, t), "settings"),
                         json_object_get(trial_of(b, t), "settings")));
    json_decref(a);
    json_decref(b);
}

/* Members on two meshes: what went on from another is on another mesh than that, at least once. */
static void test_members_move_between_meshes(void)
{
    const char *search = "--vary 'mesh=data:1|data:2,rate=1e-3..1e-2:log' --search population "
                         "--trials 4 --rounds 4 --seed 5 --run meshes -- gpt train --data text.txt "
                         "--layout batch:data --layers 1 --width 8 --heads 2 --seq 8 --batch 8 "
                         "--dropout 0 --quiet --steps 12";
    check_status(tune(search), 0);
    json_t *all = json_of(search);
    int other = 0;
    for (int t = 0; t < 4; t++)
        for (int k = 1; k < 4; k++) {
            const json_t *from = json_object_get(round_of(all, t, k), "from");
            CHECK_EQ_INT(json_integer_value(json_object_get(round_of(all, t, k), "status")), 0);
            if (!json_is_integer(from)) continue;
            const int best = (int)json_integer_value(from);
            other += !json_equal(
                json_object_get(json_object_get(round_of(all, t, k), "settings"), "mesh"),
                json_object_get(json_object_get(round_of(all, best, k - 1), "settings"), "mesh"));
        }
    CHECK(other > 0);
    json_decref(all);
}

static void test_a_member_that_fails_goes_on_from_another(void)
{
    const char *search = "--vary 'heads=2|3,rate=1e-3|1e-2' --search population --trials 4 "
                         "--rounds 2 --run revived" LEARN "4";
    check_status(tune(search), 0);
    json_t *all = json_of(search);
    int failed = 0;
    for (int t = 0; t < 4; t++) {
        const bool is_failed = json_is_null(json_object_get(round_of(all, t, 0), "result"));
        failed += is_failed;
        if (is_failed) CHECK(json_is_integer(json_object_get(round_of(all, t, 1), "from")));
    }
    CHECK(failed > 0 && failed < 4);
    json_decref(all);
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

/* A flag and its value are one word. What is told of the best is a command as it is typed. */
static void test_flags_vary(void)
{
    static char best[4096];
    char line[8192];
    const command_result *r = tune("--vary 'rope=yes|no' --search grid --run flags" LEARN "4");
    check_status(r, 0);
    CHECK_TEXT(r->text, "2 of 2 trials, 0 failed");
    const char *at = strstr(r->text, "best: gpt ");
    if (!CHECK(at != NULL)) return;
    snprintf(best, sizeof best, "%.*s", (int)strcspn(at, "\n") - 6, at + 6);
    CHECK_TEXT(best, " --rope=");
    snprintf(line, sizeof line, "cd %s && " WEFT_TEST_BIN "/%s --run flags/again 2>&1", folder,
             best);
    const command_result again = command_run_all(line);
    weft_test_check(again.status == 0, __FILE__, __LINE__, again.text);
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
        {"--vary 'rate=1|2' --trials 3 --climb 1 --run wrong" LEARN "4",
         "--climb 1 steps along ranges, and --vary has lists alone"},
        {"--vary rate=1..2 --search population --climb 1 --run wrong" LEARN "40",
         "has no last rung for --climb 1 to begin at"},
        {"--vary 'rate=1|2' --search population --halving 2 --run wrong" LEARN "40",
         "leave out one of the two"},
        {"--vary 'rate=1|2' --search population --trials 1 --run wrong" LEARN "40",
         "one member has nobody to go on from"},
        {"--vary 'rate=1|2' --search population --run wrong" LEARN "4",
         "has 8 rounds, and the program is to train 4 steps"},
        {"--vary 'rate=1|2' --search population --run wrong -- gpt train",
         "the program is to train 0 steps"},
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
    RUN(test_the_better_part_goes_on);
    RUN(test_the_last_climb);
    RUN(test_whole_numbers_climb);
    RUN(test_a_rung_is_the_beginning_of_the_training);
    RUN(test_a_killed_search_goes_on);
    RUN(test_the_worst_go_on_from_the_best);
    RUN(test_a_killed_population_goes_on);
    RUN(test_members_move_between_meshes);
    RUN(test_a_member_that_fails_goes_on_from_another);
    RUN(test_time_ends_a_search_that_goes_on);
    RUN(test_trials_move_between_meshes);
    RUN(test_flags_vary);
    RUN(test_crashes_are_counted);
    RUN(test_mistakes_are_told);
    text_folder_close();
    return weft_test_report();
}
