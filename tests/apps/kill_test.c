/* kill_test: a run is killed at a random moment, or inside a save, again and again: one rank, or
 * all at once. The same command continues it; the losses and the last state are those of the run
 * that nobody killed, to the bit.
 *
 * --kills N: how many kills in all.
 */
#include "runs.h"

#include <time.h>

static const char arguments[] = "--steps 24 --save-every 3 --keep 2";

typedef enum victims { ALL_RANKS, ONE_RANK } victims;

typedef struct tally {
    const char *reference; /* a run that nobody kills */
    double length;         /* of it, in seconds */
    int n_kills, n_saving, n_series, n_lost;
} tally;

static uint64_t seed = 2024;

static double random_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool has_ended(pid_t child)
{
    siginfo_t facts = {0};
    return waitid(P_PID, (id_t)child, &facts, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           facts.si_pid == child;
}

/* A run under way. */
typedef struct victim {
    const way *how;
    victims who;
    pid_t child;
    struct timespec begun; /* as files have it */
} victim;

static victim start_victim(const way *w, victims who)
{
    victim v = {.how = w, .who = who};
    clock_gettime(CLOCK_REALTIME_COARSE, &v.begun);
    v.child = start_run(w, "killed", arguments);
    return v;
}

/* Any moment of what is left of a run of `length` seconds, or one inside a save. */
static void await_moment(const victim *v, bool is_save_wanted, double length)
{
    double losses[STEPS + 1];
    const double left = 1 - (double)read_losses("killed", losses) / (STEPS + 1), begun = seconds(),
                 wait = random_number() * length * (is_save_wanted ? left / 2 : left);
    while (!has_ended(v->child) && seconds() - begun < wait)
        usleep(200);
    while (is_save_wanted && !has_ended(v->child) && !is_saving("killed", &v->begun))
        usleep(50);
    if (is_save_wanted) usleep((useconds_t)(random_number() * 2000));
}

/* Stops them first, so that what is told of the moment is so. False when the run had ended, or not
 * begun. */
static bool kill_run(const victim *v, bool *was_saving)
{
    pid_t ranks[MOST_RANKS];
    const int n = find_ranks(v->child, ranks);
    if (n == 0 || has_ended(v->child)) return false;
    const int only = (int)(random_number() * n);
    const bool is_all = v->how->n_processes == 0 || v->who == ALL_RANKS;
    for (int i = 0; i < n; i++)
        if (is_all || i == only) kill(ranks[i], SIGSTOP);
    *was_saving = is_saving("killed", &v->begun);
    if (v->who == ALL_RANKS) kill(-v->child, SIGKILL); /* the launcher too: the machine is gone */
    for (int i = 0; i < n; i++)
        if (is_all || i == only) kill(ranks[i], SIGKILL);
    return true;
}

/* Kill it until it has come to its end, or often enough; then it goes on to its end. */
static void kill_series(const way *w, victims who, int n_wanted, tally *t)
{
    bool is_over = false;
    const int n_before = t->n_kills;
    remove_run("killed");
    while (!is_over && t->n_kills < n_wanted) {
        bool was_saving = false;
        const victim v = start_victim(w, who);
        await_moment(&v, t->n_kills % 3 < 2, t->length);
        const bool is_killed = kill_run(&v, &was_saving);
        const int status = await_run(v.child);
        if (is_killed && status != 0) {
            t->n_kills++;
            t->n_saving += was_saving;
        }
        is_over = status == 0;
    }
    if (t->n_kills == n_before) return;
    const bool is_good = CHECK_EQ_INT(run_to_the_end(w, "", "killed", arguments), 0) &&
                         is_as("killed", t->reference);
    t->n_lost += !is_good;
    t->n_series++;
}

static int n_kills = 6;
static bool is_long;

/* Kills go into a run as long as the one that nobody kills, with which it is compared. Threads and
 * two ranks have the same bits, so a short test does without a run of the two. */
static void kill_often(const char *name, const way *w, victims who, int n_wanted)
{
    tally t = {.reference = is_long ? "timed" : "whole"};
    const double begun = seconds();
    if (is_long) remove_run("timed");
    if (is_long) CHECK_EQ_INT(run_to_the_end(w, "", "timed", arguments), 0);
    t.length = is_long ? seconds() - begun : 0.4;
    while (t.n_kills < n_wanted && weft_test_.n_failed < 4)
        kill_series(w, who, n_wanted, &t);
    printf("  %s: %d kills, %d of them inside a save, in %d runs; %d not as they should be\n", name,
           t.n_kills, t.n_saving, t.n_series, t.n_lost);
    if (n_wanted >= 10) CHECK(t.n_saving * 10 >= t.n_kills * 3);
}

/* A sixth each for one and for all of several ranks, where there are some. */
static void test_killed_at_any_moment(void)
{
    const int n_mpi = has_mpi() ? n_kills / 6 : 0;
    kill_often("threads", &on_threads, ALL_RANKS, n_kills - 2 * n_mpi);
    if (n_mpi == 0) return;
    kill_often("one of two ranks", &on_two, ONE_RANK, is_long ? n_mpi / 2 : n_mpi);
    if (!is_long) return;
    kill_often("both of two ranks", &on_two, ALL_RANKS, n_mpi / 2);
    kill_often("one of four ranks", &on_four, ONE_RANK, n_mpi - n_mpi / 2);
    kill_often("all of four ranks", &on_four, ALL_RANKS, n_mpi - n_mpi / 2);
}

/* Half a run on threads, the other half on whatever starts processes. */
static void test_any_launcher_continues_with_the_same_bits(void)
{
    static const way one_process = {MPIEXEC(1), 1, "--mesh data:2 --layout batch:data "};
    static const way by_srun = {"srun -n 1 ", 1, "--mesh data:2 --layout batch:data "};
    const way *const ways[] = {&on_threads, &on_two, &one_process, &by_srun};
    CHECK_EQ_INT(run_to_the_end(&on_threads, "", "half", "--steps 24 --save-every 3 --until 12"),
                 0);
    for (int i = 0; i < 4; i++) {
        if (ways[i]->launcher[0] == ' ') continue; /* built without MPI */
        if (ways[i] == &by_srun && system("srun --version >/dev/null 2>&1") != 0) {
            printf("  left out: there is no srun\n");
            continue;
        }
        copy_run("half", "other");
        CHECK_EQ_INT(run_to_the_end(ways[i], "", "other", arguments), 0);
        is_as("other", "whole");
    }
}

int main(int n, char **all)
{
    is_long = n > 2 && strcmp(all[1], "--kills") == 0;
    if (is_long) n_kills = atoi(all[2]);
    if (WEFT_TEST_EMULATOR[0] != '\0') {
        weft_test_skip("it repeats a training for each kill, which takes an emulator hours");
        return weft_test_report();
    }
    if (CHECK(open_runs(arguments))) {
        RUN(test_killed_at_any_moment);
        if (is_long) RUN(test_any_launcher_continues_with_the_same_bits);
        close_runs();
    }
    return weft_test_report();
}
