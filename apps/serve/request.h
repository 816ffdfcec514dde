/* request.h: one request: what was asked, which is written before it is queued and then only read; and what has been answered so far,
 * under the queue's lock. The thread that speaks HTTP makes it; the one that computes answers it; each holds it until it is done
 * with it. A server has more to know of a request, in a struct of its own that begins with this one.
 */
#ifndef WEFT_APPS_SERVE_REQUEST_H
#define WEFT_APPS_SERVE_REQUEST_H

#include <stdbool.h>

#include "weft/error.h"

typedef struct serve_request serve_request;

/* What a request is for: its path says so. */
typedef struct serve_kind {
    size_t bytes; /* of the server's struct */
    /* the body into a request, zeros but for its head, by the thread that speaks HTTP. returns WEFT_USAGE for what the client can
     * mend, WEFT_MEMORY */
    weft_status (*read)(const void *served, const char *body, size_t n, serve_request *r,
                        weft_error *error);
    void (*drop)(serve_request *r); /* what is held besides; NULL: nothing */
    /* the body of a refusal, to be freed; NULL: as the server does for all */
    char *(*refuse)(int status, const char *sentence);
} serve_kind;

struct serve_request {
    const serve_kind *kind;
    int64_t number;
    bool streams;      /* the answer comes in parts, as events */
    double came, ends; /* app_seconds: when it came; when it has to be over */

    /* under the lock */
    serve_request *next; /* in the queue */
    int n_holders;
    char *out; /* what is to be sent: [n_out] */
    size_t n_out, room;
    int status;           /* of HTTP; 0: there is nothing to send yet */
    bool is_done;         /* nothing comes any more */
    bool is_gone;         /* nobody wants it any more */
    void (*wake)(void *); /* whoever sends it is waiting for more; NULL: not */
    void *waker;
};

/* serve_request_create - one holder. NULL: out of memory. Local, as all here. */
serve_request *serve_request_create(const serve_kind *kind);
/* serve_request_hold, serve_request_drop - under the lock, but for the last holder. */
void serve_request_hold(serve_request *r);
void serve_request_drop(serve_request *r);
/* serve_request_send - bytes more. returns false without memory. serve_request_say - text, to be freed here; without it, or memory for
 * it, nothing more can be said. serve_request_end - nothing comes any more. Under the lock. */
bool serve_request_send(serve_request *r, const char *bytes, size_t n);
void serve_request_say(serve_request *r, char *text);
void serve_request_end(serve_request *r, int status);
/* serve_request_wake - whoever waits for more. Under the lock. */
void serve_request_wake(serve_request *r);

#endif
