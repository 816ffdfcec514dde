/* sandbox.h (private): a process of our own for what may go wrong: it may crash, spin, or eat memory, and we go on.
 *
 *     WEFT_TRY(weft_sandbox_start(&box, &order, error));
 *     WEFT_TRY(weft_sandbox_read(&box, &message, sizeof message, error));      fails with how the process ended
 *     weft_sandbox_stop(&box);
 *
 * The process has the file as its stdin, a socket to us as its stdout, nothing else open, and no
 * environment. That it may open nothing more is for its own program to see to (seccomp), before it
 * looks at the file. All Local.
 */
#ifndef WEFT_IO_SANDBOX_H
#define WEFT_IO_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/error.h"

enum { WEFT_SANDBOX_OPEN = 86 /* exit status of a program that cannot shut itself in */ };

typedef struct weft_sandbox_order {
    const char *subject;    /* the path, for sentences */
    char *const *arguments; /* the program's path, its arguments, NULL */
    int input;              /* the file, open for reading */
    int64_t memory_bytes;   /* address space; not under AddressSanitizer, which wants all of it */
    int64_t processor_s; /* processor time; 0: it has many tasks, and its own program bounds each */
    int quiet_ms;        /* longest wait for all bytes of one weft_sandbox_read */
    /* it outlives the thread that started it, and ends when its socket is closed; else it ends with that thread */
    bool is_kept;
    const char *after;  /* the end of a sentence: "nothing was written" */
    weft_status status; /* of a file that was its end */
} weft_sandbox_order;

typedef struct weft_sandbox {
    weft_sandbox_order order;
    pid_t process; /* 0: none */
    int pipe;      /* a socket, both ways */
} weft_sandbox;

weft_status weft_sandbox_start(weft_sandbox *box, const weft_sandbox_order *order,
                               weft_error *error);
/* weft_sandbox_read - exactly `bytes`. returns order.status with how the process ended, or that it was
 * too quiet; it is gone then. WEFT_IO when its program cannot be started */
weft_status weft_sandbox_read(weft_sandbox *box, void *buffer, size_t bytes, weft_error *error);
/* weft_sandbox_write - tell it something, few bytes enough for a socket's buffer. One that is gone is found by the next read. */
void weft_sandbox_write(weft_sandbox *box, const void *bytes, size_t n);
/* weft_sandbox_has_ended - whether a process of which nothing is awaited is gone. */
bool weft_sandbox_has_ended(const weft_sandbox *box);
/* weft_sandbox_stop - ends the process if it is still there. Any state is fine. */
void weft_sandbox_stop(weft_sandbox *box);

#endif
