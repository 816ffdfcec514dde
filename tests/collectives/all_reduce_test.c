/* all_reduce: every combine and dtype against a fold over the ranks in order, bit by bit.
 * RANKS: 2 3 4 8
 */
#include "engine.h"
#include "on_ranks.h"
#include "stacked.h"
#include "states.h"

#include <sys/wait.h>
#include <unistd.h>

static void check_one(weft_comm *comm, weft_combine combine, weft_dtype dtype, int64_t count)
{
    const int64_t bytes = count * (int64_t)weft_dtype_bytes(dtype);
    const int64_t scratch_bytes = weft_all_reduce_scratch(comm, combine, dtype, count);
    char *send = dirty(bytes), *recv = dirty(bytes), *expected = dirty(bytes), *part = dirty(bytes);
    char *scratch = dirty(scratch_bytes + 1);
    fill_states(combine, dtype, 0, expected, count);
    for (int r = 1; r < weft_comm_n_ranks(comm); r++) {
        fill_states(combine, dtype, r, part, count);
        weft_combine_into(combine, dtype, expected, part, count);
    }
    fill_states(combine, dtype, weft_comm_self(comm), send, count);
    weft_error error = {0};
    CHECK_OK(weft_all_reduce(comm, combine, dtype, send, recv, count, scratch, &error), error);
    CHECK(memcmp(recv, expected, (size_t)bytes) == 0);
    CHECK_OK(weft_all_reduce(comm, combine, dtype, send, send, count, scratch, &error), error);
    CHECK(memcmp(send, expected, (size_t)bytes) == 0);
    CHECK_EQ_INT(scratch[scratch_bytes], (char)0xA5); /* no further than asked for */
    free(send), free(recv), free(expected), free(part), free(scratch);
}

static void reduce_on_rank(const ranks *all, int rank)
{
    static const int64_t states[] = {
        0, 1, 5, 333, 1367, 4099, 70001}; /* small, and large with short last slices */
    for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            if (!weft_combiner_of((weft_combine)combine, (weft_dtype)dtype)) continue;
            /* further dtypes walk the same way */
            const size_t every = dtype > WEFT_I32 ? 3 : (size_t)weft_test_stride(3);
            for (size_t i = 0; i < sizeof states / sizeof *states; i += every)
                check_one(weft_comm_of(all->comms, rank, everybody(all)), (weft_combine)combine,
                          (weft_dtype)dtype, states[i] * weft_combine_width((weft_combine)combine));
        }
    for (uint32_t axes = 0; axes <= everybody(all); axes++) {
        check_one(weft_comm_of(all->comms, rank, axes), WEFT_SUM, WEFT_F32, 7);
        check_one(weft_comm_of(all->comms, rank, axes), WEFT_SUM, WEFT_F32, 5003);
    }
}

static void test_every_combine_is_the_fold_in_rank_order(void)
{
    on_meshes(reduce_on_rank);
}

static void refuse_on_rank(const ranks *all, int rank)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, 1);
    int32_t data[3] = {0};
    weft_error error = {0};
    CHECK_EQ_INT(weft_all_reduce(comm, WEFT_LSE, WEFT_I32, data, data, 2, NULL, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "kind lse");
    error = (weft_error){0};
    CHECK_EQ_INT(weft_all_reduce(comm, WEFT_LSE, WEFT_F32, data, data, 3, NULL, &error),
                 WEFT_USAGE);
    CHECK_TEXT(error.message, "2 numbers each");
}

static void test_states_that_are_none_are_refused(void)
{
    on_meshes(refuse_on_rank);
}

static void reduce_some_on_rank(const ranks *all, int rank)
{
    weft_comm *comm = weft_comm_of(all->comms, rank, everybody(all));
    check_one(comm, WEFT_SUM, WEFT_F32, 333);
    check_one(comm, WEFT_MAX, WEFT_F64, 70001);
}

/* Ranks 0 and 1 have been in more groups than a recorder has room for when ranks 2 and 3 come; and a process that was
 * forked on the way, and ended, has changed nothing for them. */
