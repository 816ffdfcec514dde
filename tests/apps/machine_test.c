/* machine_test: a machine is measured into a file; the plan and the run say what that file makes of them; and what is no machine
 * gets a sentence. No time is looked at.
 */
#include <stdio.h>
#include <string.h>

#include "apps/command.h"
#include "apps/text_folder.h"
#include "test.h"

#define WEFT WEFT_TEST_BIN "/weft"
#define GPT  WEFT_TEST_BIN "/gpt train --layers 1 --width 16 --heads 2 --seq 8 --batch 4 "

static command_result result;

static const command_result *run_line(const char *line)
{
    char full[8192];
    snprintf(full, sizeof full, "cd %s; { %s; } 2>&1", folder, line);
    result = command_run_all(full);
    return &result;
}

static void check_refused(const char *line, const char *sentence)
{
    const command_result *r = run_line(line);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, sentence);
}

static void test_a_machine_is_measured_shown_and_compared(void)
{
    const command_result *r =
        run_line(WEFT " calibrate --seconds 1 --noisy --name mine --out mine.json && ls");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "measuring products");
    CHECK_TEXT(r->text, "mine.json: ");
    CHECK(strstr(r->text, "mine.json.new") == NULL);
    r = run_line(WEFT " machine show mine.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "mine (");
    CHECK_TEXT(r->text, "lanes: a step");
    CHECK_TEXT(run_line(WEFT " machine diff mine.json mine.json")->text, " 1.00 us");
    CHECK_TEXT(run_line(WEFT " machine show --json mine.json")->text, "\"weft_machine\": 1");
    CHECK_TEXT(run_line(WEFT " machine")->text, "h100x8 ");
}

static void test_the_plan_and_the_run_are_predicted(void)
{
    const command_result *r = run_line(GPT "--dry-run --machine mine.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "time on mine (");
    CHECK_TEXT(r->text, "which make the step");
    CHECK_TEXT(
        run_line(
            GPT "--dry-run --machine h100x8 --mesh data:16,model:8 --layout batch:data,heads:model")
            ->text,
        "time on h100x8 (nominal: ");
    r = run_line(GPT "--dry-run --machine laptop --slow 2:3 --mesh data:4 --layout batch:data");
    CHECK_EQ_INT(r->status, 0);
    CHECK(strstr(r->text, "waiting for late ranks is 0 us") == NULL);
    r = run_line(GPT "--machine mine.json --steps 25 --run r");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "on machine mine a step was predicted to take ");
    CHECK_TEXT(run_line("grep -c predicted r/log.txt")->text, "1\n");
}

/* A plan's own kernels are all found again. */
static void test_the_kernels_of_a_plan_are_measured(void)
{
    const command_result *r = run_line(
        GPT "--dry-run --calibrate own.json --calibrate-seconds 1 --noisy --machine own.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "of this 100 % is from kernels that were measured");
}

static void test_what_is_no_machine(void)
{
    check_refused(GPT "--dry-run --machine h100x9",
                  "there is no machine \"h100x9\"; did you mean h100x8?");
    check_refused(GPT "--machine h100x9 --run q",
                  "there is no machine \"h100x9\"; did you mean h100x8?");
    check_refused("sed s/f32/f23/ mine.json > wrong.json; " GPT "--dry-run --machine wrong.json",
                  "should be a name that Weft has, not \"f23\"; did you mean f32?");
    check_refused("head -c 300 mine.json > cut.json; " GPT "--dry-run --machine cut.json",
                  "machine file cut.json: line ");
    check_refused(GPT "--dry-run --machine h100x8 --slow 1.3", "--slow 1.3: it takes a rank");
    check_refused(GPT "--dry-run --machine h100x8 --slow 0:-2", "--slow 0:-2: it takes a rank");
    check_refused(GPT "--dry-run --machine h100x8 --slow 1:2", "slow_rank");
    check_refused(GPT "--dry-run --slow 0:2", "give --machine FILE as well");
    check_refused(GPT "--dry-run --calibrate x.json --calibrate-seconds 0", "calibrate-seconds");
    check_refused(GPT "--calibrate x.json --run q", "give --dry-run as well");
    check_refused(WEFT " machine show", "weft machine show takes a file");
    check_refused(WEFT " machine shwo mine.json", "did you mean show?");
    check_refused(WEFT " calibrate --seconds 0", "seconds");
    check_refused(GPT "--dry-run --machine ./nowhere.json",
                  "cannot read the machine file ./nowhere.json");
    check_refused(WEFT " calibrate --seconds 1 --noisy --out mine.json/x",
                  "cannot write mine.json/x: Not a directory");
}

int main(void)
{
    if (CHECK(text_folder_open("/dev/shm", "machine") || text_folder_open("/tmp", "machine"))) {
        RUN(test_a_machine_is_measured_shown_and_compared);
        RUN(test_the_plan_and_the_run_are_predicted);
        RUN(test_the_kernels_of_a_plan_are_measured);
        RUN(test_what_is_no_machine);
        text_folder_close();
    }
    return weft_test_report();
}
