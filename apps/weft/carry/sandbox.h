/* sandbox.h: a process of our own for what may go wrong: it may crash, spin, or eat memory, and we
 * go on.
 *
 *     WEFT_TRY(sandbox_start(&box, &order, error));
 *     WEFT_TRY(sandbox_read(&box, &message, sizeof message, error));      fails with how the
 * process ended sandbox_stop(&box);
 *
 * The process has the file as its stdin, a socket to us as its stdout, nothing else open, and no
 * environment. That it may open nothing more is for its own program to see to (seccomp), before it
 * looks at the file. All Local.
 */
#ifndef WEFT_APPS_SANDBOX_H
#define WEFT_APPS_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/error.h"

typedef struct sandbox_order {
    const char *subject;    /* the path, for sentences */
    char *const *arguments; /* the program's path, its arguments, NULL */
    int input;              /* the file, open for reading */
    int64_t memory_bytes;   /* address space; not under AddressSanitizer, which wants all of it */
    int64_t processor_s;    /* processor time */
    int quiet_ms;           /* longest wait for all bytes of one sandbox_read */
} sandbox_order;

typedef struct sandbox {
    sandbox_order order;
    pid_t process; /* 0: none */
    int pipe;      /* a socket, both ways */
} sandbox;

weft_status sandbox_start(sandbox *box, const sandbox_order *order, weft_error *error);
/* sandbox_read - exactly `bytes`. returns WEFT_CORRUPT with how the process ended, or that it was
 * too quiet; it is gone then. WEFT_IO when its program cannot be started */
weft_status sandbox_read(sandbox *box, void *buffer, size_t bytes, weft_error *error);
/* sandbox_write - tell it something, few bytes enough for a socket's buffer. One that is gone is found by the next read. */
void sandbox_write(sandbox *box, const void *bytes, size_t n);
/* sandbox_stop - ends the process if it is still there. Any state is fine. */
void sandbox_stop(sandbox *box);

#endif
