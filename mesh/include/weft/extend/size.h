/* size.h: structs that come from outside, of an older Weft or a newer one.
 *
 *     static const weft_op softsign = {sizeof softsign, "softsign", 1, ...};
 *
 * The first field of each says how large it was to the compiler that made it. Structs grow at their ends, and what a field
 * means that is 0 stays what it was. So an older struct is read up to its size, and the rest is 0; a newer one is taken if
 * it says no more than this Weft knows. Local.
 */
#ifndef WEFT_EXTEND_SIZE_H
#define WEFT_EXTEND_SIZE_H

#include "weft/error.h"

/* The size of a struct that ends with field `last`: what a version had that knew no more. */
#define WEFT_SIZE_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* A struct that ends with padding would get its next field there, where plug-ins that were compiled before have anything. So
 * each ends with a field: with spare bytes, if need be. */
#define WEFT_SIZE_IS_WHOLE(type, last)                                                             \
    _Static_assert(WEFT_SIZE_TO(type, last) == sizeof(type), #type " ends with padding")

WEFT_BEGIN

/* weft_size_take - a struct from outside as this Weft has it.
 *
 * given  begins with its size
 * to     [known] gets what is given, then zeros; unchanged on failure
 * least  [bytes] what every version has
 * known  [bytes] what this version has
 * what   begins the sentence: "op"
 * returns WEFT_USAGE for a size below `least` or beyond 64 KiB, and for bytes past `known` that are not 0
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_size_take(const void *given, void *to, size_t least,
                                                    size_t known, const char *what,
                                                    weft_error *error);

WEFT_END

#endif
