/* flights.h: whether what exchanges read and write is left alone while they go on: by the steps between, and by the arena.
 *
 * The check knows nothing of how schedule and memory find their answers: it looks at every pair of steps.
 */
#ifndef TEST_FLIGHTS_H
#define TEST_FLIGHTS_H

#include "ops/compile/passes.h"

#include <stdio.h>

/* Memory of one rank: bytes [begin, end) of the arena, or a variable's or input's. */
typedef struct flight_memory {
    uint32_t home; /* placed; 0: the arena */
    int64_t begin, end;
} flight_memory;

static flight_memory flight_memory_of(const weft_plan *plan, const weft_memory *memory,
                                      uint32_t placed, int rank)
{
    const uint32_t owner = weft_placed_owner(plan, placed);
    const int64_t bytes = weft_placed_bytes(plan, placed, rank);
    if (plan->placed[owner].home != WEFT_TEMPORARY) return (flight_memory){owner, 0, bytes};
    return (flight_memory){0, memory->offset[placed], memory->offset[placed] + bytes};
}

static bool flights_meet(flight_memory a, flight_memory b)
{
    return a.home == b.home && a.begin < b.end && b.begin < a.end;
}

/* What a step reads (operands), then what it writes (results, scratch). */
static int flight_memories(const weft_plan *plan, const weft_memory *memory, uint32_t s, int rank,
                           flight_memory *all, int *n_read)
{
    const weft_step *step = &plan->steps[s];
    weft_error error = {0};
    int64_t scratch = 0;
    int n = 0;
    for (int i = 0; i < step->n_in; i++)
        all[n++] = flight_memory_of(plan, memory, step->in[i], rank);
    *n_read = n;
    for (int o = 0; o < step->n_out; o++)
        all[n++] = flight_memory_of(plan, memory, step->out[o], rank);
    if (weft_step_scratch(plan, step, rank, &scratch, &error) == WEFT_OK && scratch > 0)
        all[n++] = (flight_memory){0, memory->scratch[s], memory->scratch[s] + scratch};
    return n;
}

/* Step t, while exchange s goes on, may read what it reads, and nothing else. */
static bool flight_is_left_alone(const weft_plan *plan, const weft_memory *memory, uint32_t s,
                                 uint32_t t, int rank)
{
    static flight_memory its[2 * 4096], others[2 * 4096];
    int n_its_reads, n_reads;
    const int n_its = flight_memories(plan, memory, s, rank, its, &n_its_reads);
    const int n_others = flight_memories(plan, memory, t, rank, others, &n_reads);
    for (int i = 0; i < n_its; i++)
        for (int k = 0; k < n_others; k++) {
            const bool both_read = i < n_its_reads && k < n_reads;
            if (!both_read && flights_meet(its[i], others[k])) return false;
        }
    return true;
}

static bool flights_are_left_alone(const weft_plan *plan, int rank, char *text, size_t bytes)
{
    weft_arena *arena = weft_arena_create();
    weft_error error = {0};
    weft_memory memory;
    bool is_well = arena && weft_plan_memory(plan, rank, arena, &memory, &error) == WEFT_OK;
    snprintf(text, bytes, "%s", error.message);
    for (uint32_t s = 0; s < plan->n_steps && is_well; s++)
        for (uint32_t t = s + 1; t <= weft_step_end(&plan->steps[s], s) && is_well; t++) {
            is_well = flight_is_left_alone(plan, &memory, s, t, rank);
            snprintf(text, bytes, "step %u touches what exchange %u, until %u, has under way", t, s,
                     plan->steps[s].until);
        }
    weft_arena_destroy(&arena);
    return is_well;
}

#endif
