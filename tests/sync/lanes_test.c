/* lanes_test: in all orders within a bound, lanes do each item once in each pass, none before its last pass is done,
 * and never wait for each other; a team's runs reach those called and end. */
#include "mesh_internal.h"

#include "explored.h"

enum { MOST_ITEMS = 128 };

/* ---- items that lanes share --------------------------------------------------------------------- */

typedef struct passes {
    int n_lanes, n_items, n_passes, most;
    weft_work *shares;
    weft_wait_sign signs[SCHEDULE_THREADS];
    int done[MOST_ITEMS]; /* passes; memory that lanes hand to each other */
} passes;

static void do_items(passes *p, int pass, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        weft_sync_writes(&p->done[i]);
        if (p->done[i]++ != pass)
            schedule_fail("item %d is done for the %d. time in pass %d", (int)i, p->done[i], pass);
    }
}

static void go_through(void *state, int lane)
{
    passes *p = state;
    for (int pass = 0; pass < p->n_passes; pass++) {
        int64_t first, last;
        if (pass > 0) weft_work_again(p->shares, lane);
        while (weft_work_take(p->shares, lane, p->most, &p->signs[lane], &first, &last))
            do_items(p, pass, first, last);
    }
}

static void share_items(void *state)
{
    passes *p = state;
    memset(p->done, 0, sizeof p->done);
    memset(p->signs, 0, sizeof p->signs);
    p->shares = weft_work_create(p->n_lanes);
    weft_work_begin(p->shares, p->n_items, p->n_lanes);
    explored_each(p->n_lanes, go_through, p);
    for (int i = 0; i < p->n_items; i++)
        if (p->done[i] != p->n_passes)
            schedule_fail("item %d is done %d times in %d passes", i, p->done[i], p->n_passes);
    weft_work_destroy(p->shares);
}

static void check_passes(int n_lanes, int n_items, int n_passes, schedule_options options)
{
    char name[80];
    passes p = {.n_lanes = n_lanes, .n_items = n_items, .n_passes = n_passes, .most = 2};
    snprintf(name, sizeof name, "%d lanes, %d items, %d passes, %s", n_lanes, n_items, n_passes,
             options.seed != 0 ? "at random" : "in order");
    explore(name, share_items, &p, options);
}

static void test_items_are_done_once_in_each_pass_and_no_lane_waits_for_ever(void)
{
    check_passes(2, 2, 1, (schedule_options){.n_preemptions = 4});
    check_passes(2, 2, 2, (schedule_options){.n_preemptions = 3});
    check_passes(2, 3, 3, (schedule_options){.n_preemptions = 2});
    check_passes(3, 3, 2, (schedule_options){.n_preemptions = 2});
    check_passes(3, 5, 3, (schedule_options){.n_preemptions = 1});
    check_passes(4, 4, 2, (schedule_options){.n_preemptions = 1});
}

static void test_random_orders_of_more_lanes_and_passes(void)
{
    const int64_t n = weft_test_cases(3000);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        check_passes(3, 3, 3, (schedule_options){.seed = seed, .most_runs = n});
        check_passes(4, 9, 4, (schedule_options){.seed = seed + 10, .most_runs = n});
        check_passes(7, 14, 3, (schedule_options){.seed = seed + 20, .most_runs = n / 2});
    }
}

/* Of one pass of four items a lane, as long as nobody is put aside: what lanes look at to find that nothing is left
 * grows with their number, and nothing grows faster. */
static void test_accesses_of_a_lane_grow_with_the_lanes_alone(void)
{
    enum { LANES = 32, PASSES = 4 };
    for (int n = 1; n <= LANES; n *= 2) {
        passes p = {.n_lanes = n, .n_items = 4 * n, .n_passes = PASSES, .most = 2};
        schedule_report report;
        CHECK(schedule_explore(share_items, &p, &(schedule_options){.most_runs = 1}, &report));
        const double each = (double)report.n_accesses / (n * PASSES);
        printf("  %d lanes: %.1f accesses a lane and pass\n", n, each);
        CHECK(each <= 10 + 8 * n);
    }
}

/* ---- teams -------------------------------------------------------------------------------------- */

typedef struct team_runs {
    int n_members, n_runs;
    weft_patience patience;
    void (*run)(weft_team *team, int n_called, weft_team_body body, void *argument);
    int counts[SCHEDULE_THREADS];
} team_runs;

