/* mpi_window: memory that the processes of a group on one host share: a System V segment, which has no name and is gone
 * with the last process that sees it, however that ends, and needs no room in /dev/shm.
 */
#include "mpi_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

/* What the first rank tells of the segment. */
typedef struct ticket {
    uint64_t host;  /* the machine since it was started, and its name space for segments */
    uint64_t token; /* stands at the segment's begin until all have seen it               */
    int32_t id;     /* -1: refused */
    int32_t unused;
} ticket;

static uint64_t digest_host(void)
{
    char text[256] = "", *end = text;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        end += fread(text, 1, 64, file);
        fclose(file);
    }
    const ssize_t n = readlink("/proc/self/ns/ipc", end, 64);
    return weft_digest(0, text, (size_t)(end - text) + (size_t)(n > 0 ? n : 0));
}

static char *attach(int id)
{
    char *memory = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    return memory == (char *)-1 ? NULL : memory;
}

/* Marked for removal at once: on Linux it can still be attached by its number while somebody has it. */
static char *make_segment(int64_t bytes, ticket *t)
{
    t->id = shmget(IPC_PRIVATE, (size_t)bytes, IPC_CREAT | 0600);
    char *memory = attach(t->id);
    if (t->id >= 0) shmctl(t->id, IPC_RMID, NULL);
    if (memory == NULL) {
        t->id = -1;
        return NULL;
    }
    (void)madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* advice */
    const int64_t facts[] = {getpid(), weft_clock_ns(), t->id};
    t->token = weft_digest(0, facts, sizeof facts);
    memcpy(memory, &t->token, sizeof t->token);
    return memory;
}

/* Whether all of the group say so. */
static int all_agree(MPI_Comm comm, bool mine, bool *all)
{
    int own = mine, least = 0;
    const int code = MPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, comm);
    *all = least == 1;
    return code;
}

/* Everybody has looked for the token before the first rank takes it away, and waits until it is gone. */
static int look_together(MPI_Comm comm, char *memory, const ticket *t, bool is_first, bool *is_good)
{
    const bool mine = memory != NULL && memcmp(memory, &t->token, sizeof t->token) == 0;
    int code = all_agree(comm, mine, is_good);
    if (code == MPI_SUCCESS && *is_good && is_first) memset(memory, 0, sizeof t->token);
    if (code == MPI_SUCCESS) code = MPI_Barrier(comm);
    return code;
}

static int share_memory(MPI_Comm comm, weft_window *w)
{
    const uint64_t host = digest_host();
    ticket t = {.host = host, .id = -1};
    if (w->self == 0) w->memory = make_segment(weft_window_bytes(w->n_ranks), &t);
    int code = MPI_Bcast(&t, (int)sizeof t, MPI_BYTE, 0, comm);
    if (code == MPI_SUCCESS && w->self > 0 && t.host == host) w->memory = attach(t.id);
    bool is_good = false;
    if (code == MPI_SUCCESS) code = look_together(comm, w->memory, &t, w->self == 0, &is_good);
    if ((code != MPI_SUCCESS || !is_good) && w->memory != NULL) {
        shmdt(w->memory);
        w->memory = NULL;
    }
    return code;
}

weft_status weft_mpi_window_create(MPI_Comm comm, weft_window **window, weft_error *error)
{
    int n = 0;
    bool has_room = false;
    *window = NULL;
    MPI_Comm_size(comm, &n);
    if (n == 1) return WEFT_OK;
    weft_window *w = calloc(1, sizeof *w);
    int code = all_agree(comm, w != NULL, &has_room);
    if (code == MPI_SUCCESS && has_room && w != NULL) {
        w->n_ranks = n;
        MPI_Comm_rank(comm, &w->self);
        code = share_memory(comm, w);
    }
    if (w != NULL && w->memory != NULL)
        *window = w;
    else
        free(w);
    return code == MPI_SUCCESS ? WEFT_OK : weft_mpi_fail(error, "sharing memory", code);
}

void weft_mpi_window_destroy(weft_window **window)
{
    if (*window == NULL) return;
    shmdt((*window)->memory);
    free(*window);
    *window = NULL;
}
