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

/* A sanitizer makes each measurement ten times as long, and has seen all of them in the first two. */
static bool measures_again(void)
{
    return weft_test_stride(2) == 1;
}

static void check_refused(const char *line, const char *sentence)
{
    const command_result *r = text_folder_run(line);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, sentence);
}

static void test_a_machine_is_measured_shown_and_compared(void)
{
    const command_result *r =
        text_folder_run(WEFT " calibrate --seconds 1 --noisy --name mine --out mine.json && ls");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "measuring products");
    CHECK_TEXT(r->text, "mine.json: ");
    CHECK(strstr(r->text, "mine.json.new") == NULL);
    r = text_folder_run(WEFT " machine show mine.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "mine (");
    CHECK_TEXT(r->text, "lanes: a step");
    CHECK_TEXT(text_folder_run(WEFT " machine diff mine.json mine.json")->text, " 1.00 us");
    CHECK_TEXT(text_folder_run(WEFT " machine show --json mine.json")->text, "\"weft_machine\": 1");
    CHECK_TEXT(text_folder_run(WEFT " machine")->text, "h100x8 ");
}

static void test_the_plan_and_the_run_are_predicted(void)
{
    const command_result *r = text_folder_run(GPT "--dry-run --machine mine.json");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "time on mine (");
    CHECK_TEXT(r->text, "which make the step");
    CHECK_TEXT(
        text_folder_run(
            GPT "--dry-run --machine h100x8 --mesh data:16,model:8 --layout batch:data,heads:model")
            ->text,
        "time on h100x8 (nominal: ");
    r = text_folder_run(GPT
                        "--dry-run --machine laptop --slow 2:3 --mesh data:4 --layout batch:data");
    CHECK_EQ_INT(r->status, 0);
    CHECK(strstr(r->text, "waiting for late ranks is 0 us") == NULL);
    r = text_folder_run(GPT "--machine mine.json --steps 25 --run r");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "on machine mine a step was predicted to take ");
    CHECK_TEXT(text_folder_run("grep -c predicted r/log.txt")->text, "1\n");
}

static void test_another_machine_is_said(void)
{
    const char *line = GPT "--mesh data:2 --layout batch:data --run k --machine ";
    char full[2000];
    snprintf(full, sizeof full,
             "%slaptop --steps 2 --save-every 2 && grep -c '\"hash\"' k/run.json", line);
    const command_result *r = text_folder_run(full);
    CHECK_EQ_INT(r->status, 0);
    CHECK(strstr(r->text, "from here on") == NULL);
    snprintf(full, sizeof full, "%sa100x8 --steps 4", line);
    r = text_folder_run(full);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "the plan is for machine a100x8 from here on; before, it was for laptop");
    CHECK_TEXT(text_folder_run("tail -1 k/metrics.jsonl")->text, "\"step\":4");
}

/* --dry-run is one for all that train. */
static void test_every_program_that_trains_is_predicted(void)
{
    static const char *const programs[] = {"charlm", "seq2seq",
                                           "word2vec --words 20 --data mine.json"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char full[2000];
        snprintf(full, sizeof full,
                 "%s/%s --dry-run --machine a100x8 --mesh data:8 --layout batch:data",
                 WEFT_TEST_BIN, programs[i]);
        const command_result *r = text_folder_run(full);
        CHECK_EQ_INT(r->status, 0);
        CHECK_TEXT(r->text, "time on a100x8 (nominal: ");
        CHECK_TEXT(r->text, "what takes longest");
        CHECK_TEXT(r->text, "exchanges along each axis");
    }
    const command_result *r =
        text_folder_run(WEFT_TEST_BIN "/mnist draw t10k && " WEFT_TEST_BIN
                                      "/mnist --data t10k --dry-run --json --machine laptop");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "\"prediction\": {");
}

/* Of two files of one machine the faster figures; and what was there stays where it cannot be. */
static void test_two_files_become_one(void)
{
    const command_result *r =
        text_folder_run("sed 's/\"step_seconds\": [0-9.e-]*/\"step_seconds\": 1e-12/' mine.json > "
                        "faster.json && cp mine.json both.json && " WEFT
                        " machine merge both.json faster.json && " WEFT
                        " machine show both.json | grep 'lanes: a step'");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "1e-06 us");
    check_refused("sed 's/\"cores\": [0-9]*/\"cores\": 77/' mine.json > more.json; " WEFT
                  " machine merge mine.json more.json",
                  "they are of two machines: mine has ");
    check_refused(WEFT " machine merge laptop mine.json", "name one as ./laptop");
    check_refused(WEFT " machine merge mine.json", "weft machine merge takes two files");
    if (!measures_again()) return;
    CHECK_EQ_INT(text_folder_run(WEFT
                                 " calibrate --seconds 1 --noisy --add --out both.json && " WEFT
                                 " machine show both.json | grep -q '1e-06 us'")
                     ->status,
                 0);
}

/* A training's own kernels are all found again, and what the file had before is in it still. */
static void test_the_kernels_of_a_training_are_added(void)
{
    const command_result *r = text_folder_run(
        "cp mine.json own.json; " WEFT " calibrate --noisy --seconds 1 --out own.json --for " GPT);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "measuring the program, about ");
    CHECK(strstr(r->text, "measuring products, about 1 s left\nmeasuring products") == NULL);
    r = text_folder_run(GPT "--dry-run --machine own.json");
    CHECK_TEXT(r->text, "of this 100 % is from kernels that were measured");
    CHECK(strstr(r->text, "are not in the file") == NULL);
    CHECK_TEXT(text_folder_run(WEFT " machine show own.json")->text, "mine (");
    CHECK_TEXT(text_folder_run(WEFT " machine diff mine.json own.json")->text, " 1.00 us");
    r = text_folder_run(GPT "--dry-run --width 24 --machine own.json");
    CHECK_TEXT(r->text, " are not in the file (weft calibrate --for adds them; --dry-run=all lists "
                        "them); the longest: ");
    CHECK_EQ_INT(command_lines(strstr(r->text, "  of this "), "  of "), 2);
    r = text_folder_run(GPT "--dry-run=all --width 24 --machine own.json");
    CHECK_TEXT(r->text, " are not in the file (weft calibrate --for adds them):\n    ");
}

