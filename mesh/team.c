/* team: threads that are started once, sleep between runs, and wake in a few microseconds.
 *
 * Each member has a word of its own, on its own cache line, that the caller advances to start it;
 * members that a run does not need stay asleep. A waiter looks for a while, then yields, then
 * sleeps in the kernel (weft_word_sleep).
 *
 * A member's part of a run may be begun by the member or, where parts do not wait for each other, by the caller
 * (weft_team_share). So a member whose core a stranger holds is waited for only if it is in the middle of its part. That is
 * seldom: members that share their cores give them up between two parts (weft_stint_pass).
 *
 * Nobody does the caller's part. So where a stranger is about, the caller is to have a core of its own. It gives none up. While a
 * stranger holds its core a member soon sleeps, and the system moves the caller to that member's core. The system wakes the
 * member there too, however, since it looks for an idle core and there is none; so the member leaves it (weft_sync_leave).
 * And nobody yields: that costs a share of the core, in which the stranger then is.
 */
#include "mesh_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

typedef struct member {
    _Alignas(LINE) weft_word go; /* advanced by one for each run it takes part in */
    _Atomic uint32_t begun;      /* the last of these that somebody has begun */
    weft_team *team;
    pthread_t thread;
    int index;
    weft_stint stint;
    _Alignas(LINE) weft_wait_sign sign;
} member;

struct weft_team {
    _Alignas(LINE) weft_word left; /* members still at work */
    weft_team_body body;
    void *argument;
    weft_patience patience;
    bool has_core_each; /* as far as anybody knew */
    /* ns: a stranger has wanted a core not long before that; 0: none has */
    _Atomic int64_t shared_until;
    _Atomic int core;    /* the caller's, as a stranger is about; -1: not known */
    int n_members;       /* started so far: destroy stops these */
    weft_team_view view; /* of all members' waits */
    member members[];
};

weft_patience weft_patience_for(bool has_core_each)
{
    return has_core_each ? (weft_patience){.spins = 2000, .yields = 16}
                         : (weft_patience){.spins = 50, .yields = 4};
}

static _Atomic bool lanes_are_crowded; /* a setting of the process, as the cores are */

void weft_lanes_crowd(bool are_crowded)
{
    weft_sync_store_relaxed(&lanes_are_crowded, are_crowded);
}

weft_patience weft_patience_of_lanes(int n_lanes)
{
    const bool is_crowded = weft_sync_load_relaxed(&lanes_are_crowded);
    return weft_patience_for(!is_crowded && n_lanes <= weft_machine_info()->n_cores);
}

/* Returns when the value is no longer `old`, with the new one. */
static uint32_t wait_change(weft_word *word, uint32_t old, weft_waiter wait)
{
    uint32_t now;
    while ((now = weft_sync_load(&word->value)) == old)
        if (!weft_waiter_pause(&wait)) weft_word_sleep(word, old, WEFT_OF_THREADS, 0, &wait);
    weft_waiter_end(&wait);
    return now;
}

/* ---- beside strangers ---------------------------------------------------------------------------- */

static bool has_stranger(weft_team *team)
{
    const int64_t until = weft_sync_load_relaxed(&team->shared_until);
    return until != 0 && weft_sync_now() < until;
}

static weft_patience patience_now(weft_team *team, weft_patience usual)
{
    if (has_stranger(team)) usual.yields = 0;
    return usual;
}

/* Between two parts. Who has no core of its own by right is beside its own kind, not beside strangers, and gives its core up. */
static void pass(weft_team *team, member *m, bool gives)
{
    const int64_t before = m->stint.shared_until;
    weft_stint_pass(&m->stint, gives || !team->has_core_each);
    if (m->stint.shared_until != before && team->has_core_each)
        weft_sync_store_relaxed(&team->shared_until, m->stint.shared_until);
}

static void show_core(weft_team *team)
{
    if (has_stranger(team)) weft_sync_store_relaxed(&team->core, weft_sync_core());
}

