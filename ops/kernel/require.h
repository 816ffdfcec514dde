/* require.h: what a condition that does not hold says, for kernels of all devices. */
#ifndef WEFT_REQUIRE_H
#define WEFT_REQUIRE_H

#include <stdio.h>
#include <string.h>

#include "kernel.h"

/* The run ends with the sentence, "9 of {}" with the number in place of the braces; number: [1], where the host sees it; NULL: there is
 * none. */
static inline void weft_require_fail(const weft_call *call, const void *number)
{
    const char *sentence = ((const weft_require_attributes *)call->attributes)->sentence;
    const char *braces = strstr(sentence, "{}");
    char digits[40], text[480];
    if (braces == NULL || number == NULL) {
        weft_fail(call->error, WEFT_USAGE, "%s", sentence);
        return;
    }
    const weft_dtype dtype = call->in[2].dtype;
    snprintf(digits, sizeof digits, weft_dtype_is_float(dtype) ? "%.9g" : "%.0f",
             weft_dtype_get(dtype, number, 0));
    snprintf(text, sizeof text, "%.*s%s%s", (int)(braces - sentence), sentence, digits, braces + 2);
    weft_fail(call->error, WEFT_USAGE, "%s", text);
}

#endif
