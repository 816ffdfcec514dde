/* trace_test: gpt train --trace N..M, on threads and on processes, and weft trace of it: every step, trip and exchange of every
 * rank is a slice, and no other. Wrong windows and runs are told in a sentence.
 *
 * trace_test --kineto: the package HolisticTraceAnalysis reads what --kineto writes. trace_test --perfetto: Perfetto's own schema, of the Python package perfetto, reads the files; its trace_processor is asked as
 * well. It is skipped where one of the two is not there.
 */
#include "io/faults.h"
#include "perfetto_read.h"
#include "text_folder.h"
#include "weft/research/trace.h"

#include <errno.h>

enum { LAYERS = 20, RUNS = 2, LINE = 4096 };

#define MODEL                                                                                      \
    "--layers 20 --scan-layers --width 12 --heads 2 --batch 4 --seq 8 --dropout 0 --steps 6 "      \
    "--quiet --fresh "
#define ON_TWO WEFT_TEST_MPIEXEC " -n 2 --oversubscribe "

static command_result *train(const char *launcher, const char *name, const char *arguments)
{
    static command_result result;
    char line[LINE];
    snprintf(line, sizeof line,
             "%s" WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " MODEL "%s", launcher,
             folder, folder, name, arguments);
    result = command_run(line);
    return &result;
}

static command_result *weft_trace_of(const char *name, const char *arguments)
{
    static command_result result;
    char line[LINE];
    snprintf(line, sizeof line, "timeout 600 " WEFT_TEST_BIN "/weft trace %s/%s %s 2>&1", folder,
             name, arguments);
    result = command_run_all(line);
    return &result;
}

/* ---- what has to be there, by the rings -------------------------------------------------------- */

static bool asks_perfetto;

typedef struct counts {
    long long run, trip, step, exchange, put, wait;
} counts;

static void count_rank(const char *name, int rank, counts *c)
{
    char path[1024];
    weft_traced *t = NULL;
    weft_error error = {0};
    snprintf(path, sizeof path, "%s/%s/trace/rank_%05d.ring", folder, name, rank);
    if (!CHECK_OK(weft_traced_open(path, &t, &error), error)) return;
    CHECK(t->is_sealed && t->n_dropped == 0);
    for (int64_t i = 0; i < t->n_events; i++) {
        const weft_traced_event *e = &t->events[i];
        c->run += e->kind == WEFT_TRACED_RUN;
        c->wait += e->kind == WEFT_TRACED_FINISH;
        if (e->kind != WEFT_TRACED_STEP) continue;
        const weft_traced_step *step = &t->programs[e->program].steps[e->step];
        const bool exchanges = step->axes != 0;
        c->exchange += exchanges;
        c->put += exchanges;
        c->step += !exchanges;
        c->trip += step->kind == WEFT_STEP_END;
    }
    weft_traced_close(&t);
}

static void check_by_perfetto(const char *name, const counts *c)
{
    char line[LINE];
    snprintf(line, sizeof line,
             WEFT_TEST_PYTHON " " WEFT_TEST_DATA "/apps/perfetto_check.py %s/%s/trace.pftrace "
                              "run=%lld trip=%lld step=%lld exchange=%lld put=%lld wait=%lld "
                              "flows=%lld processes=2 2>&1",
             folder, name, c->run, c->trip, c->step, c->exchange, c->put, c->wait, c->exchange / 2);
    const command_result result = command_run_all(line);
    if (!CHECK_EQ_INT(result.status, 0)) fprintf(stderr, "%s\n", result.text);
    printf("%s", result.text);
    if (strstr(result.text, "trace_processor is not installed") != NULL)
        weft_test_skip(
            "Perfetto's schema has read the files, and there is no trace_processor here to ask");
}

/* The trace of a run, read; *bytes of its file. */
static read_trace *read_file(const char *name, size_t *bytes)
{
    char path[1024];
    static unsigned char data[1 << 21];
    read_trace *t = calloc(1, sizeof *t);
    snprintf(path, sizeof path, "%s/%s/trace.pftrace", folder, name);
    FILE *file = fopen(path, "rb");
    *bytes = file ? fread(data, 1, sizeof data, file) : 0;
    if (file) fclose(file);
    read_packets(t, data, *bytes);
    return t;
}

