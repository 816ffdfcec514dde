/* http.h: the server's way to the network: one thread, which reads requests into the queue and sends what has been answered.
 *
 *     WEFT_TRY(serve_http_open(&http, queue, &options, error));
 *     ... printf("%s", serve_http_address(http)); ...
 *     serve_http_end(http);                                         no new clients
 *     while (serve_http_any_asks(http)) { serve_http_look(http); .. }
 *     serve_http_close(&http, seconds);
 *
 * A client has limits.client_time to ask, and to take what is there for it. So one that says nothing, or reads slowly, holds a
 * connection for so long and no slot longer than its text takes.
 */
#ifndef WEFT_APPS_SERVE_HTTP_H
#define WEFT_APPS_SERVE_HTTP_H

#include "queue.h"

typedef struct serve_http serve_http; /* opaque */

typedef struct serve_http_options {
    const char *host; /* a name or an address */
    int port;         /* 0: any that is free */
} serve_http_options;

/* Local, as all here. returns WEFT_USAGE for an address that cannot be had, or a build without libmicrohttpd */
weft_status serve_http_open(serve_http **http, serve_queue *queue,
                            const serve_http_options *options, weft_error *error);
/* serve_http_address - "http://127.0.0.1:8000". Borrowed. */
const char *serve_http_address(const serve_http *http);
/* serve_http_look - clients that take too long are left, requests that nobody waits for any more are marked, and at the end it stops to
 * listen. Now and then. */
void serve_http_look(serve_http *http);
/* serve_http_end - clients that have connected by now are let in, and no others. Each has one more answer. */
void serve_http_end(serve_http *http);
/* serve_http_any_asks - after serve_http_end: whether a request is to come from a client that is there, or is to be let in. Under the
 * queue's lock. */
bool serve_http_any_asks(const serve_http *http);
/* serve_http_close - when what is answered has been sent, or after so many seconds. NULL is fine. */
void serve_http_close(serve_http **http, double seconds);

#endif
