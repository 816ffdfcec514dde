/* watch: one thread a process that looks at its ranks' records, tells and hears, and ends a job that cannot go on. */
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look.h"

static const double TURN_S = 0.25, HELD_UP_S = 2, OBEY_S = 0.4, SAVING_S = 60;
enum { DEFAULT_PATIENCE_MS = 10000 };

/* One a process: a process is what ends. */
static struct {
    const weft_watch_ends *ends; /* NULL: not begun */
    int listener, n_processes;
    int wake; /* an eventfd: something is to be done at once */
    pthread_t thread;
    struct pollfd *files;
    _Atomic int is_ending, is_told_to_end, n_saving;
    double held;             /* since when a verdict waits for a save */
    double told_to_end;      /* when */
    _Atomic int patience_ms; /* 0: only watch */
    char folder[4000];       /* of the records; "" for none */
    double next_word;        /* about ranks that are slow */
    weft_judge_held *holds;  /* [n_holds] of the ranks that are judged here */
    int n_holds;
    bool has_spoken;
} watch = {.listener = -1, .wake = -1, .patience_ms = DEFAULT_PATIENCE_MS};

/* ---- all ranks in this process --------------------------------------------------------------- */

static weft_rank_view *own_views;
static int n_own_views;
static weft_recall own_asked;

static int no_files(struct pollfd *files, int room)
{
    (void)files, (void)room;
    return 0;
}

static void no_turn(double now)
{
    (void)now;
}

static weft_rank_view *look_at_all(double now, double patience, int *n)
{
    (void)patience;
    *n = weft_n_recorders();
    if (*n > n_own_views) {
        free(own_views);
        own_views = calloc((size_t)*n, sizeof *own_views);
        n_own_views = own_views ? *n : 0;
    }
    if (!own_views) *n = 0;
    for (int i = 0; i < *n; i++)
        weft_look_at(i, now, &own_asked, &own_views[i]);
    const weft_recall asked = weft_views_ask(own_views, *n);
    if (asked.sequence > 0) own_asked = asked; /* else the last one's answers stay */
    return own_views;
}

static bool speak_alone(const weft_verdict *verdict)
{
    (void)verdict;
    return true;
}

static const weft_verdict *told_nothing(void)
{
    static const weft_verdict none;
    return &none;
}

static void leave_alone(void)
{
    free(own_views);
    own_views = NULL;
    n_own_views = 0;
}

static void forgive_nothing(double seconds)
{
    (void)seconds;
}

static void no_last_word(int signal)
{
    (void)signal;
}

const weft_watch_ends weft_alone = {no_files,     no_turn,     look_at_all,     speak_alone,
                                    told_nothing, leave_alone, forgive_nothing, no_last_word};

/* ---- the end of a job ------------------------------------------------------------------------ */

static void write_verdict(const weft_verdict *verdict)
{
    for (int i = 0; i < weft_n_recorders(); i++) {
        weft_recorder_head *head = &weft_recorder_at(i)->head;
        snprintf(head->verdict, sizeof head->verdict, "%s", verdict->text);
        weft_sync_store(&head->status, verdict->status);
    }
}

static void print_verdict(const weft_verdict *verdict)
{
    char text[WEFT_VERDICT_BYTES + 4200];
    int n = snprintf(text, sizeof text, "weft: %s Exit status %d.", verdict->text, verdict->status);
    if (watch.folder[0])
        n += snprintf(text + n, sizeof text - (size_t)n, " More: weft postmortem %s", watch.folder);
    n += snprintf(text + n, sizeof text - (size_t)n, "\n");
    (void)!write(STDERR_FILENO, text, (size_t)n);
}

/* What the program has printed and not yet handed over, if that cannot hang. */
static void hand_over_output(void)
{
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    if (poll(&out, 1, 0) == 1 && out.revents & POLLOUT && ftrylockfile(stdout) == 0) fflush(stdout);
}

static void end_job(const weft_verdict *verdict, bool is_told)
{
    write_verdict(verdict);
    hand_over_output();
    if (!is_told && watch.ends->tell(verdict)) print_verdict(verdict);
    /* The others must have heard it before a launcher ends them; whoever speaks has had his time. */
    usleep(is_told ? 100000 : 300000);
    sleep((unsigned)verdict->linger);
    _exit(verdict->status);
}

/* The judgement again, with what lost ranks wrote last; the same rank may turn out to be further on than was known. */
static void look_closer(weft_rank_view *views, int n, double patience, weft_verdict *verdict)
{
    weft_verdict closer;
    if (!watch.folder[0]) return;
    for (int i = 0; i < n; i++)
        if (views[i].is_known && views[i].presence != WEFT_PRESENT &&
            views[i].presence != WEFT_LEFT)
            weft_view_refresh(watch.folder, &views[i]);
    if (weft_judge(views, n, patience, &closer)) *verdict = closer;
}

