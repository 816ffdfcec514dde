/* require.h: what a condition that does not hold says, for kernels of all devices. */
#ifndef WEFT_REQUIRE_H
#define WEFT_REQUIRE_H

#include <string.h>

#include "kernel.h"

/* The run ends with the sentence, "9 of {}" with the number in place of the braces; number: [1], where the host sees it; NULL: there is
 * none. */
static inline void weft_require_fail(const weft_call *call, const void *number)
{
    const char *sentence = ((const weft_require_attributes *)call->attributes)->sentence;
    const char *braces = strstr(sentence, "{}");
    if (braces == NULL || number == NULL) {
        weft_fail(call->error, WEFT_USAGE, "%s", sentence);
        return;
    }
    const weft_dtype dtype = call->in[2].dtype;
    weft_fail(call->error, WEFT_USAGE, weft_dtype_is_float(dtype) ? "%.*s%.9g%s" : "%.*s%.0f%s",
              (int)(braces - sentence), sentence, weft_dtype_get(dtype, number, 0), braces + 2);
}

#endif
