/* last_words: a process that dies of a signal writes the signal down first, and tells the hub.
 *
 * Only what a handler may do: stores into memory that is there, and send. Then the handling from before is put back and
 * the signal comes again, so that cores are dumped and sanitizers report as if nothing had been in between.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "watch.h"

static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { N_DEADLY = sizeof deadly / sizeof *deadly };

static struct sigaction before[N_DEADLY];
static void (*teller)(int signal);
static bool is_set;
static void (*obeyer)(void); /* NULL: SIGTERM is not ours */

static void speak(int number, siginfo_t *facts, void *context)
{
    (void)context;
    for (int i = 0; i < weft_n_recorders(); i++)
        weft_sync_store(&weft_recorder_at(i)->head.signal, number);
    if (teller != NULL) teller(number);
    for (int i = 0; i < N_DEADLY; i++)
        if (deadly[i] == number) sigaction(number, &before[i], NULL);
    /* What a fault of the code has raised comes again when the code goes on; what was sent does not. */
    if (facts->si_code <= 0 || number == SIGABRT) raise(number);
}

static void obey(int number)
{
    (void)number;
    if (obeyer != NULL) obeyer();
}

static void begin_obeying(void (*how)(void))
{
    struct sigaction action = {.sa_handler = obey, .sa_flags = SA_RESTART}, old;
    sigemptyset(&action.sa_mask);
    if (how == NULL || sigaction(SIGTERM, NULL, &old) != 0 || old.sa_handler != SIG_DFL) return;
    obeyer = how;
    sigaction(SIGTERM, &action, NULL);
}

/* Unless the program has put a handler of its own in its place. */
static void end_obeying(void)
{
    struct sigaction now;
    if (obeyer != NULL && sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == obey)
        signal(SIGTERM, SIG_DFL);
    obeyer = NULL;
}

void weft_last_words_begin(void (*say)(int signal), void (*how)(void))
{
    static char room[64 << 10]; /* for a handler when it is the stack that is full */
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, old;
    struct sigaction action = {.sa_sigaction = speak, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    teller = say;
    if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE) sigaltstack(&stack, NULL);
    for (int i = 0; i < N_DEADLY && !is_set; i++)
        sigaction(deadly[i], &action, &before[i]);
    if (!is_set) begin_obeying(how);
    is_set = true;
}

void weft_last_words_end(void)
{
    for (int i = 0; i < N_DEADLY && is_set; i++)
        sigaction(deadly[i], &before[i], NULL);
    end_obeying();
    is_set = false;
}
