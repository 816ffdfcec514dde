/* watch_test: jobs that lose a rank, or cannot go on, end with a paragraph that names it; jobs that
 * are only slow go on.
 *
 * gpt and misbehave under mpirun, as a user starts them. watch_test --many: many times at random
 * moments, with figures.
 */
#include "jobs.h"

#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "weft/watch.h"

enum { RANKS = 3, BESIDE = 4, MOST = 16 };
static char folder[] = "/tmp/weft-watch-XXXXXX";

/* ---- a gpt to be hurt --------------------------------------------------------------------------
 */

typedef struct victim {
    FILE *pipe;
    char run[96]; /* its run directory */
    int pids[RANKS];
    int status;
    double hurt, seconds; /* when; from then to the end of mpirun */
    char text[1 << 14];
} victim;

#define SMALL                                                                                      \
    "--layers 1 --width 24 --heads 2 --batch 6 --seq 12 --dropout 0 --quiet --mesh data:3 "        \
    "--layout batch:data "

static void gpt_line(const victim *v, const char *arguments, char *line, size_t bytes)
{
    snprintf(line, bytes,
             JOBS_MPIRUN "-n 3 " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s " SMALL
                         "--save-every 20 %s >%s.out 2>&1",
             folder, v->run, arguments, v->run);
}

/* Processes and the newest checkpoint, from the records; false: not all are there. */
static bool look_at(victim *v, int64_t *saved)
{
    char records[128];
    weft_postmortem *p = NULL;
    snprintf(records, sizeof records, "%s/recorder", v->run);
    if (weft_postmortem_open(records, &p, NULL) != WEFT_OK) return false;
    const bool is_whole = weft_postmortem_n_ranks(p) == RANKS;
    *saved = INT64_MAX;
    for (int i = 0; is_whole && i < RANKS; i++) {
        const weft_rank_report *r = weft_postmortem_rank_at(p, i);
        v->pids[i] = r->pid;
        if (r->saved < *saved) *saved = r->saved;
    }
    weft_postmortem_close(&p);
    return is_whole;
}

/* Started, and there is a checkpoint. */
static bool start(victim *v, const char *name, const char *arguments)
{
    char line[2048];
    int64_t saved = 0;
    *v = (victim){.status = -1};
    snprintf(v->run, sizeof v->run, "%s/%s", folder, name);
    gpt_line(v, arguments, line, sizeof line);
    v->pipe = popen(line, "r");
    for (int i = 0; v->pipe && i < 6000; i++) {
        if (look_at(v, &saved) && saved >= 20) return true;
        usleep(10000);
    }
    return false;
}

static void hurt(victim *v, int rank, int signal)
{
    v->hurt = jobs_clock(CLOCK_MONOTONIC);
    kill(v->pids[rank], signal);
}

/* Every thread of a process stands: a signal reaches them some time after kill has returned. */
static bool is_stopped(int pid)
{
    char line[128];
    snprintf(line, sizeof line,
             "cat /proc/%d/task/*/status | awk '/^State:/ && $2 != \"T\" { runs = 1 } END { exit "
             "runs }'",
             pid);
    return system(line) == 0;
}

static void stop(victim *v, int rank)
{
    hurt(v, rank, SIGSTOP);
    for (int i = 0; i < 1000 && !is_stopped(v->pids[rank]); i++)
        usleep(5000);
}

static void end(victim *v)
{
    char path[128];
    if (!v->pipe) return;
    const int status = pclose(v->pipe);
    v->seconds = jobs_clock(CLOCK_MONOTONIC) - v->hurt;
    v->status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    snprintf(path, sizeof path, "%s.out", v->run);
    FILE *file = fopen(path, "r");
    if (file) v->text[fread(v->text, 1, sizeof v->text - 1, file)] = '\0';
    if (file) fclose(file);
}

/* That a rank has been at work for long, and the job goes on, is news and no verdict: a slow machine may say so first. */
static int count_verdicts(const char *text)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, "weft: rank")) != NULL; at++) {
        const char *news = strstr(at, "the job goes on");
        n += news == NULL || news > at + strcspn(at, "\n");
    }
    return n;
}

/* "weft: rank 2 (host ..., process ...)" with the process that was hurt, a step and a checkpoint.
 * Only the failing run is printed. */
static bool check_told(const victim *v, int rank, const char *what)
{
    char name[64], process[64];
    snprintf(name, sizeof name, "weft: rank %d (host ", rank);
    snprintf(process, sizeof process, "process %d)", v->pids[rank]);
    bool is_told = CHECK_TEXT(v->text, name);
    is_told &= CHECK_TEXT(v->text, process);
    is_told &= CHECK_TEXT(v->text, what);
    is_told &= CHECK_TEXT(v->text, "at step ");
    is_told &= CHECK_TEXT(v->text, "Newest checkpoint: step ");
    is_told &= CHECK_EQ_INT(count_verdicts(v->text), 1);
    if (!is_told) fprintf(stderr, "%s: status %d\n%s\n", v->run, v->status, v->text);
    return is_told;
}

