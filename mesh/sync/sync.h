/* sync.h (private): how threads, and processes that share memory, wait for each other: atomics, waits, locks.
 *
 * Each access names its memory order, so nothing rests on what one processor promises. Each wait names what it waits
 * for and whom, so a circle of waits can be told to people. And in a test build (WEFT_SCHEDULED) each access is a
 * step at which a scheduler decides who goes on (tests/sync/schedule.h): so the orders that a machine shows once in a
 * year are tried one after the other. Tables that are written once and then read may have a lock of their own
 * (guards/waits says which).
 *
 *     weft_waiter wait = {.what = "the round to end", .whom = WEFT_ANY, .patience = {2000, 4}};
 *     while (weft_sync_load(&meeting->round.value) == round)
 *         if (!weft_waiter_pause(&wait)) weft_word_sleep(&meeting->round, round, WEFT_OF_PROCESSES, 0, &wait);
 *     weft_waiter_end(&wait);
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- atomics ---------------------------------------------------------------------------------- */

/* Without a word behind the verb: sequentially consistent, which is what two threads need that each write one word and
 * then read the other's (who sleeps and who wakes him). _acquire and _release: one hands over, the other takes.
 * _relaxed: a number that nothing else is concluded from. */
#define weft_sync_load(p) (WEFT_ACCESS(p, WEFT_ACCESS_LOAD), atomic_load(p))
#define weft_sync_load_acquire(p)                                                                  \
    (WEFT_ACCESS(p, WEFT_ACCESS_LOAD), atomic_load_explicit(p, memory_order_acquire))
#define weft_sync_load_relaxed(p)                                                                  \
    (WEFT_ACCESS(p, WEFT_ACCESS_LOAD_RELAXED), atomic_load_explicit(p, memory_order_relaxed))
#define weft_sync_store(p, value) (WEFT_ACCESS(p, WEFT_ACCESS_STORE), atomic_store(p, value))
#define weft_sync_store_release(p, value)                                                          \
    (WEFT_ACCESS(p, WEFT_ACCESS_STORE), atomic_store_explicit(p, value, memory_order_release))
#define weft_sync_store_relaxed(p, value)                                                          \
    (WEFT_ACCESS(p, WEFT_ACCESS_STORE_RELAXED),                                                    \
     atomic_store_explicit(p, value, memory_order_relaxed))
/* These give what was there before. */
#define weft_sync_add(p, value) (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE), atomic_fetch_add(p, value))
#define weft_sync_sub(p, value) (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE), atomic_fetch_sub(p, value))
#define weft_sync_or(p, value)  (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE), atomic_fetch_or(p, value))
#define weft_sync_add_relaxed(p, value)                                                            \
    (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE_RELAXED),                                                   \
     atomic_fetch_add_explicit(p, value, memory_order_relaxed))
#define weft_sync_sub_relaxed(p, value)                                                            \
    (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE_RELAXED),                                                   \
     atomic_fetch_sub_explicit(p, value, memory_order_relaxed))
/* Whether *p was *expected, and is `value` now; else *expected is what it was. */
#define weft_sync_replace(p, expected, value)                                                      \
    (WEFT_ACCESS(p, WEFT_ACCESS_CHANGE), atomic_compare_exchange_strong(p, expected, value))

/* This thread is about to read or write memory that is not atomic and that threads hand to each other. Says nothing
 * but to the scheduler, which finds who reads what is not finished. */
#define weft_sync_reads(p)  WEFT_ACCESS(p, WEFT_ACCESS_READ)
#define weft_sync_writes(p) WEFT_ACCESS(p, WEFT_ACCESS_WRITE)

typedef enum weft_access {
    WEFT_ACCESS_LOAD, /* acquires */
    WEFT_ACCESS_LOAD_RELAXED,
    WEFT_ACCESS_STORE, /* releases */
    WEFT_ACCESS_STORE_RELAXED,
    WEFT_ACCESS_CHANGE, /* reads and writes, acquires and releases */
    WEFT_ACCESS_CHANGE_RELAXED,
    WEFT_ACCESS_READ, /* of what is not atomic */
    WEFT_ACCESS_WRITE
} weft_access;

/* ---- waits ------------------------------------------------------------------------------------ */

/* A thread that waits spins first: it is cheap only while every thread has a core of its own. */
typedef struct weft_patience {
    int spins;  /* looks without leaving the core      */
    int yields; /* then, looks that let others run; then sleep */
} weft_patience;

enum { WEFT_ANY = -1 }; /* whom: all others of the group, or any of them */

/* What one thread waits for, for others to read. Zero at first; on a cache line that only this thread writes. */
typedef struct weft_wait_sign {
    _Atomic(const char *) what; /* static text; NULL: it waits for nothing, or not for long */
    _Atomic int whom;           /* a number of the group's: lane or rank; WEFT_ANY */
    _Atomic uint32_t number;    /* waits so far that were long */
} weft_wait_sign;

/* One wait, on the stack of who waits. */
typedef struct weft_waiter {
    const char *what;
    int whom;
    weft_patience patience;
    weft_wait_sign *sign; /* NULL: none */
    int n_looks;
    bool is_shown;
} weft_waiter;

/* weft_waiter_pause - between two looks: spins, then lets others run; false, and no pause was made: the patience is
 * over, and the caller sleeps (weft_word_sleep, weft_waiter_nap). weft_waiter_nap - for a moment, where nobody wakes.
 * weft_waiter_end - what was waited for is there. Any thread. */
