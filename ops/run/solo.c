/* solo: what one rank of a program computes, done here without the others, each step timed.
 *
 * The rank may be of a mesh that is only planned, of any size: its part of every tensor, its kernels and loops and the places of
 * all in memory are known. Only exchanges need others; they are left out. So times are those of the real kernels on memory that is
 * as warm or cold as in a run. Several do the same at once, each with memory and lanes of its own, as the ranks of a host do.
 */
#include "await.h"
#include "program.h"
#include "sync.h"
#include "weft/research/predict.h"

#include <math.h>
#include <stdlib.h>

typedef struct solo {
    weft_program
        program; /* with this one rank; it has no local ranks, so nobody else's memory is looked for */
    weft_rank rank;
    weft_mesh *host;
    int rounds;
    int64_t others_bytes; /* that are gone through before each round */
    char *others;         /* [others_bytes], or NULL */
    bool *is_bound;       /* [n_steps] */
    double *seconds;      /* [n_steps][rounds] */
} solo;

static bool computes(const weft_step *step)
{
    const bool exchanges = step->kind == WEFT_STEP_CONVERT && step->convert.axes != 0;
    return !exchanges && step->kind != WEFT_STEP_BEGIN && step->kind != WEFT_STEP_GUARD &&
           step->kind != WEFT_STEP_END;
}

/* ---- on the thread that asks --------------------------------------------------------------------- */

static weft_status take_arrays(solo *s, const weft_plan *plan, weft_error *error)
{
    weft_arena *arena = s->program.arena;
    const size_t n_placed = plan->n_placed + 1, n_steps = plan->n_steps + 1;
    s->program.given = weft_arena_take(arena, n_placed * sizeof *s->program.given);
    s->program.common = weft_arena_take(arena, n_placed * sizeof *s->program.common);
    s->rank.memory = weft_arena_take(arena, n_placed * sizeof *s->rank.memory);
    s->rank.steps = weft_arena_take(arena, n_steps * sizeof *s->rank.steps);
    s->rank.likes = weft_arena_take(arena, plan->likes.n_steps * sizeof *s->rank.likes);
    s->rank.trips = weft_arena_take(arena, (plan->graph->n_scans + 1) * sizeof *s->rank.trips);
    s->is_bound = weft_arena_take(arena, n_steps * sizeof *s->is_bound);
    s->seconds = weft_arena_take(arena, n_steps * (size_t)s->rounds * sizeof *s->seconds);
    const bool is_there = s->program.given && s->program.common && s->rank.memory &&
                          s->rank.steps && s->rank.likes && s->rank.trips && s->is_bound &&
                          s->seconds;
    return is_there ? WEFT_OK : weft_fail_memory(error, n_steps * sizeof *s->rank.steps);
}

static weft_status open_solo(solo *s, const weft_program *program, int rank, int at,
                             weft_error *error)
{
    s->program = (weft_program){.plan = program->plan, .user = program->user, .mesh = s->host};
    s->program.arena = weft_arena_create();
    if (!s->program.arena) return weft_fail_memory(error, sizeof *s);
    s->rank = (weft_rank){.program = &s->program, .rank = rank};
    s->rank.device = weft_devices[weft_mesh_device(s->host)];
    s->rank.stream = weft_mesh_stream(s->host, at);
    WEFT_TRY(take_arrays(s, program->plan, error));
    s->others = s->others_bytes > 0 ? calloc(1, (size_t)s->others_bytes) : NULL;
    if (s->others_bytes > 0 && !s->others) return weft_fail_memory(error, (size_t)s->others_bytes);
    return weft_plan_memory(program->plan, rank, s->program.arena, &s->rank.layout, error);
}

/* All of them together must find room, where the device says how much there is. */
static weft_status check_room(solo *solos, int n, weft_error *error)
{
    const weft_rank *first = &solos[0].rank;
    const int64_t room = first->device->room ? first->device->room(first->stream) : -1;
    WEFT_TRY(weft_count_homes(&solos[0].rank, error));
    const double bytes =
        (double)n * ((double)first->homes_bytes + (double)first->layout.arena_bytes);
    if (room < 0 || bytes <= (double)room) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "measuring rank %d needs %.3g GiB for %d at once, and %.3g GiB are free; "
                     "measure a smaller model, or fewer at once",
                     first->rank, bytes / 0x1p30, n, (double)room / 0x1p30);
}

static weft_status bind_all(solo *s, weft_error *error)
{
    const weft_plan *plan = s->program.plan;
    weft_find_memory(&s->rank);
    for (uint32_t step = 0; step < plan->n_steps; step++) {
        if (!computes(&plan->steps[step])) continue;
        WEFT_TRY(weft_bind_step(&s->rank, step, error));
        s->is_bound[step] = true;
    }
    return WEFT_OK;
}

static void close_solo(solo *s)
{
    if (!s->program.arena) return;
    free(s->others);
    weft_unbind(&s->rank);
    weft_give_memory(&s->rank);
    weft_arena_destroy(&s->program.arena);
}

/* ---- on the ranks' own threads ---------------------------------------------------------------------- */

static void take_memory(void *argument, int at)
{
    solo *s = (solo *)argument + at;
    if (weft_take_memory(&s->rank, &s->rank.error) == WEFT_OK)
        (void)weft_draw_inputs(&s->rank, &s->rank.error);
}

