/* pipe: a scan over ticks, which carries what each stage begins the next tick with.
 *
 * A tick's bubble computes like any other, on zeros or on token 0: what comes of it is never read, and its gradients are 0.
 */
#include "pipe.h"

#include "weft/scan.h"

static weft_shape without(weft_value x, int d)
{
    weft_shape rest = *weft_shape_of(x);
    rest.n_dims--;
    for (; d < rest.n_dims; d++)
        rest.dims[d] = rest.dims[d + 1];
    return rest;
}

/* Every micro-th window goes with the same micro-batch, so that each rank has as many of each. */
static weft_value by_micro(const gpt_pipe *pipe, weft_value x, weft_dim micro)
{
    const weft_dim batch = weft_dim_of(x, "batch"), seq = weft_dim_of(x, "seq");
    const weft_dim rows = {"batch", batch.size / pipe->micro};
    return weft_transpose(weft_reshape(x, WEFT_DIMS(rows, micro, seq)),
                          WEFT_DIMS(micro, rows, seq));
}

weft_value gpt_pipe_feed(const gpt_pipe *pipe, weft_value tokens)
{
    const weft_dim micro = {"micro", pipe->micro}, one = {"stage", 1};
    const weft_dim tick = {"tick", pipe->micro + pipe->stage.size - 1};
    const weft_value fed = weft_pad(by_micro(pipe, tokens, micro), micro, 0, tick, 0.0);
    return weft_reshape(fed,
                        WEFT_DIMS(tick, one, weft_dim_of(fed, "batch"), weft_dim_of(fed, "seq")));
}

weft_value gpt_pipe_dealt(const gpt_pipe *pipe, weft_value targets)
{
    return by_micro(pipe, targets, (weft_dim){"stage", pipe->micro});
}

/* [tick, stage:1, ..] without the ticks in which nothing had come through yet: [stage: micro, ..]. */
static weft_value come_through(const gpt_pipe *pipe, weft_value x, weft_dim tick)
{
    const weft_dim micro = {"micro", pipe->micro};
    const weft_value out = weft_slice(x, tick, pipe->stage.size - 1, micro);
    weft_shape dealt = without(out, 1);
    dealt.dims[0].name = "stage";
    return weft_reshape(out, dealt);
}

weft_value gpt_pipe_through(const gpt_pipe *pipe, weft_value x, gpt_stages stages, void *argument)
{
    const weft_dim stage = pipe->stage, one = {"stage", 1}, tick = weft_dim_of(x, "tick");
    weft_shape all = without(x, 0);
    all.dims[0] = stage;
    const weft_value nothing = weft_constant(x.graph, weft_dtype_of(x), all, 0.0);

    const weft_value trip = weft_scan_begin(x.graph, tick.size);
    const weft_value behind = weft_scan_carry(nothing); /* 0 of the first stage */
    const weft_value entering = weft_pad(weft_scan_each(x, tick), one, 0, stage, 0.0);
    const weft_value made = stages(argument, weft_add(behind, entering));
    weft_scan_next(behind, weft_shift_along(made, stage, 1));
    const weft_value leaving = weft_slice(made, stage, stage.size - 1, one);
    weft_scan_end(trip);
    return come_through(pipe, weft_scan_stack(leaving, tick), tick);
}
