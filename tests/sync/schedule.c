/* schedule: threads as fibers, one choice at every access, all choices within a bound or random ones. */
#include "schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "clocks.h"
#include "system.h"

enum {
    STACK_BYTES = 1 << 18,
    MOST_ACCESSES = 40000, /* of one run: more is one that does not end */
    MOST_OVERSLEPT = 100,
    MOST_LOCKS = 64,
    MOST_CHOICES = MOST_ACCESSES,
    SHOWN_TURNS = 60,
    NS_A_LOOK = 900000 /* of the clock: so that waits come to be long */
};

typedef enum state { READY, SPINNING, SLEEPING, LOCKING, ON_CONDITION, JOINING, DONE } state;

typedef struct thread {
    ucontext_t context;
    char *stack;
    void *(*main)(void *);
    void *argument;
    state state;
    const volatile void *on; /* a word, a lock, a condition */
    pthread_mutex_t *lock;   /* of the condition */
    bool has_timeout;
    int joined;
    const char *what; /* of the wait, and for whom */
    int whom;
    uint64_t own_writes, seen; /* seen: writes of others, when it looked last */
    bool has_looked;           /* since its last pause */
} thread;

typedef struct choice {
    int pick, n;
} choice;

static struct {
    const schedule_options *options;
    schedule_report *report;
    thread threads[SCHEDULE_THREADS];
    int n_threads, now;
    bool is_running;
    ucontext_t outside;
    void (*body)(void *);
    uint64_t n_writes, random;
    int64_t n_accesses, clock;
    int n_preempted, n_overslept, n_choices, depth;
    choice choices[MOST_CHOICES];
    struct {
        pthread_mutex_t *lock;
        int owner; /* -1: free */
    } locks[MOST_LOCKS];
    int n_locks;
    struct {
        int thread, n;
    } turns[SHOWN_TURNS];
    int n_turns;
} s;

/* ---- failures --------------------------------------------------------------------------------- */

static void say(const char *format, ...)
{
    va_list arguments;
    const size_t used = strlen(s.report->failure);
    va_start(arguments, format);
    vsnprintf(s.report->failure + used, sizeof s.report->failure - used, format, arguments);
    va_end(arguments);
}

static void say_waits(void)
{
    static const char *const how[] = {
        "goes on",   "looks again and again for", "sleeps until", "waits for the lock of",
        "waits for", "waits for the end of",      "has ended"};
    for (int i = 0; i < s.n_threads; i++) {
        const thread *t = &s.threads[i];
        say("\n  thread %d %s", i, how[t->state]);
        if (t->state == READY || t->state == DONE) continue;
        if (t->what != NULL) say(" %s", t->what);
        if (t->whom != WEFT_ANY) say(" (%d)", t->whom);
    }
}

static void say_turns(void)
{
    say("\n  the order, as thread x accesses:%s", s.n_turns > SHOWN_TURNS ? " ..." : "");
    const int first = s.n_turns > SHOWN_TURNS ? s.n_turns - SHOWN_TURNS : 0;
    for (int i = first; i < s.n_turns; i++)
        say(" %dx%d", s.turns[i % SHOWN_TURNS].thread, s.turns[i % SHOWN_TURNS].n);
}

static bool has_failed(void)
{
    return s.report->failure[0] != '\0';
}

void schedule_fail(const char *format, ...)
{
    va_list arguments;
    if (has_failed()) return;
    va_start(arguments, format);
    vsnprintf(s.report->failure, sizeof s.report->failure, format, arguments);
    va_end(arguments);
    say_turns();
}

/* This run is over: its threads are left where they are. */
static _Noreturn void give_up(const char *why)
{
    if (!has_failed()) {
        say("%s", why);
        say_waits();
        say_turns();
    }
    s.is_running = false;
    setcontext(&s.outside);
    abort();
}

/* ---- who can go on ------------------------------------------------------------------------------ */

static uint64_t writes_of_others(const thread *t)
{
    return s.n_writes - t->own_writes;
}

static int *owner_of(pthread_mutex_t *lock)
{
    int i = 0;
    while (i < s.n_locks && s.locks[i].lock != lock)
        i++;
    if (i == s.n_locks) {
        s.n_locks++;
        s.locks[i].lock = lock;
        s.locks[i].owner = -1;
    }
    return &s.locks[i].owner;
}

static bool can_go_on(const thread *t)
{
    switch (t->state) {
    case READY:
        return true;
    case SPINNING:
        return writes_of_others(t) > t->seen;
    case LOCKING:
        return *owner_of((pthread_mutex_t *)(uintptr_t)t->on) < 0;
    case JOINING:
        return s.threads[t->joined].state == DONE;
    default:
        return false;
    }
}

/* Those who can go on, the one who does first: [n] */
static int find_options(int *options)
{
    int n = 0;
    if (can_go_on(&s.threads[s.now])) options[n++] = s.now;
    for (int i = 0; i < s.n_threads; i++)
        if (i != s.now && can_go_on(&s.threads[i])) options[n++] = i;
    return n;
}

