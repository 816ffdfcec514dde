/* http: requests by libmicrohttpd, whose thread calls what is here.
 *
 * A connection whose request waits is suspended: nothing of it is looked at until there is something to send. The server's
 * lock is for all that both threads see; libmicrohttpd holds none of its own while it calls us.
 */
#include "http_clients.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../stop.h"
#include "weft/name.h"

enum { MOST_CLIENTS = 512, MOST_HEADERS = 32768, BLOCK = 16384, DRAINED = 8 };
enum {
    OK = 200,
    BAD = 400,
    UNKNOWN = 404,
    NOT_ALLOWED = 405,
    TOO_LARGE = 413,
    FAILED = 500,
    BUSY = 503
};

/* One request as its bytes come. */
typedef struct exchange {
    char *body; /* [n] */
    size_t n, room, dropped;
} exchange;

/* ---- answers that are there at once ------------------------------------------------------------------ */

typedef struct manner {
    int status;
    const char *type, *allow; /* the method that would do; NULL: any does */
} manner;

/* A server that ends has one more answer for a client. */
static void close_at_end(const serve_http *http, struct MHD_Response *response)
{
    serve_http_lock(http);
    const bool is_ending = http->queue->is_ending;
    serve_http_unlock(http);
    if (is_ending) (void)http->mhd.add_response_header(response, "Connection", "close");
}

/* text: to be freed; NULL: out of memory */
static enum MHD_Result reply(const serve_http *http, struct MHD_Connection *connection,
                             const manner *said, char *text)
{
    if (text == NULL) return MHD_NO;
    struct MHD_Response *response =
        http->mhd.create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    (void)http->mhd.add_response_header(response, "Content-Type", said->type);
    if (said->status == BUSY) (void)http->mhd.add_response_header(response, "Retry-After", "1");
    if (said->allow) (void)http->mhd.add_response_header(response, "Allow", said->allow);
    close_at_end(http, response);
    const enum MHD_Result result =
        http->mhd.queue_response(connection, (unsigned)said->status, response);
    http->mhd.destroy_response(response);
    serve_client *c = serve_client_of(http, connection);
    serve_http_lock(http);
    if (c) serve_client_enter(c, SERVE_TAKES);
    serve_http_unlock(http);
    return result;
}

/* How it is said: by a kind of request in its own form, else NULL; and the method that would do, or NULL. */
static enum MHD_Result refuse_as(const serve_http *http, struct MHD_Connection *connection,
                                 const serve_kind *kind, int status, const char *sentence,
                                 const char *allow)
{
    const manner said = {status, "application/json", allow};
    serve_http_lock(http);
    http->queue->counts.ended[status == BUSY ? SERVE_REFUSED : SERVE_WRONG]++;
    serve_http_unlock(http);
    char *text = kind && kind->refuse ? kind->refuse(status, sentence)
                                      : http->queue->service.refuse(status, sentence);
    return reply(http, connection, &said, text);
}

static enum MHD_Result refuse(const serve_http *http, struct MHD_Connection *connection, int status,
                              const char *sentence)
{
    return refuse_as(http, connection, NULL, status, sentence, NULL);
}

static char *tell_health(serve_queue *queue, int *status)
{
    const bool is_ending = queue->is_ending;
    if (is_ending) *status = BUSY;
    return strdup(is_ending ? "{\"status\":\"ending\"}" : "{\"status\":\"ok\"}");
}

static char *tell_metrics(serve_queue *queue, int *status)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    (void)status;
    if (file == NULL) return NULL;
    serve_counts_write(file, &queue->counts, queue->n_waiting);
    queue->service.count(file, queue->service.served);
    return fclose(file) == 0 ? text : NULL;
}

/* ---- answers that come ------------------------------------------------------------------------------- */

/* Under the lock: the request has more for it. */
static void resume(void *waker)
{
    serve_client *c = waker;
    c->http->mhd.resume_connection(c->connection);
}

/* Under the lock: until the request has more for it. */
static void suspend(serve_client *c)
{
    c->http->mhd.suspend_connection(c->connection);
    c->request->wake = resume, c->request->waker = c;
    serve_client_enter(c, SERVE_WAITS);
}

