/* part.h (private): bytes of what a local rank holds of an input or variable, between runs, whatever memory it lies in. */
#ifndef WEFT_RUN_PART_H
#define WEFT_RUN_PART_H

#include "weft/program.h"

/* weft_part_is_open - whether weft_local gives the memory itself. Local. */
bool weft_part_is_open(const weft_program *program);

/* weft_part_put, weft_part_get - bytes [at, at + bytes) of the rank's box of it, from and to the host's memory. Local; on any
 * thread, beside others that put other bytes. What is put counts as written; a device that fails to is told by what follows. */
void weft_part_put(weft_program *program, weft_value value, int rank, int64_t at, const void *from,
                   int64_t bytes);
weft_status weft_part_get(const weft_program *program, weft_value value, int rank, int64_t at,
                          void *to, int64_t bytes, weft_error *error);

#endif
