/* cache.h: compiled kernels on disk, by the whole text that they were compiled from.
 *
 * One file each in $XDG_CACHE_HOME/weft, else ~/.cache/weft; where there can be none, nothing is kept.
 * A file is written beside its name and then renamed, so that any number of processes may read and write at once. A file that is
 * short, damaged or another's is as if it were not there.
 */
#ifndef WEFT_CUDA_CACHE_H
#define WEFT_CUDA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits: of names and against damage; that a file is the right one is seen by its key. */
uint64_t cuda_hash(uint64_t hash, const void *data, size_t bytes);
enum { CUDA_HASH_DIGITS = 16 };
#define CUDA_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* cuda_cache_read - what was kept under a key, given back by free; false: nothing. */
bool cuda_cache_read(const char *key, void **image, size_t *bytes);
/* cuda_cache_write - keep it, if that can be. */
void cuda_cache_write(const char *key, const void *image, size_t bytes);

#endif
