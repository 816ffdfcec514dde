/* pipe: a scan over ticks, which carries what each stage begins the next tick with.
 *
 * A tick's bubble computes like any other, on zeros or on token 0: what comes of it is never read, and its gradients are 0.
 */
#include "pipe.h"

#include <stdlib.h>
#include <string.h>

#include "weft/scan.h"

static weft_shape shape_without(const weft_shape *shape, int d)
{
    weft_shape rest = *shape;
    rest.n_dims--;
    for (; d < rest.n_dims; d++)
        rest.dims[d] = rest.dims[d + 1];
    return rest;
}

static weft_shape without(weft_value x, int d)
{
    return shape_without(weft_shape_of(x), d);
}

/* Every n-th window goes with the same micro-batch, or half of one, so that each rank has as many of each. */
static weft_value by_micro(weft_value x, weft_dim micro)
{
    const weft_dim batch = weft_dim_of(x, "batch"), seq = weft_dim_of(x, "seq");
    const weft_dim rows = {"batch", batch.size / micro.size};
    return weft_transpose(weft_reshape(x, WEFT_DIMS(rows, micro, seq)),
                          WEFT_DIMS(micro, rows, seq));
}

static int64_t ticks_of(const gpt_pipe *pipe)
{
    return pipe->micro + pipe->stage.size - 1;
}

/* [batch, seq] in micro-batches, of two turns [turn:2, micro, batch, seq]. */
static weft_value in_turns(const gpt_pipe *pipe, weft_value x)
{
    const weft_dim micro = {"micro", pipe->micro}, turn = {"turn", pipe->turns};
    x = by_micro(x, (weft_dim){"micro", pipe->micro * pipe->turns});
    const weft_dim rows = weft_dim_of(x, "batch"), seq = weft_dim_of(x, "seq");
    return pipe->turns > 1 ? weft_reshape(x, WEFT_DIMS(turn, micro, rows, seq)) : x;
}

weft_value gpt_pipe_feed(const gpt_pipe *pipe, weft_value tokens)
{
    const weft_dim micro = {"micro", pipe->micro}, one = {"stage", 1}, turn = {"turn", pipe->turns};
    const weft_dim tick = {"tick", ticks_of(pipe)};
    const weft_value x = weft_pad(in_turns(pipe, tokens), micro, 0, tick, 0.0);
    const weft_dim rows = weft_dim_of(x, "batch"), seq = weft_dim_of(x, "seq");
    return weft_reshape(x, pipe->turns > 1 ? WEFT_DIMS(turn, tick, one, rows, seq)
                                           : WEFT_DIMS(tick, one, rows, seq));
}

/* A stage holds in a tick what entered so many ticks before as there are stages before it. */
weft_value gpt_pipe_beside(const gpt_pipe *pipe, weft_value x)
{
    const weft_dim micro = {"micro", pipe->micro}, turn = {"turn", pipe->turns};
    const weft_dim stage = pipe->stage, tick = {"tick", ticks_of(pipe)};
    const weft_value entering = in_turns(pipe, x);
    weft_value *held = calloc((size_t)stage.size, sizeof *held);
    if (held == NULL) return (weft_value){x.graph, 0};
    for (int64_t s = 0; s < stage.size; s++)
        held[s] = weft_pad(entering, micro, s, tick, 0.0);
    const weft_value all = weft_stack((weft_values){held, (int)stage.size}, stage);
    const weft_dim rows = weft_dim_of(all, "batch"), seq = weft_dim_of(all, "seq");
    free(held);
    return weft_transpose(all, pipe->turns > 1 ? WEFT_DIMS(turn, tick, stage, rows, seq)
                                               : WEFT_DIMS(tick, stage, rows, seq));
}

weft_value gpt_pipe_dealt(const gpt_pipe *pipe, weft_value targets)
{
    return by_micro(targets, (weft_dim){"stage", pipe->micro * pipe->turns});
}

/* [.., tick, stage:1, ..] without the ticks in which nothing had come through yet: [stage: micro x turns, ..]. */
static weft_value come_through(const gpt_pipe *pipe, weft_value x)
{
    const weft_dim micro = {"micro", pipe->micro};
    x = weft_slice(x, weft_dim_of(x, "tick"), pipe->stage.size - 1, micro);
    weft_shape dealt = without(x, 0);
    while (dealt.n_dims > 0 && strcmp(dealt.dims[0].name, "stage") != 0)
        dealt = shape_without(&dealt, 0);
    dealt.dims[0].size = pipe->micro * pipe->turns;
    return weft_reshape(x, dealt);
}

/* What goes in one turn of each tick, or in the only one. The second is late: what it made goes on to the next stage while the
 * first one computes in the next tick. */
typedef struct turn {
    weft_value entering; /* [tick, stage:1, ..] */
    weft_value nothing;
    weft_value carry; /* what stages hold; in the late turn what they made, which then goes on */
    weft_value held, made, leaving;
} turn;

/* Before the scan: what the stages hold in the first tick. */
static weft_value nothing(weft_value entering, weft_dim stage)
{
    weft_shape all = without(entering, 0);
    all.dims[0] = stage;
    return weft_constant(entering.graph, weft_dtype_of(entering), all, 0.0);
}

static void begin_turn(turn *t, weft_dim stage, bool is_late)
{
    const weft_dim tick = weft_dim_of(t->entering, "tick"), one = {"stage", 1};
    t->carry = weft_scan_carry(t->nothing);
    const weft_value behind = is_late ? weft_shift_along(t->carry, stage, 1) : t->carry;
    const weft_value in = weft_pad(weft_scan_each(t->entering, tick), one, 0, stage, 0.0);
    t->held = weft_add(behind, in); /* of the first stage what enters; of others what is behind */
}

static void end_turn(turn *t, weft_dim stage, bool is_late)
{
    const weft_dim one = {"stage", 1};
    weft_scan_next(t->carry, is_late ? t->made : weft_shift_along(t->made, stage, 1));
    t->leaving = weft_slice(t->made, stage, stage.size - 1, one);
}

weft_value gpt_pipe_through(const gpt_pipe *pipe, weft_value x, gpt_stages stages, void *argument)
{
    const weft_dim two = {"turn", 2}, tick = weft_dim_of(x, "tick");
    const int n = pipe->turns > 1 ? 2 : 1;
    turn turns[2];
    weft_value out[2];
    for (int k = 0; k < n; k++) {
        turns[k].entering = n > 1 ? weft_unstack(x, two, k) : x;
        turns[k].nothing = nothing(turns[k].entering, pipe->stage);
    }
    const weft_value trip = weft_scan_begin(x.graph, tick.size);
    for (int k = 0; k < n; k++)
        begin_turn(&turns[k], pipe->stage, k > 0);
    for (int k = 0; k < n; k++) {
        turns[k].made = stages(argument, turns[k].held);
        end_turn(&turns[k], pipe->stage, k > 0);
    }
    weft_scan_end(trip);
    for (int k = 0; k < n; k++)
        out[k] = weft_scan_stack(turns[k].leaving, tick);
    return come_through(pipe, n > 1 ? weft_stack((weft_values){out, 2}, two) : out[0]);
}
