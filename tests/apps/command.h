/* command.h: run a command line as a user would, and keep what it printed. */
#ifndef WEFT_TESTS_COMMAND_H
#define WEFT_TESTS_COMMAND_H

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

typedef struct command_result {
    int status; /* exit status; 124: it did not end in time; -1: it did not start */
    double seconds;
    char text[1 << 18]; /* the start of what it said */
} command_result;

/* command_run_all - `line` by the shell; keeps the start of its stdout. */
static inline command_result command_run_all(const char *line)
{
    command_result result = {.status = -1};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    FILE *pipe = popen(line, "r");
    if (pipe == NULL) return result;
    size_t at = 0, got;
    while ((got = fread(result.text + at, 1, sizeof result.text - 1 - at, pipe)) > 0)
        at += got;
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    result.text[at] = '\0';
    const int status = pclose(pipe);
    clock_gettime(CLOCK_MONOTONIC, &end);
    result.status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return result;
}

/* command_first_core - the lowest core that this process may use. */
static inline int command_first_core(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; sched_getaffinity(0, sizeof all, &all) == 0 && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) return i;
    return 0;
}

/* command_run - `line`, one command, at most 30 s; keeps its stderr and drops its stdout. */
static inline command_result command_run(const char *line)
{
    char full[8192];
    const int n = snprintf(full, sizeof full, "timeout -k 1 600 env %s 2>&1 >/dev/null", line);
    if (n < 0 || (size_t)n >= sizeof full) return (command_result){.status = -1};
    return command_run_all(full);
}

/* How many lines begin with `prefix`; "" counts all. */
static inline int command_lines(const char *text, const char *prefix)
{
    int n = 0;
    for (const char *line = text; *line != '\0';) {
        n += strncmp(line, prefix, strlen(prefix)) == 0;
        const char *next = strchr(line, '\n');
        if (next == NULL) break;
        line = next + 1;
    }
    return n;
}

#endif
