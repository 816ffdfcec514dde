/* exchanges: seconds of each kind of exchange by size, as training makes them: all ranks of a group at once, and all groups.
 *
 * A move of each kind and size is flown again and again. Of a few tries the fastest counts, as others may be using links or
 * cores, and of all ranks the slowest, since an exchange waits for it.
 */
#include "calibrate.h"
#include "sync.h"

#include "weft/collectives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 5,
    MOST_ROUNDS = 200,
    LEAST_COLUMNS = 4,
    MOST_COLUMNS = 1 << 20,
    GROWTH = 8,
    ROOM = 1 << 29,
    LEAST_SIZES = 3
};
static const double LONG_ENOUGH_S = 2e-3, TOO_LONG_S = 0.2;

/* One kind at one size. */
typedef struct flown {
    weft_mesh *mesh;
    weft_comms *comms;
    uint32_t axes;
    int n_host; /* ranks of a host */
    weft_shape shape;
    weft_convert_step step;
    int rounds;
    bool is_late;       /* the same on all ranks: no more sizes than there must be */
    double *seconds;    /* [n_local] */
    weft_error *errors; /* [n_local] */
} flown;

static double now_s(void)
{
    return 1e-9 * (double)weft_sync_now();
}

/* ---- a rank ------------------------------------------------------------------------------------------ */

static int64_t bytes_of(const flown *f, const weft_spec *spec, int rank)
{
    weft_box box;
    weft_spec_box(spec, f->mesh, &f->shape, rank, &box);
    return weft_box_count(&box, f->shape.n_dims) * (int64_t)weft_dtype_bytes(WEFT_F32);
}

static weft_status fly(weft_flight *flight, const void *from, void *to, void *scratch, int rounds,
                       weft_error *error)
{
    for (int i = 0; i < rounds; i++) {
        WEFT_TRY(weft_flight_start(flight, from, to, scratch, error));
        WEFT_TRY(weft_flight_finish(flight, error));
    }
    return WEFT_OK;
}

