/* own_folder.h: a folder of a test's own, files in it by their names, and its removal. A test for which a format is missing has a
 * main that says so. */
#ifndef WEFT_TESTS_OWN_FOLDER_H
#define WEFT_TESTS_OWN_FOLDER_H

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static char folder[64];

static inline bool own_folder_open(const char *name)
{
    snprintf(folder, sizeof folder, "/tmp/weft-%.32s-XXXXXX", name);
    return CHECK(mkdtemp(folder) != NULL);
}

static inline void own_folder_close(void)
{
    char line[80];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    CHECK_EQ_INT(system(line), 0);
}

/* Good for the next seven. */
static inline const char *path_of(const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void write_bytes(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(path_of(name), "wb");
    CHECK(file != NULL && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

/* In place of all else in the file. */
#define MAIN_THAT_IS_SKIPPED(why)                                                                  \
    int main(void)                                                                                 \
    {                                                                                              \
        weft_test_skip(why);                                                                       \
        return weft_test_report();                                                                 \
    }

#endif
