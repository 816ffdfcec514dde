/* shape: named, sized dims; and texts built piece by piece. */
#include "weft/layout.h"

#include <stdarg.h>
#include <string.h>

#include "print.h"
#include "clamp.h"

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

void weft_print_text(weft_print *print, const char *text)
{
    const size_t length = strlen(text), at = (size_t)print->length;
    if (at + 1 < print->bytes) {
        const size_t room = print->bytes - 1 - at, taken = length < room ? length : room;
        memcpy(print->text + at, text, taken);
        print->text[at + taken] = '\0';
    }
    print->length += (int)length;
}

void weft_print_number(weft_print *print, int64_t number)
{
    char text[24], *at = text + sizeof text - 1;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) *--at = '-';
    weft_print_text(print, at);
}

/* Asked for every dim of every op: most names are one text, or differ in the first letter. */
static bool same_name(const char *a, const char *b)
{
    return a == b || (a[0] == b[0] && strcmp(a, b) == 0);
}

int weft_shape_find(const weft_shape *shape, const char *name)
{
    for (int d = 0; name != NULL && d < weft_dims_of(shape); d++)
        if (same_name(weft_dim_name(shape, d), name)) return d;
    return -1;
}

int64_t weft_shape_count(const weft_shape *shape)
{
    int64_t count = 1;
    for (int d = 0; d < weft_dims_of(shape); d++)
        if (__builtin_mul_overflow(count, shape->dims[d].size, &count)) return INT64_MAX;
    return count < 0 ? 0 : count;
}

static const int64_t max_size = (int64_t)1 << 40;   /* of one dim     */
static const double max_count = 1125899906842624.0; /* 2^50 elements */

weft_status weft_shape_check(const weft_shape *shape, weft_error *error)
{
    if (shape == NULL) return weft_fail(error, WEFT_USAGE, "the shape is NULL; it has to be given");
    if (shape->n_dims < 0 || shape->n_dims > WEFT_MAX_DIMS)
        return weft_fail(error, WEFT_USAGE,
                         "a tensor of %d dims; the most is %d. Merge neighbours with weft_reshape",
                         shape->n_dims, WEFT_MAX_DIMS);
    double count = 1;
    for (int d = 0; d < shape->n_dims; d++) {
        const weft_dim *dim = &shape->dims[d];
        if (dim->name == NULL || dim->name[0] == 0)
            return weft_fail(error, WEFT_USAGE, "dim number %d has no name; every dim needs one",
                             d);
        if (dim->size < 1 || dim->size > max_size)
            return weft_fail(error, WEFT_USAGE,
                             "dim %s has size %lld; a size is at least 1 and at most 2^40",
                             dim->name, (long long)dim->size);
        for (int e = 0; e < d; e++)
            if (strcmp(shape->dims[e].name, dim->name) == 0)
                return weft_fail(
                    error, WEFT_USAGE,
                    "dim %s stands twice in one tensor (sizes %lld and %lld); rename one",
                    dim->name, (long long)shape->dims[e].size, (long long)dim->size);
        count *= (double)dim->size;
    }
    if (count > max_count)
        return weft_fail(error, WEFT_USAGE,
                         "a tensor of %.3g elements; the most is 2^50. Make a dim smaller", count);
    return WEFT_OK;
}

void weft_print_dim(weft_print *print, const weft_shape *shape, int d)
{
    weft_print_text(print, d > 0 ? ", " : "");
    weft_print_text(print, weft_dim_name(shape, d));
    weft_print_text(print, ":");
    weft_print_number(print, shape->dims[d].size);
}

int weft_shape_print(const weft_shape *shape, char *text, size_t bytes)
{
    weft_print print = weft_print_begin(text, text != NULL ? bytes : 0);
    weft_print_text(&print, "[");
    for (int d = 0; d < weft_dims_of(shape); d++)
        weft_print_dim(&print, shape, d);
    weft_print_text(&print, "]");
    return print.length;
}
