/* passes.h: programs compiled without some of the optional passes, and run in an arena full of NaN: their numbers must be
 * those of programs with all passes, to the bit.
 *
 * The linker puts what is here between the compiler and its passes, and between a test and weft_run (--wrap, in
 * tests/CMakeLists.txt), so the product has no switch for it.
 */
#ifndef TEST_PASSES_H
#define TEST_PASSES_H

#include "ops/run/program.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

/* How a program is compiled and run. */
typedef struct way {
    const char *name;
    bool fuses;
    bool poisons; /* before each run: what is read before it is written is NaN, or -1 */
} way;

/* The first is what the others are compared with. */
static const way ways[] = {
    {"without fuse", .fuses = false},
    {"without fuse, in poisoned memory", .poisons = true},
    {"with fuse, in poisoned memory", .fuses = true, .poisons = true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };
static const way *now = ways;

static uint64_t n_steps[2]; /* of all programs: without fuse, with it */
static uint64_t n_poisoned; /* bytes of all runs */

weft_status __real_weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse(weft_plan *plan, weft_error *error);
weft_status __wrap_weft_pass_fuse(weft_plan *plan, weft_error *error)
{
    const weft_status status = now->fuses ? __real_weft_pass_fuse(plan, error) : WEFT_OK;
    n_steps[now->fuses] += plan->n_steps;
    return status;
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

/* The tests did fuse, and did poison: else they say nothing. */
static void test_there_was_something_to_fuse(void)
{
    /* per program: one way of those without, and the one with */
    CHECK(n_steps[1] > 0 && n_steps[1] < n_steps[0] / 2);
    CHECK(n_poisoned > 0);
}

#endif
