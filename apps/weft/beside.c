/* beside: programs that stand beside this one. */
#include "beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void find_program(const char *name, char *path, size_t room)
{
    char own[4096];
    const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    snprintf(path, room, "%s", name);
    if (strchr(name, '/') || n <= 0) return;
    own[n] = '\0';
    snprintf(path, room, "%.*s/%s", (int)(strrchr(own, '/') - own), own, name);
    if (access(path, X_OK) != 0) snprintf(path, room, "%s", name);
}
