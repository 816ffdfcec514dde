/* tasks_test: common behaviour of programs made by apps/training.c. One that is stopped and started again ends with the
 * loss of one that was not, to the bit, on threads and under MPI. A mistake is a sentence; --help has every option.
 * And each shows what it learned; learned_test looks at what that is.
 */
#include "tasks.h"

#include <sys/stat.h>

static const task tasks[] = {
    {"charlm",
     "--data %s/text.txt --model lstm --width 12 --seq 10 --batch 6",
     "batch:data,hidden:model,vocab:model",
     {"--model lsmt", "did you mean lstm?", "--seq 100000000",
      "--seq 100000000: seq must be from 1 to 1048576", "--layers 1000000000",
      "layers must be from 1 to 1000", "--pieces 10=0.5",
      "pieces 10=0.5 and schedule constant: only piecewise has it"}},
    {"charlm",
     "--data %s/text.txt --model transformer --layers 2 --width 12 --heads 3 --seq 10 --batch 6",
     "batch:data,hidden:model,heads:model",
     {"--heads 5", "--width 12 --heads 5: heads must divide width", "--carry",
      "--carry --model transformer: it has no state that could go on"}},
    {"charlm",
     "--data %s/text.txt --model gru --layers 2 --width 12 --seq 10 --batch 6 --carry",
     "batch:data,hidden:model,vocab:model",
     {"--batch 4000", "need 40001; take a longer text, or a smaller --batch or --seq", "--data ''",
      "name one with --data FILE", "--data %s/pipe", "name a file, not a device or pipe",
      "--data %s/nowhere", "nowhere: No such file"}},
    {"seq2seq",
     "--model lstm --letters 5 --length 4 --width 12 --heads 3 --batch 6 --beam 1",
     "batch:data,hidden:model,heads:model,vocab:model",
     {"--letters 27", "--letters 27: letters must be from 2 to 26", "--heads 5",
      "--width 12 --heads 5: heads must divide width", "--beam 1001",
      "--beam 1001: beam must be from 1 to 1000", "--length 65",
      "--length 65: length must be from 1 to 64"}},
    {"seq2seq",
     "--model transformer --layers 2 --letters 5 --length 4 --width 12 --heads 3 --batch 6 "
     "--beam 2",
     "batch:data,hidden:model,heads:model,vocab:model",
     {"--model transfomer", "did you mean transformer?", "--growth 2",
      "growth 2 and schedule constant: only cosine_restarts has it", "--run ''",
      "the run directory has no name", "--config %s/nowhere.conf",
      "cannot open configuration file"}},
    {"word2vec",
     "--data %s/text.txt --width 6 --batch 12",
     "batch:data,vocab:model",
     {"--nearest quickk", "\"quickk\" is none of the 49 words; did you mean quick?",
      "--data nowhere", "cannot open text nowhere: No such file", "--data %s/pipe",
      "name a file, not a device or pipe", "--data %s", "name a file, not a directory"}},
};
enum { N_TASKS = sizeof tasks / sizeof *tasks };

/* The last line of a loss, into text. */
static void last_loss(const command_result *r, char text[80])
{
    const char *last = "";
    for (const char *at = r->text; (at = strstr(at, "step ")) != NULL; at++)
        last = at;
    snprintf(text, 80, "%.*s", (int)strcspn(last, "\n"), last);
    weft_test_check(r->status == 0 && strstr(text, "loss") != NULL, __FILE__, __LINE__, r->text);
}

static void test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been(void)
{
    for (int i = 0; i < N_TASKS; i++) {
        char whole[80], again[80], line[TEXT];
        last_loss(start(&tasks[i], "", "whole", "--steps 6 --fresh"), whole);
        const command_result *r = start(&tasks[i], "", "part", "--steps 3 --fresh");
        CHECK_EQ_INT(r->status, 0);
        snprintf(line, sizeof line, "touch %s/part/halt", folder);
        CHECK_EQ_INT(command_run(line).status, 0);
        r = start(&tasks[i], "", "part", "--steps 6");
        CHECK_EQ_INT(r->status, 75);
        CHECK_TEXT(r->text, "continues from step 3");
        CHECK_TEXT(r->text, "stopped early after step 4");
        last_loss(start(&tasks[i], "", "part", "--steps 6"), again);
        CHECK_TEXT(again, whole);
        snprintf(line, sizeof line, WEFT_TEST_BIN "/weft ckpt diff %s/whole %s/part", folder,
                 folder);
        CHECK_EQ_INT(command_run(line).status, 0);
    }
}

static void test_a_layout_has_the_losses_of_one_rank(void)
{
    for (int i = 0; i < N_TASKS; i++) {
        char one[80], split[80], more[400];
        last_loss(start(&tasks[i], "", "one", "--steps 4 --fresh"), one);
        snprintf(more, sizeof more, "--steps 4 --fresh --mesh data:2,model:2 --layout %s",
                 tasks[i].layout);
        last_loss(start(&tasks[i], "", "split", more), split);
        CHECK_TEXT(split, one);
        if (WEFT_TEST_MPIEXEC[0] == '\0' || i % weft_test_stride(3) != 0) continue;
        last_loss(start(&tasks[i], WEFT_TEST_MPIEXEC " -n 4 --oversubscribe", "mpi", more), split);
        CHECK_TEXT(split, one);
    }
}

