/* RANKS: 2 4 */
/* plans_test: whole programs get the plan that a person would write: so many collectives, so many bytes, and the numbers
 * of one rank.
 *
 *     plans_test NAME    prints the collectives of the program of that name as well
 */
#include "oracle.h"
#include "weft/autodiff.h"
#include "weft/research/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan_shown.h"
#include "test.h"

enum { MAX_KINDS = 4 };

/* By hand: so many collectives of a kind over a set of axes, and all their bytes as rank 0 counts them. What is small and
 * ready together is one exchange: here the gradients, at the end, beside the loss. For that an arena may grow by some KiB: so all
 * three gradients of `terms` go together, though the arena is smaller than they are. */
typedef struct by_hand {
    weft_convert_kind kind;
    uint32_t axes;
    int64_t count, bytes;
} by_hand;

typedef struct plan_case {
    const char *name, *mesh, *layout;
    void (*build)(weft_oracle_build *build);
    by_hand hand[MAX_KINDS]; /* count 0: the end */
} plan_case;

static const weft_dim batch = {"batch", 8};

static weft_value real(weft_oracle_build *b, weft_shape shape)
{
    return weft_oracle_input(b, WEFT_F64, shape, -1, 1);
}

/* The loss and its gradients by all of `weights` are the outputs. */
static void train(weft_oracle_build *b, weft_value loss, weft_values weights)
{
    weft_value gradients[WEFT_ORACLE_VALUES];
    weft_gradients(loss, weights, gradients, 0);
    weft_oracle_output(b, loss);
    for (int i = 0; i < weights.n_values; i++)
        weft_oracle_output(b, gradients[i]);
}

/* ---- the programs ---------------------------------------------------------------------------- */

/* loss = 0 + l0 + l1 + ...: sixteen terms of three weights. */
static void build_terms(weft_oracle_build *b)
{
    const weft_dim in = {"in", 5}, out = {"out", 6};
    weft_value x = real(b, WEFT_DIMS(batch, in)), w[3];
    weft_value loss = weft_constant(b->graph, WEFT_F64, WEFT_SCALAR, 0.0);
    for (int i = 0; i < 3; i++)
        w[i] = real(b, WEFT_DIMS(in, out));
    for (int i = 0; i < 16; i++) {
        weft_value y = weft_einsum(WEFT_DIMS(batch, out), weft_shift(x, 0.1 * i), w[i % 3]);
        loss = weft_add(loss, weft_mean(weft_square(y)));
    }
    train(b, loss, WEFT_VALUES(w[0], w[1], w[2]));
}

/* An LSTM, unrolled: every step uses the same weights. */
static void build_lstm(weft_oracle_build *b)
{
    const weft_dim steps = {"steps", 16}, in = {"in", 12}, state = {"state", 16};
    const weft_dim gates = {"gates", 64}, one = {"one", 1};
    weft_value x = real(b, WEFT_DIMS(batch, steps, in));
    weft_value wx = real(b, WEFT_DIMS(in, gates)), wh = real(b, WEFT_DIMS(state, gates));
    weft_value bias = real(b, WEFT_DIMS(gates));
    const weft_shape shape = WEFT_DIMS(batch, state);
    weft_value h = weft_constant(b->graph, WEFT_F64, shape, 0.0), c = h;
    for (int t = 0; t < 16; t++) {
        weft_value xt = weft_reshape(weft_slice(x, steps, t, one), WEFT_DIMS(batch, in));
        weft_value all = weft_add(weft_add(weft_einsum(WEFT_DIMS(batch, gates), xt, wx),
                                           weft_einsum(WEFT_DIMS(batch, gates), h, wh)),
                                  bias);
        weft_value gate[4];
        for (int i = 0; i < 4; i++)
            gate[i] = weft_tanh(weft_slice(all, gates, 16 * i, state));
        c = weft_add(weft_mul(gate[0], c), weft_mul(gate[1], gate[2]));
        h = weft_mul(gate[3], weft_tanh(c));
    }
    train(b, weft_mean(weft_square(h)), WEFT_VALUES(wx, wh, bias));
}

