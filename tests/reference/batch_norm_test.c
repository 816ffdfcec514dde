/* RANKS: 2 3 */
/* batch_norm_test: two runs of a batch norm that trains, and one by its averages, with their gradients, against PyTorch in float64:
 * on one rank, and with the batch, the columns or the channels over several. And what is told wrongly.
 *
 * The table batch_norm.txt comes from torch_functions.py, which has the same formulas.
 */
#include "oracle.h"
#include "weft/autodiff.h"
#include "weft/layers.h"

#include <stdlib.h>

#include "test.h"
#include "torch_table.h"

static const weft_dim batch = {"batch", 4}, channel = {"channel", 3}, column = {"column", 5};
enum { N_GRADIENTS = 3, N_TRAINED = 6 };
static weft_oracle oracle;

typedef struct net {
    weft_graph *graph;
    weft_value x, update, trained[N_TRAINED], fixed; /* y, gradients of x, gain, bias; averages */
} net;

/* x, of the second run 2 x + 1, as it is or taken as fixed. */
static weft_value input(weft_graph *graph)
{
    const weft_value x = weft_variable(graph, "x", WEFT_F64, WEFT_DIMS(batch, channel, column),
                                       weft_formula(1.0, 0.7));
    return x;
}

static net build(void)
{
    net n = {.graph = weft_graph_create(1)};
    weft_batch_norm_options options = {.name = "norm", .channel = channel};
    n.x = input(n.graph);
    const weft_value run = weft_run_number(n.graph, WEFT_F64);
    const weft_value scaled = weft_add(weft_mul(n.x, run), weft_shift(run, -1.0));
    const weft_value y = weft_batch_norm(scaled, &options, &n.update);
    const weft_value weights = weft_variable(n.graph, "weights", WEFT_F64,
                                             WEFT_DIMS(batch, channel, column), weft_formula(1, 1));
    const weft_value loss =
        weft_scale(weft_sum(WEFT_SCALAR, weft_mul(weft_square(y), weights)), 0.5);
    weft_error error = {0};
    const weft_value of[] = {n.x, weft_graph_find(n.graph, "norm/gain", &error),
                             weft_graph_find(n.graph, "norm/bias", &error)};
    weft_value gradients[N_GRADIENTS];
    weft_gradients(loss, (weft_values){of, N_GRADIENTS}, gradients, 0);
    n.trained[0] = y;
    for (int i = 0; i < N_GRADIENTS; i++)
        n.trained[1 + i] = gradients[i];
    n.trained[4] = weft_graph_find(n.graph, "norm/mean", &error);
    n.trained[5] = weft_graph_find(n.graph, "norm/variance", &error);
    options.is_fixed = true;
    n.fixed = weft_batch_norm(n.x, &options, NULL);
    return n;
}

/* Values of a program beside the lines of the table. */
static void check_values(weft_program *program, const char *name, const weft_value *values,
                         int count)
{
    static const char *const outputs[] = {"y", "x", "gain", "bias", "mean", "variance"};
    weft_oracle_result result = {.n_outputs = count};
    weft_error error = {0};
    for (int i = 0; i < count; i++) {
        result.dtype[i] = WEFT_F64;
        result.count[i] = weft_shape_count(weft_shape_of(values[i]));
        if (!CHECK_OK(weft_oracle_read(program, values[i], &result.data[i], &error), error)) return;
    }
    check_torch_table("batch_norm.txt", name, outputs, &result);
    for (int i = 0; i < count; i++)
        free(result.data[i]);
}

static weft_status begin(weft_program *program, const net *n, weft_error *error)
{
    double gain[3], bias[3];
    for (int i = 0; i < 3; i++)
        gain[i] = 1.5 + cos(1.3 * i), bias[i] = cos(0.9 * i);
    WEFT_TRY(weft_write(program, weft_graph_find(n->graph, "norm/gain", error), WEFT_F64, gain,
                        sizeof gain, error));
    return weft_write(program, weft_graph_find(n->graph, "norm/bias", error), WEFT_F64, bias,
                      sizeof bias, error);
}