static void check_mistake(const task *t, const char *arguments, const char *sentence)
{
    char more[TEXT / 2];
    snprintf(more, sizeof more, arguments, folder);
    const command_result *r = start(t, "", "wrong", more);
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, sentence);
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
}

static void test_what_is_told_wrongly_is_a_sentence(void)
{
    char pipe[TEXT];
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    CHECK(mkfifo(pipe, 0600) == 0); /* nobody writes there */
    for (int i = 0; i < N_TASKS; i++) {
        check_mistake(&tasks[i], "--stps 5", "unknown option --stps; did you mean --steps?");
        check_mistake(&tasks[i], "--mesh data:2 --layout bach:data", "did you mean batch?");
        for (int m = 0; m < 8 && tasks[i].mistakes[m] != NULL; m += 2)
            check_mistake(&tasks[i], tasks[i].mistakes[m], tasks[i].mistakes[m + 1]);
        const command_result *r = start(&tasks[i], "", "none", "--help");
        CHECK_EQ_INT(r->status, 0);
        CHECK_TEXT(r->text, "--layout RULES");
        CHECK_TEXT(r->text, "--save-every N");
        CHECK_TEXT(r->text, "--config FILE");
    }
}

/* ---- what each does ------------------------------------------------------------------------------ */

static double loss_of(const char *more)
{
    const task net = {.program = "charlm",
                      .arguments = "--data %s/short.txt --carry --layers 2 --width 12 --batch 6 "
                                   "--optimizer sgd --rate 0 --fresh"};
    char line[80];
    last_loss(start(&net, "", "carried", more), line);
    const char *at = strstr(line, "loss ");
    return at != NULL ? atof(at + strlen("loss ")) : 0;
}

/* Of weights that do not change: two windows, of which the second goes on from the first, are one of twice the length; and behind
 * the last window of a row, the eighth, comes its first. */
static void test_charlm_carries_its_state_from_window_to_window(void)
{
    static const char *const kinds[] = {"lstm", "gru"};
    char line[TEXT];
    snprintf(line, sizeof line, "sh -c 'head -c 241 %s/text.txt > %s/short.txt'", folder, folder);
    CHECK_EQ_INT(command_run(line).status, 0);
    for (int i = 0; i < 2; i++) {
        double losses[4];
        const char *const runs[] = {"--seq 10 --steps 1", "--seq 5 --steps 1", "--seq 5 --steps 2",
                                    "--seq 5 --steps 9"};
        for (int k = 0; k < 4; k++) {
            snprintf(line, sizeof line, "--model %s %s", kinds[i], runs[k]);
            losses[k] = loss_of(line);
        }
        CHECK_CLOSE(losses[0], (losses[1] + losses[2]) / 2, 1e-6);
        CHECK(losses[1] != losses[2]);
        CHECK(losses[1] == losses[3]);
    }
}

/* A text, windows, or a batch, that a state is not of. */
static void test_a_state_goes_on_in_its_own_text_alone(void)
{
    static const struct {
        const char *more, *sentence;
    } mistakes[] = {
        {"--carry --seq 9", "seq was 10 and is 9"},
        {"--carry --data %s/short.txt", "text was 8000 bytes (hash "},
        {"--carry --batch 5", "carried rows was 6 and is 5"},
        {"--carry --batch 5 --data-changed", "layer0/carried/h is [batch:6, hidden:12]"},
        {"", "carried rows was 6 and is not said"},
        {"--data-changed", "tensors and this program wants only"},
    };
    const task net = {.program = "charlm",
                      .arguments = "--data %s/text.txt --width 12 --seq 10 --batch 6"};
    char more[TEXT];
    CHECK_EQ_INT(start(&net, "", "state", "--carry --steps 2 --fresh")->status, 0);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        snprintf(more, sizeof more, mistakes[i].more, folder);
        const command_result *r = start(&net, "", "state", more);
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, mistakes[i].sentence);
        CHECK_EQ_INT(command_lines(r->text, ""), 1);
    }
}

/* However little that is. (seq2seq writes words after every run.) */
static void test_what_was_learned_is_shown(void)
{
    static const struct {
        int task;
        const char *more, *has;
    } shown[] = {{0, "--sample 20 --prompt 'the quick '", "the quick "},
                 {1, "--sample 20 --prompt 'the quick '", "the quick "},
                 {5, "--nearest quick --show 3", "quick"}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        for (int split = 0; split < 2; split++) {
            char more[400];
            const task *t = &tasks[shown[i].task];
            snprintf(more, sizeof more, "--steps 2 --fresh %s%s%s", shown[i].more,
                     split ? " --mesh data:2,model:2 --layout " : "", split ? t->layout : "");
            const command_result *r = start(t, "", "shown", more);
            CHECK_EQ_INT(r->status, 0);
            CHECK_TEXT(r->text, shown[i].has);
        }
}

int main(void)
{
    if (!CHECK(text_folder_open("/tmp", "tasks"))) return weft_test_report();
    RUN(test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been);
    RUN(test_a_layout_has_the_losses_of_one_rank);
    RUN(test_what_is_told_wrongly_is_a_sentence);
    RUN(test_charlm_carries_its_state_from_window_to_window);
    RUN(test_a_state_goes_on_in_its_own_text_alone);
    RUN(test_what_was_learned_is_shown);
    text_folder_close();
    return weft_test_report();
}
