/* http.h: the server's way to the network: one thread, which reads requests into the queue and sends what has been answered.
 *
 *     WEFT_TRY(serve_http_open(&http, queue, &options, error));
 *     ... printf("%s", serve_http_address(http)); ...
 *     serve_http_refuse(http);                                      no new connections
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
/* serve_http_look - clients that take too long are left, and requests that nobody waits for any more are marked. Now and then. */
void serve_http_look(serve_http *http);
void serve_http_refuse(serve_http *http);
/* serve_http_close - when what is answered has been sent, or after so many seconds. NULL is fine. */
void serve_http_close(serve_http **http, double seconds);

#endif
