/* number.h: numbers as programs read and write them, the same under every locale.
 *
 *     double rate;
 *     if (weft_number_read(text, &rate) == 0) return weft_fail(error, WEFT_USAGE, "\"%s\" is no number", text);
 *
 * A program that has called setlocale may have a decimal comma. strtod would then read "0.5" as 0. Options, links,
 * schedules, layouts, plans and sentences are read and written with a point all the same, by every function of Weft.
 */
#ifndef WEFT_NUMBER_H
#define WEFT_NUMBER_H

#include "weft/error.h"

WEFT_BEGIN

/* weft_number_read - the number at the beginning of a text, as strtod reads it where nobody has set a locale. Local.
 *
 * number   out; 0 where there is none; may be NULL
 * returns  how many letters it has, with blanks before it; 0: there is none, or text is NULL
 */
WEFT_API int weft_number_read(const char *text, double *number);

/* weft_time_text - a time for people: "12.3 ms", in s, ms or us. Local.
 *
 * text     [WEFT_TIME_TEXT] out
 * returns  text; "" where that is NULL */
enum { WEFT_TIME_TEXT = 24 };
WEFT_API const char *weft_time_text(double seconds, char *text);

WEFT_END

#endif