/* Nobody can, but time goes by: sleeps with a limit end. */
static bool oversleep(void)
{
    bool is_any = false;
    for (int i = 0; i < s.n_threads; i++)
        if (s.threads[i].state == SLEEPING && s.threads[i].has_timeout)
            s.threads[i].state = READY, is_any = true;
    s.n_overslept += is_any;
    s.report->n_overslept += is_any;
    if (is_any && !s.options->may_oversleep)
        give_up("a sleeper is not woken, and goes on by its time limit alone");
    return is_any && s.n_overslept < MOST_OVERSLEPT;
}

static uint64_t draw(void)
{
    s.random ^= s.random << 13, s.random ^= s.random >> 7, s.random ^= s.random << 17;
    return s.random;
}

static int choose(int n)
{
    if (n == 1) return 0;
    if (s.options->seed != 0) return (int)(draw() % (uint64_t)n);
    if (s.depth == s.n_choices) s.choices[s.n_choices++] = (choice){0, n};
    return s.choices[s.depth++].pick;
}

static void go_on_with(int next)
{
    const int before = s.now;
    s.now = next;
    s.threads[next].state = s.threads[next].state == DONE ? DONE : READY;
    if (before == next) return;
    s.turns[s.n_turns++ % SHOWN_TURNS].thread = next;
    s.turns[(s.n_turns - 1) % SHOWN_TURNS].n = 0;
    swapcontext(&s.threads[before].context, &s.threads[next].context);
}

/* The thread that was going on cannot any more. */
static void let_another(void)
{
    int options[SCHEDULE_THREADS], n;
    while ((n = find_options(options)) == 0)
        if (!oversleep()) give_up("nobody can go on");
    go_on_with(options[choose(n)]);
}

/* It could, but may be put aside. */
static void may_be_put_aside(void)
{
    int options[SCHEDULE_THREADS];
    if (s.options->seed == 0 && s.n_preempted >= s.options->n_preemptions) return;
    if (s.options->seed != 0 && draw() % 4 != 0) return;
    const int n = find_options(options), pick = choose(n);
    if (pick == 0) return;
    s.n_preempted++;
    go_on_with(options[pick]);
}

static void block(state how, const volatile void *on)
{
    thread *t = &s.threads[s.now];
    t->state = how;
    t->on = on;
    let_another();
}

/* ---- what the library calls --------------------------------------------------------------------- */

void weft_schedule_access(const volatile void *where, weft_access kind)
{
    if (!s.is_running) return;
    s.threads[s.now].has_looked = true;
    const bool is_data = kind == WEFT_ACCESS_READ || kind == WEFT_ACCESS_WRITE;
    if (!is_data) {
        if (s.n_accesses++ > MOST_ACCESSES) give_up("it does not come to an end");
        may_be_put_aside();
        s.turns[(s.n_turns - 1) % SHOWN_TURNS].n++;
    }
    if (!is_data && kind != WEFT_ACCESS_LOAD && kind != WEFT_ACCESS_LOAD_RELAXED)
        s.n_writes++, s.threads[s.now].own_writes++;
    clocks_access(s.now, where, kind);
}

int schedule_thread(void)
{
    return s.now;
}

/* A thread that looks in vain is put aside anyway; so that each stage of a wait is tried, one look is patience
 * enough. */
weft_patience weft_system_patience(weft_patience wanted)
{
    return (weft_patience){wanted.spins > 0, wanted.yields > 0};
}

void weft_system_waits(const char *what, int whom)
{
    s.threads[s.now].what = what;
    s.threads[s.now].whom = whom;
}

/* It has looked, and nobody has written since it began to look: looking again is in vain. */
static void pause_thread(void)
{
    if (!s.is_running) return;
    thread *t = &s.threads[s.now];
    if (t->has_looked && writes_of_others(t) <= t->seen) block(SPINNING, NULL);
    t->seen = writes_of_others(t);
    t->has_looked = false;
}

void weft_system_relax(void)
{
    pause_thread();
}

void weft_system_yield(void)
{
    pause_thread();
}

void weft_system_nap(int64_t ns)
{
    (void)ns;
    pause_thread();
}

int64_t weft_system_now(void)
{
    return s.clock += NS_A_LOOK;
}

/* Mostly not since it was asked last, so that the next stint ends with a nap. */
int64_t weft_system_preempted(void)
{
    enum { LOOKS = 16 };
    const bool has_strangers = s.is_running && s.options->has_strangers;
    return has_strangers ? 1 + s.clock / (LOOKS * NS_A_LOOK) : 0;
}

int weft_system_core(void)
{
    return s.is_running && s.options->has_strangers ? 0 : -1;
}

void weft_system_leave(int core)
{
    (void)core; /* where a thread is changes nothing here */
}

void weft_system_sleep(const _Atomic uint32_t *word, uint32_t old, bool is_shared,
                       int64_t timeout_ns)
{
    (void)is_shared;
    weft_schedule_access(word, WEFT_ACCESS_LOAD);
    if (atomic_load(word) != old) return;
    s.threads[s.now].has_timeout = timeout_ns > 0;
    block(SLEEPING, word);
}

