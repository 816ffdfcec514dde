/* name.h: what a name may be: one rule for axes, dims and values.
 *
 * A name is letters, digits and _, begins with a letter or _, and has at most WEFT_MAX_NAME of them: what a layout can
 * write. Inputs, variables and named values have paths: such names, whose further parts may begin with a digit, joined
 * by one of . / - : ("block0.query", "w/m").
 */
#ifndef WEFT_NAME_H
#define WEFT_NAME_H

#include "weft/error.h"

WEFT_BEGIN

enum { WEFT_MAX_NAME = 63, WEFT_MAX_PATH = 255 };

/* weft_name_length - how many bytes at the beginning of `text` are letters of a name, however many; 0: it begins with
 * none. NULL is 0. Local. */
WEFT_API int weft_name_length(const char *text);

/* weft_name_check, weft_path_check - whether all of `name` is one; WEFT_USAGE, in a sentence that begins with `what`
 * ("dim", "input"), if it is not, or is NULL. Local. */
WEFT_API weft_status weft_name_check(const char *what, const char *name, weft_error *error);
WEFT_API weft_status weft_path_check(const char *what, const char *name, weft_error *error);

WEFT_END

#endif
