/* segment: memory of this process that others on its host can see. */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "recorder.h"

enum { HEADER = 4096 }; /* before the memory: the token */

/* No stdio: it wants memory, and who was refused it would take his host for another one. */
static uint64_t digest_host(void)
{
    char text[256] = "", *end = text;
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n_read = file >= 0 ? read(file, text, 64) : 0;
    if (file >= 0) close(file);
    if (n_read > 0) end += n_read;
    const ssize_t n = readlink("/proc/self/ns/ipc", end, 64);
    return weft_digest(0, text, (size_t)(end - text) + (size_t)(n > 0 ? n : 0));
}

static char *attach(int id)
{
    char *memory = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    return memory == (char *)-1 ? NULL : memory;
}

/* Marked for removal at once: on Linux it can still be attached by its number while somebody has it. */
char *weft_segment_make(int64_t bytes, weft_segment_ticket *t)
{
    const size_t room = (size_t)bytes + HEADER;
    *t = (weft_segment_ticket){.host = digest_host(), .id = -1};
    t->id = shmget(IPC_PRIVATE, room, IPC_CREAT | 0600);
    char *memory = attach(t->id);
    t->errno_ = memory == NULL ? errno : 0;
    if (t->id >= 0) shmctl(t->id, IPC_RMID, NULL);
    if (memory == NULL) {
        t->id = -1;
        return NULL;
    }
    (void)madvise(memory, room, MADV_HUGEPAGE); /* advice */
    const int64_t facts[] = {getpid(), weft_clock_ns(), t->id};
    t->token = weft_digest(0, facts, sizeof facts);
    memcpy(memory, &t->token, sizeof t->token);
    return memory + HEADER;
}

char *weft_segment_attach(const weft_segment_ticket *t)
{
    char *memory = attach(t->id);
    if (memory == NULL) return NULL;
    if (memcmp(memory, &t->token, sizeof t->token) == 0) return memory + HEADER;
    shmdt(memory);
    return NULL;
}

void weft_segment_leave(char *memory)
{
    if (memory != NULL) shmdt(memory - HEADER);
}
