/* watch_test: in all orders within a bound, the thread that watches ranks ends when it is told to, and accuses no rank of what
 * it did not do. Calls that tell their ranks themselves that they differ are left to do so; others are found.
 */
#include "watch/watch.h"

#include "explored.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_RANKS = 3, MOST_CALLS = 4, NOWHERE = -1 };

/* ---- what the watch's thread waits on (--wrap, tests/sync/CMakeLists.txt) ------------------------- */

/* An eventfd as the scheduler knows it: whoever reads it sleeps until it is written, or for as long as it said. */
static struct {
    weft_word written;
    int file;
} bell = {.file = NOWHERE};

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_poll(struct pollfd *files, nfds_t n, int ms);
int __wrap_poll(struct pollfd *files, nfds_t n, int ms);
ssize_t __real_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes);
ssize_t __real_read(int file, void *data, size_t bytes);
ssize_t __wrap_read(int file, void *data, size_t bytes);

int __wrap_eventfd(unsigned count, int flags)
{
    return bell.file = __real_eventfd(count, flags);
}

int __wrap_poll(struct pollfd *files, nfds_t n, int ms)
{
    if (n == 0 || files[0].fd != bell.file) return __real_poll(files, n, ms);
    const weft_waiter wait = {"its bell", WEFT_ANY, {0, 0}, NULL, 0, false};
    if (ms > 0 && weft_sync_load(&bell.written.value) == 0)
        weft_word_sleep(&bell.written, 0, WEFT_OF_THREADS, (int64_t)ms * 1000000, &wait);
    const bool is_rung = weft_sync_load(&bell.written.value) != 0;
    files[0].revents = is_rung ? POLLIN : 0;
    return is_rung;
}

ssize_t __wrap_write(int file, const void *data, size_t bytes)
{
    if (file != bell.file) return __real_write(file, data, bytes);
    weft_sync_add(&bell.written.value, 1);
    weft_word_wake(&bell.written, WEFT_OF_THREADS);
    return (ssize_t)bytes;
}

ssize_t __wrap_read(int file, void *data, size_t bytes)
{
    if (file != bell.file) return __real_read(file, data, bytes);
    weft_sync_store(&bell.written.value, 0);
    return (ssize_t)bytes;
}

/* Time stands still: nothing is found because it took long. */
double __wrap_weft_seconds(void);
double __wrap_weft_seconds(void)
{
    return 0;
}

/* ---- ranks, and what the watch finds ---------------------------------------------------------------- */

typedef enum story {
    SAME,   /* all make the same calls */
    TOLD,   /* rank 1 makes another one, and the call says so to all, who go on */
    LATE,   /* so, when the watch has no patience left */
    NOT_MET /* rank 1 makes another one, and nobody gets anything from anybody */
} story;

typedef struct job {
    int n_ranks, n_calls;
    story story;
    _Atomic int n_begun[MOST_CALLS], n_told[MOST_CALLS];
    _Atomic int n_verdicts;
    weft_recorder *recorders[MOST_RANKS];
    /* ranks as two processes have them, where each looks at its own and tells the other */
    pthread_mutex_t telling;
    weft_rank_view told;
} job;

static job *now; /* explored */

/* Whether a rank has been told of the call that differs, which is its second. */
static bool was_told(const weft_rank_view *view)
{
    const weft_channel_view *c = &view->channels[0];
    return view->n_channels == 1 && (c->sequence > 2 || (c->sequence == 2 && c->past[2] == 0));
}

/* Out of patience it may speak for ranks that differ, as long as none of them has been told. */
static bool is_right(const weft_rank_view *views, int n, const weft_verdict *verdict)
{
    bool is_any_told = false;
    for (int i = 0; i < n; i++)
        is_any_told |= was_told(&views[i]);
    return now->story == NOT_MET ||
           (now->story == LATE && (verdict->status != WEFT_ENDS_MISMATCH || !is_any_told));
}

/* A verdict would end the process. */
bool __real_weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict);
bool __wrap_weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict);
bool __wrap_weft_judge(const weft_rank_view *views, int n, double patience, weft_verdict *verdict)
{
    if (!__real_weft_judge(views, n, now->story == LATE ? 0 : patience, verdict)) return false;
    if (!is_right(views, n, verdict)) schedule_fail("the watch says: %s", verdict->text);
    weft_sync_add(&now->n_verdicts, 1);
    return false;
}

/* Until all ranks have come; where nobody is met, until the watch has spoken. */
static void meet(job *j, _Atomic int *n_come, bool is_met)
{
    weft_waiter wait = {"the other ranks", WEFT_ANY, {0, 0}, NULL, 0, false};
    weft_sync_add(n_come, 1);
    while (is_met ? weft_sync_load(n_come) < j->n_ranks : weft_sync_load(&j->n_verdicts) == 0)
        weft_waiter_nap(&wait, 1);
}