static void check_file(const char *name, const counts *c)
{
    size_t bytes;
    read_trace *t = read_file(name, &bytes);
    long long n[6] = {0};
    static const char *const names[6] = {"run", "trip", "step", "exchange", "put", "wait"};
    for (int i = 0; i < t->n_slices; i++) {
        CHECK(t->slices[i].end >= t->slices[i].begin);
        for (int k = 0; k < 6; k++)
            n[k] += strcmp(t->slices[i].category, names[k]) == 0;
    }
    CHECK_EQ_INT(n[0], c->run);
    CHECK_EQ_INT(n[1], c->trip);
    CHECK_EQ_INT(n[2], c->step);
    CHECK_EQ_INT(n[3], c->exchange);
    CHECK_EQ_INT(n[4], c->put);
    CHECK_EQ_INT(n[5], c->wait);
    CHECK((double)bytes / t->n_events < 20);
    read_close(t);
}

static void check_run(const char *launcher, const char *name, const char *arguments)
{
    counts c = {0};
    char line[LINE];
    snprintf(line, sizeof line, "%s --trace 3..4", arguments);
    const command_result *trained = train(launcher, name, line);
    if (!CHECK_EQ_INT(trained->status, 0)) fprintf(stderr, "%s\n", trained->text);
    const command_result *made = weft_trace_of(name, "");
    if (!CHECK_EQ_INT(made->status, 0)) fprintf(stderr, "%s\n", made->text);
    CHECK_TEXT(made->text, "/trace.pftrace: 2 runs of 2 ranks, ");
    for (int rank = 0; rank < 2; rank++)
        count_rank(name, rank, &c);
    CHECK_EQ_INT(c.run, 2 * RUNS);
    CHECK_EQ_INT(c.trip, 2 * RUNS * 2 * LAYERS); /* there and back */
    CHECK(c.exchange > 0 && c.wait > 0);
    check_file(name, &c);
    if (asks_perfetto) check_by_perfetto(name, &c);
}

static void test_threads_are_traced(void)
{
    check_run("", "threads", "--mesh data:2 --layout batch:data");
}

static void test_processes_are_traced(void)
{
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    check_run(ON_TWO, "processes", "--layout batch:data --zero 3");
}

/* ---- in the form of Kineto --------------------------------------------------------------------- */

/* A launch and a kernel for each step and each exchange of every rank. */
static void test_kineto_has_every_step(void)
{
    counts c = {0};
    char line[LINE];
    snprintf(line, sizeof line, "--kineto %s/kineto", folder);
    CHECK_EQ_INT(weft_trace_of("threads", line)->status, 0);
    for (int rank = 0; rank < 2; rank++)
        count_rank("threads", rank, &c);
    snprintf(
        line, sizeof line,
        "cd %s/kineto && ls && cat rank_*.json | grep -c '\"cat\": \"kernel\"' && cat "
        "rank_*.json | grep -c cudaLaunchKernel && cat rank_*.json | grep -c ncclKernel_ && cat "
        "rank_*.json | grep -c '\"name\": \"ProfilerStep#'",
        folder);
    const command_result found = command_run_all(line);
    snprintf(line, sizeof line, "rank_0.json\nrank_1.json\n%lld\n%lld\n%lld\n%lld\n",
             c.step + c.exchange, c.step + c.exchange, c.exchange, c.run);
    CHECK_TEXT(found.text, line);
}

static void test_kineto_cannot_be_written(void)
{
    char line[LINE];
    snprintf(line, sizeof line, "--kineto %s/text.txt", folder);
    const command_result *made = weft_trace_of("threads", line);
    CHECK_EQ_INT(made->status, 2);
    CHECK_TEXT(made->text, "/text.txt/rank_0.json: Not a directory");
}

