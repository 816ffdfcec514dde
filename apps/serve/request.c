/* request: its life, and the bytes that are to be sent. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

enum { HTTP_FAILED = 500 };

serve_request *serve_request_create(const serve_kind *kind)
{
    serve_request *r = calloc(1, kind->bytes);
    if (r) r->kind = kind, r->n_holders = 1;
    return r;
}

void serve_request_hold(serve_request *r)
{
    r->n_holders++;
}

void serve_request_drop(serve_request *r)
{
    if (r == NULL || --r->n_holders > 0) return;
    if (r->kind->drop) r->kind->drop(r);
    free(r->out);
    free(r);
}

bool serve_request_send(serve_request *r, const char *bytes, size_t n)
{
    if (r->n_out + n > r->room) {
        const size_t room = 2 * (r->n_out + n) + 256;
        char *more = realloc(r->out, room);
        if (more == NULL) return false;
        r->out = more, r->room = room;
    }
    memcpy(r->out + r->n_out, bytes, n);
    r->n_out += n;
    return true;
}

void serve_request_say(serve_request *r, char *text)
{
    if (text == NULL || !serve_request_send(r, text, strlen(text))) {
        serve_request_end(r, HTTP_FAILED);
        r->is_gone = true;
    }
    free(text);
}

void serve_request_end(serve_request *r, int status)
{
    if (r->status == 0) r->status = status;
    r->is_done = true;
}

void serve_request_wake(serve_request *r)
{
    if (r->wake == NULL) return;
    void (*wake)(void *) = r->wake;
    r->wake = NULL;
    wake(r->waker);
}
