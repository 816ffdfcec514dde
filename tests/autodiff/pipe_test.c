/* RANKS: 2 4 */
/* pipe_test: a small net whose layers are stages, gone through by micro-batches: its values are those of the layers one after
 * the other, its gradients those of finite differences, under placements and layouts, scans written down or compiled once.
 */
#include <math.h>

#include "apps/gpt/pipe.h"
#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"

static weft_oracle oracle;
enum { STAGES = 3, MICRO = 4, ROWS = 2 };
static const weft_dim stage = {"stage", STAGES}, batch = {"batch", ROWS}, seq = {"seq", 3};
static const weft_dim embed = {"embed", 4}, to = {"to", 4}, tick = {"tick", MICRO + STAGES - 1};
static const weft_dim one = {"stage", 1}, micro = {"stage", MICRO};

typedef struct net {
    weft_value x, w,
        gain; /* [tick, stage:1, batch, seq, embed], [stage, embed, to], [stage, embed] */
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(tick, one, batch, seq, embed), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(stage, embed, to), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(stage, embed), 0.5, 1.5)};
}

/* One layer, or all stages': x and the weights have the dim `stage`, or none of them has. */
static weft_value layer(weft_value x, weft_value w, weft_value gain)
{
    weft_shape out = *weft_shape_of(x);
    out.dims[out.n_dims - 1] = to;
    const weft_value zero = weft_constant(x.graph, WEFT_F64, WEFT_DIMS(embed), 0.0);
    const weft_value y = weft_einsum(out, weft_layer_norm(x, gain, zero, embed), w);
    return weft_add(x, weft_tanh(weft_rename(y, to, embed)));
}

static weft_value stages(void *argument, weft_value held)
{
    const net *n = argument;
    return layer(held, n->w, n->gain);
}

static weft_value piped(const net *n)
{
    return gpt_pipe_through(&(gpt_pipe){stage, MICRO, 1}, n->x, stages, (void *)n);
}

/* Micro-batches of real ticks, through one layer after the other. */
static weft_value written(const net *n)
{
    weft_value x = weft_slice(n->x, tick, 0, (weft_dim){"micro", MICRO});
    x = weft_reshape(x, WEFT_DIMS(micro, batch, seq, embed));
    for (int64_t s = 0; s < STAGES; s++)
        x = layer(x, weft_unstack(n->w, stage, s), weft_unstack(n->gain, stage, s));
    return x;
}

/* Micro-batches, and elements of each, count differently. */
static weft_value loss_of(weft_value y)
{
    const weft_value by = weft_cast(weft_iota(y.graph, WEFT_I32, micro), WEFT_F64);
    return weft_sum(WEFT_SCALAR, weft_mul(weft_square(y), weft_shift(by, 1.0)));
}

/* Outputs come in pairs, which are to be the same. */
static void build_values(weft_oracle_build *b)
{
    const net n = net_of(b);
    const weft_value by[] = {n.x, n.w, n.gain}, y = piped(&n), z = written(&n);
    weft_value in_pipe[3], in_turn[3];
    weft_gradients(loss_of(y), (weft_values){by, 3}, in_pipe, 0);
    weft_gradients(loss_of(z), (weft_values){by, 3}, in_turn, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, z);
    for (int i = 0; i < 3; i++) {
        weft_oracle_output(b, in_pipe[i]);
        weft_oracle_output(b, in_turn[i]);
    }
}

static weft_value moved(weft_value x, weft_value along, double by)
{
    return weft_add(x, weft_scale(along, by));
}

static weft_value loss_moved(const net *n, const net *along, double by)
{
    const net other = {moved(n->x, along->x, by), moved(n->w, along->w, by),
                       moved(n->gain, along->gain, by)};
    return loss_of(piped(&other));
}

/* The slope in some direction: by a step to both sides, and by gradients. */
static void build_differences(weft_oracle_build *b)
{
    const double by = 1e-5;
    const net n = net_of(b), along = net_of(b);
    const weft_value variables[] = {n.x, n.w, n.gain};
    const weft_value directions[] = {along.x, along.w, along.gain};
    weft_value gradients[3], slope = {0};
    weft_gradients(loss_of(piped(&n)), (weft_values){variables, 3}, gradients, 0);
    for (int i = 0; i < 3; i++) {
        const weft_value part = weft_sum(WEFT_SCALAR, weft_mul(gradients[i], directions[i]));
        slope = i == 0 ? part : weft_add(slope, part);
    }
    weft_oracle_output(
        b, weft_scale(weft_sub(loss_moved(&n, &along, by), loss_moved(&n, &along, -by)), 0.5 / by));
    weft_oracle_output(b, slope);
}

static void check_pairs(const weft_oracle_case *what, double within)
{
    weft_oracle_result r;
    weft_error error = {0};
    if (!CHECK_OK(weft_oracle_run(oracle.alone, what, NULL, &r, &error), error)) return;
    for (int i = 0; i + 1 < r.n_outputs; i += 2) {
        double largest = 0.0, apart = 0.0;
        CHECK_EQ_INT(r.count[i], r.count[i + 1]);
        for (int64_t k = 0; k < r.count[i]; k++) {
            apart = fmax(apart, fabs(r.data[i][k] - r.data[i + 1][k]));
            largest = fmax(largest, fabs(r.data[i + 1][k]));
        }
        CHECK(largest > 1e-3);
        CHECK(apart <= within * largest);
    }
    weft_oracle_free(&r);
}

static const weft_compile_options once = {.unroll = 1}, unrolled = {.unroll = INT64_MAX};

static void check(weft_oracle_case what, double within)
{
    const int places = oracle.world.n_processes > 1 ? 2 : 8;
    for (int k = 0; k < 2; k++) {
        what.options = k == 0 ? &once : &unrolled;
        check_pairs(&what, within);
        weft_oracle_sweep(&oracle, &what, places);
    }
}

static void test_stages_are_layers_one_after_the_other(void)
{
    check((weft_oracle_case){.name = "values", .build = build_values}, 1e-13);
    check((weft_oracle_case){.name = "by stages",
                             .build = build_values,
                             .layout = "batch:data?,stage:pipe?"},
          1e-13);
}

static void test_gradients_are_finite_differences(void)
{
    const weft_oracle_case what = {.name = "differences",
                                   .build = build_differences,
                                   .layout = "stage:pipe?",
                                   .options = &once};
    check_pairs(&what, 1e-8);
}

int main(void)
{
    static const char *const meshes[] = {"pipe:2", "pipe:3", "pipe:4", "data:2,pipe:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_stages_are_layers_one_after_the_other);
        RUN(test_gradients_are_finite_differences);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
