/* in_flight_test: all_reduces of every combine and dtype under way together, in any groups, waited for in any order, another
 * one on each rank: each is the fold over its ranks in order, bit by bit.
 * RANKS: 2 3 4
 */
#include "on_ranks.h"
#include "stacked.h"
#include "states.h"

enum { MOST_UNDER_WAY = 64, MOST_PAIRS = 256 };

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

typedef struct reduction {
    weft_move *move;
    weft_flight *flight;
    char *send, *recv, *expected, *scratch;
    size_t bytes;
} reduction;

static void expect(reduction *r, weft_combine combine, weft_dtype dtype, int64_t count, int n,
                   int self)
{
    char *part = dirty((int64_t)r->bytes);
    fill_states(combine, dtype, 0, r->expected, count);
    for (int other = 1; other < n; other++) {
        fill_states(combine, dtype, other, part, count);
        weft_combine_into(combine, dtype, r->expected, part, count);
    }
    fill_states(combine, dtype, self, r->send, count);
    free(part);
}

static void start(reduction *r, const ranks *all, int rank, uint32_t axes, weft_combine combine,
                  weft_dtype dtype, int64_t states)
{
    weft_error error = {0};
    weft_comm *comm = weft_comm_of(all->comms, rank, axes);
    const int64_t count = states * weft_combine_width(combine);
    const weft_shape shape = {.n_dims = 1, .dims = {{"x", count}}};
    const weft_convert_step step = {
        .kind = WEFT_ALL_REDUCE,
        .axes = axes,
        .from = {.partial = (uint8_t)axes, .combine = (uint8_t)combine}};
    *r = (reduction){.bytes = (size_t)count * weft_dtype_bytes(dtype)};
    CHECK_OK(weft_move_create(all->mesh, &shape, dtype, &step, rank, &r->move, &error), error);
    CHECK_OK(weft_flight_create(r->move, comm, &r->flight, &error), error);
    r->send = dirty((int64_t)r->bytes);
    r->recv = dirty((int64_t)r->bytes);
    r->expected = dirty((int64_t)r->bytes);
    r->scratch = dirty(weft_move_scratch(r->move) + 1);
    expect(r, combine, dtype, count, weft_comm_n_ranks(comm), weft_comm_self(comm));
    CHECK_OK(weft_flight_start(r->flight, r->send, r->recv, r->scratch, &error), error);
}

static void finish(reduction *r)
{
    weft_error error = {0};
    CHECK_OK(weft_flight_finish(r->flight, &error), error);
    CHECK(memcmp(r->recv, r->expected, r->bytes) == 0);
    weft_flight_destroy(&r->flight);
    weft_move_destroy(&r->move);
    free(r->send), free(r->recv), free(r->expected), free(r->scratch);
}

static int finish_some(reduction *under_way, int n, uint64_t *dice)
{
    while (n > 0 && (n == MOST_UNDER_WAY || draw(dice, 4) == 0)) {
        const int picked = (int)draw(dice, (uint32_t)n);
        finish(&under_way[picked]);
        under_way[picked] = under_way[--n];
    }
    return n;
}

typedef struct pair {
    weft_combine combine;
    weft_dtype dtype;
} pair;

static int find_pairs(pair *pairs)
{
    int n = 0;
    for (int combine = WEFT_SUM; combine < WEFT_COMBINES; combine++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++)
            if (weft_combiner_of((weft_combine)combine, (weft_dtype)dtype) && n < MOST_PAIRS)
                pairs[n++] = (pair){(weft_combine)combine, (weft_dtype)dtype};
    return n;
}

/* Every pair at least twice, in one random order on all ranks; what is finished when, by each rank's own dice. */
static void random_on_rank(const ranks *all, int rank)
{
    static const int64_t states[] = {1, 5, 333, 1367, 20011};
    pair pairs[MOST_PAIRS];
    reduction under_way[MOST_UNDER_WAY];
    const int n_pairs = find_pairs(pairs);
    uint64_t common = 7, dice = 1000 + (uint64_t)rank;
    int n = 0;
    CHECK(n_pairs > 20);
    for (int call = 0; call < 2 * n_pairs; call++) {
        const pair *p = &pairs[(call * 11 + 3) % n_pairs];
        const uint32_t axes = 1 + draw(&common, everybody(all));
        const int64_t count = states[draw(&common, sizeof states / sizeof *states)];
        n = finish_some(under_way, n, &dice);
        if (draw(&dice, 2)) weft_comms_poll(all->comms, rank);
        start(&under_way[n++], all, rank, axes, p->combine, p->dtype, count);
    }
    while (n > 0)
        n = finish_some(under_way, n, &dice);
}

static void test_all_reduces_in_flight_are_the_fold_in_rank_order(void)
{
    on_meshes(random_on_rank);
}

static void run_all(void)
{
    RUN(test_all_reduces_in_flight_are_the_fold_in_rank_order);
}

int main(void)
{
    if (open_world()) {
        run_all();
        test_again_by_stacked(run_all);
    }
    weft_world_close();
    return weft_test_report();
}
