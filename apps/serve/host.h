/* host.h: a server's life besides what it computes: its options, its queue, its clients, and the signals that end it.
 *
 *     serve_host_begin(&host, is_root);
 *     if (host.is_root) WEFT_TRY(serve_host_open(&host, settings, &service, error));
 *     while (..) {
 *         WEFT_TRY(serve_host_find_end(&host, error));                 all ranks
 *         if (host.is_root) serve_host_look(&host);
 *         ... host.queue ...
 *     }
 *     serve_host_close(&host);
 *
 * Ranks wait for the root where it tells them what to do, and it tells them within SERVE_IDLE seconds that there is nothing: the watch
 * would take a longer silence for a rank that hangs.
 */
#ifndef WEFT_APPS_SERVE_HOST_H
#define WEFT_APPS_SERVE_HOST_H

#include "../options.h"
#include "../stop.h"
#include "http.h"

#define SERVE_IDLE   0.5
#define SERVE_ENDING 0.005 /* the same, when it ends */

/* The options it reads, for a program's table. */
#define SERVE_OPTIONS(group)                                                                         \
    {"host",      OPTION_TEXT,                                                                       \
     "127.0.0.1", "NAME",                                                                            \
     group,       "the address that it listens at: of this machine alone, unless told otherwise"},   \
        {"port", OPTION_COUNT, "8000", "N", group, "its port; 0: any that is free", NULL, 0, 65535}, \
        {"most-waiting", OPTION_COUNT,                                                               \
         "64",           "N",                                                                        \
         group,          "requests that may wait for their turn",                                    \
         NULL,           1},                                                                         \
        {"most-body", OPTION_COUNT, "1048576", "BYTES", group, "of a request", NULL, 1, 1 << 30},    \
        {"most-time", OPTION_TIME, "10m",                                                            \
         "TIME",      group,       "from when a request comes to the end of its answer"},            \
    {                                                                                                \
        "client-time", OPTION_TIME, "30s", "TIME", group,                                            \
            "that a client may take to ask, and to take what is there for it"                        \
    }

typedef struct serve_host {
    serve_queue queue; /* of the root, as http */
    serve_http *http;
    stop_watch watch;
    double looked;
    bool is_root, has_queue;
    bool is_ending; /* a signal has come: no new clients; those that are there have their answers */
} serve_host;

/* serve_host_begin - signals are taken note of from here on. Local. */
void serve_host_begin(serve_host *host, bool is_root);
/* serve_host_open - the queue, and it listens. Local, of the root. returns as serve_http_open */
weft_status serve_host_open(serve_host *host, const settings *s, const serve_service *service,
                            weft_error *error);
/* serve_host_find_end - whether any rank got a signal. Collective over the job. */
weft_status serve_host_find_end(serve_host *host, weft_error *error);
/* serve_host_wait - for a request, when there is none, or not for long. serve_host_is_over - when there is none: whether none is to
 * come, and from then on none is taken. Of the root, under the queue's lock. */
void serve_host_wait(serve_host *host);
bool serve_host_is_over(serve_host *host);
/* serve_host_look - at clients, when it is time. Local, of the root. */
void serve_host_look(serve_host *host);
/* serve_host_close - when what is answered has been sent, or clients had their time. */
void serve_host_close(serve_host *host);

/* serve_name - the last part of a path, without an ending of that text: how a model is called. Local; the text [bytes]. */
void serve_name(const char *path, const char *ending, char *text, size_t bytes);

#endif
