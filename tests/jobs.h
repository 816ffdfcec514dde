/* jobs.h: command lines that run beside each other, for programs that mostly wait, and when they
 * said what. */
#ifndef WEFT_TESTS_JOBS_H
#define WEFT_TESTS_JOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

typedef struct job_run {
    char line[2048]; /* for the shell; what it prints is kept, stdout and stderr */
    int status;      /* exit status; 124: it did not end in time; -1: it did not start, or died */
    double seconds;
    double said; /* from a line "misbehave: rank R at TIME" to the first line that tells of it; -1:
                    none */
    char report[1600]; /* that line; "" */
    char text[1 << 14];
} job_run;

static inline double jobs_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void jobs_read_line(job_run *job, const char *line, double *wrong_at)
{
    double at;
    int rank;
    const size_t used = strlen(job->text);
    snprintf(job->text + used, sizeof job->text - used, "%s", line);
    if (sscanf(line, "misbehave: rank %d at %lf", &rank, &at) == 2) {
        *wrong_at = at;
        return;
    }
    const bool is_report = strncmp(line, "weft: ", 6) == 0 || strncmp(line, "misbehave: ", 11) == 0;
    const bool is_other = strstr(line, "misbehave: done") || strstr(line, "the job goes on");
    if (!is_report || is_other || job->report[0]) return;
    snprintf(job->report, sizeof job->report, "%s", line);
    job->report[strcspn(job->report, "\n")] = '\0';
    job->said = *wrong_at > 0 ? jobs_clock(CLOCK_REALTIME) - *wrong_at : -1;
}

static inline void jobs_run_one(job_run *job)
{
    char line[4096];
    double wrong_at = 0;
    const double begin = jobs_clock(CLOCK_MONOTONIC);
    job->status = -1;
    job->said = -1;
    job->report[0] = job->text[0] = '\0';
    FILE *pipe = popen(job->line, "r");
    if (pipe == NULL) return;
    while (fgets(line, sizeof line, pipe))
        jobs_read_line(job, line, &wrong_at);
    const int status = pclose(pipe);
    job->seconds = jobs_clock(CLOCK_MONOTONIC) - begin;
    job->status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

typedef struct jobs_list {
    job_run *jobs;
    int n;
    _Atomic int next;
} jobs_list;

static inline void *jobs_work(void *argument)
{
    jobs_list *list = argument;
    for (int i; (i = atomic_fetch_add(&list->next, 1)) < list->n;)
        jobs_run_one(&list->jobs[i]);
    return NULL;
}

/* jobs_run - all of them, at most n_beside at a time. */
static inline void jobs_run(job_run *jobs, int n, int n_beside)
{
    enum { MOST = 16 };
    pthread_t threads[MOST];
    jobs_list list = {jobs, n, 0};
    int n_threads = 0;
    while (n_threads < n_beside && n_threads < MOST &&
           pthread_create(&threads[n_threads], NULL, jobs_work, &list) == 0)
        n_threads++;
    if (n_threads == 0) jobs_work(&list);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

/* What Open MPI needs in a container, as root, with more ranks than cores. */
static inline void jobs_prepare_mpi(void)
{
    static const char *const settings[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_btl", "self,vader,tcp"},        {"OMPI_MCA_pml", "ob1"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},     {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 1);
}

#define JOBS_MPIRUN    "timeout -k 1 600 " WEFT_TEST_MPIEXEC " --oversubscribe "
#define JOBS_MISBEHAVE WEFT_TEST_BIN "/../tests/misbehave"

#endif