/* A convolution of 3 x 3 as nine products of slices, twice. */
static weft_value convolve(weft_value x, weft_value w, weft_dim in, weft_dim out, int size)
{
    const weft_dim high = {"high", size}, wide = {"wide", size}, rows = {"rows", 3};
    const weft_dim columns = {"columns", 3}, i1 = {"i1", 1}, j1 = {"j1", 1};
    const weft_dim h2 = {"high", size - 2}, w2 = {"wide", size - 2};
    weft_value y = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            weft_value tap = weft_slice(weft_slice(w, rows, i, i1), columns, j, j1);
            weft_value part = weft_slice(weft_slice(x, high, i, h2), wide, j, w2);
            weft_value term = weft_einsum(WEFT_DIMS(batch, h2, w2, out), part,
                                          weft_reshape(tap, WEFT_DIMS(in, out)));
            y = y.id ? weft_add(y, term) : term;
        }
    return y;
}

static void build_convolution(weft_oracle_build *b)
{
    const weft_dim in = {"in", 2}, mid = {"mid", 4}, out = {"out", 4}, rows = {"rows", 3},
                   columns = {"columns", 3};
    weft_value x = real(b, WEFT_DIMS(batch, ((weft_dim){"high", 8}), ((weft_dim){"wide", 8}), in));
    weft_value w1 = real(b, WEFT_DIMS(rows, columns, in, mid));
    weft_value w2 = real(b, WEFT_DIMS(rows, columns, mid, out));
    weft_value y = convolve(weft_relu(convolve(x, w1, in, mid, 8)), w2, mid, out, 6);
    train(b, weft_mean(weft_square(y)), WEFT_VALUES(w1, w2));
}

/* A mixture of experts with a place for `slot` tokens of each group and expert. */
static void build_experts(weft_oracle_build *b)
{
    const weft_dim token = {"token", 12}, experts = {"experts", 8}, slot = {"slot", 3},
                   embed = {"embed", 10}, hidden = {"hidden", 20};
    weft_value x = real(b, WEFT_DIMS(batch, token, embed));
    weft_value route = real(b, WEFT_DIMS(batch, token, experts, slot));
    weft_value before = real(b, WEFT_DIMS(embed));
    weft_value up = real(b, WEFT_DIMS(experts, embed, hidden));
    weft_value down = real(b, WEFT_DIMS(experts, hidden, embed));
    weft_value own = weft_mul(x, before);
    weft_value sent = weft_einsum(WEFT_DIMS(batch, experts, slot, embed), own, route);
    weft_value h = weft_relu(weft_einsum(WEFT_DIMS(batch, experts, slot, hidden), sent, up));
    weft_value done = weft_einsum(WEFT_DIMS(batch, experts, slot, embed), h, down);
    weft_value y = weft_einsum(WEFT_DIMS(batch, token, embed), done, route);
    train(b, weft_mean(weft_square(weft_sub(y, x))), WEFT_VALUES(before, up, down));
}

/* Two axes over the batch: what is partial over both. */
static void build_perceptron(weft_oracle_build *b)
{
    const weft_dim batch = {"batch", 96}, in = {"in", 6}, hidden = {"hidden", 10}, out = {"out", 4};
    weft_value x = real(b, WEFT_DIMS(batch, in)), w1 = real(b, WEFT_DIMS(in, hidden));
    weft_value w2 = real(b, WEFT_DIMS(hidden, out));
    weft_value h = weft_tanh(weft_einsum(WEFT_DIMS(batch, hidden), x, w1));
    weft_value y = weft_einsum(WEFT_DIMS(batch, out), h, w2);
    train(b, weft_mean(weft_square(y)), WEFT_VALUES(w1, w2));
}

/* The ids of a batch that is split over the axis of the words. */
static void build_one_hot(weft_oracle_build *b)
{
    const weft_dim words = {"words", 12}, embed = {"embed", 6};
    weft_value ids = weft_oracle_input(b, WEFT_I32, WEFT_DIMS(batch), 0, 12);
    weft_value scores = real(b, WEFT_DIMS(batch, words));
    weft_value hot = weft_one_hot(ids, words, WEFT_F64);
    (void)embed;
    weft_oracle_output(b, weft_sum(WEFT_DIMS(batch), weft_mul(hot, scores)));
    weft_oracle_output(b, hot);
}

/* ---- windows: what slices and joins along a split dim need of others ---------------------------- */

