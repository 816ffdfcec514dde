/* signals_test: a signal to one rank, to some, to all or to mpirun, at any moment, within a save
 * too: the run is saved, ends with 75, and the same command goes on with the same bits.
 *
 *   test_apps_signals --many N   N signals
 */
#include "training.h"

/* Long steps, and half of the time a save under way. What is computed does not hang on --until. */
#define RUN_OPTIONS "--steps 400 --batch 60 --save-every 1 --layout batch:data "

enum { STOPPED = 75, REFERENCE = 30, TRIES = 4 };
static int most = 1; /* the meshes of 1, 2 and, in the long test, 4 ranks: this is the last */

typedef enum target { ONE, SOME, ALL, LAUNCHER, TARGETS } target;
static const char *const target_names[] = {"one rank", "some", "all", "mpirun"};
static const int signals[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGUSR2,   SIGXCPU,
                              SIGALRM, SIGPROF, SIGPWR, SIGIO,  SIGVTALRM, SIGSTKFLT};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

/* mpirun passes SIGUSR1 on; from SIGTERM and SIGINT it makes a kill of its own. */
static void send(pid_t launcher, const pid_t *ranks, int n, target t, int number)
{
    if (t == LAUNCHER) {
        kill(launcher, SIGUSR1);
        return;
    }
    const int first = t == ALL ? 0 : rand() % n, count = t == ALL ? n : t == ONE ? 1 : n / 2 + 1;
    for (int i = 0; i < count; i++)
        kill(ranks[(first + i) % n], number);
}

/* One try: how far it came, or -1. */
static int stop_it(const char *launcher, const char *name, int n_ranks, target t, int number)
{
    pid_t ranks[8];
    double losses[TRAINING_STEPS + 1];
    const pid_t child = training_start(launcher, name, RUN_OPTIONS);
    bool is_good = CHECK(training_await(name, 1 + rand() % 12));
    ranks[0] = child;
    if (n_ranks > 1) is_good = CHECK_EQ_INT(training_ranks(child, ranks, 8), n_ranks) && is_good;
    usleep((unsigned)(rand() % 40000));
    send(child, ranks, n_ranks, t, number);
    is_good = CHECK_EQ_INT(training_wait(child), STOPPED) && is_good;
    char saved[128];
    const int done = training_losses(name, losses);
    snprintf(saved, sizeof saved, "%s/ckpt/step_%08d", name, done);
    is_good = CHECK(done >= 1) && is_good;
    is_good = CHECK(training_is_there(saved)) && is_good;
    return is_good ? done : -1;
}

static bool one_try(int i)
{
    char name[32], arguments[256], wanted[32];
    const int n_ranks = WEFT_TEST_MPIEXEC[0] == '\0' ? 1 : 1 << i % (most + 1);
    const char *const launchers[] = {"", TWO_RANKS, FOUR_RANKS};
    const char *launcher = launchers[n_ranks / 2];
    const target t = n_ranks == 1 ? ONE : (target)(rand() % TARGETS);
    const int number = signals[rand() % N_SIGNALS];
    snprintf(name, sizeof name, "try%d", i);
    snprintf(wanted, sizeof wanted, "whole%d", n_ranks);
    const int done = stop_it(launcher, name, n_ranks, t, number);
    const int until = done + 3 < REFERENCE ? done + 3 : REFERENCE;
    bool is_good = done > 0;
    if (done > 0 && done < until) {
        snprintf(arguments, sizeof arguments, RUN_OPTIONS "--until %d", until);
        const command_result *r = training_run(launcher, name, arguments);
        is_good = weft_test_check(r->status == 0, __FILE__, __LINE__, r->text) && is_good;
    }
    is_good = training_check(name, wanted, done > 0 ? until : 1) && is_good;
    if (!is_good)
        fprintf(stderr, "try %d: %s to %s of %d, stopped after step %d\n", i, strsignal(number),
                target_names[t], n_ranks, done);
    return is_good;
}

static bool make_references(void)
{
    char arguments[256];
    snprintf(arguments, sizeof arguments, RUN_OPTIONS "--save-every 0 --until %d", REFERENCE);
    bool is_good = CHECK_EQ_INT(training_run("", "whole1", arguments)->status, 0);
    if (WEFT_TEST_MPIEXEC[0] == '\0') return is_good;
    is_good = CHECK_EQ_INT(training_run(TWO_RANKS, "whole2", arguments)->status, 0) && is_good;
    if (most < 2) return is_good;
    return CHECK_EQ_INT(training_run(FOUR_RANKS, "whole4", arguments)->status, 0) && is_good;
}