static void count(void *argument, int member)
{
    team_runs *r = argument;
    weft_sync_writes(&r->counts[member]);
    r->counts[member]++;
}

static void run_team(void *state)
{
    team_runs *r = state;
    weft_error error = {0};
    weft_team *team;
    memset(r->counts, 0, sizeof r->counts);
    if (weft_team_create(r->n_members, r->patience, &team, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    for (int run = 0; run < r->n_runs; run++) {
        const int n_called = r->n_members - run % 2;
        r->run(team, n_called, count, r);
        for (int i = 0; i < r->n_members; i++) {
            weft_sync_reads(&r->counts[i]);
            if (r->counts[i] !=
                (i + 1 < r->n_members ? run + 1 : (run + 2) / 2)) /* every other run */
                schedule_fail("member %d has run %d times of %d", i, r->counts[i], run + 1);
        }
    }
    weft_team_destroy(&team);
}

static void test_runs_of_a_team_reach_those_called_and_end(void)
{
    void (*const runs[])(weft_team *, int, weft_team_body, void *) = {weft_team_run,
                                                                      weft_team_share};
    for (int k = 0; k < 2; k++) {
        team_runs spins = {2, 3, {2, 1}, runs[k], {0}}, sleeps = {3, 2, {0, 0}, runs[k], {0}},
                  both = {3, 2, {1, 1}, runs[k], {0}};
        explore("2 members that spin", run_team, &spins, (schedule_options){.n_preemptions = 3});
        explore("3 members that sleep", run_team, &sleeps, (schedule_options){.n_preemptions = 2});
        explore("3 members at random", run_team, &both,
                (schedule_options){.seed = 5, .most_runs = weft_test_cases(5000)});
        team_runs beside = {2, 5, weft_patience_for(true), runs[k], {0}};
        explore("2 members beside strangers", run_team, &beside,
                (schedule_options){.n_preemptions = 1, .has_strangers = true});
        explore("2 members beside strangers, at random", run_team, &beside,
                (schedule_options){
                    .seed = 6, .most_runs = weft_test_cases(2000), .has_strangers = true});
    }
}

/* ---- both: a stream ----------------------------------------------------------------------------- */

typedef struct looped {
    weft_stream *stream;
    passes p;
} looped;

static void go_through_loop(void *argument, int64_t begin, int64_t end, int lane)
{
    looped *l = argument;
    (void)begin, (void)end;
    for (int pass = 0; pass < l->p.n_passes; pass++) {
        int64_t first, last;
        if (pass > 0) weft_stream_again(l->stream, lane);
        while (weft_stream_take(l->stream, lane, l->p.most, &first, &last))
            do_items(&l->p, pass, first, last);
    }
}

static void run_loops(void *state)
{
    looped *l = state;
    weft_error error = {0};
    if (weft_stream_create_cpu(l->p.n_lanes, &l->stream, &error) != WEFT_OK)
        schedule_fail("%s", error.message);
    for (int loop = 0; loop < 2; loop++) {
        memset(l->p.done, 0, sizeof l->p.done);
        weft_parallel_whole(l->stream, l->p.n_items, 1, go_through_loop, l);
        for (int i = 0; i < l->p.n_items; i++)
            if (l->p.done[i] != l->p.n_passes) schedule_fail("item %d of a loop is left", i);
    }
    weft_stream_destroy_cpu(&l->stream);
}

static void test_loops_of_a_stream(void)
{
    looped three = {.p = {.n_lanes = 3, .n_items = 4, .n_passes = 2, .most = 1}};
    explore("two loops of 3 lanes", run_loops, &three,
            (schedule_options){.seed = 3, .most_runs = weft_test_cases(2000)});
    explore("two loops of 3 lanes, in order", run_loops, &three,
            (schedule_options){.n_preemptions = 1, .most_runs = weft_test_cases(2000)});
}

int main(void)
{
    RUN(test_items_are_done_once_in_each_pass_and_no_lane_waits_for_ever);
    RUN(test_random_orders_of_more_lanes_and_passes);
    RUN(test_accesses_of_a_lane_grow_with_the_lanes_alone);
    RUN(test_runs_of_a_team_reach_those_called_and_end);
    RUN(test_loops_of_a_stream);
    return weft_test_report();
}
