/* http_clients: the list of connections. */
#include "http_clients.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../stop.h"

static const double arrival_time = 1; /* seconds from a client's connection to its first bytes */

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

void serve_client_ask(serve_client *c)
{
    c->phase = SERVE_ASKS;
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
        serve_client_enter(c, SERVE_COMES);
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

/* What a socket has: a client to let in, or bytes to read. */
static bool has_input(int socket)
{
    struct pollfd at = {.fd = socket, .events = POLLIN};
    return poll(&at, 1, 0) > 0 && at.revents & POLLIN;
}

static bool asks(const serve_client *c, double now)
{
    if (c->phase == SERVE_COMES && now - c->since < arrival_time) return true;
    return c->phase == SERVE_ASKS || (c->phase < SERVE_ASKS && has_input(c->socket));
}

bool serve_http_any_asks(const serve_http *http)
{
    const double now = app_seconds();
    bool any = http->listens;
    for (const serve_client *c = http->clients; c && !any; c = c->next)
        any = asks(c, now);
    return any;
}

/* Connections that the system has made and that are not let in yet would be cut: so it listens until there are none, or time is up.
 * (libmicrohttpd's thread may be about to look at the socket: it is closed when that thread has ended.) */
static void stop_listening(serve_http *http, double now)
{
    if (has_input(http->listener.socket) && now < http->ends) return;
    http->listens = false;
    if (http->mhd.quiesce_daemon(http->daemon) >= 0)
        (void)shutdown(http->listener.socket, SHUT_RDWR);
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
    if (http->listens && http->ends > 0) stop_listening(http, now);
    serve_http_unlock(http);
}

/* Whether somebody has not got its answer yet. */
bool serve_client_any_busy(const serve_http *http)
{
    bool any = false;
    serve_http_lock(http);
    for (const serve_client *c = http->clients; c; c = c->next)
        any = any || c->phase == SERVE_WAITS || c->phase == SERVE_TAKES;
    serve_http_unlock(http);
    return any;
}
