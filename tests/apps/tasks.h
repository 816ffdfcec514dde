/* tasks.h: programs made by apps/training.c, each started in a folder of the test. */
#ifndef WEFT_TESTS_TASKS_H
#define WEFT_TESTS_TASKS_H

#include "text_folder.h"

enum { TEXT = 4096 };

typedef struct task {
    const char *program;
    const char *arguments;   /* a small net; %s: the folder */
    const char *layout;      /* on data:2,model:2 */
    const char *mistakes[8]; /* arguments, %s the folder, and what the sentence has, in turn */
} task;

/* A run of its own in the folder; `launcher` stands before the program. */
static inline const command_result *start(const task *t, const char *launcher, const char *name,
                                          const char *more)
{
    static command_result r; /* large: not on the stack */
    char line[TEXT], arguments[TEXT / 2];
    snprintf(arguments, sizeof arguments, t->arguments, folder);
    snprintf(line, sizeof line,
             "timeout -k 1 600 %s " WEFT_TEST_BIN
             "/%s --dtype f64 --schedule constant --run %s/%s %s %s 2>&1",
             launcher, t->program, folder, name, arguments, more);
    r = command_run_all(line);
    return &r;
}

#endif
