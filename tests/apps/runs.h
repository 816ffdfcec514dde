/* runs.h: trainings that are killed and started again: starting them, finding the moment, and
 * looking at what is left. */
#ifndef WEFT_TESTS_RUNS_H
#define WEFT_TESTS_RUNS_H

#include "losses.h"
#include "command.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { STEPS = 24, TEXT = 4096, MOST_RANKS = 8 };

static char folder[64];

#define MODEL                                                                                      \
    "--layers 2 --width 24 --heads 3 --batch 30 --seq 12 --dtype f64 --dropout 0.2 --quiet "

/* How a run is started: what stands before gpt, and its layout. */
typedef struct way {
    const char *launcher;
    int n_processes; /* 0: threads of one */
    const char *mesh;
} way;

#define MPIEXEC(n) WEFT_TEST_MPIEXEC " -n " #n " --oversubscribe "
static const way on_threads = {"", 0, "--mesh data:2 --layout batch:data "};
static const way on_two = {MPIEXEC(2), 2, "--layout batch:data "};
static const way on_four = {MPIEXEC(4), 4, "--mesh data:4 --layout batch:data --zero 1 "};

static inline bool has_mpi(void)
{
    return WEFT_TEST_MPIEXEC[0] != '\0';
}

/* ---- starting -------------------------------------------------------------------------------- */

static inline void command_of(const way *w, const char *environment, const char *run,
                              const char *arguments, char line[TEXT])
{
    snprintf(line, TEXT,
             "exec env %s timeout -k 1 600 %s" WEFT_TEST_BIN
             "/gpt train --data %s/text.txt --run %s/%s " MODEL "%s%s >>%s/said.txt 2>&1",
             environment, w->launcher, folder, folder, run, w->mesh, arguments, folder);
}

/* In a process group of its own; returns its leader. */
static inline pid_t start_run(const way *w, const char *run, const char *arguments)
{
    char line[TEXT];
    command_of(w, "", run, arguments, line);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* Exit status; 128 + the signal that ended it. */
static inline int await_run(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run_to_the_end(const way *w, const char *environment, const char *run,
                                 const char *arguments)
{
    char line[TEXT];
    command_of(w, environment, run, arguments, line);
    const int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Processes called gpt below `above` in the tree of processes; a process that has just begun and
 * is not gpt yet is none. */
static inline int find_ranks(pid_t above, pid_t ranks[MOST_RANKS])
{
    DIR *listing = opendir("/proc");
    int n = 0;
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL && n < MOST_RANKS;) {
        char path[300], name[32] = "";
        int parent = 0, self = atoi(entry->d_name);
        if (self <= 0) continue;
        snprintf(path, sizeof path, "/proc/%d/stat", self);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        const int got = fscanf(file, "%*d (%31[^)]) %*c %d", name, &parent);
        fclose(file);
        if (got != 2) continue;
        if (parent == above && strcmp(name, "gpt") == 0)
            ranks[n++] = self;
        else if (parent == above)
            n += find_ranks(self, ranks + n);
    }
    if (listing) closedir(listing);
    return n;
}

/* ---- what is on the disk --------------------------------------------------------------------- */

/* A save is under way that has begun after `since`; with NULL also one that was cut off before. */
static inline bool is_saving(const char *run, const struct timespec *since)
{
    char path[TEXT];
    bool is_under_way = false;
    snprintf(path, sizeof path, "%s/%s/ckpt", folder, run);
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;) {
        struct stat facts;
        if (!strstr(entry->d_name, ".tmp") && !strstr(entry->d_name, ".old")) continue;
        if (since && fstatat(dirfd(listing), entry->d_name, &facts, 0) != 0) continue;
        is_under_way |=
            !since || facts.st_ctim.tv_sec > since->tv_sec ||
            (facts.st_ctim.tv_sec == since->tv_sec && facts.st_ctim.tv_nsec > since->tv_nsec);
    }
    if (listing) closedir(listing);
    return is_under_way;
}

static inline int read_losses(const char *run, double losses[STEPS + 1])
{
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, run);
    return losses_read(path, STEPS, losses);
}

/* Every step is there with the losses of another run, and the last state is the same, to the bit.
 */
static inline bool is_as(const char *run, const char *other)
{
    char line[TEXT];
    double losses[STEPS + 1] = {0}, expected[STEPS + 1] = {0};
    CHECK_EQ_INT(read_losses(other, expected), STEPS);
    bool is_good = CHECK_EQ_INT(read_losses(run, losses), STEPS) &&
                   CHECK(memcmp(losses, expected, sizeof losses) == 0);
    snprintf(line, sizeof line, WEFT_TEST_BIN "/weft ckpt diff %s/%s %s/%s", folder, other, folder,
             run);
    is_good &= CHECK_EQ_INT(command_run(line).status, 0);
    return is_good;
}

static inline void shell(const char *format, const char *a, const char *b)
{
    char line[TEXT];
    snprintf(line, sizeof line, format, folder, a, folder, b);
    CHECK_EQ_INT(system(line), 0);
}

static inline void remove_run(const char *run)
{
    shell("rm -rf '%s/%s' '%s/%s'", run, run);
}

static inline void copy_run(const char *from, const char *to)
{
    remove_run(to);
    shell("cp -r '%s/%s' '%s/%s'", from, to);
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* What killed ranks of Open MPI leave goes into the test's folder too. */
static inline void set_environment(void)
{
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("OMPI_MCA_orte_tmpdir_base", folder, 1);
    setenv("OMPI_MCA_btl_vader_backing_directory", folder, 1);
}

static inline bool open_runs(const char *arguments)
{
    char path[TEXT];
    snprintf(folder, sizeof folder, "%s/weft-kill-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL) return false;
    set_environment();
    snprintf(path, sizeof path, "%s/text.txt", folder);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    for (int i = 0; i < 8000; i++)
        fputc("the quick brown fox jumps over the lazy dog; "[(i + i / 97) % 45], file);
    return fclose(file) == 0 &&
           CHECK_EQ_INT(run_to_the_end(&on_threads, "", "whole", arguments), 0);
}

static inline void close_runs(void)
{
    char line[TEXT];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    CHECK_EQ_INT(system(line), 0);
}

#endif
