/* print.h: build a text piece by piece, with snprintf's rules: never past the end, and the length
 * it wants. */
#ifndef WEFT_LAYOUT_PRINT_H
#define WEFT_LAYOUT_PRINT_H

#include <stdint.h>

#include "weft/layout.h"

typedef struct weft_print {
    char *text;
    size_t bytes;
    int length; /* without the final 0; may be more than fits */
} weft_print;

/* text may be NULL when bytes is 0. */
weft_print weft_print_begin(char *text, size_t bytes);
void weft_print_more(weft_print *print, const char *format, ...) WEFT_FORMAT(2, 3);
/* The same for one text or one number, without a format to be read: plans are printed to be compared, every one. */
void weft_print_text(weft_print *print, const char *text);
void weft_print_number(weft_print *print, int64_t number);
/* Dim d of a shape, with what stands before it: ", batch:64". */
void weft_print_dim(weft_print *print, const weft_shape *shape, int d);

#endif