static weft_status train(weft_mesh *mesh, const weft_layout *layout, const net *n,
                         weft_error *error)
{
    weft_program *program = NULL, *fixed = NULL;
    weft_value wanted[N_TRAINED + 1];
    memcpy(wanted, n->trained, sizeof n->trained);
    wanted[N_TRAINED] = n->update;
    weft_status status =
        weft_compile(mesh, layout, (weft_values){wanted, N_TRAINED + 1}, NULL, &program, error);
    if (status == WEFT_OK) status = begin(program, n, error);
    for (int step = 0; step < 2 && status == WEFT_OK; step++) {
        status = weft_run(program, error);
        if (status == WEFT_OK)
            check_values(program, step ? "second" : "first", n->trained, N_TRAINED);
    }
    const weft_compile_options options = {.share = program};
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(n->fixed), &options, &fixed, error);
    if (status == WEFT_OK) status = weft_run(fixed, error);
    if (status == WEFT_OK) check_values(fixed, "fixed", &n->fixed, 1);
    (void)!weft_program_destroy(&fixed);
    (void)!weft_program_destroy(&program);
    return status;
}

static void check_on(weft_mesh *mesh, const char *text)
{
    weft_error error = {0};
    weft_layout *layout = NULL;
    net n = build();
    if (CHECK_OK(weft_layout_create(text, &layout, &error), error))
        CHECK_OK(train(mesh, layout, &n, &error), error);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&n.graph);
}

static void test_every_split_equals_pytorch(void)
{
    static const char *const layouts[] = {"", "batch:d", "column:d", "channel:d"};
    check_on(oracle.alone, "");
    for (int m = 0; m < oracle.n_meshes; m++)
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            check_on(oracle.meshes[m], layouts[i]);
}

/* ---- what is told wrongly ------------------------------------------------------------------------ */

static void check_refused(weft_shape shape, weft_dtype dtype,
                          const weft_batch_norm_options *options, const char *sentence)
{
    weft_graph *graph = weft_graph_create(1);
    const weft_value x = weft_input(graph, "x", dtype, shape);
    const weft_dim wide = {"channel", 7};
    (void)weft_batch_norm(weft_input(graph, "other", WEFT_F64, WEFT_DIMS(batch, wide)),
                          &(weft_batch_norm_options){.name = "taken", .channel = wide}, NULL);
    CHECK_EQ_INT(weft_batch_norm(x, options, NULL).id, 0);
    CHECK_TEXT(weft_graph_error(graph)->message, sentence);
    weft_graph_destroy(&graph);
}

static void test_what_is_told_wrongly_is_one_sentence(void)
{
    const weft_shape good = WEFT_DIMS(batch, channel);
    const weft_dim other = {"channel", 4};
#define O(...) &(weft_batch_norm_options){__VA_ARGS__}
    check_refused(good, WEFT_F64, NULL, "options are NULL; they say name and channel");
    check_refused(good, WEFT_F64, O(.channel = channel), "name and channel are to be said");
    check_refused(good, WEFT_F64, O(.name = "a", .channel = other),
                  "channels are channel:4, but x is [batch:4, channel:3]");
    check_refused(good, WEFT_I32, O(.name = "a", .channel = channel), "x is i32; it is a float");
    check_refused(good, WEFT_F64, O(.name = "a", .channel = channel, .momentum = 2.0),
                  "momentum is 2; it is above 0, and at most 1");
    check_refused(WEFT_DIMS(channel), WEFT_F64, O(.name = "a", .channel = channel),
                  "x is [channel:3], one element a channel, which has no variance");
    check_refused(good, WEFT_F64, O(.name = "taken", .channel = channel),
                  "taken/gain is f64[channel:7], and here it would be f64[channel:3]");
#undef O
}

int main(void)
{
    static const char *const meshes[] = {"d:2", "d:3", "d:4"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 3, &error), error)) {
        RUN(test_every_split_equals_pytorch);
        if (oracle.world.n_processes == 1) RUN(test_what_is_told_wrongly_is_one_sentence);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
