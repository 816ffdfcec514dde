/* held_test: data that is held out. Its loss is the same on every mesh and layout, and changes no bit of what is learned. --best keeps the
 * checkpoint of the lowest. A run that is killed, stopped or short of disk while it looks goes on with the same numbers.
 */
#include "text_folder.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 16, TEXT = 2048, RESUME_ME = 75 };
#define SMALL                                                                                      \
    "--layers 2 --width 24 --heads 2 --batch 6 --seq 12 --steps 16 --rate 0.02 --dtype f64 "       \
    "--quiet --data text.txt "
#define MPI(n) WEFT_TEST_MPIEXEC " -n " #n " --oversubscribe "

/* The numbers of a run by step, from index 1; NaN: not there. */
typedef struct numbers {
    double loss[STEPS + 1], held[STEPS + 1], right[STEPS + 1];
    bool is_same; /* what stands twice is the same */
} numbers;

static void put(numbers *n, double *to, const char *line, const char *name)
{
    const char *at = strstr(line, name);
    if (at == NULL) return;
    const double number = atof(at + strlen(name));
    n->is_same = n->is_same && (isnan(*to) || *to == number);
    *to = number;
}

static numbers read_numbers(const char *run)
{
    char path[TEXT], line[TEXT];
    numbers n = {.is_same = true};
    for (int i = 0; i <= STEPS; i++)
        n.loss[i] = n.held[i] = n.right[i] = NAN;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "\"step\":");
        const int step = at != NULL ? atoi(at + strlen("\"step\":")) : 0;
        if (step < 1 || step > STEPS || strchr(line, '}') == NULL) continue;
        put(&n, &n.loss[step], line, "\"loss\":");
        put(&n, &n.held[step], line, "\"held_out\":");
        put(&n, &n.right[step], line, "\"held_out_accuracy\":");
    }
    if (file != NULL) fclose(file);
    return n;
}

static numbers train(const char *launcher, const char *run, const char *arguments)
{
    char line[2 * TEXT];
    snprintf(line, sizeof line, "%s " WEFT_TEST_BIN "/gpt train " SMALL "--run %s %s", launcher,
             run, arguments);
    const command_result *r = text_folder_run(line);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    return read_numbers(run);
}

static void check_close(const double *a, const double *b, double relative)
{
    for (int i = 1; i <= STEPS; i++) {
        CHECK(isnan(a[i]) == isnan(b[i]));
        if (!isnan(a[i]) && !isnan(b[i])) CHECK_CLOSE(a[i], b[i], relative);
    }
}

static void test_looks_change_nothing(void)
{
    const numbers without = train("", "without", "--dropout 0.2");
    const numbers with =
        train("", "with", "--dropout 0.2 --eval-data other.txt --eval-every 3 --best");
    for (int i = 1; i <= STEPS; i++) {
        CHECK(without.loss[i] == with.loss[i]);
        CHECK(isnan(with.held[i]) == (i % 3 != 0 && i != STEPS));
    }
    /* Dropout is off: the loss at a step is one number, whatever steps were looked at before. */
    const numbers again = train("", "again", "--dropout 0.2 --eval-data other.txt --eval-every 6");
    CHECK(again.held[6] == with.held[6] && again.held[STEPS] == with.held[STEPS]);
}

static const char *const layouts[][2] = {
    {"", "--mesh data:3 --layout batch:data --zero 3"},
    {"", "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model"},
    {"", "--scan-layers --recompute --mesh data:2 --layout batch:data --zero 1"},
    {"", "--stages 2 --micro 3 --mesh pipe:2 --layout stage:pipe"},
    {MPI(2), "--mesh data:2 --layout batch:data --zero 3"},
    {MPI(2), "--mesh model:2 --layout hidden:model,heads:model,vocab:model"},
};

