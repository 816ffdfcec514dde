/* kept.h (private): index files: what a stage found out by going through all records once, kept in a folder for the next run.
 *
 * A file is called by its key, a hash of all that decides what is in it, and has a hash of its bytes. One that is damaged, cut or another's
 * is as good as none: it is made again. It gets its name when all of it is on the disk, so nobody reads half of one, and processes that
 * make the same one at once do no harm.
 */
#ifndef WEFT_IO_KEPT_H
#define WEFT_IO_KEPT_H

#include "checkpoint/hash.h"
#include "weft/error.h"

/* weft_kept_load - what is kept of that key and kind ("pack"); *bytes NULL: nothing is. Own *bytes: free. Local. */
weft_status weft_kept_load(const char *folder, const char *kind, const weft_hash *key, void **bytes,
                           size_t *n, weft_error *error);
/* weft_kept_store - the folder is made. Local. returns WEFT_IO for a disk that is full, or a folder that cannot be written */
weft_status weft_kept_store(const char *folder, const char *kind, const weft_hash *key,
                            const void *bytes, size_t n, weft_error *error);

/* Part `part` of work that threads share. Local. */
typedef weft_status (*weft_part_function)(void *argument, int64_t part, weft_error *error);
/* weft_parts_do - all parts, by so many threads. returns what the first part that failed said, whichever thread failed first. Local. */
weft_status weft_parts_do(int64_t n_parts, int n_threads, weft_part_function function,
                          void *argument, weft_error *error);

#endif
