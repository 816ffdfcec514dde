/* dataset.h (private): a set made of a chain, and the files that sources read.
 *
 * Sources and stages are chains (chain.h). A dataset is bound to a program: its feed (feed.c) alone knows programs.
 */
#ifndef WEFT_IO_DATASET_H
#define WEFT_IO_DATASET_H

#include "weft/data.h"
#include "weft/io.h"

/* weft_dataset_make - takes over the chain, also on failure, and leaves it NULL; its facts are the set's. Shuffled by the seed, or in
 * order. Local. */
weft_status weft_dataset_make(weft_chain **chain, bool is_shuffled, uint64_t seed,
                              weft_dataset **dataset, weft_error *error);

/* weft_dataset_grew - whether of these facts one tells the beginning of what the set holds now; text: in words, "" if none does. Local. */
bool weft_dataset_grew(const weft_dataset *dataset, const char *facts, char *text, size_t bytes);

/* weft_file_open - a regular file for reading. Local. returns WEFT_IO with the reason. */
weft_status weft_file_open(const char *path, int *file, int64_t *bytes, weft_error *error);
/* weft_file_read - exactly `bytes` bytes at `at`; WEFT_IO when the file has become shorter. Local.
 */
weft_status weft_file_read(int file, const char *path, void *to, int64_t bytes, int64_t at,
                           weft_error *error);
/* weft_kind_check - weft_file_check of a file of `bytes` that is open. Local. */
weft_status weft_kind_check(int file, const char *path, int64_t bytes, weft_file_use use,
                            weft_error *error);

#endif
