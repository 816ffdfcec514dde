/* json: numbers, and Jansson out of memory.
 *
 * It tells nobody of that: it takes good text for bad, and leaves things out of what it prints. So its
 * allocator remembers, and a program that has read or said less than it should ends with the
 * sentence.
 */
#include "json.h"

#include <math.h>
#include <stdlib.h>

static _Atomic size_t refused; /* bytes; 0: never */

static void *take(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) refused = bytes;
    return memory;
}

/* Before anything makes JSON. */
__attribute__((constructor)) static void remember(void)
{
    json_set_alloc_funcs(take, free);
}

weft_status app_json_status(weft_error *error)
{
    const size_t bytes = refused;
    if (bytes == 0) return WEFT_OK;
    return weft_fail(error, WEFT_MEMORY, "could not allocate %zu bytes for JSON: out of memory",
                     bytes);
}

json_t *app_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}