static weft_status time_flights(const flown *f, weft_flight *flight, char *memory, int64_t from,
                                int64_t to, double *seconds, weft_error *error)
{
    *seconds = INFINITY;
    WEFT_TRY(fly(flight, memory, memory + from, memory + from + to, 1, error));
    for (int k = 0; k < TRIES; k++) {
        const double begin = now_s();
        WEFT_TRY(fly(flight, memory, memory + from, memory + from + to, f->rounds, error));
        const double took = (now_s() - begin) / f->rounds;
        if (took > 0) *seconds = fmin(*seconds, took); /* a clock may be set back */
    }
    return WEFT_OK;
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static weft_status time_rank(const flown *f, int rank, double *seconds, weft_error *error)
{
    weft_move *move = NULL;
    weft_flight *flight = NULL;
    char *memory = NULL;
    const int64_t from = rounded(bytes_of(f, &f->step.from, rank)),
                  to = rounded(bytes_of(f, &f->step.to, rank));
    weft_status status =
        weft_move_create(f->mesh, &f->shape, WEFT_F32, &f->step, rank, &move, error);
    if (status == WEFT_OK)
        status = weft_flight_create(move, weft_comm_of(f->comms, rank, f->axes), &flight, error);
    const size_t all =
        status == WEFT_OK ? (size_t)(from + to + rounded(weft_move_scratch(move))) + 64 : 64;
    if (status == WEFT_OK && !(memory = aligned_alloc(64, all / 64 * 64)))
        status = weft_fail_memory(error, all);
    if (status == WEFT_OK) {
        memset(memory, 0, all / 64 * 64);
        status = time_flights(f, flight, memory, from, to, seconds, error);
    }
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    free(memory);
    return status;
}

static void time_here(void *argument, int rank)
{
    flown *f = argument;
    const int at = rank - weft_mesh_first_local(f->mesh);
    (void)!time_rank(f, rank, &f->seconds[at], &f->errors[at]);
}

/* ---- all ranks ----------------------------------------------------------------------------------------- */

/* The largest number that a process has. Collective over the mesh, where each process has one rank. */
static weft_status largest(const flown *f, double *number, weft_error *error)
{
    const int n = weft_mesh_n_ranks(f->mesh), first = weft_mesh_first_local(f->mesh);
    const uint32_t everybody = (1u << weft_mesh_n_axes(f->mesh)) - 1;
    weft_request request;
    double *all = calloc((size_t)n, sizeof *all);
    int64_t *places = calloc(2 * (size_t)n, sizeof *places);
    for (int r = 0; all && places && r < n; r++)
        places[r] = (int64_t)sizeof *all, places[n + r] = r * (int64_t)sizeof *all;
    weft_status status = all && places ? WEFT_OK : weft_fail_memory(error, (size_t)n * sizeof *all);
    const double own = *number;
    if (status == WEFT_OK)
        status = weft_all_gather_start(weft_comm_of(f->comms, first, everybody), &own, sizeof own,
                                       all, places, places + n, &request, error);
    if (status == WEFT_OK) status = weft_wait(&request, error);
    for (int r = 0; status == WEFT_OK && r < n; r++)
        *number = fmax(*number, all[r]);
    free(all);
    free(places);
    return status;
}

static weft_status slowest(const flown *f, double *seconds, weft_error *error)
{
    const int n_local = weft_mesh_n_local(f->mesh);
    *seconds = 0;
    for (int at = 0; at < n_local; at++) {
        *seconds = fmax(*seconds, f->seconds[at]);
        if (f->errors[at].status != WEFT_OK)
            (void)!weft_fail(error, f->errors[at].status, "%s", f->errors[at].message);
    }
    WEFT_TRY(weft_world_agree(error));
    return n_local < weft_mesh_n_ranks(f->mesh) ? largest(f, seconds, error) : WEFT_OK;
}

/* Whether all ranks of a host have room for what they send, receive and put together: three times the whole at most. */
static bool has_room(const flown *f, int64_t columns, int n)
{
    const double whole =
        (double)n * (double)n * (double)columns * (double)weft_dtype_bytes(WEFT_F32);
    return 3 * whole * f->n_host <= ROOM;
}

/* As many rounds as are long enough for the clock: the same on all ranks, by what the slowest needed for one. */
static weft_status time_all(flown *f, double *seconds, weft_error *error)
{
    f->rounds = 1;
    weft_mesh_each(f->mesh, time_here, f);
    WEFT_TRY(slowest(f, seconds, error));
    const double rounds = LONG_ENOUGH_S / fmax(*seconds, 1e-9);
    f->rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : (int)rounds;
    weft_mesh_each(f->mesh, time_here, f);
    return slowest(f, seconds, error);
}

static void split(weft_spec *spec, int dim, uint32_t axes)
{
    for (int a = 0; a < WEFT_MAX_AXES; a++)
        if (axes >> a & 1) spec->split[dim][spec->n_split[dim]++] = (int8_t)a;
}

static void sum_over(weft_spec *spec, uint32_t axes)
{
    spec->partial = (uint8_t)axes;
    spec->combine = WEFT_SUM;
}

/* From where to where each kind brings rows and columns. */
static void set_step(flown *f, weft_convert_kind kind)
{
    weft_spec rows = {0}, columns = {0}, sums = {0}, whole = {0};
    split(&rows, 0, f->axes);
    split(&columns, 1, f->axes);
    sum_over(&sums, f->axes);
    const weft_convert_step steps[WEFT_CONVERTS] = {
        [WEFT_ALL_REDUCE] = {.from = sums, .to = whole},
        [WEFT_REDUCE_SCATTER] = {.from = sums, .to = rows},
        [WEFT_ALL_GATHER] = {.from = rows, .to = whole},
        [WEFT_ALL_TO_ALL] = {.from = rows, .to = columns},
        [WEFT_MOVE] = {.from = rows, .to = columns},
    };
    f->step = steps[kind];
    f->step.kind = kind;
    f->step.axes = f->axes;
}

static weft_status measure_kind(flown *f, weft_convert_kind kind, int level,
                                weft_machine_model *model, weft_error *error)
{
    weft_exchange_curve *curve;
    const int first = weft_mesh_first_local(f->mesh),
              n = weft_mesh_group(f->mesh, f->axes, first, NULL, NULL);
    WEFT_TRY(weft_machine_add_exchange(model, kind, level, n, &curve, error));
    for (int64_t columns = LEAST_COLUMNS; columns <= MOST_COLUMNS && has_room(f, columns, n);
         columns *= GROWTH) {
        weft_exchange exchange;
        double seconds;
        f->shape = WEFT_DIMS(((weft_dim){"row", n}), ((weft_dim){"column", columns * n}));
        set_step(f, kind);
        const weft_type type = {.dtype = WEFT_F32, .shape = f->shape};
        if (!weft_convert_exchange(f->mesh, &type, &f->step, first, &exchange)) break;
        WEFT_TRY(time_all(f, &seconds, error));
        WEFT_TRY(weft_curve_add(model->arena, &curve->seconds, exchange.bytes, seconds, error));
        if (seconds > TOO_LONG_S || (curve->seconds.n >= LEAST_SIZES && f->is_late)) break;
    }
    return WEFT_OK;
}

/* Its latency and rate, for kinds and sizes of groups that were not measured: by the shortest and the longest all_gather. */
static void set_links(weft_machine_model *model, int level, int n)
{
    const weft_curve *curve = NULL;
    for (int e = 0; e < model->n_exchanges; e++)
        if (model->exchanges[e].kind == WEFT_ALL_GATHER && model->exchanges[e].level == level)
            curve = &model->exchanges[e].seconds;
    if (!curve || curve->n < 2) return;
    const int last = curve->n - 1;
    const double longer = fmax(curve->value[last] - curve->value[0], 1e-3 * curve->value[last]);
    model->levels[level].latency_seconds = curve->value[0] / (n - 1);
    model->levels[level].bytes_per_second = curve->size[last] * (n - 1) / n / longer;
}

weft_status weft_calibrate_exchanges(weft_mesh *mesh, weft_comms *comms, uint32_t axes, int level,
                                     bool is_late, weft_machine_model *model, weft_error *error)
{
    static const weft_convert_kind kinds[] = {WEFT_ALL_REDUCE, WEFT_ALL_GATHER, WEFT_REDUCE_SCATTER,
                                              WEFT_ALL_TO_ALL, WEFT_MOVE};
    const int n_local = weft_mesh_n_local(mesh);
    flown f = {.mesh = mesh, .comms = comms, .axes = axes, .is_late = is_late};
    f.n_host = n_local > weft_world_n_near() ? n_local : weft_world_n_near();
    f.seconds = calloc((size_t)n_local, sizeof *f.seconds);
    f.errors = calloc((size_t)n_local, sizeof *f.errors);
    weft_status status = f.seconds && f.errors
                             ? WEFT_OK
                             : weft_fail_memory(error, (size_t)n_local * sizeof *f.errors);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == WEFT_OK; k++)
        status = measure_kind(&f, kinds[k], level, model, error);
    if (status == WEFT_OK)
        set_links(model, level,
                  weft_mesh_group(mesh, axes, weft_mesh_first_local(mesh), NULL, NULL));
    free(f.seconds);
    free(f.errors);
    return status;
}
