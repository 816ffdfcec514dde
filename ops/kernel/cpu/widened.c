/* widened.c: operands of bf16 become f32 in scratch, and results of f32 bf16; see widened.h. */
#include "cpu/widened.h"

#include "weft/extend/half.h"
#include "weft/extend/target_clones.h"

enum { GRAIN = 1 << 14 }; /* elements */

typedef struct numbers {
    const void *from;
    void *to;
} numbers;

WEFT_TARGET_CLONES static void widen(void *argument, int64_t begin, int64_t end, int lane)
{
    const numbers *n = argument;
    const uint16_t *from = n->from;
    float *to = n->to;
    (void)lane;
    WEFT_IVDEP
    for (int64_t i = begin; i < end; i++)
        to[i] = weft_f32_of_bf16(from[i]);
}

WEFT_TARGET_CLONES static void narrow(void *argument, int64_t begin, int64_t end, int lane)
{
    const numbers *n = argument;
    const float *from = n->from;
    uint16_t *to = n->to;
    (void)lane;
    WEFT_IVDEP
    for (int64_t i = begin; i < end; i++)
        to[i] = weft_bf16_of_f32(from[i]);
}

void weft_widen(weft_stream *stream, int64_t n, const uint16_t *from, float *to)
{
    numbers all = {from, to};
    if (n > 0) weft_parallel(stream, n, GRAIN, widen, &all);
}

void weft_narrow(weft_stream *stream, int64_t n, const float *from, uint16_t *to)
{
    numbers all = {from, to};
    if (n > 0) weft_parallel(stream, n, GRAIN, narrow, &all);
}

/* Each begins in a line of its own. */
static int64_t bytes_of(const weft_view *view)
{
    return view->dtype == WEFT_BF16 ? weft_aligned(weft_view_count(view) * (int64_t)sizeof(float))
                                    : 0;
}

int64_t weft_widened_bytes(const weft_call *call)
{
    int64_t bytes = 0;
    for (int i = 0; i < call->n_in; i++)
        bytes += bytes_of(&call->in[i]);
    for (int o = 0; o < call->n_out; o++)
        bytes += bytes_of(&call->out[o]);
    return bytes;
}

static void place(weft_view *view, char **scratch)
{
    const int64_t bytes = bytes_of(view);
    if (view->dtype != WEFT_BF16) return;
    view->data = *scratch, view->dtype = WEFT_F32;
    *scratch += bytes;
}

void weft_widen_call(const weft_call *call, weft_call *wide)
{
    char *scratch = call->scratch;
    *wide = *call;
    for (int i = 0; i < call->n_in; i++) {
        place(&wide->in[i], &scratch);
        if (wide->in[i].dtype == call->in[i].dtype) continue;
        weft_widen(call->stream, weft_view_count(&call->in[i]), call->in[i].data, wide->in[i].data);
    }
    for (int o = 0; o < call->n_out; o++)
        place(&wide->out[o], &scratch);
}

void weft_narrow_results(const weft_call *call, const weft_call *wide)
{
    for (int o = 0; o < call->n_out; o++) {
        if (wide->out[o].dtype == call->out[o].dtype) continue;
        weft_narrow(call->stream, weft_view_count(&call->out[o]), wide->out[o].data,
                    call->out[o].data);
    }
}
