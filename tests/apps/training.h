/* training.h: gpt trainings in the background, for tests that signal them, kill them and look at
 * what they left. One folder a test program; runs are named in it. */
#ifndef WEFT_TESTS_TRAINING_H
#define WEFT_TESTS_TRAINING_H

#include "text_folder.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

enum { TRAINING_TEXT = 8192, TRAINING_STEPS = 400 };

#define SMALL                                                                                      \
    "--layers 2 --width 24 --heads 3 --batch 6 --seq 12 --dtype f64 --dropout 0.2 --quiet "
#define TWO_RANKS  WEFT_TEST_MPIEXEC " -n 2 --oversubscribe"
#define FOUR_RANKS WEFT_TEST_MPIEXEC " -n 4 --oversubscribe"

/* The command line of gpt train for the run `name`, begun by `launcher`, words before it. */
static inline const char *training_line(const char *launcher, const char *name,
                                        const char *arguments)
{
    static char line[TRAINING_TEXT];
    snprintf(line, sizeof line,
             "%s " WEFT_TEST_BIN "/gpt train --data %s/text.txt --run %s/%s " SMALL "%s", launcher,
             folder, folder, name, arguments);
    return line;
}

static inline const command_result *training_run(const char *launcher, const char *name,
                                                 const char *arguments)
{
    static command_result last; /* large: not on the stack */
    last = command_run(training_line(launcher, name, arguments));
    return &last;
}

/* In the background, its output in folder/NAME.txt; returns its process, of a group of its own. */
static inline pid_t training_start(const char *launcher, const char *name, const char *arguments)
{
    char line[TRAINING_TEXT + 256];
    snprintf(line, sizeof line, "exec env %s >%s/%s.txt 2>&1",
             training_line(launcher, name, arguments), folder, name);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* The losses of a run by step, from index 1; returns the last step there, -1 when one was run twice
 * with different losses or one is missing. */
static inline int training_losses(const char *name, double losses[TRAINING_STEPS + 1])
{
    char path[1024], line[1024];
    int last = 0;
    bool is_same = true;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    memset(losses, 0, (TRAINING_STEPS + 1) * sizeof *losses);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *step_at = strstr(line, "\"step\":"), *at = strstr(line, "\"loss\":");
        const int step = step_at != NULL ? atoi(step_at + strlen("\"step\":")) : 0;
        if (step < 1 || step > TRAINING_STEPS || at == NULL) continue;
        const double loss = atof(at + strlen("\"loss\":"));
        is_same = is_same && step <= last + 1 && (step > last || losses[step] == loss);
        if (step > last) last = step;
        losses[step] = loss;
    }
    fclose(file);
    return is_same ? last : -1;
}

/* Every step of the run has the loss of `expected`, to the bit, as far as both go; at least
 * `least` steps. */
static inline bool training_check(const char *name, const char *expected, int least)
{
    double is[TRAINING_STEPS + 1], should[TRAINING_STEPS + 1];
    const int n = training_losses(name, is), m = training_losses(expected, should);
    bool is_good = CHECK(n >= least) && CHECK(m >= least);
    for (int i = 1; i <= n && i <= m; i++)
        is_good = CHECK_CLOSE(is[i], should[i], 0) && is_good;
    return is_good;
}

/* Wait until the run has come to `step`; false after 30 s. */
static inline bool training_await(const char *name, int step)
{
    double losses[TRAINING_STEPS + 1];
    for (int i = 0; i < 15000; i++) {
        if (training_losses(name, losses) >= step) return true;
        usleep(2000);
    }
    return false;
}

/* Its exit status; minus the signal that ended it. */
static inline int training_wait(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1000;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The processes that `parent` started, at most `n`; returns how many there are. */
static inline int training_ranks(pid_t parent, pid_t *ranks, int n)
{
    DIR *all = opendir("/proc");
    int found = 0;
    for (struct dirent *each; all != NULL && (each = readdir(all)) != NULL;) {
        char path[300], text[512] = "", state;
        int its_parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", each->d_name);
        FILE *file = each->d_name[0] >= '1' && each->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (file == NULL) continue;
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        const char *at = strrchr(text, ')'); /* the name before it may hold anything */
        if (at == NULL || sscanf(at + 1, " %c %d", &state, &its_parent) != 2) continue;
        if (its_parent == parent && found < n) ranks[found++] = atoi(each->d_name);
    }
    if (all != NULL) closedir(all);
    return found;
}

static inline bool training_is_there(const char *path)
{
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    return access(full, F_OK) == 0;
}

#endif