/* Out of memory, nobody is found stalled. */
static void hold(weft_rank_view *views, int n, double now)
{
    if (n > watch.n_holds) {
        free(watch.holds);
        watch.holds = calloc((size_t)n, sizeof *watch.holds);
        watch.n_holds = watch.holds ? n : 0;
    }
    if (watch.holds) weft_judge_hold(views, n, now, watch.holds);
}

/* What hangs leaves the thread that writes its checkpoint alone. */
static bool waits_for_save(double now)
{
    if (weft_sync_load(&watch.n_saving) == 0) return false;
    if (watch.held == 0) watch.held = now;
    return now - watch.held < SAVING_S;
}

/* Who only watches ends nothing, but for lanes that cannot get on in a process that was told to end. */
static bool may_end(const weft_rank_view *views, int n, const weft_verdict *verdict)
{
    if (weft_sync_load(&watch.patience_ms) > 0) return true;
    for (int i = 0; i < n; i++)
        if (views[i].rank == verdict->rank && views[i].stuck_allowed > 0 &&
            views[i].stuck >= views[i].stuck_allowed)
            return true;
    return false;
}

static void judge(double now)
{
    const int patience_ms = weft_sync_load(&watch.patience_ms);
    const double patience = 1e-3 * (patience_ms > 0 ? patience_ms : DEFAULT_PATIENCE_MS);
    weft_verdict verdict;
    char text[1024];
    int n;
    weft_rank_view *views = watch.ends->views(now, patience, &n);
    hold(views, n, now);
    if (weft_judge(views, n, patience, &verdict)) {
        look_closer(views, n, patience, &verdict);
        if (may_end(views, n, &verdict)) {
            if (verdict.status == WEFT_ENDS_HUNG && waits_for_save(now)) return;
            end_job(&verdict, false);
        }
        if (!watch.has_spoken && watch.ends->tell != weft_spoke.tell) print_verdict(&verdict);
        watch.has_spoken = true;
    }
    if (weft_judge_slow(views, n, fmax(patience, watch.next_word), text, sizeof text) < 0) return;
    fprintf(stderr, "weft: %s\n", text);
    watch.next_word = 2 * fmax(patience, watch.next_word);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* What woke the thread is seen now. */
static void calm(void)
{
    uint64_t count;
    if (watch.files[0].revents & POLLIN) (void)!read(watch.wake, &count, sizeof count);
}

/* A launcher that has lost one rank sends SIGTERM to the others at once. They take a moment to find out and say which rank
 * it was, and in what. */
static bool is_time_to_obey(double now)
{
    if (!weft_sync_load(&watch.is_told_to_end)) return false;
    if (watch.told_to_end == 0) watch.told_to_end = now;
    return now - watch.told_to_end >= OBEY_S;
}

static void obey(void)
{
    hand_over_output();
    weft_last_words_end();
    kill(getpid(), SIGTERM);
    pause();
}

static void *run(void *nothing)
{
    const int room = watch.n_processes + 128;
    int wait_ms = 0; /* the first turn at once: a process that dies early should be known by then */
    double before = weft_seconds();
    while (!weft_sync_load(&watch.is_ending)) {
        int n = watch.ends->files(watch.files + 1, room - 1) + 1;
        watch.files[0] = (struct pollfd){watch.wake, POLLIN, 0};
        poll(watch.files, (nfds_t)n, wait_ms);
        wait_ms = (int)(1000 * TURN_S);
        calm();
        const double now = weft_seconds();
        if (now - before > HELD_UP_S) { /* a machine asleep, or far too busy */
            weft_look_forgive(now - before);
            watch.ends->forgive(now - before);
            for (int i = 0; i < watch.n_holds; i++)
                watch.holds[i].since += now - before;
        }
        before = now;
        weft_recorders_alive(weft_clock_ns());
        weft_look_around(now);
        watch.ends->turn(now);
        if (watch.ends->told()->status != 0) end_job(watch.ends->told(), true);
        judge(now);
        if (is_time_to_obey(now)) obey();
    }
    watch.ends->leave();
    return nothing;
}

/* From a signal handler, as what follows. */
static void say_last_word(int signal)
{
    if (watch.ends) watch.ends->last_word(signal);
}

static void hear_order(void)
{
    weft_sync_store(&watch.is_told_to_end, 1);
    (void)!write(watch.wake, &(uint64_t){1}, sizeof(uint64_t));
}

/* exit() without weft_world_close: the others must not think that it was killed. */
static void leave_at_exit(void)
{
    weft_watch_end();
}

/* A forked process has no thread that watches, and is no rank. */
static void forget_in_child(void)
{
    watch.ends = NULL;
    weft_last_words_end();
    weft_recorders_forget();
}

static bool start_thread(void)
{
    watch.wake = eventfd(0, EFD_CLOEXEC);
    watch.files = calloc((size_t)watch.n_processes + 128, sizeof *watch.files);
    if (watch.wake < 0 || !watch.files) return false;
    return weft_thread_start(&watch.thread, run, NULL) == 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void weft_watch_invite(weft_hub_address *address)
{
    watch.listener = weft_hub_listen(address);
}

static bool open_end(int process, const weft_hub_address *hub)
{
    watch.ends = hub == NULL ? &weft_alone : process == 0 ? &weft_hub : &weft_spoke;
    if (hub == NULL) return true;
    if (process > 0) return weft_spoke_open(process, hub);
    return watch.listener >= 0 && weft_hub_open(watch.n_processes, watch.listener, hub);
}

void weft_watch_begin(int process, int n_processes, const weft_hub_address *hub)
{
    static bool is_registered;
    if (watch.ends) return;
    watch.n_processes = n_processes;
    weft_sync_store(&watch.is_ending, 0);
    weft_look_hurry(false);
    for (int i = 0; i < weft_n_recorders(); i++) /* of a world that was open before */
        weft_sync_store(&weft_recorder_at(i)->head.has_left, 0);
    watch.next_word = watch.held = 0;
    if (!open_end(process, hub) || !start_thread()) {
        watch.ends = NULL;
        fprintf(stderr, "weft: ranks are not watched, since no thread or socket was to be had for "
                        "it; a hang will not be noticed\n");
        return;
    }
    weft_last_words_begin(say_last_word, n_processes > 1 ? hear_order : NULL);
    if (!is_registered) {
        atexit(leave_at_exit);
        pthread_atfork(NULL, NULL, forget_in_child);
    }
    is_registered = true;
}

void weft_watch_end(void)
{
    if (!watch.ends) return;
    for (int i = 0; i < weft_n_recorders(); i++)
        weft_sync_store(&weft_recorder_at(i)->head.has_left, 1);
    weft_sync_store(&watch.is_ending, 1);
    (void)!write(watch.wake, &(uint64_t){1}, sizeof(uint64_t));
    weft_thread_join(watch.thread);
    close(watch.wake);
    free(watch.files);
    free(watch.holds);
    watch.files = NULL;
    watch.holds = NULL;
    watch.n_holds = 0;
    weft_last_words_end();
    watch.ends = NULL;
}

/* ---- public ---------------------------------------------------------------------------------- */

void weft_watch_patience(double seconds)
{
    if (isnan(seconds)) return;
    const double ms = 1000 * fmin(fmax(seconds, 0), 1e6);
    weft_sync_store(&watch.patience_ms, ms > 0 && ms < 3000 ? 3000 : (int)ms);
}

void weft_watch_device_patience(double seconds)
{
    if (isnan(seconds)) return;
    const double ms = 1000 * fmin(fmax(seconds, 0), 1e6);
    weft_look_device_patience(ms > 0 && ms < 3000 ? 3000 : (int)ms);
}

void weft_watch_saving(bool is_saving)
{
    (void)weft_sync_add(&watch.n_saving, is_saving ? 1 : -1);
}

void weft_watch_hurry(void)
{
    weft_look_hurry(true);
}

/* Any thread may say so, and each text is written by one at a time. */
void weft_watch_busy(const char *what)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    _Alignas(8) char text[WEFT_BUSY_BYTES] = "";
    snprintf(text, sizeof text, "%s", what ? what : "");
    weft_lock_take(&writing);
    for (int i = 0; i < weft_n_recorders(); i++) {
        weft_recorder_head *head = &weft_recorder_at(i)->head;
        weft_guarded_write(&head->busy_version, head->busy, text, sizeof text);
    }
    weft_lock_give(&writing);
}

void weft_watch_saved(int64_t step)
{
    for (int i = 0; i < weft_n_recorders(); i++)
        weft_sync_store(&weft_recorder_at(i)->head.saved, step);
}

void weft_watch_work(int64_t last, int64_t items, const char *unit)
{
    for (int i = 0; i < weft_n_recorders(); i++) {
        weft_recorder_head *head = &weft_recorder_at(i)->head;
        snprintf(head->unit, sizeof head->unit, "%s", unit ? unit : "");
        weft_sync_store_relaxed(&head->items, items > 0 ? items : 0);
        weft_sync_store_release(&head->last_run, last > 0 ? last : 0);
    }
}

weft_status weft_watch_record(const char *folder, weft_error *error)
{
    struct stat facts;
    WEFT_GIVEN(folder, error);
    if (stat(folder, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return weft_fail(error, WEFT_IO,
                         "cannot keep records of calls in %.300s: %s; make the "
                         "folder first",
                         folder, errno == ENOENT ? "it is not there" : "it is not a folder");
    WEFT_TRY(weft_recorders_keep(folder, error));
    snprintf(watch.folder, sizeof watch.folder, "%s", folder);
    return WEFT_OK;
}
