/* exchange: all_to_all, all_gather and broadcast, on every group of several meshes.
 * RANKS: 2 3 4 8
 */
#include "on_ranks.h"
#include "stacked.h"

static bool is_again; /* by stacked */

/* What rank `from` has for rank `to`: some have nothing, and sizes differ in every direction. */
static int64_t part_bytes(int from, int to, int round)
{
    return (from + 2 * to + round) % 3 == 0 ? 0 : 1 + 37 * from + 5 * to + 1000 * (round % 2);
}

static char part_byte(int from, int to, int round, int64_t i)
{
    return (char)(11 * from + 7 * to + 3 * round + i);
}

/* One rank's two buffers of an exchange, a gap of 3 bytes between parts. */
typedef struct buffers {
    int n, self, round;
    int64_t *numbers, *send_bytes, *send_at, *recv_bytes, *recv_at;
    char *send, *recv;
    weft_request request;
} buffers;

static void make_parts(buffers *b, const weft_comm *comm, int round)
{
    const int n = b->n = weft_comm_n_ranks(comm), self = b->self = weft_comm_self(comm);
    int64_t n_send = 0, n_recv = 0;
    b->round = round;
    b->numbers = dirty(4 * n * (int64_t)sizeof *b->numbers);
    b->send_bytes = b->numbers, b->send_at = b->numbers + n;
    b->recv_bytes = b->numbers + 2 * n, b->recv_at = b->numbers + 3 * n;
    for (int i = 0; i < n; i++) {
        b->send_bytes[i] = part_bytes(self, i, round),
        b->recv_bytes[i] = part_bytes(i, self, round);
        b->send_at[i] = n_send, b->recv_at[i] = n_recv;
        n_send += b->send_bytes[i] + 3, n_recv += b->recv_bytes[i] + 3;
    }
    b->send = dirty(n_send), b->recv = dirty(n_recv);
    for (int to = 0; to < n; to++)
        for (int64_t i = 0; i < b->send_bytes[to]; i++)
            b->send[b->send_at[to] + i] = part_byte(self, to, round, i);
}

static void check_parts(const buffers *b)
{
    for (int from = 0; from < b->n; from++) {
        int64_t n_wrong = 0;
        for (int64_t i = 0; i < b->recv_bytes[from]; i++)
            n_wrong += b->recv[b->recv_at[from] + i] != part_byte(from, b->self, b->round, i);
        CHECK_EQ_INT(n_wrong, 0);
        for (int i = 0; i < 3; i++) /* nothing written between the parts */
            n_wrong += b->recv[b->recv_at[from] + b->recv_bytes[from] + i] != (char)0xA5;
        CHECK_EQ_INT(n_wrong, 0);
    }
}

static void start_parts(buffers *b, weft_comm *comm)
{
    weft_error error = {0};
    CHECK_OK(weft_all_to_all_start(comm, b->send, b->send_bytes, b->send_at, b->recv, b->recv_bytes,
                                   b->recv_at, &b->request, &error),
             error);
}

static void finish_parts(buffers *b)
{
    weft_error error = {0};
    CHECK_OK(weft_wait(&b->request, &error), error);
    CHECK_OK(weft_wait(&b->request, &error), error); /* over: does nothing */
    check_parts(b);
    free(b->send), free(b->recv), free(b->numbers);
}

static void all_to_all_on_rank(const ranks *all, int rank)
{
    for (uint32_t axes = 0; axes <= everybody(all); axes++) {
        weft_comm *comm = weft_comm_of(all->comms, rank, axes);
        for (int round = 0; round < 20; round++) { /* more than there are slots */
            buffers b;
            make_parts(&b, comm, round);
            start_parts(&b, comm);
            finish_parts(&b);
        }
    }
}

static void test_all_to_all_with_uneven_and_zero_counts(void)
{
    on_meshes(all_to_all_on_rank);
}

/* Waited for in the other order, and with one on another group between them. */
static void several_on_rank(const ranks *all, int rank)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    weft_comm *other = weft_comm_of(all->comms, rank, 1);
    for (int round = 0; round < 10; round++) {
        buffers first, second, third;
        make_parts(&first, comm, round);
        make_parts(&second, other, round + 1);
        make_parts(&third, comm, round + 2);
        start_parts(&first, comm);
        start_parts(&second, other);
        start_parts(&third, comm);
        finish_parts(&third);
        finish_parts(&first);
        finish_parts(&second);
    }
}

