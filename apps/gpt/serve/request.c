/* request: what it holds besides. */
#include "request.h"

#include <stdlib.h>

#include "asked.h"

static void drop(serve_request *base)
{
    gpt_request *r = (gpt_request *)base;
    for (int i = 0; i < r->n_inputs; i++)
        free(r->inputs[i].ids);
    gpt_stops_free(&r->stops);
    gpt_tail_free(&r->tail);
    free(r->told);
    free(r->sums);
    free(r->vectors);
}

const gpt_kind gpt_texts_kind = {
    {sizeof(gpt_request), gpt_asked_read, drop}, "text_completion", true};
const gpt_kind gpt_vectors_kind = {{sizeof(gpt_request), gpt_asked_read, drop}, "list", false};

int64_t gpt_request_n_inputs(const gpt_request *r)
{
    int64_t n = 0;
    for (int i = 0; i < r->n_inputs; i++)
        n += (int64_t)r->inputs[i].n;
    return n;
}
