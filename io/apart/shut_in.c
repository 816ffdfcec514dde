/* shut_in: a filter on system calls, and the socket. */
#include "shut_in.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const allowed_call for_all[] = {
    {SCMP_SYS(fstat), 1, {0, SCMP_CMP_EQ, 0, 0}},
    {SCMP_SYS(newfstatat), 1, {0, SCMP_CMP_EQ, 0, 0}}, /* how glibc writes fstat */
    {SCMP_SYS(lseek), 1, {0, SCMP_CMP_EQ, 0, 0}},
    {SCMP_SYS(write), 1, {0, SCMP_CMP_EQ, 1, 0}},
    {SCMP_SYS(read), 1, {0, SCMP_CMP_EQ, 1, 0}}, /* what is asked */
    /* Memory; none that code could be run from. */
    {SCMP_SYS(brk), 0, {0}},
    {SCMP_SYS(munmap), 0, {0}},
    {SCMP_SYS(mremap), 0, {0}},
    {SCMP_SYS(madvise), 0, {0}},
    {SCMP_SYS(mmap), 1, {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}},
    {SCMP_SYS(mprotect), 1, {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}},
    /* The time, and what malloc wants of the system. */
    {SCMP_SYS(clock_gettime), 0, {0}},
    {SCMP_SYS(gettimeofday), 0, {0}},
    {SCMP_SYS(time), 0, {0}},
    {SCMP_SYS(setitimer), 0, {0}},
    {SCMP_SYS(getrandom), 0, {0}},
    {SCMP_SYS(sysinfo), 0, {0}}, /* qsort: how much memory there is */
    {SCMP_SYS(futex), 0, {0}},
    {SCMP_SYS(restart_syscall), 0, {0}},
#ifdef WEFT_SANITIZE
    {SCMP_SYS(sigaltstack), 0, {0}},
#endif
    {SCMP_SYS(exit), 0, {0}},
    {SCMP_SYS(exit_group), 0, {0}},
};

/* What abort() asks for: in vain, but it goes on to crash, and is seen to have crashed. */
static const int in_vain[] = {
    SCMP_SYS(writev), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction),
    SCMP_SYS(getpid), SCMP_SYS(gettid),         SCMP_SYS(tgkill),
};

static int allow(scmp_filter_ctx filter, const allowed_call *calls, size_t n)
{
    int result = 0;
    for (size_t i = 0; i < n && result == 0; i++)
        result = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, calls[i].call, (unsigned)calls[i].n,
                                        &calls[i].when);
    return result;
}

int shut_in(const allowed_call *calls, size_t n)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int result = filter ? 0 : -ENOMEM;
    for (size_t i = 0; i < sizeof in_vain / sizeof *in_vain && result == 0; i++)
        result = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), in_vain[i], 0, NULL);
    if (result == 0) result = allow(filter, for_all, sizeof for_all / sizeof *for_all);
    if (result == 0) result = allow(filter, calls, n);
    if (result == 0) result = seccomp_load(filter);
    seccomp_release(filter);
    return result;
}

void allow_seconds(int seconds)
{
    const struct itimerval left = {{0, 0}, {seconds, 0}};
    setitimer(ITIMER_PROF, &left, NULL);
}

void socket_write(const void *from, size_t bytes)
{
    const char *next = from;
    while (bytes > 0) {
        const ssize_t n = write(1, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(1);
        next += n;
        bytes -= (size_t)n;
    }
}

bool socket_read(void *to, size_t bytes)
{
    char *next = to;
    while (bytes > 0) {
        const ssize_t n = read(1, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        next += n;
        bytes -= (size_t)n;
    }
    return true;
}