void weft_system_wake(const _Atomic uint32_t *word, bool is_shared)
{
    (void)is_shared;
    weft_schedule_access(word, WEFT_ACCESS_LOAD_RELAXED);
    for (int i = 0; i < s.n_threads; i++)
        if (s.threads[i].state == SLEEPING && s.threads[i].on == word) s.threads[i].state = READY;
}

void weft_system_lock(pthread_mutex_t *lock)
{
    if (!s.is_running) return;
    weft_schedule_access(lock, WEFT_ACCESS_LOAD_RELAXED);
    while (*owner_of(lock) >= 0)
        block(LOCKING, lock);
    *owner_of(lock) = s.now;
    clocks_access(s.now, lock, WEFT_ACCESS_LOAD);
}

void weft_system_unlock(pthread_mutex_t *lock)
{
    if (!s.is_running) return;
    if (*owner_of(lock) != s.now) schedule_fail("a lock is given up that its thread has not");
    clocks_access(s.now, lock, WEFT_ACCESS_CHANGE);
    *owner_of(lock) = -1;
    s.n_writes++, s.threads[s.now].own_writes++;
}

void weft_system_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    s.threads[s.now].lock = lock;
    weft_system_unlock(lock);
    block(ON_CONDITION, condition);
    while (*owner_of(lock) >= 0)
        block(LOCKING, lock);
    *owner_of(lock) = s.now;
    clocks_access(s.now, lock, WEFT_ACCESS_LOAD);
}

void weft_system_condition_tell(pthread_cond_t *condition)
{
    for (int i = 0; s.is_running && i < s.n_threads; i++) {
        thread *t = &s.threads[i];
        if (t->state == ON_CONDITION && t->on == condition) t->state = LOCKING, t->on = t->lock;
    }
}

/* ---- threads ------------------------------------------------------------------------------------ */

static void thread_main(void)
{
    thread *t = &s.threads[s.now];
    (void)t->main(t->argument);
    t->state = DONE;
    clocks_access(s.now, t, WEFT_ACCESS_STORE);
    bool is_over = true;
    for (int i = 0; i < s.n_threads; i++)
        is_over = is_over && s.threads[i].state == DONE;
    s.is_running = !is_over;
    if (is_over) setcontext(&s.outside);
    let_another();
}

static void add_thread(void *(*main)(void *), void *argument)
{
    thread *t = &s.threads[s.n_threads++];
    char *stack = t->stack != NULL ? t->stack : malloc(STACK_BYTES);
    *t = (thread){.stack = stack, .main = main, .argument = argument, .whom = WEFT_ANY};
    if (stack == NULL) abort();
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = stack;
    t->context.uc_stack.ss_size = STACK_BYTES;
    t->context.uc_link = NULL;
    makecontext(&t->context, thread_main, 0);
}

int weft_system_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    if (s.n_threads == SCHEDULE_THREADS) give_up("more threads than the scheduler has");
    *thread = (pthread_t)s.n_threads;
    add_thread(main, argument);
    clocks_fork(s.now, s.n_threads - 1);
    return 0;
}

void weft_system_join(pthread_t thread)
{
    s.threads[s.now].joined = (int)thread;
    if (s.threads[(int)thread].state != DONE) block(JOINING, NULL);
    clocks_access(s.now, &s.threads[(int)thread], WEFT_ACCESS_LOAD);
}

/* ---- exploring ---------------------------------------------------------------------------------- */

static void *body_main(void *argument)
{
    s.body(argument);
    return NULL;
}

static void run_once(void *argument)
{
    s.n_threads = s.n_turns = s.n_preempted = s.n_overslept = s.depth = s.n_locks = 0;
    s.n_writes = 0;
    s.n_accesses = 0;
    s.now = 0;
    add_thread(body_main, argument);
    clocks_begin();
    s.turns[s.n_turns++].thread = 0;
    s.turns[0].n = 0;
    s.is_running = true;
    volatile bool has_begun = false;
    getcontext(&s.outside);
    if (has_begun) return;
    has_begun = true;
    setcontext(&s.threads[0].context);
}

/* The last choice that has another way; false: there is none. */
static bool go_back(void)
{
    while (s.n_choices > 0 && s.choices[s.n_choices - 1].pick + 1 == s.choices[s.n_choices - 1].n)
        s.n_choices--;
    if (s.n_choices == 0) return false;
    s.choices[s.n_choices - 1].pick++;
    return true;
}

bool schedule_explore(void (*body)(void *argument), void *argument, const schedule_options *options,
                      schedule_report *report)
{
    const int64_t most = options->most_runs > 0 ? options->most_runs
                         : options->seed != 0   ? 10000
                                                : 1000000;
    s.body = body;
    s.options = options;
    s.report = report;
    s.n_choices = 0;
    s.random = options->seed;
    *report = (schedule_report){0};
    for (bool is_more = true; is_more && !has_failed() && report->n_runs < most;) {
        report->n_runs++;
        run_once(argument);
        report->n_accesses += s.n_accesses;
        if (s.n_accesses > report->longest) report->longest = s.n_accesses;
        is_more = options->seed != 0 || go_back();
        report->is_complete = !is_more;
    }
    return !has_failed();
}
