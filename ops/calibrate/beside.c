/* beside: work and exchanges that go on at once on the same cores, how much each slows the other; what a late rank costs, and
 * what it costs that ranks have no core each.
 *
 * Work is a product, or a loop over memory, as the executor does it: lane 0 looks after the exchange between its parts. It is
 * repeated until it takes longer than the exchange. Both together take longer than the work alone. That difference, as a part of
 * the exchange alone, is the share of the cores that the exchange takes (weft_slow.cpu).
 */
#include "flown.h"
#include "program.h"
#include "sync.h"

#include "weft/ops.h"

#include <math.h>
#include <time.h>

enum { COLUMNS = 1 << 14, MOST_REPEATS = 1000, SIDE = 192, ELEMENTS = 1 << 19 };
static const double LONGER = 1.5, LATE_S = 2e-3, WORK_S = 1e-3;

/* Most informative first. */
static const weft_convert_kind kinds[] = {WEFT_ALL_REDUCE, WEFT_ALL_GATHER, WEFT_REDUCE_SCATTER,
                                          WEFT_ALL_TO_ALL, WEFT_MOVE};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What a rank does beside an exchange. */
typedef struct working {
    weft_program *program;
    int n_kinds; /* of exchanges */
    int repeats;
} working;

/* ---- on the ranks' own threads ---------------------------------------------------------------------- */

static void do_steps(weft_rank *rank)
{
    weft_error refused = WEFT_NO_ERROR;
    for (uint32_t s = 0; s < rank->program->plan->n_steps; s++) {
        const weft_step_kind kind = rank->program->plan->steps[s].kind;
        if (kind == WEFT_STEP_KERNEL || kind == WEFT_STEP_LOOP)
            (void)rank->steps[s].run(rank, &rank->steps[s], &refused);
    }
}

typedef struct polled {
    weft_comms *comms;
    int rank;
} polled;

static void poll(void *argument)
{
    const polled *p = argument;
    weft_comms_poll(p->comms, p->rank);
}

static void work(weft_flown *f, int number)
{
    working *w = f->context;
    weft_rank *rank = &w->program->ranks[number - weft_mesh_first_local(f->mesh)];
    polled p = {f->comms, number};
    rank->device->meanwhile(rank->stream, poll, &p);
    for (int i = 0; i < w->repeats; i++)
        do_steps(rank);
    rank->device->meanwhile(rank->stream, NULL, NULL);
}

static void work_alone(void *argument, int number)
{
    weft_flown *f = argument;
    const int at = number - weft_mesh_first_local(f->mesh);
    f->seconds[at] = INFINITY;
    for (int k = 0; k < 4; k++) {
        const double begin = weft_sync_seconds();
        work(f, number);
        const double took = weft_sync_seconds() - begin;
        if (k > 0 && took > 0) f->seconds[at] = fmin(f->seconds[at], took);
    }
}

/* ---- one kind --------------------------------------------------------------------------------------- */

static weft_status time_alone(weft_flown *f, int repeats, double *seconds, weft_error *error)
{
    ((working *)f->context)->repeats = repeats;
    weft_mesh_each(f->mesh, work_alone, f);
    return weft_flown_slowest(f, f->seconds, seconds, error);
}

/* All ranks come to the same numbers, since each is of the slowest. */
static weft_status measure_beside(weft_flown *f, weft_slow *slow, weft_error *error)
{
    double exchange, once, alone, both;
    f->meanwhile = NULL;
    WEFT_TRY(weft_flown_time(f, 0, &exchange, error));
    WEFT_TRY(time_alone(f, 1, &once, error));
    const double repeats = ceil(LONGER * exchange / fmax(once, 1e-9));
    WEFT_TRY(time_alone(f, (int)fmin(fmax(repeats, 1), MOST_REPEATS), &alone, error));
    f->meanwhile = work;
    WEFT_TRY(weft_flown_time(f, 1, &both, error));
    slow->cpu = fmin(fmax((both - alone) / exchange, 0), 1);
    return WEFT_OK;
}

static weft_value product(weft_graph *graph)
{
    const weft_dim m = {"m", SIDE}, k = {"k", SIDE}, n = {"n", SIDE};
    return weft_einsum(WEFT_DIMS(m, n),
                       weft_variable(graph, "x", WEFT_F32, WEFT_DIMS(m, k), weft_normal(0, 1)),
                       weft_variable(graph, "y", WEFT_F32, WEFT_DIMS(k, n), weft_normal(0, 1)));
}

static weft_value loop(weft_graph *graph)
{
    const weft_dim n = {"n", ELEMENTS};
    return weft_scale(weft_variable(graph, "x", WEFT_F32, WEFT_DIMS(n), weft_normal(0, 1)), 1.5);
}

static const struct {
    const char *name;
    weft_value (*build)(weft_graph *graph);
} works[] = {{"product", product}, {"loop", loop}};

