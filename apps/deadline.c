/* deadline: the end of the batch job, from a variable or from squeue.
 *
 * Slurm before 23.02 sets no SLURM_JOB_END_TIME in the environment of a job. squeue knows the end,
 * but may take seconds when the controller is busy, or never answer: so it runs beside the training
 * and its answer is picked up after a later step.
 */
#include "deadline.h"
#include "weft/number.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stop.h"

extern char **environ;

/* ---- what squeue says ----------------------------------------------------------------------- */

bool deadline_parse(const char *text, double *seconds)
{
    static const double unit[] = {1, 60, 3600};
    double parts[3], days = 0;
    int n = 0;
    char *end;
    const char *at = text, *dash = strchr(text, '-');
    if (dash) {
        days = (double)strtoul(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || end != dash) return false;
        at = dash + 1;
    }
    for (bool is_more = true; is_more; at = end + 1) {
        if (n == 3 || *at < '0' || *at > '9') return false;
        parts[n++] = (double)strtoul(at, &end, 10);
        is_more = *end == ':';
    }
    if (*end != '\0' || n < 2 || (dash && n != 3)) return false;
    *seconds = days * 86400;
    for (int i = 0; i < n; i++)
        *seconds += parts[i] * unit[n - 1 - i];
    return true;
}

static void take_answer(deadline *d)
{
    double left;
    d->text[d->used] = '\0';
    d->text[strcspn(d->text, " \r\n")] = '\0';
    if (strcmp(d->text, "UNLIMITED") == 0) d->end = 0;
    if (!deadline_parse(d->text, &left)) return; /* not an answer: what was known stays */
    d->end = d->asked + left;                    /* rather early than late */
    d->source = "squeue";
}

/* ---- asking --------------------------------------------------------------------------------- */

static void forget(deadline *d)
{
    close(d->answer);
    d->answer = -1;
    d->child = 0;
}

/* With a group of its own, so that what squeue starts can be ended with it. */
static int spawn(deadline *d, int out)
{
    char *const arguments[] = {"squeue", "-h", "-j", (char *)d->job, "-o", "%L", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    const int failed = posix_spawnp(&d->child, "squeue", &files, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static void ask(deadline *d)
{
    int ends[2];
    d->asked = app_seconds();
    d->used = 0;
    d->is_ended = false;
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    d->answer = ends[0];
    fcntl(d->answer, F_SETFL, O_NONBLOCK);
    if (spawn(d, ends[1]) != 0) {
        d->job = NULL; /* there is no squeue here, and there will be none */
        forget(d);
    }
    close(ends[1]);
}

/* Without waiting for its end: a process that waits for a disk ends when the disk answers. */
static void end_child(deadline *d)
{
    kill(-d->child, SIGKILL);
    d->is_ended = true;
}

/* Until squeue closes its end. */
static void listen_on(deadline *d)
{
    const ssize_t n = read(d->answer, d->text + d->used, sizeof d->text - 1 - d->used);
    int status = 0;
    if (n > 0) d->used += (size_t)n;
    if ((n == 0 || d->is_ended) && waitpid(d->child, &status, WNOHANG) == d->child) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) take_answer(d);
        forget(d);
    } else if (app_seconds() - d->asked > d->patience || d->used == sizeof d->text - 1) {
        end_child(d);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

void deadline_open(deadline *d)
{
    const char *known = getenv("SLURM_JOB_END_TIME");
    double end;
    (void)weft_number_read(known, &end);
    *d = (deadline){.source = "", .every = 300, .patience = 20};
    if (end > 0) {
        /* 0 stands for no end: one before the machine began is over too */
        d->end = fmax(app_seconds() + (end - (double)time(NULL)), 1e-9);
        d->source = "SLURM_JOB_END_TIME";
        return;
    }
    d->job = getenv("SLURM_JOB_ID");
    if (d->job) ask(d);
}

void deadline_poll(deadline *d)
{
    if (d->child > 0)
        listen_on(d);
    else if (d->job && app_seconds() - d->asked > d->every)
        ask(d);
}

void deadline_close(deadline *d)
{
    if (d->child > 0) {
        end_child(d);
        waitpid(d->child, NULL, WNOHANG); /* what is left of it goes with this process */
        forget(d);
    }
    d->job = NULL;
}
