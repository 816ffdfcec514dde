/* http_absent: in place of http, where Weft was built without libmicrohttpd. */
#include "http.h"

weft_status gpt_http_open(gpt_http **http, gpt_server *server, const gpt_http_options *options,
                          weft_error *error)
{
    (void)server, (void)options;
    *http = NULL;
    return weft_fail(error, WEFT_USAGE,
                     "this gpt was built without libmicrohttpd, by which gpt serve speaks HTTP; "
                     "install libmicrohttpd-dev and build it again");
}

const char *gpt_http_address(const gpt_http *http)
{
    (void)http;
    return "";
}

void gpt_http_look(gpt_http *http)
{
    (void)http;
}

void gpt_http_refuse(gpt_http *http)
{
    (void)http;
}

void gpt_http_close(gpt_http **http, double seconds)
{
    (void)http, (void)seconds;
}
