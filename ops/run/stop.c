/* stop: a run that a signal stops: all ranks before the same step, and before any that writes a variable.
 *
 * Before a step each rank says how many it has begun, and then looks whether all stop. The first that sees the signal asks for a
 * stop, and says where: behind the furthest step that any has begun. Others wait meanwhile, for the time of a few loads. The rank
 * that asks sees the number of whoever has not seen its question.
 */
#include "stop.h"

static const uint64_t runs_on = UINT64_MAX, is_asked = UINT64_MAX - 1;

_Atomic bool weft_stop_is_wanted;

/* Once for a program; its arena's memory, on a line of its own. */
weft_status weft_stop_begin(weft_program *program, weft_error *error)
{
    const size_t line = sizeof(weft_stop_count);
    const size_t bytes = (size_t)(program->n_local + 2) * line;
    if (program->stop == NULL) {
        char *memory = weft_arena_take(program->arena, bytes);
        if (memory == NULL) return weft_fail_memory(error, bytes);
        program->stop = (weft_stop *)(void *)(memory + (line - (uintptr_t)memory % line) % line);
    }
    weft_sync_store(&program->stop->at, runs_on);
    for (int at = 0; at < program->n_local; at++)
        weft_sync_store(&program->stop->begun[at].steps, 0);
    return WEFT_OK;
}

static uint64_t ask(weft_stop *stop, int n_ranks)
{
    uint64_t at = runs_on, furthest = 0;
    if (!weft_sync_replace(&stop->at, &at, is_asked)) return at;
    for (int rank = 0; rank < n_ranks; rank++) {
        const uint64_t steps = weft_sync_load(&stop->begun[rank].steps);
        if (steps > furthest) furthest = steps;
    }
    weft_sync_store(&stop->at, furthest + 1);
    return furthest + 1;
}

bool weft_stops_before_step(const weft_rank *rank)
{
    weft_stop *stop = rank->program->stop;
    _Atomic uint64_t *begun = &stop->begun[rank - rank->program->ranks].steps;
    const uint64_t mine = weft_sync_load_relaxed(begun) + 1;
    weft_sync_store(begun, mine);
    uint64_t at = weft_sync_load(&stop->at);
    if (at == runs_on && weft_sync_load_relaxed(&weft_stop_is_wanted))
        at = ask(stop, rank->program->n_local);
    for (; at == is_asked; at = weft_sync_load(&stop->at))
        weft_sync_yield();
    return at <= mine;
}

bool weft_has_stopped(const weft_program *program)
{
    weft_stop *stop = program->stop;
    return weft_sync_load(&stop->at) <= weft_sync_load(&stop->begun[0].steps);
}
