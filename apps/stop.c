/* stop: a signal sets a flag and no more; everything else is asked after each step.
 *
 * The time that counts is the process's, from its start: --max-time is a promise to a queue that
 * counts so too.
 */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} watched[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}};
enum { N_WATCHED = sizeof watched / sizeof *watched };

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

/* Would one more step, as slow as the slowest, and a save end too late? */
static bool has_no_time(stop_watch *watch)
{
    const double needed = watch->slowest + watch->saving;
    const char *slurm = getenv("SLURM_JOB_END_TIME");
    const double end = slurm ? strtod(slurm, NULL) : 0;
    if (watch->limit > 0 && app_seconds() - watch->begun + needed > watch->limit)
        snprintf(watch->why, sizeof watch->why,
                 "another step and a save would pass --max-time (%.0f s)", watch->limit);
    else if (end > 0 && (double)time(NULL) + needed > end)
        snprintf(watch->why, sizeof watch->why,
                 "another step and a save would pass the end of the Slurm job");
    return *watch->why;
}

/* ---- life ----------------------------------------------------------------------------------- */

void stop_watch_open(stop_watch *watch, const char *folder, double limit, double saving)
{
    *watch = (stop_watch){.folder = folder, .limit = limit, .saving = saving};
    watch->begun = process_begun();
    watch->last = app_seconds();
    struct sigaction action = {.sa_handler = take_note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    seen = 0;
    for (int i = 0; i < N_WATCHED && !is_watching; i++)
        sigaction(watched[i].number, &action, &before[i]);
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

void stop_watch_close(void)
{
    for (int i = 0; i < N_WATCHED && is_watching; i++)
        sigaction(watched[i].number, &before[i], NULL);
    is_watching = false;
}
