/* fuse_test: a program that fuse and bucket have worked on gives the same bits as one without them, in memory that is
 * full of NaN before each run. It takes random graphs with their gradients under random layouts, and gpt's training
 * under every layout of its own.
 *
 * Equal bits, not nearly equal ones: every number goes through the same operations in the same order, alone and joined.
 *
 *     fuse_test [SEED]    only the random graph of that seed, as a failure prints it
 */
#define main random_main
#include "oracle/random_test.c"
#undef main

#include "apps/gpt/model.h"
#include "gpt_layouts.h"
#include "passes.h"
#include "weft/optim.h"

/* ---- random graphs --------------------------------------------------------------------------- */

static bool same_results(const weft_oracle_result *a, const weft_oracle_result *b, char *text,
                         size_t bytes)
{
    char where[200];
    for (int k = 0; k < a->n_outputs; k++) {
        if (same_bits(a->data[k], b->data[k], a->count[k], where, sizeof where)) continue;
        snprintf(text, bytes, "output %d of %d, %s", k, a->n_outputs, where);
        return false;
    }
    return a->n_outputs == b->n_outputs;
}

/* In all ways, up to the first that is another. */
static void check_ways(weft_mesh *mesh, const weft_oracle_case *what,
                       const weft_oracle_placing *placing, const char *name)
{
    weft_oracle_result results[N_WAYS] = {{0}};
    for (int w = 0; w < N_WAYS; w++) {
        char found[300] = "", text[700];
        weft_error error = {0};
        now = &ways[w];
        const bool is_same = weft_oracle_run(mesh, what, placing, &results[w], &error) == WEFT_OK &&
                             same_results(&results[0], &results[w], found, sizeof found);
        snprintf(text, sizeof text, "%s %s on %s, layout \"%s\": %s%s", name, now->name,
                 weft_mesh_text(mesh), what->layout ? what->layout : "", found, error.message);
        if (!weft_test_check(is_same, __FILE__, __LINE__, text)) break;
    }
    for (int w = 0; w < N_WAYS; w++)
        weft_oracle_free(&results[w]);
}

static void check_fused(uint64_t seed)
{
    dice d = {seed ^ 0x5bd1e995u};
    char name[40], layout[160], texts[2 * WEFT_ORACLE_VALUES][WEFT_ORACLE_TEXT];
    weft_mesh *mesh = roll(&d, 4) ? oracle.meshes[roll(&d, oracle.n_meshes)] : oracle.alone;
    weft_oracle_placing placing;
    weft_oracle_build shapes = {.graph = weft_graph_create(77), .argument = &seed};
    build_random(&shapes);
    random_layout(&d, mesh, &shapes, layout, sizeof layout);
    random_placing(&d, mesh, &shapes, texts, &placing);
    weft_graph_destroy(&shapes.graph);
    const weft_oracle_case what = {
        .name = "random", .build = build_random, .argument = &seed, .layout = layout};
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    check_ways(mesh, &what, &placing, name);
}

static void test_random_graphs_have_the_same_bits(void)
{
    const int n = weft_test_cases(oracle.world.n_processes > 1 ? 60 : 1000);
    for (int seed = 1; seed <= n; seed++)
        check_fused(seed);
}

/* ---- names ------------------------------------------------------------------------------------- */

/* A value and the same memory with the names of its two dims exchanged, side by side. */
static void build_turned(weft_oracle_build *b)
{
    const weft_dim row = {"row", 6}, column = {"column", 6}, third = {"third", 6};
    const weft_value x = weft_oracle_input(b, WEFT_F32, WEFT_DIMS(row, column), -1, 1),
                     y = weft_tanh(x);
    const weft_value turned =
        weft_rename(weft_rename(weft_rename(y, row, third), column, row), third, column);
    weft_oracle_output(b, weft_add(y, turned));
    weft_oracle_output(b, weft_mul(weft_square(turned), y));
    weft_oracle_output(b, weft_sum(WEFT_DIMS(row), weft_sub(y, turned)));
}

static void test_what_has_two_names_is_made_before_it_is_read(void)
{
    const weft_oracle_case what = {.name = "turned", .build = build_turned};
    check_ways(oracle.alone, &what, NULL, what.name);
}

/* ---- rows in pieces ---------------------------------------------------------------------------- */

/* A batch norm and its gradient: the pieces of a channel's row are its places in each image. */
static void build_channels(weft_oracle_build *b)
{
    const int64_t *places = b->argument;
    const weft_dim batch = {"batch", 3}, channel = {"channel", 5}, place = {"place", *places};
    const weft_value x = weft_oracle_input(b, WEFT_F32, WEFT_DIMS(batch, channel, place), -1, 2);
    const weft_value gain = weft_oracle_input(b, WEFT_F32, WEFT_DIMS(channel), -1, 1);
    const weft_value other = weft_oracle_input(b, WEFT_F32, WEFT_DIMS(batch, place), -1, 1);
    const weft_value y = weft_mul(weft_normalize(x, WEFT_DIMS(batch, place), 1e-3), gain);
    const weft_value loss = weft_sum(WEFT_SCALAR, weft_square(weft_relu(weft_add(y, other))));
    weft_value slopes[2];
    (void)weft_gradients(loss, WEFT_VALUES(x, gain), slopes, 0);
    weft_oracle_output(b, y);
    weft_oracle_output(b, weft_max(WEFT_DIMS(channel), x));
    weft_oracle_output(b, slopes[0]);
    weft_oracle_output(b, slopes[1]);
}