static void test_every_layout_has_the_same_losses(void)
{
    static const char eval[] = "--dropout 0 --eval-share 0.1 --eval-every 5 --eval-steps 3 --best";
    char run[32], arguments[TEXT];
    const numbers alone = train("", "alone", eval);
    CHECK(isfinite(alone.held[5]) && isfinite(alone.held[STEPS]));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (*layouts[i][0] && WEFT_TEST_MPIEXEC[0] == '\0') continue;
        snprintf(run, sizeof run, "layout%zu", i);
        snprintf(arguments, sizeof arguments, "%s %s", eval, layouts[i][1]);
        const numbers n = train(layouts[i][0], run, arguments);
        check_close(n.loss, alone.loss, 1e-9);
        check_close(n.held, alone.held, 1e-9);
    }
}

/* What is held out is learned by nobody: another end of the text changes the held-out loss alone. */
static void test_a_share_is_the_end_of_the_text(void)
{
    static const char cut[] =
        "( head -c 6100 text.txt; cat other.txt other.txt ) | head -c 8000 >mixed.txt";
    CHECK_EQ_INT(text_folder_run(cut)->status, 0);
    const numbers a = train("", "share_a", "--eval-share 0.24 --batch 8");
    const numbers b = train("", "share_b", "--eval-share 0.24 --batch 8 --data mixed.txt");
    for (int i = 1; i <= STEPS; i++)
        CHECK(a.loss[i] == b.loss[i]);
    CHECK(a.held[STEPS] < b.held[STEPS]);
}

static bool is_there(const char *run, int step)
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s/ckpt/step_%08d/manifest.json", folder, run, step);
    return access(path, F_OK) == 0;
}

static int lowest(const numbers *n)
{
    int best = 0;
    for (int i = 1; i <= STEPS; i++)
        if (!isnan(n->held[i]) && (best == 0 || n->held[i] < n->held[best])) best = i;
    return best;
}

/* Another text is learned: of this one the loss falls, and then rises. */
static void test_the_best_checkpoint_stays(void)
{
    static const char eval[] =
        "--warmup 1 --rate 0.05 --eval-data other.txt --eval-every 1 --best --save-every 4";
    char line[TEXT], says[80];
    const numbers n = train("", "best", eval);
    const int best = lowest(&n);
    CHECK(best > 1 && best < STEPS - 4);
    for (int i = 1; i <= STEPS; i++)
        CHECK(is_there("best", i) == (i == best || i == STEPS || i == STEPS - 4));
    snprintf(line, sizeof line, WEFT_TEST_BIN "/weft ckpt list best | grep best");
    snprintf(says, sizeof says, "%10d ", best);
    const command_result *r = text_folder_run(line);
    CHECK_EQ_INT(command_lines(r->text, ""), 1);
    CHECK(strncmp(r->text, says, strlen(says)) == 0);
    /* It goes on, on another mesh, and knows what is best. */
    snprintf(line, sizeof line, "%s --mesh data:2 --layout batch:data --steps 17", eval);
    (void)train("", "best", line);
    CHECK(is_there("best", best) && is_there("best", 17) && !is_there("best", STEPS - 4));
    snprintf(says, sizeof says, "at step %d, whose checkpoint stays", best);
    CHECK_TEXT(text_folder_run("cat best/log.txt")->text, says);
    /* Of another held-out text the losses are others, and the best of them is another. */
    (void)train("", "best", "--eval-share 0.1 --eval-every 1 --best --data-changed --steps 24");
    CHECK(!is_there("best", best));
}

