/* sandbox: a process with limits, and a socket that is never waited on for ever.
 *
 * It is a program of its own, not a fork that goes on: it inherits no memory, no threads and no
 * address of ours.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NOT_STARTED = 127 /* exit status when exec fails, as the shell has it */,
    ABOVE = 10,
    SLICE_MS = 200
};

/* ---- in the new process: system calls only -------------------------------------------------- */

static void limit(int what, int64_t most)
{
    const struct rlimit both = {(rlim_t)most, (rlim_t)most};
    setrlimit((__rlimit_resource_t)what, &both);
}

static void set_limits(const weft_sandbox_order *order)
{
    /* The soft limit tells (SIGXCPU), the hard one kills whoever does not listen. */
    const struct rlimit processor = {(rlim_t)order->processor_s, (rlim_t)order->processor_s + 2};
    if (order->processor_s > 0) setrlimit(RLIMIT_CPU, &processor);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
#ifndef WEFT_SANITIZE
    limit(RLIMIT_AS, order->memory_bytes);
#endif
}

static void become(const weft_sandbox_order *order, int out, char *const *environment)
{
    sigset_t none;
    const int input = fcntl(order->input, F_DUPFD, ABOVE), output = fcntl(out, F_DUPFD, ABOVE),
              nothing = open("/dev/null", O_WRONLY);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGPROF, SIG_DFL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        (!order->is_kept && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0))
        _exit(NOT_STARTED);
    if (dup2(input, 0) != 0 || dup2(output, 1) != 1 || dup2(nothing, 2) != 2) _exit(NOT_STARTED);
    for (int d = 3; d < 1024 && close_range(3, ~0U, 0) != 0; d++)
        close(d); /* a kernel before 5.9 */
    set_limits(order);
    execve(order->arguments[0], order->arguments, environment);
    _exit(NOT_STARTED);
}

/* ---- here ------------------------------------------------------------------------------------ */

/* Where the libraries of a program are is not the file's to say, so this much stays. */
static weft_status kept_environment(char **text, weft_error *error)
{
    const char *libraries = getenv("LD_LIBRARY_PATH");
    *text = NULL;
    if (!libraries || asprintf(text, "LD_LIBRARY_PATH=%s", libraries) >= 0) return WEFT_OK;
    *text = NULL;
    return weft_fail_memory(error, strlen(libraries));
}

weft_status weft_sandbox_start(weft_sandbox *box, const weft_sandbox_order *order,
                               weft_error *error)
{
    int ends[2];
    char *libraries;
    *box = (weft_sandbox){.order = *order, .pipe = -1};
    WEFT_TRY(kept_environment(&libraries, error));
    char *const environment[] = {"ASAN_OPTIONS=detect_leaks=0", libraries, NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(libraries);
        return weft_fail(error, WEFT_IO, "cannot make a socket to read %.300s through: %s",
                         order->subject, strerror(errno));
    }
    box->process = fork();
    if (box->process == 0) become(order, ends[1], environment);
    free(libraries);
    close(ends[1]);
    box->pipe = ends[0];
    if (box->process > 0) return WEFT_OK;
    box->process = 0;
    weft_sandbox_stop(box);
    return weft_fail(error, WEFT_IO, "cannot start a process to read %.300s: %s", order->subject,
                     strerror(errno));
}

/* Kill it if it lives; how it ended. A process that was ending by itself keeps its own status. */
static int reap(weft_sandbox *box)
{
    int status = 0;
    if (box->process <= 0) return 0;
    kill(box->process, SIGKILL);
    while (waitpid(box->process, &status, 0) < 0 && errno == EINTR) {
    }
    box->process = 0;
    return status;
}

void weft_sandbox_stop(weft_sandbox *box)
{
    reap(box);
    if (box->pipe >= 0) close(box->pipe);
    box->pipe = -1;
}

static weft_status fail_ended(weft_sandbox *box, weft_error *error)
{
    char how[160];
    const int status = reap(box), signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
        return weft_fail(error, WEFT_IO, "%.300s cannot be read: %.120s cannot be started",
                         box->order.subject, box->order.arguments[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == WEFT_SANDBOX_OPEN)
        return weft_fail(error, WEFT_USAGE,
                         "%.240s is not read here: files of others are read behind a filter on "
                         "system calls (seccomp), which this system does not give",
                         box->order.subject);
    if (signal == SIGSYS)
        snprintf(how, sizeof how, "was stopped as it asked for what reading does not need");
    else if (signal == SIGXCPU)
        snprintf(how, sizeof how, "used up its %lld s of processor time",
                 (long long)box->order.processor_s);
    else if (signal == SIGPROF)
        snprintf(how, sizeof how, "used up its processor time");
    else if (signal != 0)
        snprintf(how, sizeof how, "crashed (%s)", strsignal(signal));
    else
        snprintf(how, sizeof how, "ended too early (exit status %d)", WEXITSTATUS(status));
    return weft_fail(error, box->order.status,
                     "%.240s is damaged or hostile: the process that read it %s; %.60s",
                     box->order.subject, how, box->order.after);
}

static weft_status fail_quiet(weft_sandbox *box, weft_error *error)
{
    reap(box);
    return weft_fail(error, box->order.status,
                     "%.240s is damaged or hostile: the process that read it made no progress for "
                     "%.3g s; %.60s",
                     box->order.subject, box->order.quiet_ms / 1000.0, box->order.after);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether there is something to read, within a slice of what is left of *left ms. A job that was stopped for long (Ctrl-Z) has not waited
 * for long: a slice at most counts. */
static bool is_ready(const weft_sandbox *box, int64_t *left)
{
    const int64_t slice = *left < SLICE_MS ? *left : SLICE_MS, begun = now_ms();
    struct pollfd wait = {.fd = box->pipe, .events = POLLIN};
    const bool is_ready = poll(&wait, 1, (int)slice) > 0;
    const int64_t waited = now_ms() - begun;
    *left -= waited < slice ? waited : slice;
    return is_ready;
}

weft_status weft_sandbox_read(weft_sandbox *box, void *buffer, size_t bytes, weft_error *error)
{
    int64_t left = box->order.quiet_ms;
    char *next = buffer;
    while (bytes > 0) {
        if (left <= 0) return fail_quiet(box, error);
        if (!is_ready(box, &left)) continue;
        const ssize_t n = read(box->pipe, next, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_ended(box, error);
        next += n;
        bytes -= (size_t)n;
    }
    return WEFT_OK;
}

void weft_sandbox_write(weft_sandbox *box, const void *bytes, size_t n)
{
    const char *next = bytes;
    while (n > 0) {
        const ssize_t sent = send(box->pipe, next, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return; /* who is gone is found by what is read next */
        next += sent;
        n -= (size_t)sent;
    }
}

bool weft_sandbox_has_ended(const weft_sandbox *box)
{
    char byte;
    return recv(box->pipe, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
