/* http_clients.h (private to http.c): connections, and what their clients do. */
#ifndef WEFT_APPS_GPT_HTTP_CLIENTS_H
#define WEFT_APPS_GPT_HTTP_CLIENTS_H

#include "http.h"
#include "listen.h"
#include "mhd.h"

/* What a client does, and so how long it may. */
typedef enum gpt_phase { GPT_ASKS, GPT_WAITS, GPT_TAKES } gpt_phase;

typedef struct gpt_client {
    gpt_http *http;
    struct MHD_Connection *connection;
    struct gpt_client *next, *before; /* of all */
    int socket;
    gpt_phase phase;
    double since;
    gpt_request *request; /* that it holds; NULL: none */
} gpt_client;

struct gpt_http {
    gpt_mhd mhd;
    struct MHD_Daemon *daemon;
    gpt_server *server; /* borrowed */
    gpt_listener listener;
    gpt_client *clients; /* under the server's lock */
};

/* gpt_http_lock, gpt_http_unlock - the server's lock. */
void gpt_http_lock(const gpt_http *http);
void gpt_http_unlock(const gpt_http *http);

/* gpt_client_of - NULL: there was no memory for it. gpt_client_enter - under the lock. */
gpt_client *gpt_client_of(const gpt_http *http, struct MHD_Connection *connection);
void gpt_client_enter(gpt_client *client, gpt_phase next);
/* gpt_client_notice - as libmicrohttpd tells that a connection begins or ends. cls: the gpt_http */
void gpt_client_notice(void *cls, struct MHD_Connection *connection, void **context,
                       enum MHD_ConnectionNotificationCode code);
/* gpt_client_any_busy - whether somebody has not got its answer yet. */
bool gpt_client_any_busy(const gpt_http *http);

#endif
