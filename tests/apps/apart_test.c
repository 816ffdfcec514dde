/* apart_test: which programs have rows that are apart, told from their plans. For those another row's numbers change no bit of a row.
 * With --write FOLDER it saves programs for serve_program_test.py.
 */
#include "../../apps/weft/serve/apart.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "weft/collectives.h"
#include "weft/layers.h"
#include "weft/optim.h"
#include "weft/program.h"
#include "weft/saved.h"

enum { ROWS = 4, WIDE = 6, LONG = 5, WORDS = 11 };
static const weft_dim batch = {"batch", ROWS}, feature = {"feature", WIDE}, hidden = {"hidden", 8},
                      seq = {"seq", LONG}, word = {"word", WORDS}, kv = {"kv", 8};

/* ---- nets: of x [batch, feature] ------------------------------------------------------------------ */

static weft_value dense(weft_value x)
{
    return weft_dense(x, &(weft_dense_options){
                             .name = "first", .in = WEFT_DIMS(feature), .out = WEFT_DIMS(hidden)});
}

static weft_value mlp(weft_value x)
{
    return weft_softmax(weft_relu(dense(x)), hidden);
}

static weft_value normed(weft_value x)
{
    return weft_norm(dense(x), &(weft_norm_options){.name = "norm", .feature = hidden});
}

static weft_value sum_of_row(weft_value x)
{
    return weft_sum(WEFT_DIMS(batch), x);
}

static weft_value scaled(weft_value x)
{
    return weft_mul(
        x, weft_variable(x.graph, "gain", WEFT_F32, WEFT_DIMS(feature), weft_normal(0, 1)));
}

static weft_value less_mean(weft_value x)
{
    return weft_sub(x, weft_mean_over(WEFT_DIMS(feature), x));
}

static weft_value softmax_down(weft_value x)
{
    return weft_softmax(x, batch);
}

static weft_value summed_up(weft_value x)
{
    return weft_cumsum(x, batch, false, false);
}

static weft_value by_place(weft_value x)
{
    return weft_add(x, weft_cast(weft_iota(x.graph, WEFT_I32, batch), WEFT_F32));
}

static weft_value own_weights(weft_value x)
{
    return weft_mul(
        x, weft_variable(x.graph, "rows", WEFT_F32, WEFT_DIMS(batch, feature), weft_normal(0, 1)));
}

static weft_value noisy(weft_value x)
{
    return weft_add(x, weft_random_normal(x.graph, WEFT_F32, WEFT_DIMS(batch, feature), 0, 1));
}

static weft_value crossed(weft_value x)
{
    const weft_dim other = {"other", ROWS};
    return weft_einsum(WEFT_DIMS(batch, other), x, weft_rename(x, batch, other));
}

static weft_value of_all(weft_value x)
{
    return weft_mean(x);
}

static weft_value neighbours(weft_value x)
{
    const weft_dim half = {"half", ROWS / 2}, two = {"two", 2};
    const weft_value y = weft_reshape(x, WEFT_DIMS(half, two, feature));
    const weft_value z = weft_mul(y, weft_sum(WEFT_DIMS(half, feature), y));
    return weft_reshape(z, WEFT_DIMS(batch, feature));
}

static const struct {
    const char *name;
    weft_value (*build)(weft_value x);
    bool are_apart;
} nets[] = {
    {"mlp", mlp, true},
    {"normed", normed, true},
    {"sum_of_row", sum_of_row, true},
    {"scaled", scaled, true},
    {"less_mean", less_mean, false},
    {"softmax_down", softmax_down, false},
    {"summed_up", summed_up, false},
    {"by_place", by_place, false},
    {"own_weights", own_weights, false},
    {"noisy", noisy, false},
    {"crossed", crossed, false},
    {"of_all", of_all, false},
    {"neighbours", neighbours, false},
};
enum { N_NETS = sizeof nets / sizeof *nets };

/* ---- of ids [batch, seq] -------------------------------------------------------------------------- */

/* A row looks at its own row alone, by a causal mask, which counts along seq. */
static weft_value encoder(weft_value ids, bool is_checked)
{
    weft_graph *graph = ids.graph;
    const weft_value table =
        weft_variable(graph, "words", WEFT_F32, WEFT_DIMS(word, kv), weft_normal(0, 1));
    const weft_value x = weft_gather(table, is_checked ? weft_checked_ids(ids, word) : ids, word);
    const weft_value y = weft_attention(x, x, x, seq, seq, kv, true);
    return weft_mean_over(WEFT_DIMS(batch, kv), y);
}

/* ---- the tests ------------------------------------------------------------------------------------ */

static weft_value net_of(int i, weft_graph **graph, weft_value *x)
{
    *graph = weft_graph_create(3);
    *x = weft_input(*graph, "x", WEFT_F32, WEFT_DIMS(batch, feature));
    return weft_name(nets[i].build(*x), "y");
}

