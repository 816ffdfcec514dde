/* http_absent: in place of http, where Weft was built without libmicrohttpd. */
#include "http.h"

weft_status serve_http_open(serve_http **http, serve_queue *queue,
                            const serve_http_options *options, weft_error *error)
{
    (void)queue, (void)options;
    *http = NULL;
    return weft_fail(error, WEFT_USAGE,
                     "this program was built without libmicrohttpd, by which it would speak HTTP; "
                     "install libmicrohttpd-dev and build it again");
}

const char *serve_http_address(const serve_http *http)
{
    (void)http;
    return "";
}

void serve_http_look(serve_http *http)
{
    (void)http;
}

void serve_http_end(serve_http *http)
{
    (void)http;
}

bool serve_http_any_asks(const serve_http *http)
{
    (void)http;
    return false;
}

void serve_http_close(serve_http **http, double seconds)
{
    (void)http, (void)seconds;
}