static int ask_kineto(void)
{
    char line[LINE];
    if (!text_folder_open("/tmp", "kineto")) return 1;
    RUN(test_threads_are_traced);
    RUN(test_kineto_has_every_step);
    snprintf(line, sizeof line,
             WEFT_TEST_KINETO_PYTHON " " WEFT_TEST_DATA "/apps/kineto_check.py %s/kineto 2>&1",
             folder);
    if (WEFT_TEST_KINETO_PYTHON[0] == '\0') {
        weft_test_skip("no python3 with the package HolisticTraceAnalysis here (pip install "
                       "holistictraceanalysis; CMake's WEFT_KINETO_PYTHON names another python3)");
    } else {
        const command_result result = command_run_all(line);
        if (!CHECK_EQ_INT(result.status, 0)) fprintf(stderr, "%s\n", result.text);
    }
    text_folder_close();
    return weft_test_report();
}

/* ---- what was predicted ------------------------------------------------------------------------- */

/* How many steps of the program have a time in a run. */
static int predicted_steps(const char *name)
{
    char path[1024];
    weft_traced *t = NULL;
    weft_error error = {0};
    int n = 0;
    snprintf(path, sizeof path, "%s/%s/trace/rank_00000.ring", folder, name);
    if (!CHECK_OK(weft_traced_open(path, &t, &error), error)) return 0;
    for (int s = 0; s < t->programs[0].n_steps; s++) {
        const weft_traced_step *step = &t->programs[0].steps[s];
        CHECK(step->predicted_begin >= 0 && step->predicted_total >= 0);
        n += step->predicted_end > step->predicted_begin;
    }
    weft_traced_close(&t);
    return n;
}

/* Whole runs of them: one that began before the run before it was to be over is left out. */
static void check_predicted(const char *name, int n_steps)
{
    int n = 0;
    read_trace *t = read_file(name, &(size_t){0});
    for (int i = 0; i < t->n_slices; i++) {
        if (strcmp(t->slices[i].category, "predicted") != 0) continue;
        CHECK(t->slices[i].end > t->slices[i].begin && t->slices[i].depth == 0);
        n++;
    }
    CHECK(n_steps > 10 && n > 0 && n <= RUNS * n_steps && n % n_steps == 0);
    read_close(t);
}

static void test_what_was_predicted_is_beside_it(void)
{
    const command_result *trained =
        train("", "predicted", "--mesh data:2 --layout batch:data --trace 3..4 --machine laptop");
    if (!CHECK_EQ_INT(trained->status, 0)) fprintf(stderr, "%s\n", trained->text);
    const command_result *made = weft_trace_of("predicted", "");
    CHECK_EQ_INT(made->status, 0);
    CHECK_TEXT(made->text, "were predicted; the steps that differ most, on rank 0:");
    check_predicted("predicted", predicted_steps("predicted"));
}

/* ---- clocks ------------------------------------------------------------------------------------ */

/* Rank 1 in a name space of its own, whose clock is 100,000 s ahead: exactly that, within the error, is found. */
static void test_clocks_that_are_apart_are_compared(void)
{
    char line[LINE], path[1024];
    weft_traced *t = NULL;
    weft_error error = {0};
    if (WEFT_TEST_MPIEXEC[0] == '\0') return;
    if (system("unshare -T --monotonic 1 true 2>/dev/null") != 0) {
        printf("not tried: this user may make no name space of times\n");
        return;
    }
    snprintf(line, sizeof line,
             WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/clocks " MODEL
                           "--layout batch:data --trace 3..4",
             folder, folder);
    char both[2 * LINE];
    snprintf(both, sizeof both,
             "%s -n 1 --oversubscribe %s : -n 1 unshare -T --monotonic 100000 %s",
             WEFT_TEST_MPIEXEC, line, line);
    CHECK_EQ_INT(command_run(both).status, 0);
    snprintf(path, sizeof path, "%s/clocks/trace/rank_00001.ring", folder);
    if (!CHECK_OK(weft_traced_open(path, &t, &error), error)) return;
    for (int i = 0; i < 2; i++) {
        CHECK(t->clocks[i].error > 0);
        CHECK(llabs(t->clocks[i].offset + 100000000000000) <= t->clocks[i].error);
    }
    CHECK(t->clocks[1].at > t->clocks[0].at);
    weft_traced_close(&t);
    CHECK_TEXT(weft_trace_of("clocks", "")->text,
               "clocks of hosts are compared: times are right to ");
}

