/* meeting: ranks that see each other's memory wait for each other: threads, or processes of one host.
 *
 * The last to come advances the round, for which the others look. They come within microseconds of each other where each
 * has a core of its own; where it has not, they let others run, and then sleep.
 */
#include "meeting.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 2000, YIELDS = 4, SLEEP_NS = 5000000 };

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void weft_meeting_open(weft_meeting *meeting, int n_ranks)
{
    meeting->n_ranks = n_ranks;
}

static bool is_over(weft_meeting *m, uint32_t round)
{
    return atomic_load(&m->round) != round || atomic_load(&m->is_broken);
}

static void wake(weft_meeting *m)
{
    if (atomic_load(&m->n_asleep) > 0)
        syscall(SYS_futex, &m->round, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Whoever ends the round looks for sleepers after it has; who goes to sleep looks at the round after he has said so. A
 * broken meeting has no word of its own to sleep on: nobody sleeps for long. */
static void wait_for_end(weft_meeting *m, uint32_t round)
{
    for (int i = 0; i < SPINS && !is_over(m, round); i++)
        relax();
    for (int i = 0; i < YIELDS && !is_over(m, round); i++)
        sched_yield();
    const struct timespec most = {0, SLEEP_NS};
    atomic_fetch_add(&m->n_asleep, 1);
    while (!is_over(m, round))
        syscall(SYS_futex, &m->round, FUTEX_WAIT, round, &most, NULL, 0);
    atomic_fetch_sub(&m->n_asleep, 1);
}

bool weft_meet(weft_meeting *meeting)
{
    const uint32_t round = atomic_load(&meeting->round);
    if (atomic_fetch_add(&meeting->n_here, 1) + 1 < (uint32_t)meeting->n_ranks) {
        wait_for_end(meeting, round);
        return !atomic_load(&meeting->is_broken);
    }
    atomic_store(&meeting->n_here, 0);
    atomic_fetch_add(&meeting->round, 1);
    wake(meeting);
    return !atomic_load(&meeting->is_broken);
}

void weft_meeting_break(weft_meeting *meeting)
{
    atomic_store(&meeting->is_broken, 1);
    wake(meeting);
}