/* Every program that trains measures itself: here one that reads its data first. */
static void test_other_programs_are_measured(void)
{
    const command_result *r =
        text_folder_run(WEFT " calibrate --noisy --seconds 1 --out other.json --for charlm --data "
                             "text.txt --width 8 --batch 4 --steps 3");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "other.json: ");
}

/* A file of another machine, or of other kernels, is told and used; nothing is added to it. */
static void test_a_file_of_another_machine(void)
{
    const command_result *r = text_folder_run(
        "sed 's/\"processor\": \".*\"/\"processor\": \"abacus\"/' mine.json > far.json; " GPT
        "--machine far.json --steps 1 --run far");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "machine mine has another processor (abacus) than this one (");
    CHECK_TEXT(r->text, "predicted all the same");
    r = text_folder_run(GPT "--dry-run --machine far.json"); /* that is what files are for */
    CHECK(strstr(r->text, "another processor") == NULL);
    r = text_folder_run(
        "sed 's/\"weft\": \".*\"/\"weft\": \"weft 0.0.1\"/' mine.json > old.json; " GPT
        "--dry-run --machine old.json");
    CHECK_TEXT(r->text, "machine mine was measured with the kernels of weft 0.0.1, and these are ");
    check_refused(WEFT " calibrate --noisy --seconds 1 --out far.json --for " GPT,
                  "nothing is added to far.json: machine mine has another processor");
}

/* One process may use one core, and the other two: the one sees more ranks to a core than there are cores, the other does not. What
 * all have to do together they decide together. */
static void test_processes_with_other_cores_measure_the_same(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0' || text_folder_run("test $(nproc) -ge 2")->status != 0) {
        puts("skipped: no MPI here, or one core");
        return;
    }
    const int first = command_first_core();
    char line[1024];
    snprintf(line, sizeof line,
             WEFT_TEST_MPIEXEC
             " -n 2 --oversubscribe --bind-to none sh -c 'if test "
             "$OMPI_COMM_WORLD_RANK = 0; then exec taskset -c %d \"$@\"; else exec "
             "\"$@\"; fi' sh " WEFT " calibrate --seconds 1 --noisy --out uneven.json && " WEFT
             " machine show uneven.json",
             first);
    const command_result *r = text_folder_run(line);
    if (!CHECK_EQ_INT(r->status, 0)) printf("%s\n", r->text);
}

/* No file may be longer than a kilobyte: the disk is full, for a file that is made larger. */
static void test_a_full_disk_leaves_the_old_file(void)
{
    const command_result *r =
        text_folder_run("cp mine.json kept.json; (trap '' XFSZ; ulimit -f 1; exec " WEFT
                        " calibrate --noisy --seconds 1 --out kept.json)");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "kept.json: cannot write the machine file: File too large");
    CHECK_EQ_INT(text_folder_run("cmp mine.json kept.json && ! ls kept.json.new")->status, 0);
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
    check_refused(WEFT " calibrate --for", "--for stands before a command that trains");
    check_refused(WEFT " calibrate --for nowhere train",
                  "--for nowhere: it cannot be started (No ");
    check_refused(GPT "--dry-run --machine .", "cannot read the machine file .: Is a directory");
    check_refused("truncate -s 1G large.json; " GPT "--dry-run --machine large.json",
                  "large.json is no machine file: it has more than 64 MiB");
    check_refused(": > empty.json; " GPT "--dry-run --machine empty.json", "empty.json is empty");
    check_refused("sed s/lanes/lanse/ mine.json > l.json; " GPT "--dry-run --machine l.json",
                  "loads[0].lanse is no key that Weft knows there; did you mean lanes?");
    check_refused(WEFT_TEST_BIN "/seq2seq --json", "give --dry-run as well");
    check_refused(WEFT_TEST_BIN "/seq2seq --slow 0:2 --dry-run", "give --machine FILE as well");
    check_refused(WEFT " machine show", "weft machine show takes a file");
    check_refused(WEFT " machine shwo mine.json", "did you mean show?");
    check_refused(WEFT " calibrate --seconds 0", "seconds");
    check_refused(GPT "--dry-run --machine ./nowhere.json",
                  "cannot read the machine file ./nowhere.json");
    if (measures_again())
        check_refused(WEFT " calibrate --seconds 1 --noisy --out mine.json/x",
                      "cannot write mine.json/x: Not a directory");
}

int main(void)
{
    if (CHECK(text_folder_open("/dev/shm", "machine") || text_folder_open("/tmp", "machine"))) {
        RUN(test_a_machine_is_measured_shown_and_compared);
        RUN(test_the_plan_and_the_run_are_predicted);
        RUN(test_another_machine_is_said);
        RUN(test_every_program_that_trains_is_predicted);
        RUN(test_two_files_become_one);
        RUN(test_the_kernels_of_a_training_are_added);
        if (measures_again()) RUN(test_other_programs_are_measured);
        RUN(test_a_file_of_another_machine);
        if (measures_again()) RUN(test_processes_with_other_cores_measure_the_same);
        if (measures_again()) RUN(test_a_full_disk_leaves_the_old_file);
        RUN(test_what_is_no_machine);
        text_folder_close();
    }
    return weft_test_report();
}