static void leave_to_caller(weft_team *team)
{
    if (!has_stranger(team)) return;
    const int core = weft_sync_core();
    if (core >= 0 && core == weft_sync_load_relaxed(&team->core)) weft_sync_leave(core);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

/* Who asks first has the member's part of this run: the member, or the caller in its place. */
static bool begin(member *m, uint32_t run)
{
    uint32_t before = run - 1;
    return weft_sync_replace(&m->begun, &before, run);
}

/* Between two runs is what their caller does, in Python say: a team that went to sleep at once would begin the next one late. */
static weft_patience to_begin(weft_patience patience)
{
    enum { TIMES = 5 };
    return (weft_patience){.spins = TIMES * patience.spins, .yields = patience.yields};
}

static void *member_main(void *argument)
{
    member *self = argument;
    weft_team *team = self->team;
    for (uint32_t seen = 0;;) {
        seen = wait_change(&self->go, seen,
                           (weft_waiter){"the team to begin", 0,
                                         patience_now(team, to_begin(team->patience)), &self->sign,
                                         0});
        leave_to_caller(team);
        if (!begin(self, seen)) continue;
        weft_sync_reads(&team->body);
        if (team->body == NULL) return NULL; /* the team is being destroyed */
        team->body(team->argument, self->index);
        if (weft_sync_sub(&team->left.value, 1) == 1) weft_word_wake(&team->left, WEFT_OF_THREADS);
        pass(team, self, true);
    }
}

weft_status weft_team_create(int n_members, weft_patience patience, weft_team **team,
                             weft_error *error)
{
    size_t bytes = sizeof(weft_team) + (size_t)n_members * sizeof(member); /* a multiple of LINE */
    weft_team *t = *team = aligned_alloc(LINE, bytes);
    if (t == NULL) return weft_fail_memory(error, bytes);
    memset(t, 0, bytes);
    t->patience = patience;
    t->has_core_each = patience.spins >= weft_patience_for(true).spins;
    weft_sync_store_relaxed(&t->core, -1);
    t->view = (weft_team_view){
        .signs = (const char *)&t->members[0].sign, .stride = sizeof(member), .n = n_members};
    weft_team_show(&t->view);
    for (t->n_members = 1; t->n_members < n_members; t->n_members++) {
        member *m = &t->members[t->n_members];
        m->team = t;
        m->index = t->n_members;
        const int failure = weft_thread_start(&m->thread, member_main, m);
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
    weft_sync_store(&team->left.value, (uint32_t)(n_called - 1));
    for (int i = 1; i < n_called; i++) {
        weft_sync_add(&team->members[i].go.value, 1);
        weft_word_wake(&team->members[i].go, WEFT_OF_THREADS);
    }
}

static void call(weft_team *team, int n_called, weft_team_body body, void *argument)
{
    weft_sync_store_relaxed(&team->view.owner, weft_this_thread());
    weft_sync_writes(&team->body);
    team->body = body;
    team->argument = argument;
    show_core(team);
    start_run(team, n_called);
}

static void await(weft_team *team)
{
    const weft_waiter wait = {"the others of the team", WEFT_ANY,
                              patience_now(team, team->patience), &team->members[0].sign, 0};
    for (uint32_t left = weft_sync_load(&team->left.value); left != 0;)
        left = wait_change(&team->left, left, wait);
}

/* A member's part says by the member's sign what it waits for, unless the member wakes and says that it waits for the next run. So the
 * caller's own sign says whose part it is in: where all signs say something for long, nobody works. */
static void do_in_place(weft_team *team, int index, weft_team_body body, void *argument)
{
    weft_waiter wait = {"the part that it does for a late one", index, team->patience,
                        &team->members[0].sign, 0};
    weft_waiter_show(&wait);
    body(argument, index);
    weft_waiter_end(&wait);
    (void)weft_sync_sub(&team->left.value, 1);
}

void weft_team_run(weft_team *team, int n_called, weft_team_body body, void *argument)
{
    if (n_called > 1) call(team, n_called, body, argument);
    body(argument, 0);
    if (n_called > 1) await(team);
}

void weft_team_share(weft_team *team, int n_called, weft_team_body body, void *argument)
{
    if (n_called > 1) call(team, n_called, body, argument);
    body(argument, 0);
    for (int i = 1; i < n_called; i++) {
        member *m = &team->members[i];
        if (!begin(m, weft_sync_load_relaxed(&m->go.value))) continue;
        do_in_place(team, i, body, argument);
    }
    if (n_called == 1) return;
    await(team);
    pass(team, &team->members[0], false);
}

void weft_team_destroy(weft_team **team)
{
    weft_team *t = *team;
    if (t == NULL) return;
    weft_team_hide(&t->view);
    weft_sync_writes(&t->body);
    t->body = NULL;
    start_run(t, t->n_members);
    for (int i = 1; i < t->n_members; i++)
        weft_thread_join(t->members[i].thread);
    free(t);
    *team = NULL;
}

weft_wait_sign *weft_team_sign(weft_team *team, int index)
{
    return &team->members[index].sign;
}
