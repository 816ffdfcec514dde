/* sequences: a step of small trainings over sequences of letters: a mixture of experts, and from one sequence to another. AdamW.
 *
 * Sizes: of the mixture batch, letters, embedding, hidden, experts, experts of a letter; of the other batch, letters read, letters
 * written, kinds of letters, embedding, hidden.
 */
#include "rows.h"

enum { KINDS = 65 };

static void train(bench *b, weft_value x, weft_dim in, weft_value targets, weft_dim kinds)
{
    const weft_value logits = weft_dense(
        x, &(weft_dense_options){.name = "last", .in = WEFT_DIMS(in), .out = WEFT_DIMS(kinds)});
    b->values[0] = weft_mean(weft_cross_entropy(weft_cast(logits, WEFT_F32), targets, kinds));
    b->values[1] = weft_adamw(
        b->values[0],
        &(weft_optimizer_options){
            .rate = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1});
}

static weft_value embedded(bench *b, const char *name, weft_value letters, weft_dim kinds,
                           weft_dim embed)
{
    const weft_value table =
        bench_variable(b, name, WEFT_DIMS(kinds, embed), weft_normal(0.0, 0.1));
    return weft_cast(weft_gather(table, letters, kinds), b->computes);
}

/* x + experts(x): each letter goes through its own experts alone, and no expert turns one away. */
static void build_experts(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, time = {"time", n[1]}, embed = {"embed", n[2]},
                   hidden = {"hidden", n[3]}, kinds = {"letter", KINDS};
    const weft_value letters = bench_indices(b, WEFT_DIMS(batch, time), KINDS);
    const weft_value targets = bench_indices(b, WEFT_DIMS(batch, time), KINDS);
    const weft_value x = embedded(b, "table", letters, kinds, embed);
    const weft_experts_options options = {.name = "mixture",
                                          .token = time,
                                          .feature = embed,
                                          .experts = {"experts", n[4]},
                                          .hidden = hidden,
                                          .top_k = n[5],
                                          .is_dropless = true,
                                          .is_picked = true,
                                          .normalizes = true};
    train(b, weft_add(x, weft_experts(x, &options, NULL)), embed, targets, kinds);
    bench_begins(b, "mixture/router", 0.0, 0.1);
    bench_begins(b, "mixture/up", 0.0, 0.1);
    bench_begins(b, "mixture/down", 0.0, 0.1);
    bench_layer(b, "last", 0.05);
}

static void begin_lstm(bench *b, const char *state, const char *input, const char *bias)
{
    bench_begins(b, state, 0.0, 0.05);
    bench_begins(b, input, 0.0, 0.05);
    bench_begins(b, bias, 0.0, 0.05);
}

/* An LSTM reads, another begins with its last state and writes; what it writes attends to what was read.
 * source  Luong et al. 2015, with the dot product of states */
static void build_seq2seq(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, read = {"read", n[1]}, written = {"written", n[2]},
                   kinds = {"letter", n[3]}, embed = {"embed", n[4]}, hidden = {"hidden", n[5]},
                   mixed = {"mixed", n[5]};
    const weft_value source = bench_indices(b, WEFT_DIMS(read, batch), kinds.size);
    const weft_value before = bench_indices(b, WEFT_DIMS(written, batch), kinds.size);
    const weft_value targets = bench_indices(b, WEFT_DIMS(written, batch), kinds.size);
    weft_recurrent_states last;
    const weft_recurrent_options reads = {
        .name = "reader", .over = read, .feature = embed, .hidden = hidden};
    const weft_value memory = weft_lstm(embedded(b, "source", source, kinds, embed), &reads, &last);
    const weft_recurrent_options writes = {.name = "writer",
                                           .over = written,
                                           .feature = embed,
                                           .hidden = hidden,
                                           .first_h = last.h,
                                           .first_c = last.c};
    const weft_value h = weft_lstm(embedded(b, "target", before, kinds, embed), &writes, NULL);
    const weft_value seen = weft_attention(h, memory, memory, written, read, hidden, false);
    const weft_value mix = weft_dense(
        weft_add(h, seen),
        &(weft_dense_options){
            .name = "mix", .in = WEFT_DIMS(hidden), .out = WEFT_DIMS(mixed), .activation = "tanh"});
    train(b, mix, mixed, targets, kinds);
    begin_lstm(b, "reader/state", "reader/input", "reader/bias");
    begin_lstm(b, "writer/state", "writer/input", "writer/bias");
    bench_layer(b, "mix", 0.05);
    bench_layer(b, "last", 0.05);
}

/* Causal attention with its gradients: sizes are batch, heads, rows, feature. On ranks that share the rows it is a ring. */
static void build_ring(bench *b)
{
    const int64_t *n = b->row->sizes;
    const weft_dim batch = {"batch", n[0]}, heads = {"heads", n[1]}, seq = {"seq", n[2]},
                   kv = {"kv", n[3]};
    const weft_shape shape = WEFT_DIMS(batch, heads, seq, kv);
    const weft_value q = bench_input(b, shape), k = bench_input(b, shape),
                     v = bench_input(b, shape), dy = bench_input(b, shape);
    const weft_value y = weft_attention(q, k, v, seq, seq, kv, true);
    (void)weft_gradients_seeded(WEFT_VALUES(y), WEFT_VALUES(dy), WEFT_VALUES(q, k, v), b->values,
                                0);
}

const bench_row bench_sequence_rows[] = {
    {"experts", &bench_training, build_experts, {16, 64, 256, 1024, 8, 2}},
    {"seq2seq", &bench_training, build_seq2seq, {32, 32, 32, 65, 128, 256}},
    {"ring_attention", &bench_op, build_ring, {1, 8, 2048, 64}},
    {0},
};
