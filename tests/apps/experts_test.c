/* experts_test: gpt with experts as its user runs it: what is dropped stands in the metrics, a run goes on on another mesh, text is
 * written, and what does not go together is one sentence.
 */
#include "losses.h"
#include "text_folder.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { STEPS = 8, TEXT = 2048 };

#define SMALL                                                                                      \
    "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --dtype f64 --dropout 0.2 --experts 4 "

static command_result run(const char *command, const char *name, const char *arguments)
{
    char line[4 * TEXT];
    snprintf(line, sizeof line, WEFT_TEST_BIN "/gpt %s --run %s/%s %s", command, folder, name,
             arguments);
    return command_run_all(line);
}

static void train(const char *name, const char *arguments)
{
    char all[TEXT];
    snprintf(all, sizeof all, "--data %s/text.txt " SMALL "--steps 8 %s 2>&1", folder, arguments);
    const command_result r = run("train", name, all);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
}

static void check_same(const char *name, const char *other)
{
    double expected[STEPS + 1], losses[STEPS + 1];
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_EQ_INT(losses_read(path, STEPS, expected), STEPS);
    snprintf(path, sizeof path, "%s/%s", folder, other);
    CHECK_EQ_INT(losses_read(path, STEPS, losses), STEPS);
    for (int i = 1; i <= STEPS; i++)
        CHECK_CLOSE(losses[i], expected[i], 1e-10);
}

static void test_a_run_goes_on_on_another_mesh(void)
{
    train("whole", "--quiet");
    train("parts", "--quiet --until 3");
    train("parts", "--quiet --until 6 --mesh data:2 --layout batch:data,experts:data --zero 1");
    train("parts", "--quiet --mesh model:2 --layout experts:model");
    check_same("whole", "parts");
}

static void test_text_is_written_by_the_experts(void)
{
    const command_result alone = run("sample", "whole", "--sample 40"),
                         split = run("sample", "whole",
                                     "--sample 40 --mesh data:2 --layout batch:data,experts:data");
    CHECK_EQ_INT(alone.status, 0);
    CHECK(strlen(alone.text) >= 40);
    CHECK(strcmp(alone.text, split.text) == 0);
}

/* Of the first step: a number in the metrics, and a column of the progress. */
static void test_what_is_dropped_is_told(void)
{
    char all[TEXT];
    snprintf(all, sizeof all, "--data %s/text.txt " SMALL "--steps 1 --capacity 0.5 2>&1", folder);
    const command_result r = run("train", "few", all);
    CHECK_EQ_INT(r.status, 0);
    CHECK_TEXT(r.text, "left  balance  dropped");
    snprintf(all, sizeof all,
             "python3 -c \"import json; m = json.loads(open('%s/few/metrics.jsonl').readline()); "
             "assert 0.2 <= m['dropped'] < 1 and 1 <= m['balance'] < 4, m\" 2>&1",
             folder);
    if (system("python3 -c pass") != 0) return; /* no reader of JSON here */
    const command_result read = command_run_all(all);
    weft_test_check(read.status == 0, __FILE__, __LINE__, read.text);
}

static void check_refused(const char *arguments, const char *says)
{
    const command_result r = run("train", "refused", arguments);
    char all[TEXT];
    snprintf(all, sizeof all, "--dry-run %s 2>&1", arguments);
    const command_result dry = run("train", "refused", all);
    CHECK_EQ_INT(r.status, 2);
    CHECK_EQ_INT(dry.status, 2);
    CHECK_EQ_INT(command_lines(dry.text, "gpt: "), 1);
    CHECK_TEXT(dry.text, says);
}

static void test_what_does_not_go_together_is_one_sentence(void)
{
    check_refused("--experts 0", "experts");
    check_refused("--experts 4 --top-k 5", "experts 4 and top-k 5");
    check_refused("--top-k 2", "give --experts 2, or more");
    check_refused("--route experts", "give --experts too");
    check_refused("--experts 4 --layers 4 --stages 2", "experts 4 and stages 2");
    check_refused("--experts 4 --route experts --capacity 0", "give --capacity 1");
    check_refused("--experts 4 --route somebody", "route");
    check_refused("--experts 4 --capacity -1", "capacity");
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "experts"))) {
        RUN(test_a_run_goes_on_on_another_mesh);
        RUN(test_text_is_written_by_the_experts);
        RUN(test_what_is_dropped_is_told);
        RUN(test_what_does_not_go_together_is_one_sentence);
    }
    text_folder_close();
    return weft_test_report();
}
