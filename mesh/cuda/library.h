/* library: the functions of a library that is loaded at run time, put into a table of pointers.
 *
 *     static const cuda_entry entries[] = {{"ncclGetVersion", offsetof(table, ncclGetVersion)}, ...};
 *     const char *missing = cuda_library_fill("libnccl.so.2", entries, n, &table);
 */
#ifndef WEFT_CUDA_LIBRARY_H
#define WEFT_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cuda_entry {
    const char *name;
    size_t offset; /* in the table, of a pointer to a function */
} cuda_entry;

/* cuda_library_fill - load `file`, for the rest of the process, and look all its functions up. Local.
 *
 * returns  NULL: all are there; `file` itself: it cannot be loaded, and dlerror says why; else the name of a function that it
 *          lacks
 */
const char *cuda_library_fill(const char *file, const cuda_entry *entries, size_t n, void *table);

/* What is told of a library that may be there (`weft info`). Versions: 10000 major + 100 minor + patch, or, of
 * one below 10000, 1000 major. */
typedef struct cuda_library_fact {
    const char *name, *file;
    int version,
        built; /* 0: it cannot be loaded; and that of the headers: of another major one it is left alone */
    const char *work; /* what plain kernels do without it */
} cuda_library_fact;
typedef cuda_library_fact (*cuda_library_look)(void);

/* cuda_library_add - one more library to be told of, up to four; `look` loads it. cuda_library_tell - all of them, each behind a comma.
 * Local. */
void cuda_library_add(cuda_library_look look);
void cuda_library_tell(char *text, size_t room);
/* Whether calls of the headers of version `built` may be made to it; 0: it is not there, and they may not. */
bool cuda_library_fits(int version, int built);

#endif
