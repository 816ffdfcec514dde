/* library: the functions of a library that is loaded at run time, put into a table of pointers.
 *
 *     static const cuda_entry entries[] = {{"ncclGetVersion", offsetof(table, ncclGetVersion)}, ...};
 *     const char *missing = cuda_library_fill("libnccl.so.2", entries, n, &table);
 */
#ifndef WEFT_CUDA_LIBRARY_H
#define WEFT_CUDA_LIBRARY_H

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

#endif
