/* listen: an address by its name, and the port that it got. */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 256 };

static int open_at(const struct addrinfo *at)
{
    const int one = 1;
    const int own =
        socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (own < 0) return -1;
    (void)setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(own, at->ai_addr, at->ai_addrlen) == 0 && listen(own, BACKLOG) == 0) return own;
    const int reason = errno;
    close(own);
    errno = reason;
    return -1;
}

static weft_status tell_address(serve_listener *listener, weft_error *error)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    char host[80], port[16];
    const int flags = NI_NUMERICHOST | NI_NUMERICSERV;
    if (getsockname(listener->socket, (struct sockaddr *)&at, &bytes) != 0 ||
        getnameinfo((struct sockaddr *)&at, bytes, host, sizeof host, port, sizeof port, flags) !=
            0)
        return weft_fail(error, WEFT_USAGE, "the system does not say where the server listens: %s",
                         strerror(errno));
    const bool is_v6 = at.ss_family == AF_INET6;
    snprintf(listener->address, sizeof listener->address, "http://%s%s%s:%s", is_v6 ? "[" : "",
             host, is_v6 ? "]" : "", port);
    return WEFT_OK;
}

static weft_status fail_host(const char *host, const char *reason, weft_error *error)
{
    return weft_fail(error, WEFT_USAGE,
                     "--host %.100s: %s; name an address of this host, as 127.0.0.1, or 0.0.0.0 "
                     "for all of them",
                     host, reason);
}

static weft_status fail(const char *host, int port, int reason, weft_error *error)
{
    if (reason != EADDRINUSE && reason != EACCES) return fail_host(host, strerror(reason), error);
    return weft_fail(error, WEFT_USAGE,
                     "--host %.100s --port %d: %s; give another --port, or --port 0 for any that "
                     "is free",
                     host, port, strerror(reason));
}

weft_status serve_listen(const char *host, int port, serve_listener *listener, weft_error *error)
{
    struct addrinfo *all = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char service[16];
    *listener = (serve_listener){.socket = -1};
    snprintf(service, sizeof service, "%d", port);
    const int code = getaddrinfo(host, service, &hints, &all);
    if (code != 0) return fail_host(host, gai_strerror(code), error);
    for (const struct addrinfo *at = all; at && listener->socket < 0; at = at->ai_next)
        listener->socket = open_at(at);
    const int reason = errno;
    freeaddrinfo(all);
    if (listener->socket < 0) return fail(host, port, reason, error);
    const weft_status status = tell_address(listener, error);
    if (status != WEFT_OK) close(listener->socket);
    return status;
}
