/* programs.h (private): where the programs are that read files of others in processes of their own. */
#ifndef WEFT_IO_PROGRAMS_H
#define WEFT_IO_PROGRAMS_H

#include <stddef.h>

#include "weft/error.h"

enum { WEFT_PROGRAM_PATH = 4096 };

/* weft_program_find - "weft-read-files": in the folder that WEFT_FILES_PATH names; else beside the library (or program) that this is
 * part of, or where programs are for that. Local.
 *
 * path, need  whose file, and what it is: "a PNG image", for the sentence
 * package     that has it
 * returns     WEFT_USAGE where it is not there */
weft_status weft_program_find(const char *name, const char *package, const char *path,
                              const char *need, char program[WEFT_PROGRAM_PATH], weft_error *error);

#endif
