/* paths.h (private): the files that a name, a pattern or a folder stands for, in the order of their names. */
#ifndef WEFT_IO_PATHS_H
#define WEFT_IO_PATHS_H

#include <stdbool.h>

#include "weft/error.h"

typedef struct weft_paths {
    char **paths; /* [n], each of malloc */
    int n;
} weft_paths;

/* weft_paths_find - the regular files; part of n_parts of them, or all when n_parts is 0. Local. returns WEFT_IO when there are none,
 * or one that is named cannot be looked at. weft_paths_free - of any state. */
weft_status weft_paths_find(const char *pattern, int part, int n_parts, weft_paths *paths,
                            weft_error *error);
void weft_paths_free(weft_paths *paths);

#endif