static weft_status measure_work(weft_flown *f, int which, int level, weft_machine_model *model,
                                weft_error *error)
{
    const working *w = f->context;
    for (int k = 0; k < w->n_kinds; k++) {
        weft_slow slow = {.work = works[which].name, .kind = kinds[k], .level = level};
        if (!weft_flown_set(f, kinds[k], COLUMNS)) continue;
        WEFT_TRY(measure_beside(f, &slow, error));
        WEFT_TRY(weft_machine_add_slow(model, &slow, error));
    }
    return WEFT_OK;
}

/* The same program on every rank: nothing in it is split. */
static weft_status with_program(weft_flown *f, int which, int level, int n_kinds,
                                weft_machine_model *model, weft_error *error)
{
    working w = {NULL, n_kinds, 1};
    weft_layout *layout = NULL;
    weft_graph *graph = weft_graph_create(1);
    weft_status status = graph ? WEFT_OK : weft_fail_memory(error, sizeof graph);
    if (status == WEFT_OK) status = weft_layout_create("", &layout, error);
    if (status == WEFT_OK)
        status = weft_compile(f->mesh, layout, WEFT_VALUES(works[which].build(graph)), NULL,
                              &w.program, error);
    f->context = &w;
    if (status == WEFT_OK) status = measure_work(f, which, level, model, error);
    (void)!weft_program_destroy(&w.program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    return status;
}

/* ---- late ranks --------------------------------------------------------------------------------------- */

static double own_seconds(void)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* So much processor time of this thread, whoever has the core meanwhile. */
static void spend(double seconds)
{
    const double from = own_seconds();
    while (own_seconds() < from + seconds) {
    }
}

/* The first of all comes later. It computes meanwhile, as a slow rank does. */
static void come_late(weft_flown *f, int rank)
{
    (void)f;
    if (rank == 0) spend(LATE_S);
}

static weft_status measure_late(weft_flown *f, weft_level *level, weft_error *error)
{
    double usual, late;
    if (!weft_flown_set(f, WEFT_ALL_REDUCE, 1)) return WEFT_OK;
    f->meanwhile = NULL;
    WEFT_TRY(weft_flown_time(f, 0, &usual, error));
    f->before = come_late;
    WEFT_TRY(weft_flown_time(f, 1, &late, error));
    f->before = NULL;
    level->late_seconds = fmin(fmax(late - LATE_S - usual, 0), 1);
    return WEFT_OK;
}

/* ---- ranks that share cores ------------------------------------------------------------------------------ */

static void compute(weft_flown *f, int rank)
{
    (void)f, (void)rank;
    spend(WORK_S);
}

enum { CROWDED_ROUNDS = 8 };

/* The same work without the exchange: on a machine that others use it takes longer too. */
static void compute_alone(void *argument, int number)
{
    weft_flown *f = argument;
    const double begin = weft_sync_seconds();
    for (int i = 0; i < CROWDED_ROUNDS; i++)
        compute(f, number);
    f->seconds[number - weft_mesh_first_local(f->mesh)] =
        (weft_sync_seconds() - begin) / CROWDED_ROUNDS;
}

/* Both are of a few tries the fastest. */
static weft_status time_crowded(weft_flown *f, double *alone, double *both, weft_error *error)
{
    enum { TRIES = 5 };
    *alone = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        double took;
        weft_mesh_each(f->mesh, compute_alone, f);
        WEFT_TRY(weft_flown_slowest(f, f->seconds, &took, error));
        *alone = fmin(*alone, took);
    }
    f->before = compute;
    return weft_flown_time(f, CROWDED_ROUNDS, both, error);
}

weft_status weft_calibrate_crowded(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                   double share, weft_machine_model *model, weft_error *error)
{
    double usual, alone, both;
    weft_flown f;
    weft_status status = weft_flown_open(&f, mesh, comms, axes, error);
    const bool has_room = status == WEFT_OK && weft_flown_set(&f, WEFT_ALL_REDUCE, 1);
    if (has_room) status = weft_flown_time(&f, 0, &usual, error);
    if (has_room && status == WEFT_OK) status = time_crowded(&f, &alone, &both, error);
    if (has_room && status == WEFT_OK)
        model->levels[level].crowded_seconds =
            fmin(fmax(both - fmax(alone, fmax(share, 1) * WORK_S) - usual, 0), 1);
    weft_flown_close(&f);
    return status;
}

weft_status weft_calibrate_beside(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                  bool is_late, weft_machine_model *model, weft_error *error)
{
    weft_flown f;
    weft_status status = weft_flown_open(&f, mesh, comms, axes, error);
    if (status == WEFT_OK) status = measure_late(&f, &model->levels[level], error);
    for (int w = 0; w < (int)(sizeof works / sizeof *works) && status == WEFT_OK; w++)
        status = with_program(&f, w, level, is_late ? 1 : KINDS, model, error);
    weft_flown_close(&f);
    return status;
}