/* ---- scenes: they run beside each other
 * ---------------------------------------------------------- */

static void kill_a_rank(void)
{
    static victim v;
    if (!CHECK(start(&v, "kill1", "--steps 1000000"))) return;
    hurt(&v, 1, SIGKILL);
    end(&v);
    CHECK(v.status == 137 || v.status == 71); /* mpirun's own is 128 and the signal */
    check_told(&v, 1, "ended without a word");
}

static void kill_rank_0(void)
{
    static victim v;
    if (!CHECK(start(&v, "kill0", "--steps 1000000"))) return;
    hurt(&v, 0, SIGKILL);
    end(&v);
    CHECK(v.status == 137 || v.status == 71);
    check_told(&v, 0, "ended without a word");
}

static void stop_rank_0(void)
{
    static victim v;
    if (!CHECK(start(&v, "stop0", "--steps 1000000 --patience 3s"))) return;
    hurt(&v, 0, SIGSTOP);
    end(&v);
    CHECK_EQ_INT(v.status, 72);
    check_told(&v, 0, "is stopped");
}

static void stop_rank_2(void)
{
    static victim v;
    if (!CHECK(start(&v, "stop2", "--steps 1000000 --patience 3s"))) return;
    hurt(&v, 2, SIGSTOP);
    end(&v);
    CHECK_EQ_INT(v.status, 72);
    check_told(&v, 2, "is stopped");
}

static job_run after; /* what weft says of it afterwards */

static void weft_says(const char *arguments)
{
    snprintf(after.line, sizeof after.line, "timeout 30 " WEFT_TEST_BIN "/weft postmortem %s 2>&1",
             arguments);
    jobs_run_one(&after);
}

static void check_json(const char *arguments)
{
    json_error_t where;
    weft_says(arguments);
    CHECK_EQ_INT(after.status, 0);
    json_t *all = json_loads(after.text, 0, &where);
    if (!CHECK(all != NULL)) return;
    CHECK_EQ_INT(json_array_size(json_object_get(all, "ranks")), RANKS);
    CHECK_EQ_INT(json_integer_value(json_object_get(all, "status")), 71);
    CHECK_TEXT(json_string_value(json_object_get(all, "verdict")), "rank 2 ");
    const json_t *rank = json_array_get(json_object_get(all, "ranks"), 1);
    CHECK(json_integer_value(json_object_get(rank, "step")) >= 20);
    CHECK_EQ_INT(json_array_size(json_object_get(rank, "last_calls")), 5);
    json_decref(all);
}

/* It had not begun the call that others wait in, or it had, and went on no further. */
static bool is_blamed(const char *text)
{
    return strncmp(text, "rank 2 (host ", 13) == 0 &&
           (strstr(text, "was behind when all ended") || strstr(text, "s before all ended"));
}

/* Everything at once is killed, as when a node is lost, while one rank is behind. */
static void kill_all(void)
{
    static victim v;
    char line[256];
    struct stat facts;
    if (!CHECK(start(&v, "all", "--steps 1000000"))) return;
    stop(&v, 2);
    usleep(2000000);
    for (int i = 0; i < 2; i++) /* so that none can say of another that it was killed */
        stop(&v, i);
    for (int i = 0; i < RANKS; i++)
        hurt(&v, i, SIGKILL);
    end(&v);
    weft_says(v.run);
    CHECK_EQ_INT(after.status, 0);
    CHECK_TEXT(after.text, "rank 2 (host ");
    CHECK(is_blamed(after.text));
    snprintf(line, sizeof line, "%s --json --calls 5", v.run);
    check_json(line);
    char again[2048]; /* nothing to do, but the records are moved aside */
    gpt_line(&v, "--steps 20", again, sizeof again);
    CHECK_EQ_INT(system(again), 0);
    snprintf(line, sizeof line, "%s/recorder.last/rank_00002.rec", v.run);
    CHECK(stat(line, &facts) == 0);
    snprintf(line, sizeof line, "%s/recorder.last", v.run);
    weft_says(line);
    CHECK(is_blamed(after.text));
}

/* ---- misbehave ------------------------------------------------------------------------------- */

typedef struct scene {
    const char *arguments;
    int status[2];
    const char *said; /* NULL: the job ends well */
} scene;

