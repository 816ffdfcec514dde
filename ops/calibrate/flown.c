/* flown: one kind of exchange at one size, flown again and again by all ranks, and timed. */
#include "flown.h"
#include "sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 5, LEAST_ROUNDS = 4, MOST_ROUNDS = 200, ROOM = 1 << 29 };
static const double LONG_ENOUGH_S = 2e-3, TOO_LONG_S = 0.1;

/* ---- a rank ------------------------------------------------------------------------------------------ */

static int64_t bytes_of(const weft_flown *f, const weft_spec *spec, int rank)
{
    weft_box box;
    weft_spec_box(spec, f->mesh, &f->shape, rank, &box);
    return weft_box_count(&box, f->shape.n_dims) * (int64_t)weft_dtype_bytes(WEFT_F32);
}

/* What a rank flies, and where. */
typedef struct piece {
    weft_flight *flight;
    char *from, *to, *scratch;
} piece;

static weft_status fly(weft_flown *f, int rank, const piece *p, weft_error *error)
{
    if (f->before) f->before(f, rank);
    WEFT_TRY(weft_flight_start(p->flight, p->from, p->to, p->scratch, error));
    if (f->meanwhile) f->meanwhile(f, rank);
    return weft_flight_finish(p->flight, error);
}

static weft_status fly_all(weft_flown *f, int rank, const piece *p, int rounds, weft_error *error)
{
    double *seconds = &f->seconds[rank - weft_mesh_first_local(f->mesh)];
    const double begin = weft_sync_seconds();
    for (int i = 0; i < rounds; i++)
        WEFT_TRY(fly(f, rank, p, error));
    const double took = (weft_sync_seconds() - begin) / rounds;
    if (took > 0) *seconds = fmin(*seconds, took); /* a clock may be set back */
    return WEFT_OK;
}

static weft_status time_flights(weft_flown *f, int rank, const piece *p, weft_error *error)
{
    const int at = rank - weft_mesh_first_local(f->mesh);
    WEFT_TRY(fly_all(f, rank, p, 1, error));
    f->seconds[at] = INFINITY;
    for (int k = 0; k < TRIES; k++)
        WEFT_TRY(fly_all(f, rank, p, f->rounds, error));
    return WEFT_OK;
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static weft_status time_rank(weft_flown *f, int rank, weft_error *error)
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
        const piece p = {flight, memory, memory + from, memory + from + to};
        status = time_flights(f, rank, &p, error);
    }
    weft_flight_destroy(&flight);
    weft_move_destroy(&move);
    free(memory);
    return status;
}

static void time_here(void *argument, int rank)
{
    weft_flown *f = argument;
    const int at = rank - weft_mesh_first_local(f->mesh);
    (void)!time_rank(f, rank, &f->errors[at]);
}

/* ---- all ranks ----------------------------------------------------------------------------------------- */

/* The largest number that a process has. Collective over the mesh, where each process has one rank. */
static weft_status largest(const weft_flown *f, double *number, weft_error *error)
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

weft_status weft_flown_slowest(weft_flown *f, const double *numbers, double *slowest,
                               weft_error *error)
{
    const int n_local = weft_mesh_n_local(f->mesh);
    *slowest = 0;
    for (int at = 0; at < n_local; at++) {
        *slowest = fmax(*slowest, numbers[at]);
        if (f->errors[at].status != WEFT_OK)
            (void)!weft_fail(error, f->errors[at].status, "%s", f->errors[at].message);
    }
    WEFT_TRY(weft_world_agree(error));
    return n_local < weft_mesh_n_ranks(f->mesh) ? largest(f, slowest, error) : WEFT_OK;
}

/* Whether all ranks of a host have room for what they send, receive and put together: three times the whole at most. */
static bool has_room(const weft_flown *f, int64_t columns, int n)
{
    const double whole =
        (double)n * (double)n * (double)columns * (double)weft_dtype_bytes(WEFT_F32);
    return 3 * whole * f->n_host <= ROOM;
}

/* One alone seems short to whoever comes last, as what it waits for is there already; and a link that has rested may let more
 * through at once than it lets through for long. */
static int rounds_of(double seconds)
{
    const double enough = fmin(fmax(LONG_ENOUGH_S, LEAST_ROUNDS * seconds), TOO_LONG_S);
    const double rounds = enough / fmax(seconds, 1e-9);
    return rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : (int)rounds;
}

weft_status weft_flown_time(weft_flown *f, int rounds, double *seconds, weft_error *error)
{
    f->rounds = rounds > 0 ? rounds : 1;
    weft_mesh_each(f->mesh, time_here, f);
    WEFT_TRY(weft_flown_slowest(f, f->seconds, seconds, error));
    if (rounds > 0) return WEFT_OK;
    f->rounds = rounds_of(*seconds); /* the same on all ranks */
    weft_mesh_each(f->mesh, time_here, f);
    return weft_flown_slowest(f, f->seconds, seconds, error);
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
static void set_step(weft_flown *f, weft_convert_kind kind)
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

bool weft_flown_set(weft_flown *f, weft_convert_kind kind, int64_t columns)
{
    const int n = weft_mesh_group(f->mesh, f->axes, weft_mesh_first_local(f->mesh), NULL, NULL);
    f->shape = WEFT_DIMS(((weft_dim){"row", n}), ((weft_dim){"column", columns * n}));
    set_step(f, kind);
    return has_room(f, columns, n);
}

weft_status weft_flown_open(weft_flown *f, weft_mesh *mesh, weft_comms *comms, uint32_t axes,
                            weft_error *error)
{
    const int n_local = weft_mesh_n_local(mesh), near = weft_world_n_near();
    *f = (weft_flown){.mesh = mesh, .comms = comms, .axes = axes};
    f->n_host = n_local > near ? n_local : near;
    f->seconds = calloc((size_t)n_local, sizeof *f->seconds);
    f->errors = calloc((size_t)n_local, sizeof *f->errors);
    if (!f->seconds || !f->errors)
        return weft_fail_memory(error, (size_t)n_local * sizeof *f->errors);
    return WEFT_OK;
}

void weft_flown_close(weft_flown *f)
{
    free(f->seconds);
    free(f->errors);
}
