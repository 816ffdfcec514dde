/* listen.h: a socket that listens. */
#ifndef WEFT_APPS_SERVE_LISTEN_H
#define WEFT_APPS_SERVE_LISTEN_H

#include <stddef.h>

#include "weft/error.h"

typedef struct serve_listener {
    int socket;
    char address[128]; /* "http://127.0.0.1:8000", as it is reached */
} serve_listener;

/* serve_listen - port 0: any that is free. Local. returns WEFT_USAGE with the system's reason. Own the socket: close. */
weft_status serve_listen(const char *host, int port, serve_listener *listener, weft_error *error);

#endif
