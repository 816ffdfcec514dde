/* whole_file.h: a file that is there whole, or as it was before: written beside its place, and renamed when all of it is there.
 *
 *     app_whole_file file;
 *     WEFT_TRY(app_whole_open(&file, "machine.json", error));
 *     status = ... fprintf(file.stream, ...);
 *     WEFT_TRY(app_whole_close(&file, status == WEFT_OK, error));
 */
#ifndef WEFT_APPS_WHOLE_FILE_H
#define WEFT_APPS_WHOLE_FILE_H

#include <stdio.h>

#include "weft/error.h"

typedef struct app_whole_file {
    char path[4096], beside[4104];
    FILE *stream;
} app_whole_file;

/* app_whole_open - Local. returns WEFT_USAGE for a name that is too long, or is of something that is no file; WEFT_IO where it
 * cannot be written */
weft_status app_whole_open(app_whole_file *file, const char *path, weft_error *error);
/* app_whole_close - keeps: all was written; else nothing is left, and what was there before stays. Local. returns WEFT_IO, with
 * the path, where the last of it cannot be written */
weft_status app_whole_close(app_whole_file *file, bool keeps, weft_error *error);

#endif