static void test_several_exchanges_may_be_under_way(void)
{
    on_meshes(several_on_rank);
}

/* More than there are places for, waited for in another order on every rank. */
static void many_on_rank(const ranks *all, int rank)
{
    enum { MANY = 50 };
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    buffers b[MANY];
    for (int i = 0; i < MANY; i++) {
        make_parts(&b[i], comm, i);
        start_parts(&b[i], comm);
    }
    for (int i = 0; i < MANY; i++)
        finish_parts(&b[(7 * (i + 3 * rank) + rank) % MANY]);
}

static void test_any_number_of_exchanges_may_be_under_way(void)
{
    on_meshes(many_on_rank);
}

/* ---- random schedules ------------------------------------------------------------------------------ */

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* A call that blocks, among others that are under way. */
static void block(weft_comm *comm, uint32_t kind)
{
    enum { N = 3000 };
    static _Thread_local double own[N], sum[N], scratch[16 * N];
    const int n = weft_comm_n_ranks(comm), self = weft_comm_self(comm);
    weft_error error = {0};
    for (int i = 0; i < N; i++)
        own[i] = kind == 0 || self == 0 ? self + i : -1;
    if (kind == 0) {
        CHECK(weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F64, N) <= (int64_t)sizeof scratch);
        CHECK_OK(weft_all_reduce(comm, WEFT_SUM, WEFT_F64, own, sum, N, scratch, &error), error);
        CHECK(sum[0] == n * (n - 1) / 2 && sum[N - 1] == sum[0] + (double)n * (N - 1));
    } else {
        CHECK_OK(weft_broadcast(comm, 0, own, sizeof own, &error), error);
        CHECK(own[0] == 0 && own[N - 1] == N - 1);
    }
}

/* Some of what is under way is waited for, which and in what order by the rank's own dice. Returns how many are left. */
static int wait_for_some(buffers *under_way, int n, uint64_t *dice)
{
    while (n > 0 && draw(dice, 3) == 0) {
        const int picked = (int)draw(dice, (uint32_t)n);
        finish_parts(&under_way[picked]);
        under_way[picked] = under_way[--n];
    }
    return n;
}

/* All ranks start the same calls in the same order, in whatever groups; between them each waits as it likes. */
static void random_schedule_on_rank(const ranks *all, int rank)
{
    enum { SCHEDULES = 20, CALLS = 40 };
    buffers under_way[CALLS];
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
        uint64_t common = seed, dice = seed * 1000 + (uint64_t)rank;
        int n = 0;
        for (int call = 0; call < CALLS; call++) {
            weft_comm *comm = weft_comm_of(all->comms, rank, draw(&common, everybody(all) + 1));
            const uint32_t kind = draw(&common, 8);
            n = wait_for_some(under_way, n, &dice);
            if (draw(&dice, 2)) weft_comms_poll(all->comms, rank);
            if (kind < 2) {
                block(comm, kind);
                continue;
            }
            make_parts(&under_way[n], comm, call);
            start_parts(&under_way[n++], comm);
        }
        while (n > 0)
            n = wait_for_some(under_way, n, &dice);
    }
}

static void test_random_schedules_come_to_an_end(void)
{
    on_meshes(random_schedule_on_rank);
}

/* Rank r has 10 r bytes: rank 0 has none. `in_place`: it lies where it is gathered. */
static void gather_on_comm(weft_comm *comm, bool in_place)
{
    const int n = weft_comm_n_ranks(comm), self = weft_comm_self(comm);
    int64_t bytes[64], at[64], total = 0;
    for (int r = 0; r < n; r++) {
        bytes[r] = 10 * r, at[r] = total;
        total += bytes[r];
    }
    char *recv = dirty(total), *own = dirty(bytes[self]), *send = in_place ? recv + at[self] : own;
    for (int64_t i = 0; i < bytes[self]; i++)
        send[i] = part_byte(self, 0, 0, i);
    weft_error error = {0};
    weft_request request;
    CHECK_OK(weft_all_gather_start(comm, send, bytes[self], recv, bytes, at, &request, &error),
             error);
    CHECK_OK(weft_wait(&request, &error), error);
    int64_t n_wrong = 0;
    for (int r = 0; r < n; r++)
        for (int64_t i = 0; i < bytes[r]; i++)
            n_wrong += recv[at[r] + i] != part_byte(r, 0, 0, i);
    CHECK_EQ_INT(n_wrong, 0);
    free(recv), free(own);
}

