/* saved.h: `weft run`: a saved program (weft_graph_save) run without the code that built it: its parts. */
#ifndef WEFT_APPS_SAVED_H
#define WEFT_APPS_SAVED_H

#include <jansson.h>

#include "opened.h"
#include "weft/data.h"

extern const option_table run_table;
int run_main(int n, char **arguments);

/* ---- what goes in (givens.c) --------------------------------------------------------------------- */

/* givens_write - write what --input names, NAME=FILE.npy or NAME=NUMBER, into inputs and variables. A word's file is read, and checked
 * to be the tensor's, before any is written. Collective over the job; agrees on failure. */
weft_status givens_write(const settings *s, weft_program *program, weft_error *error);
/* givens_names - whether --input names that. Local. */
bool givens_names(const settings *s, const char *name);
/* givens_check - every input that the program needs is named by --input, or is a field of --data. data: NULL: none. Local. */
weft_status givens_check(const settings *s, const weft_saved *saved, weft_program *program,
                         const weft_chain *data, weft_error *error);

/* ---- what comes out (outputs.c) ------------------------------------------------------------------ */

typedef struct outputs outputs; /* opaque */

/* outputs_open - of a program's outputs. Where --output names a folder, the root makes it. Collective over the job. Own it:
 * outputs_close. */
weft_status outputs_open(const settings *s, const weft_saved *saved, weft_program *program,
                         outputs **o, weft_error *error);
/* outputs_take - after a step: scalars are told, rows of a batch go to their files. Collective over the job. */
weft_status outputs_take(outputs *o, int64_t step, weft_error *error);
/* outputs_end - after the last: what is told at the end, files get their names. Collective over the job. */
weft_status outputs_end(outputs *o, weft_error *error);
/* outputs_json - {"scalars": ..., "outputs": ...}; own it. Local. */
json_t *outputs_json(const outputs *o);
void outputs_close(outputs **o);

/* ---- files of NumPy (npy.c) ---------------------------------------------------------------------- */

typedef struct npy npy; /* opaque: one that is being written */

/* npy_create - a file for tensors of a shape; bf16 is written as f32. Own it, also on failure: npy_end or npy_drop. Local. */
weft_status npy_create(const char *path, weft_dtype dtype, const weft_shape *shape, npy **file,
                       weft_error *error);
/* npy_put - one more of them, behind the others along its first dim; of a scalar there is one. Local. */
weft_status npy_put(npy *file, const void *numbers, weft_error *error);
/* npy_end - the file is whole and gets its name. Local. */
weft_status npy_end(npy **file, weft_error *error);
/* npy_drop - give it up: no file is left. NULL: nothing. Local. */
void npy_drop(npy **file);

#endif
