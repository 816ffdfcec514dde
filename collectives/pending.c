/* pending: waiting for one thing while all that a rank has under way goes on.
 *
 * There may be many more ranks than cores. A waiter polls for a while, long only where every rank of the host has a
 * core of its own. Then it yields, and it sleeps in the kernel only when the wait is long (measured: sleeping early
 * costs 8 to 10 times at 4 bytes). Other processes may be unrelated and keep the core for their whole time slice: a
 * rank that yields to them waits a few milliseconds, in every wait. A sleeper, if only for a moment, runs as soon as
 * it wakes (4 processes on 2 cores beside two busy loops: steps of 61 ms, not of 247).
 */
#include "pending.h"

#include "weft/mesh.h"

enum {
    SPINS = 100,
    SPINS_CROWDED = 50,
    YIELD_NS = 2000000, /* of waiting, before a rank sleeps that somebody wakes                */
    SLEEP_NS = 5000000, /* and sleeps at most                                                  */
    STRANGERS_NS =
        1000000,          /* away from the core after which it is strangers who have it          */
    STRANGERS_WAITS = 64, /* that go by without yielding, before it is tried again               */
    DOZE_NS = 20000,      /* slept where nobody wakes, at least                                  */
    DOZE_PART = 8,        /* and this part of the wait so far, which is at most so much longer   */
    LONG_DOZE_NS = 500000 /* and no more                                                         */
};

static void unlink_pending(weft_desk *desk, weft_pending *it)
{
    *(it->previous ? &it->previous->next : &desk->first) = it->next;
    *(it->next ? &it->next->previous : &desk->last) = it->previous;
    it->next = it->previous = NULL;
}

/* As a rank of this process set it last. A new desk begins with it: programs come and go, strangers stay. */
static _Atomic int n_no_yields;

void weft_desk_open(weft_desk *desk, bool can_sleep, int n_near)
{
    *desk =
        (weft_desk){.can_sleep = can_sleep, .n_no_yields = weft_sync_load_relaxed(&n_no_yields)};
    desk->n_spins = n_near <= weft_machine_info()->host_cores ? SPINS : SPINS_CROWDED;
}

void weft_desk_begin(weft_desk *desk, weft_pending *it)
{
    it->next = NULL;
    it->previous = desk->last;
    *(desk->last ? &desk->last->next : &desk->first) = it;
    desk->last = it;
    it->is_over = false;
}

void weft_desk_poll(weft_desk *desk)
{
    desk->round++;
    for (weft_pending *it = desk->first, *next; it != NULL; it = next) {
        next = it->next;
        if (!it->poll(it)) continue;
        it->is_over = true;
        unlink_pending(desk, it);
    }
}

static const weft_waiter on_bell = {"what is under way between ranks", WEFT_ANY, {0, 0}, NULL, 0};

/* The ringer changes something, then looks for sleepers; this says that it sleeps, then looks once more: one of both
 * sees the other. A bell that is rung for the last of several ranks alone may be missed when ranks wait in different
 * orders; so nobody sleeps for long. */
static void sleep_once(weft_desk *desk, const weft_pending *it)
{
    weft_sync_store(&desk->bell.n_asleep, 1);
    const uint32_t seen = weft_sync_load(&desk->bell.value);
    weft_desk_poll(desk);
    if (!it->is_over) weft_word_sleep(&desk->bell, seen, WEFT_OF_THREADS, SLEEP_NS, &on_bell);
    weft_sync_store(&desk->bell.n_asleep, 0);
}

void weft_desk_ring(weft_desk *desk)
{
    if (weft_sync_load(&desk->bell.n_asleep) == 0) return;
    (void)weft_sync_add(&desk->bell.value, 1);
    weft_word_wake(&desk->bell, WEFT_OF_THREADS);
}

static void set_no_yields(weft_desk *desk, int n)
{
    desk->n_no_yields = n;
    weft_sync_store_relaxed(&n_no_yields, n);
}

/* Peers who have had the core for long have brought something. */
static void let_others_run(weft_desk *desk, const weft_pending *it)
{
    const int64_t begin = weft_sync_now();
    weft_sync_yield();
    const bool was_long = weft_sync_now() - begin > STRANGERS_NS;
    weft_desk_poll(desk);
    if (was_long && !it->is_over) set_no_yields(desk, STRANGERS_WAITS);
}

/* Who looks again and again takes the core from those that he waits for. */
static int64_t doze_ns(int64_t waited)
{
    const int64_t ns = DOZE_NS + waited / DOZE_PART;
    return ns < LONG_DOZE_NS ? ns : LONG_DOZE_NS;
}

static void wait_long(weft_desk *desk, const weft_pending *it)
{
    weft_waiter wait = on_bell;
    const int64_t begin = weft_sync_now();
    while (!it->is_over) {
        const int64_t waited = weft_sync_now() - begin;
        const bool is_long = desk->can_sleep && waited > YIELD_NS;
        if (desk->n_no_yields == 0 && !is_long) {
            let_others_run(desk, it);
            continue;
        }
        if (desk->can_sleep)
            sleep_once(desk, it);
        else
            weft_waiter_nap(&wait, doze_ns(waited));
        weft_desk_poll(desk);
    }
    if (desk->n_no_yields > 0) set_no_yields(desk, desk->n_no_yields - 1);
}

weft_status weft_desk_wait(weft_desk *desk, weft_pending *it, weft_error *error)
{
    desk->is_waiting = true;
    for (int i = 0; i < desk->n_spins && !it->is_over; i++) {
        weft_desk_poll(desk);
        if (!it->is_over) weft_sync_relax();
    }
    wait_long(desk, it);
    desk->is_waiting = false;
    if (it->error.status == WEFT_OK) return WEFT_OK;
    return weft_fail(error, it->error.status, "%s", it->error.message);
}
