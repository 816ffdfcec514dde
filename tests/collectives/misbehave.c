/* misbehave: a program whose ranks make a fixed series of calls, where one rank does something
 * wrong at one of them.
 *
 *     mpirun -n 4 misbehave count 3 --patience 3       rank 1 gives half the count in call site 3
 *     misbehave skip 7 --threads 4                     the same with ranks that are threads
 *
 * Every result of a call that returned WEFT_OK is checked: a wrong number is said on a line that
 * begins with WRONG. Ends with the exit status that our programs have (apps/app.c).
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "apps/app.h"
#include "weft/collectives.h"
#include "weft/extend/combine.h"
#include "weft/ops.h"
#include "weft/program.h"
#include "weft/watch.h"

enum { ROUNDS = 3, BAD_ROUND = 1, SITES = 20, MOST_RANKS = 8, MOST = 40000, BATCH = 8, HIDDEN = 6 };

typedef enum action { REDUCE, GATHER, EXCHANGE, BROADCAST, AGREE, ANY, RUN, MOVE, ACTIONS } action;

typedef struct site {
    action action;
    uint32_t axes; /* bit 0: data, bit 1: model */
    int64_t count;
    weft_dtype dtype;
    weft_combine combine;
    int number; /* root of a broadcast; which program is run */
} site;

static const site series[SITES] = {{REDUCE, 1, 8, WEFT_F32, WEFT_SUM},
                                   {REDUCE, 3, 3000, WEFT_F64, WEFT_SUM},
                                   {GATHER, 1, 10, WEFT_F32},
                                   {EXCHANGE, 3, 6, WEFT_F32},
                                   {BROADCAST, 1, 100, WEFT_F32},
                                   {AGREE, 3, 2},
                                   {ANY, 3, 2},
                                   {RUN, 3, 0},
                                   {REDUCE, 2, 16, WEFT_F32, WEFT_MAX},
                                   {BROADCAST, 3, 10000, WEFT_F32, 0, 1},
                                   {GATHER, 3, 2000, WEFT_F32},
                                   {EXCHANGE, 2, 40, WEFT_F32},
                                   {REDUCE, 3, 12, WEFT_I32, WEFT_MIN},
                                   {RUN, 1, 0, 0, 0, 1},
                                   {AGREE, 3, 2},
                                   {BROADCAST, 2, 6, WEFT_F32, 0, 1},
                                   {REDUCE, 2, 5000, WEFT_F32, WEFT_SUM},
                                   {ANY, 3, 2},
                                   {GATHER, 2, 30, WEFT_F32},
                                   {RUN, 3, 0}};

/* What all make at a site where a way to misbehave has no meaning, so that it has one. */
static const site probe = {REDUCE, 3, 64, WEFT_F32, WEFT_SUM};

typedef struct plan { /* of this run */
    const struct kind *kind;
    int site, rank, threads;
    double seconds, patience;
    const char *folder;
    weft_mesh *mesh;
    weft_comms *comms;
    weft_graph *graphs[2];
    weft_value inputs[2], results[2];
    weft_program *programs[2];
    weft_error errors[MOST_RANKS]; /* of each local rank */
} plan;
static plan the = {.rank = 1, .seconds = 6, .patience = 10};

typedef struct kind {
    const char *name;
    uint32_t actions; /* set of those where it has a meaning */
    void (*alter)(site *);
    weft_status (*act)(int rank, int round, weft_error *error); /* in place of the call */
    bool by_all; /* act: all ranks do it, before the call; one of them does it wrongly */
} kind;

/* ---- numbers --------------------------------------------------------------------------------- */

static double value(int round, int at, int rank, int64_t i)
{
    return (double)((round * 7 + at * 3 + rank * 5 + i) % 11);
}

static void store(weft_dtype dtype, void *data, int64_t i, double v)
{
    if (dtype == WEFT_F64)
        ((double *)data)[i] = v;
    else if (dtype == WEFT_I32)
        ((int32_t *)data)[i] = (int32_t)v;
    else
        ((float *)data)[i] = (float)v;
}

static double load(weft_dtype dtype, const void *data, int64_t i)
{
    return dtype == WEFT_F64   ? ((const double *)data)[i]
           : dtype == WEFT_I32 ? ((const int32_t *)data)[i]
                               : (double)((const float *)data)[i];
}