/* Too short for a loop; of one part; of several, the last one shorter; of several blocks. */
static void test_rows_in_pieces(void)
{
    int64_t places[] = {63, 64, 200, 1100, 5000};
    for (int i = 0; i < 5; i++) {
        const weft_oracle_case what = {
            .name = "channels", .build = build_channels, .argument = &places[i]};
        check_ways(oracle.alone, &what, NULL, what.name);
    }
}

/* ---- gpt ------------------------------------------------------------------------------------- */

enum { RUNS = 2, MOST = 250000 };

/* The losses and norms of some runs, then the variables and slots. */
typedef struct numbers {
    int64_t n;
    double *all; /* [MOST] */
} numbers;

static weft_status feed_gpt(const gpt_model *model, weft_program *program, weft_error *error)
{
    const weft_value inputs[] = {model->tokens, model->targets};
    for (int k = 0; k < 2; k++) {
        const int64_t count = weft_shape_count(weft_shape_of(inputs[k]));
        double data[256];
        for (int64_t i = 0; i < count && i < 256; i++)
            data[i] = (double)(int)(weft_oracle_unit(k, i) * (double)model->vocab.size);
        WEFT_TRY(weft_oracle_write(program, inputs[k], data, error));
    }
    return WEFT_OK;
}

static weft_status read_variables(weft_program *program, weft_graph *graph, numbers *read,
                                  weft_error *error)
{
    for (uint32_t v = 0; v < program->n_variables; v++) {
        const weft_value value = {graph, program->variables[v]};
        const int64_t count = weft_shape_count(weft_shape_of(value));
        double *data = NULL;
        WEFT_TRY(weft_oracle_read(program, value, &data, error));
        for (int64_t i = 0; i < count && read->n < MOST; i++)
            read->all[read->n++] = data[i];
        free(data);
    }
    return WEFT_OK;
}

static weft_status train_gpt(weft_program *program, const gpt_model *model, weft_value loss,
                             weft_value norm, numbers *read, weft_error *error)
{
    WEFT_TRY(feed_gpt(model, program, error));
    for (int run = 0; run < RUNS; run++) {
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read_scalar(program, loss, &read->all[read->n++], error));
        WEFT_TRY(weft_read_scalar(program, norm, &read->all[read->n++], error));
    }
    return read_variables(program, loss.graph, read, error);
}

static weft_status run_gpt(const gpt_layout *c, const weft_optimizer *rule, weft_mesh *mesh,
                           numbers *read, weft_error *error)
{
    const gpt_shape shape = {7, 12, 2, 24, 3, 40, 29, .dropout = 0.1, .dtype = WEFT_F32};
    weft_graph *graph = weft_graph_create(1234);
    weft_layout *layout = NULL;
    weft_program *program = NULL;
    gpt_model model;
    weft_value norm, loss = gpt_loss(&shape, graph, &model);
    const weft_value update = rule->build(
        loss, &(weft_optimizer_options){.rate = 3e-3, .clip = 0.5, .gradient_norm = &norm});
    weft_status status = weft_layout_create(c->layout, &layout, error);
    if (status == WEFT_OK) status = weft_layout_store(layout, c->zero, "batch", error);
    if (status == WEFT_OK)
        status = weft_compile(mesh, layout, WEFT_VALUES(loss, norm, update), NULL, &program, error);
    if (status == WEFT_OK) status = train_gpt(program, &model, loss, norm, read, error);
    weft_program_destroy(&program);
    weft_layout_destroy(&layout);
    weft_graph_destroy(&graph);
    return status;
}

static void check_gpt(const gpt_layout *c, const weft_optimizer *rule)
{
    numbers read[N_WAYS] = {{0}};
    weft_mesh *mesh = NULL;
    weft_error error = {0};
    if (!CHECK_OK(weft_mesh_create(&oracle.world, c->mesh, &mesh, &error), error)) return;
    for (int w = 0; w < N_WAYS; w++) {
        char found[300] = "", text[500];
        now = &ways[w];
        read[w].all = calloc(MOST, sizeof *read[w].all);
        const bool is_same = run_gpt(c, rule, mesh, &read[w], &error) == WEFT_OK &&
                             read[w].n == read[0].n && read[w].n < MOST &&
                             same_bits(read[0].all, read[w].all, read[0].n, found, sizeof found);
        snprintf(text, sizeof text, "%s \"%s\" ZeRO %d, %s: %s%s", c->mesh, c->layout, c->zero,
                 rule->name, read[w].n < MOST ? found : "more than MOST numbers", error.message);
        weft_test_check(is_same, __FILE__, __LINE__, text);
    }
    for (int w = 0; w < N_WAYS; w++)
        free(read[w].all);
    weft_mesh_destroy(&mesh);
}

static void test_gpt_has_the_same_bits_under_every_layout(void)
{
    for (int i = 0; i < GPT_LAYOUTS; i += weft_test_stride(5)) /* apps/gpt_layouts has all */
        check_gpt(&gpt_layouts[i], &weft_optimizers[i % weft_n_optimizers]);
}

int main(int argc, char **argv)
{
    static const char *const meshes[] = {
        "data:2", "data:3", "data:4", "data:2,model:2", "model:3,data:2", "data:2,model:2,seq:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 6, &error), error)) {
        if (argc == 2) {
            check_fused(strtoull(argv[1], NULL, 10));
        } else {
            RUN(test_random_graphs_have_the_same_bits);
            RUN(test_what_has_two_names_is_made_before_it_is_read);
            RUN(test_rows_in_pieces);
            RUN(test_gpt_has_the_same_bits_under_every_layout);
            RUN(test_every_pass_had_something_to_do);
            RUN(test_nothing_grows_by_joining_or_moving);
        }
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