static ssize_t read_answer(void *cls, uint64_t at, char *to, size_t most)
{
    serve_client *c = cls;
    ssize_t n = 0;
    serve_http_lock(c->http);
    const serve_request *r = c->request;
    const size_t left = r->n_out > at ? r->n_out - (size_t)at : 0;
    if (left > 0) {
        n = (ssize_t)(left < most ? left : most);
        memcpy(to, r->out + at, (size_t)n);
        if (c->phase != SERVE_TAKES) serve_client_enter(c, SERVE_TAKES);
    } else if (r->is_done) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        suspend(c);
    }
    serve_http_unlock(c->http);
    return n;
}

/* Of a request that is done the length is known; a stream goes on. */
static enum MHD_Result send_answer(serve_http *http, serve_client *c)
{
    serve_http_lock(http);
    const serve_request *r = c->request;
    const int status = r->status;
    const bool streams = !r->is_done || (r->streams && status == OK);
    const uint64_t bytes = streams ? MHD_SIZE_UNKNOWN : r->n_out;
    serve_client_enter(c, SERVE_TAKES);
    serve_http_unlock(http);
    struct MHD_Response *response =
        http->mhd.create_response_from_callback(bytes, BLOCK, read_answer, c, NULL);
    if (response == NULL) return MHD_NO;
    (void)http->mhd.add_response_header(response, "Content-Type",
                                        streams ? "text/event-stream" : "application/json");
    (void)http->mhd.add_response_header(response, "Cache-Control", "no-cache");
    if (status == BUSY) (void)http->mhd.add_response_header(response, "Retry-After", "1");
    close_at_end(http, response);
    const enum MHD_Result result =
        http->mhd.queue_response(c->connection, (unsigned)status, response);
    http->mhd.destroy_response(response);
    return result;
}

/* The queue has it, or a sentence why not. */
static enum MHD_Result ask(serve_http *http, serve_client *c, serve_request *r)
{
    serve_queue *queue = http->queue;
    bool is_added = false;
    serve_http_lock(http);
    const bool is_over = queue->is_over;
    r->number = ++queue->n_known;
    r->came = app_seconds();
    r->ends = r->came + queue->limits.most_time;
    if (!is_over) is_added = serve_queue_add(queue, r);
    if (is_added) {
        c->request = r;
        suspend(c);
    }
    serve_http_unlock(http);
    if (is_added) return MHD_YES;
    const serve_kind *kind = r->kind;
    serve_request_drop(r);
    return refuse_as(http, c->connection, kind, BUSY,
                     is_over ? "the server is about to end; ask another one"
                             : "as many requests wait as may; ask again later",
                     NULL);
}

static enum MHD_Result begin(serve_http *http, serve_client *c, const exchange *x,
                             const serve_kind *kind)
{
    weft_error error = {.rank = -1};
    serve_request *r = serve_request_create(kind);
    if (r == NULL) return MHD_NO;
    if (kind->read(http->queue->service.served, x->body ? x->body : "", x->n, r, &error) == WEFT_OK)
        return ask(http, c, r);
    serve_request_drop(r);
    return refuse_as(http, c->connection, kind, error.status == WEFT_USAGE ? BAD : FAILED,
                     error.message, NULL);
}

/* ---- paths -------------------------------------------------------------------------------------------- */

/* Of every server. */
static const serve_route common[] = {
    {"/health", "GET", "application/json", tell_health, NULL},
    {"/metrics", "GET", "text/plain; version=0.0.4", tell_metrics, NULL},
};
enum { N_COMMON = sizeof common / sizeof *common, MOST_ROUTES = 16 };

/* The i-th; NULL past the end. */
static const serve_route *route_at(const serve_http *http, int i)
{
    const serve_service *service = &http->queue->service;
    if (i < service->n_routes) return &service->routes[i];
    return i - service->n_routes < N_COMMON ? &common[i - service->n_routes] : NULL;
}

