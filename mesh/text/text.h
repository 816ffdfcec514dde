/* text.h: text that is written the same under every locale; weft/number.h reads it.
 *
 * These functions print all texts with a fraction, and all texts that other ranks compare: ranks of one job, and the
 * programs that read their output, need not have one locale.
 */
#ifndef WEFT_MESH_TEXT_H
#define WEFT_MESH_TEXT_H

#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

#include "weft/number.h"

/* weft_text_plain - from here to weft_text_end this thread prints, and compares letters, as where nobody has set a locale:
 * around code that prints much, or by functions of others. Local. */
locale_t weft_text_plain(void);
void weft_text_end(locale_t before);

/* As snprintf and vsnprintf. Local. */
int weft_text_format(char *text, size_t bytes, const char *format, ...) WEFT_FORMAT(3, 4);
int weft_text_formatv(char *text, size_t bytes, const char *format, va_list arguments);

/* weft_text_is_alike - equal but for capitals of a to z. Local. */
bool weft_text_is_alike(const char *a, const char *b);

#endif
