/* floors_test: no choice is planned to take less than its floor, and floors leave out no winner: of nets with kernels of every
 * kind, on machines with links from slow to fast, whatever share of the cores exchanges take.
 */
#include "weft/research/search.h"

#include "apps/charlm/model.h"
#include "apps/gpt/model.h"
#include "apps/mnist/model.h"
#include "ops/predict/machine.h"
#include "test.h"
#include "weft/optim.h"

typedef weft_value (*net)(const weft_choice *choice, weft_graph *graph);

static weft_value gpt(const weft_choice *choice, weft_graph *graph)
{
    gpt_model model;
    const gpt_shape shape = {.batch = 8,
                             .seq = 32,
                             .layers = choice->layers > 0 ? choice->layers : 1,
                             .width = 64,
                             .heads = 4,
                             .hidden = 256,
                             .vocab = 128,
                             .dtype = WEFT_F32,
                             .computes = WEFT_BF16,
                             .recomputes = weft_choice_value(choice, "recompute", 0) == 1,
                             .scans = weft_choice_value(choice, "scans", 0) == 1};
    return gpt_loss(&shape, graph, &model);
}

/* Kernels one behind the other without anything between, of which some are of one operand, and one is read by two. */
static weft_value products(const weft_choice *choice, weft_graph *graph)
{
    const weft_dim batch = {"batch", 64}, in = {"in", 128}, out = {"out", 256}, last = {"last", 32};
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, in)),
                     v = weft_variable(graph, "v", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0, 1)),
                     w = weft_variable(graph, "w", WEFT_F32, WEFT_DIMS(out, last),
                                       weft_normal(0, 1)),
                     u = weft_variable(graph, "u", WEFT_F32, WEFT_DIMS(out, last),
                                       weft_normal(0, 1));
    (void)choice;
    const weft_value y = weft_einsum(WEFT_DIMS(batch, out), x, v);
    const weft_value a = weft_einsum(WEFT_DIMS(batch, last), y, w),
                     b = weft_einsum(WEFT_DIMS(batch, last), weft_exp(y), u);
    return weft_mean(weft_mul(weft_add(a, b), weft_add(a, b)));
}

/* One table for what is read and what is written, so its gradient has two parts. */
static weft_value tied(const weft_choice *choice, weft_graph *graph)
{
    const weft_dim batch = {"batch", 256}, vocab = {"vocab", 64}, embed = {"embed", 32};
    const weft_value ids = weft_input(graph, "ids", WEFT_I32, WEFT_DIMS(batch)),
                     table = weft_variable(graph, "table", WEFT_F32, WEFT_DIMS(vocab, embed),
                                           weft_normal(0, 1));
    (void)choice;
    const weft_value x = weft_gather(table, ids, vocab);
    return weft_mean(
        weft_cross_entropy(weft_einsum(WEFT_DIMS(batch, vocab), weft_gelu(x), table), ids, vocab));
}

static weft_value convolutions(const weft_choice *choice, weft_graph *graph)
{
    const mnist_shape shape = {
        .is_cnn = true, .batch = 16, .channels = 4, .hidden = 32, .dtype = WEFT_F32, .classes = 8};
    (void)choice;
    return mnist_build(graph, &shape).loss;
}

static weft_value recurrent(const weft_choice *choice, weft_graph *graph)
{
    const charlm_shape shape = {.kind = charlm_find("lstm"),
                                .batch = 8,
                                .seq = 4,
                                .layers = 1,
                                .width = 32,
                                .dtype = WEFT_F32};
    (void)choice;
    const charlm_model model = charlm_build(graph, &shape);
    return charlm_loss(graph, &model);
}

static weft_status build(void *context, const weft_choice *choice, weft_built_graph *built,
                         weft_error *error)
{
    const net *made = context;
    built->graph = weft_graph_create(1);
    if (!built->graph) return weft_fail_memory(error, 1);
    const weft_value loss = (*made)(choice, built->graph);
    built->values[0] = loss;
    built->values[1] = weft_adamw(loss, &(weft_optimizer_options){.rate = 0.1, .clip = 1});
    built->n_values = 2;
    const weft_error *first = weft_graph_error(built->graph);
    return first->status == WEFT_OK ? WEFT_OK
                                    : weft_fail(error, first->status, "%s", first->message);
}

static weft_found *look(net made, const weft_search_options *options)
{
    weft_error error = WEFT_NO_ERROR;
    weft_found *found = calloc(1, sizeof *found);
    CHECK_OK(weft_search_best(build, &made, options, found, &error), error);
    return found;
}

