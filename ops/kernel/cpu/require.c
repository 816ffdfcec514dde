/* require.c: a condition that has to hold, looked at when its turn comes. */
#include "cpu/kernels.h"

#include <stdio.h>
#include <string.h>

/* "9 of {}" with the number in place of the braces. */
static void say(char *text, size_t room, const char *sentence, const weft_view *number)
{
    const char *braces = strstr(sentence, "{}");
    char digits[40];
    if (braces == NULL || number == NULL) {
        snprintf(text, room, "%s", sentence);
        return;
    }
    snprintf(digits, sizeof digits, weft_dtype_is_float(number->dtype) ? "%.9g" : "%.0f",
             weft_dtype_get(number->dtype, number->data, 0));
    snprintf(text, room, "%.*s%s%s", (int)(braces - sentence), sentence, digits, braces + 2);
}

void weft_require_cpu(const weft_call *call)
{
    const weft_require_attributes *attributes = call->attributes;
    char text[480];
    weft_copy_cpu(call);
    if (*(const int32_t *)call->in[1].data != 0) return;
    say(text, sizeof text, attributes->sentence, call->n_in > 2 ? &call->in[2] : NULL);
    weft_fail(call->error, WEFT_USAGE, "%s", text);
}

const weft_kernel weft_kernel_require = {
    .size = sizeof(weft_kernel),
    .name = "require",
    .device = WEFT_CPU,
    .dtypes = WEFT_ANY_DTYPE,
    .launch = weft_require_cpu,
};
