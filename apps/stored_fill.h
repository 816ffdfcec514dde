/* stored_fill.h: a program's variables from a checkpoint on disk, which is only read, one at a time: for programs that have fewer
 * variables than what was trained, or others of the same names.
 */
#ifndef WEFT_APPS_STORED_FILL_H
#define WEFT_APPS_STORED_FILL_H

#include "weft/checkpoint.h"

/* app_stored_find - the index of the tensor of that name; -1: there is none. Local. */
int app_stored_find(const weft_stored *stored, const char *name);
/* app_stored_fits - whether a stored tensor has the variable's dims, and its dtype, or both are floats. Local. */
bool app_stored_fits(const weft_stored_tensor *t, weft_value variable);
/* app_stored_fill - a variable from a tensor that fits, hashes checked. Collective over the job; agrees on failure. */
weft_status app_stored_fill(const weft_stored *stored, int index, weft_program *program,
                            weft_value variable, weft_error *error);

#endif
