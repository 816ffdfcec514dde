/* misbehave_kinds: what one rank may do in place of the call that the others make. */
#include "misbehave.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "weft/extend/combine.h"
#include "weft/ops.h"
#include "weft/watch.h"

void say_when(int rank)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    fprintf(stderr, "misbehave: rank %d at %lld.%06ld\n", rank, (long long)t.tv_sec,
            t.tv_nsec / 1000);
}

static void other_action(site *s)
{
    static const action others[ACTIONS] = {BROADCAST, REDUCE, GATHER, REDUCE,
                                           ANY,       AGREE,  REDUCE, REDUCE};
    s->action = others[s->action];
    if (s->action == REDUCE)
        *s = (site){REDUCE, s->axes, s->count ? s->count : 8, WEFT_F32, WEFT_SUM};
}

static void half_count(site *s)
{
    s->count /= 2;
}

static void other_dtype(site *s)
{
    s->dtype = s->dtype == WEFT_F32 ? WEFT_I32 : WEFT_F32;
}

static void other_combine(site *s)
{
    s->combine = s->combine == WEFT_SUM ? WEFT_MAX : WEFT_SUM;
}

static void other_axes(site *s)
{
    s->axes = s->axes == 3 ? 1 : 3;
}

static weft_status skip(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    return WEFT_OK;
}

static weft_status extra(int rank, int round, weft_error *error)
{
    const site s = site_here(the.site);
    WEFT_TRY(perform(rank, round, the.site, &s, error));
    return perform(rank, round, the.site, &s, error);
}

static weft_status swap(int rank, int round, weft_error *error)
{
    const int next = (the.site + 1) % SITES; /* of the last: the first of the next round */
    const site s = site_here(next);
    WEFT_TRY(perform(rank, round + (next == 0), next, &s, error));
    const site own = site_here(the.site);
    return perform(rank, round, the.site, &own, error);
}

weft_status compile(int p, const char *rules, double factor, weft_error *error)
{
    weft_layout *layout = NULL;
    const weft_dim batch = {"batch", BATCH}, hidden = {"hidden", HIDDEN};
    weft_graph *g = the.graphs[p] = weft_graph_create(1);
    weft_value x = the.inputs[p] = weft_input(g, "x", WEFT_F32, WEFT_DIMS(batch, hidden));
    weft_value all = the.results[p] = weft_sum(WEFT_SCALAR, weft_scale(x, factor));
    WEFT_TRY(weft_layout_create(rules, &layout, error));
    const weft_status status =
        weft_compile(the.mesh, layout, WEFT_VALUES(all), NULL, &the.programs[p], error);
    weft_layout_destroy(&layout);
    return status;
}

void forget(int p)
{
    weft_program_destroy(&the.programs[p]);
    weft_graph_destroy(&the.graphs[p]);
}

static weft_status compile_layout(int rank, int round, weft_error *error)
{
    (void)round;
    forget(0);
    return compile(0, rank == the.rank ? "hidden:data" : "batch:data", 1, error);
}

static weft_status compile_config(int rank, int round, weft_error *error)
{
    (void)round;
    forget(0);
    return compile(0, "batch:data", rank == the.rank ? 2 : 1, error);
}

static weft_status run_other(int rank, int round, weft_error *error)
{
    const site s = {RUN, 3, 0, 0, 0, rank == the.rank};
    return perform(rank, round, the.site, &s, error);
}

static void least(void *out, const void *a, const void *b, int64_t n)
{
    weft_combine_into(WEFT_MIN, WEFT_F32, memmove(out, a, (size_t)n * sizeof(float)), b, n);
}

static void infinite(void *into, int64_t n)
{
    weft_combine_identity(WEFT_MIN, WEFT_F32, into, n);
}

/* The same number is another combine. */
static weft_status reduce_by_number(int rank, int round, weft_error *error)
{
    const weft_combine_rule rule = {sizeof rule,
                                    rank == the.rank ? "other" : "least",
                                    1,
                                    false,
                                    {[WEFT_F32] = least},
                                    {[WEFT_F32] = infinite}};
    static _Alignas(64) char scratch[MOST_RANKS * 64];
    float own = (float)rank, all = 0;
    weft_combine kind;
    (void)round;
    WEFT_TRY(weft_extend_combine(&rule, &kind, error));
    return weft_all_reduce(weft_comm_of(the.comms, rank, 3), kind, WEFT_F32, &own, &all, 1, scratch,
                           error);
}