/* ---- programs, by name ------------------------------------------------------------------------- */

static void test_programs_are_told_apart(void)
{
    char line[LINE], path[1024];
    weft_traced *t = NULL;
    weft_error error = {0};
    int n[2] = {0};
    snprintf(
        line, sizeof line,
        "--mesh data:2 --layout batch:data --trace 3..4 --eval-data %s/text.txt --eval-every 4",
        folder);
    CHECK_EQ_INT(train("", "held", line)->status, 0);
    snprintf(path, sizeof path, "%s/held/trace/rank_00001.ring", folder);
    if (!CHECK_OK(weft_traced_open(path, &t, &error), error)) return;
    CHECK(t->n_programs == 2 && strcmp(t->programs[0].name, "train") == 0);
    CHECK(strcmp(t->programs[1].name, "held-out") == 0);
    for (int64_t i = 0; i < t->n_events; i++)
        n[t->events[i].program] += t->events[i].kind == WEFT_TRACED_RUN;
    CHECK_EQ_INT(n[0], 2);
    CHECK_EQ_INT(n[1], 8000 / 8 / 4 - 1); /* windows of the text, in batches, once */
    weft_traced_close(&t);
}

/* A run that continues behind the window is not stopped by it; one that continues in it traces the rest. */
static void test_a_run_that_continues_traces_what_is_left(void)
{
    char line[LINE];
    const char *places = "--mesh data:2 --layout batch:data";
    snprintf(line, sizeof line, "%s --until 3", places);
    CHECK_EQ_INT(train("", "rest", line)->status, 0);
    snprintf(line, sizeof line, "%s --no-fresh --trace 2..5", places);
    CHECK_EQ_INT(train("", "rest", line)->status, 0);
    CHECK_TEXT(weft_trace_of("rest", "")->text, ": 2 runs of 2 ranks");
    snprintf(line, sizeof line, "%s --no-fresh --steps 8 --trace 2..5", places);
    CHECK_EQ_INT(train("", "rest", line)->status, 0);
}

/* ---- mistakes ---------------------------------------------------------------------------------- */

static void refused(const char *window, const char *sentence)
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "--mesh data:2 --layout batch:data --trace %s", window);
    const command_result *result = train("", "wrong", arguments);
    CHECK_EQ_INT(result->status, 2);
    CHECK_TEXT(result->text, sentence);
    CHECK_EQ_INT(command_lines(result->text, ""), 1);
}

static void test_wrong_windows_are_told(void)
{
    refused("5..2", "gpt: --trace 5..2: step 5 comes after step 2; write --trace 2..5");
    refused("5..7", "gpt: --trace 5..7: the training ends with step 6; name steps from 1 to 6");
    refused("0..2", "gpt: --trace 0..2: name the first step and the last, counted from 1, as 3..5");
    refused("3", "as 3..5");
    refused("3..4x", "as 3..5");
    refused("3..99999999999999999999", "as 3..5");
}

static void shell(const char *format)
{
    char line[LINE];
    snprintf(line, sizeof line, format, folder, folder);
    CHECK_EQ_INT(system(line), 0);
}