static const scene scenes[] = {
    {"exit0 7", {1, 73}, "rank 1 (host |has left the job"},
    {"exit3 7", {3, 73}, "rank 1 (host |has left the job"},
    {"exit3 7 --rank 0", {3, 73}, "rank 0 (host |has left the job"},
    {"abort 7", {134, 71}, "rank 1 (host |died of signal 6"},
    {"segv 7", {139, 71}, "rank 1 (host |died of signal 11"},
    {"overflow 7", {139, 71}, "rank 1 (host |died of signal 11"},
    {"stop 2", {72, 72}, "rank 1 (host |is stopped"},
    {"sleep 7", {72, 72}, "rank 1 (host |hangs: for"},
    {"compute 7", {0, 0}, NULL},
    {"busy 7", {0, 0}, NULL},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* Sanitizers report a signal, and end the program with 1. */
#ifdef __SANITIZE_ADDRESS__
enum { OTHER_STATUS = 1 };
#else
enum { OTHER_STATUS = -2 };
#endif

static void check_scene(const scene *s, const job_run *job)
{
    const char *bar = s->said ? strchr(s->said, '|') : NULL;
    char name[64] = "";
    bool is_good = CHECK(job->status == s->status[0] || job->status == s->status[1] ||
                         (s->said && job->status == OTHER_STATUS));
    is_good &= CHECK(strstr(job->text, "WRONG") == NULL);
    if (bar) {
        snprintf(name, sizeof name, "weft: %.*s", (int)(bar - s->said), s->said);
        is_good &= CHECK_TEXT(job->text, name);
        is_good &= CHECK_TEXT(job->text, bar + 1);
    } else {
        is_good &= CHECK_TEXT(job->text, "misbehave: done");
        is_good &= CHECK(strstr(job->text, "Exit status") == NULL);
        is_good &= CHECK_TEXT(job->text, "the job goes on"); /* others were told why they wait */
    }
    if (!is_good) fprintf(stderr, "%s: status %d\n%s\n", job->line, job->status, job->text);
}

static void misbehave_all(void)
{
    static job_run jobs[SCENES];
    for (int i = 0; i < SCENES; i++)
        snprintf(jobs[i].line, sizeof jobs[i].line,
                 "OPENBLAS_NUM_THREADS=1 " JOBS_MPIRUN "-n 2 " JOBS_MISBEHAVE
                 " %s --patience 3 2>&1",
                 scenes[i].arguments);
    jobs_run(jobs, SCENES, BESIDE);
    for (int i = 0; i < SCENES; i++)
        check_scene(&scenes[i], &jobs[i]);
}

/* ---- beside each other -------------------------------------------------------------------------
 */

typedef void (*act)(void);
static const act acts[] = {misbehave_all, kill_all,    stop_rank_0,
                           stop_rank_2,   kill_a_rank, kill_rank_0};

static void *play(void *which)
{
    const int k = *(const int *)which;
    acts[k]();
    if (k > 0 && k + 2 < (int)(sizeof acts / sizeof *acts)) acts[k + 2]();
    return NULL;
}

static void test_jobs_that_cannot_go_on_end_with_a_reason(void)
{
    enum { AT_ONCE = 3 };
    static const int which[AT_ONCE] = {0, 1, 2}; /* 1 then 3, 2 then 4; and 5 */
    pthread_t threads[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        CHECK(pthread_create(&threads[i], NULL, play, (void *)(uintptr_t)&which[i]) == 0);
    for (int i = 0; i < AT_ONCE; i++)
        pthread_join(threads[i], NULL);
    kill_rank_0();
}

/* ---- many times ------------------------------------------------------------------------------ */

enum { STOPS = 100, KILLS = 50, H7_SECONDS = 120 };

typedef struct figures {
    int signal, most;
    const char *arguments;
    pthread_mutex_t lock; /* of what follows */
    int n, n_told, n_ended;
    double slowest, sum;
} figures;

/* One that has not been yet; false: all have. */
static bool next_of(figures *f, int *i)
{
    pthread_mutex_lock(&f->lock);
    *i = f->n;
    f->n += *i < f->most;
    pthread_mutex_unlock(&f->lock);
    return *i < f->most;
}

static void count_one(const victim *v, bool is_told, figures *f)
{
    const bool is_ended =
        f->signal == SIGSTOP ? v->status == 72 : v->status == 137 || v->status == 71;
    pthread_mutex_lock(&f->lock);
    f->n_ended += is_ended;
    f->n_told += is_told;
    f->sum += v->seconds;
    if (v->seconds > f->slowest) f->slowest = v->seconds;
    pthread_mutex_unlock(&f->lock);
}

static void *hurt_on(void *argument)
{
    figures *f = argument;
    victim *v = malloc(sizeof *v);
    char name[32], line[256];
    for (int i; v && next_of(f, &i);) {
        unsigned seed = (unsigned)(i + 1000 * f->signal);
        snprintf(name, sizeof name, "many%d_%d", f->signal, i);
        const bool is_started = CHECK(start(v, name, f->arguments));
        const int rank = rand_r(&seed) % RANKS;
        usleep((useconds_t)(rand_r(&seed) % 1000000));
        if (is_started) hurt(v, rank, f->signal);
        end(v);
        count_one(v,
                  check_told(v, rank, f->signal == SIGSTOP ? "is stopped" : "ended without a word"),
                  f);
        snprintf(line, sizeof line, "rm -rf %s %s.out", v->run, v->run);
        (void)!system(line);
    }
    free(v);
    return NULL;
}

static void many(int n, int signal, const char *what, const char *arguments)
{
    figures f = {.signal = signal, .most = n, .arguments = arguments};
    pthread_t threads[BESIDE];
    pthread_mutex_init(&f.lock, NULL);
    for (int i = 0; i < BESIDE; i++)
        CHECK(pthread_create(&threads[i], NULL, hurt_on, &f) == 0);
    for (int i = 0; i < BESIDE; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ_INT(f.n_told, n);
    CHECK_EQ_INT(f.n_ended, n);
    printf("%s: %d, %d ended as they should, %d named rank, process, step and checkpoint; until "
           "mpirun had ended %.1f s on average, %.1f s at most\n",
           what, f.n, f.n_ended, f.n_told, f.sum / f.n, f.slowest);
    fflush(stdout);
}

static void pause_them(const victim *v, int first, int last, double seconds)
{
    for (int i = first; i <= last; i++)
        kill(v->pids[i], SIGSTOP);
    usleep((useconds_t)(1e6 * seconds));
    const bool is_upward = rand() % 2;
    for (int k = 0; k <= last - first; k++)
        kill(v->pids[is_upward ? first + k : last - k], SIGCONT);
}

/* A suspended machine, and a rank that is held up for a moment. */
static void no_alarm(const char *name, const char *arguments, bool is_all, double shortest,
                     double longest)
{
    static victim v;
    int n = 0;
    if (!CHECK(start(&v, name, arguments))) return;
    const double begin = jobs_clock(CLOCK_MONOTONIC);
    while (jobs_clock(CLOCK_MONOTONIC) - begin < H7_SECONDS / 2) {
        const int rank = rand() % RANKS;
        pause_them(&v, is_all ? 0 : rank, is_all ? RANKS - 1 : rank,
                   shortest + (longest - shortest) * rand() / RAND_MAX);
        usleep(500000);
        n++;
    }
    const int is_there = kill(v.pids[0], 0) == 0;
    CHECK(is_there);
    hurt(&v, 0, SIGTERM); /* a stop that saves: exit status 75 */
    end(&v);
    const bool is_alarmed = strstr(v.text, "Exit status") != NULL;
    if (!CHECK(!is_alarmed) || !CHECK_EQ_INT(v.status, 75)) fprintf(stderr, "%s\n", v.text);
    printf("%s: %d pauses of %.0f to %.0f s, %d false alarms\n", name, n, shortest, longest,
           is_alarmed);
    fflush(stdout);
}

static void test_many_times(void)
{
    many(STOPS, SIGSTOP, "SIGSTOP of a random rank, patience 3 s", "--steps 1000000 --patience 3s");
    many(KILLS, SIGKILL, "SIGKILL of a random rank", "--steps 1000000");
    no_alarm("all-processes-paused", "--steps 10000000 --patience 3s", true, 4, 8);
    no_alarm("one-rank-paused", "--steps 10000000", false, 1, 1);
}

/* ---- start ----------------------------------------------------------------------------------- */

static bool prepare(void)
{
    char path[64];
    if (mkdtemp(folder) == NULL) return false;
    snprintf(path, sizeof path, "%s/text.txt", folder);
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < 4000; i++)
        fprintf(file, "the %d%s word of the text\n", i, i % 10 == 1 ? "st" : "th");
    return file && fclose(file) == 0;
}

int main(int n, char **arguments)
{
    char line[64];
    jobs_prepare_mpi();
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (WEFT_TEST_MPIEXEC[0] == '\0') {
        weft_test_skip("built without MPI");
        return weft_test_report();
    }
    if (!CHECK(prepare())) return weft_test_report();
    if (n > 1 && strcmp(arguments[1], "--many") == 0)
        RUN(test_many_times);
    else
        RUN(test_jobs_that_cannot_go_on_end_with_a_reason);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    (void)!system(line);
    return weft_test_report();
}