static void test_more_groups_than_are_recorded(void)
{
    char text[16];
    if (world_now.n_processes > 1) return; /* a mesh has the ranks of the world */
    for (int i = 0; i < 30; i++) {
        snprintf(text, sizeof text, "a%d:2", i);
        on_mesh(text, reduce_some_on_rank);
    }
    const pid_t child = fork();
    if (child == 0) exit(0);
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    on_mesh("b:4", reduce_some_on_rank);
}

/* ---- memory that other processes see --------------------------------------------------------- */

enum { MOST = 70001 * 8 };

static char *taken; /* of the local ranks: what is sent, and what comes */

/* Whether a rank's buffers lie there in a round: all, all but one rank's, what is sent, what comes. */
static bool is_taken(int round, int rank, bool is_recv)
{
    return round == 0 || (round == 1 && rank != 1) || (round == 2 && !is_recv) ||
           (round == 3 && is_recv);
}

static void check_round(weft_comm *comm, int round, int64_t count, char *own, bool is_in_place)
{
    const int64_t bytes = count * 8;
    const int rank = weft_comm_rank(comm);
    char *send = is_taken(round, rank, false) ? own : dirty(bytes);
    char *recv = is_in_place ? send : is_taken(round, rank, true) ? own + MOST : dirty(bytes);
    char *expected = dirty(bytes), *part = dirty(bytes);
    void *scratch = dirty(weft_all_reduce_scratch(comm, WEFT_SUM, WEFT_F64, count));
    weft_error error = {0};
    fill_states(WEFT_SUM, WEFT_F64, 0, expected, count);
    for (int r = 1; r < weft_comm_n_ranks(comm); r++) {
        fill_states(WEFT_SUM, WEFT_F64, r, part, count);
        weft_combine_into(WEFT_SUM, WEFT_F64, expected, part, count);
    }
    fill_states(WEFT_SUM, WEFT_F64, weft_comm_self(comm), send, count);
    CHECK_OK(weft_all_reduce(comm, WEFT_SUM, WEFT_F64, send, recv, count, scratch, &error), error);
    CHECK(memcmp(recv, expected, (size_t)bytes) == 0);
    if (recv != send && recv != own + MOST) free(recv);
    if (send != own) free(send);
    free(expected), free(part), free(scratch);
}

static void reduce_taken(const ranks *all, int rank)
{
    static const int64_t counts[] = {1, 4096, 4097, 9001, 70001};
    char *own = taken + (int64_t)(rank - weft_mesh_first_local(all->mesh)) * 2 * MOST;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < 5; i++)
            for (uint32_t axes = 1; axes <= everybody(all); axes++)
                for (int is_in_place = 0; is_in_place < 2; is_in_place++)
                    check_round(weft_comm_of(all->comms, rank, axes), round, counts[i], own,
                                is_in_place);
}

static void test_buffers_may_lie_where_others_see_them(void)
{
    char texts[MAX_MESHES][48];
    const int n = meshes_here(texts);
    for (int i = 0; i < n; i++) {
        weft_error error = {0};
        void *memory = NULL;
        ranks all;
        if (!open_ranks(texts[i], &all)) return;
        const int64_t bytes = (int64_t)weft_mesh_n_local(all.mesh) * 2 * MOST;
        CHECK_OK(weft_comms_take(all.comms, 100, &memory, &error), error);
        CHECK_OK(weft_comms_take(all.comms, bytes, &memory, &error), error);
        taken = memory;
        if (taken != NULL) weft_mesh_each(all.mesh, run_rank_test, &(rank_job){&all, reduce_taken});
        close_ranks(&all);
    }
}

static void run_all(void)
{
    RUN(test_buffers_may_lie_where_others_see_them);
    RUN(test_every_combine_is_the_fold_in_rank_order);
    RUN(test_states_that_are_none_are_refused);
    RUN(test_more_groups_than_are_recorded);
}

int main(void)
{
    if (open_world()) {
        run_all();
        if (world_now.n_processes <= 4)
            test_again_by_stacked(run_all); /* without a window it is slow */
    }
    weft_world_close();
    return weft_test_report();
}
