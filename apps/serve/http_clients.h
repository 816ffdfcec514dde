/* http_clients.h (private to http.c): connections, and what their clients do. */
#ifndef WEFT_APPS_SERVE_HTTP_CLIENTS_H
#define WEFT_APPS_SERVE_HTTP_CLIENTS_H

#include "http.h"
#include "listen.h"
#include "mhd.h"

/* What a client does, and so how long it may. */
typedef enum serve_phase {
    SERVE_COMES, /* it has connected, and asked nothing */
    SERVE_IDLES, /* it has its answer, and may ask again */
    SERVE_ASKS,  /* the headers are there, and the body is not */
    SERVE_WAITS,
    SERVE_TAKES
} serve_phase;

typedef struct serve_client {
    serve_http *http;
    struct MHD_Connection *connection;
    struct serve_client *next, *before; /* of all */
    int socket;
    serve_phase phase;
    double since;
    serve_request *request; /* that it holds; NULL: none */
} serve_client;

struct serve_http {
    serve_mhd mhd;
    struct MHD_Daemon *daemon;
    serve_queue *queue; /* borrowed */
    serve_listener listener;
    bool listens;
    double ends;           /* when it stops to listen at the latest, at its end; 0: it goes on */
    serve_client *clients; /* under the queue's lock */
};

/* serve_http_lock, serve_http_unlock - the queue's lock. */
void serve_http_lock(const serve_http *http);
void serve_http_unlock(const serve_http *http);

/* serve_client_of - NULL: there was no memory for it. serve_client_enter - a phase, whose time begins. serve_client_ask - it asks, in
 * the time that it has already. Under the lock. */
serve_client *serve_client_of(const serve_http *http, struct MHD_Connection *connection);
void serve_client_enter(serve_client *client, serve_phase next);
void serve_client_ask(serve_client *client);
/* serve_client_notice - as libmicrohttpd tells that a connection begins or ends. cls: the serve_http */
void serve_client_notice(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode code);
/* serve_client_any_busy - whether somebody has not got its answer yet. */
bool serve_client_any_busy(const serve_http *http);

#endif
