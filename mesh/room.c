/* room: how much memory the host can still give.
 *
 * The system grants more memory than there is, and ends whoever uses it. So it is asked what there is before much is taken.
 */
#include "mesh_internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No stdio: this is asked where memory may be short. false: there is no such file. */
static bool read_text(const char *path, char *text, size_t room)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file >= 0 ? read(file, text, room - 1) : -1;
    if (file >= 0) close(file);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Of a line "MemAvailable:   123456 kB"; -1: there is none. */
static int64_t find_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line != NULL ? strtoll(line + strlen(name), NULL, 10) * 1024 : -1;
}

int64_t weft_host_room(void)
{
    char text[2048];
    if (!read_text("/proc/meminfo", text, sizeof text)) return -1;
    const int64_t available = find_bytes(text, "MemAvailable:"),
                  swap = find_bytes(text, "SwapFree:");
    if (available < 0) return -1;
    int64_t room = available + (swap > 0 ? swap : 0);
    if (read_text("/sys/fs/cgroup/memory.max", text, sizeof text)) { /* a container's; or "max" */
        const int64_t limit = strtoll(text, NULL, 10);
        if (limit > 0 && limit < room) room = limit;
    }
    return room;
}
