/* shape: named, sized dims; and texts built piece by piece. */
#include "weft/layout.h"

#include <stdarg.h>
#include <string.h>

#include "print.h"

weft_print weft_print_begin(char *text, size_t bytes)
{
    if (bytes > 0) text[0] = '\0';
    return (weft_print){.text = text, .bytes = bytes};
}

void weft_print_more(weft_print *print, const char *format, ...)
{
    bool has_room = (size_t)print->length < print->bytes;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(has_room ? print->text + print->length : NULL,
                           has_room ? print->bytes - (size_t)print->length : 0, format, arguments);
    va_end(arguments);
    if (length > 0) print->length += length;
}

int weft_shape_find(const weft_shape *shape, const char *name)
{
    for (int d = 0; d < shape->n_dims; d++)
        if (strcmp(shape->dims[d].name, name) == 0) return d;
    return -1;
}

int64_t weft_shape_count(const weft_shape *shape)
{
    int64_t count = 1;
    for (int d = 0; d < shape->n_dims; d++)
        if (__builtin_mul_overflow(count, shape->dims[d].size, &count)) count = INT64_MAX;
    return count;
}

int weft_shape_print(const weft_shape *shape, char *text, size_t bytes)
{
    weft_print print = weft_print_begin(text, bytes);
    weft_print_more(&print, "[");
    for (int d = 0; d < shape->n_dims; d++)
        weft_print_more(&print, "%s%s:%lld", d > 0 ? ", " : "", shape->dims[d].name,
                        (long long)shape->dims[d].size);
    weft_print_more(&print, "]");
    return print.length;
}
