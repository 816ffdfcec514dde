/* stuck_lanes: a plug-in whose optimizer `stalling` trains as sgd does, until its op is done for the TEST_STALL_AT-th
 * time: from then on two lanes wait for each other. It is what a fault of Weft's own, or of a kernel that leaves a
 * loop of shared items too early, looks like from outside.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "weft/extend/op.h"
#include "weft/extend/optimizer.h"
#include "weft/extend/plugin.h"
#include "weft/ops.h"

static _Atomic int n_launched;

typedef struct stall {
    weft_stream *stream;
    _Atomic int has_helped;
} stall;

/* Lane 0 helps with lane 1's item and leaves without saying that it has done; lane 1 goes on to the next pass, and
 * waits until it does. */
static void stand_still(void *argument, int64_t begin, int64_t end, int lane)
{
    stall *s = argument;
    int64_t first, last;
    (void)begin, (void)end;
    if (lane == 0) {
        (void)weft_stream_take(s->stream, 0, 1, &first, &last);
        (void)weft_stream_take(s->stream, 0, 1, &first, &last);
        atomic_store(&s->has_helped, 1);
    }
    while (lane == 1 && !atomic_load(&s->has_helped))
        sched_yield();
    if (lane == 1) weft_stream_again(s->stream, 1);
    if (lane == 1) (void)weft_stream_take(s->stream, 1, 1, &first, &last);
}

static void launch(const weft_call *call)
{
    const char *at = getenv("TEST_STALL_AT");
    const weft_view *x = &call->in[0];
    memcpy(call->out[0].data, x->data, (size_t)weft_view_count(x) * weft_dtype_bytes(x->dtype));
    stall s = {.stream = call->stream};
    if (atomic_fetch_add(&n_launched, 1) + 1 == (at != NULL ? atoi(at) : 1))
        weft_parallel_whole(call->stream, weft_stream_lanes(call->stream), 1, stand_still, &s);
}

static const weft_op op = {.size = sizeof op,
                           .name = "stall",
                           .version = 1,
                           .infer = weft_infer_same,
                           .factors = weft_factors_pass};
static const weft_kernel kernel = {.size = sizeof kernel,
                                   .name = "plain",
                                   .device = WEFT_CPU,
                                   .dtypes = WEFT_DTYPE_BIT(WEFT_F32),
                                   .launch = launch};

static int update(const weft_update *u, weft_value variable, weft_value gradient,
                  weft_value *tokens)
{
    const weft_value stalled = weft_emit(gradient.graph, &op, &gradient, 1, NULL, 0);
    tokens[0] = weft_assign(
        variable, weft_sub(variable, weft_mul(stalled, weft_scalar_for(u->rate, variable))));
    return 1;
}

static weft_value build(weft_value loss, const weft_optimizer_options *options);
static const weft_optimizer_rule rule = {.size = sizeof rule,
                                         .name = "stalling",
                                         .rule = update,
                                         .build = build,
                                         .defaults = {.rate = 1e-3}};

static weft_value build(weft_value loss, const weft_optimizer_options *options)
{
    return weft_optimize(&rule, loss, options);
}

WEFT_API weft_status weft_plugin(weft_error *error);
weft_status weft_plugin(weft_error *error)
{
    WEFT_TRY(weft_extend_op(&op, error));
    WEFT_TRY(weft_extend_kernel("stall", &kernel, error));
    return weft_extend_optimizer(&rule, error);
}
