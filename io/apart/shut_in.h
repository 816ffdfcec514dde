/* shut_in.h (private): what the programs share that read files which nobody vouches for: they write to one socket, and the kernel ends
 * them for any system call that reading does not need.
 *
 * Descriptor 0 is the file, or memory; 1 is the socket to who started it. */
#ifndef WEFT_IO_SHUT_IN_H
#define WEFT_IO_SHUT_IN_H

#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>

/* A system call that is allowed besides memory, time and the socket, with the one condition that it may have on an argument. */
typedef struct allowed_call {
    int call;
    int n; /* conditions: 0 or 1 */
    struct scmp_arg_cmp when;
} allowed_call;

/* shut_in - from here on. returns 0, or the negative errno of a system that gives no such filter */
int shut_in(const allowed_call *calls, size_t n);
/* Why it is not read then: a text for a sentence, behind the file's name. */
#define SHUT_IN_REFUSED                                                                            \
    "is not read here: files of others are read behind a filter on system calls (seccomp), which " \
    "this system does not give (%s)"
/* allow_seconds - of processor time, from now on; 0: as many as it takes. A file that makes a library spin so ends this process, and who
 * waits for it is told. */
void allow_seconds(int seconds);
/* socket_write - all of it; the process ends where nobody is there any more. socket_read: false then. */
void socket_write(const void *from, size_t bytes);
bool socket_read(void *to, size_t bytes);

#endif
