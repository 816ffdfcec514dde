/* RANKS: 2 4 */
/* average_test: averages of weights against those of the weights that were read after each step, under layouts and stages of
 * ZeRO; weights and averages exchanged, there and back; what is refused.
 */
#include "training.h"

static weft_oracle oracle;

enum { STEPS = 9, N_WEIGHTS = 20 + 28 + 7 + 21 };

static const weft_average_options ways[] = {
    {0},                     /* all alike */
    {.decay = 0.75},         /* the last four */
    {.from = 3},             /* all from the fourth on */
    {.from = 2, .every = 3}, /* the fifth and the eighth */
    {.decay = 0.9, .from = 1, .every = 2},
    {.from = 20}, /* not yet */
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

/* ---- the averages once more ------------------------------------------------------------------ */

static void average(double *mean, const double *weights, int t, const weft_average_options *o)
{
    const int every = o->every > 0 ? (int)o->every : 1, gone = t - (int)o->from, n = gone / every;
    double weight = 1.0;
    if (gone >= every && gone % every != 0) return;
    if (gone >= every) weight = fmax(1.0 / n, o->decay > 0 ? 1.0 - o->decay : 0.0);
    for (int i = 0; i < N_WEIGHTS; i++)
        mean[i] = (1 - weight) * mean[i] + weight * weights[i];
}

/* ---- in Weft --------------------------------------------------------------------------------- */

typedef struct trained {
    net n;
    weft_program *program;
} trained;

static bool open_trained(trained *t, weft_mesh *mesh, const place *where,
                         const weft_average_options *o)
{
    weft_error error = {0};
    *t = (trained){.n = net_make()};
    const weft_optimizer_options slow = {.rate = 0.05, .prefix = "embed"},
                                 fast = {.prefix = "block"}, last = {.rate = 0.1, .prefix = "head"};
    const weft_value update = weft_group(t->n.graph, WEFT_VALUES(weft_adamw(t->n.loss, &slow),
                                                                 weft_adam(t->n.loss, &fast),
                                                                 weft_momentum(t->n.loss, &last)));
    weft_status status =
        net_compile(&t->n, weft_average(update, o), mesh, where, NULL, &t->program, &error);
    if (status == WEFT_OK) status = net_feed(&t->n, t->program, &error);
    return CHECK_OK(status, error);
}

static void close_trained(trained *t)
{
    weft_program_destroy(&t->program);
    weft_graph_destroy(&t->n.graph);
}

static void run(weft_program *program)
{
    weft_error error = {0};
    CHECK_OK(weft_run(program, &error), error);
}

/* The weights, or their averages. */
static void read_all(const trained *t, bool is_average, double numbers[N_WEIGHTS])
{
    weft_error error = {0};
    int used = 0;
    for (int k = 0; k < N_VARIABLES; k++) {
        double *data = NULL;
        const weft_value v = is_average ? weft_averaged(t->n.variables[k]) : t->n.variables[k];
        const int64_t count = weft_shape_count(weft_shape_of(v));
        if (!CHECK_OK(weft_oracle_read(t->program, v, &data, &error), error)) return;
        memcpy(numbers + used, data, (size_t)count * sizeof *data);
        free(data);
        used += (int)count;
    }
    CHECK_EQ_INT(used, N_WEIGHTS);
}

static void check_average(weft_mesh *mesh, const place *where, const weft_average_options *o)
{
    double weights[N_WEIGHTS], expected[N_WEIGHTS] = {0}, found[N_WEIGHTS];
    trained t;
    char text[200];
    snprintf(text, sizeof text, "decay %g from %d every %d on %s under %s, stage %d", o->decay,
             (int)o->from, (int)o->every, weft_mesh_text(mesh), where->layout, where->stage);
    if (!open_trained(&t, mesh, where, o)) return;
    for (int step = 1; step <= STEPS; step++) {
        run(t.program);
        read_all(&t, false, weights);
        read_all(&t, true, found);
        average(expected, weights, step, o);
        net_same(expected, found, 0, N_WEIGHTS, 1e-15, text);
    }
    close_trained(&t);
}

static void test_averages_are_those_of_the_weights(void)
{
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int p = 0; p < N_PLACES; p++)
            for (int w = 0; w < N_WAYS; w++)
                check_average(m < 0 ? oracle.alone : oracle.meshes[m], &places[p], &ways[w]);
}

