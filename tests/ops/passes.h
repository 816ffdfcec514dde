/* passes.h: programs compiled without some of the optional passes, and run in an arena full of NaN: their numbers must be
 * those of programs with all passes, to the bit.
 *
 * The linker puts what is here between the compiler and its passes, and between a test and weft_run (--wrap, in
 * tests/CMakeLists.txt), so the product has no switch for it.
 */
#ifndef TEST_PASSES_H
#define TEST_PASSES_H

#include "ops/compile/passes.h"
#include "ops/run/program.h"

#include "flights.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

/* How a program is compiled and run. */
typedef struct way {
    const char *name;
    bool fuses, bundles, joins, hurries, schedules;
    bool poisons; /* before each run: what is read before it is written is NaN, or -1 */
} way;

/* The first is what the others are compared with. */
static const way ways[] = {
    {"with no pass", .fuses = false},
    {"with no pass, in poisoned memory", .poisons = true},
    {"with fuse, in poisoned memory", .fuses = true, .poisons = true},
    {"with bundle, in poisoned memory", .bundles = true, .poisons = true},
    {"with early, in poisoned memory", .hurries = true, .poisons = true},
    {"with schedule, in poisoned memory", .schedules = true, .poisons = true},
    {"with all passes, in poisoned memory", .fuses = true, .bundles = true, .joins = true,
     .hurries = true, .schedules = true, .poisons = true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };
static const way *now = ways;

static uint64_t n_steps[2];     /* of all programs: without fuse, with it; no other pass        */
static uint64_t n_bundled;      /* steps that bundle did away with                               */
static uint64_t n_exchanges[2]; /* of all programs that are joined: before, and after            */
static uint64_t
    n_grown; /* of those, and of those whose steps move: with more bytes exchanged, or a larger arena of rank 0 */
static uint64_t n_moved; /* steps that stand earlier than they did                        */
static uint64_t n_flights, n_beside; /* exchanges that go on; steps that are done meanwhile */
static uint64_t n_poisoned;          /* bytes of all runs */

weft_status __real_weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse(weft_plan *plan, weft_error *error)
{
    const weft_status status = now->fuses ? __real_weft_pass_fuse(plan, error) : WEFT_OK;
    if (!now->bundles) n_steps[now->fuses] += plan->n_steps;
    return status;
}

weft_status __real_weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse_horizontal(weft_plan *plan, weft_error *error)
{
    const uint32_t before = plan->n_steps;
    const weft_status status =
        now->bundles ? __real_weft_pass_fuse_horizontal(plan, error) : WEFT_OK;
    n_bundled += before - plan->n_steps;
    return status;
}

/* Exchanges, bytes and arena of rank 0. */
typedef struct amounts {
    int64_t count, bytes, arena;
} amounts;

static weft_status find_amounts(const weft_plan *plan, amounts *found, weft_error *error)
{
    weft_arena *arena = weft_arena_create();
    weft_memory memory;
    *found = (amounts){0};
    if (!arena) return weft_fail_memory(error, sizeof memory);
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        weft_exchange exchange;
        if (!weft_step_exchange(plan, &plan->steps[s], 0, &exchange)) continue;
        found->count++;
        found->bytes += weft_step_wire_bytes(plan, &plan->steps[s], 0);
    }
    const weft_status status = weft_plan_memory(plan, 0, arena, &memory, error);
    found->arena = memory.arena_bytes;
    weft_arena_destroy(&arena);
    return status;
}

