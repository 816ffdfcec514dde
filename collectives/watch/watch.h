/* watch.h (private): the watching thread, and what the world tells it.
 *
 *     process 0: weft_watch_invite(&address);  all: (broadcast address)  weft_watch_begin(process, n, &address);
 */
#ifndef WEFT_WATCH_PRIVATE_H
#define WEFT_WATCH_PRIVATE_H

#include <poll.h>

#include "judge.h"
#include "wire.h"
#include "weft/watch.h"

/* weft_watch_invite - on process 0, before it tells the others: where they find it. Local. */
void weft_watch_invite(weft_hub_address *address);
/* weft_watch_begin - start the thread. hub NULL: all ranks are in this process. A second call does nothing. Local. */
void weft_watch_begin(int process, int n_processes, const weft_hub_address *hub);
/* weft_watch_end - this process is about to leave, and does so in good order. Local. */
void weft_watch_end(void);

/* ---- the ends (hub.c, spoke.c; alone in watch.c): all from the watching thread, but last_word ------------------- */

typedef struct weft_watch_ends {
    /* Hear and say what there is. files: fill for poll, at most `room`; returns how many. */
    int (*files)(struct pollfd *files, int room);
    void (*turn)(double now);
    /* All that is known of all ranks; n out. Borrowed until the next turn. */
    weft_rank_view *(*views)(double now, double patience, int *n);
    /* The job ends: tell the others; whether this process is the one to print it. */
    bool (*tell)(const weft_verdict *verdict);
    /* A verdict that was heard; status 0: none. */
    const weft_verdict *(*told)(void);
    void (*leave)(void);
    void (*forgive)(double seconds);
    /* For a process that dies: tell it, with nothing but calls that a signal handler may make. */
    void (*last_word)(int signal);
} weft_watch_ends;

bool weft_hub_open(int n_processes, int listener, const weft_hub_address *address);
bool weft_spoke_open(int process, const weft_hub_address *address);
extern const weft_watch_ends weft_alone, weft_hub, weft_spoke;

/* ---- last_words.c: signals that end a process ------------------------------------------------------------------- */
/* obey: SIGTERM came, and nobody but us has a handler for it; NULL: leave it alone. */
void weft_last_words_begin(void (*say)(int signal), void (*obey)(void));
void weft_last_words_end(void);

#endif