static void test_rows_are_apart_where_no_plan_needs_another_rank(void)
{
    for (int i = 0; i < N_NETS; i++) {
        weft_graph *graph;
        weft_value x, y = net_of(i, &graph, &x);
        char said[100];
        snprintf(said, sizeof said, "%s: rows are %s", nets[i].name,
                 nets[i].are_apart ? "apart" : "mixed");
        weft_test_check(rows_are_apart(WEFT_VALUES(y), ROWS) == nets[i].are_apart, __FILE__,
                        __LINE__, said);
        CHECK(!rows_are_apart(WEFT_VALUES(y), 1));
        (void)weft_graph_destroy(&graph);
    }
    for (int is_checked = 0; is_checked < 2; is_checked++) {
        weft_graph *graph = weft_graph_create(3);
        const weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch, seq));
        const weft_value y = encoder(ids, is_checked);
        /* what is checked is checked of all rows at once */
        CHECK(rows_are_apart(WEFT_VALUES(y), ROWS) == !is_checked);
        (void)weft_graph_destroy(&graph);
    }
}

static void test_another_rows_numbers_change_no_bit(void)
{
    const weft_world world = {.n_processes = 1, .n_host_processes = 1, .launcher = "alone"};
    weft_mesh *mesh = NULL;
    weft_layout *layout = NULL;
    weft_error error = {.rank = -1};
    CHECK_OK(weft_mesh_create(&world, "data:1", &mesh, &error), error);
    CHECK_OK(weft_layout_create("batch:data", &layout, &error), error);
    for (int i = 0; i < N_NETS; i++) {
        weft_graph *graph;
        weft_program *program = NULL;
        float in[ROWS * WIDE], before[ROWS * WIDE * 2], after[ROWS * WIDE * 2];
        weft_value x, y = net_of(i, &graph, &x);
        const int64_t bytes = weft_shape_count(weft_shape_of(y)) * (int64_t)sizeof(float);
        const size_t row = (size_t)bytes / ROWS;
        CHECK_OK(weft_compile(mesh, layout, WEFT_VALUES(y), NULL, &program, &error), error);
        for (int k = 0; nets[i].are_apart && k < ROWS * WIDE; k++)
            in[k] = (float)(k * 37 % 23) / 7 - 1;
        for (int turn = 0; nets[i].are_apart && turn < 2; turn++) {
            CHECK_OK(weft_write(program, x, WEFT_F32, in, sizeof in, &error), error);
            CHECK_OK(weft_run(program, &error), error);
            CHECK_OK(weft_read(program, y, WEFT_F32, turn ? after : before, bytes, &error), error);
            for (int k = 0; k < ROWS * WIDE; k++)
                if (k / WIDE != 2) in[k] = (float)k * 1e6f;
        }
        if (nets[i].are_apart)
            CHECK(memcmp((char *)before + 2 * row, (char *)after + 2 * row, row) == 0 &&
                  memcmp(before, after, row) != 0);
        (void)weft_program_destroy(&program);
        (void)weft_graph_destroy(&graph);
    }
    weft_layout_destroy(&layout);
    (void)weft_mesh_destroy(&mesh);
}

/* ---- programs for others to serve ----------------------------------------------------------------- */

static void save(weft_graph *graph, const char *folder, const char *name, const char *layout,
                 weft_values outputs)
{
    char path[4096];
    weft_error error = {.rank = -1};
    const weft_saving what = {.outputs = outputs, .layout = layout};
    snprintf(path, sizeof path, "%s/%s.weft", folder, name);
    CHECK_OK(weft_graph_save(graph, path, &what, &error), error);
    (void)weft_graph_destroy(&graph);
}

static void save_all(const char *folder)
{
    for (int i = 0; i < N_NETS; i++) {
        weft_graph *graph;
        weft_value x, y = net_of(i, &graph, &x);
        save(graph, folder, nets[i].name, i == 0 ? "batch:data?,hidden:model?" : "batch:data?",
             WEFT_VALUES(y));
    }
    for (int is_checked = 0; is_checked < 2; is_checked++) {
        weft_graph *graph = weft_graph_create(3);
        const weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch, seq));
        const weft_value y = weft_name(encoder(ids, is_checked), "vectors");
        save(graph, folder, is_checked ? "checked" : "encoder", "batch:data?", WEFT_VALUES(y));
    }
    weft_graph *training;
    weft_value seen, y_seen = net_of(0, &training, &seen);
    save(training, folder, "training", "batch:data?",
         WEFT_VALUES(y_seen, weft_sgd(weft_mean(y_seen), &(weft_optimizer_options){.rate = 0.1})));
    weft_graph *graph = weft_graph_create(3);
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, feature));
    const weft_value by = weft_input(graph, "by", WEFT_F64, WEFT_SCALAR);
    const weft_value count = weft_input(graph, "count", WEFT_I64, WEFT_DIMS(word));
    const weft_value half = weft_input(graph, "half", WEFT_F16, WEFT_DIMS(word));
    const weft_value y = weft_mul(x, weft_cast(by, WEFT_F32));
    save(graph, folder, "kinds", "batch:data?",
         WEFT_VALUES(weft_name(y, "times"), weft_name(weft_add(count, count), "twice"),
                     weft_scale(half, 2), weft_name(weft_log(weft_sum(WEFT_SCALAR, x)), "log")));
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "--write") == 0) {
        save_all(arguments[2]);
    } else {
        RUN(test_rows_are_apart_where_no_plan_needs_another_rank);
        RUN(test_another_rows_numbers_change_no_bit);
    }
    return weft_test_report();
}
