/* exchange_test: in all orders within a bound, ranks that are threads get each other's bytes whole, may write theirs
 * again when an exchange is over, and are woken when they sleep; several under way are finished in any order.
 */
#include "engine.h"

#include "explored.h"
#include "weft/mesh.h"

enum { MOST_RANKS = 3, MOST_UNDER_WAY = 2, ROUNDS = 2 };

/* One rank's end, and its exchanges. */
typedef struct end {
    weft_comm comm;
    weft_desk desk;
    struct {
        weft_pending pending; /* first */
        weft_comm_exchange exchange;
        int64_t send, recv[MOST_RANKS];
        int64_t bytes[MOST_RANKS], at[MOST_RANKS];
    } of[MOST_UNDER_WAY];
} end;

typedef struct group {
    int n_ranks, n_under_way;
    weft_mesh *mesh;
    end ends[MOST_RANKS];
    weft_comm *comms[MOST_RANKS];
    _Alignas(64) char states[MOST_RANKS][MOST_UNDER_WAY][256];
} group;

static bool poll_exchange(weft_pending *it)
{
    weft_comm_exchange *exchange = (weft_comm_exchange *)(it + 1);
    return weft_engine_threads.poll(exchange);
}

static int64_t number(int rank, int k, int round)
{
    return 1000 * round + 10 * rank + k;
}

static void start(group *g, int rank, int k, int round)
{
    end *mine = &g->ends[rank];
    weft_comm_exchange *x = &mine->of[k].exchange;
    weft_error error = {0};
    weft_sync_writes(&mine->of[k].send);
    mine->of[k].send = number(rank, k, round);
    for (int r = 0; r < g->n_ranks; r++)
        mine->of[k].bytes[r] = 8, mine->of[k].at[r] = 8 * r;
    x->ticket = (uint64_t)(round * g->n_under_way + k);
    x->fingerprint = 7 + x->ticket;
    x->send = (weft_parts){(char *)&mine->of[k].send, NULL, NULL, 8};
    x->recv = (weft_parts){(char *)mine->of[k].recv, mine->of[k].bytes, mine->of[k].at, 0};
    (void)weft_engine_threads.start(x, &error);
    weft_desk_begin(&mine->desk, &mine->of[k].pending);
}

static void finish(group *g, int rank, int k, int round)
{
    end *mine = &g->ends[rank];
    weft_error error = {0};
    if (weft_desk_wait(&mine->desk, &mine->of[k].pending, &error) != WEFT_OK ||
        mine->of[k].exchange.error.status != WEFT_OK)
        schedule_fail("rank %d: %s", rank, mine->of[k].exchange.error.message);
    for (int r = 0; r < g->n_ranks; r++)
        if (mine->of[k].recv[r] != number(r, k, round))
            schedule_fail("rank %d has %d from rank %d", rank, (int)mine->of[k].recv[r], r);
}

/* Half of the ranks finish what they started last first. */
static void exchange(void *state, int rank)
{
    group *g = state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < g->n_under_way; k++)
            start(g, rank, k, round);
        for (int k = 0; k < g->n_under_way; k++)
            finish(g, rank, rank % 2 == 0 ? k : g->n_under_way - 1 - k, round);
    }
}

static void exchange_all(void *state)
{
    group *g = state;
    weft_error error = {0};
    memset(g->ends, 0, sizeof g->ends);
    memset(g->states, 0, sizeof g->states);
    for (int r = 0; r < g->n_ranks; r++) {
        end *e = &g->ends[r];
        e->comm = (weft_comm){.rank = r,
                              .self = r,
                              .n_ranks = g->n_ranks,
                              .desk = &e->desk,
                              .engine = &weft_engine_threads};
        e->desk.n_spins = r % 2; /* some look before they sleep */
        e->desk.can_sleep = true;
        g->comms[r] = &e->comm;
        for (int k = 0; k < g->n_under_way; k++) {
            e->of[k].pending.poll = poll_exchange;
            e->of[k].exchange.comm = &e->comm;
            e->of[k].exchange.state = g->states[r][k];
        }
    }
    if (weft_engine_threads.group_create(g->mesh, 1, g->comms, g->n_ranks, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    explored_each(g->n_ranks, exchange, g);
    weft_engine_threads.group_destroy(g->comms, g->n_ranks);
}

static void check_exchange(int n_ranks, int n_under_way, schedule_options options)
{
    char name[80], text[8];
    weft_error error = {0};
    static group g;
    g = (group){.n_ranks = n_ranks, .n_under_way = n_under_way};
    snprintf(text, sizeof text, "d:%d", n_ranks);
    if (!CHECK_OK(weft_mesh_plan(text, &g.mesh, &error), error)) return;
    snprintf(name, sizeof name, "%d ranks, %d under way%s", n_ranks, n_under_way,
             options.seed != 0 ? ", at random" : "");
    explore(name, exchange_all, &g, options);
    CHECK(weft_mesh_destroy(&g.mesh) == WEFT_OK);
}

/* Each sleeper is woken by a bell, and by no time limit. */
static void test_one_exchange_at_a_time(void)
{
    check_exchange(2, 1, (schedule_options){.n_preemptions = 2});
    check_exchange(3, 1, (schedule_options){.n_preemptions = 1});
    check_exchange(3, 1, (schedule_options){.seed = 8, .most_runs = weft_test_cases(4000)});
}

/* Here a bell may be missed (pending.c says why), and a sleeper goes on after 5 ms. */
static void test_two_under_way_are_finished_in_any_order(void)
{
    const schedule_options all = {.n_preemptions = 1, .may_oversleep = true};
    check_exchange(2, 2, all);
    check_exchange(
        3, 2,
        (schedule_options){.seed = 9, .may_oversleep = true, .most_runs = weft_test_cases(4000)});
}

int main(void)
{
    RUN(test_one_exchange_at_a_time);
    RUN(test_two_under_way_are_finished_in_any_order);
    return weft_test_report();
}