static const serve_route *find_route(const serve_http *http, const char *path)
{
    const serve_route *r = NULL;
    for (int i = 0; (r = route_at(http, i)) != NULL && strcmp(r->path, path) != 0;)
        i++;
    return r;
}

/* "there is no /x here; there are /a, /b and /c" */
static enum MHD_Result refuse_path(const serve_http *http, struct MHD_Connection *connection,
                                   const char *path)
{
    const char *names[MOST_ROUTES] = {NULL};
    char text[900];
    int n = 0;
    for (const serve_route *r; n < MOST_ROUTES && (r = route_at(http, n)) != NULL;)
        names[n++] = r->path;
    const char *near = weft_nearest(path, names, n);
    size_t used =
        (size_t)snprintf(text, sizeof text, "there is no %.100s here; %s%.200s%s", path,
                         near ? "did you mean " : "there are ", near ? near : "", near ? "?" : "");
    for (int i = 0; !near && i < n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.200s",
                                 i == 0      ? ""
                                 : i + 1 < n ? ", "
                                             : " and ",
                                 names[i]);
    return refuse(http, connection, UNKNOWN, text);
}

static enum MHD_Result refuse_method(const serve_http *http, struct MHD_Connection *connection,
                                     const serve_route *found, const char *method)
{
    char text[200];
    snprintf(text, sizeof text, "%s takes %s, not %.20s", found->path, found->method, method);
    return refuse_as(http, connection, found->kind, NOT_ALLOWED, text, found->method);
}

static enum MHD_Result tell(serve_http *http, struct MHD_Connection *connection,
                            const serve_route *found)
{
    manner said = {OK, found->type, NULL};
    serve_http_lock(http);
    char *text = found->tell(http->queue, &said.status);
    serve_http_unlock(http);
    return reply(http, connection, &said, text);
}

/* ---- a request, as libmicrohttpd tells it --------------------------------------------------------------- */

static size_t said_bytes(const serve_http *http, struct MHD_Connection *connection)
{
    const char *said =
        http->mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    return said ? (size_t)strtoull(said, NULL, 10) : 0;
}

static enum MHD_Result refuse_large(const serve_http *http, struct MHD_Connection *connection)
{
    char text[200];
    snprintf(text, sizeof text, "the body has more than %zu bytes, which is the most (--most-body)",
             http->queue->limits.most_bytes);
    return refuse(http, connection, TOO_LARGE, text);
}

/* Bytes more; past the most they are dropped, until it is told, or there are too many of those too. */
static enum MHD_Result take_body(const serve_http *http, exchange *x, const char *bytes, size_t *n)
{
    const size_t most = http->queue->limits.most_bytes;
    if (x->n + *n > most || x->dropped > 0) {
        x->dropped += *n;
        *n = 0;
        return x->dropped > DRAINED * most ? MHD_NO : MHD_YES;
    }
    if (x->n + *n > x->room) {
        const size_t room = 2 * (x->n + *n);
        char *more = realloc(x->body, room);
        if (more == NULL) return MHD_NO;
        x->body = more, x->room = room;
    }
    memcpy(x->body + x->n, bytes, *n);
    x->n += *n;
    *n = 0;
    return MHD_YES;
}

/* The headers are there, and the body is not yet. */
static enum MHD_Result begin_exchange(const serve_http *http, struct MHD_Connection *connection,
                                      void **own)
{
    serve_client *c = serve_client_of(http, connection);
    if (c == NULL) return MHD_NO; /* out of memory */
    serve_http_lock(http);
    serve_client_ask(c);
    serve_http_unlock(http);
    /* a client that is answered while it sends may not look before all is sent: so not too much is read, and dropped */
    if (said_bytes(http, connection) / DRAINED > http->queue->limits.most_bytes)
        return refuse_large(http, connection);
    *own = calloc(1, sizeof(exchange));
    return *own ? MHD_YES : MHD_NO;
}

