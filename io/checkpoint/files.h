/* files.h (private): directories and files that must be on the disk, not only on their way to it.
 * All Local. */
#ifndef WEFT_CHECKPOINT_FILES_H
#define WEFT_CHECKPOINT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "weft/error.h"

enum { WEFT_PATH_BYTES = 4096 };

/* printf into path [WEFT_PATH_BYTES]; WEFT_USAGE when it does not fit. */
weft_status weft_path(char *path, weft_error *error, const char *format, ...) WEFT_FORMAT(3, 4);

/* weft_fail_io - WEFT_IO, "cannot <verb> <path>", the reason in errno, and what is free when room is
 * missing; wanted: bytes, 0 when they are not known. */
weft_status weft_fail_io(weft_error *error, const char *verb, const char *path, int64_t wanted);

/* A directory and those above it; one that is there already is fine. */
weft_status weft_directory_make(const char *path, weft_error *error);
/* weft_directory_anchor - until the names that lead to it are on the disk, whoever made them. */
weft_status weft_directory_anchor(const char *path, weft_error *error);
/* Until the names in it are on the disk. */
weft_status weft_directory_sync(const char *path, weft_error *error);
/* A directory and all that is in it; no directory is fine. Links are removed, not followed. */
weft_status weft_directory_remove(const char *path, weft_error *error);
bool weft_path_exists(const char *path);

/* weft_bytes_write - all of `bytes` at `at`; WEFT_IO names the path and what the disk has left. */
weft_status weft_bytes_write(int file, const char *path, const void *from, int64_t bytes,
                             int64_t at, weft_error *error);
/* weft_bytes_read - all of `bytes` at `at`; WEFT_CORRUPT when the file ends before or the disk has
 * lost them; WEFT_IO when nothing is known about them. */
weft_status weft_bytes_read(int file, const char *path, void *to, int64_t bytes, int64_t at,
                            weft_error *error);
weft_status weft_file_sync(int file, const char *path, weft_error *error);
/* A regular file, no link, for reading; WEFT_CORRUPT when there is none. bytes out: how long it is.
 */
weft_status weft_stored_file_open(const char *path, int *file, int64_t *bytes, weft_error *error);
/* A whole new file, on the disk when this returns: written under another name, then renamed. */
weft_status weft_file_put(const char *directory, const char *name, const char *text, size_t bytes,
                          weft_error *error);

#endif
