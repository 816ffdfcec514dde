/* child.h: what may end the process, or is to find it as it was, is done in a child of its own. */
#ifndef TEST_CUDA_CHILD_H
#define TEST_CUDA_CHILD_H

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* What `run` returns, an exit status; 100: a signal ended it. Silent: what it says is nobody's business. */
static inline int in_a_child(int (*run)(const void *argument), const void *argument, bool is_silent)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        if (is_silent && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
            _exit(100);
        const int result = run(argument);
        fflush(NULL);
        _exit(result);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* ---- what a library is told wrongly -------------------------------------------------------------- */

typedef enum looked { RIGHT, WRONG, OTHER_GPU /* no emulated one: nothing was looked at */ } looked;

/* Whether a test sees each fault that the emulated library makes when it is told to: its numbers are wrong then, or it dies, and right
 * without. Each in a process of its own, which has asked the library nothing yet. */
static inline void check_faults(int (*look)(const void *fault), const char *const *faults, size_t n)
{
    const int without = in_a_child(look, "none", true);
    CHECK(without == RIGHT || without == OTHER_GPU);
    for (size_t k = 0; k < n && without == RIGHT; k++)
        weft_test_check(in_a_child(look, faults[k], true) != RIGHT, __FILE__, __LINE__, faults[k]);
}

#endif
