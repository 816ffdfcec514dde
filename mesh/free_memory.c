/* free_memory: how much memory the host can still give.
 *
 * The system grants more memory than there is, and ends whoever uses it. So it is asked what there is before much is taken.
 */
#include "mesh_internal.h"

#include <stdlib.h>
#include <string.h>

/* Of a line "MemAvailable:   123456 kB"; -1: there is none. */
static int64_t find_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line != NULL ? strtoll(line + strlen(name), NULL, 10) * 1024 : -1;
}

int64_t weft_host_free_memory(void)
{
    char text[2048];
    if (!weft_read_text("/proc/meminfo", text, sizeof text)) return -1;
    const int64_t available = find_bytes(text, "MemAvailable:"),
                  swap = find_bytes(text, "SwapFree:");
    if (available < 0) return -1;
    int64_t room = available + (swap > 0 ? swap : 0);
    const int64_t limit = weft_machine_info()->memory_limit; /* a container's */
    if (limit > 0 && limit < room) room = limit;
    return room;
}
