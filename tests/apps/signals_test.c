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
static const int signals[] = {SIGUSR1, SIGTERM, SIGINT};
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
        RUN(test_any_signal_to_any_rank_at_any_moment);
        RUN(test_a_second_interrupt_ends_it_at_once);
    }
    text_folder_close();
    return weft_test_report();
}