static void wrong(int rank, int at, int64_t i, double got, double expected)
{
    fprintf(stderr, "WRONG rank %d site %d element %lld: %g, not %g\n", rank, at, (long long)i, got,
            expected);
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct turn {
    const site *site;
    int rank, round, at;
    int ranks[MOST_RANKS], n, self; /* of the group */
    weft_comm *comm;
    char *from, *to, *scratch;
} turn;

static double combined(const turn *t, int64_t i)
{
    double all = value(t->round, t->at, t->ranks[0], i);
    for (int r = 1; r < t->n; r++) {
        const double v = value(t->round, t->at, t->ranks[r], i);
        all = t->site->combine == WEFT_SUM   ? all + v
              : t->site->combine == WEFT_MAX ? fmax(all, v)
                                             : fmin(all, v);
    }
    return all;
}

static weft_status reduce(turn *t, weft_error *error)
{
    const site *s = t->site;
    for (int64_t i = 0; i < s->count; i++)
        store(s->dtype, t->from, i, value(t->round, t->at, t->rank, i));
    WEFT_TRY(weft_all_reduce(t->comm, s->combine, s->dtype, t->from, t->to, s->count, t->scratch,
                             error));
    for (int64_t i = 0; i < s->count; i++)
        if (load(s->dtype, t->to, i) != combined(t, i)) {
            wrong(t->rank, t->at, i, load(s->dtype, t->to, i), combined(t, i));
            break;
        }
    return WEFT_OK;
}

/* What came from every rank of the group; blocks [n][count] of f32. */
static void check_blocks(const turn *t, int64_t shift)
{
    const int64_t count = t->site->count;
    for (int64_t i = 0; i < t->n * count; i++) {
        const double v = value(t->round, t->at, t->ranks[i / count], i % count + shift);
        if (((float *)t->to)[i] == (float)v) continue;
        wrong(t->rank, t->at, i, ((float *)t->to)[i], v);
        return;
    }
}

static weft_status gather(turn *t, weft_error *error)
{
    int64_t bytes[MOST_RANKS], places[MOST_RANKS];
    const int64_t own = t->site->count * 4;
    weft_request request;
    for (int64_t i = 0; i < t->site->count; i++)
        store(WEFT_F32, t->from, i, value(t->round, t->at, t->rank, i));
    for (int r = 0; r < t->n; r++) {
        bytes[r] = own;
        places[r] = r * own;
    }
    WEFT_TRY(weft_all_gather_start(t->comm, t->from, own, t->to, bytes, places, &request, error));
    WEFT_TRY(weft_wait(&request, error));
    check_blocks(t, 0);
    return WEFT_OK;
}

static weft_status exchange(turn *t, weft_error *error)
{
    int64_t bytes[MOST_RANKS], places[MOST_RANKS];
    weft_request request;
    for (int r = 0; r < t->n; r++) {
        bytes[r] = t->site->count * 4;
        places[r] = r * bytes[r];
        for (int64_t i = 0; i < t->site->count; i++)
            store(WEFT_F32, t->from, r * t->site->count + i,
                  value(t->round, t->at, t->rank, i + 3 * t->ranks[r]));
    }
    WEFT_TRY(weft_all_to_all_start(t->comm, t->from, bytes, places, t->to, bytes, places, &request,
                                   error));
    WEFT_TRY(weft_wait(&request, error));
    check_blocks(t, 3 * t->rank);
    return WEFT_OK;
}

static weft_status broadcast(turn *t, weft_error *error)
{
    const int root = t->site->number < t->n ? t->site->number : 0;
    for (int64_t i = 0; i < t->site->count; i++)
        store(WEFT_F32, t->to, i, value(t->round, t->at, t->rank, i));
    WEFT_TRY(weft_broadcast(t->comm, root, t->to, t->site->count * 4, error));
    for (int64_t i = 0; i < t->site->count; i++) {
        const double v = value(t->round, t->at, t->ranks[root], i);
        if (((float *)t->to)[i] == (float)v) continue;
        wrong(t->rank, t->at, i, ((float *)t->to)[i], v);
        break;
    }
    return WEFT_OK;
}

static weft_status agree(turn *t, weft_error *error)
{
    (void)t;
    return weft_world_agree(error);
}

static weft_status any(turn *t, weft_error *error)
{
    const bool is_asked = (t->round + t->at) % 2 == 0;
    bool has = false;
    WEFT_TRY(weft_world_any(is_asked && t->self == t->round % t->n, &has, error));
    if (has != is_asked) wrong(t->rank, t->at, 0, has, is_asked);
    return WEFT_OK;
}

static weft_status run(turn *t, weft_error *error)
{
    float x[BATCH * HIDDEN];
    double got, sum = 0;
    const int p = t->site->number;
    for (int i = 0; i < BATCH * HIDDEN; i++)
        sum += x[i] = (float)value(t->round, t->at, 0, i);
    WEFT_TRY(weft_write(the.programs[p], the.inputs[p], WEFT_F32, x, sizeof x, error));
    WEFT_TRY(weft_run(the.programs[p], error));
    WEFT_TRY(weft_read_scalar(the.programs[p], the.results[p], &got, error));
    const double expected = (p == 0 ? 1 : 3) * sum;
    if (fabs(got - expected) > 1e-3) wrong(t->rank, t->at, 0, got, expected);
    return WEFT_OK;
}

/* From rows to columns and back to the whole, as a program does it. */
static weft_status move_step(turn *t, const weft_shape *shape, const weft_convert_step *step,
                             weft_error *error)
{
    weft_move *move = NULL;
    weft_flight *flight = NULL;
    WEFT_TRY(weft_move_create(the.mesh, shape, WEFT_F32, step, t->rank, &move, error));
    weft_comm *comm = step->axes ? weft_comm_of(the.comms, t->rank, step->axes) : NULL;
    weft_status status = weft_flight_create(move, comm, &flight, error);
    if (status == WEFT_OK) status = weft_flight_start(flight, t->from, t->to, t->scratch, error);
    if (status == WEFT_OK) status = weft_flight_finish(flight, error);
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    memcpy(t->from, t->to, BATCH * HIDDEN * sizeof(float));
    return status;
}

static weft_status move(turn *t, weft_error *error)
{
    const weft_shape shape = WEFT_DIMS({"batch", BATCH}, {"hidden", HIDDEN});
    weft_convert_step steps[WEFT_MAX_CONVERT];
    const weft_spec rows = {.n_split = {1}}, columns = {.n_split = {0, 1}}, whole = {{0}};
    const weft_spec *way[] = {&rows, &columns, &whole};
    float *x = (float *)(void *)t->from;
    weft_box box;
    weft_spec_box(&rows, the.mesh, &shape, t->rank, &box);
    for (int64_t i = 0; i < weft_box_count(&box, 2); i++)
        x[i] = (float)value(t->round, t->at, 0, box.begin[0] * HIDDEN + i);
    for (int w = 0; w < 2; w++) {
        const int n = weft_convert_plan(the.mesh, &shape, way[w], way[w + 1], steps);
        for (int s = 0; s < n; s++)
            WEFT_TRY(move_step(t, &shape, &steps[s], error));
    }
    for (int i = 0; i < BATCH * HIDDEN; i++)
        if (x[i] != (float)value(t->round, t->at, 0, i)) {
            wrong(t->rank, t->at, i, x[i], value(t->round, t->at, 0, i));
            break;
        }
    return WEFT_OK;
}

static weft_status (*const actions[ACTIONS])(turn *, weft_error *) = {
    reduce, gather, exchange, broadcast, agree, any, run, move};

/* Ranks that are threads have no calls of the whole process among themselves. */
static site site_here(int at)
{
    static const site stand_ins[ACTIONS] = {[AGREE] = {REDUCE, 3, 1, WEFT_I32, WEFT_MIN},
                                            [ANY] = {GATHER, 3, 1, WEFT_F32},
                                            [RUN] = {MOVE, 3, 0}};
    site s = series[at];
    if (the.threads > 0 && stand_ins[s.action].axes != 0) s = stand_ins[s.action];
    if (weft_mesh_n_ranks(the.mesh) == 2 && s.axes == 2)
        s.axes = 3; /* no rank makes calls with itself */
    return s;
}

static weft_status perform(int rank, int round, int at, const site *s, weft_error *error)
{
    turn t = {.site = s, .rank = rank, .round = round, .at = at};
    enum { ROOM = MOST_RANKS * MOST };
    static _Alignas(64) char rooms[MOST_RANKS][3 * ROOM];
    t.n = weft_mesh_group(the.mesh, s->axes, rank, t.ranks, &t.self);
    t.comm = weft_comm_of(the.comms, rank, s->axes);
    t.from = rooms[rank]; /* what has failed may still be under way: nothing is given back */
    t.to = t.from + ROOM;
    t.scratch = t.to + ROOM;
    return actions[s->action](&t, error);
}

/* ---- what can be done wrongly ------------------------------------------------------------------
 */

static void say_when(int rank)
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

static weft_status compile(int p, const char *rules, double factor, weft_error *error)
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

static void forget(int p)
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

enum {
    BUFFERS = 1 << REDUCE | 1 << GATHER | 1 << EXCHANGE | 1 << BROADCAST,
    EVERYWHERE = (1 << ACTIONS) - 1
};

static weft_status steps(int rank, int round, weft_error *error);

static const kind kinds[] = {
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

/* ---- the series ------------------------------------------------------------------------------ */

static bool leaves_early; /* of a process's only rank */

static weft_status steps(int rank, int round, weft_error *error)
{
    (void)rank, (void)round, (void)error;
    leaves_early = true;
    return WEFT_OK;
}

/* One rank at the site where it goes wrong, and the others there. */
static weft_status go_wrong(int rank, int round, weft_error *error)
{
    const kind *k = the.kind;
    site s = site_here(the.site);
    const bool has_meaning = k->actions >> s.action & 1, is_culprit = rank == the.rank;
    if (k->by_all) {
        if (is_culprit) say_when(rank);
        WEFT_TRY(k->act(rank, round, error));
    } else if (!has_meaning) {
        site tried = probe;
        if (is_culprit) say_when(rank), k->alter(&tried);
        WEFT_TRY(perform(rank, round, the.site, &tried, error));
    }
    if (is_culprit && has_meaning && !k->by_all) {
        say_when(rank);
        if (k->act) return k->act(rank, round, error);
        k->alter(&s);
    }
    return perform(rank, round, the.site, &s, error);
}

static void go_through(void *argument, int rank)
{
    weft_error *error = &the.errors[rank - weft_mesh_first_local(the.mesh)];
    const bool swaps = rank == the.rank && the.kind->act == swap;
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; at < SITES; at++) {
            const site s = site_here(at);
            const bool is_bad = round == BAD_ROUND && at == the.site;
            const int before =
                the.site + 1; /* which a rank that swaps two calls has made already */
            if (swaps && (before < SITES ? round == BAD_ROUND && at == before
                                         : round == BAD_ROUND + 1 && at == 0))
                continue;
            if ((is_bad ? go_wrong(rank, round, error) : perform(rank, round, at, &s, error)) !=
                WEFT_OK)
                return;
            if (rank == the.rank && leaves_early) return;
        }
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

static weft_status start(weft_world *world, weft_error *error)
{
    char text[64];
    const int n = the.threads > 0 ? the.threads : world->n_processes;
    if (n > MOST_RANKS || n % 2 != 0)
        return weft_fail(error, WEFT_USAGE, "%d ranks; misbehave takes 2, 4, 6 or 8", n);
    snprintf(text, sizeof text, "data:2,model:%d", n / 2);
    WEFT_TRY(weft_mesh_create(world, text, &the.mesh, error));
    WEFT_TRY(weft_comms_create(the.mesh, &the.comms, error));
    for (uint32_t axes = 1; axes < 4; axes++)
        WEFT_TRY(weft_comms_prepare(the.comms, axes, error));
    weft_watch_patience(the.patience);
    if (the.folder) WEFT_TRY(weft_watch_record(the.folder, error));
    if (the.threads == 0) WEFT_TRY(compile(0, "batch:data", 1, error));
    if (the.threads == 0) WEFT_TRY(compile(1, "batch:data", 3, error));
    return WEFT_OK;
}

static void go(weft_error *error)
{
    if (the.threads > 0)
        weft_mesh_each(the.mesh, go_through, NULL);
    else
        go_through(NULL, weft_mesh_first_local(the.mesh));
    for (int i = 0; i < weft_mesh_n_local(the.mesh); i++)
        if (error->status == WEFT_OK) *error = the.errors[i];
    if (error->status == WEFT_OK && !leaves_early) (void)weft_world_agree(error);
}

static bool read_option(const char *name, const char *text)
{
    if (strcmp(name, "--threads") == 0)
        the.threads = atoi(text);
    else if (strcmp(name, "--rank") == 0)
        the.rank = atoi(text);
    else if (strcmp(name, "--seconds") == 0)
        the.seconds = atof(text);
    else if (strcmp(name, "--patience") == 0)
        the.patience = atof(text);
    else if (strcmp(name, "--folder") == 0)
        the.folder = text;
    else
        return false;
    return true;
}

static bool read_arguments(int n, char **arguments)
{
    if (n < 3 || n % 2 != 1) return false;
    for (int i = 3; i < n; i += 2)
        if (!read_option(arguments[i], arguments[i + 1])) return false;
    the.site = atoi(arguments[2]);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].name, arguments[1]) == 0) the.kind = &kinds[k];
    return the.kind && the.site >= 0 && the.site < SITES;
}

int main(int n, char **arguments)
{
    weft_world world;
    weft_error error = {.rank = -1};
    app_phase phase = APP_STARTING;
    if (!read_arguments(n, arguments)) {
        fprintf(stderr, "misbehave KIND SITE [--threads N] [--rank R] [--seconds S] [--patience S] "
                        "[--folder DIR]\n");
        return 2;
    }
    weft_mesh_limit_cores(1);
    if (app_join(&world, &error) == WEFT_OK && start(&world, &error) == WEFT_OK) {
        phase = APP_RUNNING;
        go(&error);
        if (error.status == WEFT_OK && weft_world_is_root()) fprintf(stderr, "misbehave: done\n");
    }
    forget(0);
    forget(1);
    weft_comms_destroy(&the.comms);
    weft_mesh_destroy(&the.mesh);
    return app_leave("misbehave", phase, &error);
}
