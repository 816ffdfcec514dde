/* shared: staging memory that all processes of one host can read: a System V segment each, which
 * has no name and is gone with the last process that sees it, however that ends. Unlike files for
 * the same purpose it needs no room in /dev/shm.
 */
#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "hash.h"

enum { HEADER = 4096 }; /* before the staging memory: the token of its owner */

/* What a process tells of its segment. */
typedef struct ticket {
    weft_hash host;  /* the machine since it was started, and its name space for segments */
    weft_hash token; /* stands at the segment's begin: a wrong one is not looked into      */
    int32_t id;      /* -1: refused */
} ticket;

static weft_hash hash_host(void)
{
    char text[256] = "", *end = text;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        end += fread(text, 1, 64, file);
        fclose(file);
    }
    const ssize_t n = readlink("/proc/self/ns/ipc", end, 64);
    return weft_hash_of(text, (size_t)(end - text) + (size_t)(n > 0 ? n : 0));
}

static char *attach(int id)
{
    char *memory = shmat(id, NULL, 0);
    return memory == (char *)-1 ? NULL : memory;
}

/* Marked for removal at once: on Linux it can still be attached by its number while somebody has
 * it. */
static char *make_segment(int64_t bytes, ticket *own)
{
    own->host = hash_host();
    own->id = shmget(IPC_PRIVATE, (size_t)bytes + HEADER, IPC_CREAT | 0600);
    char *memory = own->id < 0 ? NULL : attach(own->id);
    if (own->id >= 0) shmctl(own->id, IPC_RMID, NULL);
    if (memory == NULL) {
        own->id = -1;
        return NULL;
    }
    (void)madvise(memory, (size_t)bytes + HEADER, MADV_HUGEPAGE); /* advice */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t facts[] = {getpid(), now.tv_sec, now.tv_nsec, own->id};
    own->token = weft_hash_of(facts, sizeof facts);
    memcpy(memory, &own->token, sizeof own->token);
    return memory;
}

/* One more process of this host. False: it should be in sight, and is not. */
static bool add(weft_shared *s, int process, const ticket *t, char *memory)
{
    if (memory == NULL && t->id >= 0) memory = attach(t->id);
    if (memory == NULL) return false;
    s->processes[s->n] = process;
    s->memory[s->n++] = memory + HEADER;
    return memcmp(memory, &t->token, sizeof t->token) == 0;
}

static bool look_around(weft_shared *s, const weft_peers *peers, const ticket *all, char *own)
{
    bool is_good = true;
    for (int p = 0; p < peers->n; p++) {
        if (!weft_hash_equal(&all[p].host, &all[peers->self].host)) continue;
        if (p == peers->self) s->self = s->n;
        is_good &= add(s, p, &all[p], p == peers->self ? own : NULL);
    }
    return is_good;
}

static weft_status make(weft_shared *s, const weft_peers *peers, int64_t bytes, weft_error *error)
{
    ticket own = {.id = -1}, *all = calloc((size_t)peers->n, sizeof *all);
    s->processes = calloc((size_t)peers->n, sizeof *s->processes);
    s->memory = calloc((size_t)peers->n, sizeof *s->memory);
    const bool has_room = all && s->processes && s->memory;
    char *memory = has_room ? make_segment(bytes, &own) : NULL;
    weft_error short_of = {.rank = -1};
    if (!has_room) weft_fail_memory(&short_of, (size_t)peers->n * sizeof *all);
    weft_status status = weft_world_agree(&short_of);
    if (status != WEFT_OK && error) *error = short_of;
    if (status == WEFT_OK) status = weft_peers_gather(peers, &own, sizeof own, all, error);
    const bool is_good = status == WEFT_OK && look_around(s, peers, all, memory);
    if (s->n == 0 && memory) shmdt(memory); /* nobody has looked around */
    if (status == WEFT_OK) status = weft_world_any(!is_good, &s->is_refused, error);
    s->bytes = bytes;
    free(all);
    return status;
}

weft_status weft_shared_make(weft_shared *s, const weft_peers *peers, int64_t bytes,
                             weft_error *error)
{
    bool is_short = false;
    if (s->is_refused) return WEFT_OK;
    WEFT_TRY(weft_world_any(s->n == 0 || s->bytes < bytes, &is_short, error));
    if (!is_short) return WEFT_OK;
    weft_shared_free(s);
    const weft_status status = make(s, peers, bytes, error);
    if (status != WEFT_OK || s->is_refused) {
        const bool is_refused = s->is_refused;
        weft_shared_free(s);
        s->is_refused = is_refused;
    }
    return status;
}

void weft_shared_free(weft_shared *s)
{
    for (int i = 0; i < s->n; i++)
        shmdt(s->memory[i] - HEADER);
    free(s->processes);
    free(s->memory);
    *s = (weft_shared){0};
}
