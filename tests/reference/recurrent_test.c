/* RANKS: 2 3 */
/* recurrent_test: LSTM and GRU, both ways and with sequences of different lengths, and their gradients, against PyTorch in float64, on
 * one rank and with any of their dims over several.
 *
 * The table recurrent.txt comes from torch_recurrent.py, which tells what its lines mean and has the same cases and formulas.
 */
#include "torch_table.h"
#include "weft/autodiff.h"
#include "weft/layers.h"

static const weft_dim time_ = {"time", 7}, batch = {"batch", 3}, feature = {"feature", 4},
                      hidden = {"hidden", 5}, ways = {"ways", 2};
static const weft_initial weights = {WEFT_INITIAL_FORMULA, 0.5, 1.3},
                          biases = {WEFT_INITIAL_FORMULA, 0.25, 0.9};

typedef weft_value layer(weft_value, const weft_recurrent_options *, weft_recurrent_states *);

typedef struct kind {
    layer *build;
    bool is_gru, is_both, is_packed, is_begun;
} kind;

/* Of 7, 5 and 3 elements. */
static weft_value mask_of(weft_graph *graph)
{
    const weft_value row = weft_iota(graph, WEFT_I32, batch),
                     seven = weft_constant(graph, WEFT_I32, WEFT_SCALAR, 7);
    return weft_less(weft_iota(graph, WEFT_I32, time_), weft_sub(seven, weft_add(row, row)));
}

static weft_value half_squares(weft_value x)
{
    return weft_scale(weft_sum(WEFT_SCALAR, weft_square(x)), 0.5);
}

static void give_gradients(weft_oracle_build *b, const kind *k, weft_value loss, weft_value x)
{
    static const char *const names[] = {"net/input", "net/state", "net/bias", "net/new_bias"};
    weft_value of[5] = {x}, gradients[5];
    weft_error error = {0};
    const int n = k->is_gru ? 5 : 4;
    for (int i = 1; i < n; i++)
        of[i] = weft_graph_find(b->graph, names[i - 1], &error);
    weft_gradients(loss, (weft_values){of, n}, gradients, 0);
    for (int i = 0; i < n; i++)
        weft_oracle_output(b, gradients[i]);
}

static void build(weft_oracle_build *b, const kind *k)
{
    const weft_value x = weft_variable(b->graph, "x", WEFT_F64, WEFT_DIMS(time_, batch, feature),
                                       weft_formula(1.0, 0.7));
    const weft_value first = weft_variable(b->graph, "first", WEFT_F64, WEFT_DIMS(batch, hidden),
                                           weft_formula(1.0, 0.3));
    weft_recurrent_options options = {.name = "net",
                                      .over = time_,
                                      .feature = feature,
                                      .hidden = hidden,
                                      .weights = &weights,
                                      .biases = &biases};
    weft_recurrent_states last;
    if (k->is_both) options.direction = ways;
    if (k->is_packed) options.mask = mask_of(b->graph);
    if (k->is_begun) options.first_h = first;
    if (k->is_begun && !k->is_gru) options.first_c = weft_scale(first, 0.5);
    const weft_value y = k->build(x, &options, &last);
    weft_value loss = weft_add(half_squares(y), half_squares(last.h));
    weft_oracle_output(b, y);
    weft_oracle_output(b, last.h);
    if (!k->is_gru) {
        weft_oracle_output(b, last.c);
        loss = weft_add(loss, half_squares(last.c));
    }
    give_gradients(b, k, loss, x);
}

#define CASE_OF(name, ...)                                                                         \
    static void build_##name(weft_oracle_build *b)                                                 \
    {                                                                                              \
        build(b, &(kind){__VA_ARGS__});                                                            \
    }
CASE_OF(lstm, weft_lstm)
CASE_OF(lstm_begun, weft_lstm, .is_begun = true)
CASE_OF(lstm_both, weft_lstm, .is_both = true)
CASE_OF(lstm_packed, weft_lstm, .is_both = true, .is_packed = true)
CASE_OF(gru, weft_gru, .is_gru = true)
CASE_OF(gru_begun, weft_gru, .is_gru = true, .is_begun = true)
CASE_OF(gru_both, weft_gru, .is_gru = true, .is_both = true)
CASE_OF(gru_packed, weft_gru, .is_gru = true, .is_both = true, .is_packed = true)

static const char *const of_lstm[] = {"y", "h", "c", "x", "input", "state", "bias"};
static const char *const of_gru[] = {"y", "h", "x", "input", "state", "bias", "new_bias"};
static const struct {
    weft_oracle_case what;
    const char *const *outputs;
    bool is_both;
} cases[] = {
    {{.name = "lstm", .build = build_lstm}, of_lstm},
    {{.name = "lstm_begun", .build = build_lstm_begun}, of_lstm},
    {{.name = "lstm_both", .build = build_lstm_both}, of_lstm, true},
    {{.name = "lstm_packed", .build = build_lstm_packed}, of_lstm, true},
    {{.name = "gru", .build = build_gru}, of_gru},
    {{.name = "gru_begun", .build = build_gru_begun}, of_gru},
    {{.name = "gru_both", .build = build_gru_both}, of_gru, true},
    {{.name = "gru_packed", .build = build_gru_packed}, of_gru, true},
};
static weft_oracle oracle;

/* Written down trip by trip, and compiled once. */
static const weft_compile_options once = {.unroll = 1}, unrolled = {.unroll = INT64_MAX};

/* A rule for a dim that a case has not is no rule of its layout. */
static void check_on(weft_mesh *mesh, const char *layout, const weft_compile_options *options)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_oracle_case one = cases[i].what;
        weft_oracle_result result = {0};
        weft_error error = {0};
        one.layout = layout, one.options = options;
        if (layout != NULL && strstr(layout, "ways:") && !cases[i].is_both) continue;
        if (CHECK_OK(weft_oracle_run(mesh, &one, NULL, &result, &error), error))
            check_torch_table("recurrent.txt", one.name, cases[i].outputs, &result);
        weft_oracle_free(&result);
    }
}

static void test_one_rank_equals_pytorch(void)
{
    check_on(oracle.alone, NULL, &once);
    check_on(oracle.alone, NULL, &unrolled);
}
static void test_dims_over_ranks_equal_pytorch(void)
{
    static const char *const layouts[] = {"batch:d", "hidden:d",  "ways:d",
                                          "time:d",  "feature:d", "gate:d"};
    for (int m = 0; m < oracle.n_meshes; m++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            check_on(oracle.meshes[m], layouts[i], &once);
}
static void test_two_dims_over_ranks_equal_pytorch(void)
{
    for (int m = 0; m < oracle.n_meshes; m++) {
        if (weft_mesh_n_axes(oracle.meshes[m]) < 2) continue;
        check_on(oracle.meshes[m], "batch:d,hidden:e", &unrolled);
        check_on(oracle.meshes[m], "hidden:d,ways:e", &once);
    }
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:2,e:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_one_rank_equals_pytorch);
        RUN(test_dims_over_ranks_equal_pytorch);
        RUN(test_two_dims_over_ranks_equal_pytorch);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
