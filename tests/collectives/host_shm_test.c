/* Memory that processes of one host see of each other: all of it, of different sizes, and gone with them. */
/* RANKS: 2 3 */
#include "host_shm.h"

#include <sys/shm.h>

#include "on_ranks.h"

static ranks all;

static weft_status gather(void *context, const void *own, int64_t bytes, void *everybodys,
                          weft_error *error)
{
    weft_comm *comm = weft_comm_of(all.comms, weft_mesh_first_local(all.mesh), everybody(&all));
    int64_t numbers[2][64];
    weft_request request;
    (void)context;
    if (comm == NULL || weft_comm_n_ranks(comm) == 1) {
        memcpy(everybodys, own, (size_t)bytes);
        return WEFT_OK;
    }
    for (int r = 0; r < weft_comm_n_ranks(comm); r++) {
        numbers[0][r] = bytes;
        numbers[1][r] = r * bytes;
    }
    WEFT_TRY(weft_all_gather_start(comm, own, bytes, everybodys, numbers[0], numbers[1], &request,
                                   error));
    return weft_wait(&request, error);
}

static weft_status agree(void *context, weft_error *error)
{
    (void)context;
    return weft_world_agree(error);
}

static weft_host_shm_peers peers_here(void)
{
    return (weft_host_shm_peers){world_now.n_processes, world_now.process, gather, agree, NULL};
}

static void test_everybody_sees_what_each_writes(void)
{
    const weft_host_shm_peers peers = peers_here();
    const int64_t bytes = 5000 + 10000 * (int64_t)peers.self;
    weft_host_shm near;
    weft_error error = {0};
    if (!CHECK_OK(weft_host_shm_make(&near, &peers, bytes, &error), error)) return;
    if (near.n == 0) CHECK_TEXT(near.why, "was refused memory");
    for (int64_t i = 0; near.n > 0 && i < bytes; i++) {
        CHECK(near.memory[near.self][i] == 0);
        near.memory[near.self][i] = (char)(peers.self + 1);
    }
    weft_error none = {.rank = -1};
    CHECK_EQ_INT(weft_world_agree(&none), WEFT_OK); /* all have written */
    for (int k = 0; k < near.n; k++)
        for (int64_t i = 0; i < 5000 + 10000 * (int64_t)near.peers[k]; i++)
            if (near.memory[k][i] != near.peers[k] + 1) {
                CHECK_EQ_INT(near.memory[k][i], near.peers[k] + 1);
                break;
            }
    weft_host_shm_free(&near);
    CHECK_EQ_INT(near.n, 0);
}

/* More than any machine has: all go on without, and say why. */
static void test_what_is_refused_to_one_nobody_has(void)
{
    const weft_host_shm_peers peers = peers_here();
    const int64_t bytes = peers.self == peers.n - 1 ? (int64_t)1 << 60 : 4096;
    weft_host_shm near;
    weft_error error = {0};
    CHECK_OK(weft_host_shm_make(&near, &peers, bytes, &error), error);
    CHECK_EQ_INT(near.n, 0);
    CHECK_TEXT(near.why, "was refused memory of process");
    weft_host_shm_free(&near);
}

/* Memory of a mesh: the one who asked for too much has none, the others theirs, and all say why nobody sees another's. */
static void test_a_mesh_says_why_its_processes_are_apart(void)
{
    const bool is_alone = world_now.n_processes == 1,
               is_last = peers_here().self == peers_here().n - 1;
    weft_error error = {0};
    void *memory;
#ifdef WEFT_SANITIZE
    return; /* AddressSanitizer ends who asks for too much */
#endif
    CHECK_TEXT(weft_comms_apart(all.comms), "");
    CHECK(*weft_comms_apart(NULL) == '\0');
    const weft_status status =
        weft_comms_take(all.comms, is_last && !is_alone ? (int64_t)1 << 59 : 4096, &memory, &error);
    CHECK_EQ_INT(status, is_last && !is_alone ? WEFT_MEMORY : WEFT_OK);
    CHECK(is_alone || strstr(weft_comms_apart(all.comms), "was refused memory of process") != NULL);
    CHECK(!is_alone || *weft_comms_apart(all.comms) == '\0');
}

/* Marked for removal before anybody else has seen it. */
static void test_a_segment_does_not_stay(void)
{
    weft_segment_ticket ticket;
    struct shmid_ds about;
    char *memory = weft_segment_make(100, &ticket);
    if (memory == NULL) return; /* the system has none for us */
    CHECK(shmctl(ticket.id, IPC_STAT, &about) == 0 && (about.shm_perm.mode & SHM_DEST) != 0);
    char *again = weft_segment_attach(&ticket);
    CHECK(again != NULL && again != memory);
    if (again != NULL) again[99] = 7;
    CHECK_EQ_INT(memory[99], 7);
    ticket.token++;
    CHECK(weft_segment_attach(&ticket) == NULL);
    weft_segment_leave(again);
    weft_segment_leave(memory);
    CHECK(shmctl(ticket.id, IPC_STAT, &about) != 0);
}

/* Large pages begin at multiples of their size, and hold what all see only where it begins so for all. */
static void test_large_memory_begins_where_large_pages_do(void)
{
    enum { HUGE = 2 << 20, BYTES = 2 * HUGE + 5000 };
    weft_segment_ticket ticket;
    char *memory = weft_segment_make(BYTES, &ticket);
    if (memory == NULL) return; /* the system has none for us */
    char *again = weft_segment_attach(&ticket);
    if (CHECK(again != NULL && memory != again)) {
        CHECK((uintptr_t)memory % HUGE == 4096 && (uintptr_t)again % HUGE == 4096);
        memory[0] = 1, again[BYTES - 1] = 2;
        CHECK(again[0] == 1 && memory[BYTES - 1] == 2 && memory[HUGE] == 0);
    }
    weft_segment_leave(again);
    weft_segment_leave(memory);
}

int main(void)
{
    char mesh[32];
    if (!open_world()) return weft_test_report();
    snprintf(mesh, sizeof mesh, "data:%d", world_now.n_processes);
    if (open_ranks(mesh, &all)) {
        RUN(test_everybody_sees_what_each_writes);
        RUN(test_what_is_refused_to_one_nobody_has);
        RUN(test_a_segment_does_not_stay);
        RUN(test_a_mesh_says_why_its_processes_are_apart);
        RUN(test_large_memory_begins_where_large_pages_do);
    }
    close_ranks(&all);
    weft_world_close();
    return weft_test_report();
}