/* As an agreement between processes (mpi_world.c), or an exchange between threads: call 1 is the one that differs. */
static void make_calls(void *state, int rank)
{
    job *j = state;
    weft_recorder *recorder = j->recorders[rank];
    for (int i = 0; i < j->n_calls; i++) {
        const bool differs = j->story != SAME && i == 1;
        const weft_call_facts call = {.kind = WEFT_CALL_AGREE, .root = -1, .count = differs * rank};
        const weft_call_mark mark = weft_recorder_begin(recorder, 0, &call);
        weft_recorder_wait(recorder, &mark);
        meet(j, &j->n_begun[i], !differs || j->story != NOT_MET);
        if (differs && j->story != NOT_MET) {
            meet(j, &j->n_told[i], true); /* each tells what it is in */
            weft_recorder_settle(recorder, 0);
        }
        weft_recorder_end(recorder, &mark);
        if (differs && j->story == NOT_MET) return;
    }
}

static void clear(weft_recorder *recorder)
{
    weft_recorder_head *head = &recorder->head;
    const size_t at = offsetof(weft_recorder_head, n_begun);
    memset((char *)head + at, 0, sizeof *head - at);
    memset(recorder->records, 0, 2 * MOST_CALLS * sizeof *recorder->records);
    weft_recorder_channel(recorder, 3, 0, now->n_ranks, "data");
    if (now->story != NOT_MET) weft_recorder_tells(recorder, 0);
}

static void begin_job(job *j)
{
    now = j;
    memset((void *)j->n_begun, 0, sizeof j->n_begun);
    memset((void *)j->n_told, 0, sizeof j->n_told);
    atomic_store(&j->n_verdicts, 0);
    atomic_store(&bell.written.value, 0);
    memset(&j->told, 0, sizeof j->told);
    for (int r = 0; r < j->n_ranks; r++)
        clear(j->recorders[r]);
}

/* ---- the thread, as it is --------------------------------------------------------------------------- */

static void watch_job(void *state)
{
    job *j = state;
    begin_job(j);
    weft_watch_begin(0, 1, NULL);
    explored_each(j->n_ranks, make_calls, j);
    weft_watch_end();
    if (j->story == NOT_MET && atomic_load(&j->n_verdicts) == 0)
        schedule_fail("calls that differ are not found");
}

static void check_job(const char *what, void (*body)(void *), job j, schedule_options options)
{
    char name[120];
    pthread_mutex_init(&j.telling, NULL);
    for (int r = 0; r < j.n_ranks; r++)
        j.recorders[r] = weft_recorder_of(r);
    snprintf(name, sizeof name, "%s, %d ranks, %d calls%s", what, j.n_ranks, j.n_calls,
             options.seed != 0 ? ", at random" : "");
    explore(name, body, &j, options);
    pthread_mutex_destroy(&j.telling);
}

static schedule_options all(int n_preemptions, int most)
{
    return (schedule_options){.n_preemptions = n_preemptions, .most_runs = weft_test_cases(most)};
}

static schedule_options random_ones(uint64_t seed, int most)
{
    return (schedule_options){.seed = seed, .most_runs = weft_test_cases(most)};
}

static void test_who_makes_the_same_calls_is_not_accused(void)
{
    check_job("the same calls", watch_job, (job){2, 2, SAME}, all(2, 5000));
    check_job("the same calls", watch_job, (job){2, 3, SAME}, random_ones(2, 5000));
}

static void test_calls_that_tell_are_left_to_do_so(void)
{
    check_job("told", watch_job, (job){2, 3, TOLD}, all(1, 20000));
    check_job("told", watch_job, (job){2, 3, TOLD}, random_ones(3, 5000));
}

/* The thread looks again and again, by its time limit alone. */
static void test_calls_that_do_not_are_found(void)
{
    schedule_options options = random_ones(4, 2500);
    options.may_oversleep = true;
    check_job("not met", watch_job, (job){2, 3, NOT_MET}, options);
}

/* ---- views that travel ------------------------------------------------------------------------------ */

/* Thread 0 and 1: the ranks. 2: looks at rank 1, and tells. 3: looks at rank 0, and judges by that and by what it was told,
 * however old. */
static void look_or_call(void *state, int thread)
{
    job *j = state;
    weft_rank_view views[2];
    weft_verdict verdict;
    if (thread < 2) {
        make_calls(j, thread);
        return;
    }
    for (int look = 0; look < 2; look++) {
        weft_view_take(j->recorders[3 - thread], &views[3 - thread]);
        weft_lock_take(&j->telling);
        if (thread == 2) j->told = views[1];
        views[1] = j->told;
        weft_lock_give(&j->telling);
        if (thread == 3) (void)weft_judge(views, 2, 10, &verdict);
    }
}

static void tell_views(void *state)
{
    begin_job(state);
    explored_each(4, look_or_call, state);
}

static void test_old_views_accuse_nobody(void)
{
    check_job("views of processes", tell_views, (job){2, 2, SAME}, all(1, 4000));
    check_job("views of processes", tell_views, (job){2, 3, SAME}, random_ones(5, 8000));
    check_job("views of processes, told", tell_views, (job){2, 3, TOLD}, random_ones(6, 8000));
    check_job("views of processes, late", tell_views, (job){2, 3, LATE}, random_ones(7, 8000));
}

int main(void)
{
    RUN(test_who_makes_the_same_calls_is_not_accused);
    RUN(test_calls_that_tell_are_left_to_do_so);
    RUN(test_calls_that_do_not_are_found);
    RUN(test_old_views_accuse_nobody);
    return weft_test_report();
}
