/* http.h: the server's way to the network: one thread, which reads requests into the queue and sends what has been answered.
 *
 *     WEFT_TRY(gpt_http_open(&http, server, &options, error));
 *     ... printf("%s", gpt_http_address(http)); ...
 *     gpt_http_refuse(http);                                      no new connections
 *     gpt_http_close(&http, seconds);
 *
 * A client has facts.client_time to ask, and to take what is there for it. So one that says nothing, or reads slowly, holds a
 * connection for so long and no slot longer than its text takes.
 */
#ifndef WEFT_APPS_GPT_HTTP_H
#define WEFT_APPS_GPT_HTTP_H

#include "server.h"

typedef struct gpt_http gpt_http; /* opaque */

typedef struct gpt_http_options {
    const char *host; /* a name or an address */
    int port;         /* 0: any that is free */
} gpt_http_options;

/* Local, as all here. returns WEFT_USAGE for an address that cannot be had, or a build without libmicrohttpd */
weft_status gpt_http_open(gpt_http **http, gpt_server *server, const gpt_http_options *options,
                          weft_error *error);
/* gpt_http_address - "http://127.0.0.1:8000". Borrowed. */
const char *gpt_http_address(const gpt_http *http);
/* gpt_http_look - clients that take too long are left, and requests that nobody waits for any more are marked. Now and then. */
void gpt_http_look(gpt_http *http);
void gpt_http_refuse(gpt_http *http);
/* gpt_http_close - when what is answered has been sent, or after so many seconds. NULL is fine. */
void gpt_http_close(gpt_http **http, double seconds);

#endif
