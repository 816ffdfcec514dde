/* sync: how threads wait for each other, on what the system has: futexes, pthreads, a clock.
 *
 * With WEFT_SCHEDULED the system is a scheduler of tests (tests/sync/schedule.h), and all else here is the same.
 */
#include "sync.h"

#include "system.h"

/* ---- waits ------------------------------------------------------------------------------------ */

void weft_sync_relax(void)
{
    weft_system_relax();
}

void weft_sync_yield(void)
{
    weft_system_yield();
}

int64_t weft_sync_now(void)
{
    return weft_system_now();
}

void weft_waiter_show(weft_waiter *wait)
{
    weft_wait_sign *sign = wait->sign;
    wait->is_shown = sign != NULL;
    if (sign == NULL) return;
    weft_sync_store_relaxed(&sign->whom, wait->whom);
    weft_sync_add_relaxed(&sign->number, 1);
    weft_sync_store_release(&sign->what, wait->what);
}

bool weft_waiter_pause(weft_waiter *wait)
{
    const weft_patience p = weft_system_patience(wait->patience);
    weft_system_waits(wait->what, wait->whom);
    if (wait->n_looks == p.spins && !wait->is_shown) weft_waiter_show(wait);
    if (wait->n_looks < p.spins)
        weft_system_relax();
    else if (wait->n_looks < p.spins + p.yields)
        weft_system_yield();
    else
        return false;
    wait->n_looks++;
    return true;
}

void weft_waiter_nap(weft_waiter *wait, int64_t ns)
{
    weft_system_waits(wait->what, wait->whom);
    weft_system_nap(ns);
}

void weft_waiter_end(weft_waiter *wait)
{
    if (wait->is_shown) weft_sync_store_release(&wait->sign->what, NULL);
    wait->is_shown = false;
}

/* A stint is shorter than the time between two ticks of a common kernel (250 a second), at which it takes cores away. A core is
 * given up by a nap, however short, and not by a yield: beside a busy process, on Linux 6.18, a lane that yielded had a sixth of the
 * core, and one that naps has a third. */
enum { STINT_NS = 2500000, SHARED_NS = 100000000, GIVEN_NS = 50000 };

void weft_stint_pass(weft_stint *stint, bool gives)
{
    int64_t now = weft_system_now();
    if (now - stint->began < STINT_NS) return;
    int64_t n = weft_system_preempted();
    bool is_shared = n != stint->n_preempted; /* a stint has just begun, then */
    if (gives && !is_shared && now < stint->shared_until) {
        weft_system_nap(GIVEN_NS);
        now = weft_system_now();
        const int64_t before = n;
        n = weft_system_preempted();
        is_shared = n != before;
    }
    if (is_shared) stint->shared_until = now + SHARED_NS;
    stint->n_preempted = n;
    stint->began = now;
}

int weft_sync_core(void)
{
    return weft_system_core();
}

void weft_sync_leave(int core)
{
    weft_system_leave(core);
}

void weft_word_sleep(weft_word *word, uint32_t old, weft_reach reach, int64_t timeout_ns,
                     const weft_waiter *wait)
{
    weft_sync_add(&word->n_asleep, 1);
    if (weft_sync_load(&word->value) == old) {
        weft_system_waits(wait->what, wait->whom);
        weft_system_sleep(&word->value, old, reach == WEFT_OF_PROCESSES, timeout_ns);
    }
    weft_sync_sub(&word->n_asleep, 1);
}

void weft_word_wake(weft_word *word, weft_reach reach)
{
    if (weft_sync_load(&word->n_asleep) > 0)
        weft_system_wake(&word->value, reach == WEFT_OF_PROCESSES);
}

/* ---- locks and threads ------------------------------------------------------------------------ */

void weft_lock_take(pthread_mutex_t *lock)
{
    weft_system_lock(lock);
}

void weft_lock_give(pthread_mutex_t *lock)
{
    weft_system_unlock(lock);
}

void weft_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const char *what)
{
    weft_system_waits(what, WEFT_ANY);
    weft_system_condition_wait(condition, lock);
}

void weft_condition_tell(pthread_cond_t *condition)
{
    weft_system_condition_tell(condition);
}

int weft_thread_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    return weft_system_start(thread, main, argument);
}

void weft_thread_join(pthread_t thread)
{
    weft_system_waits("a thread to end", WEFT_ANY);
    weft_system_join(thread);
}

/* ---- teams in sight --------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    weft_team_view *first;
} teams = {.lock = PTHREAD_MUTEX_INITIALIZER};

void weft_team_show(weft_team_view *view)
{
    weft_lock_take(&teams.lock);
    view->next = teams.first;
    teams.first = view;
    weft_lock_give(&teams.lock);
}

void weft_team_hide(weft_team_view *view)
{
    weft_lock_take(&teams.lock);
    weft_team_view **at = &teams.first;
    while (*at != NULL && *at != view)
        at = &(*at)->next;
    if (*at == view) *at = view->next;
    weft_lock_give(&teams.lock);
}

void weft_teams_look(void (*look)(const weft_team_view *team, void *argument), void *argument)
{
    weft_lock_take(&teams.lock);
    for (const weft_team_view *team = teams.first; team != NULL; team = team->next)
        look(team, argument);
    weft_lock_give(&teams.lock);
}

uint64_t weft_this_thread(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

/* ---- what is read while it is written --------------------------------------------------------- */

void weft_guarded_open(_Atomic uint32_t *version)
{
    weft_sync_store_relaxed(version, weft_sync_load_relaxed(version) + 1);
}

void weft_guarded_shut(_Atomic uint32_t *version)
{
    weft_sync_store_release(version, weft_sync_load_relaxed(version) + 1);
}

void weft_guarded_put(void *to, const void *from, size_t bytes)
{
    _Atomic uint64_t *words = to;
    const uint64_t *values = from;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        weft_sync_store_release(&words[i], values[i]);
}

void weft_guarded_get(void *to, const void *from, size_t bytes)
{
    const _Atomic uint64_t *words = from;
    uint64_t *values = to;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = weft_sync_load_acquire(&words[i]);
}

void weft_guarded_write(_Atomic uint32_t *version, void *to, const void *from, size_t bytes)
{
    weft_guarded_open(version);
    weft_guarded_put(to, from, bytes);
    weft_guarded_shut(version);
}

bool weft_guarded_read(const _Atomic uint32_t *version, void *to, const void *from, size_t bytes)
{
    const uint32_t before = weft_sync_load_acquire(version);
    if (before % 2 != 0) return false;
    weft_guarded_get(to, from, bytes);
    return weft_sync_load_relaxed(version) == before;
}
