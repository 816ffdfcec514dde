/* http_clients: the list of connections. */
#include "http_clients.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../../stop.h"

void gpt_http_lock(const gpt_http *http)
{
    pthread_mutex_lock(&http->server->lock);
}

void gpt_http_unlock(const gpt_http *http)
{
    pthread_mutex_unlock(&http->server->lock);
}

gpt_client *gpt_client_of(const gpt_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        http->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void gpt_client_enter(gpt_client *c, gpt_phase next)
{
    c->phase = next;
    c->since = app_seconds();
}

static void add_client(gpt_http *http, gpt_client *c)
{
    c->next = http->clients;
    if (c->next) c->next->before = c;
    http->clients = c;
    http->server->counts.n_clients++;
}

static void remove_client(gpt_http *http, gpt_client *c)
{
    if (c->next) c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        http->clients = c->next;
    http->server->counts.n_clients--;
}

void gpt_client_notice(void *cls, struct MHD_Connection *connection, void **context,
                       enum MHD_ConnectionNotificationCode code)
{
    gpt_http *http = cls;
    gpt_client *c = *context;
    gpt_http_lock(http);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && (c = calloc(1, sizeof *c)) != NULL) {
        const union MHD_ConnectionInfo *info =
            http->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *c = (gpt_client){
            .http = http, .connection = connection, .socket = info ? info->connect_fd : -1};
        gpt_client_enter(c, GPT_ASKS);
        add_client(http, c);
        *context = c;
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        remove_client(http, c);
        free(c);
        *context = NULL;
    }
    gpt_http_unlock(http);
}

/* Nobody reads what is written to it any more. */
static bool is_cut(const gpt_client *c)
{
    struct pollfd at = {.fd = c->socket, .events = POLLRDHUP};
    return c->socket >= 0 && poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void gpt_http_look(gpt_http *http)
{
    const double now = app_seconds();
    if (http == NULL) return;
    gpt_http_lock(http);
    for (gpt_client *c = http->clients; c; c = c->next) {
        if (c->phase != GPT_WAITS && now - c->since > http->server->facts.client_time)
            (void)shutdown(c->socket, SHUT_RDWR);
        if (c->phase == GPT_WAITS && c->request && is_cut(c)) c->request->is_gone = true;
    }
    gpt_http_unlock(http);
}

/* Whether somebody has not got its answer yet. */
bool gpt_client_any_busy(const gpt_http *http)
{
    bool any = false;
    gpt_http_lock(http);
    for (const gpt_client *c = http->clients; c; c = c->next)
        any = any || c->phase != GPT_ASKS;
    gpt_http_unlock(http);
    return any;
}