/* Weights are averages, and averages weights; twice, and nothing has happened; training goes on as it would have. */
static void check_swap(weft_mesh *mesh, const place *where)
{
    double weights[N_WEIGHTS], averages[N_WEIGHTS], found[N_WEIGHTS];
    weft_error error = {0};
    weft_program *swap = NULL;
    trained t, whole;
    if (!open_trained(&t, mesh, where, &ways[1])) return;
    const weft_value token = weft_average_swap(t.n.graph);
    if (!CHECK_OK(net_compile(&t.n, token, mesh, where, t.program, &swap, &error), error)) return;
    for (int i = 0; i < 3; i++)
        run(t.program);
    read_all(&t, false, weights), read_all(&t, true, averages);
    CHECK(weights[0] != averages[0]);
    CHECK_OK(net_feed(&t.n, swap, &error), error);
    run(swap);
    read_all(&t, false, found), net_same(averages, found, 0, N_WEIGHTS, 0.0, "averages as weights");
    read_all(&t, true, found), net_same(weights, found, 0, N_WEIGHTS, 0.0, "weights as averages");
    run(swap);
    run(t.program);
    read_all(&t, false, weights), read_all(&t, true, averages);
    weft_program_destroy(&swap);
    close_trained(&t);
    if (!open_trained(&whole, mesh, where, &ways[1])) return;
    for (int i = 0; i < 4; i++)
        run(whole.program);
    read_all(&whole, false, found), net_same(weights, found, 0, N_WEIGHTS, 0.0, "weights later");
    read_all(&whole, true, found), net_same(averages, found, 0, N_WEIGHTS, 0.0, "averages later");
    close_trained(&whole);
}

static void test_weights_and_averages_change_places(void)
{
    for (int m = -1; m < oracle.n_meshes; m++)
        for (int p = 0; p < N_PLACES; p++)
            check_swap(m < 0 ? oracle.alone : oracle.meshes[m], &places[p]);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_wrong_options_have_their_sentence(void)
{
    static const struct {
        weft_average_options o;
        const char *says;
    } wrongs[] = {
        {{.decay = 1.0}, "decay is 1; it is at least 0 and below 1"},
        {{.decay = -0.5}, "decay is -0.5"},
        {{.decay = NAN}, "decay is nan"},
        {{.from = -1}, "from update -1"},
        {{.every = -2}, "every -2; neither is negative"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        net n = net_make();
        CHECK_EQ_INT(weft_average(weft_sgd(n.loss, NULL), &wrongs[i].o).id, 0);
        CHECK_TEXT(weft_graph_error(n.graph)->message, wrongs[i].says);
        CHECK_TEXT(weft_graph_error(n.graph)->message, "average at average_test.c:");
        weft_graph_destroy(&n.graph);
    }
}

static void test_what_updates_nothing_has_no_average(void)
{
    net n = net_make();
    CHECK_EQ_INT(weft_averaged(n.variables[0]).id, 0);
    CHECK_TEXT(weft_graph_error(n.graph)->message, "");
    CHECK_EQ_INT(weft_average(n.loss, NULL).id, 0);
    CHECK_TEXT(weft_graph_error(n.graph)->message, "updates no variable; pass what an optimizer");
    weft_graph_clear_error(n.graph);
    CHECK_EQ_INT(weft_average_swap(n.graph).id, 0);
    CHECK_TEXT(weft_graph_error(n.graph)->message, "has no averages; make them with weft_average");
    weft_graph_clear_error(n.graph);
    CHECK_EQ_INT(weft_averaged(n.loss).id, 0);
    CHECK_TEXT(weft_graph_error(n.graph)->message, "this is no variable");
    weft_graph_destroy(&n.graph);
}

/* An update that is in two groups is averaged once. */
static void test_an_update_that_comes_twice_counts_once(void)
{
    net n = net_make();
    const weft_value update = weft_sgd(n.loss, NULL);
    const weft_value both =
        weft_group(n.graph, WEFT_VALUES(update, weft_group(n.graph, WEFT_VALUES(update))));
    CHECK(weft_average(both, NULL).id != 0);
    CHECK_TEXT(weft_graph_error(n.graph)->message, "");
    weft_graph_destroy(&n.graph);
}

int main(void)
{
    static const char *const meshes[] = {"data:2", "data:4", "data:2,model:2", "model:2,data:2"};
    weft_error error = {0};
    if (CHECK_OK(weft_oracle_open(&oracle, meshes, 4, &error), error)) {
        RUN(test_averages_are_those_of_the_weights);
        RUN(test_weights_and_averages_change_places);
        RUN(test_wrong_options_have_their_sentence);
        RUN(test_what_updates_nothing_has_no_average);
        RUN(test_an_update_that_comes_twice_counts_once);
    }
    weft_oracle_close(&oracle);
    return weft_test_report();
}
