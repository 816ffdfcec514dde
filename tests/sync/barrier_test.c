/* barrier_test: in all orders within a bound, ranks that write together see what all have written, nobody goes on
 * before all are there, and a barrier that breaks lets everybody go. */
#include "barrier.h"

#include "explored.h"

typedef struct together {
    int n_ranks, n_rounds, breaker; /* -1: nobody breaks it */
    weft_barrier barrier;
    int numbers[SCHEDULE_THREADS]; /* each written by its rank, read by all, in turns */
} together;

static void read_all(together *t, int round)
{
    for (int r = 0; r < t->n_ranks; r++) {
        weft_sync_reads(&t->numbers[r]);
        if (t->numbers[r] != round)
            schedule_fail("rank %d is at %d in round %d", r, t->numbers[r], round);
    }
}

static void write_together(void *state, int rank)
{
    together *t = state;
    weft_barrier_open(&t->barrier, t->n_ranks, true);
    for (int round = 1; round <= t->n_rounds; round++) {
        if (rank == t->breaker && round == t->n_rounds) {
            weft_barrier_break(&t->barrier);
            return;
        }
        weft_sync_writes(&t->numbers[rank]);
        t->numbers[rank] = round;
        if (!weft_barrier_wait(&t->barrier)) return;
        read_all(t, round);
        if (!weft_barrier_wait(&t->barrier)) return;
    }
    if (t->breaker >= 0) schedule_fail("rank %d has met one that never came", rank);
}

static void meet(void *state)
{
    together *t = state;
    memset(&t->barrier, 0, sizeof t->barrier);
    memset(t->numbers, 0, sizeof t->numbers);
    explored_each(t->n_ranks, write_together, t);
}

static void check_barrier(int n_ranks, int n_rounds, int breaker, schedule_options options)
{
    char name[80];
    together t = {.n_ranks = n_ranks, .n_rounds = n_rounds, .breaker = breaker};
    snprintf(name, sizeof name, "%d ranks, %d rounds%s%s", n_ranks, n_rounds,
             breaker >= 0 ? ", of which one breaks off" : "",
             options.seed != 0 ? ", at random" : "");
    explore(name, meet, &t, options);
}

static void test_nobody_goes_on_before_all_are_there(void)
{
    check_barrier(2, 3, -1, (schedule_options){.n_preemptions = 3});
    check_barrier(3, 1, -1, (schedule_options){.n_preemptions = 1});
    check_barrier(4, 3, -1, (schedule_options){.seed = 4, .most_runs = weft_test_cases(5000)});
}

static void test_a_broken_meeting_lets_everybody_go(void)
{
    check_barrier(2, 2, 1, (schedule_options){.n_preemptions = 3});
    check_barrier(3, 1, 0, (schedule_options){.n_preemptions = 2});
    check_barrier(4, 2, 2, (schedule_options){.seed = 6, .most_runs = weft_test_cases(5000)});
}

int main(void)
{
    RUN(test_nobody_goes_on_before_all_are_there);
    RUN(test_a_broken_meeting_lets_everybody_go);
    return weft_test_report();
}
