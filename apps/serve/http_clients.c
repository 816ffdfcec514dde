/* http_clients: the list of connections. */
#include "http_clients.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../stop.h"

void serve_http_lock(const serve_http *http)
{
    pthread_mutex_lock(&http->queue->lock);
}

void serve_http_unlock(const serve_http *http)
{
    pthread_mutex_unlock(&http->queue->lock);
}

serve_client *serve_client_of(const serve_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        http->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void serve_client_enter(serve_client *c, serve_phase next)
{
    c->phase = next;
    c->since = app_seconds();
}

static void add_client(serve_http *http, serve_client *c)
{
    c->next = http->clients;
    if (c->next) c->next->before = c;
    http->clients = c;
    http->queue->counts.n_clients++;
}

static void remove_client(serve_http *http, serve_client *c)
{
    if (c->next) c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        http->clients = c->next;
    http->queue->counts.n_clients--;
}

void serve_client_notice(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode code)
{
    serve_http *http = cls;
    serve_client *c = *context;
    serve_http_lock(http);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && (c = calloc(1, sizeof *c)) != NULL) {
        const union MHD_ConnectionInfo *info =
            http->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *c = (serve_client){
            .http = http, .connection = connection, .socket = info ? info->connect_fd : -1};
        serve_client_enter(c, SERVE_ASKS);
        add_client(http, c);
        *context = c;
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        remove_client(http, c);
        free(c);
        *context = NULL;
    }
    serve_http_unlock(http);
}

/* Nobody reads what is written to it any more. */
static bool is_cut(const serve_client *c)
{
    struct pollfd at = {.fd = c->socket, .events = POLLRDHUP};
    return c->socket >= 0 && poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void serve_http_look(serve_http *http)
{
    const double now = app_seconds();
    if (http == NULL) return;
    serve_http_lock(http);
    for (serve_client *c = http->clients; c; c = c->next) {
        if (c->phase != SERVE_WAITS && now - c->since > http->queue->limits.client_time)
            (void)shutdown(c->socket, SHUT_RDWR);
        if (c->phase == SERVE_WAITS && c->request && is_cut(c)) c->request->is_gone = true;
    }
    serve_http_unlock(http);
}

/* Whether somebody has not got its answer yet. */
bool serve_client_any_busy(const serve_http *http)
{
    bool any = false;
    serve_http_lock(http);
    for (const serve_client *c = http->clients; c; c = c->next)
        any = any || c->phase != SERVE_ASKS;
    serve_http_unlock(http);
    return any;
}
