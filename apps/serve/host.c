/* host: of every server the same. */
#include "host.h"

#include <stdio.h>
#include <string.h>

#include "weft/collectives.h"

static const double look_time = 0.1; /* seconds between two looks at clients */

void serve_host_begin(serve_host *h, bool is_root)
{
    *h = (serve_host){.is_root = is_root};
    stop_survive_failed_writes();
    stop_watch_open(&h->watch, NULL, 0, 0);
}

weft_status serve_host_open(serve_host *h, const settings *s, const serve_service *service,
                            weft_error *error)
{
    const serve_http_options options = {settings_text(s, "host"), (int)settings_count(s, "port")};
    const serve_limits limits = {
        .most_bytes = (size_t)settings_count(s, "most-body"),
        .most_wait = settings_count(s, "most-waiting"),
        .most_time = settings_seconds(s, "most-time"),
        .client_time = settings_seconds(s, "client-time"),
    };
    WEFT_TRY(serve_queue_open(&h->queue, service, &limits, error));
    h->has_queue = true;
    return serve_http_open(&h->http, &h->queue, &options, error);
}

weft_status serve_host_find_end(serve_host *h, weft_error *error)
{
    bool any;
    WEFT_TRY(weft_world_any(stop_watch_is_asked(), &any, error));
    if (!any || h->is_ending) return WEFT_OK;
    h->is_ending = true;
    if (h->is_root) serve_http_end(h->http);
    return WEFT_OK;
}

void serve_host_wait(serve_host *h)
{
    serve_queue_wait(&h->queue, h->is_ending ? SERVE_ENDING : SERVE_IDLE);
}

bool serve_host_is_over(serve_host *h)
{
    if (h->is_ending && !serve_http_any_asks(h->http)) h->queue.is_over = true;
    return h->queue.is_over;
}

void serve_host_look(serve_host *h)
{
    const double now = app_seconds();
    if (!h->is_ending && now - h->looked < look_time) return;
    h->looked = now;
    serve_http_look(h->http);
}

void serve_host_close(serve_host *h)
{
    serve_http_close(&h->http, h->has_queue ? h->queue.limits.client_time : 0);
    if (h->has_queue) serve_queue_close(&h->queue);
    stop_watch_close();
}

void serve_name(const char *path, const char *ending, char *text, size_t bytes)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    const size_t behind = strlen(ending);
    if (n - at > behind && strncmp(path + n - behind, ending, behind) == 0) n -= behind;
    snprintf(text, bytes, "%.*s", (int)(n - at), path + at);
}