weft_status __real_weft_pass_bucket(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_bucket(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_bucket(weft_plan *plan, weft_error *error)
{
    amounts before, after;
    if (!now->joins) return WEFT_OK;
    WEFT_TRY(find_amounts(plan, &before, error));
    WEFT_TRY(__real_weft_pass_bucket(plan, error));
    WEFT_TRY(find_amounts(plan, &after, error));
    n_exchanges[0] += (uint64_t)before.count;
    n_exchanges[1] += (uint64_t)after.count;
    n_grown += after.count > before.count || after.bytes != before.bytes ||
               after.arena > before.arena + (after.count < before.count ? WEFT_JOIN_SPARE : 0);
    return WEFT_OK;
}

weft_status __real_weft_pass_hoist(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_hoist(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_hoist(weft_plan *plan, weft_error *error)
{
    amounts before, after;
    if (!now->hurries) return WEFT_OK;
    const uint32_t n = plan->n_steps;
    weft_step *as_built = calloc(n + 1, sizeof *as_built);
    if (!as_built) return weft_fail_memory(error, n * sizeof *as_built);
    memcpy(as_built, plan->steps, n * sizeof *as_built);
    weft_status status = find_amounts(plan, &before, error);
    if (status == WEFT_OK) status = __real_weft_pass_hoist(plan, error);
    if (status == WEFT_OK) status = find_amounts(plan, &after, error);
    for (uint32_t s = 0; s < n && status == WEFT_OK; s++)
        n_moved += as_built[s].out != plan->steps[s].out;
    n_grown += status == WEFT_OK && (plan->n_steps != n || after.count != before.count ||
                                     after.bytes != before.bytes || after.arena > before.arena);
    free(as_built);
    return status;
}

weft_status __real_weft_pass_schedule(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_schedule(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_schedule(weft_plan *plan, weft_error *error)
{
    char text[200];
    if (!now->schedules) return WEFT_OK;
    WEFT_TRY(__real_weft_pass_schedule(plan, error));
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        n_beside += weft_step_end(&plan->steps[s], s) - s;
        n_flights += weft_step_end(&plan->steps[s], s) > s;
    }
    const int rank = (int)(plan->n_steps % (uint32_t)weft_mesh_n_ranks(plan->mesh));
    weft_test_check(flights_are_left_alone(plan, rank, text, sizeof text), __FILE__, __LINE__,
                    text);
    return WEFT_OK;
}

/* Loops do not resume what reductions leave: that an exp is the product of two others is seen in the last digits
 * (kernel_loop_leave_test, and the oracle, which compares with the definitions, have it). */
void __wrap_weft_making_leave(void *making);
void __wrap_weft_making_leave(void *making)
{
    (void)making;
}

weft_status __real_weft_run(weft_program *program, weft_error *error);
weft_status __wrap_weft_run(weft_program *program, weft_error *error);
weft_status __wrap_weft_run(weft_program *program, weft_error *error)
{
    for (int r = 0; r < program->n_local && now->poisons; r++) {
        const weft_rank *rank = &program->ranks[r];
        if (rank->arena) memset(rank->arena, 0xFF, (size_t)rank->layout.arena_bytes);
        n_poisoned += (uint64_t)rank->layout.arena_bytes;
    }
    return __real_weft_run(program, error);
}

/* Equal to the bit; text says where they are not. */
static bool same_bits(const double *a, const double *b, int64_t n, char *text, size_t bytes)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        snprintf(text, bytes, "number %lld of %lld: %.17g %s, %.17g %s", (long long)i, (long long)n,
                 a[i], ways[0].name, b[i], now->name);
        return false;
    }
    text[0] = '\0';
    return true;
}

/* The tests did fuse, did join, and did poison: else they say nothing. */
static void test_every_pass_had_something_to_do(void)
{
    /* per program: one way of those without, and the one with */
    CHECK(n_steps[1] > 0 && n_steps[1] < n_steps[0] / 2);
    CHECK(n_exchanges[1] > 0 && n_exchanges[1] < n_exchanges[0]);
    CHECK(n_bundled > 0);
    CHECK(n_moved > 0);
    CHECK(n_flights > 0 && n_beside > n_flights);
    CHECK(n_poisoned > 0);
}

static void test_nothing_grows_by_joining_or_moving(void)
{
    CHECK_EQ_INT(n_grown, 0);
}

#endif