bool weft_waiter_pause(weft_waiter *waiter);
/* Its sign says from now on that it waits, however short that has been. */
void weft_waiter_show(weft_waiter *waiter);
void weft_waiter_nap(weft_waiter *waiter, int64_t ns);
void weft_waiter_end(weft_waiter *waiter);

/* weft_sync_relax, weft_sync_yield - between two looks of a loop of the caller's own: for some cycles; until others
 * that want the core had it. weft_sync_now - ns, of a clock that only goes forwards. Any thread. */
void weft_sync_relax(void);
void weft_sync_yield(void);
int64_t weft_sync_now(void);
/* The same in seconds. */
static inline double weft_sync_seconds(void)
{
    return 1e-9 * (double)weft_sync_now();
}

/* How long a thread has had its core, and whether others want it. Zero at first; that thread's alone. */
typedef struct weft_stint {
    int64_t began, shared_until; /* ns */
    int64_t n_preempted;
} weft_stint;

/* weft_stint_pass - between two pieces of work, while nobody waits for this thread: one that was preempted a moment ago gives its
 * core up if it `gives`, before it is taken from it in the middle of a piece for which others would wait. Costs a look at the
 * clock. */
void weft_stint_pass(weft_stint *stint, bool gives);
/* weft_sync_core - the core that this thread is on; -1: the system does not say. weft_sync_leave - it goes on on another one, if
 * it may; what it may be on afterwards is what it was before. */
int weft_sync_core(void);
void weft_sync_leave(int core);

/* A number that threads sleep on until it changes; zero at first. */
typedef struct weft_word {
    _Atomic uint32_t value, n_asleep;
} weft_word;
typedef enum weft_reach { WEFT_OF_THREADS, WEFT_OF_PROCESSES } weft_reach; /* who sleeps on it */

/* weft_word_sleep - unless the value is another than `old` already, until it is woken, or for timeout_ns (0: for
 * ever). It may wake early: look again. weft_word_wake - all that sleep, after the value was changed. Who sleeps says
 * so and then looks at the value; who wakes changes the value and then looks for sleepers: one of the two sees the
 * other. */
void weft_word_sleep(weft_word *word, uint32_t old, weft_reach reach, int64_t timeout_ns,
                     const weft_waiter *waiter);
void weft_word_wake(weft_word *word, weft_reach reach);

/* ---- locks and threads ------------------------------------------------------------------------ */

/* Pthreads' own, in sight of the scheduler. weft_condition_wait gives the lock up meanwhile, and may wake for
 * nothing. */
void weft_lock_take(pthread_mutex_t *lock);
void weft_lock_give(pthread_mutex_t *lock);
void weft_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const char *what);
void weft_condition_tell(pthread_cond_t *condition); /* all who wait */

/* weft_thread_start - as pthread_create, and the thread gets no signals: those are for the program's own threads, and a
 * handler must not run in the middle of a kernel. Returns 0 or an errno. weft_thread_join - until it has ended. */
int weft_thread_start(pthread_t *thread, void *(*main)(void *), void *argument);
void weft_thread_join(pthread_t thread);

/* ---- teams in sight --------------------------------------------------------------------------- */

/* Threads that work together, and the signs of their waits: the first is whoever uses the team, and says so (owner)
 * each time. In sight from weft_team_show to weft_team_hide. */
typedef struct weft_team_view {
    struct weft_team_view *next;
    const char *signs; /* [n] weft_wait_sign, `stride` bytes apart */
    size_t stride;
    int n;
    _Atomic uint64_t owner; /* weft_this_thread */
} weft_team_view;
void weft_team_show(weft_team_view *view);
void weft_team_hide(weft_team_view *view);
/* weft_teams_look - `look` at all that are in sight, none of which goes away meanwhile. From any thread. */
void weft_teams_look(void (*look)(const weft_team_view *team, void *argument), void *argument);
static inline const weft_wait_sign *weft_team_sign_at(const weft_team_view *team, int i)
{
    return (const weft_wait_sign *)(const void *)(team->signs + (size_t)i * team->stride);
}
/* The same number in a thread as long as it is there, and another in each. */
uint64_t weft_this_thread(void);

/* ---- what is read while it is written --------------------------------------------------------- */

/* weft_guarded_write, weft_guarded_read - memory that one thread writes at a time and that others read meanwhile
 * without keeping it up, under a version that is odd while it is written. `bytes` is a multiple of 8, all is aligned
 * to 8. _read: false: it was being written; then `to` is torn. Who writes in pieces: _open, _put for each, _shut.
 * Each word is released and acquired: who has seen a new one sees the odd version too. */
void weft_guarded_open(_Atomic uint32_t *version);
void weft_guarded_put(void *to, const void *from, size_t bytes);
void weft_guarded_shut(_Atomic uint32_t *version);
void weft_guarded_write(_Atomic uint32_t *version, void *to, const void *from, size_t bytes);
bool weft_guarded_read(const _Atomic uint32_t *version, void *to, const void *from, size_t bytes);
/* Words as weft_guarded_put left them, whole one by one, where something else tells what belongs together. */
void weft_guarded_get(void *to, const void *from, size_t bytes);

/* ---- steps of a test's scheduler -------------------------------------------------------------- */

#ifdef WEFT_SCHEDULED
void weft_schedule_access(const volatile void *where, weft_access kind);
#define WEFT_ACCESS(p, kind) weft_schedule_access((p), (kind))
#else
#define WEFT_ACCESS(p, kind) ((void)0)
#endif

#endif
