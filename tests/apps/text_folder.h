/* text_folder.h: a folder of a test program's own, with a text to learn in it, and the environment that mpirun wants. */
#ifndef WEFT_TESTS_TEXT_FOLDER_H
#define WEFT_TESTS_TEXT_FOLDER_H

#include "command.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static char folder[64]; /* of this test program */

/* folder/text.txt. */
static inline bool text_folder_open(const char *parent, const char *name)
{
    char path[1024];
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    snprintf(folder, sizeof folder, "%s/weft-%s-XXXXXX", parent, name);
    if (mkdtemp(folder) == NULL) return false;
    snprintf(path, sizeof path, "%s/text.txt", folder);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    for (int i = 0; i < 8000; i++)
        fputc("the quick brown fox jumps over the lazy dog; "[(i + i / 97) % 45], file);
    return fclose(file) == 0;
}

/* A line of shell in the folder, what it says to stdout and stderr; as long as no other one runs. */
static inline const command_result *text_folder_run(const char *line)
{
    static command_result last; /* large: not on the stack */
    char full[16384];
    snprintf(full, sizeof full, "cd %s && ( %s ) 2>&1", folder, line);
    last = command_run_all(full);
    return &last;
}

/* The losses of a metrics file, the first `most`; returns how many lines had one. */
static inline int text_folder_losses(const char *path, double *losses, int most)
{
    char line[2048];
    int n = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    while (n < most && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "\"loss\":");
        if (at != NULL) losses[n++] = atof(at + strlen("\"loss\":"));
    }
    fclose(file);
    return n;
}

static inline void text_folder_close(void)
{
    char line[1024];
    snprintf(line, sizeof line, "rm -r %s", folder);
    CHECK_EQ_INT(command_run(line).status, 0);
}

#endif