/* A nominal machine whose hosts have two ranks each, with other links, which take another share of the cores. */
static weft_machine_model *machine(const char *name, double links, double cpu)
{
    weft_error error = WEFT_NO_ERROR;
    weft_machine_model *model = NULL;
    CHECK_OK(weft_machine_model_read(name, &model, &error), error);
    for (int l = 0; model && l < model->n_levels; l++) {
        model->levels[l].bytes_per_second *= links;
        if (l + 1 < model->n_levels) model->levels[l].ranks = 2;
        if (cpu >= 0) model->levels[l].cpu = cpu;
    }
    return model;
}

static const struct {
    const char *name;
    double links, cpu;
} machines[] = {{"h100x8", 1, -1},
                {"h100x8", 0.001, 0},
                {"a100x8", 0.02, 0.5},
                {"laptop", 0.05, -1},
                {"laptop", 10, 0.3}};
enum { MACHINES = sizeof machines / sizeof *machines };

static void check(net made, const weft_search_options *asked, int m)
{
    weft_search_options options = *asked;
    weft_machine_model *model = machine(machines[m].name, machines[m].links, machines[m].cpu);
    options.machine = model;
    options.store_dim = "batch";
    weft_found *some = look(made, &options);
    options.is_whole = true;
    weft_found *all = look(made, &options);
    if (!CHECK(all->floor_part > 0 && all->floor_part <= 1))
        fprintf(stderr, "machine %d: a floor is %.6f of what was predicted\n", m, all->floor_part);
    CHECK(some->is_exact && all->is_exact);
    CHECK(some->floor_part <= 1);
    CHECK(some->best[0].prediction.seconds == all->best[0].prediction.seconds);
    CHECK(strcmp(some->best[0].choice.mesh, all->best[0].choice.mesh) == 0);
    CHECK(strcmp(some->best[0].choice.layout, all->best[0].choice.layout) == 0);
    CHECK_EQ_INT(all->n_planned + all->left_out.illegal, all->n_choices);
    CHECK(some->n_planned <= all->n_planned);
    free(some);
    free(all);
    weft_machine_model_destroy(&model);
}

/* On all machines, or of few cases on this one. */
static void check_machines(net made, const weft_search_options *options, int one)
{
    const bool is_few = weft_test_cases(MACHINES) < MACHINES;
    for (int m = is_few ? one : 0; m < (is_few ? one + 1 : MACHINES); m++)
        check(made, options, m);
}

static void test_products_are_above_their_floors(void)
{
    check_machines(products, &(weft_search_options){.ranks = 4}, 1);
}

static void test_tied_tables_are_above_their_floors(void)
{
    check_machines(tied, &(weft_search_options){.ranks = 4}, 2);
}

static void test_convolutions_are_above_their_floors(void)
{
    check_machines(convolutions, &(weft_search_options){.ranks = 2}, 3);
}

static void test_recurrent_nets_are_above_their_floors(void)
{
    check_machines(recurrent, &(weft_search_options){.ranks = 2}, 4);
}

static void test_transformers_are_above_their_floors(void)
{
    const weft_knob knobs[] = {
        {.name = "recompute", .is_flag = true, .n_values = 2, .values = {0, 1}}};
    const weft_search_options options = {.ranks = 2, .n_knobs = 1, .knobs = knobs};
    check_machines(gpt, &options, 0);
}

/* Heavy products of many rows: no rank does them all. Where links are slow the gradients are most of a step. */
static weft_value heavy(const weft_choice *choice, weft_graph *graph)
{
    const weft_dim batch = {"batch", 1 << 20}, in = {"in", 4096}, out = {"out", 4096};
    const weft_value x = weft_input(graph, "x", WEFT_F32, WEFT_DIMS(batch, in)),
                     v = weft_variable(graph, "v", WEFT_F32, WEFT_DIMS(in, out), weft_normal(0, 1));
    (void)choice;
    const weft_value y = weft_relu(weft_einsum(WEFT_DIMS(batch, out), x, v));
    return weft_mean(weft_mul(y, y));
}

static void test_floors_know_of_exchanges(void)
{
    weft_machine_model *slow = machine("h100x8", 0.02, -1);
    const weft_search_options options = {.ranks = 16,
                                         .machine = slow,
                                         .store_dim = "batch",
                                         .vary = "zero",
                                         .mesh = "data:16",
                                         .layout = "batch:data"};
    weft_found *found = look(heavy, &options);
    CHECK(found->floor_part > 0.7 && found->floor_part <= 1);
    free(found);
    weft_machine_model_destroy(&slow);
}

int main(void)
{
    RUN(test_products_are_above_their_floors);
    RUN(test_tied_tables_are_above_their_floors);
    RUN(test_convolutions_are_above_their_floors);
    RUN(test_recurrent_nets_are_above_their_floors);
    RUN(test_transformers_are_above_their_floors);
    RUN(test_floors_know_of_exchanges);
    return weft_test_report();
}
