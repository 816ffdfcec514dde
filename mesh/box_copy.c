/* box_copy: elements of one box copied or combined into another, on the CPU, by the thread that asks. */
#include "mesh_internal.h"

#include <string.h>

/* A place in the loops: the current run in both boxes. */
typedef struct walk {
    int64_t at[WEFT_BOX_LOOPS], from, to;
} walk;

static bool next_run(const weft_box_copy *box, walk *w)
{
    for (int l = 0; l < box->n_loops; l++) {
        w->from += box->from_stride[l];
        w->to += box->to_stride[l];
        if (++w->at[l] < box->count[l]) return true;
        w->from -= box->from_stride[l] * box->count[l];
        w->to -= box->to_stride[l] * box->count[l];
        w->at[l] = 0;
    }
    return false;
}

void weft_copy_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                       const weft_box_copy *box, size_t element)
{
    (void)stream, (void)queue;
    walk w = {.from = box->from_at, .to = box->to_at};
    do
        memcpy((char *)to + (size_t)w.to * element, (const char *)from + (size_t)w.from * element,
               (size_t)box->run * element);
    while (next_run(box, &w));
}

void weft_combine_box_cpu(weft_stream *stream, int queue, void *to, const void *from,
                          const weft_box_copy *box, const weft_combining *rule)
{
    (void)stream, (void)queue;
    walk w = {.from = box->from_at, .to = box->to_at};
    do {
        char *into = (char *)to + w.to * rule->element;
        rule->host(into, into, (const char *)from + w.from * rule->element, box->run / rule->width);
    } while (next_run(box, &w));
}

void weft_identity_cpu(weft_stream *stream, int queue, void *into, int64_t n_states,
                       const weft_combining *rule)
{
    (void)stream, (void)queue;
    rule->identity(into, n_states);
}