static const weft_dim few = {"row", 10}, rows12 = {"row", 12}, wide = {"wide", 5};

/* The first rows: every rank has those of its result. */
static void build_first_rows(weft_oracle_build *b)
{
    weft_oracle_output(b, weft_slice(real(b, WEFT_DIMS(rows12, wide)), rows12, 0, few));
}

/* Two rows further on: rank 0 sends the rows that fall into the next block. */
static void build_put_behind(weft_oracle_build *b)
{
    const weft_dim two = {"row", 2};
    weft_value zeros = weft_constant(b->graph, WEFT_F64, WEFT_DIMS(two, wide), 0.0);
    weft_oracle_output(b, weft_concat(zeros, real(b, WEFT_DIMS(few, wide)), two, few, rows12));
}

/* Six rows and six: of the second, rank 0's fall into rank 2's block. */
static void build_join_rows(weft_oracle_build *b)
{
    const weft_dim six = {"row", 6};
    weft_value x = real(b, WEFT_DIMS(six, wide)), y = real(b, WEFT_DIMS(six, wide));
    weft_oracle_output(b, weft_concat(x, y, six, six, rows12));
}

/* Differences of neighbours: forward the next row comes from the right, backward its gradient from the left. */
static void build_differences(weft_oracle_build *b)
{
    const weft_dim less = {"row", 11};
    weft_value x = real(b, WEFT_DIMS(rows12, wide));
    weft_value d = weft_sub(weft_slice(x, rows12, 1, less), weft_slice(x, rows12, 0, less));
    train(b, weft_mean(weft_square(d)), WEFT_VALUES(x));
}

/* Every second row: of twelve in blocks of 3, rank 1 asks for rows 4, which it has, and 6. */
static void build_every_second(weft_oracle_build *b)
{
    const weft_dim six = {"row", 6};
    weft_oracle_output(b, weft_slice_step(real(b, WEFT_DIMS(rows12, wide)), rows12, 0, 2, six));
}

/* And back: zeros between them. Rank 0's two rows are all that its three need. */
static void build_zeros_between(weft_oracle_build *b)
{
    const weft_dim six = {"row", 6};
    weft_value x = real(b, WEFT_DIMS(six, wide));
    weft_oracle_output(b, weft_reindex(x, six, rows12, 1, 0, 2));
}

/* Two rows down: the next rank gets two of every three. */
static void build_shifted(weft_oracle_build *b)
{
    weft_oracle_output(b, weft_shift_along(real(b, WEFT_DIMS(rows12, wide)), rows12, 2));
}

/* The other way round: all of it goes elsewhere. */
static void build_flipped(weft_oracle_build *b)
{
    weft_oracle_output(b, weft_flip(real(b, WEFT_DIMS(rows12, wide)), rows12));
}

/* Two rows down, the last two to the front: those come first, one each to ranks 0 and 1; then the rest moves as above. */
static void build_rolled(weft_oracle_build *b)
{
    weft_oracle_output(b, weft_roll(real(b, WEFT_DIMS(rows12, wide)), rows12, 2));
}

/* Rows of an image over the ranks: a filter of three rows needs one row of each neighbour. Forward rank 0 sends its last row to
 * rank 1; backward the same row of the gradient of what it made, and a gradient of the filter that is added up over all. */
static void build_filtered(weft_oracle_build *b, int64_t stride)
{
    const weft_dim batch = {"batch", 2}, column = {"column", 6}, channel = {"channel", 3},
                   feature = {"feature", 4}, t = {"tap_row", 3}, u = {"tap_column", 3};
    weft_value x = real(b, WEFT_DIMS(batch, rows12, column, channel)),
               w = real(b, WEFT_DIMS(t, u, channel, feature));
    const weft_spatial columns = weft_spatial_same(column, u, "column", 1, 1),
                       rows = {rows12, t, {"row", 12 / stride}, .stride = stride, .before = 1};
    weft_value y = weft_conv(WEFT_DIMS(batch, rows.out, columns.out, feature), x, w,
                             WEFT_SPATIAL(rows, columns));
    train(b, weft_mean(weft_square(y)), WEFT_VALUES(x, w));
}
static void build_image(weft_oracle_build *b)
{
    build_filtered(b, 1);
}
/* Of six rows in blocks of 2 those of rank 0 need row 3 of x; row 3 of x's gradient needs rank 0's second. */
static void build_image_by_two(weft_oracle_build *b)
{
    build_filtered(b, 2);
}

