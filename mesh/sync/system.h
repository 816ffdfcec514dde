/* system.h (private): what sync.c needs of the system. In a test build a scheduler has it (tests/sync/schedule.c). */
#ifndef WEFT_SYNC_SYSTEM_H
#define WEFT_SYNC_SYSTEM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sync.h"

#ifdef WEFT_SCHEDULED

weft_patience weft_system_patience(weft_patience wanted);
void weft_system_waits(const char *what, int whom); /* what the next of these is for */
void weft_system_relax(void);
void weft_system_yield(void);
void weft_system_nap(int64_t ns);
int64_t weft_system_now(void);
int64_t weft_system_preempted(void); /* times that this thread had to leave its core to another */
int weft_system_core(void);
void weft_system_leave(int core);
void weft_system_sleep(const _Atomic uint32_t *word, uint32_t old, bool is_shared,
                       int64_t timeout_ns);
void weft_system_wake(const _Atomic uint32_t *word, bool is_shared);
void weft_system_lock(pthread_mutex_t *lock);
void weft_system_unlock(pthread_mutex_t *lock);
void weft_system_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
void weft_system_condition_tell(pthread_cond_t *condition);
int weft_system_start(pthread_t *thread, void *(*main)(void *), void *argument);
void weft_system_join(pthread_t thread);

#else

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline weft_patience weft_system_patience(weft_patience wanted)
{
    return wanted;
}

static inline void weft_system_waits(const char *what, int whom)
{
    (void)what, (void)whom;
}

static inline void weft_system_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* some tens of cycles; "yield" is none at all on most */
#endif
}

static inline void weft_system_yield(void)
{
    sched_yield();
}

static inline void weft_system_nap(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static inline int64_t weft_system_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t weft_system_preempted(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) == 0 ? (int64_t)used.ru_nivcsw : 0;
}

static inline int weft_system_core(void)
{
    return sched_getcpu();
}

/* Two calls: somebody who sets the thread's cores between them has done so in vain. */
static inline void weft_system_leave(int core)
{
    cpu_set_t all, others;
    if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0) return;
    others = all;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    (void)sched_setaffinity(0, sizeof all, &all);
}

static inline void weft_system_sleep(const _Atomic uint32_t *word, uint32_t old, bool is_shared,
                                     int64_t timeout_ns)
{
    const struct timespec most = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    syscall(SYS_futex, word, is_shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, old,
            timeout_ns > 0 ? &most : NULL, NULL, 0);
}

static inline void weft_system_wake(const _Atomic uint32_t *word, bool is_shared)
{
    syscall(SYS_futex, word, is_shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static inline void weft_system_lock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
}

static inline void weft_system_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
}

static inline void weft_system_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    pthread_cond_wait(condition, lock);
}

static inline void weft_system_condition_tell(pthread_cond_t *condition)
{
    pthread_cond_broadcast(condition);
}

static inline int weft_system_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(thread, NULL, main, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

static inline void weft_system_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

#endif

#endif
