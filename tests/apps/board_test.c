/* board_test: --tensorboard and --histograms of whole programs. Losses are the same with them, to the bit. Histograms of variables and gradients
 * are the same under all layouts. A run that is stopped and goes on has each step once. A full disk ends the events, and the training goes on.
 *
 * board_test --tensorboard: the reader of the Python package tensorboard has the same numbers.
 */
#include "command.h"
#include "histograms_read.h"

#include "text_folder.h"

#ifndef WEFT_TEST_TENSORBOARD_PYTHON
#define WEFT_TEST_TENSORBOARD_PYTHON ""
#endif

#define SMALL "--layers 2 --width 24 --heads 2 --seq 12 --batch 12 --dropout 0.2 --quiet "

static const command_result *gpt(const char *launcher, const char *arguments)
{
    static command_result r;
    char line[2048];
    snprintf(line, sizeof line,
             "cd %s && %s " WEFT_TEST_BIN "/gpt train --data text.txt " SMALL "%s 2>&1", folder,
             launcher, arguments);
    r = command_run_all(line);
    return &r;
}

static void check_run(const char *launcher, const char *arguments)
{
    const command_result *r = gpt(launcher, arguments);
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
}

/* The losses of a run, as its metrics have them. */
static int losses_of(const char *run, double *losses, int room)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    return text_folder_losses(path, losses, room);
}

static read_file board_of(const char *name)
{
    char path[256], paths[4][512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!CHECK_EQ_INT(read_folder(path, paths, 4), 1)) exit(1);
    read_file f = read_events(paths[0]);
    CHECK(f.is_whole);
    return f;
}