static void all_gather_on_rank(const ranks *all, int rank)
{
    for (uint32_t axes = 0; axes <= everybody(all); axes++) {
        gather_on_comm(weft_comm_of(all->comms, rank, axes), false);
        gather_on_comm(weft_comm_of(all->comms, rank, axes), true);
    }
}

static void test_all_gather_with_uneven_counts(void)
{
    on_meshes(all_gather_on_rank);
}

static void broadcast_on_rank(const ranks *all, int rank)
{
    for (uint32_t axes = 0; axes <= everybody(all); axes++) {
        weft_comm *comm = weft_comm_of(all->comms, rank, axes);
        for (int root = 0; root < weft_comm_n_ranks(comm); root++) {
            int data[100];
            for (int i = 0; i < 100; i++)
                data[i] = weft_comm_self(comm) == root ? 1000 * root + i : -1;
            weft_error error = {0};
            CHECK_OK(weft_broadcast(comm, root, data, sizeof data, &error), error);
            CHECK_EQ_INT(data[0], 1000 * root);
            CHECK_EQ_INT(data[99], 1000 * root + 99);
        }
    }
    weft_error error = {0};
    CHECK_EQ_INT(weft_broadcast(weft_comm_of(all->comms, rank, 1), -1, NULL, 0, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "root is -1");
}

static void test_broadcast_from_every_root(void)
{
    on_meshes(broadcast_on_rank);
}

static void groups_on_rank(const ranks *all, int rank)
{
    int coordinates[WEFT_MAX_AXES];
    weft_mesh_coordinates(all->mesh, rank, coordinates);
    for (int a = 0; a < weft_mesh_n_axes(all->mesh); a++) {
        weft_comm *comm = weft_comm_of(all->comms, rank, 1u << a);
        CHECK_EQ_INT(weft_comm_n_ranks(comm), weft_mesh_axis_size(all->mesh, a));
        CHECK_EQ_INT(weft_comm_self(comm), coordinates[a]);
    }
    CHECK(weft_comm_of(all->comms, rank, 1u << 5) == NULL);
    CHECK(weft_comm_of(all->comms, weft_mesh_n_ranks(all->mesh), 1) == NULL);
    const bool is_local = weft_mesh_n_local(all->mesh) == weft_mesh_n_ranks(all->mesh);
    const char *own = is_local ? "threads" : "mpi";
    CHECK_TEXT(weft_comms_engine(all->comms), is_again ? "stacked" : own);
}

static void test_groups_follow_the_axes(void)
{
    on_meshes(groups_on_rank);
}

static void mismatch_on_rank(const ranks *all, int rank)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, 1);
    int64_t bytes[2] = {4, 4}, at[2] = {0, 4};
    char send[8] = {0}, recv[8];
    weft_error error = {0};
    weft_request request;
    CHECK_OK(
        weft_all_gather_start(comm, send, rank == 1 ? 3 : 4, recv, bytes, at, &request, &error),
        error);
    CHECK_EQ_INT(weft_wait(&request, &error), WEFT_MISMATCH);
    CHECK_TEXT(error.message, "rank 1 of a group of 2 sends 3 bytes");
}

static void test_counts_that_differ_are_found(void)
{
    if (world_now.n_processes == 1) on_mesh("data:2", mismatch_on_rank);
}

static void test_a_plan_has_no_groups(void)
{
    weft_error error = {0};
    weft_mesh *mesh;
    weft_comms *comms;
    CHECK_OK(weft_mesh_plan("data:4", &mesh, &error), error);
    CHECK_EQ_INT(weft_comms_create(mesh, &comms, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "only a plan");
    CHECK(comms == NULL);
    weft_mesh_destroy(&mesh);
}

static void run_all(void)
{
    RUN(test_groups_follow_the_axes);
    RUN(test_all_to_all_with_uneven_and_zero_counts);
    RUN(test_several_exchanges_may_be_under_way);
    RUN(test_any_number_of_exchanges_may_be_under_way);
    RUN(test_random_schedules_come_to_an_end);
    RUN(test_all_gather_with_uneven_counts);
    RUN(test_broadcast_from_every_root);
    RUN(test_counts_that_differ_are_found);
    RUN(test_a_plan_has_no_groups);
}

int main(void)
{
    if (open_world()) {
        run_all();
        is_again = true;
        test_again_by_stacked(run_all);
    }
    weft_world_close();
    return weft_test_report();
}