/* A sum over ranks is finished once, into the rows of each, and then seen through two windows, whose
 * rows travel together. */
static void build_seen_twice(weft_oracle_build *b)
{
    const weft_dim inner = {"inner", 8};
    weft_value y = weft_einsum(WEFT_DIMS(rows12, wide), real(b, WEFT_DIMS(rows12, inner)),
                               real(b, WEFT_DIMS(inner, wide)));
    weft_value one = weft_exp(weft_shift_along(y, rows12, 1)),
               two = weft_exp(weft_shift_along(y, rows12, 2));
    weft_oracle_output(b, weft_mul(one, two));
}

/* 96 rows are 48 blocks of two: the sums of blocks are gathered, and nothing else. */
static void build_cumulated(weft_oracle_build *b)
{
    const weft_dim rows96 = {"row", 96};
    weft_oracle_output(b, weft_cumsum(real(b, WEFT_DIMS(rows96, wide)), rows96, false, false));
}

/* Windows of two rows, two apart: each rank has what it needs of 12, but the middle ones, as for every second row. */
static void build_pooled(weft_oracle_build *b)
{
    const weft_dim two = {"tap", 2}, six = {"row", 6};
    const weft_spatial s = weft_spatial_valid(rows12, two, six.name, 2, 1);
    weft_oracle_output(b, weft_max_pool(real(b, WEFT_DIMS(rows12, wide)), WEFT_SPATIAL(s)));
}