static pid_t start(const char *arguments)
{
    char line[2 * TEXT];
    snprintf(line, sizeof line, "cd %s && exec " WEFT_TEST_BIN "/gpt train " SMALL "%s >said 2>&1",
             folder, arguments);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Until a step has its line: from then on most of the time is in the next step's look. */
static void await_step(const char *run, int step)
{
    for (int i = 0; i < 20000; i++) {
        const numbers n = read_numbers(run);
        if (!isnan(n.loss[step])) return;
        usleep(1000);
    }
}

static int end_of(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Looks that take much longer than steps. */
#define LONG_LOOKS "--dropout 0.2 --eval-data long.txt --eval-every 2 --best --save-every 2 "

static void check_same(const numbers *a, const numbers *b)
{
    CHECK(a->is_same && b->is_same);
    for (int i = 1; i <= STEPS; i++) {
        CHECK(a->loss[i] == b->loss[i]);
        CHECK(a->held[i] == b->held[i] || (isnan(a->held[i]) && isnan(b->held[i])));
    }
}

static void test_a_run_that_ends_while_it_looks_goes_on(void)
{
    static const struct {
        int signal, step, status;
    } ends[] = {{SIGKILL, 3, 128 + SIGKILL}, {SIGTERM, 3, RESUME_ME}, {SIGTERM, 7, RESUME_ME}};
    const numbers whole = train("", "whole", LONG_LOOKS);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char run[40], arguments[TEXT];
        snprintf(run, sizeof run, "ended%zu", i);
        snprintf(arguments, sizeof arguments, LONG_LOOKS "--run %s", run);
        const pid_t child = start(arguments);
        await_step(run, ends[i].step);
        kill(child, ends[i].signal);
        const int status = end_of(child);
        CHECK(status == ends[i].status || status == 0); /* 0: it was over before */
        const numbers n = train("", run, LONG_LOOKS);
        check_same(&n, &whole);
        CHECK(is_there(run, lowest(&n)));
    }
}

/* A file may not get as large as a checkpoint: the save of the first look fails, and the run with one sentence. */
static void test_a_full_disk_ends_the_run_and_harms_nothing(void)
{
    static const char eval[] = "--eval-data other.txt --eval-every 2 --best";
    char line[2 * TEXT];
    snprintf(line, sizeof line, "ulimit -f 100; " WEFT_TEST_BIN "/gpt train " SMALL "--run full %s",
             eval);
    const command_result *r = text_folder_run(line);
    CHECK(r->status != 0 && r->status < 128);
    CHECK_TEXT(r->text, "full/ckpt/step_0000000");
    CHECK_EQ_INT(command_lines(r->text, "gpt: "), 1);
    CHECK_TEXT(text_folder_run("ls full/ckpt")->text, "");
    CHECK(!is_there("full", 2));
    const numbers n = train("", "full", eval), whole = train("", "roomy", eval);
    check_same(&n, &whole);
}

static void test_options_that_do_not_fit(void)
{
    static const char *const wrong[][2] = {
        {"gpt train --best", "--best, and nothing is held out"},
        {"gpt train --eval-every 5", "--eval-every, and nothing is held out"},
        {"gpt train --eval-steps 5", "--eval-steps, and nothing is held out"},
        {"gpt train --eval-share 1", "--eval-share 1 leaves nothing to learn from"},
        {"gpt train --eval-share -1", "eval-share"},
        {"gpt train --eval-share 0.1 --eval-data other.txt", "both say what is held out"},
        {"gpt train --eval-share 1e-9", "is less than one"},
        {"gpt train --eval-data nowhere.txt", "nowhere.txt"},
        {"gpt train --eval-data .", "not a regular file"},
        {"gpt train --eval-data empty", "empty"},
        {"gpt train --eval-data other.txt --eval-steps 99999", "give so many at most, or 0"},
        {"gpt train --eval-evry 5", "did you mean --eval-every"},
        {"charlm --carry --eval-share 0.1", "name another text with --eval-data"},
        {"charlm --best", "nothing is held out"},
        {"charlm --eval-data nowhere.txt", "nowhere.txt"},
    };
    CHECK_EQ_INT(text_folder_run(": >empty")->status, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[TEXT];
        snprintf(line, sizeof line, WEFT_TEST_BIN "/%s --data text.txt --run wrong --steps 2",
                 wrong[i][0]);
        const command_result *r = text_folder_run(line);
        CHECK_EQ_INT(r->status, 2);
        CHECK_EQ_INT(command_lines(r->text, ""), 1);
        CHECK_TEXT(r->text, wrong[i][1]);
    }
}

static void test_a_plan_tells_what_looks_take(void)
{
    const command_result *r = text_folder_run(
        WEFT_TEST_BIN "/gpt train " SMALL "--eval-data other.txt --mesh data:64 --layout "
                      "batch:data --zero 3 --dry-run --machine h100x8");
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "held-out data: a look is 24 batches of 6, ");
    CHECK_TEXT(r->text, ", predicted ");
    CHECK_TEXT(r->text, " MiB more for it");
    r = text_folder_run(WEFT_TEST_BIN "/seq2seq --eval-every 5 --mesh data:4 --dry-run");
    CHECK_TEXT(r->text, "held-out data: a look is 8 batches of 64, ");
}

