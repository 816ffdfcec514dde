/* trial: one training of a search. */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MAX_PATH = 4200, MEANS = 10, MORE_WORDS = 12 };

void trial_folder(const char *folder, const trial *t, char *path, size_t room)
{
    if (t->life > 0)
        snprintf(path, room, "%.4000s/trial_%04d_r%02d", folder, t->number, t->life);
    else
        snprintf(path, room, "%.4000s/trial_%04d", folder, t->number);
}

static void log_path(const char *folder, int number, char *path, size_t room)
{
    snprintf(path, room, "%.4000s/trial_%04d.log", folder, number);
}

/* ---- starting ---------------------------------------------------------------------------------- */

/* A command line: words [n] and room for those that are made. */
typedef struct command_line {
    char **words, (*room)[MAX_PATH];
    int n;
} command_line;

static void add_word(command_line *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    l->words[l->n] = l->room[l->n];
    vsnprintf(l->room[l->n++], MAX_PATH, format, arguments);
    va_end(arguments);
}

/* The command, and what the trial has of its own; what stands last counts. NULL: out of memory, in the child, which ends. */
static char **words_of(const launch *l, const trial *t, int64_t until, int n_cores)
{
    char path[MAX_PATH];
    const size_t n_words = (size_t)l->n + 2 * SPACE_AXES + MORE_WORDS;
    command_line all = {calloc(n_words, sizeof(char *)), calloc(n_words, MAX_PATH), 0};
    if (!all.words || !all.room) return NULL;
    while (all.n < l->n) {
        all.words[all.n] = l->command[all.n];
        all.n++;
    }
    for (int a = 0; a < l->space->n; a++) /* one word: a flag takes no other */
        add_word(&all, "--%s=%s", l->space->axes[a].name, t->values[a]);
    trial_folder(l->folder, t, path, sizeof path);
    add_word(&all, "--run");
    add_word(&all, "%s", path);
    if (until > 0) add_word(&all, "--until");
    if (until > 0) add_word(&all, "%lld", (long long)until);
    if (!l->makes_mesh) return all.words;
    add_word(&all, "--mesh");
    add_word(&all, "data:%d", n_cores);
    add_word(&all, "--layout");
    add_word(&all, "batch:data");
    return all.words;
}

/* Cores `first` and so on of those that the parent has. */
static void take_cores(int first, int n)
{
    cpu_set_t all, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    for (int i = 0, at = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET((size_t)i, &all)) continue;
        if (at >= first && at < first + n) CPU_SET((size_t)i, &own);
        at++;
    }
    if (CPU_COUNT(&own) > 0) sched_setaffinity(0, sizeof own, &own);
}

/* In the child. It ends with the search, however that ends. */
static _Noreturn void become(const launch *l, char **words, int log, pid_t parent, int first,
                             int n_cores)
{
    signal(SIGTERM, SIG_DFL); /* the search's handler would swallow it before exec */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0); /* a Ctrl-C is the search's, which tells its trials */
    take_cores(first, n_cores);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (words) (void)execvp(l->program, words);
    dprintf(STDERR_FILENO, "%s: cannot be started: %s\n", l->program, strerror(errno));
    _exit(127);
}

pid_t trial_start(const launch *l, const trial *t, int64_t until, int first, int n_cores,
                  weft_error *error)
{
    char path[MAX_PATH];
    const pid_t parent = getpid();
    log_path(l->folder, t->number, path, sizeof path);
    const int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) {
        weft_fail(error, WEFT_IO, "cannot write %.300s: %s", path, strerror(errno));
        return -1;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) become(l, words_of(l, t, until, n_cores), log, parent, first, n_cores);
    if (child < 0) weft_fail(error, WEFT_IO, "cannot start a trial: %s", strerror(errno));
    close(log);
    return child;
}

/* ---- what it came to --------------------------------------------------------------------------- */

/* The last of a line's numbers, in turn. */
typedef struct tail {
    double numbers[MEANS];
    int64_t steps[MEANS], step; /* theirs; the newest */
    int n;                      /* so far */
    char names[300];            /* of all numbers that a line has */
} tail;

static void take_names(tail *t, const json_t *line)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)line, name, value)
    {
        char whole[80];
        const size_t used = strlen(t->names);
        snprintf(whole, sizeof whole, " %.70s,", name);
        if (strcmp(name, "step") != 0 && !strstr(t->names, whole))
            snprintf(t->names + used, sizeof t->names - used, "%s", whole);
    }
}

/* A line of a step that was done again, on other hardware say, is a line all the same. */
static void take_line(tail *t, const char *text, const char *name, int64_t until)
{
    json_t *one = json_loads(text, 0, NULL);
    const json_t *value = json_object_get(one, name);
    const int64_t step = json_integer_value(json_object_get(one, "step"));
    if (one) take_names(t, one);
    if (value && (until == 0 || step <= until)) {
        t->steps[t->n % MEANS] = step;
        t->numbers[t->n++ % MEANS] = json_is_number(value) ? json_number_value(value) : NAN;
        t->step = step;
    }
    json_decref(one);
}

double trial_result(const char *folder, const trial *of, const char *name, int64_t until,
                    int64_t *steps, weft_error *error)
{
    char path[MAX_PATH + 16], text[4096];
    tail t = {.n = 0};
    double sum = 0;
    trial_folder(folder, of, path, MAX_PATH);
    strcat(path, "/metrics.jsonl");
    FILE *file = fopen(path, "re");
    while (file && fgets(text, sizeof text, file))
        take_line(&t, text, name, until);
    if (file) fclose(file);
    *steps = t.step;
    int n = 0;
    for (int i = 0; i < MEANS && i < t.n; i++) {
        if (t.steps[i] <= t.step - MEANS || t.steps[i] > t.step) continue;
        sum += t.numbers[i];
        n++;
    }
    if (n > 0) return sum / n;
    if (t.names[0] != '\0')
        weft_fail(error, WEFT_USAGE,
                  "--by %.60s: the program's metrics have no such number; they have%.*s", name,
                  (int)strlen(t.names) - 1, t.names);
    return NAN;
}

void trial_said(const char *folder, int number, char *text, size_t room)
{
    char path[MAX_PATH], line[1024];
    log_path(folder, number, path, sizeof path);
    FILE *file = fopen(path, "re");
    snprintf(text, room, "it said nothing");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line) snprintf(text, room, "%s", line);
    }
    if (file) fclose(file);
}
