/* stop: a run that a signal stops: all ranks before the same step, and before any that writes a variable.
 *
 * Before a step each rank says how many it has begun, and then looks whether all stop. The first that sees the signal asks for a
 * stop, and says where: behind the furthest step that any has begun. Others wait meanwhile, for the time of a few loads. The rank
 * that asks sees the number of whoever has not seen its question.
 */
#include "stop.h"

#include <signal.h>

static const uint64_t runs_on = UINT64_MAX, is_asked = UINT64_MAX - 1;

/* ---- the signal ---------------------------------------------------------------------------------- */

/* Signals are the process's, and so is this. */
static _Atomic bool is_wanted, is_taken;
static struct sigaction before;

static void take_note(int number, siginfo_t *info, void *context)
{
    weft_sync_store_relaxed(&is_wanted, true);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
}

/* Whether somebody handles the signal, and nobody else's run is stopped by one. */
static bool listen_to(int number)
{
    bool none = false;
    if (!weft_sync_replace(&is_taken, &none, true)) return false;
    struct sigaction here;
    const bool is_handled = sigaction(number, NULL, &before) == 0 &&
                            ((before.sa_flags & SA_SIGINFO) != 0 ||
                             (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN));
    here = before;
    here.sa_flags |= SA_SIGINFO;
    here.sa_sigaction = take_note;
    weft_sync_store_relaxed(&is_wanted, false);
    if (is_handled && sigaction(number, &here, NULL) == 0) return true;
    weft_sync_store(&is_taken, false);
    return false;
}

static void listen_no_more(int number)
{
    (void)sigaction(number, &before, NULL);
    weft_sync_store(&is_taken, false);
}

/* ---- the ranks ----------------------------------------------------------------------------------- */

/* Once for a program; its arena's memory, on a line of its own. */
static weft_status take_stop(weft_program *program, weft_error *error)
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
    if (at == runs_on && weft_sync_load_relaxed(&is_wanted)) at = ask(stop, rank->program->n_local);
    for (; at == is_asked; at = weft_sync_load(&stop->at))
        weft_sync_yield();
    return at <= mine;
}

bool weft_has_stopped(const weft_program *program)
{
    weft_stop *stop = program->stop;
    return weft_sync_load(&stop->at) <= weft_sync_load(&stop->begun[0].steps);
}

/* ---- the run ------------------------------------------------------------------------------------- */

weft_status weft_run_until(weft_program *program, int signal, weft_error *error)
{
    sigset_t known;
    WEFT_GIVEN(program, error);
    (void)sigemptyset(&known);
    if (sigaddset(&known, signal) != 0)
        return weft_fail(error, WEFT_USAGE, "weft_run_until: there is no signal %d; pass SIGINT",
                         signal);
    program->was_stopped = false;
    if (weft_has_others(program) || !listen_to(signal)) return weft_run(program, error);
    weft_status status = take_stop(program, error);
    if (status == WEFT_OK) {
        program->is_stoppable = true;
        status = weft_run(program, error);
        program->is_stoppable = false;
    }
    listen_no_more(signal);
    return status;
}

bool weft_was_stopped(const weft_program *program)
{
    return program != NULL && program->was_stopped;
}
