/* misbehave_calls: the calls of misbehave's series, each made as it should be, and its numbers checked. */
#include "misbehave.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
site site_here(int at)
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

weft_status perform(int rank, int round, int at, const site *s, weft_error *error)
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