/* The other programs: one loss on any layout, and of mnist the part that is right. */
static void check_program(const char *name, const char *arguments, const char *const places[3])
{
    static int n_runs;
    numbers first = {.is_same = true};
    for (int i = 0; i < 3; i++) {
        char run[40], line[2 * TEXT];
        const bool is_mpi = i == 2;
        if (is_mpi && WEFT_TEST_MPIEXEC[0] == '\0') break;
        snprintf(run, sizeof run, "%s%d", name, n_runs++);
        snprintf(line, sizeof line,
                 "%s " WEFT_TEST_BIN
                 "/%s --steps 6 --eval-every 3 --dtype f64 --best --run %s %s %s",
                 is_mpi ? MPI(2) : "", name, run, arguments, places[i]);
        const command_result *r = text_folder_run(line);
        weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
        const numbers n = read_numbers(run);
        CHECK(isfinite(n.held[3]) && isfinite(n.held[6]) && n.held[6] < n.held[3]);
        CHECK(is_there(run, 6) && is_there(run, 3));
        if (i == 0) first = n;
        check_close(n.loss, first.loss, 1e-9);
        check_close(n.held, first.held, 1e-9);
        check_close(n.right, first.right, 0);
    }
    CHECK(isfinite(first.right[6]) == (strcmp(name, "mnist") == 0));
}

static void test_other_programs(void)
{
    static const char *const places[] = {"", "--mesh data:2 --layout batch:data --zero 3",
                                         "--mesh data:2 --layout batch:data"};
    CHECK_EQ_INT(text_folder_run(WEFT_TEST_BIN "/mnist draw digits")->status, 0);
    check_program("mnist", "--data digits --hidden 8 --eval-share 0.1 --dropout 0.1", places);
    check_program(
        "charlm",
        "--data text.txt --eval-data other.txt --width 12 --seq 8 --batch 4 --dropout 0.1", places);
    check_program("charlm",
                  "--data text.txt --eval-share 0.2 --width 12 --seq 8 --batch 4 --model gru",
                  places);
    check_program("seq2seq", "--width 8 --heads 2 --batch 8 --length 3 --beam 1", places);
}

/* Twice as long as one of the quick fox, and other words. */
static bool write_texts(void)
{
    return text_folder_run(
               "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "
               "\"pack my box with five dozen liquor jugs, number $i; how vexingly quick "
               "daft zebras jump\"; done >other.txt; for i in 1 2 3 4 5 6 7 8; do cat "
               "text.txt other.txt; done >long.txt")
               ->status == 0;
}

int main(void)
{
    if (CHECK(text_folder_open("/tmp", "held") && write_texts())) {
        RUN(test_looks_change_nothing);
        RUN(test_every_layout_has_the_same_losses);
        RUN(test_a_share_is_the_end_of_the_text);
        RUN(test_the_best_checkpoint_stays);
        RUN(test_a_run_that_ends_while_it_looks_goes_on);
        RUN(test_a_full_disk_ends_the_run_and_harms_nothing);
        RUN(test_options_that_do_not_fit);
        RUN(test_a_plan_tells_what_looks_take);
        RUN(test_other_programs);
        text_folder_close();
    }
    return weft_test_report();
}