/* Rank 0 sends all of it and waits for nobody; one rank makes another call in place of the first. */
static weft_status stay_behind(int rank, int round, weft_error *error)
{
    enum { AHEAD = 20 };
    const site sent = {BROADCAST, 3, 8, WEFT_F32}, other = {REDUCE, 3, 8, WEFT_F32, WEFT_SUM};
    for (int i = 0; i < AHEAD; i++)
        WEFT_TRY(
            perform(rank, round, the.site, rank == the.rank && i == 0 ? &other : &sent, error));
    return WEFT_OK;
}

static weft_status exit_0(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    exit(0);
}

static weft_status exit_3(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    exit(3);
}

static weft_status raise_it(int number)
{
    kill(getpid(), number);
    return WEFT_OK;
}

static weft_status abort_it(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    abort();
}

__attribute__((no_sanitize("undefined", "address"))) static weft_status segv(int rank, int round,
                                                                             weft_error *error)
{
    static int *volatile nowhere;
    (void)rank, (void)round, (void)error;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    *nowhere = 1;
    return WEFT_OK;
}

static int eat_stack(volatile char *above, int depth)
{
    volatile char room[4096];
    room[0] = above ? above[0] : 0;
    return depth > 0 ? eat_stack(room, depth + 1) + room[1] : 0;
}

static weft_status overflow(int rank, int round, weft_error *error)
{
    (void)round, (void)error;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    return eat_stack(NULL, rank + 1) == 1 ? WEFT_IO : WEFT_OK;
}

static weft_status stop(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    return raise_it(SIGSTOP);
}

static weft_status kill_it(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    return raise_it(SIGKILL);
}

static weft_status sleep_for_ever(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    while (the.seconds > 0)
        pause();
    return WEFT_OK;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weft_status make_call(int rank, int round, weft_error *error)
{
    const site s = site_here(the.site);
    return perform(rank, round, the.site, &s, error);
}

static weft_status compute(int rank, int round, weft_error *error)
{
    volatile double x = 1;
    const double end = seconds_now() + the.seconds;
    while (seconds_now() < end)
        for (int i = 0; i < 100000; i++)
            x = x * 1.0000001;
    return make_call(rank, round, error);
}

static weft_status busy(int rank, int round, weft_error *error)
{
    struct timespec rest = {(time_t)the.seconds, (long)(1e9 * fmod(the.seconds, 1))};
    weft_watch_busy("waiting for the tape");
    while (nanosleep(&rest, &rest) != 0) {
    }
    weft_watch_busy(NULL);
    return make_call(rank, round, error);
}

/* A process's only rank leaves; of ranks that are threads it does nothing more. */
static weft_status steps(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    the.leaves_early = true;
    return WEFT_OK;
}

enum {
    BUFFERS = 1 << REDUCE | 1 << GATHER | 1 << EXCHANGE | 1 << BROADCAST,
    EVERYWHERE = (1 << ACTIONS) - 1
};

static const misbehaviour kinds[] = {
    {"none", EVERYWHERE, .act = make_call},
    {"op", EVERYWHERE, other_action},
    {"count", BUFFERS, half_count},
    {"dtype", 1 << REDUCE, other_dtype},
    {"combine", 1 << REDUCE, other_combine},
    {"axis", BUFFERS, other_axes},
    {"order", EVERYWHERE, .act = swap},
    {"skip", EVERYWHERE, .act = skip},
    {"extra", EVERYWHERE, .act = extra},
    {"steps", EVERYWHERE, .act = steps},
    {"layout", EVERYWHERE, .act = compile_layout, .by_all = true},
    {"config", EVERYWHERE, .act = compile_config, .by_all = true},
    {"program", EVERYWHERE, .act = run_other, .by_all = true},
    {"number", EVERYWHERE, .act = reduce_by_number, .by_all = true},
    {"behind", EVERYWHERE, .act = stay_behind, .by_all = true},
    {"exit0", EVERYWHERE, .act = exit_0},
    {"exit3", EVERYWHERE, .act = exit_3},
    {"abort", EVERYWHERE, .act = abort_it},
    {"segv", EVERYWHERE, .act = segv},
    {"overflow", EVERYWHERE, .act = overflow},
    {"stop", EVERYWHERE, .act = stop},
    {"kill", EVERYWHERE, .act = kill_it},
    {"sleep", EVERYWHERE, .act = sleep_for_ever},
    {"compute", EVERYWHERE, .act = compute},
    {"busy", EVERYWHERE, .act = busy},
};

const misbehaviour *find_misbehaviour(const char *name)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].name, name) == 0) return &kinds[k];
    return NULL;
}

bool swaps_calls(const misbehaviour *kind)
{
    return kind->act == swap;
}
