/* team: threads that are started once, sleep between runs, and wake in a few microseconds.
 *
 * Each member has a word of its own, on its own cache line, that the caller advances to start it;
 * members that a run does not need stay asleep. A waiter looks for a while, then yields, then
 * sleeps in the kernel (futex). Whoever changes a word asks the kernel to wake somebody only when
 * there is a sleeper: both sides use sequentially consistent operations on `value` and `sleepers`,
 * so one of them sees the other.
 */
#include "mesh_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64 };

typedef struct word {
    _Alignas(LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} word;

typedef struct member {
    word go; /* advanced by one for each run it takes part in */
    weft_team *team;
    pthread_t thread;
    int index;
} member;

struct weft_team {
    word left; /* members still at work */
    weft_team_body body;
    void *argument;
    weft_patience patience;
    int n_members; /* started so far: destroy stops these */
    member members[];
};

weft_patience weft_patience_for(bool has_core_each)
{
    return has_core_each ? (weft_patience){.spins = 2000, .yields = 16}
                         : (weft_patience){.spins = 50, .yields = 4};
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns when the value is no longer `old`, with the new one. */
static uint32_t wait_change(word *w, uint32_t old, weft_patience patience)
{
    uint32_t now;
    for (int i = 0; i < patience.spins; i++) {
        if ((now = atomic_load(&w->value)) != old) return now;
        relax();
    }
    for (int i = 0; i < patience.yields; i++) {
        if ((now = atomic_load(&w->value)) != old) return now;
        sched_yield();
    }
    atomic_fetch_add(&w->sleepers, 1);
    while ((now = atomic_load(&w->value)) == old)
        syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub(&w->sleepers, 1);
    return now;
}

static void wake_sleepers(word *w)
{
    if (atomic_load(&w->sleepers) > 0)
        syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void *member_main(void *argument)
{
    member *self = argument;
    weft_team *team = self->team;
    for (uint32_t seen = 0;;) {
        seen = wait_change(&self->go, seen, team->patience);
        if (team->body == NULL) return NULL; /* the team is being destroyed */
        team->body(team->argument, self->index);
        if (atomic_fetch_sub(&team->left.value, 1) == 1) wake_sleepers(&team->left);
    }
}

/* Signals are for the process's first thread: a member must not run a handler in a kernel's middle.
 */
static int start_member(member *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&m->thread, NULL, member_main, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

weft_status weft_team_create(int n_members, weft_patience patience, weft_team **team,
                             weft_error *error)
{
    size_t bytes = sizeof(weft_team) + (size_t)n_members * sizeof(member); /* a multiple of LINE */
    weft_team *t = *team = aligned_alloc(LINE, bytes);
    if (t == NULL) return weft_fail_memory(error, bytes);
    memset(t, 0, bytes);
    t->patience = patience;
    for (t->n_members = 1; t->n_members < n_members; t->n_members++) {
        member *m = &t->members[t->n_members];
        m->team = t;
        m->index = t->n_members;
        int failure = start_member(m);
        if (failure == 0) continue;
        int n_started = t->n_members;
        weft_team_destroy(team);
        return weft_fail(
            error, WEFT_MEMORY,
            "started %d of %d threads, then the system refused (%s); use a smaller mesh, "
            "or raise the limit on threads",
            n_started, n_members, strerror(failure));
    }
    return WEFT_OK;
}

static void start_run(weft_team *team, int n_called)
{
    atomic_store(&team->left.value, (uint32_t)(n_called - 1));
    for (int i = 1; i < n_called; i++) {
        atomic_fetch_add(&team->members[i].go.value, 1);
        wake_sleepers(&team->members[i].go);
    }
}

void weft_team_run(weft_team *team, int n_called, weft_team_body body, void *argument)
{
    if (n_called > 1) {
        team->body = body;
        team->argument = argument;
        start_run(team, n_called);
    }
    body(argument, 0);
    for (uint32_t left = atomic_load(&team->left.value); left != 0;)
        left = wait_change(&team->left, left, team->patience);
}

void weft_team_destroy(weft_team **team)
{
    weft_team *t = *team;
    if (t == NULL) return;
    t->body = NULL;
    start_run(t, t->n_members);
    for (int i = 1; i < t->n_members; i++)
        pthread_join(t->members[i].thread, NULL);
    free(t);
    *team = NULL;
}