/* A kernel that refuses what is in memory has been timed all the same. */
static double time_step(solo *s, uint32_t step)
{
    weft_rank *rank = &s->rank;
    weft_error refused = WEFT_NO_ERROR;
    const double begin = weft_sync_seconds();
    (void)rank->steps[step].run(rank, &rank->steps[step], &refused);
    weft_await(NULL, rank->device, rank->stream, rank->device->record(rank->stream, WEFT_COMPUTE),
               NULL, NULL);
    const double seconds = weft_sync_seconds() - begin;
    weft_error_clear(&rank->error);
    return seconds;
}

enum { LINE = 64 };

static void touch(void *argument, int64_t begin, int64_t end, int lane)
{
    char *others = argument;
    (void)lane;
    for (int64_t line = begin; line < end; line++)
        others[line * LINE]++;
}

/* All lanes, so that each core's own cache has other things. */
static void go_through_others(const solo *s)
{
    enum { GRAIN = 1024 };
    if (s->others) weft_parallel(s->rank.stream, s->others_bytes / LINE, GRAIN, touch, s->others);
}

/* The first round touches memory and fills what is made once. */
static void time_all(void *argument, int at)
{
    solo *s = (solo *)argument + at;
    for (int round = -1; round < s->rounds; round++) {
        go_through_others(s);
        for (uint32_t step = 0; step < s->program.plan->n_steps; step++) {
            const double seconds = s->is_bound[step] ? time_step(s, step) : 0;
            if (round >= 0) s->seconds[step * (size_t)s->rounds + (size_t)round] = seconds;
        }
    }
}

/* ---- what came out ------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double mean_of(const double *seconds, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds[i];
    return sum / n;
}

/* Others on the cores make a step longer, and nothing makes it shorter: so of each step the fastest quarter counts, by itself. A
 * disturbance takes a time slice of one step; where they come often, no round is without. */
static void tell(const solo *solos, int n, double *seconds, double *spread)
{
    const int rounds = solos[0].rounds;
    for (uint32_t s = 0; s < solos[0].program.plan->n_steps; s++) {
        double fastest = 0, mean = 0;
        for (int at = 0; at < n; at++) {
            double *own = solos[at].seconds + s * (size_t)rounds;
            qsort(own, (size_t)rounds, sizeof *own, ascending);
            fastest += mean_of(own, (rounds + 3) / 4) / n;
            mean += mean_of(own, rounds) / n;
        }
        seconds[s] = fastest;
        if (spread) spread[s] = fastest > 0 ? fmax(mean / fastest - 1, 0) : 0;
    }
}

static weft_status measure(solo *solos, int n, weft_mesh *host, weft_error *error)
{
    WEFT_TRY(check_room(solos, n, error));
    weft_mesh_each(host, take_memory, solos);
    for (int at = 0; at < n; at++)
        WEFT_TRY(
            solos[at].rank.error.status != WEFT_OK
                ? weft_fail(error, solos[at].rank.error.status, "%s", solos[at].rank.error.message)
                : bind_all(&solos[at], error));
    weft_mesh_each(host, time_all, solos);
    return WEFT_OK;
}

static weft_status check_call(const weft_program *program, int rank, const weft_mesh *host,
                              int rounds, weft_error *error)
{
    WEFT_GIVEN_RANGE(rank, 0, weft_mesh_n_ranks(program->plan->mesh) - 1, error);
    WEFT_GIVEN_RANGE(rounds, 1, 1000, error);
    const int n = weft_mesh_n_local(host);
    if (n > 0 && n == weft_mesh_n_ranks(host)) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "weft_plan_measure: of the mesh %s, %d ranks are of this process; take one "
                     "whose ranks all are",
                     weft_mesh_text(host), n);
}

weft_status weft_plan_measure_cold(const weft_program *program, int rank, weft_mesh *host,
                                   int rounds, int64_t others_bytes, double *seconds,
                                   double *spread, weft_error *error)
{
    const int n = weft_mesh_n_local(host);
    solo *solos = calloc((size_t)n, sizeof *solos);
    weft_status status = solos ? WEFT_OK : weft_fail_memory(error, (size_t)n * sizeof *solos);
    for (int at = 0; at < n && status == WEFT_OK; at++) {
        solos[at].host = host;
        solos[at].rounds = rounds;
        solos[at].others_bytes = others_bytes;
        status = open_solo(&solos[at], program, rank, at, error);
    }
    if (status == WEFT_OK) status = measure(solos, n, host, error);
    if (status == WEFT_OK) tell(solos, n, seconds, spread);
    for (int at = 0; at < n && solos; at++)
        close_solo(&solos[at]);
    free(solos);
    return status;
}

weft_status weft_plan_measure(const weft_program *program, int rank, weft_mesh *host, int rounds,
                              double *seconds, double *spread, weft_error *error)
{
    WEFT_GIVEN(program, error);
    WEFT_GIVEN(host, error);
    WEFT_GIVEN(seconds, error);
    WEFT_TRY(check_call(program, rank, host, rounds, error));
    return weft_plan_measure_cold(program, rank, host, rounds, 0, seconds, spread, error);
}
