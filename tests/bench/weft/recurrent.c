/* recurrent: LSTM and GRU along a sequence, with all gradients; and scans whose bodies do next to nothing.
 *
 * Sizes are batch, steps, features, hidden; of a scan its trips and elements. The first value is the gradient of the weights that
 * multiply the state.
 */
#include <math.h>

#include "rows.h"

typedef weft_value (*layer)(weft_value x, const weft_recurrent_options *options,
                            weft_recurrent_states *last);

typedef struct net {
    weft_dim time, batch, feature, hidden, gate, from;
    weft_value weights[4];
    int n_weights;
} net;

static net net_of(const bench *b, int n_gates)
{
    const int64_t *n = b->row->sizes;
    return (net){.time = {"time", n[1]},
                 .batch = {"batch", n[0]},
                 .feature = {"feature", n[2]},
                 .hidden = {"hidden", n[3]},
                 .gate = {"gate", n_gates},
                 .from = {"from", n[3]}};
}

static void add_weight(bench *b, net *n, const char *name, weft_shape shape)
{
    const weft_initial initial = weft_normal(0.0, 1.0 / sqrt(3.0 * (double)n->hidden.size));
    n->weights[n->n_weights++] = bench_variable(b, name, shape, initial);
}

static void build(bench *b, net *n, layer builder, bool has_new_bias)
{
    weft_value gradients[5];
    weft_value x = bench_input(b, WEFT_DIMS(n->time, n->batch, n->feature));
    add_weight(b, n, "layer/state", WEFT_DIMS(n->gate, n->from, n->hidden));
    add_weight(b, n, "layer/input", WEFT_DIMS(n->gate, n->feature, n->hidden));
    add_weight(b, n, "layer/bias", WEFT_DIMS(n->gate, n->hidden));
    if (has_new_bias) add_weight(b, n, "layer/new_bias", WEFT_DIMS(n->hidden));
    weft_value y =
        builder(x,
                &(weft_recurrent_options){
                    .name = "layer", .over = n->time, .feature = n->feature, .hidden = n->hidden},
                NULL);
    weft_value wanted[5] = {n->weights[0], n->weights[1], n->weights[2], x, n->weights[3]};
    const int n_wanted = has_new_bias ? 5 : 4;
    weft_gradients(weft_sum(WEFT_SCALAR, weft_scale(weft_square(y), 0.5)),
                   (weft_values){wanted, n_wanted}, gradients, 0);
    for (int i = 0; i < n_wanted; i++)
        b->values[i] = gradients[i];
}

static void build_lstm(bench *b)
{
    net n = net_of(b, 4);
    build(b, &n, weft_lstm, false);
}

static void build_gru(bench *b)
{
    net n = net_of(b, 3);
    build(b, &n, weft_gru, true);
}

/* What a trip costs beside its kernels: one loop over a few elements. */
static void build_scan(bench *b)
{
    const weft_dim elements = {"elements", b->row->sizes[1]};
    weft_value x = bench_input(b, WEFT_DIMS(elements));
    const weft_value trip = weft_scan_begin(b->graph, b->row->sizes[0]);
    const weft_value state = weft_scan_carry(x);
    weft_scan_next(state, weft_tanh(weft_add(state, x)));
    weft_scan_end(trip);
    b->values[0] = weft_scan_last(state);
}

const bench_row bench_recurrent_rows[] = {
    {"lstm_32x64", &bench_op, build_lstm, {32, 64, 128, 256}},
    {"lstm_16x256", &bench_op, build_lstm, {16, 256, 64, 128}},
    {"gru_32x64", &bench_op, build_gru, {32, 64, 128, 256}},
    {"gru_16x256", &bench_op, build_gru, {16, 256, 64, 128}},
    {"scan_1000", &bench_op, build_scan, {1000, 16}},
    {0},
};