static void try_many(int n)
{
    int n_good = 0;
    if (!make_references()) return;
    for (int i = 0; i < n; i++) {
        char line[256];
        const bool is_good = one_try(i);
        n_good += is_good;
        snprintf(line, sizeof line, "rm -r %s/try%d", folder, i);
        if (is_good) (void)command_run(line);
    }
    printf("%d of %d signals: stopped with status 75, saved, and continued with the same bits\n",
           n_good, n);
}

static void test_any_signal_to_any_rank_at_any_moment(void)
{
    try_many(TRIES);
}

/* What each of them does by itself, of a training of one rank. */
static void test_every_signal_that_ends_a_process_saves(void)
{
    for (int i = 0; i < N_SIGNALS; i++) {
        char name[32], saved[64];
        double losses[TRAINING_STEPS + 1];
        snprintf(name, sizeof name, "signal%d", signals[i]);
        const pid_t child = training_start("", name, "--steps 400 --batch 60");
        CHECK(training_await(name, 2));
        kill(child, signals[i]);
        CHECK_EQ_INT(training_wait(child), STOPPED);
        snprintf(saved, sizeof saved, "%s/ckpt/step_%08d", name, training_losses(name, losses));
        CHECK(training_is_there(saved));
    }
}

static void test_a_hangup_that_is_ignored_stays_ignored(void)
{
    const pid_t child = training_start("nohup", "nohup", "--steps 400 --batch 60");
    double losses[TRAINING_STEPS + 1];
    CHECK(training_await("nohup", 2));
    kill(child, SIGHUP);
    const int before = training_losses("nohup", losses);
    CHECK(training_await("nohup", before + 3));
    kill(child, SIGTERM);
    CHECK_EQ_INT(training_wait(child), STOPPED);
}

/* Of a line a step that is printed the reader takes one, and goes. */
static void test_a_reader_that_goes_away_stops_nothing(void)
{
    char line[TRAINING_TEXT + 256];
    snprintf(line, sizeof line, "{ timeout 60 env %s; echo $? >%s/reader.status; } 2>&1 | head -1",
             training_line("", "reader", "--steps 30 --no-quiet"), folder);
    CHECK_EQ_INT(command_run_all(line).status, 0);
    snprintf(line, sizeof line, "cat %s/reader.status", folder);
    CHECK(strcmp(command_run_all(line).text, "0\n") == 0);
    CHECK(training_is_there("reader/ckpt/step_00000030"));
}

static void test_a_limit_on_files_is_a_failed_write(void)
{
    char line[TRAINING_TEXT + 256];
    snprintf(line, sizeof line, "ulimit -f 32; timeout 60 env %s 2>&1 >/dev/null",
             training_line("", "limited", "--steps 4 --width 48"));
    const command_result r = command_run_all(line);
    CHECK_EQ_INT(r.status, 74);
    CHECK_TEXT(r.text, "limited/");
}

/* The first asks it to stop after the step, which is long; the second is at once. */
static void test_a_second_interrupt_ends_it_at_once(void)
{
    double losses[TRAINING_STEPS + 1];
    const char *const slow = "--steps 400 --batch 500 --save-every 2";
    const pid_t child = training_start("", "twice", slow);
    CHECK(training_await("twice", 3));
    for (int i = 0; i < 10000 && !training_is_there("twice/ckpt/step_00000002"); i++)
        usleep(1000);
    const int before = training_losses("twice", losses);
    int status = 0;
    for (int i = 0; i < 1000 && waitpid(child, &status, WNOHANG) == 0; i++) {
        kill(child, SIGINT);
        usleep(5000);
    }
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    const int after = training_losses("twice", losses);
    CHECK(after <= before + 2);
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%s --no-quiet --until %d", slow, after + 2);
    const command_result *r = training_run("", "twice", arguments);
    CHECK_EQ_INT(r->status, 0);
    CHECK_TEXT(r->text, "continues from the checkpoint of step ");
    CHECK_EQ_INT(training_run("", "once", arguments)->status, 0);
    training_check("twice", "once", after + 2);
}

int main(int n, char **arguments)
{
    srand(5);
    if (!CHECK(text_folder_open("/tmp", "signals"))) return weft_test_report();
    if (n == 3 && strcmp(arguments[1], "--many") == 0) {
        most = 2;
        try_many(atoi(arguments[2]));
    } else {
        RUN(test_every_signal_that_ends_a_process_saves);
        RUN(test_a_hangup_that_is_ignored_stays_ignored);
        RUN(test_a_reader_that_goes_away_stops_nothing);
        RUN(test_a_limit_on_files_is_a_failed_write);
        RUN(test_any_signal_to_any_rank_at_any_moment);
        RUN(test_a_second_interrupt_ends_it_at_once);
    }
    text_folder_close();
    return weft_test_report();
}
