/* request: its life, and the bytes that are to be sent. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

gpt_request *gpt_request_create(const gpt_kind *kind)
{
    gpt_request *r = calloc(1, sizeof *r);
    if (r) *r = (gpt_request){.kind = kind, .n_holders = 1, .n_likely = -1};
    return r;
}

void gpt_request_hold(gpt_request *r)
{
    r->n_holders++;
}

void gpt_request_drop(gpt_request *r)
{
    if (r == NULL || --r->n_holders > 0) return;
    for (int i = 0; i < r->n_inputs; i++)
        free(r->inputs[i].ids);
    gpt_stops_free(&r->stops);
    gpt_tail_free(&r->tail);
    free(r->out);
    free(r->told);
    free(r->sums);
    free(r->vectors);
    free(r);
}

bool gpt_request_send(gpt_request *r, const char *bytes, size_t n)
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

void gpt_request_end(gpt_request *r, int status)
{
    if (r->status == 0) r->status = status;
    r->is_done = true;
}

void gpt_request_wake(gpt_request *r)
{
    if (r->wake == NULL) return;
    void (*wake)(void *) = r->wake;
    r->wake = NULL;
    wake(r->waker);
}

int64_t gpt_request_n_inputs(const gpt_request *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->n_inputs; i++)
        n += (int64_t)r->inputs[i].n;
    return n;
}