/* A reply that comes is that of a request; any other is told at once. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *bytes, size_t *n,
                              void **own)
{
    serve_http *http = cls;
    exchange *x = *own;
    (void)version;
    if (x == NULL) return begin_exchange(http, connection, own);
    if (*n > 0) return take_body(http, x, bytes, n);
    serve_client *c = serve_client_of(http, connection);
    if (c->request) return send_answer(http, c);
    if (x->dropped > 0) return refuse_large(http, connection);
    const serve_route *found = find_route(http, url);
    if (found == NULL) return refuse_path(http, connection, url);
    const bool is_head = strcmp(method, "HEAD") == 0 && found->tell;
    if (!is_head && strcmp(method, found->method) != 0)
        return refuse_method(http, connection, found, method);
    return found->tell ? tell(http, connection, found) : begin(http, c, x, found->kind);
}

/* Answered, or the client is gone. */
static void complete(void *cls, struct MHD_Connection *connection, void **own,
                     enum MHD_RequestTerminationCode how)
{
    serve_http *http = cls;
    exchange *x = *own;
    serve_client *c = serve_client_of(http, connection);
    serve_http_lock(http);
    if (c && c->request) {
        serve_request *r = c->request;
        r->wake = NULL;
        if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK) r->is_gone = true;
        c->request = NULL;
        serve_request_drop(r);
    }
    if (c) serve_client_enter(c, SERVE_IDLES);
    serve_http_unlock(http);
    if (x) free(x->body);
    free(x);
    *own = NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static void log_nothing(void *cls, const char *format, va_list arguments)
{
    (void)cls, (void)format, (void)arguments;
}

weft_status serve_http_open(serve_http **http, serve_queue *queue,
                            const serve_http_options *options, weft_error *error)
{
    serve_http *h = *http = calloc(1, sizeof *h);
    if (h == NULL) return weft_fail_memory(error, sizeof *h);
    h->queue = queue;
    h->listener.socket = -1;
    weft_status status = serve_mhd_load(&h->mhd, error);
    if (status == WEFT_OK) status = serve_listen(options->host, options->port, &h->listener, error);
    if (status == WEFT_OK) {
        h->daemon = h->mhd.start_daemon(
            MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                MHD_USE_ERROR_LOG,
            0, NULL, NULL, handle, h, MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL,
            MHD_OPTION_LISTEN_SOCKET, h->listener.socket, MHD_OPTION_CONNECTION_LIMIT,
            (unsigned)MOST_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MOST_HEADERS,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(queue->limits.client_time + 1),
            MHD_OPTION_NOTIFY_COMPLETED, complete, h, MHD_OPTION_NOTIFY_CONNECTION,
            serve_client_notice, h, MHD_OPTION_END);
        if (h->daemon == NULL)
            status = weft_fail(error, WEFT_IO, "libmicrohttpd does not start: %s", strerror(errno));
    }
    h->listens = status == WEFT_OK;
    if (status == WEFT_OK) return WEFT_OK;
    if (h->listener.socket >= 0) close(h->listener.socket);
    free(h);
    *http = NULL;
    return status;
}

const char *serve_http_address(const serve_http *http)
{
    return http ? http->listener.address : "";
}

void serve_http_end(serve_http *http)
{
    serve_http_lock(http);
    http->queue->is_ending = true;
    http->ends = app_seconds() + http->queue->limits.client_time;
    serve_http_unlock(http);
}

/* Whatever is suspended is resumed: libmicrohttpd ends no connection that is not. */
static void wake_all(serve_http *http)
{
    serve_http_lock(http);
    for (serve_client *c = http->clients; c; c = c->next)
        if (c->request) {
            serve_request_end(c->request, BUSY);
            serve_request_wake(c->request);
        }
    serve_http_unlock(http);
}

void serve_http_close(serve_http **http, double seconds)
{
    serve_http *h = *http;
    if (h == NULL) return;
    for (const double begun = app_seconds();
         serve_client_any_busy(h) && app_seconds() - begun < seconds;) {
        (void)poll(NULL, 0, 5);
        serve_http_look(h);
    }
    wake_all(h);
    h->mhd.stop_daemon(h->daemon);
    if (h->listener.socket >= 0) close(h->listener.socket);
    free(h);
    *http = NULL;
}
