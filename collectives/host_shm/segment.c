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
enum { HUGE_PAGE = 2 << 20 };
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

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

static char *attach_at(int id, char *at, int flags)
{
    char *memory = shmat(id, at, flags);
    return memory == (char *)-1 ? NULL : memory;
}

/* A large one where large pages may begin: in the middle of room that is taken before, and whose ends are given back. */
static char *attach_aligned(int id, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE); /* 64 KiB on some */
    const size_t room = (bytes + page - 1) / page * page, taken = room + HUGE_PAGE;
    char *from = mmap(NULL, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (from == MAP_FAILED) return attach_at(id, NULL, 0);
    const size_t before = (HUGE_PAGE - (uintptr_t)from % HUGE_PAGE) % HUGE_PAGE;
    char *memory = attach_at(id, from + before, SHM_REMAP);
    if (memory == NULL) {
        munmap(from, taken);
        return attach_at(id, NULL, 0);
    }
    if (before > 0) munmap(from, before);
    munmap(from + before + room, taken - before - room);
    return memory;
}

static char *attach(int id)
{
    struct shmid_ds about;
    if (id < 0) return NULL;
    if (shmctl(id, IPC_STAT, &about) != 0 || about.shm_segsz < HUGE_PAGE)
        return attach_at(id, NULL, 0);
    return attach_aligned(id, about.shm_segsz);
}

/* Where the system gives what processes share no large pages by itself (shmem_enabled: never, as systems come), it makes them
 * of memory that it is asked to. Advice: a refusal costs speed only. */
static void ask_for_huge_pages(char *memory, size_t bytes)
{
    if (bytes < HUGE_PAGE) return;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at + HUGE_PAGE <= bytes; at += HUGE_PAGE)
        memory[at] = 0; /* of nothing at all none is made */
    (void)madvise(memory, bytes, MADV_COLLAPSE);
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
    ask_for_huge_pages(memory, room);
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