static const plan_case cases[] = {
    {"cumulated", "d:4", "row:d?", build_cumulated, {{WEFT_ALL_GATHER, 1, 1, 8 * 48 * 5}}},
    {"pooled", "d:4", "row:d?", build_pooled, {{WEFT_BORDER, 1, 1, 0}}},
    {"seen_twice",
     "d:4",
     "inner:d?,row:d?",
     build_seen_twice,
     {{WEFT_REDUCE_SCATTER, 1, 1, 8 * 12 * 5}, {WEFT_BORDER, 1, 1, 8 * (1 + 2) * 5}}},
    {"image",
     "d:4",
     "row:d?",
     build_image,
     {{WEFT_BORDER, 1, 3, 8 * 2 * 6 * (3 + 4 + 3)},
      {WEFT_ALL_REDUCE, 1, 2, 8 * (1 + 3 * 3 * 3 * 4)}}},
    {"image_by_two",
     "d:4",
     "row:d?",
     build_image_by_two,
     {{WEFT_BORDER, 1, 3, 8 * 2 * 6 * 4}, {WEFT_ALL_REDUCE, 1, 2, 8 * (1 + 3 * 3 * 3 * 4)}}},
    {"every_second", "d:4", "row:d?", build_every_second, {{WEFT_BORDER, 1, 1, 0}}},
    {"zeros_between", "d:4", "row:d?", build_zeros_between, {{WEFT_BORDER, 1, 1, 0}}},
    {"shifted", "d:4", "row:d?", build_shifted, {{WEFT_BORDER, 1, 1, 8 * 2 * 5}}},
    {"flipped", "d:4", "row:d?", build_flipped, {{WEFT_BORDER, 1, 1, 8 * 3 * 5}}},
    {"rolled", "d:4", "row:d?", build_rolled, {{WEFT_BORDER, 1, 2, 8 * 2 * 5}}},
    {"first_rows", "d:4", "row:d?", build_first_rows, {{0}}},
    {"put_behind", "d:4", "row:d?", build_put_behind, {{WEFT_BORDER, 1, 1, 8 * 2 * 5}}},
    {"join_rows", "d:4", "row:d?", build_join_rows, {{WEFT_BORDER, 1, 1, 8 * 2 * 5}}},
    {"differences",
     "d:4",
     "row:d?",
     build_differences,
     {{WEFT_BORDER, 1, 2, 8 * 5}, {WEFT_ALL_REDUCE, 1, 1, 8}}},
    {"terms", "d:4", "batch:d?", build_terms, {{WEFT_ALL_REDUCE, 1, 2, 8 * (1 + 3 * 5 * 6)}}},
    {"lstm",
     "d:4",
     "batch:d?",
     build_lstm,
     {{WEFT_ALL_REDUCE, 1, 2, 8 * (1 + (12 + 16 + 1) * 64)}}},
    {"convolution",
     "d:4",
     "batch:d?",
     build_convolution,
     {{WEFT_ALL_REDUCE, 1, 2, 8 * (1 + 9 * (2 * 4 + 4 * 4))}}},
    {"experts",
     "d:4",
     "batch:d?,experts:d?",
     build_experts,
     {{WEFT_ALL_TO_ALL, 1, 4, 4 * 8 * (8 * 8 * 3 * 10) / 16 * 3}, {WEFT_ALL_REDUCE, 1, 2, 8 * 11}}},
    {"perceptron",
     "a:2,b:2",
     "batch:a?+b?",
     build_perceptron,
     {{WEFT_ALL_REDUCE, 3, 2, 8 * (1 + 6 * 10 + 10 * 4)}}},
    {"one_hot", "d:4", "batch:d?,words:d?", build_one_hot, {{0}}},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* ---- the plan -------------------------------------------------------------------------------- */

static const plan_case *shown;

static void check_traffic(const plan_case *c, const weft_program *program)
{
    enum { room = 32 };
    weft_traffic traffic[room];
    const int n = weft_plan_traffic(program, 0, traffic, room);
    char text[300];
    int n_found = 0;
    for (int k = 0; k < MAX_KINDS && c->hand[k].count; k++) {
        const by_hand *hand = &c->hand[k];
        int64_t count = 0, bytes = 0;
        for (int i = 0; i < n; i++)
            if (traffic[i].kind == hand->kind && traffic[i].axes == hand->axes) {
                count = traffic[i].count, bytes = traffic[i].bytes;
                n_found++;
            }
        snprintf(text, sizeof text, "%s: %lld %s of %lld bytes, by hand %lld of %lld", c->name,
                 (long long)count, weft_convert_name(hand->kind), (long long)bytes,
                 (long long)hand->count, (long long)hand->bytes);
        weft_test_check(count == hand->count && bytes == hand->bytes, __FILE__, __LINE__, text);
    }
    snprintf(text, sizeof text, "%s: %d kinds of traffic, by hand %d", c->name, n, n_found);
    weft_test_check(n == n_found, __FILE__, __LINE__, text);
}

static void check_plan(const plan_case *c)
{
    weft_oracle_build build = {.graph = weft_graph_create(77)};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    weft_error error = {0};
    c->build(&build);
    const weft_values values = {build.outputs, build.n_outputs};
    if (CHECK_OK(weft_mesh_plan(c->mesh, &mesh, &error), error) &&
        CHECK_OK(weft_layout_create(c->layout, &layout, &error), error) &&
        CHECK_OK(weft_compile(mesh, layout, values, NULL, &program, &error), error)) {
        if (shown == c) show_plan(program);
        check_traffic(c, program);
    }
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&build.graph);
    weft_mesh_destroy(&mesh);
}

static void test_plans_are_those_by_hand(void)
{
    for (int i = 0; i < N_CASES; i++)
        check_plan(&cases[i]);
}

/* ---- the numbers ----------------------------------------------------------------------------- */

static weft_oracle oracle;

static void check_numbers(const plan_case *c, weft_mesh *mesh)
{
    weft_oracle_check(&oracle, mesh,
                      &(weft_oracle_case){.name = c->name, .build = c->build, .layout = c->layout},
                      NULL);
}

static void test_numbers_are_those_of_one_rank(void)
{
    for (int i = 0; i < N_CASES; i++)
        for (int m = 0; m < oracle.n_meshes; m++)
            if (weft_mesh_find_axis(oracle.meshes[m], cases[i].mesh[0] == 'd' ? "d" : "a") >= 0)
                check_numbers(&cases[i], oracle.meshes[m]);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:4", "a:2,b:2", "a:2,b:1"};
    weft_error error = {0};
    for (int i = 0; i < N_CASES && argc == 2; i++)
        if (strcmp(argv[1], cases[i].name) == 0) shown = &cases[i];
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 5, &error), error)) {
        RUN(test_plans_are_those_by_hand);
        RUN(test_numbers_are_those_of_one_rank);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
