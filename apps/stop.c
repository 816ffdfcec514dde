/* stop: a signal sets a flag and no more; everything else is asked after each step.
 *
 * The time that counts is the process's, from its start: --max-time is a promise to a queue that
 * counts so too.
 */
#include "stop.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "weft/watch.h"

/* All that end a process and leave no core, but for SIGKILL and those of writes (below). The first ask a program to end; one of
 * the others that a library has a handler for is the library's. */
static const struct {
    int number;
    const char *name;
} watched[] = {
    {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},       {SIGUSR1, "SIGUSR1"},
    {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}, {SIGALRM, "SIGALRM"},     {SIGVTALRM, "SIGVTALRM"},
    {SIGPROF, "SIGPROF"}, {SIGPWR, "SIGPWR"},   {SIGSTKFLT, "SIGSTKFLT"}, {SIGIO, "SIGIO"},
};
enum { N_WATCHED = sizeof watched / sizeof *watched, N_ASKING = 4 };

/* Signals are the process's, and so is this. */
static volatile sig_atomic_t seen; /* the first signal; 0: none */
static struct sigaction before[N_WATCHED];
static bool is_watching;

static void take_note(int number)
{
    if (number == SIGINT && seen == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
        return;
    }
    seen = number;
    weft_watch_hurry(); /* a step that hangs does not come to where the flag is looked at */
}

double app_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* When this process began, as app_seconds counts: field 22 of /proc/self/stat, in ticks since the
 * machine began, which is where CLOCK_BOOTTIME counts from. */
static double process_begun(void)
{
    char text[1024];
    unsigned long long ticks = 0;
    struct timespec boot;
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file) return app_seconds();
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strrchr(text, ')'); /* the name before it may hold spaces */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return app_seconds();
    const double age = (double)boot.tv_sec + 1e-9 * (double)boot.tv_nsec -
                       (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return app_seconds() - (age > 0 ? age : 0);
}

/* ---- reasons -------------------------------------------------------------------------------- */

static bool has_signal(stop_watch *watch)
{
    for (int i = 0; i < N_WATCHED; i++)
        if (seen == watched[i].number)
            snprintf(watch->why, sizeof watch->why, "%s came", watched[i].name);
    return *watch->why;
}

static bool has_halt_file(stop_watch *watch)
{
    char path[4096], made[32];
    struct stat facts;
    struct tm parts;
    if (!watch->folder) return false;
    snprintf(path, sizeof path, "%.4000s/halt", watch->folder);
    if (stat(path, &facts) != 0 || unlink(path) != 0) return false;
    localtime_r(&facts.st_mtime, &parts);
    strftime(made, sizeof made, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(watch->why, sizeof watch->why, "a halt file was there, made %s (now removed)", made);
    return true;
}

/* When it has to be over, the earlier of two; 0: any time. */
static double end_of(const stop_watch *watch, const char **source)
{
    const double own = watch->limit > 0 ? watch->begun + watch->limit : 0, job = watch->job.end;
    const bool is_job = job > 0 && (own == 0 || job < own);
    *source = is_job ? watch->job.source : "--max-time";
    return is_job ? job : own;
}

/* Would one more step, as slow as the slowest, and a save end too late? */
static bool has_no_time(stop_watch *watch)
{
    const char *source;
    deadline_poll(&watch->job);
    const double end = end_of(watch, &source);
    if (end == 0 || app_seconds() + watch->slowest + watch->saving <= end) return false;
    if (end != watch->job.end)
        snprintf(watch->why, sizeof watch->why,
                 "another step and a save would pass --max-time (%.0f s)", watch->limit);
    else
        snprintf(watch->why, sizeof watch->why,
                 "another step and a save would pass the end of the Slurm job (%s)", source);
    return true;
}

bool stop_watch_news(stop_watch *watch, char *text, size_t bytes)
{
    enum { SAME = 90 }; /* seconds: what squeue says differs a little from time to time */
    const char *source;
    char clock[32];
    struct tm parts;
    const double end = end_of(watch, &source);
    if (!watch->folder || fabs(end - watch->told) < SAME) return false;
    watch->told = end;
    if (end == 0) return snprintf(text, bytes, "the job's time is not limited any more") > 0;
    const double left = end - app_seconds();
    const time_t at = time(NULL) + (time_t)left;
    localtime_r(&at, &parts);
    strftime(clock, sizeof clock, left < 43200 ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(text, bytes, "stops before %s (%s)", clock, source);
    return true;
}

/* ---- life ----------------------------------------------------------------------------------- */

void stop_survive_failed_writes(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* What is ignored, as SIGHUP is under nohup, stays so. */
static void watch_signal(int i)
{
    struct sigaction action = {.sa_handler = take_note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(watched[i].number, NULL, &before[i]);
    const bool is_handled = before[i].sa_handler != SIG_DFL && i >= N_ASKING;
    if (before[i].sa_handler != SIG_IGN && !is_handled) sigaction(watched[i].number, &action, NULL);
}

void stop_watch_open(stop_watch *watch, const char *folder, double limit, double saving)
{
    *watch = (stop_watch){.folder = folder, .limit = limit, .saving = saving};
    watch->begun = process_begun();
    watch->last = app_seconds();
    if (folder) deadline_open(&watch->job);
    seen = 0;
    for (int i = 0; i < N_WATCHED && !is_watching; i++)
        watch_signal(i);
    is_watching = true;
}

bool stop_watch_step(stop_watch *watch)
{
    static bool (*const reasons[])(stop_watch *) = {has_signal, has_halt_file, has_no_time};
    const double now = app_seconds();
    if (now - watch->last > watch->slowest) watch->slowest = now - watch->last;
    watch->last = now;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i](watch)) return true;
    return false;
}

bool stop_watch_is_asked(void)
{
    return seen != 0;
}

void stop_watch_end(stop_watch *watch)
{
    deadline_close(&watch->job);
}

void stop_watch_close(void)
{
    for (int i = 0; i < N_WATCHED && is_watching; i++)
        sigaction(watched[i].number, &before[i], NULL);
    is_watching = false;
}
