/* size.c: a struct from outside, whose first field says how large it is, as this version has it. */
#include "weft/extend/size.h"

#include <string.h>

enum {
    WEFT_LARGEST_STRUCT = 1 << 16
}; /* no struct will be: what claims to be was never given a size */

weft_status weft_size_take(const void *given, void *to, size_t least, size_t known,
                           const char *what, weft_error *error)
{
    size_t size;
    WEFT_GIVEN(given, error);
    WEFT_GIVEN(to, error);
    WEFT_GIVEN(what, error);
    memcpy(&size, given, sizeof size);
    if (size < least || size > WEFT_LARGEST_STRUCT)
        return weft_fail(
            error, WEFT_USAGE,
            "%.60s: size is %zu; begin the struct with its sizeof, which is %zu here and "
            "never was below %zu",
            what, size, known, least);
    for (size_t i = known; i < size; i++)
        if (((const char *)given)[i] != 0)
            return weft_fail(error, WEFT_USAGE,
                             "%.60s: it was compiled for a newer Weft, and byte %zu of %zu says "
                             "something that this one, whose structs have %zu, does not know; load "
                             "the newer libweft, or leave that field 0",
                             what, i, size, known);
    const size_t taken = size < known ? size : known;
    memmove(to, given, taken);
    memset((char *)to + taken, 0, known - taken);
    return WEFT_OK;
}