static void test_wrong_runs_are_told(void)
{
    shell("mkdir -p %s/none");
    const command_result *result = weft_trace_of("none", "");
    CHECK_EQ_INT(result->status, 2);
    CHECK_TEXT(result->text, "there is no trace in ");
    CHECK_TEXT(result->text, "train with --trace N..M first");
    CHECK_EQ_INT(train("", "other", "--mesh data:2 --layout batch:data --trace 1..1")->status, 0);
    shell("cp %s/threads/trace/rank_00001.ring %s/other/trace");
    result = weft_trace_of("other", "");
    CHECK_EQ_INT(result->status, 77);
    CHECK_TEXT(result->text, "the trace of rank 1 is of another job, or of another program");
    shell("cp %s/other/trace/rank_00000.ring %s/other/trace/rank_00001.ring");
    CHECK_TEXT(weft_trace_of("other", "")->text, "/rank_00001.ring is the trace of rank 0, not 1;");
    shell("rm %s/other/trace/rank_00001.ring");
    CHECK_TEXT(weft_trace_of("other", "")->text, "1 of 2 ranks have no trace");
    shell("head -c 1000 %s/threads/trace/rank_00001.ring > %s/other/trace/rank_00000.ring");
    result = weft_trace_of("other", "");
    CHECK_EQ_INT(result->status, 77);
    CHECK_TEXT(result->text, "is not a trace of this version of Weft (it is cut off");
    result = weft_trace_of("threads", "-o /dev/full");
    CHECK_TEXT(result->text, "cannot write /dev/full: it is no file; name another");
    result = weft_trace_of("threads", "--ranks 1 --out traced.pftrace");
    CHECK_TEXT(result->text, "2 runs of 1 rank, ");
    CHECK_TEXT(result->text, "ranks from 1 on are left out: --ranks");
    result = weft_trace_of("threads", "-o not/there.pftrace");
    CHECK_TEXT(result->text, "cannot write not/there.pftrace: No such file or directory");
    CHECK_EQ_INT(weft_trace_of("threads", "-o traced.pftrace")->status, 0);
    CHECK_EQ_INT(unlink("traced.pftrace"), 0);
}

/* Nothing can be written where the rings belong: the training goes on, to the same end. */
static void test_a_refused_ring_is_no_reason_to_stop(void)
{
    shell("mkdir -p %s/refused && touch %s/refused/trace");
    const command_result *result =
        train("", "refused", "--no-fresh --mesh data:2 --layout batch:data --trace 1..2");
    CHECK_EQ_INT(result->status, 0);
    CHECK_TEXT(result->text, "cannot keep a trace in ");
    CHECK_TEXT(result->text, "Not a directory; this rank is not traced");
}

/* The disk is full when the first ring is to have its place there: the training goes on, and the other rank is traced. */
static void test_a_full_disk_is_no_reason_to_stop(void)
{
    char line[LINE];
    snprintf(line, sizeof line,
             "LD_PRELOAD=" WEFT_TEST_FAULTS_LIBRARY " " FAULTS_VARIABLE
             "='%u 1 %d %d 1 %s/full/trace' ",
             1u << FAULT_TRUNCATE, (int)FAULT_FAIL, ENOSPC, folder);
    const command_result *result =
        train(line, "full", "--mesh data:2 --layout batch:data --trace 1..2");
    CHECK_EQ_INT(result->status, 0);
    CHECK_TEXT(result->text, "cannot keep a trace in ");
    CHECK_TEXT(result->text, "No space left on device; this rank is not traced");
    CHECK_TEXT(weft_trace_of("full", "")->text, "1 of 2 ranks have no trace\n");
}

static int ask_perfetto(void)
{
    asks_perfetto = true;
    if (WEFT_TEST_PYTHON[0] == '\0') {
        weft_test_skip("no python3 with the package perfetto here (pip install perfetto; CMake's "
                       "WEFT_PERFETTO_PYTHON names another python3)");
        return weft_test_report();
    }
    if (!text_folder_open("/tmp", "traced")) return 1;
    RUN(test_threads_are_traced);
    RUN(test_processes_are_traced);
    text_folder_close();
    return weft_test_report();
}

int main(int n, char **arguments)
{
    if (n > 1 && strcmp(arguments[1], "--perfetto") == 0) return ask_perfetto();
    if (n > 1 && strcmp(arguments[1], "--kineto") == 0) return ask_kineto();
    if (!text_folder_open("/tmp", "traced")) return 1;
    RUN(test_threads_are_traced);
    RUN(test_kineto_has_every_step);
    RUN(test_kineto_cannot_be_written);
    RUN(test_a_full_disk_is_no_reason_to_stop);
    RUN(test_processes_are_traced);
    RUN(test_what_was_predicted_is_beside_it);
    RUN(test_clocks_that_are_apart_are_compared);
    RUN(test_programs_are_told_apart);
    RUN(test_a_run_that_continues_traces_what_is_left);
    RUN(test_wrong_windows_are_told);
    RUN(test_wrong_runs_are_told);
    RUN(test_a_refused_ring_is_no_reason_to_stop);
    text_folder_close();
    return weft_test_report();
}