static const char *const ways[][2] = {
    {"", ""},
    {"", "--mesh data:2 --layout batch:data --zero 3"},
    {"", "--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model"},
    {"", "--mesh seq:3 --layout seq:seq"},
    {"", "--accumulate 3 --mesh data:2 --layout batch:data --zero 2"},
    {WEFT_TEST_MPIEXEC " -n 2 --oversubscribe", "--layout batch:data --zero 1"},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void test_histograms_are_the_same_under_all_layouts(void)
{
    read_file first = {0};
    for (int w = 0; w < N_WAYS; w++) {
        char arguments[512], name[32];
        if (w == N_WAYS - 1 && WEFT_TEST_MPIEXEC[0] == '\0') break;
        snprintf(name, sizeof name, "way%d", w);
        snprintf(arguments, sizeof arguments,
                 "--dropout 0 --steps 4 --run run%d --tensorboard %s --histograms 2 %s", w, name,
                 ways[w][1]);
        check_run(ways[w][0], arguments);
        read_file f = board_of(name);
        if (w == 0) {
            first = f;
            continue;
        }
        CHECK_EQ_INT(check_histograms(&first, &f), check_histograms(&f, &first));
        CHECK(check_histograms(&f, &first) == 3 * 2 * 29);
        read_done(&f);
    }
    read_done(&first);
}

static void test_what_is_trained_is_the_same(void)
{
    double with[6], without[6];
    const char *mesh = "--steps 6 --mesh data:2 --layout batch:data --zero 1";
    char arguments[512];
    snprintf(arguments, sizeof arguments, "%s --run without", mesh);
    check_run("", arguments);
    snprintf(arguments, sizeof arguments, "%s --run with --tensorboard tb --histograms 1", mesh);
    check_run("", arguments);
    CHECK_EQ_INT(losses_of("with", with, 6), 6);
    CHECK_EQ_INT(losses_of("without", without, 6), 6);
    CHECK(memcmp(with, without, sizeof with) == 0);
    read_file f = board_of("tb");
    for (int step = 1; step <= 6; step++) {
        const read_event *loss = read_find(&f, "loss", step);
        CHECK(loss && loss->is_scalar && loss->number == (double)(float)with[step - 1]);
        CHECK(read_find(&f, "rate", step) && read_find(&f, "grad_norm", step) &&
              read_find(&f, "tokens_per_s", step));
    }
    read_done(&f);
}

/* ---- going on ----------------------------------------------------------------------------------- */

/* A reader drops what earlier files have from the step of a later file's start on. */
static void test_a_run_that_goes_on_has_each_step_once(void)
{
    char path[256], paths[4][512];
    int seen[13] = {0};
    check_run("", "--steps 12 --until 8 --save-every 5 --run on --tensorboard on_tb");
    check_run("", "--steps 12 --run on --resume 5 --tensorboard on_tb");
    snprintf(path, sizeof path, "%s/on_tb", folder);
    if (!CHECK_EQ_INT(read_folder(path, paths, 4), 2)) return;
    read_file before = read_events(paths[0]), after = read_events(paths[1]);
    const int64_t start = after.events[1].step;
    CHECK(after.events[1].is_start && start == 6);
    for (int i = 0; i < before.n; i++)
        if (strcmp(before.events[i].tag, "loss") == 0 && before.events[i].step < start)
            seen[before.events[i].step]++;
    for (int i = 0; i < after.n; i++)
        if (strcmp(after.events[i].tag, "loss") == 0) seen[after.events[i].step]++;
    for (int step = 1; step <= 12; step++)
        CHECK_EQ_INT(seen[step], 1);
    read_done(&before);
    read_done(&after);
}

/* ---- what goes wrong ---------------------------------------------------------------------------- */

/* The limit, 1.5 MB of a file, has room for a checkpoint and not for the histograms of 60 steps. */
static void test_a_full_disk_ends_the_events_alone(void)
{
    double losses[60];
    const command_result *r = gpt(
        "ulimit -f 3000;", "--width 8 --steps 60 --run full --tensorboard full_tb --histograms 1");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_TEXT(r->text, "File too large; the training goes on without events for TensorBoard");
    CHECK_EQ_INT(command_lines(r->text, "cannot write"), 1);
    CHECK_EQ_INT(losses_of("full", losses, 60), 60);
}

static void test_wrong_options_are_told(void)
{
    const command_result *r = gpt("", "--steps 1 --run wrong --histograms 5");
    CHECK_EQ_INT(r->status, 2);
    CHECK_TEXT(r->text, "--histograms 5 and no --tensorboard");
    r = gpt("", "--steps 1 --run wrong --tensorboard /proc/none/board");
    CHECK(r->status != 0);
    CHECK_TEXT(r->text, "name another folder with --tensorboard DIR");
    r = gpt("", "--steps 1 --run wrong --tensorbord x");
    CHECK_TEXT(r->text, "did you mean --tensorboard?");
}

/* ---- TensorBoard's own reader ------------------------------------------------------------------- */

static int ask_tensorboard(void)
{
    char line[2048];
    if (WEFT_TEST_TENSORBOARD_PYTHON[0] == '\0') {
        weft_test_skip(
            "no python3 with the package tensorboard here (pip install tensorboard; CMake's "
            "WEFT_TENSORBOARD_PYTHON names the python3)");
        return weft_test_report();
    }
    check_run("",
              "--steps 12 --until 8 --save-every 5 --run run --tensorboard board --histograms 4 "
              "--mesh data:2 --layout batch:data");
    check_run("", "--steps 12 --run run --resume 5 --tensorboard board --histograms 4 "
                  "--mesh data:2 --layout batch:data");
    snprintf(line, sizeof line,
             WEFT_TEST_TENSORBOARD_PYTHON " " WEFT_TEST_DATA "/apps/board_check.py %s 12 2>&1",
             folder);
    const command_result r = command_run_all(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    return weft_test_report();
}

int main(int n, char **arguments)
{
    if (!text_folder_open("/tmp", "board")) return 1;
    if (n > 1 && strcmp(arguments[1], "--tensorboard") == 0) {
        const int code = ask_tensorboard();
        text_folder_close();
        return code;
    }
    RUN(test_histograms_are_the_same_under_all_layouts);
    RUN(test_what_is_trained_is_the_same);
    RUN(test_a_run_that_goes_on_has_each_step_once);
    RUN(test_a_full_disk_ends_the_events_alone);
    RUN(test_wrong_options_are_told);
    text_folder_close();
    return weft_test_report();
}
