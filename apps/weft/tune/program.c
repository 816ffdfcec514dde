/* program: what options a program has, asked of itself. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_OPTIONS = 200, HELP_BYTES = 1 << 17, MOST_WORDS = 8 };

static _Noreturn void become(const char *program, char **words, int out)
{
    const int nothing = open("/dev/null", O_RDWR);
    dup2(out, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(nothing, STDIN_FILENO);
    (void)execvp(program, words);
    _exit(127);
}

/* What it says of itself: text [HELP_BYTES]. Returns its exit status. */
static int ask(const char *program, char *const *command, int n, char *text)
{
    static char help[] = "--help=all";
    char *words[MOST_WORDS + 2] = {NULL};
    int ends[2], status = 0, n_words = 0;
    while (n_words < n && n_words < MOST_WORDS && command[n_words][0] != '-') {
        words[n_words] = command[n_words];
        n_words++;
    }
    words[n_words] = help;
    if (pipe2(ends, O_CLOEXEC) != 0) return 127;
    const pid_t child = fork();
    if (child == 0) become(program, words, ends[1]);
    close(ends[1]);
    size_t at = 0;
    for (ssize_t got; (got = read(ends[0], text + at, HELP_BYTES - 1 - at)) != 0;) {
        if (got < 0 && errno != EINTR) break;
        at += got > 0 ? (size_t)got : 0;
    }
    text[at] = '\0';
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
    return WEXITSTATUS(status);
}

/* Lines that begin with two blanks and an option: their names, ended in place. */
static int find_options(char *text, const char **names)
{
    int n = 0;
    for (char *at = text; at && n < MOST_OPTIONS;) {
        if (*at == '\n') at++;
        char *next = strchr(at, '\n');
        if (strncmp(at, "  --", 4) == 0) {
            names[n++] = at + 4;
            at[4 + strcspn(at + 4, " =,\n[")] = '\0';
        }
        at = next;
    }
    return n;
}

static weft_status check(const char *program, const char *const *names, int n, const char *name,
                         const char *why, weft_error *error)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return WEFT_OK;
    const char *near = weft_nearest(name, names, n);
    return weft_fail(error, WEFT_USAGE, "%s%s: %.100s has no option --%s%s%s%s", why, name, program,
                     name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

weft_status program_check(const char *program, char *const *command, int n, const space *s,
                          bool wants_until, weft_error *error)
{
    const char *names[MOST_OPTIONS];
    char *text = malloc(HELP_BYTES);
    if (!text) return weft_fail_memory(error, HELP_BYTES);
    const int code = ask(program, command, n, text);
    const int n_options = find_options(text, names);
    weft_status status = WEFT_OK;
    if (code != 0 || n_options == 0)
        status =
            weft_fail(error, WEFT_USAGE,
                      "%.100s: it cannot be started, or does not tell its options by --help=all; "
                      "name a program that trains, as mnist or gpt train, and its options",
                      command[0]);
    for (int a = 0; a < s->n && status == WEFT_OK; a++)
        status = check(command[0], names, n_options, s->axes[a].name, "--vary ", error);
    if (status == WEFT_OK) status = check(command[0], names, n_options, "run", "--", error);
    if (status == WEFT_OK && wants_until)
        status = check(command[0], names, n_options, "until", "a search by parts of a training: --",
                       error);
    free(text);
    return status;
}
