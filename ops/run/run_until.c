/* run_until: a run that listens to a signal: its handler goes on to be called, and ranks stop (stop.c). */
#include "stop.h"

#include <signal.h>

/* ---- the signal ---------------------------------------------------------------------------------- */

/* Signals are the process's, and so is this. */
static _Atomic bool is_taken;
static struct sigaction before;

static void take_note(int number, siginfo_t *info, void *context)
{
    weft_sync_store_relaxed(&weft_stop_is_wanted, true);
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
    weft_sync_store_relaxed(&weft_stop_is_wanted, false);
    if (is_handled && sigaction(number, &here, NULL) == 0) return true;
    weft_sync_store(&is_taken, false);
    return false;
}

static void listen_no_more(int number)
{
    (void)sigaction(number, &before, NULL);
    weft_sync_store(&is_taken, false);
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
    weft_status status = weft_stop_begin(program, error);
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
