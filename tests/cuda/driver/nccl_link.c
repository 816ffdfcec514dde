/* nccl_link: see nccl_link.h. */
#include "nccl_link.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = EMULATED_NCCL_RANKS, SPLITS = 64, PIPE = 32 << 10 };

typedef struct pipe_of {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) char data[PIPE];
} pipe_of;

struct emulated_shared {
    _Atomic int n_here;
    struct {
        char gpu[16];
        uint64_t host;
    } places[RANKS];
    struct {
        _Atomic int is_said;
        int color, key;
    } splits[SPLITS][RANKS];
    pipe_of pipes[]; /* [n][n], from and to */
};

static size_t bytes_for(int n)
{
    return sizeof(emulated_shared) + (size_t)(n * n) * sizeof(pipe_of);
}

static pipe_of *pipe_between(const emulated_link *link, int from, int to)
{
    return &link->shared->pipes[from * link->n + to];
}

void emulated_link_name(char *name, size_t bytes)
{
    static _Atomic int n;
    memset(name, 0, bytes);
    snprintf(name, bytes, "/weft_nccl_%ld_%d", (long)getpid(), ++n);
}

/* NCCL's own: hosts are told by NCCL_HOSTID, if it is set; these are all on one. */
static uint64_t host_of(void)
{
    const char *said = getenv("NCCL_HOSTID");
    uint64_t hash = 7;
    for (; said != NULL && *said != '\0'; said++)
        hash = (hash ^ (unsigned char)*said) * 0x100000001b3u;
    return hash;
}

/* The last to come takes the name away, so nothing stays behind. */
void emulated_link_open(emulated_link *link, const char *name, int n, int self, const char gpu[16])
{
    const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    *link = (emulated_link){.n = n, .self = self};
    snprintf(link->name, sizeof link->name, "%s", name);
    if (file < 0 || ftruncate(file, (off_t)bytes_for(n)) != 0) perror("emulated NCCL"), abort();
    link->shared = mmap(NULL, bytes_for(n), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (link->shared == MAP_FAILED) perror("emulated NCCL"), abort();
    close(file);
    memcpy(link->shared->places[self].gpu, gpu, 16);
    link->shared->places[self].host = host_of();
    if (atomic_fetch_add(&link->shared->n_here, 1) + 1 == n) shm_unlink(name);
}

bool emulated_link_is_open(const emulated_link *link)
{
    return atomic_load(&link->shared->n_here) == link->n;
}

bool emulated_link_has_twins(const emulated_link *link)
{
    for (int a = 0; a < link->n; a++)
        for (int b = 0; b < a; b++)
            if (link->shared->places[a].host == link->shared->places[b].host &&
                memcmp(link->shared->places[a].gpu, link->shared->places[b].gpu, 16) == 0)
                return true;
    return false;
}

void emulated_link_close(emulated_link *link)
{
    if (link->shared != NULL) munmap(link->shared, bytes_for(link->n));
    link->shared = NULL;
}

/* ---- splits ------------------------------------------------------------------------------------ */

void emulated_link_split(emulated_link *link, int color, int key)
{
    const int at = link->n_splits++;
    if (at == SPLITS) fputs("emulated NCCL: too many splits\n", stderr), abort();
    link->shared->splits[at][link->self].color = color;
    link->shared->splits[at][link->self].key = key;
    atomic_store(&link->shared->splits[at][link->self].is_said, 1);
}

bool emulated_link_has_split(emulated_link *link, char *name, size_t bytes, int *n, int *self)
{
    const int at = link->n_splits - 1;
    for (int r = 0; r < link->n; r++)
        if (!atomic_load(&link->shared->splits[at][r].is_said)) return false;
    const int color = link->shared->splits[at][link->self].color;
    const int key = link->shared->splits[at][link->self].key;
    *n = *self = 0;
    for (int r = 0; r < link->n; r++) {
        if (link->shared->splits[at][r].color != color) continue;
        *n += 1;
        *self += link->shared->splits[at][r].key < key;
    }
    snprintf(name, bytes, "%.60s_%d_%d", link->name, at, color);
    return true;
}

/* ---- bytes ------------------------------------------------------------------------------------- */

static uint64_t filled(const pipe_of *p)
{
    return atomic_load(&p->written) - atomic_load(&p->read);
}

bool emulated_link_room(const emulated_link *link, int to, size_t bytes)
{
    return PIPE - filled(pipe_between(link, link->self, to)) >= bytes;
}

bool emulated_link_has(const emulated_link *link, int from, size_t bytes)
{
    return filled(pipe_between(link, from, link->self)) >= bytes;
}

size_t emulated_link_write(emulated_link *link, int to, const void *data, size_t bytes)
{
    pipe_of *p = pipe_between(link, link->self, to);
    const size_t room = PIPE - filled(p), n = bytes < room ? bytes : room;
    const uint64_t at = atomic_load(&p->written);
    for (size_t i = 0; i < n; i++)
        p->data[(at + i) % PIPE] = ((const char *)data)[i];
    atomic_store(&p->written, at + n);
    return n;
}

size_t emulated_link_read(emulated_link *link, int from, void *data, size_t bytes)
{
    pipe_of *p = pipe_between(link, from, link->self);
    const size_t there = filled(p), n = bytes < there ? bytes : there;
    const uint64_t at = atomic_load(&p->read);
    for (size_t i = 0; i < n; i++)
        ((char *)data)[i] = p->data[(at + i) % PIPE];
    atomic_store(&p->read, at + n);
    return n;
}
